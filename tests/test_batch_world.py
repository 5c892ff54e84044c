"""Worlds that begin anew, many copies of one at once, and beliefs and indices as arrays."""

import copy
import pickle

import numpy as np
import pytest

import restive as rs
from restive.errors import ProblemError, TooLargeError
from restive.learn.task import make_task
from restive.measure.replication import with_truths

CHANNELS = rs.RestlessBandit([rs.gilbert_elliott(*p) for p in [(0.3, 0.7), (0.6, 0.4)] * 2], 2)
THREE = rs.Arm(
    [[0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.1, 0.1, 0.8]],
    [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.2, 0.4, 0.4]],
    [0, 0.5, 1],
)
PAYING = rs.gilbert_elliott(0.2, 0.9, (0.0, 2.0), (0.1, 0.7))
MIXED = rs.RestlessBandit([THREE, PAYING, rs.gilbert_elliott(0.4, 0.5), THREE], 2)
CALL = rs.Arm([[0.4, 0.6], [0.1, 0.9]], [[0.9, 0.1], [0.3, 0.7]], [0, 1], [0, 1], seen="always")
SHOWN = rs.RestlessBandit([CALL, PAYING, THREE, CALL], 2)
OLD = rs.BeliefState([0, 1, 0, 2], [7, 1, 400, 2])
SLOW = rs.gilbert_elliott(1e-6, 1 - 1e-6)


def shown_of(bandit, arms):
    """Return the arms of which something is seen: in the order of pulls, or all that are shown."""
    always = [k for k, arm in enumerate(bandit.arms) if arm.always_seen]
    return sorted({*always, *arms.tolist()}) if always else arms


def arms_at_random(rng, copies, num_arms, count):
    return np.argsort(rng.random((copies, num_arms)), axis=1)[:, :count]


@pytest.mark.parametrize("bandit", [CHANNELS, MIXED, SHOWN], ids=["channels", "mixed", "shown"])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_copy_is_the_world_of_its_seed_to_the_bit(bandit, count):
    seeds = [0, 3, 2**64 - 1, 3]
    start = OLD if bandit is MIXED else None
    batch = rs.BatchWorld(bandit, seeds, start=start)
    worlds = [rs.World(bandit, seed=seed, start=start) for seed in seeds]
    rng = np.random.default_rng(1)
    for _ in range(60):
        arms = arms_at_random(rng, 4, 4, count)
        states, earned, expected = batch.pull(arms)
        for m, world in enumerate(worlds):
            alone = world.pull(arms[m])
            assert np.array_equal(states[m], world.belief_state.last_state[arms[m]])
            assert np.array_equal(
                alone[0], world.belief_state.last_state[shown_of(bandit, arms[m])]
            )
            assert (earned[m], expected[m]) == alone[1:]
            assert np.array_equal(batch.last_state[m], world.belief_state.last_state)
            assert np.array_equal(batch.elapsed[m], world.belief_state.elapsed)
            assert np.array_equal(batch.beliefs[m], world.beliefs)
        assert batch.time == worlds[0].time


def test_copies_of_different_systems():
    prior = rs.IndependentPrior(
        [rs.ArmPrior([THREE]), rs.ArmPrior([PAYING]), *rs.beta_prior(num_arms=2).arms]
    )
    bandits = [prior.sample(seed, 2) for seed in range(6)]
    batch = rs.BatchWorld(bandits, range(6))
    worlds = [rs.World(bandit, seed=m) for m, bandit in enumerate(bandits)]
    rng = np.random.default_rng(2)
    for _ in range(40):
        arms = arms_at_random(rng, 6, 4, 2)
        states, earned, expected = batch.pull(arms)
        for m, world in enumerate(worlds):
            alone = world.pull(arms[m])
            assert np.array_equal(states[m], alone[0])
            assert (earned[m], expected[m]) == alone[1:]
            assert np.array_equal(batch.beliefs[m], world.beliefs)


def test_resetting_is_making_anew():
    for hidden in (False, True):
        used = rs.World(MIXED, seed=1, replication=3, hidden=hidden, start=OLD)
        for _ in range(9):
            used.pull([0, 1])
        for seed, start in ((5, None), (6, rs.BeliefState([1, 1, 1, 1], [1, 2, 3, 4])), (7, None)):
            used.reset(seed, start=start)
            fresh = rs.World(
                MIXED,
                seed=seed,
                replication=3,
                hidden=hidden,
                start=OLD if start is None else start,
            )
            assert used.time == fresh.time == 1
            assert used.seed == seed
            for t in range(20):
                arms = [t % 4, (t + 1) % 4]
                for one, other in zip(used.pull(arms), fresh.pull(arms), strict=True):
                    assert np.array_equal(one, other)
            assert np.array_equal(used.hidden_states, fresh.hidden_states)
    used.reset()
    assert used.seed < 2**32
    lucks = [rs.World(MIXED, seed=1, replication=r) for r in (3, 3, 4)]
    seen = [[world.pull([0, 1])[0].tolist() for _ in range(20)] for world in lucks]
    assert seen[0] == seen[1] != seen[2]
    batch = rs.BatchWorld(MIXED, [1, 2])
    batch.pull([[0, 1], [2, 3]])
    batch.reset([3, 4], start=OLD)
    fresh = rs.BatchWorld(MIXED, [3, 4], start=OLD)
    assert np.array_equal(batch.pull([[0], [1]])[0], fresh.pull([[0], [1]])[0])
    assert repr(batch) == "BatchWorld(2 copies, 4 arms, 2 pulls, time 2)"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_a_batch_goes_its_own_way(copied):
    batch = rs.BatchWorld(MIXED, range(3))
    batch.pull([[0, 1]] * 3)
    other = copied(batch)
    arms = [[1, 2], [0, 3], [2, 3]]
    mine, theirs = batch.pull(arms), other.pull(arms)
    assert np.array_equal(mine[0], theirs[0])
    batch.pull(arms)
    assert other.time == 3
    assert np.array_equal(other.beliefs, np.stack([world_after(m, arms[m]) for m in range(3)]))


def world_after(seed, arms):
    world = rs.World(MIXED, seed=seed)
    world.pull([0, 1])
    world.pull(arms)
    return world.beliefs


def test_beliefs_are_powers_of_matrices():
    found = rs.theory.beliefs(MIXED, OLD)
    assert found.shape == (4, 3)
    for k, arm in enumerate(MIXED.arms):
        power = np.linalg.matrix_power(arm.passive, OLD.elapsed[k] - 1)
        law = (arm.active @ power)[OLD.last_state[k]]
        np.testing.assert_allclose(found[k, : arm.num_states], law, atol=1e-12)
        assert not found[k, arm.num_states :].any()
    assert np.array_equal(rs.World(MIXED, start=OLD).beliefs, found)
    held = rs.theory.beliefs(MIXED, OLD, max_elapsed=2)
    assert np.array_equal(held[3], found[3])
    np.testing.assert_allclose(held[0], (THREE.active @ THREE.passive)[0], atol=1e-14)
    with pytest.raises(ProblemError, match="expected a BeliefState"):
        rs.theory.beliefs(MIXED, 3)
    with pytest.raises(ProblemError, match="the state is for 1 arms, the bandit has 4"):
        rs.theory.beliefs(MIXED, rs.BeliefState([0], [1]))


def test_an_arm_that_is_always_seen_is_where_it_is_seen():
    world = rs.World(SHOWN, seed=3)
    for _ in range(30):
        world.pull([1, 3])
        state = world.belief_state
        for k in (0, 3):
            assert np.array_equal(world.beliefs[k], np.arange(3) == state.last_state[k])
        np.testing.assert_allclose(world.beliefs.sum(axis=1), 1)
    assert np.array_equal(rs.theory.beliefs(SHOWN, state), world.beliefs)


def test_indices_of_many_states_are_those_of_each():
    policy = rs.whittle(MIXED)
    rng = np.random.default_rng(0)
    last = np.stack([rng.integers(arm.num_states, size=50) for arm in MIXED.arms], axis=1)
    ages = rng.integers(1, 300, size=(50, 4))
    many = policy.index_many(last, ages)
    for m in range(50):
        assert np.array_equal(many[m], policy.index(rs.BeliefState(last[m], ages[m])))
        for k in range(4):
            table = policy.table(k)
            assert many[m, k] == table[last[m, k], min(ages[m, k], table.shape[1]) - 1]


def test_a_slow_arm_can_be_held():
    bandit = rs.RestlessBandit([SLOW, THREE], 1)
    with pytest.raises(TooLargeError, match="mixes too slowly"):
        rs.BatchWorld(bandit, [0])
    start = rs.BeliefState([1, 0], [20_000, 1])
    held = rs.BatchWorld(bandit, [0], start=start, hold_slow=True)
    alone = rs.World(bandit, start=start, hold_slow=True)
    assert np.array_equal(held.beliefs[0], alone.beliefs)
    law = np.linalg.matrix_power(SLOW.active, 10_000)[1]
    np.testing.assert_allclose(alone.beliefs[0, :2], law, atol=1e-12)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([[0, 1]], "arms to pull must be 2 lists of as many whole numbers, got"),
        ([[0, 1], [0]], "arms to pull must be 2 lists"),
        ([0, 1], "arms to pull must be 2 lists"),
        ([[0.0, 1.0], [0.0, 1.0]], "arms to pull must be 2 lists"),
        (None, "arms to pull must be 2 lists"),
        ([[0, 1], [0, 4]], r"copy 1: expected different arms of 0 to 3, \[0, 4\] were pulled"),
        ([[-1, 1], [0, 1]], r"copy 0: expected different arms of 0 to 3, \[-1, 1\] were pulled"),
        ([[0, 1], [2, 2]], r"copy 1: expected different arms of 0 to 3, \[2, 2\] were pulled"),
    ],
)
def test_what_cannot_be_pulled_changes_nothing(arms, message):
    batch = rs.BatchWorld(MIXED, [0, 1])
    before = batch.beliefs
    with pytest.raises(ProblemError, match=message):
        batch.pull(arms)
    assert batch.time == 1
    assert np.array_equal(batch.beliefs, before)


@pytest.mark.parametrize(
    ("bandit", "seeds", "message"),
    [
        (3, [0], "bandit 0: expected a RestlessBandit, got 3"),
        ([MIXED], [0, 1], "1 bandits and 2 seeds were given; each copy needs one of each"),
        ([MIXED, CHANNELS], [0, 1], "bandit 1 differs from bandit 0 in its arms"),
        (MIXED, [], "a batch needs at least one seed, got none"),
        (MIXED, 3, "seeds must be a list with a seed for each copy, got 3"),
        (MIXED, [-1], "seed must be a whole number from 0"),
    ],
)
def test_what_is_no_batch(bandit, seeds, message):
    with pytest.raises(ProblemError, match=message):
        rs.BatchWorld(bandit, seeds)


def test_a_batch_begins_anew_with_as_many_seeds():
    with pytest.raises(ProblemError, match="1 seeds were given, each of the 2 copies needs one"):
        rs.BatchWorld(MIXED, [0, 1]).reset([0])


POOLED = rs.IndependentPrior([rs.beta_prior(num_arms=1).arms[0]] * 3, [[0, 2]])
WEIGHTED = rs.IndependentPrior(
    [rs.ArmPrior([rs.gilbert_elliott(0.1, p) for p in (0.2, 0.5, 0.8)], [5, 0, 1])] * 2
)
JOINT = rs.JointPrior([CHANNELS, rs.RestlessBandit(CHANNELS.arms[::-1], 2)], [1, 3])


@pytest.mark.parametrize(
    "prior",
    [rs.grid_prior([0.1, 0.5, 0.9], 3), rs.beta_prior(num_arms=2), POOLED, WEIGHTED, JOINT],
    ids=["grid", "beta", "pooled", "weighted", "joint"],
)
def test_a_sample_is_the_truth_that_a_replication_meets(prior):
    task = make_task(prior, 2, "myopic", 9)
    for seed in range(30):
        meant, kinds = with_truths(task, 1, seed)
        assert prior.sample(seed, 2).arms == meant.bandit_of(kinds[0]).arms


def test_samples_have_the_weights_of_the_prior():
    drawn = [WEIGHTED.sample(seed, 1).arms[0].active[1, 1] for seed in range(3000)]
    assert set(drawn) == {0.2, 0.8}
    # 4 standard errors: one false alarm in 16,000 seeds, had they not been fixed
    assert abs(np.mean(np.array(drawn) == 0.2) - 5 / 6) < 4 * np.sqrt(5 / 36 / 3000)


def test_what_cannot_be_sampled():
    with pytest.raises(ProblemError, match="sample needs num_pulls"):
        WEIGHTED.sample(0)
    with pytest.raises(ProblemError, match="num_pulls must be between 1 and the number of arms, 2"):
        WEIGHTED.sample(0, 3)
    with pytest.raises(ProblemError, match="the prior's systems have 2 pulls, num_pulls is 1"):
        JOINT.sample(0, 1)
    with pytest.raises(ProblemError, match="seed must be a whole number"):
        JOINT.sample(-1)
    assert JOINT.sample(None).num_pulls == 2
