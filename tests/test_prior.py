"""Priors: what is accepted, in which order candidates stand, and which tables are shared."""

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES
from restive.learn.learner_state import prior_weights
from restive.learn.slots import Choices
from restive.learn.snapshots import prior_from_data, prior_to_data
from restive.learn.task import make_task

GOOD, POOR = rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.6, 0.4)
THREE = rs.Arm(np.full((3, 3), 1 / 3), rewards=[0, 0.5, 1])
RICH = rs.gilbert_elliott(0.3, 0.7, rewards=(0.1, 1))


def test_weights_are_equal_by_default_and_scaled_to_one():
    assert rs.ArmPrior([GOOD, POOR]).weights.tolist() == [0.5, 0.5]
    assert rs.ArmPrior([GOOD, POOR], [1, 3]).weights.tolist() == [0.25, 0.75]
    assert rs.ArmPrior([GOOD, POOR], (0, 5)).weights.tolist() == [0, 1]
    bandits = [rs.RestlessBandit(arms, 1) for arms in ([GOOD, POOR], [POOR, GOOD])]
    assert rs.JointPrior(bandits, [6, 2]).weights.tolist() == [0.75, 0.25]
    assert rs.JointPrior(bandits).weights.tolist() == [0.5, 0.5]


def test_weights_that_sum_to_one_are_kept_to_the_bit():
    weights = np.array([0.1, 0.2, 0.7]) * (1 + 2**-50)
    arms = [GOOD, POOR, rs.gilbert_elliott(0.5, 0.5)]
    assert rs.ArmPrior(arms, weights).weights.tobytes() == weights.tobytes()


def test_priors_are_frozen():
    weights = np.array([1.0, 3.0])
    prior = rs.ArmPrior([GOOD, POOR], weights)
    weights[0] = 100
    assert prior.weights.tolist() == [0.25, 0.75]
    with pytest.raises(ValueError, match="read-only"):
        prior.weights[0] = 1
    with pytest.raises(AttributeError):
        prior.weights = weights


@pytest.mark.parametrize(
    ("candidates", "weights", "message"),
    [
        ([], None, "a prior needs at least one candidate, got none"),
        ([GOOD, "arm"], None, "candidate 1: expected an Arm, got str"),
        ([GOOD, THREE], None, "candidate 1 has 3 states, candidate 0 has 2; they must agree"),
        ([GOOD, POOR, RICH], None, r"candidate 2 has rewards \[0.1, 1.0\], candidate 0 has"),
        ([GOOD, POOR], [1], "one number for each of the 2 candidates"),
        ([GOOD, POOR], [[1, 2]], "one number for each of the 2 candidates"),
        ([GOOD, POOR], [1, -1], "finite, not negative, and not all zero"),
        ([GOOD, POOR], [0, 0], "finite, not negative, and not all zero"),
        ([GOOD, POOR], [1, np.nan], "finite, not negative, and not all zero"),
        ([GOOD, POOR], [1, np.inf], "finite, not negative, and not all zero"),
        ([GOOD, POOR], ["a", "b"], "weights must be numbers"),
    ],
)
def test_what_an_arm_prior_refuses(candidates, weights, message):
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.ArmPrior(candidates, weights)


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([], "a prior needs at least one arm, got none"),
        ([rs.ArmPrior([GOOD]), GOOD], "arm 1: expected an ArmPrior or a Dirichlet"),
    ],
)
def test_what_an_independent_prior_refuses(arms, message):
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.IndependentPrior(arms)


@pytest.mark.parametrize(
    ("bandits", "weights", "message"),
    [
        ([], None, "a prior needs at least one bandit, got none"),
        ([([GOOD], 1), "bandit"], None, "bandit 1: expected a bandit, got str"),
        ([([GOOD, POOR], 1), ([GOOD], 1)], None, "bandit 1 has 1 arms and 1 pulls, bandit 0 has 2"),
        ([([GOOD, POOR], 1), ([GOOD, POOR], 2)], None, "2 arms and 2 pulls, bandit 0 has 2 and 1"),
        ([([GOOD, POOR], 1), ([GOOD, THREE], 1)], None, "arm 1 of bandit 1 has 3 states"),
        ([([GOOD, POOR], 1), ([RICH, POOR], 1)], None, "arm 0 of bandit 1 has rewards"),
        ([([GOOD], 1), ([POOR], 1)], [1, 2, 3], "one number for each of the 2 bandits"),
    ],
)
def test_what_a_joint_prior_refuses(bandits, weights, message):
    made = [each if isinstance(each, str) else rs.RestlessBandit(*each) for each in bandits]
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.JointPrior(made, weights)


def test_the_grid_is_ordered_by_p01_then_p11():
    prior = rs.grid_prior([0.2, 0.9, 0.5], num_arms=3)
    assert prior.num_arms == 3
    levels = [(0.2, 0.2), (0.2, 0.9), (0.2, 0.5), (0.9, 0.2), (0.9, 0.9), (0.9, 0.5)]
    levels += [(0.5, 0.2), (0.5, 0.9), (0.5, 0.5)]
    for arm in prior.arms:
        assert arm.candidates == tuple(rs.gilbert_elliott(*pair) for pair in levels)
        assert arm.weights == pytest.approx(np.full(9, 1 / 9))
        assert arm is prior.arms[0]
    assert prior.candidates(2)[1].active[0, 1] == 0.2
    assert prior.candidates(2)[1].active[1, 1] == 0.9


@pytest.mark.parametrize(
    ("levels", "num_arms", "message"),
    [
        ([0.1], 0, "num_arms must be at least 1, got 0"),
        ([0.1], True, "num_arms must be a whole number"),
        ([0.1], 2.0, "num_arms must be a whole number"),
        ([], 2, "levels must be a list of probabilities"),
        ([[0.1]], 2, "levels must be a list of probabilities"),
        (["a"], 2, "levels must be numbers"),
        ([0.1, 1.2], 2, "1.2, expected a probability"),
    ],
)
def test_what_the_grid_refuses(levels, num_arms, message):
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.grid_prior(levels, num_arms)


def test_candidates_of_a_joint_prior_are_by_system():
    bandits = [rs.RestlessBandit(arms, 1) for arms in ([GOOD, POOR], [POOR, GOOD])]
    prior = rs.JointPrior(bandits)
    assert prior.num_arms == 2
    assert prior.candidates(0) == (GOOD, POOR)
    assert prior.candidates(1) == (POOR, GOOD)


def test_arms_that_share_a_prior_share_its_tables():
    tasks = [make_task(rs.grid_prior([0.2, 0.5, 0.8], k), 1) for k in (1, 1000)]
    one, many = (task.choices.slots for task in tasks)
    assert many.likelihoods.tobytes() == one.likelihoods.tobytes()
    assert set(many.offsets) == {0}
    assert len(many.groups) == 1000
    few, weights = (prior_weights(task, task.choices.slots) for task in tasks)
    assert set(weights.homes) == set(few.homes) == {0}  # until something is seen
    shared = len(tasks[0].choices.prior_homes)
    assert len(weights.numbers) == 1001 * shared
    assert len(few.numbers) == 2 * shared


def test_equal_arms_in_different_priors_are_one_kind():
    priors = [rs.ArmPrior([GOOD, POOR]), rs.ArmPrior([POOR, GOOD], [1, 2])]
    choices = Choices.of(rs.IndependentPrior(priors), rs.RestlessBandit([GOOD, POOR], 1), None)
    assert len(choices.kinds.arms) == 2
    assert choices.true_kinds.tolist() == [0, 1]


def test_a_truth_that_does_not_fit_the_prior_is_refused():
    prior = rs.IndependentPrior([rs.ArmPrior([GOOD, POOR])] * 2)
    with pytest.raises(
        rs.errors.ProblemError, match="the true bandit has 1 arms, the prior is for 2"
    ):
        Choices.of(prior, rs.RestlessBandit([GOOD], 1), None)
    for other in (RICH, THREE):
        with pytest.raises(
            rs.errors.ProblemError, match=r"arm 1: rewards are .* so they must agree"
        ):
            Choices.of(prior, rs.RestlessBandit([GOOD, other], 1), None)


def test_too_many_likelihoods_are_refused(monkeypatch):
    prior = rs.grid_prior([0.2, 0.5, 0.8], 2)
    needed = Choices.of(prior, None, 50).slots.likelihoods.nbytes
    monkeypatch.setattr("restive.learn.slots.MOST_LIKELIHOOD_BYTES", needed // 2)
    with pytest.raises(rs.errors.TooLargeError, match=r"9 candidates take .* max_elapsed"):
        _ = Choices.of(prior, None, 50).slots


def test_priors_as_plain_data_come_back_to_the_bit():
    for case in CASES.values():
        prior, _ = case()
        data = prior_to_data(prior)
        assert prior_to_data(prior_from_data(data)) == data


def test_the_same_candidate_twice_is_refused():
    channels = [rs.gilbert_elliott(p, 0.7) for p in (0.2, 0.3, 0.2)]
    with pytest.raises(
        rs.errors.ProblemError, match="candidate 2 is the same as candidate 0: give it once"
    ):
        rs.ArmPrior(channels, [0.2, 0.5, 0.3])
    systems = [rs.RestlessBandit([channel, channels[1]], 1) for channel in channels]
    with pytest.raises(
        rs.errors.ProblemError, match="bandit 2 is the same as bandit 0: give it once"
    ):
        rs.JointPrior(systems)
    rs.ArmPrior(channels[:2], [0.5, 0.5])  # as the message says
    with pytest.raises(rs.errors.ProblemError, match=r"levels hold 0.5 more than once"):
        rs.grid_prior([0.5] * 200, 8)


def test_a_pool_of_very_many_arms_is_made_at_once():
    (arm,) = rs.beta_prior(1).arms
    prior = rs.IndependentPrior([arm] * 200_000, pooled=[range(200_000)])
    assert not prior.groups.any()


def test_posteriors_of_one_kind_share_its_likelihoods():
    """Arms with other weights of the same candidates: tables are those of one arm."""
    (kind,) = rs.grid_prior([0.2, 0.5, 0.8], 1).arms
    other = rs.ArmPrior([rs.gilbert_elliott(0.1, 0.6), rs.gilbert_elliott(0.3, 0.7)])
    shares = [kind.with_weights(np.arange(1, 10) ** k) for k in range(3)]
    slots = Choices.of(rs.IndependentPrior([*shares, other]), None, None).slots
    alone = Choices.of(rs.IndependentPrior([shares[0], other]), None, None).slots
    np.testing.assert_array_equal(slots.likelihoods, alone.likelihoods)
    np.testing.assert_array_equal(slots.offsets, alone.offsets[[0, 0, 0, 1]])
    np.testing.assert_array_equal(slots.lengths, alone.lengths[[0, 0, 0, 1]])
