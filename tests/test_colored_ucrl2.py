"""Colored-UCRL2: against the naive one, by hand, its optimism, what it refuses."""

import json
import math
from itertools import product

import numba
import numpy as np
import pytest
from scipy.optimize import linprog

import restive as rs
from learning_cases import as_lists, posed, random_arm, start_of, trace
from oracles import colored_ucrl2_naive as naive
from oracles.tsde_naive import NaiveWorld
from restive.kernels.learn.learners import colored_ucrl2 as kernels
from restive.kernels.learn.learners.memory import PLANNING
from restive.learn.learners import learner
from restive.learn.make import make_learner
from restive.measure.replication import replicate
from restive.measure.simulation import simulate
from restive.problem.beliefs import BeliefState


def certain(arms):
    """Return a prior that knows the arms; the learner takes only sizes and rewards from it."""
    return rs.IndependentPrior([rs.ArmPrior([arm]) for arm in arms])


def two_channels():
    return [rs.gilbert_elliott(0.3, 0.8), rs.gilbert_elliott(0.2, 0.6)], 1, {"ages": 4}


def two_pulls():
    rng = np.random.default_rng(3)
    rewards = [[0.1, 0.9], [0.3, 0.7], [0.0, 0.8]]
    return [random_arm(rng, 2, r, controlled=False) for r in rewards], 2, {"ages": 3}


def three_states():
    rng = np.random.default_rng(4)
    arms = [random_arm(rng, 3, [0.0, 0.6, 1.0]), random_arm(rng, 2, [0.2, 0.9])]
    return arms, 1, {"ages": 3}


def pulls_of_unequal_arms():
    rng = np.random.default_rng(5)
    arms = [random_arm(rng, size, np.linspace(0, 1, size)) for size in (2, 3, 2)]
    return arms, 2, {"ages": 2}


def one_age():
    return [rs.gilbert_elliott(0.3, 0.8), rs.gilbert_elliott(0.2, 0.6)], 1, {"ages": 1}


CASES = [two_channels, two_pulls, three_states, pulls_of_unequal_arms, one_age]


def run_naive(arms, num_pulls, horizon, start, seed, **options):
    agent = naive.NaiveColoredUCRL2(
        [arm.rewards.tolist() for arm in arms], num_pulls, horizon, start.last_state.tolist(),
        start.elapsed.tolist(), **options,
    )  # fmt: skip
    world = NaiveWorld([as_lists(arm) for arm in arms], start.last_state, start.elapsed, seed, 0)
    pulled, seen = [], []
    for _ in range(horizon):
        pulled.append(agent.select())
        seen.append(world.pull(pulled[-1])[0])
        agent.observe(seen[-1])
    return agent, pulled, seen


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("scale", [1.0, 0.03, 0.01])
def test_all_three_do_the_same(case, scale):
    arms, num_pulls, options = case()
    options = options | {"scale": scale}
    horizon, seed = 300, 7
    prior, bandit = certain(arms), rs.RestlessBandit(arms, num_pulls)
    start = start_of(prior)
    if scale < 0.02:
        start = BeliefState([0] * len(arms), [3, 1, 9][: len(arms)])
    slow, pulled, seen = run_naive(arms, num_pulls, horizon, start, seed, **options)

    setup = posed(
        prior, num_pulls, horizon=horizon, start=start, true_bandit=bandit,
        learner=learner("colored_ucrl2", **options),
    )  # fmt: skip
    engine_arms, engine_states = trace(setup, horizon, seed)
    assert engine_arms.tolist() == pulled
    assert engine_states.tolist() == seen

    agent = make_learner("colored_ucrl2", prior, num_pulls, horizon=horizon, start=start, **options)
    path = simulate(bandit, agent, horizon, seed=seed, start=start)
    assert path.arms.tolist() == pulled
    assert agent.num_phases == slow.episodes > 5
    tables = agent.learner.tables(agent.task.facts, agent._actor.memory)
    for c, colour in enumerate(slow.colours):
        of_arm = slow.rewards[colour[0]]
        counts = [slow.samples[colour].count(s) for s in range(len(of_arm))]
        assert tables.outcomes[c, : len(of_arm)].tolist() == counts
        assert tables.before[c] + tables.during[c] == sum(counts)
        assert tables.before[c] == slow.before[colour]
    rewards = np.concatenate([arm.rewards for arm in arms])
    low, high = rewards.min(), rewards.max()
    hoped = num_pulls * low + (high - low) * sum(slow.gain) / 2
    assert agent._actor.memory.floats[kernels.GAIN] == pytest.approx(hoped, abs=1e-9)


def test_a_short_history_by_hand():
    """Arm 0 pays 0 or 1, arm 1 pays 0 or 0.5; ages 1 and older, so three cells and C = 6.

    All seems possible at first, and arm 0 best. Each time it is seen bad, what it may be at age 1
    shrinks; at t = 6 its best law pays 0.423 there, less than the 0.5 that arm 1 may still pay.
    """
    arms = [rs.gilbert_elliott(0.5, 0.5), rs.gilbert_elliott(0.5, 0.5, rewards=[0, 0.5])]
    agent = make_learner("colored_ucrl2", certain(arms), 1, horizon=100, ages=2, scale=0.05)
    spec, facts, memory = agent.learner, agent.task.facts, agent._actor.memory
    begins, decisions = [], []
    for _ in range(6):
        planning = memory.ints[PLANNING]
        decisions.append(agent.select().tolist())
        if planning:
            begins.append(agent.time)
        if agent.time < 6:
            agent.observe([0])
    assert decisions == [[0], [0], [0], [0], [0], [1]]
    # visits of (0, 1) in the episodes: 1, 1, 2; that of (1, 1) was the first step
    assert begins == [1, 3, 4, 6]
    tables = spec.tables(facts, memory)
    assert tables.before.tolist() == [4, 1, 0, 0, 0, 0]
    assert tables.outcomes.tolist() == [[4, 0], [1, 0]] + [[0, 0]] * 4
    laws, radii = spec.plausible(facts, memory)
    assert laws.tolist() == [[1, 0], [1, 0]] + [[0.5, 0.5]] * 4
    # 1 / sqrt(100) + 0.05 sqrt(56 * 2 ln(4 * 6 * 6 / 0.05) / n)
    np.testing.assert_allclose(radii, [0.8467183, 1.5934366, 2, 2, 2, 2], atol=1e-7)
    assert radii[0] / 2 == pytest.approx(0.4233591, abs=1e-7)


def test_the_paper_trusts_nothing_for_long():
    """With its own constants a law of two states is not narrowed before some 400 visits."""
    spec = learner("colored_ucrl2")
    arms, _, _ = two_channels()
    agent = make_learner("colored_ucrl2", certain(arms), 1, horizon=10_000)
    agent._actor.memory.ints[kernels.STEP] = 1000
    for visits, narrowed in ((400, False), (450, True)):
        spec.tables(agent.task.facts, agent._actor.memory).before[:] = visits
        _, radii = spec.plausible(agent.task.facts, agent._actor.memory)
        assert (radii[0] < 2) == narrowed


@numba.njit  # parts of kernels, which Python itself cannot call
def largest_mean(values, at, size, laws, colour, radius):
    return kernels._largest_mean(values, at, size, laws, colour, radius)


@numba.njit
def hopes_of(arms, earned, colours, following, values, scratch, hopes):
    return kernels._hopes(arms, earned, colours, following, values, scratch, hopes)


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_the_best_law_is_the_linear_programs(size):
    rng = np.random.default_rng(size)
    for _ in range(40):
        law = rng.dirichlet(np.ones(size)) * (rng.random(size) < 0.8) + 1e-300
        law = (law / law.sum())[None]
        values = rng.integers(0, 4, size).astype(float)  # ties too
        radius = float(rng.choice([0, 0.05, 0.3, 0.9, 1.5, 2, 3]))
        # variables: the law, then the distances
        eye = np.eye(size)
        best = linprog(
            np.concatenate([-values, np.zeros(size)]),
            A_ub=np.block([[eye, -eye], [-eye, -eye], [np.zeros(size), np.ones(size)]]),
            b_ub=np.concatenate([law[0], -law[0], [radius]]),
            A_eq=np.concatenate([np.ones(size), np.zeros(size)])[None],
            b_eq=[1],
        )
        found = largest_mean(values, 0, size, law, 0, radius)
        assert found == pytest.approx(-best.fun, abs=1e-7)
        assert found == pytest.approx(
            max(np.dot(p, values) for p in naive.extreme_laws(law[0], radius)), abs=1e-12
        )


def aggregated_truth(arms, ages):
    """Laws [C, B] of the truth, the stationary one from the last age on."""
    width = max(arm.num_states for arm in arms)
    rows = []
    for arm in arms:
        table = rs.theory.belief_table(arm, ages)
        rows += [table[s, n] for n in range(ages - 1) for s in range(arm.num_states)]
        rows.append(rs.theory.stationary(arm.passive))
    return np.array([np.pad(row, (0, width - len(row))) for row in rows])


def solved(agent, laws, radii, precision=1e-9):
    """Gain and policy of extended value iteration from the start."""
    spec, facts = agent.learner, agent.task.facts
    tables = spec.tables(facts, agent._actor.memory)
    policy = np.full(len(tables.policy), -1)
    arms = kernels.PlausibleArms(
        facts.sizes, tables.sets, np.concatenate(facts.rewards), laws, radii
    )
    start = int(agent._actor.memory.ints[kernels.STATE])
    gain, sweeps = kernels.optimistic_policy(arms, spec.ages, start, precision, 100_000, policy)
    assert sweeps < 100_000
    return gain, policy


def fast_arms(rng, sizes):
    return [random_arm(rng, size, rng.random(size), 0.9, controlled=False) for size in sizes]


@pytest.mark.parametrize(("sizes", "num_pulls", "ages"), [((2, 2), 1, 9), ((2, 3, 2), 2, 7)])
def test_without_radius_it_finds_the_optimum(sizes, num_pulls, ages):
    rng = np.random.default_rng(8)
    arms = fast_arms(rng, sizes)
    bandit = rs.RestlessBandit(arms, num_pulls)
    agent = make_learner("colored_ucrl2", certain(arms), num_pulls, ages=ages, most_states=10**5)
    laws = aggregated_truth(arms, ages)
    gain, policy = solved(agent, laws, np.zeros(len(laws)))
    best = rs.optimal(bandit)
    assert gain == pytest.approx(rs.evaluate(bandit, best).average_reward, abs=1e-6)
    # every joint state that can be reached, with the optimum's choice there
    cells = [(ages - 1) * size + 1 for size in sizes]
    sets = agent.learner.tables(agent.task.facts, agent._actor.memory).sets
    reached = np.flatnonzero(policy >= 0)
    assert len(reached) > 50
    for number in reached.tolist():
        row = np.unravel_index(number, cells)
        state = BeliefState(
            [int(cell) % size for cell, size in zip(row, sizes, strict=True)],
            [int(cell) // size + 1 for cell, size in zip(row, sizes, strict=True)],
        )
        assert sets[policy[number]].tolist() == best.select(state).tolist()


@pytest.mark.parametrize("case", [two_channels, two_pulls, three_states])
def test_it_hopes_for_no_less_than_the_truth(case):
    arms, num_pulls, options = case()
    agent = make_learner(
        "colored_ucrl2", certain(arms), num_pulls, horizon=20_000, scale=0.15, **options
    )
    spec, facts, memory = agent.learner, agent.task.facts, agent._actor.memory
    truth = aggregated_truth(arms, spec.ages)
    exact, _ = solved(agent, truth, np.zeros(len(truth)))
    spread = np.ptp(np.concatenate(facts.rewards))
    bandit = rs.RestlessBandit(arms, num_pulls)
    world = rs.World(bandit, start=agent.belief_state, seed=1)
    hopes = []
    for t in range(1, 6001):
        planning = memory.ints[PLANNING]
        chosen = agent.select()
        if planning:
            laws, radii = spec.plausible(facts, memory)
            assert (np.abs(laws - truth).sum(axis=1) <= radii + 1e-12).all()
            hopes.append(memory.floats[kernels.GAIN])
            assert hopes[-1] >= exact - spread / math.sqrt(t)
            assert solved(agent, laws, radii, 1e-4)[0] >= exact - 1e-4
        agent.observe(world.pull(chosen)[0])
    most = num_pulls * np.concatenate(facts.rewards).max()
    assert hopes[-1] < min(most, hopes[0]) - 0.02  # it came down


def test_laws_that_depend_on_other_arms_are_worth_no_less():
    """Of two arms: at least the best pair of independent laws, at most the better of all laws."""
    rng = np.random.default_rng(9)
    larger = 0
    for _ in range(30):
        laws = rng.dirichlet(np.ones(2), 2)
        radii = rng.choice([0.2, 0.6, 1.0], 2)
        values = rng.random(4)
        shares = np.zeros(4)
        sets = np.array([[0, 1]])
        scratch, hopes = np.zeros(4), np.zeros(1)
        colours, following = np.array([[0, 1]], np.int32), np.arange(4, dtype=np.int32)[None]
        arms = kernels.PlausibleArms(np.array([2, 2]), sets, shares, laws, radii)
        found = hopes_of(arms, shares[None], colours, following, values, scratch, hopes)
        pairs = product(*(naive.extreme_laws(laws[k], radii[k]) for k in range(2)))
        independent = max(np.outer(p, q).ravel() @ values for p, q in pairs)
        assert independent - 1e-12 <= found <= values.max()
        larger += found > independent + 1e-9
    assert 0 < larger < 30


def test_an_easy_bandit_is_learned():
    arms = [rs.gilbert_elliott(0.2, 0.2), rs.gilbert_elliott(0.8, 0.9)]
    setup = posed(
        certain(arms), 1, horizon=40_000, true_bandit=rs.RestlessBandit(arms, 1),
        learner=learner("colored_ucrl2", ages=4, scale=0.1),
    )  # fmt: skip
    done = replicate(*setup, np.array([10_000, 20_000, 40_000]), 4, seed=2, threads=1)
    regret = (done.oracle_expected - done.expected).mean(axis=0)
    assert regret[2] - regret[1] < 0.01 * 20_000  # the worse arm loses 0.7 a step
    assert (regret[2] - regret[1]) / 2 < 0.5 * regret[0]
    colours = 14
    assert (done.episodes[:, -1] <= colours * math.log2(8 * 40_000 / colours)).all()


def test_the_papers_own_radius_learns_in_the_end():
    arms = [rs.gilbert_elliott(0.2, 0.2), rs.gilbert_elliott(0.8, 0.9)]
    setup = posed(
        certain(arms), 1, horizon=400_000, true_bandit=rs.RestlessBandit(arms, 1),
        learner=learner("colored_ucrl2", ages=2),
    )  # fmt: skip
    done = replicate(*setup, np.array([10_000, 200_000, 400_000]), 1, seed=2)
    regret = (done.oracle_expected - done.expected)[0]
    assert (regret[2] - regret[1]) / 200_000 < 0.1 * regret[0] / 10_000


def test_a_snapshot_goes_on_alike():
    arms, num_pulls, options = two_pulls()
    agent = make_learner("colored_ucrl2", certain(arms), num_pulls, horizon=500, **options)
    world = rs.World(rs.RestlessBandit(arms, num_pulls), start=agent.belief_state, seed=3)
    for _ in range(200):
        agent.observe(world.pull(agent.select())[0])
    other = rs.restore(json.loads(json.dumps(agent.snapshot())))
    for _ in range(200):
        assert agent.select().tolist() == agent.select().tolist() == other.select().tolist()
        states = world.pull(agent.select())[0]
        agent.observe(states)
        other.observe(states)
    assert other.num_phases == agent.num_phases
    assert other.snapshot() == agent.snapshot()


def test_a_horizon_is_not_needed():
    arms, num_pulls, options = two_channels()
    agent = make_learner("colored_ucrl2", certain(arms), num_pulls, **options)
    simulate(rs.RestlessBandit(arms, num_pulls), agent, 100)
    t = int(agent._actor.memory.ints[kernels.STEP])
    _, radii = agent.learner.plausible(agent.task.facts, agent._actor.memory)
    visits = agent.learner.tables(agent.task.facts, agent._actor.memory).before
    seen = visits > 0
    spread = np.sqrt(56 * 2 * np.log(4 * 14 * t / 0.05) / visits[seen])
    np.testing.assert_allclose(radii[seen], 1 / math.sqrt(t) + spread)


def test_equal_rewards_and_sure_arms_are_played():
    sure = rs.Arm([[1.0]], rewards=[0.5])
    agent = make_learner("colored_ucrl2", certain([sure] * 3), 2, horizon=50)
    simulate(rs.RestlessBandit([sure] * 3, 2), agent, 50)
    assert agent._actor.memory.floats[kernels.GAIN] == pytest.approx(1)


@pytest.mark.parametrize(
    ("num_arms", "num_pulls", "options", "named"),
    [
        (8, 3, {}, "2,562,890,625 joint states"),
        (1000, 50, {}, "10^1176 joint states"),
        (4, 1, {}, "50,625 joint states"),
        (40, 20, {"ages": 1}, "10^17 outcomes, of at most 262,144"),
    ],
)
def test_large_bandits_are_refused(num_arms, num_pulls, options, named):
    with pytest.raises(rs.errors.TooLargeError) as refused:
        make_learner(
            "colored_ucrl2", rs.grid_prior([0.3, 0.7], num_arms), num_pulls, horizon=10, **options
        )
    assert named in str(refused.value)
    assert "see its options ages (" in str(refused.value)
    assert len(str(refused.value)) < 120


def test_the_limit_can_be_moved():
    prior = rs.grid_prior([0.3, 0.7], 4)
    make_learner("colored_ucrl2", prior, 1, ages=4)
    make_learner("colored_ucrl2", prior, 1, most_states=50_625)


@pytest.mark.parametrize(
    "options",
    [
        {"ages": 0},
        {"ages": 2.5},
        {"delta": 0},
        {"delta": 1.5},
        {"epsilon": -1},
        {"scale": -0.1},
        {"most_states": 0},
        {"colour": "red"},
    ],
)
def test_wrong_options_are_refused(options):
    with pytest.raises(rs.errors.ProblemError) as refused:
        learner("colored_ucrl2", **options)
    assert next(iter(options)) in str(refused.value)
