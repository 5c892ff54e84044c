"""How long to remember: next to plain loops, on logs that change and on logs that do not."""

import json
from dataclasses import replace
from math import exp, log

import numpy as np
import pytest

import restive as rs
from log_cases import log_of, simulated_log, simulated_pulls
from restive.logs.fitted import fit_arms
from restive.logs.forgetting import Sightings, advised_forgetting, laws_of, measured_forgetting
from restive.logs.forgetting_words import forgetting_sentence, length_in_words, sentence_of_fit
from restive.logs.sample import sample_of
from restive.logs.time_steps import step_rule

TRIED = (10, 20, 50, 100)


# ---------------------------------------------------------------- next to plain loops


def foretold(candidates, weights, items, memory, even=False):
    """Log chance of what was seen of an arm, by the prior given evidence that decays."""
    size = 1 if memory is None else max(1, int(memory) // 20)
    lost = 0.0 if memory is None else size / memory
    chances = [np.array([law(one, row, age)[s] for one in candidates]) for _, row, age, s in items]
    blocks = [t // size for t, *_ in items]
    total = 0.0
    for i, block in enumerate(blocks):
        share = [exp(-lost * (block - at)) for at in blocks[:i]]
        if even and share:  # what was seen in this block has not lost anything yet
            old = [k for k in range(i) if blocks[k] < block]
            held = sum(share[k] for k in old)
            share = [held / len(old) if blocks[k] < block else 1.0 for k in range(i)]
        logs = np.log(weights)
        for seen, weight in zip(chances[:i], share, strict=True):
            logs = logs + weight * np.log(seen)
        now = np.exp(logs - logs.max())
        now /= now.sum()
        total += log((now * chances[i]).sum())
    return total


def law(arm, row, age):
    """Law of the state `age` steps after a sighting; rows from S on are of arms not pulled."""
    size = arm.num_states
    first = arm.active[row] if row < size else arm.passive[row - size]
    return first @ np.linalg.matrix_power(arm.passive, age - 1)


def items_of(fitted, since):
    sample = sample_of(fitted.log, fitted.controlled, fitted.seen)
    for k in range(sample.num_arms):
        rows = np.flatnonzero(sample.foretold & (sample.owner == k))
        columns = (sample.steps[rows] - since, sample.before[rows], sample.ages[rows])
        yield list(zip(*(c.tolist() for c in columns), sample.states[rows].tolist(), strict=True))


def compared(fitted, score):
    """Compare what was found with a function (items, memory, even) that scores an arm."""
    found = advised_forgetting(fitted)
    sample = sample_of(fitted.log, fitted.controlled, fitted.seen)
    arms = list(items_of(fitted, int(sample.steps[sample.foretold].min())))
    count = sum(map(len, arms))
    assert found.num_sightings == count
    never = sum(score(items, None) for items in arms)
    gains = [sum(score(items, memory) for items in arms) - never for memory in found.tried]
    np.testing.assert_allclose(found.gains * count, gains, rtol=0, atol=1e-9 * count)
    best = found.tried[int(np.argmax(gains))]
    assert found.best == best
    assert found.gain == pytest.approx(max(gains) / count, abs=1e-12)
    even = sum(score(items, best, True) for items in arms)
    assert found.over_even == pytest.approx((max(gains) + never - even) / count, abs=1e-9)
    assert found.odds == pytest.approx(log(np.mean(np.exp(gains))), abs=1e-6)
    return found


@pytest.mark.parametrize("fault", ["", "switch"])
def test_candidates_next_to_plain_loops(fault):
    levels = [0.1, 0.4, 0.8]
    prior = rs.grid_prior(levels, 1).arms[0]
    fitted = fit_arms(simulated_log(3, 3, 110, 0.5, fault), prior)
    found = compared(
        fitted,
        lambda items, m, even=False: foretold(prior.candidates, prior.weights, items, m, even),
    )
    assert found.tried.tolist() == [10, 20, 50, 100]


def test_controlled_candidates_of_three_states_next_to_plain_loops():
    rng = np.random.default_rng(2)
    arms = [
        rs.Arm(rng.dirichlet([1, 1, 1], 3), rng.dirichlet([1, 1, 1], 3), [0, 0.5, 1])
        for _ in range(5)
    ]
    step, arm = np.nonzero(rng.random((130, 2)) < 0.6)
    state = rng.integers(0, 3, len(step))
    fitted = fit_arms(log_of(arm, step, state, num_states=3), rs.ArmPrior(arms), controlled=True)
    compared(fitted, lambda items, m, even=False: foretold(arms, np.full(5, 0.2), items, m, even))


def dirichlet(alphas, items, memory, even=False):
    """The same for an arm that is always seen, by counts of moves."""
    size = 1 if memory is None else max(1, int(memory) // 20)
    lost = 0.0 if memory is None else size / memory
    total = 0.0
    for i, (t, row, _, state) in enumerate(items):
        block = t // size
        old = [k for k in range(i) if items[k][0] // size < block]
        held = {k: exp(-lost * (block - items[k][0] // size)) for k in old}
        if even:
            held = dict.fromkeys(old, sum(held.values()) / max(len(old), 1))
        counts = np.array(alphas)
        for k in range(i):
            counts[items[k][1], items[k][3]] += held.get(k, 1.0)
        total += log(counts[row, state] / counts[row].sum())
    return total


@pytest.mark.parametrize("controlled", [True])  # else candidates have no counts to compare
def test_arms_that_are_always_seen_next_to_plain_loops(controlled):
    logged = simulated_pulls(1, 2, 110, 1, switch=True, always=True)
    fitted = fit_arms(logged, controlled=controlled, seen="always")
    alphas = fitted.kind_priors[0].posterior_alphas
    compared(fitted, lambda items, m, even=False: dirichlet(alphas, items, m, even))


@np.errstate(divide="ignore")
def test_chances_that_underflow_are_computed_from_logarithms():
    """What was ruled out by 95 sightings, but for 1e-285, is what comes; and stays after that."""
    arms = [rs.Arm([[0.0, 1.0], [0.0, 1.0]], rewards=[0, 1]), rs.gilbert_elliott(0.999, 0.001)]
    state = np.ones(150, dtype=int)
    state[96::2] = 0
    fitted = fit_arms(log_of(np.zeros(150, int), np.arange(150), state), rs.ArmPrior(arms))
    compared(fitted, lambda items, m, even=False: foretold(arms, [0.5, 0.5], items, m, even))


def test_kinds_and_blocks_change_nothing(monkeypatch):
    """Sightings that are looked at a few at a time, and arms one by one, give the same sums."""
    base = simulated_log(5, 6, 150, 0.5, "switch")
    logged = replace(base, kinds=("a", "b"), kind_of=np.array([0, 1] * 3))
    fitted = fit_arms(logged)
    whole = advised_forgetting(fitted)
    monkeypatch.setattr("restive.logs.forgetting.HELD", 1 << 11)
    monkeypatch.setattr("restive.logs.forgetting.TOGETHER", 1)
    parts = advised_forgetting(fitted)
    np.testing.assert_allclose(parts.gains, whole.gains, rtol=1e-9)
    assert parts.over_even == pytest.approx(whole.over_even, rel=1e-6)


# ---------------------------------------------------------------- what is found


def verdicts(logs, **options):
    return [advised_forgetting(fit_arms(one, **options)).verdict for one in logs]


CLEAN = [  # arms, steps, share that is seen
    (20, 250, 0.5), (1, 500, 1.0), (60, 104, 0.25), (100, 60, 0.3), (5, 250, 0.5),
]  # fmt: skip


def test_clean_logs_are_seldom_said_to_change():
    """At most 5% of 100 clean logs; it was 3 of 2,000 (docs/forgetting_tables.py)."""
    found = [
        verdict for size in CLEAN for verdict in verdicts(
            simulated_log([n, 30], *size) for n in range(20)
        )
    ]  # fmt: skip
    assert found.count("changes") <= 0.05 * len(found)
    assert found.count("may change") <= 0.05 * len(found)


def test_clean_logs_of_arms_that_are_always_seen():
    logs = [simulated_pulls([n, 31], 8, 300, 2, always=True) for n in range(40)]
    for controlled in (True, False):
        found = verdicts(logs, controlled=controlled, seen="always")
        assert found.count("changes") <= 2


def test_arms_that_are_more_alike_than_their_law_do_not_change():
    """A short memory says less of each arm, which is right of all; it is not since it is recent.

    At most 5 of 20, as more have probability 1e-4 if 5% are called a change; it was half of them
    where beating the even twin by any amount was enough, and 9 of 200 since.
    """
    found = []
    for n in range(20):
        rng = np.random.default_rng([n, 34])
        pulled = rng.permuted(np.tile(np.arange(300) < 20, (40, 1)), axis=1)
        states = np.empty((40, 300), dtype=int)
        states[0] = rng.integers(2, size=300)
        for t in range(1, 40):
            states[t] = rng.random(300) < np.where(states[t - 1] == 1, 0.85, 0.15)
        step, arm = np.indices(states.shape)
        rows = (one.ravel() for one in (arm, step, states))
        logged = log_of(*rows, pulled=pulled.ravel())
        fitted = fit_arms(logged, controlled=True, seen="always")
        found.append(advised_forgetting(fitted).verdict)
    assert found.count("steady") >= 15


def test_points_that_are_far_apart_are_no_change():
    """One chain between two points: a short memory wavers between them, and predicts better."""
    rng = np.random.default_rng(1)
    states = (rng.random((2000, 4)) < 0.5).astype(int)
    step, arm = np.indices(states.shape)
    prior = rs.ArmPrior([rs.gilbert_elliott(p, p) for p in (0.2, 0.81)])
    found = advised_forgetting(fit_arms(log_of(arm.ravel(), step.ravel(), states.ravel()), prior))
    assert found.low > 0  # it does predict better
    assert found.over_even <= 0  # not since it is recent
    assert found.verdict == "steady"
    assert found.forget_after is None


@pytest.mark.parametrize(("size", "least"), [((20, 250, 0.5), 8), ((3, 400, 1.0), 4)])
def test_switches_are_found(size, least):
    found = [
        advised_forgetting(fit_arms(simulated_log([n, 32], *size, "switch"))) for n in range(10)
    ]
    told = [one for one in found if one.verdict == "changes"]
    assert len(told) >= least
    for one in told:
        assert 10 <= one.forget_after <= 200
        assert 0 < one.low < one.gain < one.high


def test_switches_of_arms_that_pulls_move_are_found():
    logged = simulated_pulls(3, 8, 300, 2, switch=True, always=True)
    assert advised_forgetting(fit_arms(logged, controlled=True, seen="always")).verdict == "changes"


def test_the_interval_holds_what_another_history_would_gain():
    """Worlds that change in the same way, other luck: 90% intervals hold the mean of 200 others.

    At least 78 of 100, as fewer have probability 1e-4 if it is 90%.
    """
    changing = [simulated_fixed([n, 33]) for n in range(130)]
    prior = rs.grid_prior(np.linspace(0.05, 0.95, 10), 1).arms[0]
    found = [advised_forgetting(fit_arms(one, prior)) for one in changing]
    truth = {m: np.mean([dict(zip(f.tried, f.gains, strict=True))[m] for f in found])
             for m in found[0].tried}  # fmt: skip
    held = [one.low <= truth[one.best] <= one.high for one in found]
    assert sum(held) >= 0.82 * len(found)


def simulated_fixed(seed):
    """A log of arms that switch at half time, from and to the same chains whatever the seed."""
    from log_cases import simulated_states

    rng = np.random.default_rng(seed)
    p01, p11 = np.linspace(0.1, 0.7, 10), np.linspace(0.9, 0.4, 10)
    states = simulated_states(p01, p11, 200, rng, "switch")
    step, arm = np.nonzero(rng.random(states.shape) < 0.5)
    return log_of(arm, step, states[step, arm])


# ---------------------------------------------------------------- in words, and in files


def test_fit_tells_one_story(tmp_path):
    fitted = rs.fit_log(simulated_log(7, 20, 250, 0.5, "switch"))
    assert fitted.check("drift").verdict == "fails"
    assert fitted.forgetting.verdict == "changes"
    said = sentence_of_fit(fitted)
    assert said.startswith(f"The arms change: a memory of about {fitted.forgetting.best:.0f} steps")
    assert f"--learner 'tsde(forget_after={fitted.forgetting.best:g})'" in said
    assert "fit a later part" not in fitted.check("drift").advice
    rs.write_fit(fitted, tmp_path, num_pulls=3)
    assert "How long to remember?" in (tmp_path / "fit.html").read_text()
    assert said.split(":")[0] in (tmp_path / "fit.html").read_text()
    assert rs.load_prior(tmp_path / "prior.json").forget_after == fitted.forgetting.best
    data = json.loads((tmp_path / "prior.json").read_text())
    for wrong in ("long", 0, True, [1]):
        data["forget_after"] = wrong
        (tmp_path / "wrong.json").write_text(json.dumps(data))
        if wrong is True:
            continue
        with pytest.raises(rs.RestiveError, match=r"wrong.json: forget_after must be a number"):
            rs.load_prior(tmp_path / "wrong.json")


def test_a_steady_log_is_said_to_be_so(tmp_path):
    fitted = rs.fit_log(simulated_log(8, 20, 250, 0.5))
    assert fitted.forgetting.verdict == "steady"
    assert sentence_of_fit(fitted).startswith(
        "The arms do not seem to change: forgetting would not have predicted better (with a memory "
    )
    rs.write_fit(fitted, tmp_path, num_pulls=3)
    assert rs.load_prior(tmp_path / "prior.json").forget_after is None
    assert "forget_after" not in json.loads((tmp_path / "prior.json").read_text())


def test_halves_that_differ_too_little_to_forget():
    fitted = rs.fit_log(simulated_log(8, 20, 250, 0.5), checks=True)
    failed = replace(fitted.check("drift"), verdict="fails")
    said = sentence_of_fit(replace(fitted, checks=(failed,)))
    assert said.startswith("The halves of the log differ (drift), but forgetting would not have")


def test_every_verdict_has_a_sentence():
    found = advised_forgetting(fit_arms(simulated_log(7, 20, 250, 0.5, "switch")))
    rule = step_rule("1d")

    def said(one, drift=None):
        return forgetting_sentence(
            one, lambda steps: length_in_words(rule, steps), "Do.", drift, "lines"
        )

    assert said(None) == "Whether the lines change: too little was seen to tell."
    assert said(found, drift=False).endswith(
        "Do. The check drift does not see it, since it compares only one half with the other."
    )
    lucky = replace(found, low=-0.001)
    assert lucky.verdict == "may change"
    assert lucky.forget_after is None
    assert said(lucky).startswith("The lines may change: a memory of about ")


@pytest.mark.parametrize(
    ("step", "memory", "words"),
    [
        ("1d", 300, "300 days"), ("1w", 50, "50 weeks"), ("2w", 50, "100 weeks (50 steps)"),
        ("6h", 200, "50 days (200 steps)"), ("15min", 10, "2.5 hours (10 steps)"),
        ("30s", 20, "10 minutes (20 steps)"), ("1h", 20, "20 hours"), ("1", 5000, "5,000 steps"),
        ("1s", 50, "50 seconds"), ("3d", 100, "300 days (100 steps)"),
    ],
)  # fmt: skip
def test_lengths_in_words(step, memory, words):
    assert length_in_words(step_rule(step), memory) == words


def test_too_little_is_no_answer():
    fitted = rs.fit_log(simulated_log(1, 3, 30, 0.5))
    assert fitted.forgetting is None
    assert sentence_of_fit(fitted) == "Whether the arms change: too little was seen to tell."
    nothing = np.zeros(0, dtype=np.int64)
    none = Sightings(np.zeros(1, dtype=np.int64), nothing, nothing, nothing, nothing)
    assert measured_forgetting(none, []) is None
    assert laws_of([object()]) is None


def test_laws_under_which_no_agent_can_forget_become_points():
    """Arms that were seen often have Dirichlet laws; where they change, an agent needs points."""
    logged = simulated_pulls(3, 12, 600, 4, switch=True)
    before = fit_arms(logged, controlled=True)
    assert isinstance(before.kind_priors[0], rs.DirichletArmPrior)
    fitted = rs.fit_log(logged, controlled=True)
    assert fitted.forgetting.forget_after is not None
    assert isinstance(fitted.kind_priors[0], rs.ArmPrior)
    assert (
        "kinds have weights of points, since their arms change and an agent cannot forget under a "
        "Dirichlet law"
    ) in fitted.notes
    assert "mean_index(forget_after=" in sentence_of_fit(fitted)
    given = rs.fit_log(logged, controlled=True, prior=before.kind_priors[0])
    assert "cannot forget under a Dirichlet law" in sentence_of_fit(given)


@pytest.mark.parametrize("always", [False, True])
def test_the_prior_of_arms_that_change_is_of_their_last_steps(always, tmp_path):
    """An agent never forgets what its prior holds, so that old sightings must not be in it."""
    if always:
        logged = simulated_pulls(3, 10, 300, 4, switch=True, always=True)
        fitted = rs.fit_log(logged, controlled=True, seen="always")
    else:
        logged = simulated_log(7, 20, 250, 0.5, "switch")
        fitted = rs.fit_log(logged)
    since = logged.num_steps - int(fitted.forgetting.forget_after)
    fewest = fitted.evidence(0).total
    late = [s for b in logged.blocks() for k, s in zip(b.arms, b.steps, strict=True) if k == 0]
    assert sum(step >= since for step in late) < fewest
    rs.write_fit(fitted, tmp_path, num_pulls=3)
    loaded = rs.load_prior(tmp_path / "prior.json")
    assert loaded.evidence(0).total == sum(step >= since for step in late)
    assert loaded.start == fitted.start
    prior = fitted.kind_priors[0].given(loaded.evidence(0))
    if isinstance(prior, rs.DirichletArmPrior):
        np.testing.assert_array_equal(fitted.prior.arms[0].posterior_alphas, prior.posterior_alphas)
    else:
        np.testing.assert_allclose(fitted.prior.arms[0].weights, prior.weights, atol=1e-9)
    assert any("holds what was seen of each arm in the last" in note for note in fitted.notes)


# ---------------------------------------------------------------- replay


def test_replay_says_the_same_and_plays_learners_that_forget():
    rng = np.random.default_rng(4)
    p01, p11 = rng.beta(2, 3, 6), rng.beta(4, 2, 6)
    from log_cases import simulated_states

    states = simulated_states(p01, p11, 200, rng, "switch")
    step, arm = np.indices(states.shape)
    logged = log_of(arm.ravel(), step.ravel(), states.ravel())
    played = rs.replay_log(
        logged, 2, ["tsde(forget_after=50, draws=4):myopic", "whittle"], anyway=True
    )
    assert played.forgetting.verdict == "changes"
    assert sentence_of_fit(played.whole).startswith("The arms change: a memory of about ")
    names = [one.policy for one in played.policies]
    assert names == ["tsde(forget_after=50, draws=4):myopic", "whittle", "best fixed in hindsight"]
    assert all(0 < one.per_step < 2 for one in played.policies)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("tsde(forget_after=0.5)", "forget_after"), ("tsde(forget=5)", "unknown option 'forget'"),
        ("tsde(forget_after=5", "tsde\\(forget_after=300\\), got"),
        ("whittle(forget_after=5)", "unknown policy"), ("tsde(5)", "a name with options"),
        ("ucb1(forget_after=5)", "nothing to forget"),
    ],
)  # fmt: skip
def test_wrong_learners_get_a_sentence(name, said):
    with pytest.raises(rs.RestiveError, match=said):
        rs.replay_log(simulated_log(1, 4, 60), 1, [name])
