"""Policies: which arms are pulled, how ties are decided, own index rules, and the registry."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.plan.policies.registry import mapping_title, policy_mappings
from restive.plan.summary import plan_bandit
from strategies import bandits, states_of

MAPPINGS = [row.name for row in policy_mappings()]
INDEX_MAPPINGS = ["best_fixed", "myopic", "whittle", "lp_priority"]


def channels(*levels, num_pulls=1):
    """Return a bandit of Gilbert-Elliott channels."""
    return rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in levels], num_pulls)


def reward_rule(arm):
    """Own rule: expected reward, for three ages."""
    return rs.theory.belief_table(arm, 3) @ arm.rewards


@given(st.data())
def test_every_mapping_pulls_n_distinct_arms_in_ascending_order(data):
    bandit = data.draw(bandits(num_arms=(2, 3, 4)))
    state = data.draw(states_of(bandit))
    for name in INDEX_MAPPINGS:
        chosen = rs.registry.policy_mapping(name)(bandit).select(state)
        assert chosen.dtype == np.int64
        assert chosen.shape == (bandit.num_pulls,)
        assert (np.diff(chosen) > 0).all()
        assert chosen[0] >= 0
        assert chosen[-1] < bandit.num_arms


@given(st.data())
def test_the_pulled_arms_have_the_largest_indices_and_the_lowest_arms_win_ties(data):
    bandit = data.draw(bandits(num_arms=(2, 3, 5), sizes=(2,)))
    tables = {
        arm: data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)) for arm in bandit.arms
    }
    policy = rs.policies.index_policy(bandit, lambda arm: np.reshape(tables[arm], (2, 2)))
    state = data.draw(states_of(bandit, most_elapsed=4))
    index = policy.index(state)
    for k, arm in enumerate(bandit.arms):
        age = min(state.elapsed[k], 2) - 1
        assert index[k] == tables[arm][2 * state.last_state[k] + age]
    order = sorted(range(bandit.num_arms), key=lambda k: (-index[k], k))
    assert policy.select(state).tolist() == sorted(order[: bandit.num_pulls])


def test_ties_go_to_the_lowest_arm():
    bandit = channels(*[(0.3, 0.7)] * 6, num_pulls=2)
    state = rs.BeliefState([0, 1, 0, 1, 1, 1], [1] * 6)
    for name in ("myopic", "whittle", "lp_priority"):
        assert rs.registry.policy_mapping(name)(bandit).select(state).tolist() == [1, 3]
    assert rs.policies.best_fixed(bandit).select(state).tolist() == [0, 1]


def test_values_equal_up_to_rounding_are_ties():
    """On the paper's instance (.3,.7) and (.6,.4) are good with 0.1 + 0.2 in several ways."""
    bandit = channels((0.3, 0.7), (0.4, 0.6))
    values = iter([[[0.1 + 0.2]] * 2, [[0.3]] * 2])
    assert 0.1 + 0.2 != 0.3
    policy = rs.policies.index_policy(bandit, lambda arm: next(values))
    assert policy.select(rs.BeliefState([0, 0], [1, 1])).tolist() == [0]
    values = iter([[[0.3]] * 2, [[0.1 + 0.2]] * 2])
    policy = rs.policies.index_policy(bandit, lambda arm: next(values))
    assert policy.select(rs.BeliefState([0, 0], [1, 1])).tolist() == [0]


def test_values_that_differ_by_more_than_rounding_are_no_ties():
    """Reading 14: an old belief never reaches its limit and must not be taken for it."""
    bandit = channels((0.3, 0.7), (0.4, 0.6))
    values = iter([[[0.5]] * 2, [[0.5 + 1e-13]] * 2])
    policy = rs.policies.index_policy(bandit, lambda arm: next(values))
    assert policy.select(rs.BeliefState([0, 0], [1, 1])).tolist() == [1]


def test_myopic_ties_channels_with_opposite_memory_at_every_even_age():
    """Seen good an even number of steps ago, (.7,.3) and (.3,.7) are equally likely good."""
    bandit = channels((0.7, 0.3), (0.3, 0.7))
    policy = rs.myopic(bandit)
    for elapsed in (2, 4, 6, 8, 10):
        assert policy.select(rs.BeliefState([1, 1], [elapsed, elapsed])).tolist() == [0]
        assert policy.select(rs.BeliefState([1, 1], [elapsed + 1, elapsed + 1])).tolist() == [1]


@given(st.data())
def test_relabelling_arms_relabels_decisions(data):
    """Where no two arms tie, which is arranged by different indices for all arms."""
    bandit = data.draw(bandits(num_arms=(3, 4), sizes=(2, 3)))
    state = data.draw(states_of(bandit))
    order = data.draw(st.permutations(range(bandit.num_arms)))
    relabelled = rs.RestlessBandit([bandit.arms[k] for k in order], bandit.num_pulls)
    seen = rs.BeliefState(state.last_state[order], state.elapsed[order])
    for name in INDEX_MAPPINGS:
        policy = rs.registry.policy_mapping(name)(bandit)
        ranked = np.sort(policy.index(state))
        if np.diff(ranked).min() < 1e-9:
            continue
        chosen = rs.registry.policy_mapping(name)(relabelled).select(seen)
        assert sorted(order[k] for k in chosen) == policy.select(state).tolist()


def test_myopic_index_is_the_expected_reward():
    bandit = channels((0.3, 0.8), (0.6, 0.1))
    state = rs.BeliefState([0, 1], [1, 3])
    table = [rs.theory.belief_table(arm, 3) for arm in bandit.arms]
    expected = [table[0][0, 0, 1], table[1][1, 2, 1]]
    assert rs.myopic(bandit).index(state) == pytest.approx(expected, abs=1e-15)


def test_best_fixed_takes_the_arms_with_the_largest_long_run_reward_of_the_active_chain():
    """Reading 10: a fixed arm is always active."""
    better_when_pulled = rs.Arm([[0.1, 0.9], [0.1, 0.9]], [[0.9, 0.1], [0.9, 0.1]], [0, 1])
    better_at_rest = rs.Arm([[0.9, 0.1], [0.9, 0.1]], [[0.1, 0.9], [0.1, 0.9]], [0, 1])
    bandit = rs.RestlessBandit([better_at_rest, better_when_pulled], 1)
    policy = rs.policies.best_fixed(bandit)
    for last_state in ([0, 0], [1, 0], [0, 1]):
        assert policy.select(rs.BeliefState(last_state, [9, 9])).tolist() == [1]
    assert policy.table(1) == pytest.approx(np.full((2, 1), 0.9), abs=1e-15)


def test_best_fixed_names_an_arm_whose_long_run_depends_on_the_start():
    stuck = rs.Arm(np.eye(2), [[0.5, 0.5], [0.5, 0.5]], [0, 1], name="stuck")
    with pytest.raises(rs.errors.AssumptionError, match=r"arm 'stuck': has 2 closed classes"):
        rs.policies.best_fixed(rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), stuck], 1))


def test_whittle_policy_ranks_by_the_index_of_each_arm():
    bandit = channels((0.3, 0.7), (0.6, 0.4), (0.1, 0.9))
    for discount in (1.0, 0.9):
        policy = rs.whittle(bandit, discount=discount)
        for k, arm in enumerate(bandit.arms):
            assert np.array_equal(
                policy.table(k), rs.policies.whittle_index(arm, discount=discount).index
            )
    assert rs.whittle(bandit, max_elapsed=5).table(2).shape == (2, 5)


def test_with_as_many_pulls_as_arms_all_are_pulled():
    bandit = channels((0.3, 0.7), (0.4, 0.6), (0.5, 0.5), num_pulls=3)
    for name in MAPPINGS:
        policy = rs.registry.policy_mapping(name)(bandit)
        assert policy.select(rs.BeliefState([0, 1, 1], [4, 1, 2])).tolist() == [0, 1, 2]


def test_an_own_rule_is_called_once_per_kind_of_arm_and_never_while_acting():
    seen = []

    def rule(arm):
        seen.append(arm)
        return reward_rule(arm)

    bandit = channels((0.3, 0.7), (0.4, 0.6), (0.3, 0.7), num_pulls=2)
    policy = rs.policies.index_policy(bandit, rule)
    assert seen == [bandit.arms[0], bandit.arms[1]]
    policy.select(rs.BeliefState([0, 1, 0], [1, 2, 3]))
    assert len(seen) == 2
    assert policy.name == "rule"
    assert rs.policies.index_policy(bandit, rule, name="mine").name == "mine"
    assert rs.policies.index_policy(bandit, rule).bandit is bandit


def test_an_own_rule_of_any_length_holds_its_last_column():
    bandit = channels((0.3, 0.7), (0.4, 0.6))
    policy = rs.policies.index_policy(bandit, reward_rule)
    state = rs.BeliefState([0, 0], [3, 3])
    older = rs.BeliefState([0, 0], [1000, 3])
    assert policy.index(state) == pytest.approx(policy.index(older))


def test_own_rules_may_be_of_different_lengths_and_any_size_of_number():
    bandit = channels((0.3, 0.7), (0.4, 0.6), (0.5, 0.6))
    tables = iter([[[-1e30], [1e30]], [[0.0, 5.0, -7.0]] * 2, np.arange(8).reshape(2, 4)])
    policy = rs.policies.index_policy(bandit, lambda arm: next(tables))
    assert policy.select(rs.BeliefState([1, 1, 1], [1, 1, 1])).tolist() == [0]
    assert policy.index(rs.BeliefState([0, 1, 1], [5, 2, 9])).tolist() == [-1e30, 5.0, 7.0]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ([0.5, 0.5], r"the index rule returned shape \(2,\), expected \(2, number of ages\)"),
        (np.zeros((3, 4)), r"returned shape \(3, 4\), expected \(2, number of ages\)"),
        (np.zeros((2, 0)), r"returned shape \(2, 0\), expected \(2, number of ages\)"),
        (np.zeros((2, 3, 1)), r"returned shape \(2, 3, 1\)"),
        ([[0, 1, np.nan], [0, 0, 0]], "returned nan for last state 0, elapsed 3"),
        ([[0, 1], [np.inf, 0]], "returned inf for last state 1, elapsed 1"),
        ("none", "returned 'none', not a table"),
        ([[1, 2], [1]], r"returned \[\[1, 2\], \[1\]\], not a table"),
        (None, "the index rule returned"),
    ],
)
def test_a_wrong_table_of_an_own_rule_is_told_with_the_arm(table, words):
    named = rs.gilbert_elliott(0.4, 0.6, name="b")
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), named], 1)
    good = np.zeros((2, 1))
    with pytest.raises(rs.errors.ProblemError, match=rf"^arm 1 \('b'\): .*{words}"):
        rs.policies.index_policy(bandit, lambda arm: table if arm.name == "b" else good)


def test_a_rule_keeps_no_hold_on_its_table():
    table = np.zeros((2, 1))
    policy = rs.policies.index_policy(channels((0.3, 0.7)), lambda arm: table)
    table[0] = 1
    assert policy.table(0).tolist() == [[0], [0]]
    with pytest.raises(ValueError, match="read-only"):
        policy.table(0)[0] = 1


def test_registered_names_are_those_of_the_design_and_hyphens_will_do():
    assert MAPPINGS == ["best_fixed", "myopic", "whittle", "lp_priority", "best_index", "optimal"]
    for name in MAPPINGS:
        mapping = rs.registry.policy_mapping(name)
        assert mapping.make is getattr(rs if name in rs.__all__ else rs.policies, name)
        assert rs.registry.policy_mapping(name.replace("_", "-")) is mapping


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("whitle", "unknown policy mapping 'whitle'; did you mean 'whittle'?"),
        ("lp-prority", "unknown policy mapping 'lp-prority'; did you mean 'lp_priority'?"),
        ("", "known are best_fixed, myopic, whittle, lp_priority, best_index, optimal"),
        ("zzzz", "known are best_fixed, myopic, whittle, lp_priority, best_index, optimal"),
    ],
)
def test_unknown_names_are_told_with_a_suggestion(name, words):
    with pytest.raises(rs.errors.ProblemError) as caught:
        rs.registry.policy_mapping(name)
    assert words in str(caught.value)


@pytest.mark.parametrize("name", [row.name for row in policy_mappings() if row.rule])
def test_rules_by_arm_are_those_of_the_mappings(name):
    bandit = channels((0.3, 0.7), (0.8, 0.4))
    policy = rs.registry.policy_mapping(name)(bandit)
    for k, arm in enumerate(bandit.arms):
        assert np.array_equal(policy.table(k), rs.registry.policy_mapping(name).table(arm))


def test_policies_of_very_many_arms_are_made_once_per_kind():
    kinds = [rs.gilbert_elliott(p, 0.9) for p in (0.1, 0.2, 0.3)]
    bandit = rs.RestlessBandit(kinds * 40_000, num_pulls=1000)
    rng = np.random.default_rng(0)
    state = rs.BeliefState(rng.integers(0, 2, 120_000), rng.integers(1, 50, 120_000))
    for name in INDEX_MAPPINGS:
        policy = rs.registry.policy_mapping(name)(bandit)
        assert len(policy.tables) == 3
        chosen = policy.select(state)
        assert chosen.shape == (1000,)
        assert (np.diff(chosen) > 0).all()
        index = policy.index(state)
        rest = np.delete(index, chosen)
        assert index[chosen].min() >= rest.max() - 1e-14


@given(st.data())
def test_many_states_at_once_are_decided_as_one_by_one(data):
    bandit = data.draw(bandits(num_arms=(2, 3)))
    states = [data.draw(states_of(bandit)) for _ in range(3)]
    last_state = np.array([state.last_state for state in states])
    elapsed = np.array([state.elapsed for state in states])
    policy = rs.myopic(bandit)
    expected = [policy.select(state).tolist() for state in states]
    assert policy.select_many(last_state, elapsed).tolist() == expected


def oldest_first(arm):
    """Own rule: whoever was not seen for longest."""
    return np.tile(np.arange(1.0, 31), (arm.num_states, 1))


def always_first(bandit):
    """Own mapping: the first arms, always."""
    return rs.policies.index_policy(
        bandit, lambda arm: np.zeros((arm.num_states, 1)), "always_first"
    )


class CountedAges:
    """Own mapping that is a class, with an option that is passed on."""

    def __init__(self, bandit, max_elapsed=7):
        self.bandit, self.max_elapsed = bandit, max_elapsed

    def select(self, state):
        return np.arange(self.bandit.num_pulls)


@pytest.fixture
def registered():
    """Register a mapping, and remove it after the test."""
    names = []

    def register(name, mapping, title=None):
        rs.registry.register_mapping(name, mapping, title)
        names.append(name)

    yield register
    for name in names:
        rs.registry.unregister_mapping(name)


def test_an_own_rule_is_used_by_name_wherever_a_name_is_taken(registered):
    registered("oldest_first", oldest_first, "oldest first")
    bandit = channels((0.3, 0.7), (0.8, 0.4), (0.5, 0.6))
    made = rs.registry.policy_mapping("oldest-first")(bandit)
    assert np.array_equal(made.table(1), oldest_first(bandit.arms[1]))
    direct = rs.evaluate(bandit, rs.policies.index_policy(bandit, oldest_first))
    assert rs.evaluate(bandit, "oldest_first") == direct
    assert mapping_title("oldest_first") == "oldest first"
    assert policy_mappings()[-1].name == "oldest_first"
    found = plan_bandit(bandit).policies
    assert [row.policy for row in found] == [*MAPPINGS, "oldest_first"]
    assert found[-1].average_reward == direct.average_reward
    prior = rs.grid_prior([0.2, 0.8], 3)
    agent = rs.TSDE(prior, 1, "oldest_first", 100)
    assert len(agent.select()) == 1


def test_an_own_mapping_gets_the_options_that_it_has_parameters_for(registered):
    registered("always_first", always_first)
    registered("counted_ages", CountedAges)
    bandit = channels((0.3, 0.7), (0.8, 0.4))
    row = rs.registry.policy_mapping("always_first")
    assert row.rule is None
    assert row.title == "always_first"
    assert rs.evaluate(bandit, "always_first", max_elapsed=50).average_reward > 0
    made = rs.registry.policy_mapping("counted_ages")
    assert made(bandit).max_elapsed == 7
    assert made(bandit, max_elapsed=9, max_states=3).max_elapsed == 9


def test_a_mapping_that_was_removed_is_unknown(registered):
    rs.registry.register_mapping("short_lived", oldest_first)
    rs.registry.unregister_mapping("short_lived")
    with pytest.raises(rs.errors.ProblemError, match="unknown policy mapping 'short_lived'"):
        rs.registry.policy_mapping("short_lived")
    assert mapping_title("short_lived") == "short_lived"


@pytest.mark.parametrize(
    ("name", "mapping", "words"),
    [
        ("Whittle", oldest_first, "lower-case letters"),
        ("a b", oldest_first, "lower-case letters"),
        (3, oldest_first, "lower-case letters"),
        ("whittle", oldest_first, "'whittle' is registered already"),
        ("new", 3, "must be a name, an index rule"),
        ("new", lambda arm: {}["x"], "works neither as an index rule"),
        ("new", lambda bandit: "policy", "expected a policy with select"),
    ],
)
def test_what_cannot_be_registered_says_why(name, mapping, words):
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.registry.register_mapping(name, mapping)
    assert [row.name for row in policy_mappings()] == MAPPINGS


def test_the_mappings_of_the_package_stay():
    with pytest.raises(
        rs.errors.ProblemError, match="'lp_priority' is built in and cannot be removed"
    ):
        rs.registry.unregister_mapping("lp-priority")


def test_the_formula_for_fixed_arms_is_their_exact_value():
    arms = channels((0.3, 0.7), (0.8, 0.4), (0.5, 0.6), (0.2, 0.9)).arms
    systems = np.array([[0, 1, 2], [3, 3, 0], [2, 1, 1]])
    formula = rs.registry.policy_mapping("best_fixed").exact_rewards
    values = [
        rs.evaluate(rs.RestlessBandit([arms[j] for j in system], 2), "best_fixed").average_reward
        for system in systems
    ]
    assert formula(arms, systems, 2).tolist() == pytest.approx(values, abs=1e-14)
