"""Whittle indices against the definition: a naive oracle, and an independent package."""

import numpy as np
import pytest

import restive as rs
from oracles.peer_markovianbandit import peer_whittle_many
from oracles.whittle_naive import advantage, whittle_bisection
from restive.plan.subsidy import subsidy_path
from restive.problem.beliefs import settled_elapsed
from strategies import as_oracle, random_arm

CASES = [
    (size, controlled, discount)
    for size in (2, 3, 5)
    for controlled in (False, True)
    for discount in (1.0, 0.9)
]


@pytest.mark.parametrize(("size", "controlled", "discount"), CASES)
def test_indices_are_those_of_bisection_on_the_subsidy(size, controlled, discount):
    """For every (s, n) of arms that forget quickly, so that the naive oracle can be run in full."""
    rng = np.random.default_rng([size, controlled, int(10 * discount)])
    arm = random_arm(rng, size, spread=0.85, controlled=controlled)
    found = rs.policies.whittle_index(arm, discount=discount)
    expected = whittle_bisection(*as_oracle(arm), settled_elapsed(arm), discount, 1e-8)
    assert found.indexable
    assert found.index == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("size", "controlled", "discount"), CASES)
def test_pulling_is_best_just_below_the_index_and_not_just_above(size, controlled, discount):
    """Slower and more uneven arms; the signs of the oracle's advantage, for a dozen (s, n) each."""
    rng = np.random.default_rng([7, size, controlled, int(10 * discount)])
    for _ in range(8):
        arm = random_arm(rng, size, spread=0.45, controlled=controlled)
        found = rs.policies.whittle_index(arm, discount=discount)
        length = settled_elapsed(arm)
        for _ in range(12):
            s, n = int(rng.integers(size)), min(int(rng.integers(12)), length - 1)
            below, above = (
                advantage(*as_oracle(arm), subsidy, length, discount)[s, n]
                for subsidy in (found.index[s, n] - 1e-6, found.upper[s, n] + 1e-6)
            )
            assert below >= 0, f"{arm}, discount {discount}, state {s}, elapsed {n + 1}"
            assert above < 0, f"{arm}, discount {discount}, state {s}, elapsed {n + 1}"


@pytest.mark.parametrize("discount", [0.95, 0.5])
@pytest.mark.parametrize("controlled", [False, True])
def test_advantages_along_the_path_are_those_of_policy_iteration(controlled, discount):
    rng = np.random.default_rng([3, controlled])
    for size in (2, 3, 5):
        arm = random_arm(rng, size, spread=0.6, controlled=controlled)
        path = subsidy_path(arm, discount)
        for subsidy in (-0.5, 0.2, 0.45, 0.6, 0.8, 1.5):
            expected = advantage(*as_oracle(arm), subsidy, path.beliefs.shape[1], discount)
            assert path.advantage(subsidy) == pytest.approx(expected, abs=1e-9)


def test_average_advantages_are_the_limits_of_the_discounted_ones():
    rng = np.random.default_rng(4)
    for size in (2, 3, 5):
        arm = random_arm(rng, size, spread=0.6)
        path = subsidy_path(arm)
        for subsidy in (-0.5, 0.2, 0.45, 0.6, 0.8, 1.5):
            expected = advantage(*as_oracle(arm), subsidy, path.beliefs.shape[1], 1.0)
            assert path.advantage(subsidy) == pytest.approx(expected, abs=1e-6)


def test_at_a_jump_the_advantage_is_the_one_from_above():
    """A plateau arm at its limiting index: below it is pulled for ever, above it hardly at all."""
    arm = rs.gilbert_elliott(0.8, 0.3)
    path = subsidy_path(arm)
    jump = max(top for top, average in path.pieces[:, :2] if average)
    assert jump == pytest.approx(rs.policies.whittle_index(arm).limit, abs=1e-11)
    below, at, above = (path.advantage(jump + step) for step in (-1e-9, 0, 1e-9))
    assert at == pytest.approx(above, abs=1e-8)
    assert np.abs(below - above).max() > 0.05


def test_indices_agree_with_an_independent_package_where_it_gives_a_number():
    """markovianbandit-pkg, at discount 0.9 and, for the average reward, at 0.999999."""
    rng = np.random.default_rng(2)
    arms = [
        random_arm(rng, size, spread=0.6, controlled=controlled)
        for size in (2, 2, 3, 4)
        for controlled in (False, True)
    ]
    problems = [
        (*as_oracle(arm), settled_elapsed(arm), discount)
        for arm in arms
        for discount in (0.9, 0.999999)
    ]
    answers = dict(enumerate(peer_whittle_many(problems)))
    with_number = {i: table for i, table in answers.items() if table is not None}
    assert len(with_number) >= 10, "the peer should know most of them"
    for i, expected in with_number.items():
        arm, average = arms[i // 2], i % 2 == 1
        found = rs.policies.whittle_index(arm, discount=1.0 if average else 0.9)
        assert found.index == pytest.approx(expected, abs=2e-6 if average else 1e-9), f"{arm}"
