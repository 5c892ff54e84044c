"""Fitting logs: posteriors, coverage, the empirical prior, and what is written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from log_cases import log_of, simulated_log, simulated_states
from restive.cli import app
from restive.logs.counts import count_log
from restive.logs.finite import SharedCandidates
from restive.logs.fitted import fit_arms


def grid(levels: int = 9) -> rs.ArmPrior:
    return rs.grid_prior(np.linspace(0.1, 0.9, levels), 1).arms[0]


def even_grid(levels: int = 24) -> rs.ArmPrior:
    """The uniform law of p01 and p11: levels at equal steps of the standard error."""
    edges = np.sin(np.pi / 2 * np.arange(levels + 1) / levels) ** 2
    good = np.sin(np.pi / 2 * (np.arange(levels) + 0.5) / levels) ** 2
    arms = [rs.gilbert_elliott(a, b, [0, 1]) for a in good for b in good]
    return rs.ArmPrior(arms, np.outer(np.diff(edges), np.diff(edges)).ravel())


def weights_of(agent: rs.TSDE, k: int) -> np.ndarray:
    found = agent.posterior(k)
    return np.asarray(getattr(found, "weights", found))


def test_the_posterior_is_that_of_an_agent_which_lived_through_the_log():
    """What it saw, written down as a log, gives its posterior to 1e-9."""
    prior = rs.grid_prior(np.linspace(0.1, 0.9, 9), 5)
    chances = [(0.2, 0.7), (0.5, 0.4), (0.1, 0.9), (0.6, 0.6), (0.3, 0.3)]
    truth = rs.RestlessBandit([rs.gilbert_elliott(a, b) for a, b in chances], 2)
    agent = rs.TSDE(prior, 2, "whittle", 400, seed=3)
    world = rs.World(truth, seed=5)
    rows = [(k, 0, 1) for k in range(5)]  # every arm was seen good one step before
    for step in range(1, 401):
        arms = agent.select()
        states, _, _ = world.pull(arms)
        agent.observe(states)
        rows += [(int(k), step, int(s)) for k, s in zip(arms, states, strict=True)]
    log = log_of(*np.array(rows).T)
    fitted = rs.fit_log(log, prior=prior, checks=False)
    agent.select()  # takes in what was observed last
    for k in range(5):
        ours = fitted.prior.arms[k].weights
        assert np.abs(ours - weights_of(agent, k)).max() < 1e-9
        assert np.abs(ours - prior.arms[k].given(fitted.evidence(k)).weights).max() < 1e-12
    assert fitted.start == agent.belief_state


def naive_quantile(values, weights, share):
    """The quantile of a law that is even on the stretch around each distinct value."""
    distinct = np.unique(values.round(12))
    masses = [weights[values.round(12) == value].sum() for value in distinct]
    middle = list((distinct[1:] + distinct[:-1]) / 2)
    edges = [2 * distinct[0] - middle[0], *middle, 2 * distinct[-1] - middle[-1]]
    return np.interp(share, np.cumsum([0, *masses]), np.clip(edges, 0, 1))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("controlled", [False, True])
def test_the_table_of_arms_is_that_of_the_posterior_weights(size, controlled):
    """Means and 90% intervals against sums over candidates, in Python."""
    rng = np.random.default_rng(size)
    laws = np.linspace(0.05, 1, 40 * 2 * size * size).reshape(40, 2, size, size)
    laws = rng.permutation(laws.ravel()).reshape(laws.shape)
    laws /= laws.sum(axis=3, keepdims=True)
    rewards = np.linspace(0, 1, size)
    prior = rs.ArmPrior([rs.Arm(a, p if controlled else None, rewards) for a, p in laws])
    seen = np.argwhere(rng.random((50, 5)) < 0.6)
    log = log_of(seen[:, 1], seen[:, 0], rng.integers(0, size, len(seen)), num_states=size)
    fitted = rs.fit_log(log, prior=prior, controlled=controlled, checks=False)
    for k, own in enumerate(fitted.prior.arms):
        means = np.einsum("m,maij->aij", own.weights, laws)
        assert np.abs(fitted.arms.active[k] - means[0]).max() < 1e-12
        assert np.abs(fitted.arms.passive[k] - means[int(controlled)]).max() < 1e-12
        for s, t in np.ndindex(size, size):
            values = laws[:, 0, s, t]
            for share, end in ((0.05, fitted.arms.low), (0.95, fitted.arms.high)):
                assert abs(end[k, s, t] - naive_quantile(values, own.weights, share)) < 1e-9


def test_an_agent_takes_over_where_the_log_ends():
    log = simulated_log(1, num_arms=6, steps=60)
    fitted = rs.fit_log(log, prior=grid(), checks=False)
    agent = rs.TSDE(fitted.prior, 2, "myopic", start=fitted.start)
    assert len(agent.select()) == 2
    last = {
        k: (int(b.steps[-1]), int(b.states[-1])) for k in range(6) for b in [log.block(k, k + 1)]
    }
    for k, (step, state) in last.items():
        assert fitted.start.last_state[k] == state
        assert fitted.start.elapsed[k] == log.num_steps - step


def test_intervals_cover_what_they_should():
    """90% intervals over 500 gapped logs with truths from the prior: 90 +- 3% of 10,000 intervals.

    The intervals of a log are nearly independent, so that the share has a standard error of about
    0.3%; 3% are ten of them.
    """
    prior = even_grid()
    active = np.array([arm.active for arm in prior.candidates])
    rng = np.random.default_rng(7)
    covered = []
    for _ in range(500):
        chosen = rng.choice(len(active), 10, p=prior.weights)
        p01, p11 = active[chosen, 0, 1], active[chosen, 1, 1]
        # what is uniform on the grid's cells is drawn within them
        states = simulated_states(p01, p11, 80, rng)
        step, arm = np.nonzero(rng.random(states.shape) < 0.4)
        log = log_of(np.append(arm, np.arange(10)), np.append(step, np.full(10, 80)),
                        np.append(states[step, arm], states[-1]))  # fmt: skip
        found = fit_arms(log, prior).arms
        for entry, truth in (((0, 1), p01), ((1, 1), p11)):
            at = (slice(None), *entry)
            covered.append((found.low[at] <= truth) & (truth <= found.high[at]))
    assert abs(np.mean(covered) - 0.9) < 0.03


def test_intervals_of_a_continuous_prior_cover_what_they_should():
    """The same with truths from Beta laws and particles for posteriors, 500 logs of four arms.

    Here 3% are six standard errors of the share of 4,000 intervals: a false alarm in 10^9.
    """
    prior = rs.beta_prior(1, p01=(2, 3), p11=(3, 2)).arms[0]
    rng = np.random.default_rng(17)
    covered = []
    for _ in range(500):
        p01, p11 = rng.beta(2, 3, 4), rng.beta(3, 2, 4)
        states = simulated_states(p01, p11, 80, rng)
        step, arm = np.nonzero(rng.random(states.shape) < 0.4)
        log = log_of(arm, step, states[step, arm])
        found = fit_arms(log, prior).arms
        for entry, truth in (((0, 1), p01), ((1, 1), p11)):
            at = (slice(None), *entry)
            covered.append((found.low[at] <= truth) & (truth <= found.high[at]))
    assert abs(np.mean(covered) - 0.9) < 0.03


@pytest.mark.parametrize("alike", [False, True])
def test_intervals_of_the_estimated_prior_cover_at_least_as_often(alike):
    """The empirical prior looks at the same data; its intervals must not be too narrow for that."""
    rng = np.random.default_rng(8)
    covered, widths, plain = [], [], []
    for _ in range(40):
        p01, p11 = (np.full(30, 0.3), np.full(30, 0.7)) if alike else rng.beta(3, 3, (2, 30))
        states = simulated_states(p01, p11, 100, rng)
        step, arm = np.nonzero(rng.random(states.shape) < 0.4)
        log = log_of(arm, step, states[step, arm])
        found, uniform = fit_arms(log).arms, fit_arms(log, even_grid()).arms
        covered.append((found.low[:, 1, 1] <= p11) & (p11 <= found.high[:, 1, 1]))
        widths.append(found.high[:, 1, 1] - found.low[:, 1, 1])
        plain.append(uniform.high[:, 1, 1] - uniform.low[:, 1, 1])
    assert np.mean(covered) > 0.87
    assert np.mean(widths) < np.mean(plain)  # arms of a kind lend each other strength


def test_the_estimated_prior_finds_the_law_of_many_arms():
    """1,000 arms seen 60 times: the law's means, and its spread within a quarter."""
    rng = np.random.default_rng(9)
    p01, p11 = rng.beta(3, 6, 1000), rng.beta(8, 2, 1000)
    states = simulated_states(p01, p11, 60, rng)
    step, arm = np.indices(states.shape)
    log = log_of(arm.ravel(), step.ravel(), states.ravel())
    population = fit_arms(log).population
    weights = population.law.weights(population.traits)[0]
    chances = population.law.shared.matrices[1][:, :, 1]
    means = weights @ chances
    assert means == pytest.approx([3 / 9, 8 / 10], abs=0.02)
    spread = np.sqrt(weights @ (chances - means) ** 2)
    assert spread == pytest.approx([np.sqrt(2 / 9 / 10), np.sqrt(0.16 / 11)], rel=0.25)


def test_posteriors_at_huge_and_many_ages():
    """Ages of a million steps and thousands of different ones, against the slow way."""
    rng = np.random.default_rng(2)
    steps = np.cumsum(np.concatenate([rng.integers(1, 5000, 300), [10**6, 10**9, 3]]))
    log = log_of(np.zeros(303, int), steps, rng.integers(0, 2, 303))
    prior = grid(5)
    shared = SharedCandidates(prior, log.arms)
    fast = shared.weights(count_log(log), np.array([0]))[0]
    slow = prior.given(count_log(log).evidence(0)).weights
    assert fast == pytest.approx(slow, abs=1e-9)


def test_kinds_have_priors_of_their_own():
    rng = np.random.default_rng(3)
    p01, p11 = np.repeat([[0.1, 0.6], [0.9, 0.6]], 15, axis=1)
    states = simulated_states(p01, p11, 100, rng)
    step, arm = np.indices(states.shape)
    kinds = ["sticky"] * 15 + ["coin"] * 15
    log = log_of(arm.ravel(), step.ravel(), states.ravel(), kinds=kinds)
    fitted = rs.fit_log(log, checks=False)
    means = [
        float((prior.weights * [arm.active[0, 1] for arm in prior.candidates]).sum())
        for prior in fitted.kind_priors
    ]
    assert means == pytest.approx([0.1, 0.6], abs=0.08)
    assert set(fitted.arms.kinds) == {"sticky", "coin"}


def test_three_states():
    rng = np.random.default_rng(4)
    truth = np.array([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
    states = [0]
    for _ in range(1500):
        states.append(rng.choice(3, p=truth[states[-1]]))
    log = log_of(np.zeros(1501, int), np.arange(1501), states)
    fitted = rs.fit_log(log, checks=False)
    assert np.abs(fitted.arms.active[0] - truth).max() < 0.05
    assert any("rewards were not given" in note for note in fitted.notes)


def test_controlled_arms_are_fitted_from_pulled_sightings_only():
    """Pulling makes good states likelier; unpulled rows are dropped, and both chains are found."""
    rng = np.random.default_rng(5)
    rows, num_arms = [], 150
    state = np.zeros(num_arms, int)
    for step in range(120):
        pulled = rng.random(num_arms) < 0.5
        rows += [(k, step, state[k], pulled[k]) for k in range(num_arms)]
        chance = np.where(pulled, np.where(state, 0.9, 0.6), np.where(state, 0.5, 0.1))
        state = (rng.random(num_arms) < chance).astype(int)
    arm, step, states, pulled = np.array(rows).T
    log = log_of(arm, step, states, pulled=pulled.astype(bool))
    with pytest.raises(rs.errors.AssumptionError, match="do not move alike"):
        rs.fit_log(log)
    found = rs.fit_log(log, controlled=True, checks=False).arms
    assert found.active.mean(axis=0)[:, 1] == pytest.approx([0.6, 0.9], abs=0.08)
    assert found.passive.mean(axis=0)[:, 1] == pytest.approx([0.1, 0.5], abs=0.08)


def test_unpulled_sightings_count_where_pulling_changes_nothing():
    log = simulated_log(6, num_arms=20, steps=150, share=1.1)
    block = next(log.blocks())
    flags = np.random.default_rng(0).random(len(block.steps)) < 0.5
    both = log_of(block.arms, block.steps, block.states, pulled=flags)
    fitted = rs.fit_log(both)
    assert fitted.check("pulls").verdict == "holds"
    assert np.array_equal(fitted.arms.active, rs.fit_log(log, checks=False).arms.active)


# --- what is written ---------------------------------------------------------------------------


def test_arms_may_pay_while_they_are_not_pulled(tmp_path):
    """Passive rewards reach the problem, the prior and both files; they change no posterior."""
    log = simulated_log(4, num_arms=3, steps=60)
    three = log_of(*(getattr(next(log.blocks()), name) for name in ("arms", "steps", "states")),
                      num_states=3)  # fmt: skip
    for seen, controlled in ((log, False), (log, True), (three, False)):
        unpulled = [0.0, 0.5, 0.75][: seen.num_states]
        plain = rs.fit_log(seen, controlled=controlled, checks=False)
        found = rs.fit_log(seen, controlled=controlled, checks=False, passive_rewards=unpulled)
        assert np.array_equal(found.arms.active, plain.arms.active)
        assert not any(arm.pays_unpulled for arm in plain.problem(1).arms)
        problem, prior, *_ = rs.write_fit(found, tmp_path, 1)
        read = rs.load_prior(prior)
        assert rs.load_problem(problem) == found.problem(1)
        for k in range(3):
            assert found.problem(1).arms[k].passive_rewards.tolist() == unpulled
            for one in (found.prior.arms[k], read.prior.arms[k]):
                like = one.candidates[0] if isinstance(one, rs.ArmPrior) else one
                assert like.passive_rewards.tolist() == unpulled


def test_a_prior_of_arms_that_pay_while_not_pulled_says_so_itself():
    log = simulated_log(4, num_arms=3, steps=60)
    prior = rs.grid_prior([0.2, 0.8], 1, passive_rewards=[0, 0.5])
    found = rs.fit_log(log, prior=prior, checks=False)
    assert found.passive_rewards.tolist() == [0, 0.5]
    assert found.problem(1).arms[2].passive_rewards.tolist() == [0, 0.5]
    for other in ([0, 1], [0, 0]):
        with pytest.raises(
            rs.errors.ProblemError, match=r"pay \[0.0, 0.5\] while not pulled, expected"
        ):
            rs.fit_log(log, prior=prior, passive_rewards=other, checks=False)
    with pytest.raises(
        rs.errors.ProblemError, match="passive_rewards must hold one number per state"
    ):
        rs.fit_log(log, passive_rewards=[1], checks=False)


def test_notes_say_where_the_question_may_be_another():
    log = simulated_log(4, num_arms=3, steps=60)
    said = {
        (controlled, pays): " ".join(
            rs.fit_log(
                log, controlled=controlled, checks=False, passive_rewards=[0, 1] if pays else None
            ).notes
        )
        for controlled in (False, True)
        for pays in (False, True)
    }
    assert "only pulled arms pay" in said[True, False]
    assert "all policies earn the same" in said[False, True]
    for asked in ((True, True), (False, False)):
        assert "pay" not in said[asked]


def test_states_that_nobody_was_in_are_named():
    for only in (0, 1):
        log = log_of([0, 0, 0], [0, 1, 2], [only] * 3)
        (note,) = rs.fit_log(log).notes
        assert f"was ever in state '{1 - only}'" in note
    assert rs.fit_log(log_of([0, 0, 0], [0, 1, 2], [0, 1, 1])).notes == ()


def test_the_pulls_of_a_written_fit_are_the_logs_own(tmp_path):
    steps = np.repeat(np.arange(40), 2)
    log = log_of((np.arange(80) * 7) % 5, steps, (np.arange(80) // 3) % 2)
    fitted = rs.fit_log(log, checks=False)
    assert rs.load_problem(rs.write_fit(fitted, tmp_path)[0]).num_pulls == log.usual_pulls == 2
    everyone = log_of([0, 1] * 20, np.arange(40) // 2, [0, 1, 1, 0] * 10)
    paths = rs.write_fit(rs.fit_log(everyone, checks=False), tmp_path)
    assert rs.load_problem(paths[0]).num_pulls == 1


@pytest.fixture(scope="module")
def fitted() -> rs.types.FittedLog:
    return rs.fit_log(simulated_log(11, num_arms=8, steps=120))


def test_what_is_written_reads_back(fitted, tmp_path):
    paths = rs.write_fit(fitted, tmp_path / "out", 3)
    assert [path.name for path in paths] == [
        "problem.toml",
        "prior.json",
        "arms.csv",
        "fit.html",
        "summary.html",
    ]
    problem = rs.load_problem(paths[0])
    assert problem == fitted.problem(3)
    found = rs.load_prior(paths[1])
    assert found.names == fitted.log.arms
    assert found.start == fitted.start
    for k in range(8):
        assert found.evidence(k) == fitted.evidence(k)
        assert found.prior.arms[k].weights == pytest.approx(fitted.prior.arms[k].weights, abs=1e-12)
    lines = paths[2].read_text().splitlines()
    assert lines[0].startswith(
        "arm,kind,sightings,last_state,elapsed,chance of 1 after 0,chance of 1 after 0 (low),"
        "chance of 1 after 0 (high),chance of 1 after 1,"
    )
    assert len(lines) == 9


def test_continuous_priors_are_written_too(tmp_path):
    rng = np.random.default_rng(18)
    states = rng.integers(0, 3, (60, 4))
    step, arm = np.indices(states.shape)
    log = log_of(arm.ravel(), step.ravel(), states.ravel())
    prior = rs.DirichletArmPrior(np.ones((3, 3)), rewards=[0, 0.5, 1])
    fitted = rs.fit_log(log, prior=prior, checks=False)
    found = rs.load_prior(rs.write_fit(fitted, tmp_path)[1])
    assert found.start == fitted.start
    for ours, theirs in zip(found.prior.arms, fitted.prior.arms, strict=True):
        assert np.array_equal(ours.active, theirs.active)
        assert ours.evidence == theirs.evidence
        assert np.array_equal(ours.particles().weights, theirs.particles().weights)


def test_the_page_says_what_was_found(fitted, tmp_path):
    page = rs.write_fit(fitted, tmp_path)[3].read_text()
    for check in fitted.checks:
        assert check.name in page
        assert check.verdict in page
    assert page.count("<figure") == 3
    assert 'src="http' not in page
    assert 'href="http' not in page
    assert "coin per arm" in page


def test_the_page_escapes_names(tmp_path):
    log = simulated_log(12, num_arms=3, steps=40)
    block = next(log.blocks())
    names = np.array(["<b>x</b>", "=cmd()", "$y$"])[block.arms]
    fitted = rs.fit_log(log_of(names, block.steps, block.states), checks=False)
    paths = rs.write_fit(fitted, tmp_path)
    assert "<b>x" not in paths[3].read_text()
    assert "'=cmd()" in paths[2].read_text()
    assert rs.load_prior(paths[1]).names == fitted.log.arms


def test_the_table_as_a_data_frame(fitted):
    frame = fitted.arms.to_pandas()
    assert list(frame.columns) == list(fitted.arms.columns)
    assert frame["p11"].tolist() == fitted.arms.active[:, 1, 1].tolist()
    assert (frame["p11_low"] <= frame["p11"]).all()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: "{", "is not JSON"),
        (lambda d: json.dumps({**d, "format": "other"}), "is not a prior that `restive fit` wrote"),
        (lambda d: json.dumps({k: v for k, v in d.items() if k != "kinds"}), "a field is missing"),
        (lambda d: json.dumps({**d, "arms": [{**d["arms"][0], "kind": 7}]}), "there is no kind 7"),
        (lambda d: json.dumps({**d, "arms": [{**d["arms"][0], "last_state": 7}]}), "no state 7"),
        (
            lambda d: json.dumps({**d, "arms": [{**d["arms"][0], "evidence": [[0, 0, 1, 1]]}]}),
            "elapsed must be from 1",
        ),
    ],
)
def test_a_damaged_prior_file_is_refused(fitted, tmp_path, change, sentence):
    path = rs.write_fit(fitted, tmp_path)[1]
    path.write_text(change(json.loads(path.read_text())))
    with pytest.raises(rs.errors.ProblemError, match=sentence):
        rs.load_prior(path)


def test_what_cannot_be_fitted_gets_a_sentence():
    once = log_of([0, 1], [1, 2], [0, 1])
    with pytest.raises(rs.errors.ProblemError, match="no arm was seen twice"):
        rs.fit_log(once)
    log = simulated_log(1, num_arms=3, steps=30)
    with pytest.raises(rs.errors.ProblemError, match="fit_log needs a log"):
        rs.fit_log("log.csv")
    with pytest.raises(rs.errors.ProblemError, match="rewards must hold one number per state"):
        rs.fit_log(log, rewards=[0, 1, 2])
    with pytest.raises(rs.errors.ProblemError, match="prior has no kind 'all'"):
        rs.fit_log(log, prior={"north": grid()})
    with pytest.raises(rs.errors.ProblemError, match="must be an ArmPrior or a DirichletArmPrior"):
        rs.fit_log(log, prior=3)
    with pytest.raises(rs.errors.ProblemError, match="pass the same rewards"):
        rs.fit_log(log, prior=grid(), rewards=[0, 0.5])
    impossible = rs.ArmPrior([rs.gilbert_elliott(0.0, 1.0)])
    with pytest.raises(rs.errors.ProblemError, match="probability zero under every candidate"):
        rs.fit_log(log, prior=impossible)
    with pytest.raises(rs.errors.ProblemError, match="no check 'none'; there are"):
        rs.fit_log(log, checks=False).check("none")


def test_a_prior_that_a_fit_cannot_follow_is_refused():
    log = log_of(np.tile([0, 1], 9), np.repeat(np.arange(9), 2), np.tile([0, 1, 1], 6))
    grid, other = (rs.grid_prior(levels, 2) for levels in ([0.2, 0.8], [0.3, 0.6]))
    pooled = rs.IndependentPrior(grid.arms, pooled=[[0, 1]])
    with pytest.raises(rs.RestiveError, match="learns of each arm by itself: leave pooled out"):
        rs.fit_log(log, prior=pooled, checks=False)
    unlike = rs.IndependentPrior([grid.arms[0], other.arms[0]])
    with pytest.raises(rs.RestiveError, match="this one differs between arms"):
        rs.fit_log(log, prior=unlike, checks=False)


def log_of_two_kinds():
    log = simulated_log(3, num_arms=6, steps=60)
    block = next(log.blocks())
    return log_of(block.arms, block.steps, block.states, kinds=["a"] * 4 + ["b"] * 2)


def test_a_kind_that_a_prior_does_not_have_is_estimated_and_said():
    log = log_of_two_kinds()
    fitted = rs.fit_log(log, prior={"b": grid()}, checks=False)
    alone = rs.fit_log(log, checks=False)
    place = log.kinds.index("a")
    assert fitted.kind_priors[1 - place].weights.tolist() == grid().weights.tolist()
    assert fitted.kind_priors[place].weights.tolist() == alone.kind_priors[place].weights.tolist()
    assert "prior has no kind 'a': what its arms may be is estimated from the log" in fitted.notes


def test_an_arm_of_another_kind_may_be_like_any_arm_of_a_prior_file(tmp_path):
    paths = rs.write_fit(rs.fit_log(log_of_two_kinds(), checks=False), tmp_path)
    found = rs.load_prior(paths[1])
    law = found.any_kind()
    mixed = (4 * found.kinds["a"].weights + 2 * found.kinds["b"].weights) / 6
    np.testing.assert_allclose(law.weights, mixed / mixed.sum(), rtol=1e-12)
    people = tmp_path / "people.csv"
    people.write_text("arm,kind\nx,a\ny,town\n")
    words = ["live", "init", str(tmp_path / "agent.db"), "--prior", str(paths[1]), "--pulls", "1",
             "--clock", "calls", "--arms", str(people)]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "has no kind 'town': such arms begin as any arm of it" in done.output
    people.write_text("arm,kind\nx,town\n")  # no kind is known: a slip, or another column
    words[2] = str(tmp_path / "other.db")
    refused = CliRunner().invoke(app, words)
    assert refused.exit_code != 0
    assert not (tmp_path / "other.db").exists()
