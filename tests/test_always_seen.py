"""Planning for arms that are seen in every step: known values, and oracles by enumeration."""

import json
import subprocess
import sys

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from oracles import always_naive, peer_markovianbandit
from restive.errors import ProblemError
from restive.logs.fitted import fit_arms
from restive.logs.play import Worlds, play_worlds, play_worlds_one_by_one, policy_player
from restive.plan.recommendation import round_robin_reward
from restive.plan.subsidy import subsidy_path

CALLS = [
    (0.03, 0.13, 0.5, 0.6), (0.07, 0.93, 0.13, 0.95), (0.28, 0.37, 0.51, 0.66),
    (0.51, 0.79, 0.67, 0.82), (0.2, 0.48, 0.55, 0.98), (0.24, 0.59, 0.8, 0.87),
    (0.08, 0.28, 0.47, 0.9), (0.15, 0.2, 0.67, 0.9),
]  # fmt: skip


def circulant():
    active = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))
    rewards = [-1.0, 0.0, 0.0, 1.0]
    return rs.Arm(active, active.T, rewards, rewards, seen="always")


def restart():
    passive = 0.9 * np.eye(5, k=1) + 0.1 * np.eye(1, 5)
    passive[4, 4] += 0.9
    active = np.tile(np.eye(1, 5), (5, 1))
    return rs.Arm(active, passive, np.zeros(5), 0.9 ** np.arange(1, 6), seen="always")


def calls():
    arms = []
    for p00, p10, p01, p11 in CALLS:
        active, passive = ([[1 - p, p] for p in good] for good in ((p01, p11), (p00, p10)))
        arms.append(rs.Arm(active, passive, [0, 1], [0, 1], seen="always"))
    return rs.RestlessBandit(arms, 3)


def always(arm, **changes):
    """The same arm, always seen."""
    return rs.Arm(
        arm.active, arm.passive, arm.rewards, arm.passive_rewards, states=arm.states,
        seen=changes.get("seen", "always"),
    )  # fmt: skip


def random_arm(rng, size, seen="always", pay="both"):
    active, passive = (rng.dirichlet(np.full(size, 0.7), size) for _ in range(2))
    unpulled = {"both": rng.random(size), "pulled": None}[pay]
    return rs.Arm(active, passive, rng.random(size), unpulled, seen=seen)


def test_circulant_has_its_known_index_and_rewards():
    arm = circulant()
    assert rs.policies.whittle_index(arm).index.ravel() == pytest.approx(
        [-0.5, 0.5, 1, -1], abs=1e-12
    )
    discounted = rs.policies.whittle_index(arm, discount=0.9).index.ravel()
    assert discounted == pytest.approx([-0.45, 0.45, 0.8910891089, -0.8910891089], abs=1e-10)
    for count, pulls, whittle, best, bound in (
        (3, 1, 0.718120805, 0.741803279, 1),
        (4, 2, 1.26, 1.267857143, 2),
        (5, 2, 1.530306045, 1.561637305, 2),
    ):
        bandit = rs.RestlessBandit([arm] * count, pulls)
        found = [rs.evaluate(bandit, name).average_reward for name in ("whittle", "optimal")]
        assert found == pytest.approx([whittle, best], abs=1e-9)
        assert rs.relaxation_bound(bandit) == pytest.approx(bound, abs=1e-12)
    three, five = (rs.RestlessBandit([arm] * k, n) for k, n in ((3, 1), (5, 2)))
    assert rs.evaluate(three, "best_index").average_reward == pytest.approx(0.734678243, abs=1e-9)
    assert rs.evaluate(five, "lp_priority").average_reward == pytest.approx(1.302192221, abs=1e-9)


def test_restart_has_its_known_index_and_rewards():
    """The last index is positive; the source prints -.01."""
    arm = restart()
    index = [-0.9, -0.729, -0.50949, -0.2587869, 0.0098926]
    assert rs.policies.whittle_index(arm).index.ravel() == pytest.approx(index, abs=1e-7)
    for count, best, bound in ((3, 1.7271, 1.728), (4, 2.49908031, 2.50407)):
        bandit = rs.RestlessBandit([arm] * count, 1)
        found = [rs.evaluate(bandit, name).average_reward for name in ("whittle", "optimal")]
        assert found == pytest.approx([best, best], abs=1e-8)
        assert rs.relaxation_bound(bandit) == pytest.approx(bound, abs=1e-10)


def deadline(most_time=12, most_left=9, price=0.5, chance=0.7):
    """Charging before a deadline: (time left, charge left); pulling charges one unit."""
    states = [(0, 0), *((t, b) for t in range(1, most_time + 1) for b in range(most_left + 1))]
    number = {state: i for i, state in enumerate(states)}
    arrival = np.zeros(len(states))
    arrival[number[0, 0]] = 1 - chance
    for t in range(1, most_time + 1):
        for b in range(1, most_left + 1):
            arrival[number[t, b]] = chance / (most_time * most_left)
    moves, rewards = np.zeros((2, len(states), len(states))), np.zeros((2, len(states)))
    for (t, b), i in number.items():
        for pulled in (0, 1):
            left = max(b - pulled, 0)
            if t > 0 and b > 0 and pulled:
                rewards[pulled, i] = 1 - price
            if t <= 1:
                moves[pulled, i] = arrival
                if t == 1:
                    rewards[pulled, i] -= 0.2 * left**2
            else:
                moves[pulled, i, number[t - 1, left]] = 1.0
    return states, rs.Arm(moves[1], moves[0], rewards[1], rewards[0], seen="always")


def test_the_discounted_index_of_deadlines_is_that_of_the_closed_form():
    beta, price = 0.9, 0.5
    states, arm = deadline(price=price)
    found = rs.policies.whittle_index(arm, discount=beta)
    for (t, b), value in zip(states, found.index.ravel(), strict=True):
        wanted = 1 - price if b else 0.0
        if b >= t > 0:
            wanted += beta ** (t - 1) * 0.2 * ((b - t + 1) ** 2 - (b - t) ** 2)
        assert value == pytest.approx(wanted, abs=1e-9), (t, b)
    assert found.indexable
    with pytest.raises(rs.errors.AssumptionError, match="pass a discount below 1"):
        rs.policies.whittle_index(arm)


def test_rested_arms_have_gittins_indices_and_need_a_discount():
    moves = [[0.1, 0.7, 0.2], [0.4, 0.4, 0.2], [0.3, 0.1, 0.6]]
    arm = rs.Arm(moves, np.eye(3), [1, 0.2, 0.6], seen="always", states=["a", "b", "c"])
    found = rs.policies.whittle_index(arm, discount=0.8)
    assert found.index.ravel() == pytest.approx([1, 0.4884250474, 0.6827586207], abs=1e-10)
    with pytest.raises(rs.errors.AssumptionError) as caught:
        rs.policies.whittle_index(arm)
    assert str(caught.value) == (
        "arm: the passive chain has 3 closed classes, {a}, {b}, {c}, so its long-run law depends "
        "on the start; pass a discount below 1"
    )


def test_an_arm_that_is_not_indexable_is_told_with_both_ends():
    arm = rs.Arm(
        [[0.7, 0, 0.3], [0.3, 0, 0.7], [0, 0.9, 0.1]],
        [[0.1, 0.1, 0.8], [0.1, 0.3, 0.6], [0.8, 0.1, 0.1]],
        [0.4, 0.2, 0.2], [0.2, 0.9, 0.9], seen="always",
    )  # fmt: skip
    found = rs.policies.whittle_index(arm)
    assert not found.indexable
    index, upper = found.index.ravel(), found.upper.ravel()
    assert index == pytest.approx([-0.0833333, -0.6372881, -1.0047619], abs=1e-7)
    assert upper == pytest.approx([-0.0833333, -0.6372881, -0.0823529], abs=1e-7)


def test_states_that_switch_together_are_no_verdict():
    """Ties: pulling does nothing, or the same in all states."""
    for arm in (
        rs.Arm(np.full((3, 3), 1 / 3), rewards=[0.5, 0.5, 0.5], seen="always"),
        rs.Arm([[0.5, 0.5], [0.5, 0.5]], rewards=[0, 0], passive_rewards=[1, 1], seen="always"),
    ):
        found = rs.policies.whittle_index(arm)
        assert found.indexable
        assert np.ptp(found.index) == pytest.approx(0, abs=1e-12)


def test_calls_and_outreach_have_their_known_rewards():
    bandit = calls()
    found = [rs.evaluate(bandit, name).average_reward for name in ("whittle", "optimal", "myopic")]
    assert found == pytest.approx([4.608278115, 4.608278115, 4.56060543], abs=1e-8)
    assert rs.relaxation_bound(bandit) == pytest.approx(4.646862312, abs=1e-9)
    seen = rs.load_problem("examples/outreach.toml")
    outreach = rs.RestlessBandit([always(arm) for arm in seen.arms], seen.num_pulls)
    found = [rs.evaluate(outreach, name).average_reward for name in ("whittle", "optimal")]
    assert found == pytest.approx([3.704660509, 3.704660509], abs=1e-9)
    assert rs.relaxation_bound(outreach) == pytest.approx(3.738827839, abs=1e-9)


def test_indices_and_verdicts_are_those_of_markovianbandit():
    """500 random arms, of which some are sparse; whoever is not indexable here is not there."""
    rng = np.random.default_rng(26)
    arms = [random_arm(rng, 2 + i % 7) for i in range(500)]
    sent = [
        {
            "passive": arm.passive.tolist(), "active": arm.active.tolist(),
            "earn_passive": arm.passive_rewards.tolist(), "earn_active": arm.rewards.tolist(),
            "discount": 1,
        }
        for arm in arms
    ]  # fmt: skip
    worker = str(peer_markovianbandit._WORKER)
    done = subprocess.run(
        [sys.executable, worker], input=json.dumps(sent), capture_output=True, text=True, check=True
    )
    not_indexable = 0
    for arm, theirs in zip(arms, json.loads(done.stdout), strict=True):
        ours = rs.policies.whittle_index(arm)
        assert ours.indexable == (theirs is not None), arm
        not_indexable += not ours.indexable
        if theirs is not None:
            assert ours.index.ravel() == pytest.approx(theirs, abs=1e-9)
    assert 0 < not_indexable < 100


@pytest.mark.parametrize("discount", [1.0, 0.9, 0.5])
def test_advantages_are_those_of_policy_iteration(discount):
    rng = np.random.default_rng(3)
    for size in (1, 2, 3, 6):
        arm = random_arm(rng, size)
        path = subsidy_path(arm, discount)
        for subsidy in (-1.5, -0.4, 0.1, 0.3, 0.7, 2.0):
            expected = always_naive.advantage(arm, subsidy, discount)
            assert path.advantage(subsidy).ravel() == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize("pay", ["both", "pulled"])
def test_mixed_bandits_earn_what_enumeration_says(pay):
    """Fast arms, so that four ages are enough for the others: they forget at once."""
    rng = np.random.default_rng(5)
    for kinds in (("always", "always"), ("always", "pulled"), ("always", "always", "pulled")):
        arms = []
        for seen in kinds:
            arm = random_arm(rng, 2, seen, pay)
            law = rng.dirichlet(np.ones(2))  # a passive chain that forgets in one step
            arms.append(
                rs.Arm(arm.active, [law, law], arm.rewards, arm.passive_rewards, seen=seen)
                if seen == "pulled" else arm
            )  # fmt: skip
        bandit = rs.RestlessBandit(arms, 1)
        start = tuple((1, 1) for _ in arms)
        for name in ("whittle", "myopic", "best_fixed", "lp_priority"):
            policy = rs.registry.policy_mapping(name)(bandit)

            def choose(state, policy=policy):
                s, n = np.array(state).T
                return policy.select(rs.BeliefState(s, n)).tolist()

            value = rs.evaluate(bandit, policy)
            gain, span = always_naive.gain_and_span(arms, choose, start, 3)
            assert value.average_reward == pytest.approx(gain, abs=1e-9), (kinds, name)
            assert value.bias_span == pytest.approx(span, abs=1e-8), (kinds, name)
        best = rs.evaluate(bandit, "optimal").average_reward
        assert best == pytest.approx(always_naive.optimum(arms, 1, 3), abs=1e-8)
        bound = rs.relaxation_bound(bandit)
        assert bound == pytest.approx(always_naive.relaxation(arms, 1, 3), abs=1e-8)


def test_simulated_rewards_are_those_of_the_joint_chain():
    """Within five standard errors, which a right program leaves once in two million times."""
    rng = np.random.default_rng(8)
    arms = [random_arm(rng, 3), random_arm(rng, 2, "pulled"), random_arm(rng, 2)]
    bandit = rs.RestlessBandit(arms, 1)
    exact = rs.evaluate(bandit, "whittle")
    simulated = rs.evaluate(bandit, "whittle", max_states=2, steps=4000, seed=1)
    assert simulated.method.startswith("simulation")
    apart = abs(simulated.average_reward - exact.average_reward)
    assert 0 < simulated.stderr < 0.01
    assert apart < 5 * simulated.stderr


@pytest.mark.parametrize("hidden", [False, True])
def test_worlds_show_all_such_arms_and_pay_for_the_state_before(hidden):
    rng = np.random.default_rng(9)
    arms = [random_arm(rng, 3), random_arm(rng, 2, "pulled"), random_arm(rng, 2)]
    bandit = rs.RestlessBandit(arms, 1)
    world = rs.World(bandit, seed=4, hidden=hidden)
    moves = np.zeros((3, 3))
    for t in range(4000):
        before = world.belief_state.last_state
        k = t % 3
        states, earned, expected = world.pull(np.array([k]))
        after = world.belief_state
        assert len(states) == (3 if k == 1 else 2)
        assert after.elapsed[[0, 2]].tolist() == [1, 1]
        shown = [0, 1, 2] if k == 1 else [0, 2]
        assert states.tolist() == after.last_state[shown].tolist()
        paid = sum(
            (arm.rewards if j == k else arm.passive_rewards)[before[j]]
            for j, arm in ((0, arms[0]), (2, arms[2]))
        )
        if k == 1:
            paid += arms[1].rewards[states[1]]
            assert earned == pytest.approx(paid)
        elif not hidden:
            assert earned == pytest.approx(expected)
        if k != 0:
            moves[before[0], after.last_state[0]] += 1
    shares = moves / moves.sum(axis=1, keepdims=True)
    error = np.sqrt(0.25 / moves.sum(axis=1, keepdims=True))
    assert (np.abs(shares - arms[0].passive) < 5 * error).all()


def test_trajectories_hold_the_states_of_all_arms():
    bandit = calls()
    run = rs.simulate(bandit, "whittle", 200, seed=3)
    assert (run.elapsed == 1).all()
    for t in range(199):
        assert run.states[t].tolist() == run.last_state[t + 1, run.arms[t]].tolist()
        assert run.rewards[t] == run.last_state[t].sum()
    table = run.to_pandas()
    assert table["reward"].tolist() == table["last_state"].tolist()


def test_fixed_arms_of_very_many_are_solved_by_kind():
    arms = calls().arms
    bandit = rs.RestlessBandit([arm for arm in arms for _ in range(200)], 3)
    value = rs.evaluate(bandit, "best_fixed")
    assert value.method == "exact: fixed arms"
    assert np.isfinite(value.bias_span)


def test_files_say_it_for_all_arms_or_for_one():
    text = 'num_pulls = 1\nseen = "always"\n[[arm]]\np01 = 0.2\np11 = 0.6\n'
    other = '[[arm]]\np01 = 0.3\np11 = 0.7\nseen = "pulled"\n'
    bandit = rs.RestlessBandit.from_toml(text + other)
    assert [arm.seen for arm in bandit.arms] == ["always", "pulled"]
    for whole in (bandit, rs.RestlessBandit(bandit.arms[:1], 1), rs.RestlessBandit(bandit[1:], 1)):
        assert rs.RestlessBandit.from_toml(whole.to_toml()) == whole
    assert bandit.arms[0] == rs.gilbert_elliott(0.2, 0.6, seen="always")
    assert bandit.arms[0] != rs.gilbert_elliott(0.2, 0.6)
    with pytest.raises(rs.RestiveError) as caught:
        rs.RestlessBandit.from_toml(text.replace("always", "often") + other.replace("pull", "un"))
    words = str(caught.value)
    assert "line 2: seen must be 'pulled' or 'always', got 'often'" in words
    assert "seen must be 'pulled' or 'always', got 'uned'" in words


def test_what_does_not_fit_is_told_in_one_sentence():
    arm = rs.gilbert_elliott(0.3, 0.6, seen="always")
    bandit = rs.RestlessBandit([arm, rs.gilbert_elliott(0.3, 0.6)], 1)
    with pytest.raises(rs.RestiveError, match="seen must be 'pulled' or 'always', got 1"):
        rs.gilbert_elliott(0.3, 0.6, seen=1)
    with pytest.raises(rs.RestiveError, match=r"arm 0: is always seen, .* must be 1, got 3"):
        rs.evaluate(bandit, "whittle", start=rs.BeliefState([0, 1], [3, 2]))
    policy = rs.whittle(rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6)] * 2, 1))
    with pytest.raises(rs.RestiveError, match="arm 0: is seen always, the policy is for an arm"):
        rs.evaluate(bandit, policy)


def test_own_rules_may_return_longer_tables():
    bandit = rs.RestlessBandit(calls().arms[:3], 1)
    policy = rs.policies.index_policy(bandit, lambda arm: np.tile(arm.active[:, 1:], (1, 5)))
    short = rs.policies.index_policy(bandit, lambda arm: arm.active[:, 1:])
    values = [rs.evaluate(bandit, own).average_reward for own in (policy, short)]
    assert values[0] == pytest.approx(values[1], abs=1e-12)


def test_tables_of_many_arms_at_once_are_those_of_each():
    rng = np.random.default_rng(21)
    arms = [random_arm(rng, 2 + i % 4) for i in range(40)]
    for discount in (1.0, 0.8):
        policy = rs.whittle(rs.RestlessBandit(arms, 3), discount=discount)
        for k, arm in enumerate(arms):
            alone = rs.policies.whittle_index(arm, discount=discount).index
            assert policy.table(k).tolist() == alone.tolist()
    rested = rs.Arm(arms[0].active, np.eye(2), [0, 1], seen="always")
    with pytest.raises(rs.errors.AssumptionError, match="has 2 closed classes"):
        rs.whittle(rs.RestlessBandit([*arms, rested], 1))


def test_bounds_of_cohorts_that_are_seen_when_called_and_always():
    """Seeing everyone is worth 17 to 19% of them."""
    for name, hidden, seen in (("collapsing", 22.15, 25.94), ("outreach-cohort", 15.78, 18.73)):
        bandit = rs.zoo.load(name).bandit
        shown = rs.RestlessBandit([always(arm) for arm in bandit.arms], bandit.num_pulls)
        found = [rs.relaxation_bound(one) for one in (bandit, shown)]
        assert found == pytest.approx([hidden, seen], abs=0.005)


def test_turns_are_taken_among_arms_that_are_always_seen():
    """No state tells whose turn it is. 200 runs of 200 steps; the bound is five standard errors."""
    bandit = calls()
    exact = round_robin_reward(bandit)
    for given in ("round_robin", rs.policies.round_robin(bandit)):
        with pytest.raises(ProblemError, match=r"simulate\(bandit, 'round_robin', horizon\)"):
            rs.evaluate(bandit, given)
    runs = [rs.simulate(bandit, "round_robin", 200, seed=seed) for seed in range(200)]
    order = np.arange(3 * 200).reshape(200, 3) % 8
    assert (np.sort(order, axis=1) == runs[0].arms).all()
    earned = np.array([run.expected_rewards[40:].mean() for run in runs])
    assert abs(earned.mean() - exact) < 5 * earned.std(ddof=1) / np.sqrt(len(runs))
    whole = rs.RestlessBandit(bandit.arms, 8)  # where everyone is pulled there is no turn
    assert rs.evaluate(whole, "round_robin").average_reward == pytest.approx(
        rs.evaluate(whole, "best_fixed").average_reward
    )


def test_turns_are_taken_in_worlds_of_a_log():
    """In 400 worlds of arms that are known; the bound is five standard errors."""
    bandit, rng = calls(), np.random.default_rng(3)
    rows = [(k, t, rng.integers(2), k % 3 == 0) for t in range(2) for k in range(8)]
    arm, step, state, pulled = np.array(rows).T
    log = log_of(arm, step, state, pulled=pulled.astype(bool), kinds=list("abcdefgh"))
    priors = {name: rs.ArmPrior([one]) for name, one in zip("abcdefgh", bandit.arms, strict=True)}
    known = fit_arms(log, priors, controlled=True, passive_rewards=[0, 1], seen="always")
    turns = rs.policies.round_robin(known.problem(3))
    together = play_worlds(Worlds(known, 400, 1), turns, known.start, 100) / 100
    exact = round_robin_reward(bandit)
    assert abs(together.mean() - exact) < 5 * together.std(ddof=1) / 20 + 3 / 100
    one_by_one = play_worlds_one_by_one(
        Worlds(known, 400, 1), lambda r, now: policy_player(turns, turns.bandit, known.start), 100
    )
    assert (one_by_one / 100 == together).all()


def test_candidates_are_weighed_by_moves_of_pulled_and_other_arms():
    """A finite prior of a log in which all is seen; the weights by hand."""
    one, other = calls().arms[:2]
    log = log_of([0] * 4, range(4), [1, 0, 1, 1], pulled=[True, False, False, True])
    known = fit_arms(log, rs.ArmPrior([one, other]), controlled=True, seen="always")
    weights = np.array([a.active[1, 0] * a.passive[0, 1] * a.passive[1, 1] for a in (one, other)])
    (posterior,) = known.prior.arms
    assert posterior.weights == pytest.approx(weights / weights.sum())
    assert known.arms.active[0] == pytest.approx(
        np.tensordot(posterior.weights, [one.active, other.active], 1)
    )
