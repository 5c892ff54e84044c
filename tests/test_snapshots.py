"""Stop and go on: a restored agent takes exactly the decisions of the one that was stopped."""

import copy
import json

import numpy as np
import pytest

import restive as rs
from continuous_cases import beta_channels
from learning_cases import CASES, channels, joint, own_rule, small_independent, small_joint
from restive.errors import ProblemError
from restive.learn.evidence import Evidence
from restive.learn.learners import LEARNERS as ALL_LEARNERS
from restive.learn.make import with_more_arms
from restive.learn.snapshots import checksum
from snapshot_attack import attack
from test_fuzz import LIVES

LEARNERS = {n: m for n, m in ALL_LEARNERS.items() if getattr(m, "sees", "pulled") == "pulled"}

COMPILED = [name for name, made in LEARNERS.items() if not hasattr(made, "rules")]
FIXED = ["regenerative_cycle"]  # which pull what they chose
OPTIONS = {
    "epsilon_greedy": {"epsilon": 0.3},
    "episodic_thompson": {"length": 7},
    "restless_ucb": {"exploration": 3, "max_age": 9},
}
SEEN = np.random.default_rng(99).random((2000, 16))  # what is seen of arm k at time t, as a share


def step(agent):
    """Take one step, or the rest of one; return the arms."""
    arms = agent.select()
    sizes = [agent.prior.candidates(k)[0].num_states for k in arms]
    agent.observe([int(SEEN[agent.time, k] * size) for k, size in zip(arms, sizes, strict=True)])
    return arms.tolist()


def through_json(agent, mapping=None):
    """Stop an agent and let another one go on, by way of text."""
    data = agent.snapshot()
    read = json.loads(json.dumps(data, allow_nan=False))
    assert read == data
    return rs.restore(read, mapping)


def everything(agent):
    """Return all that an agent knows, with nothing left to be multiplied later."""
    posteriors = [agent.posterior(k).weights.tolist() for k in range(agent.prior.num_arms)]
    return posteriors, agent.snapshot()


def assert_same_future(agent, other, steps):
    for _ in range(steps):
        assert step(agent) == step(other)
        assert agent.episode == other.episode
    assert everything(agent) == everything(other)


@pytest.mark.parametrize("horizon", [60, None])
@pytest.mark.parametrize(
    ("case", "mapping"),
    [*((case, "whittle") for case in CASES), ("three_states", own_rule), ("joint", own_rule)],
)
def test_a_chain_of_agents_each_restored_from_the_last_is_one_agent(case, mapping, horizon):
    """Stop at every step, in turn after `observe` and after `select`.

    That all learners may stop at both moments of a step is tested among the learners.
    """
    prior, num_pulls = CASES[case]()
    agent = rs.TSDE(prior, num_pulls, mapping, horizon, seed=3)
    chain = rs.TSDE(prior, num_pulls, mapping, horizon, seed=3)
    passed = None if mapping == "whittle" else mapping
    moments = set()
    for t in range(1, 71):
        if t % 2 == 0:
            before = chain.episode.number, chain.episode.epoch
            chain = through_json(chain, passed)
            chain.select()
            begun = chain.episode.number != before[0], chain.episode.epoch != before[1]
            moments.add(begun)
            if t % 5 == 0:
                chain.posterior(0)
        else:
            chain.select()
            chain = through_json(chain, passed)
        assert step(chain) == step(agent)
        assert chain.episode == agent.episode
    assert moments == {(False, False), (True, False)} | (set() if horizon else {(True, True)})
    assert everything(chain) == everything(agent)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize("stop", [0, 1, 3, 7, 63, 64, 200])
@pytest.mark.parametrize("case", [channels, joint])
def test_a_restored_agent_goes_on_for_hundreds_of_steps(case, stop, selected, asked):
    agent = rs.TSDE(*case(), "myopic", seed=2**64 - 1)
    for _ in range(stop):
        step(agent)
    if selected:
        agent.select()
    if asked:
        agent.posterior(1)
    assert_same_future(agent, through_json(agent), 400)


@pytest.mark.parametrize("mapping", ["lp_priority", "optimal"])
@pytest.mark.parametrize("case", [small_independent, small_joint])
def test_other_mappings_are_restored_too(case, mapping):
    agent = rs.TSDE(*case(), mapping, horizon=50, seed=1)
    assert_same_future(agent, through_json(agent), 20)
    agent.select()
    assert_same_future(agent, through_json(agent), 50)


def test_a_narrowed_selection_is_kept():
    agent = rs.TSDE(*channels(), "whittle", seed=1)
    step(agent)
    chosen = agent.select(num_pulls=1, available=[False, False, True, True])
    other = through_json(agent)
    assert other.select().tolist() == chosen.tolist()
    assert_same_future(agent, other, 100)


def test_start_mixing_time_and_length_are_kept():
    start = rs.BeliefState([0, 1, 0, 1], [3, 1, 50, 2])
    agent = rs.TSDE(*channels(), own_rule, mixing_time=2, start=start, seed=4, max_elapsed=17)
    assert_same_future(agent, through_json(agent, own_rule), 100)
    assert agent.snapshot()["max_elapsed"] == 17
    for _ in range(30):
        step(agent)
    assert_same_future(agent, through_json(agent, own_rule), 100)


def test_numbers_of_numpy_become_plain():
    prior, num_pulls = channels()
    agent = rs.TSDE(
        prior, np.int64(num_pulls), "myopic", horizon=np.int64(90), mixing_time=np.int32(4),
        seed=np.uint64(5), max_elapsed=np.int64(30),
    )  # fmt: skip
    assert_same_future(agent, through_json(agent), 20)


def test_held_and_ruled_out_candidates_are_kept():
    arms = [rs.gilbert_elliott(0.1, 0.9), rs.gilbert_elliott(0.9, 0.1), rs.gilbert_elliott(1, 0.9)]
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior(arms)]), 1)
    for state in [0, 0] + [1] * 700:
        agent.select()
        agent.observe([state])
    assert agent.posterior(0).weights.tolist() == [1, 0, 0]
    other = through_json(agent)
    twins = agent, other
    for t in range(701):  # as far as the hopeless one is behind, neither more nor less
        for twin in twins:
            twin.select()
            twin.observe([t % 2])
        assert everything(agent) == everything(other)
    # a step is 9 times likelier under one of the two: 700 were under the first, 703 under the other
    np.testing.assert_allclose(
        agent.posterior(0).weights, [1 / 730, 729 / 730, 0], rtol=1e-9, atol=0
    )
    assert_same_future(agent, other, 300)


def test_the_prior_comes_back_to_the_bit():
    for case in CASES.values():
        prior, num_pulls = case()
        back = through_json(rs.TSDE(prior, num_pulls)).prior
        assert type(back) is type(prior)
        if isinstance(prior, rs.JointPrior):
            assert back.weights.tobytes() == prior.weights.tobytes()
            assert back.bandits == prior.bandits
            continue
        for k, arm in enumerate(prior.arms):
            assert back.arms[k].weights.tobytes() == arm.weights.tobytes()
            assert back.arms[k].candidates == arm.candidates
            same = [other is arm for other in prior.arms]
            assert [other is back.arms[k] for other in back.arms] == same  # shared as before


def test_names_of_arms_are_kept():
    arm = rs.gilbert_elliott(0.3, 0.7, name="north")
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior([arm])]), 1)
    assert through_json(agent).prior.arms[0].candidates[0].name == "north"


def test_a_shared_prior_is_written_once():
    few, many = (rs.TSDE(rs.grid_prior([0.2, 0.8], k), 1).snapshot() for k in (2, 200))
    assert len(many["prior"]["arm_priors"]) == len(few["prior"]["arm_priors"]) == 1


def test_a_snapshot_is_a_copy():
    agent = rs.TSDE(*channels())
    before = agent.snapshot()
    kept = json.dumps(before)
    step(agent)
    assert json.dumps(before) == kept
    restored = rs.restore(before)
    step(restored)
    assert json.dumps(before) == kept


def test_the_snapshot_of_a_replications_agent_has_its_luck():
    from learning_cases import posed

    setup = posed(*channels(), "whittle")
    agent = rs.types.Agent(*setup, seed=5, replication=7)
    for _ in range(10):
        step(agent)
    assert_same_future(agent, through_json(agent), 200)


def test_a_rule_of_the_users_has_to_be_passed():
    agent = rs.TSDE(*channels(), own_rule)
    with pytest.raises(rs.errors.ProblemError, match="was the function 'own_rule': pass it as"):
        through_json(agent)


def test_what_is_no_snapshot_is_refused():
    whole = rs.TSDE(*channels()).snapshot()
    for data in (None, [], "text", {}, {"prior": 1}):
        with pytest.raises(rs.errors.ProblemError, match="not a snapshot"):
            rs.restore(data)
    with pytest.raises(rs.errors.ProblemError, match="format 'restive-tsde-0', this version reads"):
        rs.restore(whole | {"format": "restive-tsde-0"})
    for field in whole.keys() - {"format"}:
        cut = {name: value for name, value in whole.items() if name != field}
        with pytest.raises(rs.errors.ProblemError, match="checksum does not match"):
            rs.restore(cut)
        if field not in ("checksum", "version"):
            with pytest.raises(rs.errors.ProblemError, match="snapshot"):
                rs.restore(signed(cut))
    deep = []
    for _ in range(3000):
        deep = [deep]
    for field in ("format", "seen", "prior", "learner"):
        with pytest.raises(rs.errors.ProblemError, match="snapshot"):
            rs.restore(whole | {field: deep})
    with pytest.raises(rs.errors.ProblemError, match=r"made by version 9\.9\.9, which uses random"):
        rs.restore(signed(whole | {"version": "9.9.9", "numbers": 99}))


def signed(data):
    """Return a snapshot that was edited by somebody who knows how its checksum is made."""
    data = {name: value for name, value in data.items() if name != "checksum"}
    return data | {"checksum": checksum(data)}


@pytest.mark.parametrize(
    "broken",
    [
        {"arm_priors": [], "arms": [[4, 0]]},
        {"arm_priors": [{"candidates": []}], "arms": [[4, 0]]},
        {"arms": [[4, 0]]},
        {"arm_priors": [{"candidates": [], "weights": []}], "arms": [[4, 0]]},
        {"arm_priors": [], "arms": [[10**8, 0]]},
        {"joint": [[{"active": 1}]], "weights": [1], "num_pulls": 1},
        {"joint": [], "weights": [], "num_pulls": 1},
        [],
    ],
)
def test_a_broken_prior_is_a_clear_error(broken):
    whole = rs.TSDE(*channels()).snapshot()
    with pytest.raises(rs.errors.ProblemError, match="checksum does not match"):
        rs.restore(whole | {"prior": broken})
    with pytest.raises(rs.errors.ProblemError, match=r"prior|candidate|bandit|matrix"):
        rs.restore(signed(whole | {"prior": broken}))


def places(data):
    """Yield every (table or list, key) in plain data."""
    if isinstance(data, dict | list):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from places(data[key])


@pytest.mark.parametrize("name", ["tsde", "thompson_every_step", *COMPILED])
def test_a_snapshot_that_was_cut_inside_is_a_clear_error(name):
    """At every place; with a checksum that fits, an error or an agent that works."""
    agent = rs.make_learner(name, *channels(), "myopic", 60, seed=1, **OPTIONS.get(name, {}))
    for _ in range(7):
        step(agent)
    whole = agent.snapshot()
    rest = {name: whole.pop(name) for name in ("prior", "checksum")}  # the prior has its own test
    refused = 0
    for number in range(len(list(places(whole)))):
        cut = copy.deepcopy(whole)
        holder, key = list(places(cut))[number]
        if isinstance(holder, list) and number % 2:
            holder.append(holder[key])
        else:
            del holder[key]
        cut |= rest
        with pytest.raises(rs.errors.ProblemError, match=r"checksum does not match|not a snapshot"):
            rs.restore(cut)
        try:
            other = rs.restore(signed(cut))
        except rs.RestiveError:
            refused += 1
        else:
            step(other)
            other.snapshot()
    assert refused > number / 2


def moments(agent, steps):
    """Yield an agent at every moment of its steps: before and after `select`, and in between."""
    for t in range(steps):
        yield "before", agent
        agent.select()
        yield "selected", agent
        if t % 4 == 3 and agent.learner.name not in FIXED:
            arms = agent.select()
            agent.observe([0], arms=arms[:1], missing="not pulled")
            yield "seen in part", agent
            agent.skip(2)
            yield "skipped", agent
        else:
            step(agent)


@pytest.mark.parametrize("case", [channels, joint])
@pytest.mark.parametrize(
    ("name", "horizon"),
    [(name, steps) for name in LEARNERS for steps in (60, None) if steps or name != "restless_ucb"],
)
def test_every_learner_at_every_moment(name, case, horizon):
    """What is restored knows the same, to the byte, and does the same for some steps."""
    agent = rs.make_learner(name, *case(), "myopic", horizon, seed=6, **OPTIONS.get(name, {}))
    found, phases = set(), set()
    steps = 45 if name == "restless_ucb" else 24  # it explores for longer than the others
    for number, (moment, now) in enumerate(moments(agent, steps)):
        before = now.snapshot()
        other = rs.restore(json.loads(json.dumps(before, allow_nan=False)))
        assert other.snapshot() == before, moment
        assert repr(other) == repr(now)
        found.add(moment)
        phases.add(now.num_phases)
        if number % 6 == 0:
            twin = through_json(now)
            for _ in range(6):
                assert step(twin) == step(other)
    assert found == {"before", "selected"} | (
        set() if name in FIXED else {"seen in part", "skipped"}
    )
    assert len(phases) > 1 or name in ("ucb1",)


@pytest.mark.parametrize("name", ["tsde", "thompson_every_step", "ucb1", "beta_bernoulli"])
def test_the_size_is_in_proportion_to_the_arms_that_were_seen(name):
    """100,000 arms, of which 5 a step are seen; before that all of them are one line."""
    prior = rs.grid_prior([0.2, 0.5, 0.8], 100_000)
    agent = rs.make_learner(name, prior, 5, "myopic", 100, seed=1)
    empty = len(json.dumps(agent.snapshot()))
    assert empty < 5_000
    sizes = []
    for _ in range(3):
        for _ in range(4):
            arms = agent.select()
            agent.observe([0] * len(arms))
        seen = int((agent.belief_state.elapsed < agent.time).sum())
        sizes.append((len(json.dumps(agent.snapshot())) - empty) / seen)
    assert max(sizes) < 1_000  # bytes an arm: 9 weights, counters, evidence
    other = through_json(agent)
    for _ in range(3):
        arms = agent.select()
        assert other.select().tolist() == arms.tolist()
        agent.observe([1] * 5)
        other.observe([1] * 5)
    assert other.snapshot() == agent.snapshot()


# ---------------------------------------------------------------- fields that do not fit each other


def refused(data):
    """Whether a snapshot is refused, whose checksum was made anew."""
    data["checksum"] = checksum({key: data[key] for key in data if key != "checksum"})
    with pytest.raises(ProblemError, match="it was edited"):
        rs.restore(data)


FORGERIES = {
    "time passed in which nothing began": lambda data: data.update(time=2),
    "arms were selected in no step": lambda data: data.update(selected=[]),
    "the epoch is over": lambda data: data.update(time=16),
    "the epoch has not begun": lambda data: data["episodes"]["clock"].update(EPOCH=3),
    "a later episode": lambda data: data["episodes"]["clock"].update(STARTED=12),
    "an episode of another epoch": lambda data: data["episodes"]["clock"].update(STARTED=3),
    "one longer than time": lambda data: data["episodes"]["clock"].update(LAST_LENGTH=9),
    "nothing drawn": lambda data: data["episodes"]["clock"].update(DRAWS=0),
    "counters of arms never seen": lambda data: data.update(seen=[[], [], []], evidence={}),
    "evidence of arms never seen": lambda data: data.update(seen=[r[1:] for r in data["seen"]]),
    "nothing learnt of what was seen": lambda data: data["posterior"].update(
        groups=[], weights=[], lost=[]
    ),
}
PRIORS = {"finite": channels, "joint": joint, "continuous": beta_channels}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("forgery", list(FORGERIES)[:2])
def test_a_step_that_has_not_begun_cannot_have_happened(prior, forgery):
    """Agents went on with these, and wrote outside their arrays."""
    data = rs.TSDE(*PRIORS[prior](), seed=3).snapshot()
    FORGERIES[forgery](data)
    refused(data)


@pytest.mark.parametrize("forgery", list(FORGERIES)[2:])
def test_fields_must_fit_each_other(forgery):
    agent = rs.TSDE(*channels(), "myopic", seed=3)
    for _ in range(6):
        agent.select()
        agent.observe([0, 0])
    assert agent.time == 7
    agent.select()
    data = agent.snapshot()
    FORGERIES[forgery](data)
    refused(data)


def test_what_was_counted_must_be_possible_under_a_continuous_prior():
    """An agent went on with no particle that had any weight (input 1702 of a soak)."""
    agent = rs.TSDE(*beta_channels(), "myopic", seed=3)
    for _ in range(6):
        agent.observe([0] * len(agent.select()))
    data = agent.snapshot()
    assert rs.restore(data).snapshot() == data
    for prior in data["prior"]["arm_priors"]:
        prior["dirichlet"][0] = [0, 1.0]  # who is in state 0 leaves it
    refused(data)


def test_a_continuous_prior_may_know_more_than_the_agent_has_seen():
    """Snapshots of agents whose prior was given evidence were refused as edited."""
    known = Evidence(2)
    known.add([0, 1, 0], [1, 1, 1], [1, 0, 0])
    arm = rs.DirichletArmPrior([[1, 1], [1, 1]], rewards=[0, 1]).given(known)
    agent = rs.TSDE(rs.IndependentPrior([arm] * 3), 1, "myopic", seed=1)
    for _ in range(3):
        agent.observe([0] * len(agent.select()))
    data = agent.snapshot()
    assert rs.restore(data).snapshot() == data
    cells = data["clouds"]["0"]["counts"][1]
    data["clouds"]["0"]["counts"][1] = [number + 1 for number in cells]
    refused(data)
    data["clouds"]["0"]["counts"] = [[[]], [0.0] * 4]  # one empty row of ages (a soak found it)
    data["checksum"] = checksum({key: data[key] for key in data if key != "checksum"})
    with pytest.raises(ProblemError, match="cut short or edited"):
        rs.restore(data)


def test_laws_of_kinds_rule_no_candidate_out_and_priors_have_weights_to_divide_by():
    """What a law has changed by was infinite (input 3204 of a soak)."""
    agent = rs.make_learner("mean_index", *channels(), "whittle", seed=4, learn_kinds="epochs")
    for _ in range(9):
        agent.observe([0] * len(agent.select()))
    assert agent.kinds_learnt
    text = json.dumps(agent.snapshot())
    data = json.loads(text)
    for small in (0.0, 1e-320):
        law = data["kinds"]["laws"][0]
        law[:2] = [law[0] + law[1] - small, small]
        refused(data)
    data = json.loads(text)
    data["prior"]["arm_priors"][1]["weights"][1] = 1e-320
    data["checksum"] = checksum({key: data[key] for key in data if key != "checksum"})
    with pytest.raises(ProblemError, match="weights are at least 1e-150"):
        rs.restore(data)


@pytest.mark.parametrize("name", LIVES)
def test_forged_snapshots_are_refused_or_go_on(name):
    """`make soak` does this 20,000 times for each, with bounds checks."""
    number, taken = attack(name, 8)
    assert number > taken


@pytest.mark.parametrize("name", ["tsde", "mean_index", "certainty_equivalence", "epsilon_greedy"])
def test_an_agent_that_arms_have_joined_is_restored(name):
    prior, _ = small_independent()
    agent = rs.make_learner(name, prior, 1, seed=2, **OPTIONS.get(name, {}))
    for _ in range(5):
        step(agent)
    arms = list(prior.arms)
    for _ in range(3):
        arms.append(arms[0])
        agent = with_more_arms(agent, rs.IndependentPrior(arms), [0], [3])
        step(agent)
    assert_same_future(agent, through_json(agent), 20)
