"""The online agent: asking, telling, refusing, narrowing, and looking inside."""

import numpy as np
import pytest

import restive as rs
from learning_cases import (
    CASES,
    channels,
    joint,
    naive_agent,
    naive_run,
    own_rule,
    small_independent,
    small_joint,
    three_states,
    true_bandit,
)
from restive.measure.world import World

REASONS = {
    "length": "it was longer than the one before",
    "doubling": "a counter more than doubled",
    "epoch": "an epoch began",
}


def settled(agent):
    """Return all that the agent knows, with nothing left to be multiplied later."""
    for k in range(agent.prior.num_arms):
        agent.posterior(k)
    return agent.snapshot()


def advance(agent, steps, seed=0):
    """Run an agent in a world whose arms are the first candidates."""
    prior = agent.prior
    arms = [prior.candidates(k)[0] for k in range(prior.num_arms)]
    world = World(rs.RestlessBandit(arms, 1), seed=seed, max_elapsed=agent.task.max_elapsed)
    for _ in range(steps):
        agent.observe(world.pull(agent.select())[0])
    return agent


def test_select_is_idempotent_and_ascending():
    for case in CASES.values():
        agent = rs.TSDE(*case(), seed=2)
        for step in range(40):
            arms = agent.select()
            known = agent.snapshot()
            for _ in range(3):
                assert agent.select().tolist() == arms.tolist()
            assert agent.snapshot() == known
            assert (np.diff(arms) > 0).all()
            assert agent.time == step + 1
            agent.observe([0] * len(arms))


def test_what_select_returns_is_the_callers_own():
    agent = rs.TSDE(*channels())
    arms = agent.select()
    kept = arms.copy()
    arms[:] = 77
    assert agent.select().tolist() == kept.tolist()
    states = np.array([1, 0])
    agent.observe(states)
    states[:] = 5
    assert agent.belief_state.last_state[kept].tolist() == [1, 0]


def test_observe_needs_a_select():
    agent = rs.TSDE(*channels())
    with pytest.raises(rs.errors.ProblemError, match=r"call select\(\) before observe\(\)"):
        agent.observe([0, 1])
    agent.select()
    agent.observe([0, 1])
    known = settled(agent)
    with pytest.raises(rs.errors.ProblemError, match=r"call select\(\) before observe\(\)"):
        agent.observe([0, 1])
    assert settled(agent) == known


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([1], r"2 arms were selected, \[.*\], so 2 states are needed; got shape \(1,\)"),
        ([1, 0, 1], r"2 states are needed; got shape \(3,\)"),
        ([[1, 0]], r"2 states are needed; got shape \(1, 2\)"),
        (1, r"2 states are needed; got shape \(\)"),
        ([], r"2 states are needed; got shape \(0,\)"),
        ([0, 2], r"arm \d: state 2 is not one of its states 0 to 1"),
        ([-1, 0], r"arm \d: state -1 is not one of its states 0 to 1"),
        ([0.0, 1.0], "states must be whole numbers, got float64"),
        ([True, False], "states must be whole numbers, got bool"),
        (["a", "b"], "state 'a' is a name, but the prior's arms have no named states"),
        ([None, 1], "states must be whole numbers, got object"),
    ],
)
@pytest.mark.parametrize("steps", [0, 23])
def test_an_observation_that_cannot_be_leaves_the_agent_as_it_was(states, message, steps):
    agent = advance(rs.TSDE(*channels(), horizon=100, seed=1), steps)
    arms = agent.select()
    known = settled(agent)
    with pytest.raises(rs.errors.ProblemError, match=message):
        agent.observe(states)
    assert settled(agent) == known
    assert agent.select().tolist() == arms.tolist()
    agent.observe([1, 0])
    assert agent.time == steps + 2


def test_an_observation_of_probability_zero_is_refused_and_forgotten():
    never_twice_bad = [rs.gilbert_elliott(1.0, p) for p in (0.3, 0.5, 0.6)]
    free = rs.gilbert_elliott(0.5, 0.5)
    arms = [rs.ArmPrior([free]), rs.ArmPrior(never_twice_bad)]
    agent = rs.TSDE(rs.IndependentPrior(arms), 2, "myopic", seed=6)
    other = rs.TSDE(rs.IndependentPrior(arms), 2, "myopic", seed=6)
    for step in range(60):
        bad = int(agent.belief_state.last_state[1]) == 0
        agent.select()
        known = settled(agent)
        if bad:
            with pytest.raises(rs.errors.ProblemError, match="arm 1: state 0 has probability zero"):
                agent.observe([step % 2, 0])
            assert settled(agent) == known
        state = 1 if bad else step % 2
        for each in (agent, other):
            each.select()
            each.observe([step % 2, state])
    assert settled(agent) == settled(other)


def test_under_a_joint_prior_arms_must_be_possible_together():
    sure, free = rs.gilbert_elliott(1.0, 0.5), rs.gilbert_elliott(0.2, 0.5)
    systems = [rs.RestlessBandit(arms, 2) for arms in ([sure, free], [free, sure])]
    agent = rs.TSDE(rs.JointPrior(systems), 2, "myopic")
    agent.select()
    agent.observe([0, 0])
    agent.select()
    known = settled(agent)
    # each of them is possible under one of the systems, both under none
    with pytest.raises(
        rs.errors.ProblemError, match="arm 1: state 0 has probability zero under every"
    ):
        agent.observe([0, 0])
    assert settled(agent) == known
    agent.observe([0, 1])
    assert agent.posterior(0).weights.tolist() == agent.posterior(1).weights.tolist() == [0, 1]
    agent.select()
    agent.observe([1, 0])
    agent.select()
    with pytest.raises(rs.errors.ProblemError, match=r"arm 1: state 0 .* the prior rules it out"):
        agent.observe([1, 0])  # possible under the first system only, which is out


def requests(num_arms, num_pulls, steps, seed):
    """Random outages: None, or fewer pulls, or more, or some arms only."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        mask = rng.random(num_arms) < 0.7
        kind = rng.integers(4)
        if kind == 0 or not mask.any():
            yield None, None
        elif kind == 1:
            yield int(rng.integers(1, num_arms + 1)), None
        else:
            yield min(num_pulls, int(mask.sum())), mask


@pytest.mark.parametrize("mapping", ["whittle", "best_fixed", own_rule])
@pytest.mark.parametrize("horizon", [90, None])
@pytest.mark.parametrize("case", CASES)
def test_pulls_and_arms_can_be_narrowed_for_a_step(case, horizon, mapping):
    prior, num_pulls = CASES[case]()
    agent = rs.TSDE(prior, num_pulls, mapping, horizon, seed=5)
    oracle = naive_agent(prior, num_pulls, mapping, horizon, seed=5)
    world = World(true_bandit(prior, num_pulls), seed=1)
    for wanted, mask in requests(prior.num_arms, num_pulls, 120, seed=8):
        expected = oracle.select(wanted, mask)
        assert agent.select(wanted, mask).tolist() == expected
        assert agent.select().tolist() == expected
        states, _, _ = world.pull(np.array(expected))
        agent.observe(states)
        oracle.observe(states.tolist())
        assert agent.episode.number == oracle.episode


def myopic_of(bandit):
    """Myopic policy as a mapping of the user's."""
    return rs.myopic(bandit)


def test_a_narrowed_mapping_of_bandits_acts_like_the_compiled_rule():
    prior = rs.grid_prior(np.arange(1, 10) / 10, 6)
    truth = [(0.3, 0.7), (0.6, 0.4), (0.4, 0.6), (0.5, 0.5), (0.2, 0.8), (0.7, 0.3)]
    world = World(rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in truth], 2), seed=3)
    agents = [rs.TSDE(prior, 2, mapping, horizon=1000) for mapping in ("myopic", myopic_of)]
    for wanted, mask in requests(6, 2, 1500, seed=0):
        arms, others = (agent.select(wanted, mask) for agent in agents)
        assert arms.tolist() == others.tolist()  # ties too, of which there are many
        states, _, _ = world.pull(arms)
        for agent in agents:
            agent.observe(states)


def test_narrowing_errors():
    agent = rs.TSDE(*channels())
    known = settled(agent)
    for request, message in [
        ({"available": [True] * 3}, "available must be 4 truth values"),
        ({"available": [1, 1, 0, 1]}, "available: an arm is listed twice"),
        ({"available": [0, 4]}, "available: the arms are 0 to 3, got"),
        ({"available": [0.0, 1.0]}, "available must be a list of whole numbers"),
        ({"available": [True, False, False, False]}, "cannot pull 2 arms, only 1 available"),
        ({"available": [False] * 4}, "cannot pull 2 arms, only 0 available"),
        ({"available": [False] * 4, "num_pulls": 1}, "cannot pull 1 arms, only 0 available"),
        ({"num_pulls": 5}, "cannot pull 5 arms, only 4 available"),
        ({"num_pulls": True}, "num_pulls must be"),
        ({"num_pulls": 1.0}, "num_pulls must be"),
        ({"num_pulls": -1}, "num_pulls must be"),
    ]:
        with pytest.raises(rs.errors.ProblemError, match=message):
            agent.select(**request)
        assert settled(agent) == known
    (arm,) = agent.select(num_pulls=1)
    others = [k != arm for k in range(4)]
    assert agent.select() == agent.select(num_pulls=1) == [arm]
    assert agent.select(num_pulls=1, available=[True] * 4) == [arm]
    for request in ({"num_pulls": 2}, {"num_pulls": 1, "available": others}):
        with pytest.raises(
            rs.errors.ProblemError, match="were selected already; observe them first"
        ):
            agent.select(**request)
    agent.observe([1])
    assert len(agent.select()) == 2  # narrowed for one step only


def test_a_mapping_without_indices_cannot_be_narrowed():
    prior, num_pulls = small_joint()
    agent = rs.TSDE(prior, num_pulls, "optimal")
    with pytest.raises(rs.errors.ProblemError, match="'optimal' gives no index"):
        agent.select(available=[True, True, False])
    assert len(agent.select()) == num_pulls
    assert np.isnan(agent.index()).all()


def test_the_agent_goes_on_after_a_known_horizon():
    prior, num_pulls = channels()
    truth = true_bandit(prior, num_pulls)
    run = naive_run(prior, num_pulls, "whittle", 40, 400, 7, truth=truth)
    ran = rs.simulate(truth, rs.TSDE(prior, num_pulls, "whittle", 40, seed=7), 400, seed=7)
    assert ran.arms.tolist() == run.arms
    assert ran.episode.tolist() == run.episodes


def sizes(agent):
    """Return the sizes of all arrays that the agent holds."""
    actor = agent._actor
    weights = actor.posterior.weights
    arrays = [*actor.meta, *weights, *actor.episodes, *actor.lookup, agent._notes]
    names = [*actor.meta._fields, *weights._fields, *actor.episodes._fields]
    names += [*actor.lookup._fields, "notes"]
    return {name: array.nbytes for name, array in zip(names, arrays, strict=True)}


def test_memory_does_not_grow_with_time():
    prior, num_pulls = joint()
    agent = rs.TSDE(prior, num_pulls, "myopic", horizon=50)
    before = sizes(agent), len(str(advance(agent, 300).snapshot()))
    advance(agent, 4000)
    assert sizes(agent) == before[0]
    assert len(str(agent.snapshot())) < 2 * before[1]
    cached = rs.TSDE(prior, num_pulls, myopic_of)
    advance(cached, 300)
    assert len(cached.task.cached) <= len(prior.bandits)


def test_the_policies_of_at_most_256_systems_are_remembered():
    prior = rs.grid_prior([0.2, 0.5, 0.8], 4)
    agent = rs.TSDE(prior, 1, myopic_of, seed=1)
    made = []
    object.__setattr__(agent.task, "make_policy", lambda b: made.append(b) or rs.myopic(b))
    rng = np.random.default_rng(0)
    for _ in range(3000):  # systems that come and go, in the order of their last use
        kinds = rng.integers(0, len(agent.task.choices.kinds.arms), 4)
        policy = agent.task.policy_of(kinds)
        assert policy.bandit.arms == agent.task.bandit_of(kinds).arms
        assert agent.task.policy_of(kinds) is policy
        assert len(agent.task.cached) <= 256
    assert len(made) > 2000


def test_with_the_doubling_trick_memory_grows_with_the_logarithm_of_time():
    prior, num_pulls = channels()
    agent = rs.TSDE(prior, num_pulls, "myopic")
    states, quarter = (
        8,
        max(rs.theory.mixing_time(arm) for k in (0, 1) for arm in prior.candidates(k)),
    )
    at_start = sizes(agent)
    for epoch in range(1, 13):
        advance(agent, 2**epoch - agent.time + 1)
        now = sizes(agent)
        assert agent.episode.epoch == epoch
        assert agent.episode.truncation == epoch * quarter
        assert now.pop("visits") == states * epoch * quarter * 3 * 8
        assert now == {name: size for name, size in at_start.items() if name != "visits"}


@pytest.mark.parametrize("horizon", [300, None])
@pytest.mark.parametrize("case", [channels, three_states, joint])
def test_the_episode_says_what_happened(case, horizon):
    prior, num_pulls = case()
    truth = true_bandit(prior, num_pulls)
    run = naive_run(prior, num_pulls, "myopic", horizon, 300, 9, truth=truth)
    agent = rs.TSDE(prior, num_pulls, "myopic", horizon, seed=9)
    assert agent.episode.number == 0
    assert agent.episode.length == 0
    assert agent.episode.last_ended == "none has ended"
    assert agent.sampled_bandit is None
    told = set()
    for t in range(1, 301):
        arms = agent.select()
        episode = agent.episode
        assert episode.number == run.episodes[t - 1]
        assert episode.start == run.starts[t - 1]
        assert episode.length == t - episode.start
        if episode.number > 1:
            assert episode.last_ended in {REASONS[rule] for rule in run.ended_by[t - 1]}
            told.add(episode.last_ended)
        agent.observe(run.states[t - 1])
        assert arms.tolist() == run.arms[t - 1]
        assert agent.episode.length == t - episode.start + 1
    assert agent.episode.epoch == run.agent.epoch
    assert agent.episode.truncation == run.agent.mixing
    assert told == set(REASONS.values()) - ({REASONS["epoch"]} if horizon else set())


def test_before_the_second_episode_none_has_ended():
    for horizon in (10, None):
        agent = rs.TSDE(*channels(), horizon=horizon)
        agent.select()
        assert agent.episode.number == 1
        assert agent.episode.last_ended == "none has ended"


def test_sampled_bandit_and_index_are_what_the_agent_acts_on():
    for case in (channels, three_states, joint):
        prior, num_pulls = case()
        oracle = naive_agent(prior, num_pulls, "whittle", None, seed=3)
        agent = rs.TSDE(prior, num_pulls, "whittle", seed=3)
        with pytest.raises(rs.errors.ProblemError, match=r"no system has been sampled yet"):
            agent.index()
        world = World(true_bandit(prior, num_pulls), seed=3)
        for _ in range(100):
            arms = agent.select()
            oracle.select()
            drawn = [prior.candidates(k)[c] for k, c in enumerate(oracle.sampled)]
            bandit = agent.sampled_bandit
            assert list(bandit.arms) == drawn
            assert bandit.num_pulls == num_pulls
            policy = rs.whittle(bandit)
            assert agent.index().tolist() == policy.index(agent.belief_state).tolist()
            assert arms.tolist() == policy.select(agent.belief_state).tolist()
            assert agent.belief_state == world.belief_state
            states, _, _ = world.pull(arms)
            agent.observe(states)
            oracle.observe(states.tolist())


def test_lp_priority_shows_its_index():
    prior, num_pulls = small_independent()
    agent = rs.TSDE(prior, num_pulls, "lp_priority")
    agent.select()
    expected = rs.policies.lp_priority(agent.sampled_bandit).index(agent.belief_state)
    assert agent.index().tolist() == expected.tolist()


def test_an_own_rule_is_called_once_per_kind_of_arm():
    calls = []

    def counted(arm):
        calls.append(arm)
        return own_rule(arm)

    prior = rs.grid_prior([0.2, 0.5, 0.8], 50)
    agent = rs.TSDE(prior, 5, counted)
    assert len(calls) <= 1 + 9  # one to tell a rule from a mapping
    advance(agent, 50)
    assert len(calls) <= 10


def test_arms_outside_the_range_are_refused():
    agent = rs.TSDE(*channels())
    for k in (-1, 4):
        with pytest.raises(rs.errors.ProblemError, match=f"arm {k} is not one of the arms 0 to 3"):
            agent.posterior(k)
        with pytest.raises(rs.errors.ProblemError, match=f"arm {k} is not one of the arms 0 to 3"):
            agent.belief(k)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"num_pulls": 5}, "num_pulls must be between 1 and the number of arms, 4, got 5"),
        ({"num_pulls": 0}, "num_pulls must be between 1"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number"),
        ({"horizon": True}, "horizon must be a whole number"),
        ({"mixing_time": 0}, "mixing_time must be"),
        ({"seed": -1}, "seed must be a whole number from 0 to"),
        ({"seed": 2**64}, "seed must be a whole number from 0 to"),
        ({"seed": 1.5}, "seed must be a whole number from 0 to"),
        ({"start": rs.BeliefState([0], [1])}, "the state is for 1 arms, the bandit has 4"),
        ({"start": rs.BeliefState([0, 0, 2, 0], [1] * 4)}, "last_state is 2"),
        ({"policy_mapping": "whitle"}, "did you mean 'whittle'"),
        ({"policy_mapping": 3}, "policy_mapping must be a name"),
        ({"policy_mapping": lambda arm: 1 / 0}, "works neither as an index rule"),
        ({"policy_mapping": lambda arm: np.zeros((3, 1))}, "the index rule returned shape"),
        ({"prior": "grid"}, "prior must be an IndependentPrior or a JointPrior, got str"),
        ({"max_elapsed": 0}, "max_elapsed must be at least 1"),
    ],
)
def test_what_an_agent_cannot_be_made_of(given, message):
    prior, num_pulls = channels()
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.TSDE(**({"prior": prior, "num_pulls": num_pulls} | given))


def test_a_mapping_must_return_something_that_selects():
    def useless(bandit):
        return bandit.num_pulls

    with pytest.raises(rs.errors.ProblemError, match=r"expected a policy with select\(state\)"):
        rs.TSDE(*channels(), policy_mapping=useless)


def test_arms_that_do_not_mix_need_a_mixing_time_and_a_length():
    flip = rs.Arm([[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]], [0, 1])
    prior = rs.IndependentPrior([rs.ArmPrior([flip])] * 2)
    with pytest.raises(rs.errors.AssumptionError, match="give max_elapsed"):
        rs.TSDE(prior, 1, own_rule, mixing_time=3)
    with pytest.raises(rs.errors.AssumptionError, match=r"arm 0, candidate 0: .*pass mixing_time"):
        rs.TSDE(prior, 1, own_rule, max_elapsed=8)
    agent = rs.TSDE(prior, 1, own_rule, max_elapsed=8, mixing_time=3)
    assert advance(agent, 20).time == 21


@pytest.mark.parametrize("mapping", ["best_fixed", "myopic", "whittle"])
def test_arms_that_mix_too_slowly_for_the_automatic_length_can_be_learnt(mapping):
    slow = [rs.gilbert_elliott(0.0004, 0.9996), rs.gilbert_elliott(0.0005, 0.9993)]
    prior = rs.IndependentPrior([rs.ArmPrior(slow)] * 2)
    with pytest.raises(rs.errors.TooLargeError, match="give max_elapsed"):
        rs.TSDE(prior, 1, mapping)
    agent = rs.TSDE(prior, 1, mapping, horizon=100, max_elapsed=300)
    assert advance(agent, 50).time == 51


def test_the_mixing_time_is_the_largest_over_the_priors_support():
    slow, fast = rs.gilbert_elliott(0.02, 0.97), rs.gilbert_elliott(0.4, 0.6)
    assert rs.theory.mixing_time(slow) > 20
    for weights, arm in (([1, 1], slow), ([0, 1], fast)):
        prior = rs.IndependentPrior([rs.ArmPrior([slow, fast], weights)])
        agent = rs.TSDE(prior, 1, horizon=1000)
        agent.select()
        assert agent.episode.truncation == int(np.ceil(np.log2(1000) * rs.theory.mixing_time(arm)))


def test_truncation_of_the_papers_grid():
    prior = rs.grid_prior(np.arange(1, 10) / 10, 2)
    for horizon, expected in ((2000, 77), (10_000, 94), (1, 1)):  # reading 5
        agent = rs.TSDE(prior, 1, "myopic", horizon=horizon)
        agent.select()
        assert agent.episode.truncation == expected


def test_hyphens_and_registered_functions_name_mappings_too():
    prior, num_pulls = channels()
    for mapping in ("best-fixed", rs.policies.best_fixed):
        agents = [rs.TSDE(prior, num_pulls, m, seed=2) for m in (mapping, "best_fixed")]
        truth = true_bandit(prior, num_pulls)
        runs = [rs.simulate(truth, agent, 60) for agent in agents]
        assert np.array_equal(runs[0].arms, runs[1].arms)
        assert agents[0].task.ranks is not None


@pytest.mark.parametrize("mapping", ["whittle", "lp_priority"])
def test_a_step_without_pulls_lets_time_pass(mapping):
    agent = rs.TSDE(*channels(), mapping, seed=1)
    before = agent.belief_state
    assert agent.select(num_pulls=0, available=[False] * 4).tolist() == []
    agent.observe([])
    assert agent.time == 2
    assert agent.belief_state == before.updated([], [])
    assert len(agent.select()) == 2
