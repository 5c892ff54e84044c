"""Simulated J: runs forget their start before they count, or there is no number."""

import dataclasses

import numpy as np
import pytest

import restive as rs
from restive.measure.intervals import student_quantile
from restive.plan import simulated_run, summary
from restive.plan.simulated_run import Runs, paid_arms, simulated_reward, with_least_noise
from restive.plan.summary import plan_bandit
from restive.problem.bandit import kinds_of
from restive.problem.beliefs import initial_state, settled_lengths
from restive.problem.chains import forgetting_time


def plan_of_runs(bandit, max_elapsed=None, replications=None, steps=None):
    kinds = kinds_of(bandit)
    lengths = settled_lengths(kinds, max_elapsed)
    return simulated_run.plan_of_runs(bandit, kinds, lengths, replications, steps)


def test_forgetting_takes_as_long_as_the_slower_of_the_two_chains():
    quick, slow = [[0.5, 0.5], [0.4, 0.6]], [[0.99, 0.01], [0.02, 0.98]]
    rewards = [0, 1]
    expected = rs.theory.mixing_time(rs.Arm(slow, slow, rewards))
    assert expected > 20
    assert forgetting_time(rs.Arm(slow, quick, rewards)) == expected
    assert forgetting_time(rs.Arm(quick, slow, rewards)) == expected
    assert forgetting_time(rs.Arm(quick, quick, rewards)) == rs.theory.mixing_time(
        rs.Arm(quick, quick, rewards)
    )


def test_chains_that_never_forget_do_not_count_and_transient_states_do():
    mixing = [[0.5, 0.5], [0.4, 0.6]]
    two_classes, swinging = np.eye(2), [[0, 1], [1, 0]]
    for active in (two_classes, swinging):
        assert forgetting_time(rs.Arm(active, mixing, [0, 1])) == forgetting_time(
            rs.Arm(mixing, mixing, [0, 1])
        )
    hardly_left = [[1 - 1e-4, 1e-4], [0, 1]]
    assert 5_000 < forgetting_time(rs.Arm(hardly_left, mixing, [0, 1])) < 50_000


def test_quick_arms_are_simulated_as_long_as_there_is_time():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 10, 2)
    assert plan_of_runs(bandit) == (64, 50_000, 5_000)
    assert plan_of_runs(bandit, replications=9, steps=700) == (9, 700, 70)


def test_slow_arms_are_forgotten_before_steps_count():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(2e-5, 1 - 2e-5)] * 2, 1)
    runs, steps, burn_in = plan_of_runs(bandit, max_elapsed=500)
    assert burn_in == 10 * rs.theory.mixing_time(bandit.arms[0]) > 300_000
    assert steps >= burn_in
    assert runs == 64


def test_very_many_arms_take_fewer_runs_of_fewer_steps():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 1_000_000, 100)
    runs, steps, burn_in = plan_of_runs(bandit)
    assert runs == 8
    assert burn_in >= settled_lengths(kinds_of(bandit)).max()
    assert runs * (steps + burn_in) * 1_000_000 <= simulated_run.MOST_ARM_STEPS


def test_a_slow_bandit_that_starts_well_is_not_taken_for_a_good_one():
    """Both arms start good and change once in 50,000 steps; each is good half of the time.

    So some arm is good three quarters of the time: no policy earns more. Counting from step 5,000
    on, as quick arms allow, gave 0.93.
    """
    arm = rs.gilbert_elliott(2e-5, 1 - 2e-5)
    bandit = rs.RestlessBandit([arm, arm], 1)
    value = rs.evaluate(bandit, "myopic", max_elapsed=500, max_states=1)
    assert value.method.startswith("simulation: 64 runs of ")
    assert " steps after 346," in value.method
    assert value.average_reward == pytest.approx(0.75, abs=5 * value.stderr)  # 1 in 1e6
    assert value.stderr < 0.03


def test_no_number_where_the_start_is_never_forgotten():
    arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(1e-12, 1 - 1e-12)]
    bandit = rs.RestlessBandit(arms, 1)
    with pytest.raises(rs.errors.TooLargeError) as caught:
        rs.evaluate(bandit, "myopic", max_elapsed=100, max_states=1)
    assert str(caught.value).startswith("arm 1 takes about 693,1")
    assert "steps to forget where it started" in str(caught.value)
    # the way out that the message names
    assert "pass steps to evaluate" in str(caught.value)
    value = rs.evaluate(bandit, "myopic", max_elapsed=100, max_states=1, steps=200)
    assert value.method == "simulation: 64 runs of 200 steps"


def test_plan_says_so_instead_of_a_number():
    arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(1e-12, 1 - 1e-12)]
    found = plan_bandit(rs.RestlessBandit(arms, 1), max_elapsed=100, max_states=1)
    myopic = found.policies[1]
    assert myopic.average_reward is None
    assert "to forget where it started" in myopic.note


def test_a_j_above_the_bound_is_called_a_mistake_of_ours(monkeypatch):
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.7)], 1)
    honest = plan_bandit(bandit)
    assert all("mistake in restive" not in policy.note for policy in honest.policies)
    solve = summary.relaxed

    def too_low(*arguments):
        found = solve(*arguments)
        return dataclasses.replace(found, bound=0.9 * honest.policies[2].average_reward)

    monkeypatch.setattr(summary, "relaxed", too_low)
    for policy in plan_bandit(bandit).policies[1:]:
        assert "above the bound" in policy.note
        assert "this is a mistake in restive, please report it" in policy.note


def test_chance_does_not_make_a_mistake():
    """A simulated J may lie above the bound, here by less than a standard error."""
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.8)] * 2000, 50)
    value = rs.evaluate(bandit, "whittle", steps=300, replications=16)
    bound = rs.relaxation_bound(bandit)
    assert abs(value.average_reward - bound) < 5 * value.stderr + 1e-3 * bound
    low = value.average_reward - value.stderr
    row = summary._summary("whittle", rs.whittle(bandit), value, low, 0.0)
    assert row.note == ""


def conveyor():
    """An arm of Hong et al. (2024): 0-3 move on if pulled, 4-7 if not, and back otherwise.

    Under some policies it has two closed classes.
    """
    pulled, alone = np.zeros((8, 8)), np.zeros((8, 8))
    for s, back in enumerate((0, 1, 0.48, 0.47, 0.46, 0.45, 0.44, 0.43)):
        right, wrong = (pulled, alone) if s < 4 else (alone, pulled)
        right[s, s], right[s, (s + 1) % 8] = 0.9, 0.1
        wrong[s, s] = 1 - back
        wrong[s, max(s - 1, 0)] += back
    pays, alone_pays = np.zeros(8), np.zeros(8)
    pays[0], alone_pays[7] = 1 / 300, 0.1
    return rs.Arm(pulled, alone, pays, alone_pays, seen="always")


def by_rank(bandit, order):
    """The policy that pulls arms in the states that come first."""
    table = np.empty((len(order), 1))
    table[list(order), 0] = -np.arange(len(order))
    return rs.policies.index_policy(bandit, lambda arm: table, name="by rank")


def test_no_j_is_below_the_least_reward_where_the_reduction_is_noisy():
    """The reduced rewards of these arms are negative in some states, and far more in others."""
    bandit = rs.RestlessBandit([conveyor()] * 100, num_pulls=50)
    policy = by_rank(bandit, (1, 2, 3, 0, 7, 6, 5, 4))
    paid = paid_arms(bandit, np.array([2]))
    runs, start = Runs(16, 1000, 100), initial_state(bandit)
    for seed in range(4):
        found = rs.evaluate(bandit, policy, replications=16, steps=1000, seed=seed)
        assert 0 <= found.average_reward <= 0.01
        assert found.stderr < 0.002
        alone = simulated_reward(
            bandit, paid._replace(plain=None), policy.ranked, policy.kinds.of, start, runs, seed
        )
        assert alone.stderr > 0.01  # so that there is something to mend


@pytest.mark.parametrize(
    ("arm", "order"),
    [
        (conveyor(), (1, 2, 3, 0, 7, 6, 5, 4)),
        (conveyor(), (0, 1, 2, 3, 7, 6, 5, 4)),
        (rs.Arm([[0.5, 0.5], [0.2, 0.8]], [[0.9, 0.1], [0.4, 0.6]], [0, 1], [0, 1]), (0, 1)),
    ],
)
def test_the_error_of_what_always_pays_holds_in_95_of_100_seeds(arm, order):
    """With a right error fewer than 89 of 100 have a chance of 0.4% (binomial)."""
    bandit = rs.RestlessBandit([arm] * 3, num_pulls=1)
    policy = by_rank(bandit, order)
    exact = rs.evaluate(bandit, policy).average_reward
    held = 0
    for seed in range(100):
        options = {"max_states": 1, "replications": 16, "steps": 2000, "seed": seed}
        found = rs.evaluate(bandit, policy, **options)
        assert found.method.startswith("simulation")
        error = student_quantile(16) * found.stderr + 1e-9  # with two states there may be no noise
        held += abs(found.average_reward - exact) <= error
    assert held >= 89


def test_two_estimates_are_combined_with_the_best_weight_and_without_bias():
    """The least variance of x + w (y - x) is known; 4,000 means lie within 4 errors of theirs."""
    rng = np.random.default_rng(0)
    for share, scale in ((0.0, 1.0), (0.9, 1.0), (0.9, 10.0), (0.99, 0.1)):
        one, own = rng.standard_normal((2, 4000, 16))
        other = scale * (share * one + np.sqrt(1 - share**2) * own)
        means = np.array([with_least_noise(*runs).mean() for runs in zip(one, other, strict=True)])
        covariance = np.cov(one.ravel(), other.ravel())
        least = np.linalg.det(covariance) / (covariance.trace() - 2 * covariance[0, 1]) / 16
        assert means.var() < 1.2 * least
        assert abs(means.mean()) < 4 * means.std() / np.sqrt(4000)


def test_a_run_has_no_say_in_its_own_weight():
    """So that no estimate is biased: of run 3 the weight is that of the 15 others' regression."""
    rng = np.random.default_rng(1)
    reduced, plain = rng.normal(3.0, 1.0, (2, 16))
    between = plain - reduced
    others = np.arange(16) != 3
    covariance = np.cov(plain[others], between[others])
    expected = plain[3] - covariance[0, 1] / covariance[1, 1] * between[3]
    assert with_least_noise(reduced, plain)[3] == pytest.approx(expected, abs=1e-12)
    assert (with_least_noise(reduced[:3], plain[:3]) == plain[:3]).all()
    assert (with_least_noise(plain, plain) == plain).all()
