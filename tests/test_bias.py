"""The span of the bias, and fixed policies: closed forms and the joint chain solved densely."""

from itertools import product

import numpy as np
import pytest

import restive as rs
from oracles.whittle_naive import belief_table
from restive.problem.beliefs import initial_state, settled_elapsed
from strategies import random_arm


class Fixed:
    """The same arms always; to evaluate it the whole joint chain is built, step by step."""

    def __init__(self, bandit, arms):
        self.bandit = bandit
        self.arms = np.array(arms)

    def select(self, state):
        return self.arms


def naive_gain_and_span(bandit, policy, start):
    """Enumerate the reachable joint states and solve gain and bias densely (one closed class)."""
    lengths = [settled_elapsed(arm) for arm in bandit.arms]
    beliefs = [
        belief_table(arm.active, arm.passive, length)
        for arm, length in zip(bandit.arms, lengths, strict=True)
    ]
    number, queue, rows, rewards = {start: 0}, [start], [], []
    for state in queue:
        pulled = policy.select(state).tolist()
        laws = [beliefs[k][state.last_state[k], state.elapsed[k] - 1] for k in pulled]
        rewards.append(
            sum(law @ bandit.arms[k].rewards for k, law in zip(pulled, laws, strict=True))
        )
        row = {}
        for seen in product(*(np.flatnonzero(law).tolist() for law in laws)):
            after = state.updated(pulled, list(seen))
            after = rs.BeliefState(after.last_state, np.minimum(after.elapsed, lengths))
            if after not in number:
                number[after] = len(queue)
                queue.append(after)
            chance = np.prod([law[s] for law, s in zip(laws, seen, strict=True)])
            row[number[after]] = row.get(number[after], 0) + chance
        rows.append(row)
    size = len(queue)
    system = np.zeros((size + 1, size + 1))  # h + g - P h = r, and h = 0 in the first state
    for i, row in enumerate(rows):
        system[i, i] += 1
        for j, chance in row.items():
            system[i, j] -= chance
    system[:size, size] = 1
    system[size, 0] = 1
    *bias, gain = np.linalg.solve(system, [*rewards, 0])
    return gain, np.ptp(bias), size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["whittle", "myopic"])
def test_gain_span_and_number_of_states_are_those_of_a_dense_solution(name, seed):
    rng = np.random.default_rng([1, seed])
    bandit = rs.RestlessBandit([random_arm(rng, size, spread=0.85) for size in (2, 3)], num_pulls=1)
    policy = rs.registry.policy_mapping(name)(bandit)
    gain, span, size = naive_gain_and_span(bandit, policy, initial_state(bandit))
    value = rs.evaluate(bandit, policy)
    assert value.average_reward == pytest.approx(gain, abs=1e-9)
    assert value.bias_span == pytest.approx(span, abs=1e-8)
    assert value.num_states == size


def test_span_of_one_channel_is_its_closed_form():
    """Always pulled, h(good) - h(bad) = rho / (1 - rho)."""
    for p01, p11 in [(0.3, 0.7), (0.8, 0.3), (0.5, 0.5)]:
        bandit = rs.RestlessBandit([rs.gilbert_elliott(p01, p11)], 1)
        rho = p11 - p01
        for policy in (rs.whittle(bandit), rs.policies.best_fixed(bandit), Fixed(bandit, [0])):
            value = rs.evaluate(bandit, policy)
            assert value.bias_span == pytest.approx(abs(rho) / (1 - rho), abs=1e-9)
            assert value.average_reward == pytest.approx(p01 / (1 - rho), abs=1e-12)


def constant_policy(bandit, arms):
    """Return the index policy that always pulls these arms, which is evaluated by a sum."""
    wanted = {id(bandit.arms[k]) for k in arms}
    return rs.policies.index_policy(
        bandit, lambda arm: np.full((arm.num_states, 1), float(id(arm) in wanted))
    )


def check_fixed(bandit, arms, start=None):
    """Compare a fixed policy's value, a sum over arms, with that of the whole joint chain."""
    start = initial_state(bandit) if start is None else start
    short = rs.evaluate(bandit, constant_policy(bandit, arms), start=start)
    long = rs.evaluate(bandit, Fixed(bandit, arms), start=start)
    assert short.method == "exact: fixed arms"
    assert long.method == "exact: joint chain"
    assert short.average_reward == pytest.approx(long.average_reward, abs=1e-9)
    assert short.bias_span == pytest.approx(long.bias_span, abs=1e-8)
    assert short.depends_on_start == long.depends_on_start
    gain = sum(rs.theory.stationary(bandit.arms[k].active) @ bandit.arms[k].rewards for k in arms)
    assert short.average_reward == pytest.approx(gain, abs=1e-12)


@pytest.mark.parametrize("arms", [[0], [1], [0, 1], [1, 2], [0, 1, 2]])
def test_fixed_policies_are_worth_what_the_joint_chain_says(arms):
    rng = np.random.default_rng(len(arms))
    sizes = (2, 3, 2)
    chosen = [random_arm(rng, size, spread=0.7) for size in sizes]
    check_fixed(rs.RestlessBandit(chosen, len(arms)), arms)


def test_fixed_policies_from_a_start_that_is_never_seen_again():
    """The start's own bias lies outside the others': pulled in a state that only rest leads to."""
    arm = rs.Arm([[0.1, 0.9], [0.1, 0.9]], [[0.9, 0.1], [0.8, 0.2]], [0, 1])
    other = random_arm(np.random.default_rng(1), 2, spread=0.7)
    bandit = rs.RestlessBandit([arm, other], 1)
    for elapsed in (1, 2, 9, 100_000):
        check_fixed(bandit, [0], rs.BeliefState([1, 1], [elapsed, 1]))


def test_fixed_policies_of_active_chains_with_transient_states():
    """Transient states that the start does not lead to are no part of the span."""
    passive = np.full((3, 3), 1 / 3)
    arm = rs.Arm([[0, 1, 0], [0, 0.5, 0.5], [0, 0.3, 0.7]], passive, [1, 0, 0.5])
    bandit = rs.RestlessBandit([arm, random_arm(np.random.default_rng(1), 2, spread=0.7)], 1)
    check_fixed(bandit, [0])


def test_fixed_policies_of_periodic_active_chains():
    """Two arms that flip in step: only two of the four joint states are ever seen."""
    mixing = [[0.5, 0.5], [0.5, 0.5]]
    arms = [rs.Arm([[0, 1], [1, 0]], mixing, [0, top]) for top in (1, 0.5)]
    check_fixed(rs.RestlessBandit(arms, 2), [0, 1])
    check_fixed(rs.RestlessBandit(arms, 2), [0, 1], rs.BeliefState([0, 1], [1, 1]))


def test_arms_that_are_not_pulled_do_not_matter():
    rng = np.random.default_rng(3)
    arm = random_arm(rng, 3)
    slow = rs.gilbert_elliott(1e-7, 1 - 1e-7)
    alone = rs.evaluate(
        rs.RestlessBandit([arm], 1), rs.policies.best_fixed(rs.RestlessBandit([arm], 1))
    )
    bandit = rs.RestlessBandit([slow, arm], 1)
    beside = rs.evaluate(bandit, constant_policy(bandit, [1]))
    assert beside.average_reward == alone.average_reward
    assert beside.bias_span == alone.bias_span


def test_a_fixed_arm_whose_long_run_depends_on_the_start_is_told():
    stuck = rs.Arm(np.eye(2), [[0.5, 0.5], [0.5, 0.5]], [0, 1], name="stuck")
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), stuck], 1)
    with pytest.raises(rs.errors.AssumptionError, match=r"arm 1 \('stuck'\): has 2 closed classes"):
        rs.evaluate(bandit, constant_policy(bandit, [1]))
