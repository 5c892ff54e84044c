"""The optimum of small bandits: an independent package, reductions, sizes and refusals."""

import re
from concurrent.futures import ThreadPoolExecutor
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import restive as rs
from oracles.joint_naive import optimal_two_arms
from restive.plan.policies import optimal
from restive.plan.policies.optimal import AGE_TOLERANCE, log_num_states, num_joint_states
from restive.problem.beliefs import settled_elapsed
from strategies import as_oracle, bandits, random_arm, states_of

SURE = rs.Arm([[1.0]], rewards=[1.0])
USELESS = rs.Arm([[1.0]], rewards=[0.0])


def two_arms(seed, sizes=(2, 3), controlled=True):
    """Return two random arms that forget quickly."""
    rng = np.random.default_rng([9, seed])
    return [random_arm(rng, size, spread=0.7, controlled=controlled) for size in sizes]


def best_by_peer(arms):
    """Return the optimum by pymdptoolbox."""
    longest = max(settled_elapsed(arm) for arm in arms)
    return optimal_two_arms(*(as_oracle(arm) for arm in arms), longest)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3)])
def test_two_arms_are_worth_what_pymdptoolbox_says(sizes, seed):
    arms = two_arms(seed, sizes)
    bandit = rs.RestlessBandit(arms, 1)
    policy = rs.optimal(bandit)
    expected = best_by_peer(arms)
    assert policy.average_reward == pytest.approx(expected, abs=1e-8)
    assert rs.evaluate(bandit, policy).average_reward == pytest.approx(expected, abs=1e-8)


def test_two_channels_are_worth_what_pymdptoolbox_says():
    arms = [rs.gilbert_elliott(0.3, 0.6), rs.gilbert_elliott(0.7, 0.4)]
    found = rs.optimal(rs.RestlessBandit(arms, 1)).average_reward
    assert found == pytest.approx(best_by_peer(arms), abs=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_a_sure_arm_adds_its_reward_and_a_useless_one_nothing(seed):
    arms = two_arms(seed)
    expected = best_by_peer(arms)
    with_sure = rs.optimal(rs.RestlessBandit([arms[0], SURE, arms[1]], 2))
    assert with_sure.average_reward == pytest.approx(1 + expected, abs=1e-8)
    with_useless = rs.optimal(rs.RestlessBandit([USELESS, *arms], 1))
    assert with_useless.average_reward == pytest.approx(expected, abs=1e-8)


def test_pulling_all_arms_is_worth_the_sum_of_their_long_run_rewards():
    arms = two_arms(0)
    expected = sum(rs.theory.stationary(arm.active) @ arm.rewards for arm in arms)
    assert rs.optimal(rs.RestlessBandit(arms, 2)).average_reward == pytest.approx(
        expected, abs=1e-8
    )


def test_independent_arms_are_worth_the_largest_means():
    means = [0.3, 0.8, 0.5, 0.6]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(p, p) for p in means], 2)
    policy = rs.optimal(bandit)
    assert policy.average_reward == pytest.approx(1.4, abs=1e-9)
    assert policy.select(rs.BeliefState([0] * 4, [1, 2, 3, 4])).tolist() == [1, 3]


def test_the_optimum_of_equal_arms_pulls_the_lowest_of_equals():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 3, 1)
    policy = rs.optimal(bandit)
    assert policy.select(rs.BeliefState([1, 1, 1], [1, 1, 1])).tolist() == [0]
    assert policy.select(rs.BeliefState([0, 1, 1], [1, 1, 1])).tolist() == [1]
    assert policy.select(rs.BeliefState([0, 0, 0], [1, 5, 5])).tolist() == [1]


@settings(max_examples=15)
@given(st.data())
def test_the_optimum_chooses_n_arms_in_every_meta_state(data):
    bandit = data.draw(bandits(num_arms=(2, 3), spread=0.75))
    policy = rs.optimal(bandit)
    for _ in range(5):
        chosen = policy.select(data.draw(states_of(bandit, most_elapsed=200)))
        assert chosen.shape == (bandit.num_pulls,)
        assert (np.diff(chosen) > 0).all()


def test_the_gain_does_not_depend_on_the_start(paper_bandit):
    policy = rs.optimal(paper_bandit)
    values = [
        rs.evaluate(paper_bandit, policy, start=rs.BeliefState(last_state, elapsed)).average_reward
        for last_state, elapsed in [([0] * 4, [1] * 4), ([1] * 4, [9, 1, 1, 50])]
    ]
    assert values == pytest.approx([1.1196940387] * 2, abs=1e-8)


@pytest.mark.parametrize(
    ("levels", "num_pulls"),
    [
        ([(0.3, 0.7), (0.6, 0.4)], 1),
        ([(0.5, 0.6), (0.5, 0.5), (0.4, 0.5)], 1),
        ([(0.5, 0.6), (0.5, 0.5), (0.4, 0.5)], 2),
        ([(0.5, 0.5), (0.5, 0.5), (0.4, 0.5)], 2),
        ([(0.5, 0.5), (0.4, 0.4)], 1),
        ([(0.5, 0.6), (0.4, 0.5)], 2),
    ],
)
def test_the_number_of_states_is_that_of_those_with_n_arms_just_seen(levels, num_pulls):
    """Counted one by one; an arm that settles at once has one age and may be seen or not."""
    arms = [rs.gilbert_elliott(*pair) for pair in levels]
    bandit = rs.RestlessBandit(arms, num_pulls)
    lengths = [settled_elapsed(arm, tolerance=AGE_TOLERANCE) for arm in arms]
    ageless = sum(length == 1 for length in lengths)
    count = 0
    for ages in product(*(range(1, length + 1) for length in lengths)):
        fresh = sum(age == 1 and top > 1 for age, top in zip(ages, lengths, strict=True))
        if num_pulls - ageless <= fresh <= num_pulls:
            count += 2 ** len(arms)
    sizes = [2] * len(arms)
    assert num_joint_states(sizes, lengths, num_pulls) == count
    found = log_num_states(np.array(sizes), np.array(lengths), num_pulls)
    assert 10**found == pytest.approx(count)
    assert rs.optimal(bandit).joint.count == count
    assert rs.optimal(bandit, max_states=count).average_reward > 0
    with pytest.raises(rs.errors.TooLargeError, match=f"the optimum needs {count:,} joint states"):
        rs.optimal(bandit, max_states=count - 1)


def test_large_instances_are_refused_naming_the_number_of_states():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(k / 10, 0.5) for k in range(1, 9)], 3)
    lengths = np.array([settled_elapsed(arm, tolerance=AGE_TOLERANCE) for arm in bandit.arms])
    count = num_joint_states([2] * 8, lengths.tolist(), 3)
    assert count > 10**9
    with pytest.raises(rs.errors.TooLargeError) as caught:
        rs.optimal(bandit)
    assert f"{count:,} joint states with 56 choices" in str(caught.value)
    assert "use whittle or lp_priority" in str(caught.value)


@pytest.mark.parametrize("num_arms", [500, 200_000])
def test_very_large_instances_are_refused_with_a_round_figure(num_arms):
    """A number of thousands of digits is neither computed nor printed."""
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * num_arms, 50)
    with pytest.raises(rs.errors.TooLargeError) as caught:
        rs.optimal(bandit)
    (digits,) = re.findall(r"needs about 10\^(\d+) joint states", str(caught.value))
    assert "choices of about 10^15 outcomes each" in str(caught.value)
    assert len(str(caught.value)) < 400
    if num_arms == 500:
        length = settled_elapsed(bandit.arms[0], tolerance=AGE_TOLERANCE)
        count = num_joint_states([2] * 500, [length] * 500, 50)
        assert int(digits) == len(str(count)) - (str(count)[0] < "4")


def test_the_round_figure_is_near_where_arms_differ():
    rng = np.random.default_rng(0)
    sizes, lengths = rng.integers(1, 4, 60), rng.integers(1, 40, 60)
    count = num_joint_states(sizes.tolist(), lengths.tolist(), 7)
    found = log_num_states(sizes, lengths, 7)
    assert found == pytest.approx(len(str(count)), rel=0.05)


@pytest.mark.parametrize(("num_arms", "num_pulls"), [(3, 1), (8, 4)])
def test_a_refusal_names_the_max_states_that_is_enough(monkeypatch, num_arms, num_pulls):
    """Also where a state counts as several: there are 70 choices of 16 outcomes in one of eight."""
    monkeypatch.setattr(optimal, "MAX_STATES", 100)
    arms = [rs.gilbert_elliott(0.3, 0.2 + 0.1 * k) for k in range(num_arms)]
    bandit = rs.RestlessBandit(arms, num_pulls)
    refused = r"raise max_states to ([\d,]+) if there is as much memory, lower"
    with pytest.raises(rs.errors.TooLargeError, match=refused) as caught:
        rs.optimal(bandit, max_states=10, max_elapsed=2)
    (named,) = re.findall(refused, str(caught.value))
    needed = int(named.replace(",", ""))
    assert rs.optimal(bandit, max_states=needed, max_elapsed=2).average_reward > 0
    with pytest.raises(rs.errors.TooLargeError, match=f"raise max_states to {named} "):
        rs.optimal(bandit, max_states=needed - 1, max_elapsed=2)


def test_what_would_not_fit_is_not_begun():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 8, 3)
    with pytest.raises(rs.errors.TooLargeError, match=r"they would take 572.0 TiB, and there"):
        rs.optimal(bandit, max_states=10**15)


def test_fewer_ages_make_a_smaller_problem_with_nearly_the_same_worth():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.7)], 1)
    full, cut = rs.optimal(bandit), rs.optimal(bandit, max_elapsed=8)
    assert cut.joint.count < full.joint.count
    assert cut.average_reward == pytest.approx(full.average_reward, abs=1e-3)


def test_threads_can_share_a_policy():
    bandit = rs.RestlessBandit(two_arms(1, (2, 3)), 1)
    policy = rs.optimal(bandit)
    rng = np.random.default_rng(4)
    parts = [
        (np.column_stack([rng.integers(2, size=20_000), rng.integers(3, size=20_000)]), elapsed)
        for elapsed in rng.integers(1, 9, size=(32, 20_000, 2))
    ]
    alone = [policy.select_many(*part) for part in parts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda part: policy.select_many(*part), parts))
    assert all(map(np.array_equal, alone, together))
