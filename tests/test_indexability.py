"""Arms that are not indexable: they are found, and both ends of the ambiguity are right."""

import numpy as np
import pytest

import restive as rs
from oracles.whittle_naive import active_intervals
from oracles.whittle_precise import precise_advantage
from restive.problem.beliefs import settled_elapsed
from strategies import as_oracle, random_arm


def spread_out(matrix):
    """Mix in the uniform law, so that beliefs settle quickly."""
    return 0.6 * np.array(matrix) + 0.4 / len(matrix)


# active, passive before mixing, rewards, discount, and the (s, n) with the widest ambiguity
KNOWN = [
    (
        [[0, 0, 1], [0.1, 0.9, 0], [1, 0, 0]],
        [[0.1, 0.5, 0.4], [0, 0.1, 0.9], [0, 0, 1]],
        [0.9, 0.9, 0.1],
        1.0,
        (2, 1),
    ),
    (
        [[1, 0, 0], [0.1, 0.2, 0.7], [0, 1, 0]],
        [[0.4, 0, 0.6], [1, 0, 0], [0.3, 0, 0.7]],
        [0.7, 0.8, 0],
        1.0,
        (2, 1),
    ),
    (
        [[1, 0, 0], [0.1, 0, 0.9], [0, 1, 0]],
        [[1, 0, 0], [0.3, 0, 0.7], [0.9, 0.1, 0]],
        [1, 0.2, 1],
        0.9,
        (1, 1),
    ),
    (
        [[0.02, 0.01, 0.97], [0, 0.973, 0.027], [1, 0, 0]],
        np.eye(3),
        [0.2, 1, 1],
        1.0,
        (0, 1),
    ),
    # shallow: between the ends the advantage falls to -0.004 only, and then rises in a hump that
    # is over before the next breakpoint (two mutants of the kernel miss this arm alone)
    (
        [[0.25, 0, 0.75, 0], [0, 0, 2 / 3, 1 / 3], [1 / 6, 0.5, 1 / 3, 0], [0, 0, 0.75, 0.25]],
        [[0, 0, 1, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1]],
        [1, 1, 1, 0.7],
        0.9,
        (0, 2),
    ),
]


def shown_by_the_oracle(arm, found, s, n):
    """Say whether pulling in (s, n) is best / not / best / not around the two ends."""
    lower, upper = found.index[s, n - 1], found.upper[s, n - 1]
    assert upper > lower + 1e-4
    subsidies = np.array([lower - 1e-6, lower + 1e-6, upper - 1e-6, upper + 1e-6])
    length = settled_elapsed(arm)
    best = active_intervals(*as_oracle(arm), length, found.discount, subsidies)
    return best[:, s, n - 1].tolist()


@pytest.mark.parametrize(("active", "passive", "rewards", "discount", "place"), KNOWN)
def test_known_arms_are_not_indexable_and_both_ends_are_right(
    active, passive, rewards, discount, place
):
    arm = rs.Arm(active, spread_out(passive), rewards)
    found = rs.policies.whittle_index(arm, discount=discount)
    assert not found.indexable
    widest = np.unravel_index((found.upper - found.index).argmax(), found.index.shape)
    assert (widest[0], widest[1] + 1) == place
    assert shown_by_the_oracle(arm, found, *place) == [True, False, True, False]


def test_random_three_state_arms_called_not_indexable_are_shown_to_be_so():
    rng = np.random.default_rng(1)
    shown = 0
    while shown < 6:
        active, passive = (np.round(rng.dirichlet(np.full(3, 0.25), 3), 2) for _ in range(2))
        active, passive = (m / m.sum(axis=1, keepdims=True) for m in (active, passive))
        active = 0.95 * active + 0.05 / 3
        arm = rs.Arm(active, spread_out(passive), np.round(rng.random(3), 1))
        discount = float(rng.choice([1.0, 0.9]))
        found = rs.policies.whittle_index(arm, discount=discount)
        gap = found.upper - found.index
        if found.indexable or gap.max() < 1e-3:
            continue
        s, n = np.unravel_index(gap.argmax(), gap.shape)
        signs = shown_by_the_oracle(arm, found, s, n + 1)
        assert signs == [True, False, True, False], f"{arm}, discount {discount}"
        shown += 1


def test_random_arms_called_indexable_turn_passive_once_and_for_all():
    """On a grid of subsidies no (s, n) is active above a subsidy at which it is passive."""
    rng = np.random.default_rng(3)
    for size in (2, 3, 3, 4):
        arm = random_arm(rng, size, spread=0.6)
        found = rs.policies.whittle_index(arm)
        assert found.indexable
        assert np.array_equal(found.index, found.upper)
        grid = np.linspace(found.index.min() - 0.1, found.index.max() + 0.1, 41)
        best = active_intervals(*as_oracle(arm), settled_elapsed(arm), 1.0, grid)
        assert (np.diff(best.astype(int), axis=0) <= 0).all()
        far = np.abs(grid[:, None, None] - found.index) > 1e-6
        assert np.array_equal(best[far], (grid[:, None, None] < found.index)[far])


def test_channels_are_indexable():
    rng = np.random.default_rng(4)
    for p01, p11 in rng.uniform(0.05, 0.95, (30, 2)):
        for discount in (1.0, 0.9):
            assert rs.policies.whittle_index(
                rs.gilbert_elliott(p01, p11), discount=discount
            ).indexable


def test_the_policy_takes_the_lower_end():
    active, passive, rewards, _, _ = KNOWN[0]
    arm = rs.Arm(active, spread_out(passive), rewards)
    policy = rs.whittle(rs.RestlessBandit([arm, rs.gilbert_elliott(0.3, 0.7)], 1))
    found = rs.policies.whittle_index(arm)
    assert np.array_equal(policy.table(0), found.index)
    assert not np.array_equal(policy.table(0), found.upper)


# Arms that are rarely left: a class of theirs pays for 1e6 pulls and more, and rounding errors are
# as much larger. (active, passive, rewards, and an (s, n) that was once said to be ambiguous.)
RARELY_LEFT = [
    ([[0.95, 0.05], [0.41, 0.59]], [[0.96, 0.04], [1e-9, 1 - 1e-9]], [0.303, 0.995], (0, 439)),
    (
        [[0.912, 0.088], [0.353, 0.647]],
        [[0.629, 0.371], [2.5e-9, 1 - 2.5e-9]],
        [0.562, 0.906],
        (0, 35),
    ),
    (
        [[0.659, 0.341], [1.48e-9, 1 - 1.48e-9]],
        [[0.333, 0.667], [5.5e-8, 1 - 5.5e-8]],
        [0.097, 0.873],
        (0, 16),
    ),
]


@pytest.mark.parametrize(("active", "passive", "rewards", "place"), RARELY_LEFT)
def test_rounding_errors_of_rarely_left_arms_are_no_reversals(active, passive, rewards, place):
    arm = rs.Arm(active, passive, rewards)
    found = rs.policies.whittle_index(arm)
    assert found.indexable
    np.testing.assert_array_equal(found.upper, found.index)
    s, n = place
    index, length = found.index[s, n - 1], found.index.shape[1]
    for subsidy, best in (
        (-1e-3, True),
        (-1e-6, True),
        (-1e-8, True),
        (1e-8, False),
        (1e-6, False),
    ):
        advantage = precise_advantage(arm, length, index + subsidy)
        if advantage is not None:  # None where it is best never pulled
            assert (advantage[s][n - 1] > 0) == best, subsidy


def test_a_hump_of_a_rarely_left_arm_is_a_reversal():
    active = np.array([[0.28, 0.11, 0.62], [0.0018, 1.0, 1.2e-15], [0.85, 0.15, 2.6e-10]])
    passive = np.array([[0.98, 0.017, 4.1e-08], [0.12, 0.88, 6.3e-06], [0.0018, 0.066, 0.93]])
    active, passive = (matrix / matrix.sum(axis=1)[:, None] for matrix in (active, passive))
    arm = rs.Arm(active, passive, [0.2, 0.98, 0.21])
    found = rs.policies.whittle_index(arm)
    assert not found.indexable
    s, n = np.unravel_index((found.upper - found.index).argmax(), found.index.shape)
    assert shown_by_the_oracle(arm, found, s, n + 1) == [True, False, True, False]
