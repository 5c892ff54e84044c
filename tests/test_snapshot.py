"""Stop and go on: a restored agent takes exactly the decisions of the one that was stopped."""

import json

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES, channels, joint, own_rule, small_independent, small_joint

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
    text = json.dumps(data, allow_nan=False)
    assert json.loads(text) == data
    return rs.restore(json.loads(text), mapping)


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
    """Stop at every step, in turn after `observe` and after `select`."""
    prior, num_pulls = CASES[case]()
    agent = rs.TSDE(prior, num_pulls, mapping, horizon, seed=3)
    chain = rs.TSDE(prior, num_pulls, mapping, horizon, seed=3)
    passed = None if mapping == "whittle" else mapping
    moments = set()
    for t in range(1, 71):
        if t % 3 != 1:
            before = chain.episode.number, chain.episode.epoch
            chain = through_json(chain, passed)
            chain.select()
            begun = chain.episode.number != before[0], chain.episode.epoch != before[1]
            moments.add(begun)
        if t % 5 == 0:
            chain.posterior(0)
        if t % 3 != 2:
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
    assert agent.posterior(0).weights[2] == 0
    assert 0 < agent.posterior(0).weights[1] < 1e-150
    assert_same_future(agent, through_json(agent), 300)


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
    agent = rs.Agent(*setup, seed=5, replication=7)
    for _ in range(10):
        step(agent)
    assert_same_future(agent, through_json(agent), 200)


def test_a_rule_of_the_users_has_to_be_passed():
    agent = rs.TSDE(*channels(), own_rule)
    with pytest.raises(rs.ProblemError, match="was the function 'own_rule': pass it as"):
        through_json(agent)


def test_what_is_no_snapshot_is_refused():
    whole = rs.TSDE(*channels()).snapshot()
    for data in (None, [], "text", {}, {"prior": 1}):
        with pytest.raises(rs.ProblemError, match="not a snapshot"):
            rs.restore(data)
    with pytest.raises(rs.ProblemError, match="format 'restive-tsde-0', this version reads"):
        rs.restore(whole | {"format": "restive-tsde-0"})
    for field in whole.keys() - {"format"}:
        cut = {name: value for name, value in whole.items() if name != field}
        with pytest.raises(rs.ProblemError, match=f"the snapshot lacks {field}: it was cut short"):
            rs.restore(cut)


@pytest.mark.parametrize(
    "broken",
    [
        {"arm_priors": [], "arms": [0]},
        {"arm_priors": [{"candidates": []}], "arms": [0]},
        {"arms": [0]},
        {"joint": [[{"active": 1}]], "weights": [1], "num_pulls": 1},
        {"joint": [], "weights": [], "num_pulls": 1},
        [],
    ],
)
def test_a_broken_prior_is_a_clear_error(broken):
    whole = rs.TSDE(*channels()).snapshot()
    with pytest.raises(rs.ProblemError):
        rs.restore(whole | {"prior": broken})


def test_a_snapshot_that_was_cut_inside_is_a_clear_error():
    agent = rs.TSDE(*channels())
    step(agent)
    whole = agent.snapshot()
    state = whole["state"]
    broken = [whole | {field: whole[field][:-1]} for field in ("weights", "pending", "visits")]
    for field, values in state.items():
        rest = {name: value for name, value in state.items() if name != field}
        lengths = (values[:-1], values[:1], [*values, 1])
        broken += [
            whole | {"state": changed}
            for changed in (rest, *(rest | {field: cut} for cut in lengths))
        ]
    for data in broken:
        with pytest.raises(rs.ProblemError):
            rs.restore(data)
