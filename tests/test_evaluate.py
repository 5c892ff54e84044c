"""What policies are worth: the paper's values, an enumerating oracle, a naive simulation, laws."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import restive as rs
from oracles.joint_naive import average_reward_enumerated, simulate_policy
from restive.plan import solved_run
from restive.plan.joint_chain import JointStates
from restive.problem.beliefs import settled_elapsed
from strategies import as_oracle, bandits, random_arm

INDEX_MAPPINGS = ["best_fixed", "myopic", "whittle", "lp_priority"]


def oldest_first(arm):
    """Own rule: whoever was not seen for longest."""
    return np.tile(np.arange(1.0, 41), (arm.num_states, 1))


def random_bandit(rng, sizes, num_pulls, spread=0.7):
    """Return a bandit of controlled arms with these numbers of states."""
    return rs.RestlessBandit([random_arm(rng, size, spread) for size in sizes], num_pulls)


def enumerated(bandit, policy, start=None, truth=None):
    """Return J of an index policy by the oracle."""
    truth = bandit if truth is None else truth
    tables = [policy.table(k) for k in range(bandit.num_arms)]
    longest = max(settled_elapsed(arm) for arm in (*bandit.arms, *truth.arms))
    arms = [as_oracle(arm) for arm in truth.arms]
    return average_reward_enumerated(arms, bandit.num_pulls, tables, longest, start)


@pytest.mark.parametrize(
    ("name", "expected", "tolerance"),
    [
        ("best_fixed", 1, 1e-8),
        ("myopic", 1.0912173602, 1e-8),
        ("whittle", 1.1190875224, 1e-8),
        ("lp_priority", 1.11966, 2e-5),
        ("optimal", 1.1196940387, 1e-6),
    ],
)
def test_average_rewards_of_the_paper_notes(paper_bandit, name, expected, tolerance):
    policy = rs.registry.policy_mapping(name)(paper_bandit)
    value = rs.evaluate(paper_bandit, policy)
    assert value.average_reward == pytest.approx(expected, abs=tolerance)
    assert value.stderr == 0
    assert value.method.startswith("exact")
    assert value.depends_on_start is False
    assert np.isfinite(value.bias_span)
    low, high = value.average_reward_range
    assert low == pytest.approx(high, abs=1e-8)


def test_the_myopic_example_of_reading_15_is_found_to_depend_on_the_start():
    """J is 1.5503 while arm 3 (number 2 here) is fresh and 1.4444 once its age is large."""
    levels = [(0.6, 0.6), (0.5, 0.9), (0.9, 0.2), (0.6, 0.6)]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in levels], 2)
    policy = rs.myopic(bandit)
    fresh = rs.evaluate(bandit, policy)
    old = rs.evaluate(bandit, policy, start=rs.BeliefState([1] * 4, [1, 1, 1000, 1]))
    for value in (fresh, old):
        assert value.depends_on_start is True
        assert value.bias_span == float("inf")
        assert value.average_reward_range == pytest.approx((1.4444, 1.5503), abs=5e-5)
    assert fresh.average_reward == pytest.approx(1.5503, abs=5e-5)
    assert old.average_reward == pytest.approx(1.4444, abs=5e-5)
    assert rs.evaluate(bandit, rs.whittle(bandit)).depends_on_start is False


@pytest.mark.parametrize("name", ["myopic", "whittle", "lp_priority", "oldest first"])
@pytest.mark.parametrize(
    ("sizes", "num_pulls"), [((2, 2), 1), ((3, 2), 1), ((2, 3, 2), 1), ((2, 2, 3), 2)]
)
def test_values_are_those_of_the_enumerated_joint_chain(name, sizes, num_pulls):
    rng = np.random.default_rng([num_pulls, *sizes])
    bandit = random_bandit(rng, sizes, num_pulls)
    if name == "oldest first":
        policy = rs.policies.index_policy(bandit, oldest_first)
    else:
        policy = rs.registry.policy_mapping(name)(bandit)
    value = rs.evaluate(bandit, policy)
    assert value.method == "exact: joint chain"
    assert value.average_reward == pytest.approx(enumerated(bandit, policy), abs=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_values_from_a_given_start_are_those_of_the_enumerated_joint_chain(seed):
    rng = np.random.default_rng([5, seed])
    bandit = random_bandit(rng, (2, 3, 2), 1)
    policy = rs.policies.index_policy(bandit, lambda arm: rng.random((arm.num_states, 3)))
    start = ([1, 0, 0], [2, 7, 1])
    value = rs.evaluate(bandit, policy, start=rs.BeliefState(*start))
    assert value.average_reward == pytest.approx(enumerated(bandit, policy, start), abs=1e-9)


def test_a_policy_made_for_other_arms_is_evaluated_on_the_true_ones():
    rng = np.random.default_rng(8)
    believed, true = (random_bandit(rng, (2, 3, 3), 1) for _ in range(2))
    policy = rs.whittle(believed)
    expected = enumerated(believed, policy, truth=true)
    assert rs.evaluate(true, policy).average_reward == pytest.approx(expected, abs=1e-9)
    assert abs(rs.evaluate(true, rs.whittle(true)).average_reward - expected) > 1e-4


@pytest.mark.parametrize("name", ["whittle", "myopic", "best_fixed"])
def test_values_agree_with_a_long_naive_simulation_of_every_hidden_state(paper_bandit, name):
    """Batch means of 100 batches of 600 steps; 4.5 standard errors: false alarms, 2e-5 a case.

    (Two-sided, Student's t with 99 degrees of freedom.)
    """
    policy = rs.registry.policy_mapping(name)(paper_bandit)
    tables = [policy.table(k) for k in range(4)]
    arms = [as_oracle(arm) for arm in paper_bandit.arms]
    earned = simulate_policy(arms, 2, tables, steps=60_600, seed=1)[600:]
    batches = earned.reshape(100, 600).mean(axis=1)
    stderr = batches.std(ddof=1) / 10
    value = rs.evaluate(paper_bandit, policy)
    assert stderr < 0.005
    assert abs(batches.mean() - value.average_reward) < 4.5 * stderr


@pytest.mark.parametrize("sizes", [(2, 3, 2), (3, 3, 4)])
def test_values_of_controlled_arms_agree_with_a_long_naive_simulation(sizes):
    """As above, on arms that move differently when pulled: false alarms, 2e-5 a case."""
    bandit = random_bandit(np.random.default_rng([3, *sizes]), sizes, 1, spread=0.3)
    policy = rs.whittle(bandit)
    tables = [policy.table(k) for k in range(len(sizes))]
    arms = [as_oracle(arm) for arm in bandit.arms]
    earned = simulate_policy(arms, 1, tables, steps=60_600, seed=2)[600:]
    batches = earned.reshape(100, 600).mean(axis=1)
    stderr = batches.std(ddof=1) / 10
    assert abs(batches.mean() - rs.evaluate(bandit, policy).average_reward) < 4.5 * stderr


@pytest.mark.parametrize("name", ["whittle", "myopic", "lp_priority"])
def test_simulated_values_agree_with_exact_ones(paper_bandit, name):
    """64 runs; 4.5 standard errors: false alarms, 3e-5 a case (Student's t, 63 degrees)."""
    policy = rs.registry.policy_mapping(name)(paper_bandit)
    exact = rs.evaluate(paper_bandit, policy)
    found = rs.evaluate(paper_bandit, policy, max_states=1, steps=5000)
    assert found.method == "simulation: 64 runs of 5,000 steps"
    assert 0 < found.stderr < 1e-3
    assert abs(found.average_reward - exact.average_reward) < 4.5 * found.stderr
    assert np.isnan(found.bias_span)
    assert found.depends_on_start is None
    assert found.num_states == 0


def test_simulated_values_of_controlled_arms_agree_with_exact_ones():
    """64 runs; 4.5 standard errors: false alarms, 3e-5 a case (Student's t, 63 degrees)."""
    rng = np.random.default_rng(12)
    for sizes, num_pulls in [((2, 3, 4), 1), ((3, 2, 3), 2)]:
        bandit = random_bandit(rng, sizes, num_pulls, spread=0.4)
        for policy in (rs.whittle(bandit), rs.policies.index_policy(bandit, oldest_first)):
            exact = rs.evaluate(bandit, policy)
            found = rs.evaluate(bandit, policy, max_states=1, steps=5000)
            assert abs(found.average_reward - exact.average_reward) < 4.5 * found.stderr


def test_short_simulations_have_forgotten_the_start():
    """Channels with a long memory, seen good at the start, that run for 200 steps.

    2000 runs; 4.5 standard errors: false alarms, 7e-6. The start would be worth about ten.
    """
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.05, 0.95), rs.gilbert_elliott(0.04, 0.95)], 1)
    policy = rs.policies.index_policy(bandit, oldest_first)
    exact = rs.evaluate(bandit, policy)
    found = rs.evaluate(bandit, policy, max_states=1, steps=200, replications=2000)
    assert abs(found.average_reward - exact.average_reward) < 4.5 * found.stderr


def test_the_standard_error_is_honest():
    """Over 40 seeds the squared errors in standard errors average near 1.

    Their mean is 1.03 with standard deviation sqrt(2.2 / 40) = 0.23; 5 of those: false alarms
    below 1e-4 (the upper tail is heavier than the normal one).
    """
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.6)], 1)
    policy = rs.whittle(bandit)
    exact = rs.evaluate(bandit, policy).average_reward
    runs = [rs.evaluate(bandit, policy, max_states=1, steps=500, seed=s) for s in range(40)]
    squares = [((run.average_reward - exact) / run.stderr) ** 2 for run in runs]
    assert 0.2 < np.mean(squares) < 2.2


def test_a_simulation_is_its_seeds_and_nothing_else(paper_bandit):
    policy = rs.whittle(paper_bandit)
    options = {"max_states": 1, "steps": 300, "replications": 8}
    first, again, other = (
        rs.evaluate(paper_bandit, policy, **options, seed=seed) for seed in (3, 3, 4)
    )
    assert first.average_reward == again.average_reward
    assert first.stderr == again.stderr
    assert first.average_reward != other.average_reward


def test_large_bandits_are_simulated_and_fixed_policies_exact_at_any_size():
    """Whittle's simulated value lies between, at least 18 standard errors from either end.

    False alarms below 1e-9 (Student's t, 31 degrees).
    """
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6 + k / 100) for k in range(30)], 8)
    value = rs.evaluate(bandit, rs.whittle(bandit), steps=5000, replications=32)
    assert value.method == "simulation: 32 runs of 5,000 steps"
    fixed = rs.evaluate(bandit, rs.policies.best_fixed(bandit))
    expected = sum(0.3 / (0.7 - k / 100) for k in range(22, 30))
    assert fixed.average_reward == pytest.approx(expected, abs=1e-12)
    assert fixed.method == "exact: fixed arms"
    assert fixed.average_reward < value.average_reward < rs.relaxation_bound(bandit)


def test_a_joint_chain_that_would_not_fit_is_not_begun(monkeypatch):
    """With many arms each state counts as several: by its bytes, and by the steps to its end."""
    monkeypatch.setattr(JointStates, "outcomes", lambda *args, **options: pytest.fail("begun"))
    for num_arms, num_pulls in ((1_000, 10), (20_000, 12), (100_000, 10)):
        bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6)] * num_arms, num_pulls)
        found = rs.evaluate(bandit, "whittle", replications=2, steps=20)
        assert found.method.startswith("simulation")


def test_with_many_arms_fewer_joint_states_are_solved_unless_one_asks_for_more(monkeypatch):
    """As many as take what `MAX_STATES` of a few arms do, or what is asked for."""
    monkeypatch.setattr(solved_run, "MAX_STATES", 600)
    arms = [rs.gilbert_elliott(0.4, 0.5, [0, 1 + k]) for k in range(12)]
    bandit = rs.RestlessBandit(arms, num_pulls=8)
    refused = {
        500: "256 joint states, of 6.1 KiB and 3,072 products each; raise max_states to 644 or",
        700: "more than 278 joint states of 12 arms, which take 1.7 MiB; raise max_states",
    }
    for max_states, words in refused.items():
        with pytest.raises(rs.errors.TooLargeError, match=f"{words}.*; only"):
            rs.evaluate(bandit, FixedFirst(bandit), max_states=max_states)
    found = rs.evaluate(bandit, FixedFirst(bandit))
    alone = rs.evaluate(bandit, rs.policies.index_policy(bandit, lambda arm: [[1.0], [1.0]]))
    assert found.why_simulated == ""
    simulated = rs.evaluate(bandit, "whittle", max_states=500, replications=2, steps=20)
    assert simulated.why_simulated.startswith("one step of 12 arms can end in 256 joint states, of")
    assert found.average_reward == pytest.approx(alone.average_reward, abs=1e-9)
    assert (found.method, found.stderr) == ("exact: joint chain", 0)


def test_max_states_is_the_number_of_states_up_to_which_values_are_exact(paper_bandit):
    policy = rs.whittle(paper_bandit)
    value = rs.evaluate(paper_bandit, policy)
    enough = rs.evaluate(paper_bandit, policy, max_states=value.num_states)
    assert enough.method == value.method
    assert enough.average_reward == pytest.approx(value.average_reward, abs=1e-12)
    assert enough.num_states == value.num_states
    short = rs.evaluate(paper_bandit, policy, max_states=value.num_states - 1, steps=200)
    assert short.method.startswith("simulation")


@settings(max_examples=25)
@given(bandits(num_arms=(2, 3), sizes=(2, 3), spread=0.75))
def test_no_policy_beats_the_optimum_and_the_optimum_not_the_bound(bandit):
    bound = rs.relaxation_bound(bandit)
    best = rs.evaluate(bandit, rs.optimal(bandit)).average_reward
    assert best <= bound + 1e-8
    for name in INDEX_MAPPINGS:
        value = rs.evaluate(bandit, rs.registry.policy_mapping(name)(bandit))
        assert value.average_reward <= best + 1e-8, name
    whim = rs.policies.index_policy(bandit, oldest_first)
    assert rs.evaluate(bandit, whim).average_reward <= best + 1e-8


@settings(max_examples=25)
@given(bandits(num_arms=(2, 3), spread=0.75), st.floats(0.05, 1), st.floats(0, 1))
def test_affine_rewards_move_every_value_with_them(bandit, factor, share):
    """r -> a + b r for all arms: J -> N a + b J, for policies, optimum and bound."""
    shift = share * (1 - factor)
    moved = rs.RestlessBandit(
        [rs.Arm(arm.active, arm.passive, shift + factor * arm.rewards) for arm in bandit.arms],
        bandit.num_pulls,
    )

    def expected(before):
        return pytest.approx(bandit.num_pulls * shift + factor * before, abs=1e-8)

    assert rs.relaxation_bound(moved) == expected(rs.relaxation_bound(bandit))
    assert rs.optimal(moved).average_reward == expected(rs.optimal(bandit).average_reward)
    fixed = rs.policies.index_policy(bandit, oldest_first)
    before, after = (rs.evaluate(one, fixed) for one in (bandit, moved))
    assert after.average_reward == expected(before.average_reward)
    assert after.bias_span == pytest.approx(factor * before.bias_span, abs=1e-6)


@settings(max_examples=25)
@given(bandits(num_arms=(3,), spread=0.75), st.permutations(range(3)))
def test_relabelling_arms_leaves_values_alone(bandit, order):
    relabelled = rs.RestlessBandit([bandit.arms[k] for k in order], bandit.num_pulls)
    found, again = (rs.relaxation_bound(one) for one in (bandit, relabelled))
    assert again == pytest.approx(found, abs=1e-10)
    found, again = (rs.optimal(one).average_reward for one in (bandit, relabelled))
    assert again == pytest.approx(found, abs=1e-9)
    found, again = (rs.evaluate(one, rs.policies.best_fixed(one)) for one in (bandit, relabelled))
    assert again.average_reward == pytest.approx(found.average_reward, abs=1e-12)


@settings(max_examples=15)
@given(bandits(num_arms=(3,), spread=0.75), st.permutations(range(3)))
def test_relabelling_arms_that_never_tie_leaves_whittle_alone(bandit, order):
    policy = rs.whittle(bandit)
    values = [policy.table(k).ravel() for k in range(3)]
    for j, k in [(0, 1), (0, 2), (1, 2)]:
        assume(np.abs(values[j][:, None] - values[k]).min() > 1e-10)
    relabelled = rs.RestlessBandit([bandit.arms[k] for k in order], bandit.num_pulls)
    found, again = (rs.evaluate(one, rs.whittle(one)) for one in (bandit, relabelled))
    assert again.average_reward == pytest.approx(found.average_reward, abs=1e-9)
    assert again.num_states == found.num_states


class FixedFirst:
    """The first arms, always: what they earn is known without a chain."""

    def __init__(self, bandit):
        self.bandit = bandit

    def select(self, state):
        return np.arange(self.bandit.num_pulls)


class Own:
    """A policy of the user's own, that looks at the age of one arm and is not in order."""

    def __init__(self, bandit):
        self.bandit = bandit

    def select(self, state):
        return [1, 0] if state.elapsed[2] % 2 else [2, 1]


def test_any_object_with_select_is_evaluated_exactly():
    bandit = random_bandit(np.random.default_rng(2), (2, 2, 2), 2)
    value = rs.evaluate(bandit, Own(bandit))
    # arm 2 of age 1: pull 0 and 1, age 2: pull 1 and 2; so arm 1 always, 0 and 2 in turn
    expected = rs.theory.stationary(bandit.arms[1].active) @ bandit.arms[1].rewards
    for k in (0, 2):
        arm = bandit.arms[k]
        expected += 0.5 * rs.theory.stationary(arm.active @ arm.passive) @ arm.rewards
    assert value.average_reward == pytest.approx(expected, abs=1e-9)
    with pytest.raises(
        rs.errors.TooLargeError, match=r"more than 3 joint states.*only index policies"
    ):
        rs.evaluate(bandit, Own(bandit), max_states=3)


def test_an_object_with_select_alone_is_a_policy(paper_bandit):
    class First:
        def select(self, state):
            return np.array([0, 1])

    assert rs.evaluate(paper_bandit, First()).average_reward == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("choice", ["[7, 8]", "[0, 1, 2]", "[0]", "[0, 0]", "[-1, 0]", "[0.5, 1]"])
def test_an_own_policy_that_pulls_no_n_arms_is_refused(choice):
    """In a process of its own, since a wrong number that reaches a kernel may crash it."""
    script = f"""
import restive as rs
bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 4, 2)
class Wrong:
    bandit = bandit
    def select(self, state):
        return {choice}
try:
    rs.evaluate(bandit, Wrong())
except rs.errors.ProblemError as error:
    print("refused:", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("refused:")


def test_what_does_not_fit_together_is_refused(paper_bandit):
    two = rs.RestlessBandit(paper_bandit.arms[:2], 1)
    with pytest.raises(
        rs.errors.ProblemError,
        match="the policy is for 2 arms and 1 pulls, the bandit has 4 and 2",
    ):
        rs.evaluate(paper_bandit, rs.whittle(two))
    with pytest.raises(rs.errors.ProblemError, match="the state is for 2 arms, the bandit has 4"):
        rs.evaluate(paper_bandit, rs.whittle(paper_bandit), start=rs.BeliefState([0, 0], [1, 1]))
    three_states = random_bandit(np.random.default_rng(0), (2, 3), 1)
    with pytest.raises(rs.errors.ProblemError):
        rs.evaluate(three_states, rs.whittle(two))
    with pytest.raises(rs.errors.ProblemError):
        rs.evaluate(two, rs.whittle(three_states))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"replications": 1}, "replications must be at least 2"),
        ({"steps": 0}, "steps must be at least 1"),
        ({"seed": -1}, "seed"),
    ],
)
def test_wrong_options_of_a_simulation_are_refused(paper_bandit, options, words):
    policy = rs.whittle(paper_bandit)
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.evaluate(paper_bandit, policy, max_states=1, **{"steps": 10, **options})


def test_slow_arms_can_be_evaluated_with_the_ages_held():
    slow = rs.gilbert_elliott(1e-5, 1 - 1e-5)
    bandit = rs.RestlessBandit([slow, rs.gilbert_elliott(0.3, 0.7)], 1)
    with pytest.raises(rs.errors.TooLargeError, match=r"arm 0: .*give max_elapsed"):
        rs.evaluate(bandit, rs.policies.index_policy(bandit, oldest_first))
    policy = rs.myopic(bandit, max_elapsed=50)
    arms = [as_oracle(arm) for arm in bandit.arms]
    tables = [policy.table(k) for k in range(2)]
    for start in (([1, 1], [1, 1]), ([0, 1], [3, 1])):
        value = rs.evaluate(bandit, policy, start=rs.BeliefState(*start), max_elapsed=50)
        expected = average_reward_enumerated(arms, 1, tables, 50, start)
        assert value.average_reward == pytest.approx(expected, abs=1e-9)


def test_names_of_the_zoo_and_swapped_arguments_are_said_to_be_that():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 2, 1)
    words = r"of the zoo that is zoo\.load\('paper-frequentist'\)\.bandit"
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.evaluate("paper-frequentist", "whittle")
    for problems in ("paper-frequentist", ["paper-frequentist"]):
        with pytest.raises(rs.errors.ProblemError, match=f"a problem must be .*{words}"):
            rs.compare(problems, ["tsde"])
    with pytest.raises(rs.errors.ProblemError, match=r"from its file: load_problem\(path\)"):
        rs.evaluate("problem.toml", "whittle")
    with pytest.raises(rs.errors.ProblemError, match=r"its name, got .*; the bandit comes first"):
        rs.evaluate("whittle", bandit)


@pytest.mark.parametrize("wrong", [[], "problem.toml", None])
def test_a_policy_by_name_needs_a_bandit(wrong):
    message = "expected a RestlessBandit, got"
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.evaluate(wrong, "whittle")
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.theory.discounted_spans(wrong, "whittle", [0.9])
