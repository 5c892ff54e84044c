"""Restless-UCB: against a plain oracle, by hand, its optimism, and what it learns."""

import json
from math import log, sqrt

import numpy as np
import pytest

import restive as rs
from learning_cases import as_lists, posed, random_arm, trace
from oracles.restless_ucb_naive import NaiveRestlessUCB, observations_wanted, shifted_row
from oracles.tsde_naive import NaiveWorld
from restive.kernels.learn.learners.memory import PHASES, PLANNING
from restive.learn.learners import describe, learner
from restive.learn.learners.restless_ucb import (
    RestlessUCB,
    optimistic_matrix,
    planned_channels,
    planned_table,
)
from restive.learn.make import make_learner
from restive.measure.replication import replicate
from restive.measure.world import World


def certain(bandit):
    """Return a prior that is sure of the bandit; learners take the rewards alone from it."""
    return rs.IndependentPrior([rs.ArmPrior([arm]) for arm in bandit.arms])


def channels(*levels, num_pulls=1):
    return rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in levels], num_pulls)


def three_states(num_pulls=2):
    """Birth and death, jumps with rewards out of order, equal rewards, two states and one."""
    rng = np.random.default_rng(3)
    birth_death = rs.Arm([[0.7, 0.3, 0], [0.25, 0.5, 0.25], [0, 0.4, 0.6]], rewards=[0.1, 0.5, 0.9])
    jumping = random_arm(rng, 3, [1, 0, 0.4], controlled=False)
    controlled = random_arm(rng, 3, [0.5, 0.2, 0.5])
    other = rs.gilbert_elliott(0.4, 0.2, rewards=[0.8, 0.1])
    sure = rs.Arm([[1.0]], rewards=[0.55])
    return rs.RestlessBandit([birth_death, jumping, other, controlled, sure], num_pulls)


CASES = {
    "two arms": (channels((0.3, 0.8), (0.4, 0.6)), {}, 300),
    "two arms, defaults, short": (channels((0.3, 0.8), (0.4, 0.6)), {}, 40),
    "clipped at one": (channels((0.3, 0.8), (0.6, 0.5), (0.2, 0.7)), {"exploration": 8}, 300),
    "estimates only": (channels((0.3, 0.8), (0.4, 0.6)), {"exploration": 5, "scale": 0}, 200),
    "four arms, two pulls": (
        channels((0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4), num_pulls=2),
        {"exploration": 12, "scale": 0.3},
        300,
    ),
    "equal arms": (
        channels((0.5, 0.5), (0.5, 0.5), (0.5, 0.5), num_pulls=2),
        {"exploration": 1, "scale": 0.2},
        200,
    ),
    "few ages": (
        channels((0.1, 0.9), (0.2, 0.8), (0.3, 0.6)),
        {"exploration": 10, "scale": 0.1, "max_age": 2},
        300,
    ),
    "three states": (three_states(), {"exploration": 10, "scale": 0.3}, 400),
    "three states, wide": (three_states(3), {"exploration": 6}, 250),
    "all arms": (three_states(5), {"exploration": 3}, 60),
}


def naive_run(bandit, options, horizon, steps, seed, start=None):
    """Let the oracle play in the oracle's world: its choices, what it saw, and itself."""
    sizes = [arm.num_states for arm in bandit.arms]
    last_state = [size - 1 for size in sizes] if start is None else start.last_state.tolist()
    elapsed = [1] * len(sizes) if start is None else start.elapsed.tolist()
    world = NaiveWorld([as_lists(arm) for arm in bandit.arms], last_state, elapsed, seed, 0)
    agent = NaiveRestlessUCB(
        [arm.rewards.tolist() for arm in bandit.arms], bandit.num_pulls, horizon, last_state,
        elapsed, options.get("exploration"), options.get("scale", 1.0),
        options.get("max_age", 100),
    )  # fmt: skip
    arms, states = [], []
    for _ in range(steps):
        arms.append(agent.select())
        states.append(world.pull(arms[-1])[0])
        agent.observe(states[-1])
    return arms, states, agent


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("case", CASES)
def test_oracle_player_and_engine_agree(case, seed):
    bandit, options, horizon = CASES[case]
    arms, states, naive = naive_run(bandit, options, horizon, horizon, seed)
    explored = naive.ranks is not None
    assert explored == ("short" not in case)

    prior = certain(bandit)
    agent = make_learner(
        "restless_ucb", prior, bandit.num_pulls, horizon=horizon, seed=seed, **options
    )
    played = rs.simulate(bandit, agent, horizon, seed=seed)
    assert played.arms.tolist() == arms
    assert played.states.tolist() == states
    assert agent.num_phases == 1 + explored

    setup = posed(
        prior, bandit.num_pulls, "whittle", horizon, learner=learner("restless_ucb", **options)
    )
    traced_arms, traced_states = trace(setup, horizon, seed)
    assert traced_arms.tolist() == arms
    assert traced_states.tolist() == states
    if explored:
        planned = agent.learner.optimistic_arms(agent.task.facts, agent._actor.memory)
        for arm, matrix in zip(planned, naive.matrices, strict=True):
            np.testing.assert_allclose(arm.active, matrix, rtol=0, atol=1e-15)
        # arms must not be told apart by rounding alone, or agreement would be luck
        assert len(np.unique(agent._actor.memory.floats)) == 1 + max(
            max(map(max, table)) for table in naive.ranks
        )


def test_the_start_is_no_observation_but_counts_for_the_index():
    bandit = channels((0.3, 0.7), (0.4, 0.6), (0.2, 0.8), num_pulls=1)
    start = rs.BeliefState([0, 1, 0], [1, 4, 30])
    options = {"exploration": 3, "scale": 0.1}
    arms, states, naive = naive_run(bandit, options, 120, 120, 7, start)
    assert naive.ranks is not None
    agent = make_learner(
        "restless_ucb", certain(bandit), 1, horizon=120, seed=7, start=start, **options
    )
    played = rs.simulate(bandit, agent, 120, seed=7, start=start)
    assert played.arms.tolist() == arms
    assert played.states.tolist() == states


def told(agent, steps):
    """Tell an agent states, step by step, and return what it pulled before each."""
    pulled = []
    for states in steps:
        pulled.append(agent.select().tolist())
        agent.observe(states)
    return pulled


def hand_agent(radius, max_age=100):
    """Two arms, one pull, two transitions out of each state."""
    horizon = 100
    scale = radius / sqrt(log(horizon) / 4)
    prior = certain(channels((0.5, 0.5), (0.5, 0.5)))
    agent = make_learner(
        "restless_ucb", prior, 1, horizon=horizon, exploration=2, scale=scale, max_age=max_age
    )
    # arm 0: 0>0, 0>1, 1>1, 1>0 are counted; the first pull has nothing before it
    assert told(agent, [[0], [0], [1], [1], [0]]) == [[0]] * 5
    # arm 1: 1>1, 1>1, 1>0, 0>1, 1>0, 0>1, that is 2 out of 4 from 1 and both from 0
    assert told(agent, [[1], [1], [1], [0], [1], [0], [1]]) == [[1]] * 7
    assert agent.num_phases == 1
    return agent


def test_a_history_by_hand():
    agent = hand_agent(0.1)
    memory = agent._actor.memory
    assert memory.ints[PLANNING] == 1
    arms = agent.learner.optimistic_arms(agent.task.facts, memory)
    np.testing.assert_allclose(arms[0].active, [[0.4, 0.6], [0.4, 0.6]], atol=1e-15)
    np.testing.assert_allclose(arms[1].active, [[0, 1], [0.4, 0.6]], atol=1e-15)
    # Arm 0 is good with chance 0.6 whenever: that is its index. Arm 1 (p01 = 1, p11 = 0.6, just
    # seen good) has belief 0.6 too, and p11 <= w is an end of its range: index 0.6. A tie.
    assert agent.select().tolist() == [0]
    assert agent.num_phases == 2
    assert memory.ints[PLANNING] == 0
    agent.observe([1])
    # Arm 1 is two steps old: belief 0.6^2 + 0.4 = 0.76 = T(p11), so p01 / (1 + p01 - w) = 1 / 1.24.
    np.testing.assert_allclose(planned_table(arms[1], 2)[1], [0.6, 1 / 1.24], atol=1e-14)
    # After a bad state it is good for sure; after a good one the tie is arm 0's again.
    assert told(agent, [[0], [1], [1], [0], [0], [1]]) == [[1], [1], [0], [1], [1], [1]]


def test_ages_beyond_the_table_use_its_last_column():
    # with one age, arm 1 keeps index 0.6 for ever, and arm 0 wins the tie for ever
    assert told(hand_agent(0.1, max_age=1), [[1], [0], [0], [1]]) == [[0]] * 4


def test_radius_zero_plays_the_estimates():
    agent = hand_agent(0)
    arms = agent.learner.optimistic_arms(agent.task.facts, agent._actor.memory)
    assert agent.learner.radius(agent.task.facts) == 0
    np.testing.assert_array_equal(arms[0].active, [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(arms[1].active, [[0, 1], [0.5, 0.5]])


def test_nothing_but_transitions_between_own_successive_pulls_counts():
    """Two pulls of three arms: an arm that comes back after a break brings no transition."""
    bandit = channels((0.5, 0.5), (0.5, 0.5), (0.5, 0.5), num_pulls=2)
    agent = make_learner("restless_ucb", certain(bandit), 2, horizon=50, exploration=1)
    # arm 0 is done after 0>1, 1>0; arm 1 stays at 0; arm 2 comes in
    assert told(agent, [[0, 0], [1, 0], [0, 0]]) == [[0, 1]] * 3
    # arm 2 is done after 1>0, 0>0; then arm 0 fills the spare place
    assert told(agent, [[0, 1], [0, 0], [0, 0]]) == [[1, 2]] * 3
    # its break was three steps: its first pull counts nothing, the next three 1>1, 1>1, 1>0
    assert told(agent, [[1, 0], [1, 0], [1, 1], [0, 1]]) == [[0, 1]] * 4
    assert agent._actor.memory.ints[PLANNING] == 1
    arms = agent.learner.optimistic_arms(agent.task.facts, agent._actor.memory)
    counts = agent._actor.memory.ints[-12:].reshape(3, 2, 2).tolist()
    assert counts == [[[0, 1], [2, 2]], [[7, 1], [0, 1]], [[1, 0], [1, 0]]]
    assert arms[1].active[0, 1] == 1  # the radius is wider than any probability


def stationary_reward(arm):
    return float(rs.theory.stationary(arm.active) @ arm.rewards)


def test_optimism_is_applied():
    bandit, options, horizon = CASES["three states"]
    agent = make_learner("restless_ucb", certain(bandit), 2, horizon=horizon, seed=5, **options)
    rs.simulate(bandit, agent, horizon, seed=5)
    assert agent.num_phases == 2
    planned = agent.learner.optimistic_arms(agent.task.facts, agent._actor.memory)
    plain = RestlessUCB(exploration=10, scale=0).optimistic_arms(
        agent.task.facts, agent._actor.memory
    )
    radius = agent.learner.radius(agent.task.facts)
    assert radius == pytest.approx(0.3 * sqrt(log(400) / 20))
    for arm, estimate in zip(planned[:-1], plain[:-1], strict=True):
        most = arm.rewards.max()
        assert stationary_reward(arm) > min(most - 1e-12, stationary_reward(estimate) + 0.05)
        assert np.abs(arm.active - estimate.active).sum(axis=1).max() == pytest.approx(2 * radius)
    assert planned[-1] == plain[-1]  # one state has none better


@pytest.mark.parametrize("radius", [0.0, 0.05, 0.3, 1.0, 7.0])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_optimistic_rows(size, radius):
    """Each row is a law, stochastically larger than the counted one by `radius` at most."""
    rng = np.random.default_rng(size)
    for _ in range(20):
        counts = rng.integers(0, 4, (size, size)) + np.eye(size, dtype=np.int64)
        rewards = rng.integers(0, 3, size) / 2
        matrix = optimistic_matrix(counts, rewards, radius)
        estimate = counts / counts.sum(axis=1, keepdims=True)
        rs.Arm(matrix, rewards=rewards)  # row-stochastic
        order = np.argsort(rewards, kind="stable")
        gain = np.cumsum((estimate - matrix)[:, order], axis=1)
        assert (gain >= -1e-12).all()
        assert (gain <= radius + 1e-12).all()
        for s in range(size):
            expected = shifted_row(estimate[s].tolist(), rewards.tolist(), s, radius)
            np.testing.assert_allclose(matrix[s], expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("radius", [0.0, 1e-17, 0.1, 0.4, 2.0])
@pytest.mark.parametrize("most", [1, 3, 200])
def test_channels_are_planned_as_any_arm_is(most, radius):
    """To the bit, also absorbing and periodic chains, equal arms and rewards in either order."""
    rng = np.random.default_rng(most)
    counts = rng.integers(0, most + 1, (150, 2, 2))
    counts[counts.sum(axis=2) == 0] = [most, 0]
    counts[:4] = [[[0, 1], [1, 0]], [[1, 0], [0, 1]], [[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    counts[-20:] = counts[:20]
    rewards = rng.choice([0, 0.3, 0.7, 1], (150, 2))
    rewards[:4] = rewards[-20:-16] = [[0, 1], [1, 0], [0.3, 0.3], [0, 0.7]]
    tables = planned_channels(counts, rewards, radius, 30)
    for seen, values, table in zip(counts, rewards, tables, strict=True):
        arm = rs.Arm(optimistic_matrix(seen, values, radius), rewards=values)
        np.testing.assert_array_equal(table, planned_table(arm, 30))


def test_optimistic_matrix_of_birth_and_death():
    """The step up gains the radius, the step down loses it, and what lies between stays."""
    counts = np.array([[7, 3, 0, 0], [2, 5, 3, 0], [0, 1, 4, 5], [0, 0, 4, 6]])
    matrix = optimistic_matrix(counts, np.array([0, 0.2, 0.5, 1]), 0.1)
    expected = [[0.6, 0.4, 0, 0], [0.1, 0.5, 0.4, 0], [0, 0, 0.4, 0.6], [0, 0, 0.3, 0.7]]
    np.testing.assert_allclose(matrix, expected, atol=1e-15)
    # where less than the radius steps down, staying gives the rest, so that the chain never
    # steps up by two
    matrix = optimistic_matrix(counts, np.array([0, 0.2, 0.5, 1]), 0.25)
    expected = [[0.45, 0.55, 0, 0], [0, 0.45, 0.55, 0], [0, 0, 0.25, 0.75], [0, 0, 0.15, 0.85]]
    np.testing.assert_allclose(matrix, expected, atol=1e-15)


def test_optimistic_matrix_follows_rewards_not_numbers():
    counts = np.array([[7, 3, 0], [2, 5, 3], [0, 4, 6]])
    best_first = optimistic_matrix(counts[::-1, ::-1], np.array([1, 0.5, 0]), 0.1)
    np.testing.assert_array_equal(
        best_first[::-1, ::-1], optimistic_matrix(counts, np.array([0, 0.5, 1]), 0.1)
    )


@pytest.mark.parametrize(
    "matrix",
    [
        [[0.5, 0.5], [0, 1]],  # the best state is never left
        [[1, 0], [0.5, 0.5]],
        [[1, 0], [0, 1]],
        [[0, 1], [1, 0]],  # periodic
        [[0.3, 0.7, 0], [0, 0.5, 0.5], [0, 0, 1]],
        [[0, 1, 0], [0, 0, 1], [1, 0, 0]],
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 1, 0], [1, 0, 0], [0, 0, 1]],
    ],
)
def test_reducible_and_periodic_chains_are_blended(matrix):
    rewards = np.linspace(0, 1, len(matrix))
    arm = rs.Arm(matrix, rewards=rewards)
    table = planned_table(arm, 30)
    blended = 0.999999 * arm.active + 1e-6 / len(matrix)
    same = rs.policies.whittle_index(rs.Arm(blended, rewards=rewards), max_elapsed=30).index
    np.testing.assert_allclose(table, same, atol=1e-9)
    assert table.shape == (len(matrix), 30)
    assert np.isfinite(table).all()
    if matrix[-1][-1] == 1:
        assert table[-1, 0] == pytest.approx(1, abs=1e-3)


def test_chains_with_an_index_are_not_blended():
    arm = rs.gilbert_elliott(0.3, 0.7)
    np.testing.assert_array_equal(
        planned_table(arm, 9), rs.policies.whittle_index(arm, max_elapsed=9).index
    )


@pytest.mark.parametrize("horizon", [1, 2, 7, 8, 26, 27, 28, 1000, 4913, 5000])
def test_default_exploration_and_radius(horizon):
    agent = make_learner("restless_ucb", certain(channels((0.5, 0.5))), 1, horizon=horizon)
    wanted = agent.learner.wanted(agent.task.facts)
    assert wanted == observations_wanted(horizon)
    assert agent.learner.radius(agent.task.facts) == sqrt(log(horizon) / (2 * wanted))


def test_it_learns_an_easy_instance():
    """After a third of the horizon it earns what the policy that knows the truth earns."""
    bandit = channels((0.8, 0.9), (0.1, 0.3), (0.2, 0.1), (0.6, 0.9), num_pulls=2)
    horizon, replications = 4000, 40
    setup = posed(
        certain(bandit), 2, "whittle", horizon, learner=learner("restless_ucb", exploration=60)
    )
    done = replicate(*setup, np.array([200, 2000, 4000]), replications, threads=1)
    assert (done.episodes == [1, 2, 2]).all()
    lost = (done.oracle_expected - done.expected).mean(axis=0)
    assert lost[0] / 200 > 0.3
    assert (lost[2] - lost[1]) / 2000 < 0.02


def test_engine_is_the_same_in_chunks_and_threads():
    bandit, options, horizon = CASES["four arms, two pulls"]
    setup = posed(
        certain(bandit), 2, "whittle", horizon, learner=learner("restless_ucb", **options)
    )
    times = np.array([10, 150, horizon])
    whole = replicate(*setup, times, 9, threads=1)
    parts = replicate(*setup, times, 9, threads=2, chunk=2)
    np.testing.assert_array_equal(whole.expected, parts.expected)
    np.testing.assert_array_equal(whole.realised, parts.realised)
    np.testing.assert_array_equal(whole.episodes, parts.episodes)
    assert whole.episodes[:, 0].max() == 1


@pytest.mark.parametrize("steps", [0, 40, 120, 121, 200])
def test_a_snapshot_goes_on_exactly(steps):
    bandit, options, horizon = CASES["four arms, two pulls"]
    agent = make_learner("restless_ucb", certain(bandit), 2, horizon=horizon, seed=3, **options)
    world = World(bandit, seed=3)
    for _ in range(steps):
        agent.observe(world.pull(agent.select())[0])
    copy = rs.restore(json.loads(json.dumps(agent.snapshot())))
    for _ in range(80):
        arms = agent.select()
        assert copy.select().tolist() == arms.tolist()
        states = world.pull(arms)[0]
        agent.observe(states)
        copy.observe(states)
    np.testing.assert_array_equal(agent._actor.memory.ints, copy._actor.memory.ints)
    np.testing.assert_array_equal(agent._actor.memory.floats, copy._actor.memory.floats)


def test_memory_begins_as_told():
    agent = make_learner("restless-ucb", certain(three_states()), 2, horizon=64, max_age=7)
    assert agent.num_phases == agent._actor.memory.ints[PHASES] == 1
    assert len(agent._actor.memory.floats) == 12 * 7
    assert agent.select().tolist() == [0, 1]


def test_it_needs_a_horizon():
    with pytest.raises(rs.errors.ProblemError, match="the learner restless_ucb needs a horizon"):
        make_learner("restless_ucb", certain(channels((0.5, 0.5))), 1)


def test_absurd_tables_are_refused():
    with pytest.raises(
        rs.errors.TooLargeError, match=r"restless_ucb: its tables .* smaller max_age"
    ):
        make_learner("restless_ucb", rs.grid_prior([0.5], 1000), 1, horizon=9, max_age=10**7)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"exploration": 0}, "restless_ucb: exploration must be at least 1, got 0"),
        ({"exploration": 2.5}, "restless_ucb: exploration must be a whole number, got 2.5"),
        ({"exploration": True}, "restless_ucb: exploration must be a whole number, got True"),
        ({"exploration": "9"}, "restless_ucb: exploration must be a whole number, got '9'"),
        ({"scale": -0.1}, "restless_ucb: scale must be a number from 0 to 1000, got -0.1"),
        ({"scale": float("nan")}, "restless_ucb: scale must be a number from 0 to 1000, got nan"),
        ({"scale": None}, "restless_ucb: scale must be a number from 0 to 1000, got None"),
        ({"max_age": 0}, "restless_ucb: max_age must be at least 1, got 0"),
        ({"max_age": 10**8}, "restless_ucb: max_age must be at most 10,000,000, got 100000000"),
        ({"radius": 0.1}, "learner restless_ucb: unknown option 'radius'"),
    ],
)
def test_options_are_checked(options, message):
    with pytest.raises(rs.errors.ProblemError, match=message):
        learner("restless_ucb", **options)


def test_it_is_described_by_its_options():
    assert describe(learner("restless_ucb")) == "restless_ucb"
    assert describe(learner("restless_ucb", exploration=9)) == "restless_ucb(exploration=9)"
