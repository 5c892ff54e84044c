"""Whittle indices: the paper's exact values, the closed form, and laws that hold for every arm."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.plan.subsidy import subsidy_path
from strategies import arms, random_arm

# (p01, p11): indices at elapsed 1, 2, 3, 4 of last state 0 and of last state 1, and the limit
PAPER_NOTES = {
    (0.3, 0.7): ("3/10 27/56 9/16 951/1592", "7/10 29/44 133/208 641/1016", "5/8"),
    (0.6, 0.4): ("3/5 12/23 5/9 312/563", "2/5 5/9 62/113 5/9", "5/9"),
    (0.1, 0.9): ("1/10 13/54 113/302 821/1702", "9/10 41/46 189/214 881/1006", "5/6"),
}
DISCOUNTS = (1.0, 0.99, 0.9, 0.4)


def rationals(text):
    """Return the numbers of a line of fractions."""
    return [float(Fraction(word)) for word in text.split()]


def general(arm, max_elapsed=None):
    """Return the indices by the method that takes any arm."""
    return subsidy_path(arm, 1.0, max_elapsed).index


@pytest.mark.parametrize("channel", PAPER_NOTES)
@pytest.mark.parametrize("method", ["closed form", "general"])
def test_exact_rationals_of_the_paper_notes(channel, method):
    bad, good, limit = (rationals(line) for line in PAPER_NOTES[channel])
    arm = rs.gilbert_elliott(*channel)
    table = (
        general(arm)
        if method == "general"
        else rs.policies.whittle_index(arm, max_elapsed=300).index
    )
    assert table[0, :4] == pytest.approx(bad, abs=1e-12)
    assert table[1, :4] == pytest.approx(good, abs=1e-12)
    assert table[:, -1] == pytest.approx([limit[0]] * 2, abs=1e-12)


@pytest.mark.parametrize("channel", PAPER_NOTES)
def test_the_limit_is_told(channel):
    """The automatic table ends where beliefs are within 1e-12 of their limit; indices are then."""
    limit = rationals(PAPER_NOTES[channel][2])[0]
    assert rs.policies.whittle_index(rs.gilbert_elliott(*channel)).limit == pytest.approx(
        limit, abs=1e-11
    )


def test_closed_form_is_used_where_it_applies_and_only_there():
    channel = rs.gilbert_elliott(0.3, 0.7)
    assert rs.policies.whittle_index(channel).method == "closed form"
    assert rs.policies.whittle_index(channel, discount=0.9).method == "subsidy path"
    controlled = rs.Arm(channel.active, [[0.5, 0.5], [0.5, 0.5]], [0, 1])
    assert rs.policies.whittle_index(controlled).method == "subsidy path"
    assert (
        rs.policies.whittle_index(random_arm(np.random.default_rng(0), 3)).method == "subsidy path"
    )


@pytest.mark.parametrize("p01", np.arange(1, 21) / 20)
def test_closed_form_agrees_with_the_general_method_on_a_dense_grid(p01):
    """Both signs of p11 - p01 and 0; p01 = 1 and p11 = 0, where a row is deterministic."""
    for p11 in np.arange(20) / 20:
        if (p01, p11) == (1, 0):
            continue  # periodic
        arm = rs.gilbert_elliott(p01, p11)
        table = rs.policies.whittle_index(arm).index
        path = subsidy_path(arm)
        assert path.indexable
        assert table == pytest.approx(path.index, abs=1e-10), f"p01={p01}, p11={p11}"


@pytest.mark.parametrize("channel", [(0.003, 0.994), (0.995, 0.002)])
def test_closed_form_agrees_with_the_general_method_at_thousands_of_ages(channel):
    """Rounding errors add up over some two thousand breakpoints."""
    arm = rs.gilbert_elliott(*channel)
    path = subsidy_path(arm)
    assert path.indexable
    assert path.index.shape[1] > 2000
    assert rs.policies.whittle_index(arm).index == pytest.approx(path.index, abs=1e-9)


@given(st.floats(0.02, 1), st.floats(0, 0.98), st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_closed_form_agrees_with_the_general_method_for_any_rewards(p01, p11, rewards):
    if p01 - p11 > 0.98:
        return  # nearly periodic: belief tables too long for a quick test
    arm = rs.gilbert_elliott(p01, p11, rewards)
    assert rs.policies.whittle_index(arm).index == pytest.approx(general(arm), abs=1e-10)


def test_state_zero_may_be_the_good_one():
    """The channel with its states' names swapped has its rows swapped and nothing else."""
    for p01, p11 in [(0.3, 0.8), (0.7, 0.2), (0.4, 0.4)]:
        arm = rs.gilbert_elliott(p01, p11)
        swapped = rs.Arm(arm.active[::-1, ::-1], rewards=[1, 0])
        expected = rs.policies.whittle_index(arm).index[::-1]
        assert rs.policies.whittle_index(swapped).index == pytest.approx(expected, abs=1e-14)
        assert general(swapped) == pytest.approx(expected, abs=1e-10)


def test_plateau_of_negatively_correlated_channels():
    """Above the stationary belief all but the freshest share p01 / (1 + p01 - T(p11))."""
    table = rs.policies.whittle_index(rs.gilbert_elliott(0.8, 0.3)).index
    plateau = 0.8 / (1.8 - (0.8 - 0.5 * 0.3))
    assert table[0, 2:12:2] == pytest.approx([plateau] * 5, abs=1e-15)
    assert table[1, 1:12:2] == pytest.approx([plateau] * 6, abs=1e-15)
    assert table[0, 0] == 0.8
    assert table[1, 0] == 0.3


@pytest.mark.parametrize("p", [0.05, 0.5, 0.95])
def test_an_independent_channel_has_its_mean_as_index_at_every_age(p):
    arm = rs.gilbert_elliott(p, p)
    for table in (rs.policies.whittle_index(arm, max_elapsed=9).index, general(arm)):
        assert table == pytest.approx(np.full(table.shape, p), abs=1e-14)


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=5),
    st.sampled_from(DISCOUNTS),
)
def test_an_independent_arm_has_its_mean_as_index(states, discount):
    """Rows all alike: nothing seen tells anything, so the index is the expected reward."""
    weights, rewards = np.array(states).T
    law = weights / weights.sum()
    arm = rs.Arm(np.tile(law, (len(law), 1)), rewards=rewards / 9)
    index = rs.policies.whittle_index(arm, discount=discount, max_elapsed=3).index
    assert index == pytest.approx(np.full((len(law), 3), law @ rewards / 9), abs=1e-12)


def test_a_state_whose_pull_pays_and_costs_nothing_else_has_its_reward_as_index():
    """The freshest ages of a channel: seen bad, p01; seen good and p11 >= p01, p11."""
    for p01, p11 in product([0.1, 0.45, 0.9], repeat=2):
        first = rs.policies.whittle_index(rs.gilbert_elliott(p01, p11), max_elapsed=1).index[:, 0]
        assert first == pytest.approx([p01, p11], abs=1e-15)


@given(arms(sizes=(2, 3, 4), spread=0.4), st.sampled_from(DISCOUNTS))
def test_every_index_is_finite_and_upper_is_never_below_it(arm, discount):
    found = rs.policies.whittle_index(arm, discount=discount)
    assert np.isfinite(found.index).all()
    assert np.isfinite(found.upper).all()
    assert (found.upper >= found.index).all()
    assert found.indexable == np.array_equal(found.index, found.upper)
    assert found.index.max() <= arm.rewards.max() + 1e-12
    assert found.discount == discount


@given(
    arms(sizes=(2, 3), spread=0.4),
    st.sampled_from(DISCOUNTS),
    st.integers(1, 60),
    st.integers(0, 60),
)
def test_indices_of_a_longer_table_extend_those_of_a_shorter_one(arm, discount, length, more):
    shorter = rs.policies.whittle_index(arm, discount=discount, max_elapsed=length)
    longer = rs.policies.whittle_index(arm, discount=discount, max_elapsed=length + more)
    assert shorter.index.shape == (arm.num_states, length)
    assert np.array_equal(longer.index[:, :length], shorter.index)
    assert np.array_equal(longer.upper[:, :length], shorter.upper)
    assert longer.indexable == shorter.indexable


@given(
    arms(sizes=(2, 3), spread=0.4),
    st.sampled_from(DISCOUNTS),
    st.floats(0.01, 1),
    st.floats(0, 1),
)
def test_affine_rewards_move_the_index_with_them(arm, discount, factor, share):
    """r -> a + b r with b > 0 gives a + b W."""
    shift = share * (1 - factor)
    moved = rs.Arm(arm.active, arm.passive, shift + factor * arm.rewards)
    before, after = (
        rs.policies.whittle_index(arm, discount=discount),
        rs.policies.whittle_index(moved, discount=discount),
    )
    assert after.index == pytest.approx(shift + factor * before.index, abs=1e-9)
    if before.indexable:
        assert after.upper == pytest.approx(shift + factor * before.upper, abs=1e-9)


@given(arms(sizes=(3, 4), spread=0.4), st.sampled_from(DISCOUNTS), st.randoms())
def test_relabelling_the_states_relabels_the_index(arm, discount, random):
    order = list(range(arm.num_states))
    random.shuffle(order)
    both = np.ix_(order, order)
    other = rs.Arm(arm.active[both], arm.passive[both], arm.rewards[order])
    expected = rs.policies.whittle_index(arm, discount=discount).index[order]
    assert rs.policies.whittle_index(other, discount=discount).index == pytest.approx(
        expected, abs=1e-9
    )


def test_the_average_index_is_the_limit_of_the_discounted_one():
    """The gap falls in proportion to 1 - discount: by ten from each line to the next."""
    arm = random_arm(np.random.default_rng(5), 3)
    average = rs.policies.whittle_index(arm).index
    gaps = [
        np.abs(rs.policies.whittle_index(arm, discount=1 - gap).index - average).max()
        for gap in (1e-2, 1e-3, 1e-4)
    ]
    assert gaps[0] / gaps[1] == pytest.approx(10, rel=0.1)
    assert gaps[1] / gaps[2] == pytest.approx(10, rel=0.1)
    assert gaps[2] < 1e-3


@pytest.mark.parametrize("discount", [0.9999, 0.99999, 0.999999])
def test_discounts_close_to_one_give_an_index_close_to_the_average_one(discount):
    """The gap is a moderate constant times 1 - discount, and rounding grows with its inverse."""
    rng = np.random.default_rng(6)
    for _ in range(20):
        arm = random_arm(rng, 3)
        found = rs.policies.whittle_index(arm, discount=discount).index
        noise = 1e-14 / (1 - discount)
        assert found == pytest.approx(
            rs.policies.whittle_index(arm).index, abs=20 * (1 - discount) + noise
        )


def test_one_state_arms_have_their_reward_as_index():
    arm = rs.Arm([[1.0]], rewards=[0.4])
    for discount in DISCOUNTS:
        index = rs.policies.whittle_index(arm, discount=discount, max_elapsed=5).index
        assert index == pytest.approx(np.full((1, 5), 0.4), abs=1e-15)


def test_many_channels_at_once_have_the_indices_of_each():
    levels = [0.1, 0.5, 0.9]
    p01, p11 = (np.ravel(grid) for grid in np.meshgrid(levels, levels))
    tables = rs.theory.channel_whittle_index(p01, p11, 40)
    assert tables.shape == (9, 2, 40)
    for table, rise, stay in zip(tables, p01, p11, strict=True):
        expected = rs.policies.whittle_index(rs.gilbert_elliott(rise, stay), max_elapsed=40).index
        assert table == pytest.approx(expected, abs=1e-15)
    assert np.array_equal(rs.theory.channel_whittle_index(0.1, 0.5, 40)[0], tables[3])
    assert np.array_equal(rs.theory.channel_whittle_index([0.1, 0.5], 0.1, 40), tables[:2])


@pytest.mark.parametrize(
    ("p01", "p11"), [(0, 0.5), (0.5, 1), (1, 0), (-0.1, 0.5), (0.5, 1.1), (float("nan"), 0.5)]
)
def test_many_channels_at_once_name_the_one_that_is_not_ergodic(p01, p11):
    with pytest.raises(rs.errors.AssumptionError, match=r"^channel 1: p01 = "):
        rs.theory.channel_whittle_index([0.5, p01, 0.2], [0.5, p11, 0.3], 5)


def test_many_channels_at_once_want_lists_of_equal_length():
    with pytest.raises(rs.errors.ProblemError):
        rs.theory.channel_whittle_index([0.5, 0.2], [0.5, 0.3, 0.1], 5)
    with pytest.raises(rs.errors.ProblemError, match=r"shape \(1, 2\)"):
        rs.theory.channel_whittle_index([[0.5, 0.2]], [[0.5, 0.3]], 5)
    with pytest.raises(rs.errors.ProblemError):
        rs.theory.channel_whittle_index(["much"], [0.5], 5)
    with pytest.raises(rs.errors.ProblemError, match="max_elapsed"):
        rs.theory.channel_whittle_index([0.5], [0.5], 0)


@pytest.mark.parametrize("discount", [0, -1, 1.01, float("nan"), "much", None])
def test_a_wrong_discount_is_refused(discount):
    with pytest.raises(rs.errors.ProblemError, match="discount must be"):
        rs.policies.whittle_index(rs.gilbert_elliott(0.3, 0.7), discount=discount)
