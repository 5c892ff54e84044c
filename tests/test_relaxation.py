"""The relaxation bound: a naive minimisation over the price of a pull, and special cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linprog, minimize_scalar

import restive as rs
from oracles.whittle_naive import belief_table
from restive.plan.relaxation import relaxed
from restive.plan.subsidy import subsidy_path
from restive.problem.beliefs import settled_elapsed
from strategies import arms, bandits, random_arm


def naive_gain(arm, subsidy):
    """Return the optimal average reward of one arm with a subsidy, by linear programming.

    Over the long-run shares x(s, n, pulled or not) of the chain in which age L stays L.
    """
    length = settled_elapsed(arm)
    size = arm.num_states
    beliefs = belief_table(arm.active, arm.passive, length)
    cells = size * length
    earn = np.concatenate([(beliefs @ arm.rewards).ravel(), np.full(cells, subsidy)])
    balance = np.zeros((cells, 2 * cells))
    for s in range(size):
        for n in range(length):
            here = s * length + n
            balance[here, [here, cells + here]] += 1
            balance[s * length + min(n + 1, length - 1), cells + here] -= 1
            balance[np.arange(size) * length, here] -= beliefs[s, n]
    system = np.vstack([balance, np.ones(2 * cells)])
    right = np.zeros(cells + 1)
    right[-1] = 1
    return -linprog(-earn, A_eq=system, b_eq=right, bounds=(0, 1), method="highs").fun


def naive_bound(bandit):
    """Minimise over the price by golden section; the function is convex."""

    def total(price):
        gains = sum(naive_gain(arm, price) for arm in bandit.arms)
        return gains - (bandit.num_arms - bandit.num_pulls) * price

    # no price below the least index of any arm, and none above the largest reward, is of use
    low = min(rs.policies.whittle_index(arm).index.min() for arm in bandit.arms) - 0.1
    return minimize_scalar(total, bounds=(low, 1.1), method="bounded", options={"xatol": 1e-10})


@pytest.mark.parametrize("seed", range(4))
def test_the_bound_is_the_least_over_the_price(seed):
    rng = np.random.default_rng([4, seed])
    sizes = [(2, 3), (2, 2, 3), (3, 3), (2, 4)][seed]
    chosen = [random_arm(rng, size, spread=0.75) for size in sizes]
    bandit = rs.RestlessBandit(chosen, 1 + seed % 2)
    if bandit.num_pulls == bandit.num_arms:
        bandit = rs.RestlessBandit(chosen, 1)
    expected = naive_bound(bandit)
    solution = relaxed(bandit)
    assert solution.bound == pytest.approx(expected.fun, abs=1e-7)
    at_price = sum(naive_gain(arm, solution.subsidy) for arm in chosen)
    at_price -= (bandit.num_arms - bandit.num_pulls) * solution.subsidy
    assert at_price == pytest.approx(solution.bound, abs=1e-7)


def test_arms_whose_reward_is_the_same_in_every_state_count_like_any_other():
    """A sure arm of reward 1/2 beside a channel, and one of reward 1, which is all one can have."""
    channel = rs.gilbert_elliott(0.3, 0.7)
    half, one = (rs.Arm([[1.0]], rewards=[reward]) for reward in (0.5, 1.0))
    bandit = rs.RestlessBandit([half, channel], 1)
    assert rs.relaxation_bound(bandit) == pytest.approx(naive_bound(bandit).fun, abs=1e-7)
    assert rs.relaxation_bound(rs.RestlessBandit([one, channel], 1)) == pytest.approx(1, abs=1e-9)
    flat = rs.Arm([[0.5, 0.5], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]], [0.2, 0.2])
    assert rs.relaxation_bound(rs.RestlessBandit([flat], 1)) == pytest.approx(0.2, abs=1e-12)


def test_arms_that_never_pay_have_the_bound_zero():
    arm = rs.gilbert_elliott(0.3, 0.7, rewards=[0, 0])
    assert rs.relaxation_bound(rs.RestlessBandit([arm, arm], 1)) == 0


def test_gains_along_the_path_are_those_of_linear_programming():
    rng = np.random.default_rng(6)
    for size in (2, 3):
        arm = random_arm(rng, size, spread=0.75)
        tops, intercepts, slopes = subsidy_path(arm).breakpoints()
        for subsidy in np.linspace(-0.5, 0.99 * tops[0], 12):
            piece = np.flatnonzero(tops >= subsidy)[-1]
            found = intercepts[piece] + slopes[piece] * subsidy
            assert found == pytest.approx(naive_gain(arm, subsidy), abs=1e-8)


@given(arms(sizes=(2, 3, 4), spread=0.5))
def test_the_gain_is_continuous_convex_and_has_slopes_between_zero_and_one(arm):
    """The slope is the share of time without a pull."""
    tops, intercepts, slopes = subsidy_path(arm).breakpoints()
    assert (np.diff(tops) < 0).all()
    assert (np.diff(slopes) <= 1e-10).all()
    assert slopes[0] <= 1
    assert intercepts[0] + slopes[0] * tops[0] == pytest.approx(tops[0], abs=1e-12)
    assert slopes[-1] == pytest.approx(0, abs=1e-9)
    joins = tops[1:]
    left = intercepts[1:] + slopes[1:] * joins
    right = intercepts[:-1] + slopes[:-1] * joins
    assert left == pytest.approx(right, abs=1e-9)


def test_the_bound_of_the_paper_notes(paper_bandit):
    solution = relaxed(paper_bandit)
    assert solution.bound == pytest.approx(1.1283678, abs=1e-7)
    assert solution.subsidy == pytest.approx(0.5, abs=1e-9)
    assert rs.relaxation_bound(paper_bandit) == solution.bound


@settings(max_examples=30)
@given(bandits(num_arms=(2, 3)))
def test_pulling_all_arms_has_the_sum_of_their_long_run_rewards_as_bound(bandit):
    everything = rs.RestlessBandit(bandit.arms, bandit.num_arms)
    expected = sum(rs.theory.stationary(arm.active) @ arm.rewards for arm in bandit.arms)
    assert rs.relaxation_bound(everything) == pytest.approx(expected, abs=1e-9)


def test_independent_arms_have_the_largest_means_as_bound():
    means = [0.3, 0.8, 0.5, 0.6]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(p, p) for p in means], 2)
    assert rs.relaxation_bound(bandit) == pytest.approx(1.4, abs=1e-12)


@settings(max_examples=30)
@given(bandits(num_arms=(2, 3)))
def test_the_bound_of_every_arm_twice_and_twice_the_pulls_is_twice_the_bound(bandit):
    double = rs.RestlessBandit(bandit.arms * 2, 2 * bandit.num_pulls)
    assert rs.relaxation_bound(double) == pytest.approx(2 * rs.relaxation_bound(bandit), abs=1e-10)


@settings(max_examples=30)
@given(bandits(num_arms=(3,)))
def test_the_bound_grows_with_the_pulls_and_ever_less(bandit):
    """Each pull adds at most one, and no more than the one before."""
    bounds = [0, *(rs.relaxation_bound(rs.RestlessBandit(bandit.arms, n)) for n in (1, 2, 3))]
    first, second, third = np.diff(bounds)
    assert first >= second - 1e-9
    assert second >= third - 1e-9
    assert first <= 1 + 1e-12


def test_whittle_nears_the_bound_as_arms_and_pulls_grow_together():
    """Indexable arms; the gap per pull with 2 and with 32 of each kind, simulated.

    Measured 0.0101 and 0.0002 with standard errors 0.0005 and 0.00014: both limits below are more
    than seven standard errors away, false alarms below 1e-9 (Student's t, 63 degrees).
    """
    kinds = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.6)]
    gaps = []
    for count in (2, 32):
        bandit = rs.RestlessBandit(kinds * count, count)
        value = rs.evaluate(bandit, rs.whittle(bandit), steps=2000, max_states=1)
        gaps.append((rs.relaxation_bound(bandit) - value.average_reward) / count)
    assert gaps[1] < 0.25 * gaps[0]
    assert gaps[1] > -1e-3


def test_the_relaxation_of_an_arm_without_a_limit_is_refused_naming_it():
    flip = rs.Arm([[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]], [0, 1], name="flip")
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), flip], 1)
    with pytest.raises(
        rs.errors.AssumptionError, match=r"arm 1 \('flip'\): .*periodic with period 2"
    ):
        rs.relaxation_bound(bandit)


def test_lp_priority_is_the_advantage_at_the_best_price(paper_bandit):
    policy = rs.policies.lp_priority(paper_bandit)
    solution = relaxed(paper_bandit)
    for k in range(4):
        expected = solution.paths[solution.kinds.of[k]].advantage(solution.subsidy)
        assert np.array_equal(policy.table(k), expected)


def test_lp_priority_beats_whittle_on_the_instance_of_the_paper(paper_bandit):
    by_whittle, by_priority = (
        rs.evaluate(paper_bandit, mapping(paper_bandit)).average_reward
        for mapping in (rs.whittle, rs.policies.lp_priority)
    )
    assert by_whittle < by_priority < 1.1196940387
