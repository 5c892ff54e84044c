"""Whittle indices of degenerate arms: the right number or a clear error, never nan."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from oracles.whittle_naive import whittle_bisection
from restive.problem.chains import closed_classes
from strategies import as_oracle, stochastic_matrices

MIXING = np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]])
SLOW = rs.gilbert_elliott(1e-5, 1 - 1e-5)


def test_channels_that_mix_too_slowly_for_a_table_have_an_index_for_the_ages_asked_for():
    with pytest.raises(rs.errors.TooLargeError, match="give max_elapsed ="):
        rs.policies.whittle_index(SLOW)
    index = rs.policies.whittle_index(SLOW, max_elapsed=4).index
    assert index[0, 0] == pytest.approx(1e-5, rel=1e-9)
    assert index[0, 1] == pytest.approx(3e-5, rel=1e-4)  # (w - T w) 2 + T w, to first order
    assert index[1] == pytest.approx([1 - 1e-5] * 4, rel=1e-4)


@pytest.mark.parametrize(
    ("p01", "p11", "words"),
    [
        (0.0, 1.0, r"has 2 closed classes, \{0\}, \{1\}"),
        (1.0, 0.0, "periodic with period 2"),
    ],
)
def test_a_channel_without_a_limit_has_no_average_index_but_a_discounted_one(p01, p11, words):
    arm = rs.gilbert_elliott(p01, p11)
    for options in ({}, {"max_elapsed": 10}):
        with pytest.raises(rs.errors.AssumptionError, match=f"{words}.*discount below 1"):
            rs.policies.whittle_index(arm, **options)
    found = rs.policies.whittle_index(arm, discount=0.8, max_elapsed=6)
    expected = whittle_bisection(*as_oracle(arm), 40, 0.8, 1e-9)[:, :6]
    assert found.index == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(("p01", "p11"), [(0.0, 0.5), (0.5, 1.0), (0.0, 0.9)])
def test_a_channel_that_stays_in_a_state_for_good_has_an_average_index(p01, p11):
    """It is the limit of discounted ones."""
    arm = rs.gilbert_elliott(p01, p11)
    found = rs.policies.whittle_index(arm, max_elapsed=6)
    assert found.indexable
    expected = whittle_bisection(*as_oracle(arm), 40, 1 - 1e-7, 1e-8)[:, :6]
    assert found.index == pytest.approx(expected, abs=1e-5)


def test_a_controlled_arm_without_a_limit_is_led_to_what_works():
    """Every way out that a message names must be one."""
    flip = rs.Arm([[0.7, 0.3], [0.4, 0.6]], [[0, 1], [1, 0]], [0, 1], name="flip")
    for options in ({}, {"max_elapsed": 10}):
        with pytest.raises(rs.errors.AssumptionError) as caught:
            rs.policies.whittle_index(flip, **options)
        message = str(caught.value)
        assert message.startswith("arm 'flip': the passive chain is periodic with period 2")
        assert "discount below 1" in message
    index = rs.policies.whittle_index(flip, discount=0.8, max_elapsed=6).index
    expected = whittle_bisection(*as_oracle(flip), 41, 0.8, 1e-9)[:, :6]
    assert index == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_an_active_chain_with_transient_states_has_an_index(discount):
    active = np.array([[0.5, 0.5, 0], [0, 0.5, 0.5], [0, 0.5, 0.5]])
    arm = rs.Arm(active, MIXING, [1, 0, 0.5])
    found = rs.policies.whittle_index(arm, discount=discount)
    expected = whittle_bisection(*as_oracle(arm), 20, discount, 1e-8)
    assert found.index == pytest.approx(expected[:, : found.index.shape[1]], abs=1e-6)


def test_an_active_chain_that_ends_in_one_state_has_an_index():
    """State 0 is never left while pulling; below its reward other states find new ways into it."""
    active = [[1, 0, 0, 0], [0, 0.25, 0.75, 0], [0.25, 0.25, 1 / 3, 1 / 6], [0, 0, 1, 0]]
    passive = 0.6 * np.eye(4)[[0, 2, 3, 0]] + 0.1
    arm = rs.Arm(active, passive, [0.62, 0.06, 0.84, 0.21])
    found = rs.policies.whittle_index(arm)
    expected = whittle_bisection(*as_oracle(arm), found.index.shape[1], 1.0, 1e-8)
    assert found.index == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("active", [np.eye(3), [[1, 0, 0], [0, 0, 1], [0, 1, 0]]])
def test_pulling_that_holds_a_chain_in_a_worse_class_has_no_average_index(active):
    arm = rs.Arm(active, MIXING, [0, 0.5, 0.9], name="trap")
    with pytest.raises(rs.errors.AssumptionError) as caught:
        rs.policies.whittle_index(arm)
    message = str(caught.value)
    assert message.startswith("arm 'trap': no subsidy, however low, makes pulling best")
    assert "state 0, 1 step(s) ago" in message
    assert "pass a discount below 1" in message
    found = rs.policies.whittle_index(arm, discount=0.9)
    expected = whittle_bisection(*as_oracle(arm), 20, 0.9, 1e-9)
    assert found.index == pytest.approx(expected[:, : found.index.shape[1]], abs=1e-7)


@given(stochastic_matrices(3), stochastic_matrices(3, 0.5), st.permutations([0.0, 0.3, 1.0]))
def test_there_is_no_average_index_exactly_where_active_classes_earn_differently(
    active, passive, rewards
):
    """Only then is it worth any price to leave the worse class, once."""
    arm = rs.Arm(active, passive, rewards)
    earned = [
        rs.theory.stationary(active[np.ix_(members, members)]) @ arm.rewards[members]
        for members in closed_classes(arm.active)
    ]
    if np.ptp(earned) > 1e-9:
        with pytest.raises(rs.errors.AssumptionError, match="no subsidy, however low"):
            rs.policies.whittle_index(arm)
    elif len(earned) > 1:
        with pytest.raises(rs.errors.AssumptionError, match="earn just as much"):
            rs.policies.whittle_index(arm)
    else:
        assert np.isfinite(rs.policies.whittle_index(arm).index).all()


def test_classes_that_earn_alike_leave_the_average_index_open():
    """Two closed active classes, {0} and {1, 2}, of gain 1/2 each.

    The naive oracle gives 0.2999985 at discount 0.99999 and 0.2999999 at 0.999999 for (2, 1).
    """
    arm = rs.Arm([[1, 0, 0], [0, 0, 1], [0, 1, 0]], MIXING, [0.5, 0, 1])
    with pytest.raises(rs.errors.AssumptionError, match=r"earn just as much.*discount below 1"):
        rs.policies.whittle_index(arm)
    discounted = rs.policies.whittle_index(arm, discount=0.9999).index
    assert discounted[2, 0] == pytest.approx(0.299985, abs=1e-6)


@pytest.mark.parametrize("discount", [1.0, 0.9])
def test_rewards_all_equal_give_that_reward_as_index(discount):
    for rewards in ([0, 0, 0], [0.5, 0.5, 0.5], [1, 1, 1]):
        index = rs.policies.whittle_index(
            rs.Arm(MIXING[::-1], MIXING, rewards), discount=discount
        ).index
        assert index == pytest.approx(np.full(index.shape, rewards[0]), abs=1e-12)


def test_deterministic_rows_that_leave_the_passive_chain_ergodic():
    passive = np.array([[0, 1, 0], [0, 0, 1], [0.5, 0.5, 0]])
    arm = rs.Arm([[0, 0, 1], [1, 0, 0], [0, 1, 0]], passive, [0, 0.2, 1])
    found = rs.policies.whittle_index(arm, discount=0.7)
    expected = whittle_bisection(*as_oracle(arm), 40, 0.7, 1e-8)
    assert found.index[:, :12] == pytest.approx(expected[:, :12], abs=1e-6)
    assert np.isfinite(rs.policies.whittle_index(arm).index).all()


NEARLY_PERIODIC = rs.Arm(
    [
        [0.9542216216630449, 0.02909132951013735, 0.01668704882681782],
        [0.035587485414061176, 0.006940995299896773, 0.9574715192860421],
        [0.9554258840503083, 0.03404442100331799, 0.010529694946373822],
    ],
    [
        [0.012969291454559969, 0.9756164647493661, 0.011414243796073795],
        [0.9845871964918049, 0.012796473556282252, 0.00261632995191278],
        [0.0014152259032459108, 0.009467213168330829, 0.9891175609284232],
    ],
    [0.502053234003362, 0.6850760124509203, 0.5006138381073987],
)


def test_a_nearly_periodic_chain_has_an_index():
    """Waits of a thousand steps compare sums of a thousand terms: ties are wider than elsewhere."""
    found = rs.policies.whittle_index(NEARLY_PERIODIC)
    near = rs.policies.whittle_index(NEARLY_PERIODIC, discount=0.999999)
    assert found.indexable
    assert near.indexable
    assert found.index[:, :200] == pytest.approx(near.index[:, :200], abs=1e-6)


def test_nearly_periodic_chains_come_to_an_end():
    rng = np.random.default_rng(0)
    for _ in range(30):
        size = int(rng.integers(2, 6))
        active, passive = (
            0.98 * np.eye(size)[rng.permutation(size)] + 0.02 * rng.dirichlet(np.ones(size), size)
            for _ in range(2)
        )
        assert np.isfinite(
            rs.policies.whittle_index(rs.Arm(active, passive, rng.random(size))).index
        ).all()


@pytest.mark.parametrize("leak", [7e-17, 2.6e-16, 1e-14, 1e-12])
def test_a_chain_that_is_absorbing_up_to_rounding_is_indexable(leak):
    """Pulled after long waits it stays in one class for 1e12 pulls: advantages are all rounding."""
    active = [[0.4345083429778708, 0.5654916570221292], [0.03625953398061776, 0.9637404660193821]]
    passive = [[1 - leak, leak], [0.6181811657570792, 0.3818188342429209]]
    for rewards in ([0.8, 0.2], [0.2, 0.8], [1, 0]):
        arm = rs.Arm(active, passive, rewards)
        found = rs.policies.whittle_index(arm)
        near = rs.policies.whittle_index(arm, discount=0.999999)
        assert found.indexable
        assert near.indexable
        assert np.array_equal(found.index, found.upper)
        assert found.index[:, :20] == pytest.approx(near.index[:, :20], abs=1e-5)
