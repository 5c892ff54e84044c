"""Rewards while an arm is not pulled, reduced to rewards for pulls: the numbers of one arm."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from oracles.joint_paid_naive import pull_advantage
from restive.problem.beliefs import settled_elapsed
from restive.problem.reduction import reduce_arm, unit_of
from strategies import arms, as_paying_oracle, random_arm, random_paying_bandit

MIXING = [[0.5, 0.5], [0.25, 0.75]]


def two_states(active, passive, rewards=(0, 1), passive_rewards=(0, 1)):
    """Return an arm from its probabilities to stay, (p00, p11) pulled and not pulled."""
    matrices = [[[p00, 1 - p00], [1 - p11, p11]] for p00, p11 in (active, passive)]
    return rs.Arm(*matrices, rewards, passive_rewards)


@pytest.mark.parametrize(
    ("arm", "pull", "own"),
    [
        (two_states((0.1, 0.95), (0.9, 0.75)), (Fraction(16, 7), Fraction(4, 7)), Fraction(2, 7)),
        (two_states((0.7, 0.95), (0.85, 0.85)), (Fraction(1, 2), Fraction(1, 3)), Fraction(1, 2)),
    ],
)
def test_what_a_pull_adds_is_as_worked_out_by_hand(arm, pull, own):
    found = reduce_arm(arm)
    assert found.pulled.rewards == pytest.approx([float(value) for value in pull], abs=1e-14)
    assert found.own_reward == pytest.approx(float(own), abs=1e-15)


@given(arms(sizes=(1, 2, 3, 5), spread=0.05), st.data())
def test_the_potential_solves_poissons_equation(arm, data):
    states = arm.num_states
    paid = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=states, max_size=states)))
    found = reduce_arm(rs.Arm(arm.active, arm.passive, arm.rewards, paid))
    law, z = rs.theory.stationary(arm.passive), found.potential
    assert found.own_reward == pytest.approx(law @ paid, abs=1e-12)
    assert z == pytest.approx(paid - found.own_reward + arm.passive @ z, abs=1e-10)
    if np.ptp(paid) > 0:
        assert law @ z == pytest.approx(0, abs=1e-10)
    hat = arm.rewards - found.own_reward + arm.active @ z - z
    assert found.pulled.rewards == pytest.approx(hat, abs=1e-10)


@given(arms(sizes=(2, 3), spread=0.05))
def test_the_discounted_potential_is_what_an_arm_earns_if_it_is_never_pulled(arm):
    paid = np.linspace(-1, 3, arm.num_states)
    found = reduce_arm(rs.Arm(arm.active, arm.passive, arm.rewards, paid), discount=0.8)
    earned, law = np.zeros(arm.num_states), np.eye(arm.num_states)
    for t in range(200):
        earned += 0.8**t * (law @ paid)
        law = law @ arm.passive
    assert found.own_reward == 0
    assert found.potential == pytest.approx(earned, abs=1e-12)
    hat = arm.rewards + 0.8 * arm.active @ earned - earned
    assert found.pulled.rewards == pytest.approx(hat, abs=1e-12)


@given(arms())
def test_an_arm_that_pays_only_when_pulled_stays_as_it_is(arm):
    for discount in (1.0, 0.9):
        found = reduce_arm(arm, discount=discount)
        assert found.pulled is arm
        assert found.own_reward == 0
        assert not found.potential.any()


@given(arms(controlled=False))
def test_where_pulls_do_not_move_an_arm_they_add_the_difference_of_the_rewards(arm):
    """To the bit: an arm whose pulls change nothing at all is worth exactly zero."""
    paid = np.arange(arm.num_states) / 7
    assert np.array_equal(
        reduce_arm(rs.Arm(arm.active, None, arm.rewards, paid)).pulled.rewards,
        arm.rewards - paid,
    )
    always = rs.Arm(arm.active, None, arm.rewards, arm.rewards)
    assert not rs.policies.whittle_index(always).index.any()


def test_a_wage_for_every_step_without_a_pull_needs_no_long_run():
    split = [[1, 0, 0], [0, 1, 0], [0.3, 0.3, 0.4]]
    found = reduce_arm(rs.Arm(split, split, [1, 2, 3], [0.25, 0.25, 0.25]))
    assert found.own_reward == 0.25
    assert found.pulled.rewards.tolist() == [0.75, 1.75, 2.75]


def test_several_closed_classes_are_named_with_the_arm_and_what_to_do():
    split = [[1, 0], [0, 1]]
    stuck = rs.Arm([[0.5, 0.5], [0.5, 0.5]], split, [0, 1], [0, 1], name="field")
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), stuck], 1)
    words = (
        r"arm 1 \('field'\): has 2 closed classes, \{0\}, \{1\}, so its long-run law depends on "
        r"the start \(its passive chain is reducible\), and so does what its passive_rewards earn; "
        "let its passive matrix lead from each class to the others, however rarely, or pass a"
    )
    for call in (rs.relaxation_bound, rs.policies.lp_priority, rs.optimal):
        with pytest.raises(rs.errors.AssumptionError, match=words):
            call(bandit, max_elapsed=20)
    with pytest.raises(rs.errors.AssumptionError, match=words):
        rs.evaluate(bandit, rs.myopic(bandit, max_elapsed=20))
    # the advice: a discount, or a way out
    assert np.isfinite(rs.policies.whittle_index(stuck, discount=0.9, max_elapsed=20).index).all()
    rare = rs.Arm(stuck.active, [[0.999, 0.001], [0.001, 0.999]], [0, 1], [0, 1])
    assert np.isfinite(rs.policies.whittle_index(rare, max_elapsed=500).index).all()


def test_an_absorbing_state_is_one_closed_class():
    """A machine that stays broken until it is mended earns nothing by itself in the long run."""
    machine = rs.Arm([[0, 1], [0, 1]], [[1, 0], [0.1, 0.9]], [-3, 1], [0, 1])
    found = reduce_arm(machine)
    assert found.own_reward == 0
    assert found.potential == pytest.approx([0, 10])
    assert found.pulled.rewards == pytest.approx([7, 1])  # -3 + z(1) - z(0); from 1: 0 + z - 0.9 z


def test_a_chain_that_floating_point_cannot_tell_from_a_split_one_is_refused():
    nearly = [[1, 1e-200], [1e-300, 1]]
    arm = rs.Arm([[0.5, 0.5], [0.5, 0.5]], nearly, [0, 1], [0, 1])
    with pytest.raises(rs.errors.AssumptionError, match="hardly ever leaves some of its states"):
        reduce_arm(arm)


@pytest.mark.parametrize("discount", [0.95, 0.5])
def test_discounted_indices_are_where_pulling_and_not_pulling_are_worth_the_same(discount):
    """Naive value iteration on one arm that pays in every step, without the reduction."""
    rng = np.random.default_rng([5, int(100 * discount)])
    for size in (2, 3, 3):
        arm = random_paying_bandit(rng, [size], 1, spread=0.7).arms[0]
        found = rs.policies.whittle_index(arm, discount=discount)
        length = settled_elapsed(arm)
        for s in range(size):
            for n in (0, 1, 2, length - 1):
                below, above = (
                    pull_advantage(as_paying_oracle(arm), price, discount, length)[s, n]
                    for price in (found.index[s, n] - 1e-6, found.upper[s, n] + 1e-6)
                )
                assert below >= 0, (arm, s, n)
                assert above < 0, (arm, s, n)


@given(st.integers(-40, 40), st.integers(0, 2**32))
def test_rewards_in_other_units_give_everything_in_those_units_to_the_bit(power, seed):
    rng = np.random.default_rng(seed)
    unit = 2.0**power
    # of a size at which units begin to matter, so that both are computed in their unit
    arm = random_paying_bandit(rng, [3], 1).arms[0]
    one = rs.Arm(arm.active, arm.passive, 4 + arm.rewards, arm.passive_rewards)
    other = rs.Arm(arm.active, arm.passive, unit * one.rewards, unit * one.passive_rewards)
    if 2.0**-10 <= unit_of(reduce_arm(other).pulled.rewards) <= 1:
        return
    for discount in (1.0, 0.9):
        here, there = (
            rs.policies.whittle_index(arm, discount=discount).index for arm in (one, other)
        )
        assert np.array_equal(unit * here, there)


@pytest.mark.parametrize("scale", [1e-9, 1e6, 1e60])
def test_values_and_indices_scale_with_rewards_of_any_size(scale):
    rng = np.random.default_rng(3)
    bandit = random_paying_bandit(rng, [2, 2, 2], 1, spread=0.7)
    scaled = rs.RestlessBandit(
        [
            rs.Arm(arm.active, arm.passive, scale * arm.rewards, scale * arm.passive_rewards)
            for arm in bandit.arms
        ],
        1,
    )
    for name in ("best_fixed", "myopic", "whittle", "lp_priority", "optimal"):
        here, there = rs.evaluate(bandit, name), rs.evaluate(scaled, name)
        assert there.average_reward == pytest.approx(scale * here.average_reward, rel=1e-9)
        assert there.bias_span == pytest.approx(scale * here.bias_span, rel=1e-7)
    bound = rs.relaxation_bound(bandit)
    assert rs.relaxation_bound(scaled) == pytest.approx(scale * bound, rel=1e-9)


def test_large_arms_are_reduced_too():
    rng = np.random.default_rng(0)
    arm = random_arm(rng, 40, spread=0.2)
    paid = rng.normal(size=40)
    found = reduce_arm(rs.Arm(arm.active, arm.passive, arm.rewards, paid))
    system = np.eye(40) - arm.passive + rs.theory.stationary(arm.passive)
    assert found.potential == pytest.approx(np.linalg.solve(system, paid - found.own_reward))
