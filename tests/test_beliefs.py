"""Beliefs: the law of an arm by when and in which state it was last seen."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.problem.beliefs import beliefs_at, initial_state, log_chances, settled_elapsed
from strategies import arms, random_arm

SLOW = rs.gilbert_elliott(1e-6, 1 - 1e-6, name="glacier")


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_beliefs_are_active_times_a_power_of_passive(size):
    arm = random_arm(np.random.default_rng(size), size, spread=0.1)
    table = rs.theory.belief_table(arm, 50)
    assert table.shape == (size, 50, size)
    for n in range(1, 51):
        expected = arm.active @ np.linalg.matrix_power(arm.passive, n - 1)
        assert table[:, n - 1] == pytest.approx(expected, abs=1e-14)


def test_beliefs_of_many_chains_are_those_of_their_tables_and_settle():
    rng = np.random.default_rng(3)
    chains = [random_arm(rng, 3, spread=0.1) for _ in range(4)]
    active, passive = (np.array([getattr(arm, n) for arm in chains]) for n in ("active", "passive"))
    last, ages = np.array([2, 0, 1, 0]), np.array([7, 1, 10**15, 30])
    found = beliefs_at(active, passive, last, ages)
    for m, arm in enumerate(chains):
        table = rs.theory.belief_table(arm, 30)
        for c in (0, 1, 3):
            np.testing.assert_allclose(found[c, m], table[last[c], ages[c] - 1], rtol=1e-13)
        law = rs.theory.stationary(arm.passive)
        np.testing.assert_allclose(found[2, m], law, rtol=1e-12)
    logs = log_chances(active, passive, last, ages, np.array([0, 1, 2, 0]))
    chosen = found[np.arange(4), :, [0, 1, 2, 0]]
    np.testing.assert_array_max_ulp(logs, np.log(chosen), 4)


def test_beliefs_of_a_channel_in_its_closed_form():
    """Reading 6: rows. w_n = omega + rho^n (w_0 - omega)."""
    p01, p11 = 0.3, 0.8
    rho = p11 - p01
    omega = p01 / (1 - rho)
    table = rs.theory.belief_table(rs.gilbert_elliott(p01, p11), 30)
    for s in (0, 1):
        for n in range(1, 31):
            assert table[s, n - 1, 1] == pytest.approx(omega + rho**n * (s - omega), abs=1e-15)


@given(arms(sizes=(1, 2, 3, 5), spread=0.2))
def test_beliefs_sum_to_one(arm):
    table = rs.theory.belief_table(arm)
    assert np.abs(table.sum(axis=2) - 1).max() < 4e-16 * arm.num_states
    assert table.min() >= 0


def test_beliefs_sum_to_one_even_after_ten_thousand_steps():
    table = rs.theory.belief_table(random_arm(np.random.default_rng(3), 6, spread=0.001), 10_000)
    assert np.abs(table.sum(axis=2) - 1).max() < 3e-15


@given(arms(sizes=(2, 3)), st.integers(1, 40), st.integers(0, 40))
def test_a_longer_table_extends_a_shorter_one_to_the_bit(arm, length, more):
    shorter, longer = (
        rs.theory.belief_table(arm, length),
        rs.theory.belief_table(arm, length + more),
    )
    assert np.array_equal(longer[:, :length], shorter)


@given(arms(sizes=(1, 2, 4), spread=0.3))
def test_the_automatic_table_ends_where_beliefs_have_settled_and_not_before(arm):
    table = rs.theory.belief_table(arm)
    gaps = np.abs(table - rs.theory.stationary(arm.passive)).sum(axis=2).max(axis=0)
    assert gaps[-1] <= 1e-12
    assert (gaps[:-1] > 1e-12).all()
    assert table.shape[1] == settled_elapsed(arm)


def test_slow_chains_that_still_settle_get_a_long_table():
    arm = rs.gilbert_elliott(0.002, 0.998)
    length = rs.theory.belief_table(arm).shape[1]
    assert length == pytest.approx(np.log(1e-12) / np.log(0.996), abs=2)


def test_too_slow_a_chain_is_told_with_a_way_out_that_works():
    with pytest.raises(rs.errors.TooLargeError) as caught:
        rs.theory.belief_table(SLOW)
    message = str(caught.value)
    assert message.startswith("arm 'glacier': mixes too slowly: after 10,000 steps")
    assert "give max_elapsed = 10000" in message
    assert rs.theory.belief_table(SLOW, max_elapsed=10_000).shape == (2, 10_000, 2)


def test_a_chain_that_never_settles_is_told_with_a_way_out_that_works():
    flip = rs.Arm([[0.5, 0.5], [0.5, 0.5]], [[0, 1], [1, 0]], [0, 1])
    with pytest.raises(rs.errors.AssumptionError, match=r"period 2.*give max_elapsed"):
        rs.theory.belief_table(flip)
    assert rs.theory.belief_table(flip, 3).tolist() == [[[0.5, 0.5]] * 3] * 2


def test_a_table_that_would_fill_the_memory_is_refused():
    arm = rs.Arm(np.full((500, 500), 1 / 500), rewards=np.zeros(500))
    with pytest.raises(rs.errors.TooLargeError, match=r"500 states and 10000 ages takes 18\.6 GiB"):
        rs.theory.belief_table(arm, 10_000)


@pytest.mark.parametrize(
    ("max_elapsed", "words"),
    [(0, "at least 1, got 0"), (-3, "at least 1, got -3"), (2.0, "whole"), (True, "whole")],
)
def test_max_elapsed_must_be_a_positive_whole_number(max_elapsed, words):
    with pytest.raises(rs.errors.ProblemError, match=f"max_elapsed must be .*{words}"):
        rs.theory.belief_table(rs.gilbert_elliott(0.3, 0.7), max_elapsed)


def test_the_update_sets_pulled_arms_to_one_and_ages_the_others():
    state = rs.BeliefState([0, 1, 2, 1], [1, 5, 2, 9])
    after = state.updated([3, 1], [0, 2])
    assert after.last_state.tolist() == [0, 2, 2, 0]
    assert after.elapsed.tolist() == [2, 1, 3, 1]
    assert state.elapsed.tolist() == [1, 5, 2, 9], "the old state is left alone"
    assert state.updated([], []).elapsed.tolist() == [2, 6, 3, 10]


@pytest.mark.parametrize(
    ("pulled", "states", "words"),
    [
        ([0], [1, 1], "1 arms were pulled but 2 states were given"),
        ([3], [0], "pulled names arm 3; the arms are 0 to 2"),
        ([1, 1], [0, 0], r"pulled names an arm twice: \[1, 1\]"),
        ([-1], [0], "pulled must be at least 0, got -1"),
        ([0.0], [0], "pulled must be a list of whole numbers"),
        ([0], [-1], "states must be at least 0, got -1"),
        (0, 0, "pulled must be a list of whole numbers"),
    ],
)
def test_a_wrong_update_is_refused(pulled, states, words):
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.BeliefState([0, 0, 0], [1, 1, 1]).updated(pulled, states)


@pytest.mark.parametrize(
    ("last_state", "elapsed", "words"),
    [
        ([0, 1], [1], "last_state has 2 arms and elapsed 1; they must agree"),
        ([0, -1], [1, 1], "last_state must be at least 0, got -1"),
        ([0, 1], [1, 0], "elapsed must be at least 1, got 0"),
        ([0.5, 1], [1, 1], "last_state must be a list of whole numbers, got"),
        (["a"], [1], "last_state must be a list of whole numbers"),
        ([[0]], [[1]], "last_state must be a list of whole numbers"),
        ([[0], [0, 1]], [1, 1], "last_state must be a list of whole numbers"),
        ([True], [1], "last_state must be a list of whole numbers"),
    ],
)
def test_a_wrong_state_is_refused(last_state, elapsed, words):
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.BeliefState(last_state, elapsed)


def test_a_state_must_fit_the_bandit():
    bandit = rs.RestlessBandit(
        [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.3, 0.7, name="b")], 1
    )
    policy = rs.myopic(bandit)
    with pytest.raises(rs.errors.ProblemError, match="the state is for 3 arms, the bandit has 2"):
        policy.select(rs.BeliefState([0] * 3, [1] * 3))
    with pytest.raises(
        rs.errors.ProblemError, match=r"arm 1 \('b'\): last_state is 2, its states are 0 to 1"
    ):
        policy.select(rs.BeliefState([0, 2], [1, 1]))


def test_states_are_equal_by_value_hashable_and_frozen():
    state = rs.BeliefState([0, 1], [3, 4])
    same = rs.BeliefState(np.array([0, 1], dtype=np.int8), (3, 4))
    assert state == same
    assert len({state, same}) == 1
    assert state != rs.BeliefState([0, 1], [3, 5])
    assert state != rs.BeliefState([1, 1], [3, 4])
    assert state != "state"
    assert state.num_arms == 2
    with pytest.raises(ValueError, match="read-only"):
        state.elapsed[0] = 1


def test_the_start_of_the_paper_is_every_arm_seen_good_one_step_ago():
    """Reading 7."""
    three = random_arm(np.random.default_rng(0), 3)
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), three], 1)
    assert initial_state(bandit) == rs.BeliefState([1, 2], [1, 1])
