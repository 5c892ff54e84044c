"""Arms and bandits: what is accepted, what is refused in which words, and that they are frozen."""

import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given

import restive as rs
from restive.problem.bandit import kinds_of
from strategies import arms, bandits

HALF = [[0.5, 0.5], [0.5, 0.5]]


def refusal(call, *args, **kwargs):
    """Return the message with which a call is refused."""
    with pytest.raises(rs.errors.ProblemError) as caught:
        call(*args, **kwargs)
    return str(caught.value)


def test_passive_defaults_to_active():
    arm = rs.Arm([[0.9, 0.1], [0.2, 0.8]], rewards=[0, 1])
    assert np.array_equal(arm.passive, arm.active)
    assert arm.is_uncontrolled
    assert not rs.Arm([[0.9, 0.1], [0.2, 0.8]], HALF, [0, 1]).is_uncontrolled


def test_gilbert_elliott_is_the_channel_of_the_paper():
    arm = rs.gilbert_elliott(p01=0.3, p11=0.7, name="uplink")
    assert arm.active.tolist() == [[0.7, 0.3], [1 - 0.7, 0.7]]
    assert arm.rewards.tolist() == [0, 1]
    assert arm.name == "uplink"
    assert arm.num_states == 2
    assert rs.gilbert_elliott(0.3, 0.7, rewards=[0.2, 0.9]).rewards.tolist() == [0.2, 0.9]


@pytest.mark.parametrize("field", ["active", "passive"])
@pytest.mark.parametrize(
    ("row", "words"),
    [
        ([0.5, 0.47], "row 1 of {field} sums to 0.97, expected 1"),
        ([0.5, 0.500002], "row 1 of {field} sums to 1.000002, expected 1"),
        ([1.2, -0.2], "row 1 of {field} holds 1.2, expected probabilities between 0 and 1"),
        ([-0.2, 1.0], "row 1 of {field} holds -0.2, expected probabilities between 0 and 1"),
        ([float("nan"), 1.0], "row 1 of {field} holds nan, expected probabilities"),
        ([float("inf"), 0.0], "row 1 of {field} holds inf, expected probabilities"),
    ],
)
def test_a_bad_row_is_named_with_arm_matrix_and_number(field, row, words):
    matrices = {"active": HALF, "passive": HALF, field: [[0.5, 0.5], row]}
    message = refusal(rs.Arm, **matrices, rewards=[0, 1], name="downlink")
    assert message.startswith("arm 'downlink': " + words.format(field=field))
    assert refusal(rs.Arm, **matrices, rewards=[0, 1]).startswith("arm: row 1 of " + field)


@pytest.mark.parametrize(
    ("active", "words"),
    [
        ([[1.0]] * 2, "active must be a square matrix with one row per state, got shape (2, 1)"),
        ([0.5, 0.5], "active must be a square matrix with one row per state, got shape (2,)"),
        (np.zeros((0, 0)), "got shape (0, 0)"),
        (np.full((2, 2, 2), 0.5), "got shape (2, 2, 2)"),
        ([[0.5, 0.5], [0.5]], "active must be numbers in a regular array, got [[0.5, 0.5], [0.5]]"),
        ("half", "active must be numbers in a regular array, got 'half'"),
        ([["a", "b"], ["c", "d"]], "active must be numbers in a regular array"),
        (None, "active must be"),
    ],
)
def test_what_is_no_square_matrix_of_numbers_is_refused(active, words):
    assert words in refusal(rs.Arm, active, rewards=[0, 1])


def test_a_long_wrong_value_is_shortened_in_the_message():
    message = refusal(rs.Arm, [["wrong"] * 1000] * 1000, rewards=[0])
    assert len(message) < 200


def test_active_and_passive_must_have_the_same_number_of_states():
    message = refusal(rs.Arm, HALF, np.full((3, 3), 1 / 3), [0, 1])
    assert message == "arm: active has 2 states and passive 3; they must agree"


@pytest.mark.parametrize(
    ("rewards", "words"),
    [
        (None, "rewards are missing, expected 2 numbers"),
        ([0, 0.5, 1], "rewards must hold one number per state, 2, got shape (3,)"),
        (0.5, "rewards must hold one number per state, 2, got shape ()"),
        ([0, float("inf")], "rewards holds inf for state 1, expected a finite number of at most"),
        ([-1e101, 1], "rewards holds -1e+101 for state 0, expected a finite number of at most 1e"),
        ([0, float("nan")], "rewards holds nan for state 1"),
        (["x", 1], "rewards must be numbers"),
    ],
)
def test_wrong_rewards_are_named(rewards, words):
    assert refusal(rs.Arm, HALF, rewards=rewards).startswith(f"arm: {words}")
    if rewards is not None:
        message = refusal(rs.Arm, HALF, rewards=[0, 1], passive_rewards=rewards)
        assert message.startswith(f"arm: passive_{words}")


def test_rewards_may_be_any_finite_numbers():
    arm = rs.Arm(HALF, rewards=[-2.5, 1e6], passive_rewards=[1e-9, -7])
    assert arm.rewards.tolist() == [-2.5, 1e6]
    assert arm.passive_rewards.tolist() == [1e-9, -7]


def test_an_arm_pays_nothing_while_not_pulled_unless_told_so():
    arm = rs.Arm(HALF, rewards=[0, 1])
    assert arm.passive_rewards.tolist() == [0, 0]
    assert not arm.pays_unpulled
    assert rs.Arm(HALF, HALF, [0, 1], [0, 0]) == arm
    assert rs.Arm(HALF, HALF, [0, 1], [0, 0.5]).pays_unpulled
    assert rs.gilbert_elliott(0.3, 0.7, passive_rewards=[0, 1]).passive_rewards.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("p01", "p11", "words"),
    [
        (1.5, 0.5, "p01 is 1.5, expected a probability in [0, 1]"),
        (0.5, -0.5, "p11 is -0.5, expected a probability in [0, 1]"),
        (float("nan"), 0.5, "p01 is nan"),
        ("much", 0.5, "p01 must be a number, got 'much'"),
        (0.5, None, "p11 must be a number, got None"),
        pytest.param(10**400, 0.5, "p01", id="too large for a float"),
    ],
)
def test_wrong_channel_probabilities_are_named(p01, p11, words):
    assert refusal(rs.gilbert_elliott, p01, p11, name="a").startswith(f"arm 'a': {words}")


def test_a_name_must_be_text():
    assert refusal(rs.Arm, HALF, rewards=[0, 1], name=7) == "arm: name must be text, got 7"


@pytest.mark.parametrize("digits", range(6, 14))
def test_rows_off_by_the_digits_typed_are_rescaled_to_sum_to_one(digits):
    third, last = round(1 / 3, digits), round(1 / 3, digits) + 10.0**-digits
    rows = [[third] * 3, [third, third, last], [last, third, last]]
    for matrix in (rows, np.asfortranarray(rows)):
        arm = rs.Arm(matrix, rewards=[0, 0, 1])
        assert abs(arm.active.sum(axis=1) - 1).max() < 1e-15
        totals = np.array(rows).sum(axis=1, keepdims=True)
        assert abs(arm.active - rows / totals).max() < 1e-15


@given(arms(sizes=(1, 2, 4), spread=0.1))
def test_an_arm_made_of_an_arm_is_equal_to_the_bit(arm):
    again = rs.Arm(arm.active, arm.passive, arm.rewards, arm.passive_rewards, arm.name)
    assert again == arm
    assert hash(again) == hash(arm)
    assert again.active.tobytes() == arm.active.tobytes()


def test_minus_zero_and_zero_make_equal_arms():
    one = rs.Arm([[1.0, -0.0], [0.5, 0.5]], rewards=[-0.0, 1])
    other = rs.Arm([[1.0, 0.0], [0.5, 0.5]], rewards=[0.0, 1])
    assert one == other
    assert hash(one) == hash(other)


@pytest.mark.parametrize("field", ["active", "passive", "rewards", "passive_rewards", "name"])
def test_arms_that_differ_in_one_field_are_unequal(field):
    fields = {"active": HALF, "passive": HALF, "rewards": [0, 1], "name": "a"}
    others = {
        "active": [[0, 1], [1, 0]],
        "passive": [[0, 1], [1, 0]],
        "rewards": [1, 0],
        "passive_rewards": [0, 1],
    }
    assert rs.Arm(**fields) == rs.Arm(**fields)
    assert rs.Arm(**fields) != rs.Arm(**{**fields, field: others.get(field, "b")})
    assert rs.Arm(**fields) != "an arm"


@given(bandits(num_arms=(2, 4)))
def test_a_repr_is_code_that_makes_an_equal_bandit_where_it_fits_on_a_line(bandit):
    names = {"Arm": rs.Arm, "RestlessBandit": rs.RestlessBandit}
    shown = repr(bandit)
    assert len(shown) <= 100
    if "states)" not in shown and " arms, " not in shown:  # too long to be written out
        assert eval(shown, names) == bandit
    small = rs.RestlessBandit([rs.Arm(HALF, rewards=[0, 1])], 1)
    assert eval(repr(small), names) == small


def test_the_repr_of_many_arms_is_short():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7, name="x")] * 1000, 10)
    assert repr(bandit) == "RestlessBandit(1,000 arms, num_pulls=10)"
    assert "name='x'" in repr(bandit.arms[0])


def test_arms_and_bandits_are_frozen():
    active = np.array(HALF)
    arm = rs.Arm(active, rewards=[0, 1])
    active[0] = [1, 0]
    assert arm.active.tolist() == HALF, "the arm keeps a copy of its own"
    for array in (arm.active, arm.passive, arm.rewards, arm.passive_rewards):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(FrozenInstanceError):
        arm.name = "other"
    bandit = rs.RestlessBandit([arm], 1)
    with pytest.raises(FrozenInstanceError):
        bandit.num_pulls = 2


def test_a_bandit_survives_pickling(paper_bandit):
    assert pickle.loads(pickle.dumps(paper_bandit)) == paper_bandit


@pytest.mark.parametrize(
    ("num_pulls", "words"),
    [
        (0, "num_pulls must be between 1 and the number of arms, 2, got 0"),
        (3, "num_pulls must be between 1 and the number of arms, 2, got 3"),
        (-1, "got -1"),
        (1.0, "num_pulls must be a whole number, got 1.0"),
        (True, "num_pulls must be a whole number, got True"),
        (None, "num_pulls must be a whole number, got None"),
        ("1", "num_pulls must be a whole number, got '1'"),
    ],
)
def test_a_wrong_number_of_pulls_is_refused(num_pulls, words):
    arm = rs.gilbert_elliott(0.3, 0.7)
    assert words in refusal(rs.RestlessBandit, [arm, arm], num_pulls)


def test_a_bandit_needs_arms():
    assert refusal(rs.RestlessBandit, [], 1) == "a bandit needs at least one arm, got none"
    message = refusal(rs.RestlessBandit, [rs.gilbert_elliott(0.3, 0.7), HALF], 1)
    assert message == "arm 1: expected an Arm, got list"
    message = refusal(rs.RestlessBandit, [(0.3, 0.7)], 1)
    assert message == "arm 0: expected an Arm, got tuple; a channel is gilbert_elliott(p01, p11)"


def test_numpy_integers_and_any_iterable_will_do():
    bandit = rs.RestlessBandit((rs.gilbert_elliott(p, 0.5) for p in (0.2, 0.3)), np.int32(1))
    assert bandit.num_arms == 2
    assert type(bandit.num_pulls) is int


def test_bandits_are_equal_when_their_arms_and_pulls_are(paper_bandit):
    same = rs.RestlessBandit(list(paper_bandit.arms), 2)
    assert same == paper_bandit
    assert hash(same) == hash(paper_bandit)
    assert rs.RestlessBandit(paper_bandit.arms, 1) != paper_bandit
    assert rs.RestlessBandit(paper_bandit.arms[::-1], 2) != paper_bandit


def test_labels_tell_number_and_name():
    named = rs.gilbert_elliott(0.3, 0.7, name="uplink")
    bandit = rs.RestlessBandit([named, rs.gilbert_elliott(0.3, 0.7)], 1)
    assert [bandit.label(k) for k in range(2)] == ["arm 0 ('uplink')", "arm 1"]


def test_arms_with_the_same_numbers_are_one_kind_whatever_their_names():
    a, b = rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.4, 0.6)
    twin = rs.gilbert_elliott(0.3, 0.7, name="twin")
    kinds = kinds_of(rs.RestlessBandit([b, a, twin, b, a], 1))
    assert kinds.arms == (b, a)
    assert kinds.of.tolist() == [0, 1, 1, 0, 1]
    assert kinds.counts.tolist() == [2, 3]
    assert kinds.labels == ("arm 0", "arm 1")


def test_arms_that_pay_differently_while_not_pulled_are_of_different_kinds():
    a, b = (rs.gilbert_elliott(0.3, 0.7, passive_rewards=[0, paid]) for paid in (0, 1))
    assert kinds_of(rs.RestlessBandit([a, b, a], 1)).of.tolist() == [0, 1, 0]
