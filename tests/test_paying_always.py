"""Bandits whose arms pay in every step, against brute force that knows of no reduction."""

import json
from hashlib import sha256

import numpy as np
import pytest

import restive as rs
from oracles import joint_paid_naive as naive
from restive.measure import zoo
from restive.plan.policies.registry import policy_mapping
from restive.problem.beliefs import settled_elapsed
from restive.problem.reduction import reduce_arm
from strategies import as_paying_oracle, random_paying_bandit
from test_reduction import two_states

MAPPINGS = ("best_fixed", "myopic", "whittle", "lp_priority", "optimal")

CHECK = rs.RestlessBandit(
    [two_states((0.1, 0.95), (0.9, 0.75)), two_states((0.7, 0.95), (0.85, 0.85))], 1
)
QIAN = rs.RestlessBandit(
    [two_states((0.95, 0.95), (0.99, 0.9)), two_states((0.4, 0.9), (0.7, 0.6))], 1
)

# arms' numbers of states, and pulls; spread so that the naive chain stays small
SYSTEMS = [
    ((2, 2), 1, 0.5),
    ((2, 3), 1, 0.5),
    ((3, 3), 1, 0.6),
    ((2, 2, 2), 1, 0.6),
    ((2, 3, 2), 2, 0.6),
    ((3, 3, 3), 1, 0.8),
    ((2, 2, 2, 2), 2, 0.75),
    ((2, 3, 3, 2), 2, 0.8),
]


def naive_case(bandit, policy):
    """Return the arguments of the naive functions: arms, choice and ages told apart."""

    def choose(last_state, elapsed):
        return policy.select(rs.BeliefState(last_state, elapsed)).tolist()

    arms = [as_paying_oracle(arm) for arm in bandit.arms]
    return arms, choose, max(settled_elapsed(arm) for arm in bandit.arms)


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize(("sizes", "num_pulls", "spread"), SYSTEMS)
def test_j_and_bias_span_are_those_of_the_chain_of_all_beliefs(sizes, num_pulls, spread, mapping):
    rng = np.random.default_rng([*sizes, num_pulls])
    bandit = random_paying_bandit(rng, sizes, num_pulls, spread)
    policy = policy_mapping(mapping)(bandit)
    value = rs.evaluate(bandit, policy)
    case = naive_case(bandit, policy)
    assert value.method.startswith("exact")
    assert value.average_reward == pytest.approx(naive.average_reward(*case), abs=1e-8)
    assert value.average_reward <= rs.relaxation_bound(bandit) + 1e-9
    if not value.depends_on_start and value.num_states < 500:
        assert value.bias_span == pytest.approx(naive.bias_span(*case), abs=1e-7)


def test_the_optimum_of_two_worked_instances():
    assert rs.optimal(CHECK).average_reward == pytest.approx(1.5166595548, abs=1e-9)
    assert rs.optimal(QIAN).average_reward == pytest.approx(73 / 77, abs=1e-9)
    for bandit in (CHECK, QIAN):
        best = rs.optimal(bandit)
        assert rs.evaluate(bandit, best).average_reward == pytest.approx(
            best.average_reward, abs=1e-9
        )


def test_planning_for_pulled_arms_alone_loses_where_all_arms_count():
    only_pulled = rs.RestlessBandit(
        [rs.Arm(arm.active, arm.passive, arm.rewards) for arm in CHECK.arms], 1
    )
    value = rs.evaluate(CHECK, rs.optimal(only_pulled)).average_reward
    # the first arm for ever, 18/19, and what the second earns by itself
    assert value == pytest.approx(18 / 19 + 1 / 2, abs=1e-9)


def test_no_stationary_choice_beats_the_optimum_of_the_naive_chain():
    """Random index tables, judged naively, stay below the optimum that the reduction finds."""
    rng = np.random.default_rng(11)
    for _ in range(5):
        bandit = random_paying_bandit(rng, (2, 2), 1, 0.6)
        best = rs.optimal(bandit).average_reward
        for _ in range(10):
            policy = rs.policies.index_policy(
                bandit, lambda arm: rng.normal(size=(arm.num_states, 6))
            )
            assert naive.average_reward(*naive_case(bandit, policy)) <= best + 1e-8


@pytest.mark.parametrize(("sizes", "num_pulls", "spread"), SYSTEMS[:5])
def test_discounted_values_differ_by_what_states_are_worth_alone(sizes, num_pulls, spread):
    rng = np.random.default_rng([9, *sizes])
    bandit = random_paying_bandit(rng, sizes, num_pulls, spread)
    policy = rs.whittle(bandit, discount=0.9)
    arms, choose, length = naive_case(bandit, policy)
    found = [reduce_arm(arm, discount=0.9) for arm in bandit.arms]
    pulled = [as_paying_oracle(reduction.pulled) for reduction in found]
    alone = sum(
        arm.active[-1] @ reduction.potential
        for arm, reduction in zip(bandit.arms, found, strict=True)
    )
    paid = naive.discounted_value(arms, choose, length, 0.9)
    assert naive.discounted_value(pulled, choose, length, 0.9) + alone == pytest.approx(
        paid, abs=1e-8
    )


def test_totals_differ_by_the_boundary_only():
    """Expected totals: r_hat of the pulls, rho of all arms, and the potential at both ends."""
    rng = np.random.default_rng(21)
    bandit = random_paying_bandit(rng, (2, 3), 1, 0.6)
    policy = rs.whittle(bandit)
    arms, choose, length = naive_case(bandit, policy)
    found = [reduce_arm(arm) for arm in bandit.arms]
    reduced = [as_paying_oracle(reduction.pulled) for reduction in found]
    # the potential's expectation after T steps, as the difference of one more step's reward
    worth = [
        (active, passive, z, z)
        for (active, passive, _, _), z in zip(arms, (f.potential for f in found), strict=True)
    ]
    for steps in (1, 2, 7, 30):
        end = naive.total_reward(worth, choose, length, steps + 1) - naive.total_reward(
            worth, choose, length, steps
        )
        begin = naive.total_reward(worth, choose, length, 1)
        own = steps * sum(reduction.own_reward for reduction in found)
        total = naive.total_reward(reduced, choose, length, steps) + own + begin - end
        assert total == pytest.approx(naive.total_reward(arms, choose, length, steps), abs=1e-9)


def test_j_is_what_hidden_states_pay_in_the_long_run():
    """4.5 standard errors of batch means: a false alarm in about 1 of 10^5."""
    rng = np.random.default_rng(31)
    for sizes, num_pulls in (((2, 2, 2), 1), ((3, 2, 2, 3), 2)):
        bandit = random_paying_bandit(rng, sizes, num_pulls, 0.3)
        policy = rs.whittle(bandit)
        arms, choose, _ = naive_case(bandit, policy)
        pulled, others = naive.simulated(arms, choose, 40_000, seed=5)
        batches = (pulled + others).reshape(100, -1).mean(axis=1)
        error = batches.std(ddof=1) / 10
        value = rs.evaluate(bandit, policy).average_reward
        assert abs(batches.mean() - value) < 4.5 * error
        assert abs(others.mean()) > 20 * error, "the arms that are not pulled matter here"


def test_simulated_values_agree_with_exact_ones():
    rng = np.random.default_rng(41)
    bandit = random_paying_bandit(rng, (2, 3, 2), 1, 0.4)
    exact = rs.evaluate(bandit, "whittle")
    simulated = rs.evaluate(bandit, "whittle", max_states=1, steps=5000)
    assert simulated.method.startswith("simulation")
    apart = abs(simulated.average_reward - exact.average_reward)
    assert apart < 4.5 * simulated.stderr + 1e-10  # what the start still counts for


def test_a_constant_for_every_step_changes_no_decision():
    """All arms pay 5 more, pulled or not: J gains 5 an arm, and every index stays."""
    rng = np.random.default_rng(51)
    bandit = random_paying_bandit(rng, (2, 3, 2), 1, 0.5)
    richer = rs.RestlessBandit(
        [
            rs.Arm(arm.active, arm.passive, arm.rewards + 5, arm.passive_rewards + 5)
            for arm in bandit.arms
        ],
        1,
    )
    for name in MAPPINGS:
        here, there = rs.evaluate(bandit, name), rs.evaluate(richer, name)
        assert there.average_reward == pytest.approx(here.average_reward + 15, abs=1e-9)
        assert there.bias_span == pytest.approx(here.bias_span, abs=1e-7)
    for arm, other in zip(bandit.arms, richer.arms, strict=True):
        assert rs.policies.whittle_index(other).index == pytest.approx(
            rs.policies.whittle_index(arm).index
        )


def test_myopic_looks_at_what_a_pull_gains_now_and_in_the_next_step():
    arm = CHECK.arms[0]
    table = rs.myopic(CHECK).table(0)
    gain = (arm.active - arm.passive) @ [0, 1]  # rewards are the same pulled or not
    for s in (0, 1):
        belief = arm.active[s]
        for n in range(5):
            assert table[s, n] == pytest.approx(belief @ gain, abs=1e-15)
            belief = belief @ arm.passive


def test_best_fixed_pulls_what_gains_most_and_not_what_pays_most():
    rich = two_states((0.1, 0.9), (0.1, 0.9))  # good nine times in ten, pulled or not
    helped = two_states((0.4, 0.6), (0.9, 0.1))
    bandit = rs.RestlessBandit([rich, helped], 1)
    assert rs.policies.best_fixed(bandit).select(rs.BeliefState([1, 1], [1, 1])).tolist() == [1]
    value = rs.evaluate(bandit, "best_fixed")
    assert value.average_reward == pytest.approx(0.9 + 0.6)


def test_fixed_arms_of_many_systems_at_once_earn_what_evaluate_says():
    rng = np.random.default_rng(61)
    arms = random_paying_bandit(rng, (2, 2, 2, 2), 1).arms
    systems = rng.integers(4, size=(6, 3))
    found = policy_mapping("best_fixed").exact_rewards(arms, systems, 2)
    for system, reward in zip(systems, found, strict=True):
        bandit = rs.RestlessBandit([arms[j] for j in system], 2)
        assert reward == pytest.approx(rs.evaluate(bandit, "best_fixed").average_reward, abs=1e-12)


@pytest.fixture(scope="module")
def stored(pytestconfig):
    return json.loads((pytestconfig.rootpath / "tests/stored/pulled_only.json").read_text())


PULLED_ONLY = {
    "paper-frequentist": lambda: zoo.load("paper-frequentist"),
    "non-indexable": lambda: zoo.load("non-indexable"),
    "multichain-myopic": lambda: zoo.load("multichain-myopic"),
    "random-controlled-3": lambda: zoo.random_controlled(3, 1, seed=5),
    "random-controlled-three-states": lambda: zoo.random_controlled(3, 1, seed=2, num_states=3),
    "random-controlled-8": lambda: zoo.random_controlled(8, 3, seed=1),
}


@pytest.mark.parametrize("name", PULLED_ONLY)
def test_arms_that_pay_only_when_pulled_are_planned_as_ever_to_the_bit(stored, name):
    """Numbers stored before arms could pay while not pulled."""
    bandit, expected = PULLED_ONLY[name]().bandit, stored[name]
    explicit = rs.RestlessBandit(
        [
            rs.Arm(arm.active, arm.passive, arm.rewards, np.zeros(arm.num_states))
            for arm in bandit.arms
        ],
        bandit.num_pulls,
    )
    assert explicit == bandit
    assert float(rs.relaxation_bound(bandit)).hex() == expected["bound"]
    assert digest(rs.whittle(bandit, discount=0.9).tables) == expected["discount 0.9"]
    for mapping in MAPPINGS:
        if mapping not in expected:
            continue
        policy = policy_mapping(mapping)(explicit)
        value = rs.evaluate(explicit, policy, max_states=20_000, steps=500)
        numbers = [value.average_reward, value.stderr, value.bias_span]
        if value.method.startswith("simulation"):  # whose sums are added up in another order now
            stored = [float.fromhex(number) for number in expected[mapping][:2]]
            assert numbers[:2] == pytest.approx(stored, rel=1e-10), mapping
            numbers[:2] = stored
        found = [number.hex() for number in numbers]
        if hasattr(policy, "tables"):
            found.append(digest(policy.tables))
        assert found == expected[mapping], mapping


def digest(tables):
    """Return the first half of a digest of the tables' bytes."""
    found = sha256()
    for table in tables:
        found.update(np.ascontiguousarray(table).tobytes())
    return found.hexdigest()[:16]
