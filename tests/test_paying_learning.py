"""Learning where arms pay in every step, against an oracle that carries the beliefs of all arms."""

import json
from hashlib import sha256

import numpy as np
import pytest

import restive as rs
from learning_cases import (
    CASES,
    agent_with,
    as_lists,
    chooser_of,
    naive_run,
    own_rule,
    paying,
    posed,
    run_engine,
    small_independent,
    small_joint,
    start_of,
    trace,
    true_bandit,
)
from oracles import joint_paid_naive, tsde_naive
from restive.learn.learners import learner
from restive.learn.task import make_task
from restive.measure.replication import replicate
from restive.plan.policies.registry import policy_mapping
from strategies import as_paying_oracle, random_paying_bandit

STEPS = 60
EVERY_STEP = np.arange(1, STEPS + 1)


def case_of(name):
    prior, num_pulls = CASES[name]()
    return paying(prior), num_pulls


def naive_policy_totals(prior, num_pulls, mapping, drawn, start, seed, replication):
    """Totals (expected, realised) [T, 2] of the policy that knows the truth, in the naive world."""
    arms = [prior.candidates(k)[c] for k, c in enumerate(drawn)]
    choose = chooser_of(prior, num_pulls, mapping)
    world = tsde_naive.NaiveWorld(
        list(map(as_lists, arms)), start.last_state, start.elapsed, seed, replication,
        [arm.passive_rewards.tolist() for arm in arms],
    )  # fmt: skip
    last_state, elapsed = start.last_state.tolist(), start.elapsed.tolist()
    paid = []
    for _ in range(STEPS):
        scores = choose(drawn, last_state, elapsed)
        order = sorted(range(len(scores)), key=lambda k: (-scores[k], k))
        pulled = sorted(order[:num_pulls])
        states, earned, expected = world.pull(pulled)
        elapsed = [n + 1 for n in elapsed]
        for k, state in zip(pulled, states, strict=True):
            last_state[k], elapsed[k] = state, 1
        paid.append((expected, earned))
    return np.cumsum(paid, axis=0)


@pytest.mark.parametrize("name", CASES)
def test_totals_at_every_time_are_those_of_the_oracle_that_carries_all_beliefs(name):
    prior, num_pulls = case_of(name)
    task = make_task(prior, num_pulls, "whittle", STEPS)
    done = replicate(task, learner("tsde"), EVERY_STEP, 2, seed=7)
    for r in range(2):
        run = naive_run(prior, num_pulls, "whittle", STEPS, STEPS, seed=7, replication=r)
        totals = np.array(run.totals)
        assert done.expected[r] == pytest.approx(totals[:, 0], abs=1e-9)
        assert done.realised[r] == pytest.approx(totals[:, 1], abs=1e-9)
        assert done.episodes[r].tolist() == run.episodes
        assert np.abs(totals - totals[-1]).max() > 1, "the totals move"


@pytest.mark.parametrize("mapping", ["best_fixed", "myopic", "lp_priority", "optimal"])
@pytest.mark.parametrize("make", [small_independent, small_joint])
def test_every_mapping_learns_with_arms_that_pay_always(make, mapping):
    prior, num_pulls = make()
    prior = paying(prior)
    task = make_task(prior, num_pulls, mapping, STEPS)
    done = replicate(task, learner("tsde"), EVERY_STEP, 1, seed=2)
    run = naive_run(prior, num_pulls, mapping, STEPS, STEPS, seed=2)
    assert done.expected[0] == pytest.approx(np.array(run.totals)[:, 0], abs=1e-9)


@pytest.mark.parametrize("ages", [[2, 3, 10**9], [4, 1, 2], [10**9, 2, 5]])
def test_steps_before_the_first_count_nothing_however_old_the_arms_are(ages):
    prior, num_pulls = case_of("controlled")
    start, recent = (
        rs.BeliefState([0, 1, 1], np.minimum(ages, most)) for most in (10**9, 5000)
    )  # settled in either case
    task = make_task(prior, num_pulls, "whittle", STEPS, start=start)
    done = replicate(task, learner("tsde"), EVERY_STEP, 2, seed=4)
    for r in range(2):
        run = naive_run(
            prior, num_pulls, "whittle", STEPS, STEPS, seed=4, replication=r, start=recent
        )
        assert done.expected[r] == pytest.approx(np.array(run.totals)[:, 0], abs=1e-9)


def test_what_is_recorded_does_not_depend_on_what_else_is():
    prior, num_pulls = case_of("three_states")
    task = make_task(prior, num_pulls, "whittle", STEPS)
    every = replicate(task, learner("tsde"), EVERY_STEP, 3, seed=1)
    few = np.array([1, 13, STEPS])
    some = replicate(task, learner("tsde"), few, 3, seed=1, threads=2, chunk=1)
    assert some.expected.tobytes() == every.expected[:, few - 1].tobytes()
    assert some.oracle_realised.tobytes() == every.oracle_realised[:, few - 1].tobytes()


@pytest.mark.parametrize("name", ["channels", "joint"])
def test_rewards_change_neither_posterior_nor_episodes(name):
    """With a rule that does not look at passive rewards, arms, states and episodes are the same."""
    prior, num_pulls = CASES[name]()
    setups = [posed(one, num_pulls, own_rule, 200) for one in (prior, paying(prior))]
    (arms, states), (paid_arms, paid_states) = (trace(setup, 200, seed=3) for setup in setups)
    assert np.array_equal(arms, paid_arms)
    assert np.array_equal(states, paid_states)
    learner_states = [run_engine(setup, 200, seed=3)[0] for setup in setups]
    assert (
        learner_states[0].actor.episodes.clock.tolist()
        == learner_states[1].actor.episodes.clock.tolist()
    )
    agents = [agent_with(learner_state, seed=3) for learner_state in learner_states]
    for k in range(prior.num_arms):
        weights = [agent.posterior(k).weights for agent in agents]
        assert weights[0].tobytes() == weights[1].tobytes()


@pytest.mark.parametrize("name", ["channels", "controlled"])
def test_bayesian_regret_is_that_of_a_naive_implementation(name):
    prior, num_pulls = case_of(name)
    start = start_of(prior)
    for rewards, column in (("expected", 0), ("realised", 1)):
        curve = rs.bayesian_regret(
            prior, num_pulls, "whittle", STEPS, replications=3, seed=5, times=EVERY_STEP,
            rewards=rewards,
        )  # fmt: skip
        for r in range(3):
            run = naive_run(prior, num_pulls, "whittle", STEPS, STEPS, seed=5, replication=r)
            drawn = tsde_naive.drawn_truth(run.agent.groups, prior.num_arms, 5, r)
            known = naive_policy_totals(prior, num_pulls, "whittle", drawn, start, 5, r)
            regret = known[:, column] - np.array(run.totals)[:, column]
            assert curve.samples[r] == pytest.approx(regret, abs=1e-9)


@pytest.mark.parametrize("mapping", ["whittle", "best_fixed"])
def test_frequentist_regret_is_j_of_all_arms_minus_what_all_arms_paid(mapping):
    prior, num_pulls = small_independent()
    prior = paying(prior)
    truth = true_bandit(prior, num_pulls)
    curve = rs.frequentist_regret(
        truth, prior, mapping, STEPS, replications=2, seed=6, times=EVERY_STEP, baseline="exact"
    )
    policy = policy_mapping(mapping)(truth)

    def choose(last_state, elapsed):
        return policy.select(rs.BeliefState(last_state, elapsed)).tolist()

    arms = [as_paying_oracle(arm) for arm in truth.arms]
    j = joint_paid_naive.average_reward(arms, choose, 80)
    for r in range(2):
        run = naive_run(prior, num_pulls, mapping, STEPS, STEPS, seed=6, replication=r, truth=truth)
        regret = j * EVERY_STEP - np.array(run.totals)[:, 0]
        assert curve.samples[r] == pytest.approx(regret, abs=1e-7)


def test_a_truth_that_pays_otherwise_than_the_prior_says_is_refused():
    prior, num_pulls = small_independent()
    truth = true_bandit(paying(prior), num_pulls)
    with pytest.raises(
        rs.errors.ProblemError, match=r"arm 0: passive_rewards are .* they must agree"
    ):
        rs.frequentist_regret(truth, prior, horizon=10, replications=1)


def test_candidates_agree_in_both_rewards():
    pays, not_so = (rs.gilbert_elliott(0.3, 0.6, passive_rewards=r) for r in ([0, 1], [0, 0.5]))
    with pytest.raises(
        rs.errors.ProblemError, match=r"candidate 1 has passive_rewards \[0.0, 0.5\]"
    ):
        rs.ArmPrior([pays, not_so])
    bandits = [rs.RestlessBandit([arm], 1) for arm in (pays, not_so)]
    with pytest.raises(rs.errors.ProblemError, match="arm 0 of bandit 1 has passive_rewards"):
        rs.JointPrior(bandits)


def test_a_grid_prior_may_pay_always():
    prior = rs.grid_prior([0.2, 0.7], 3, rewards=[0, 2], passive_rewards=[1, 3])
    for arm in prior.candidates(2):
        assert arm.rewards.tolist() == [0, 2]
        assert arm.passive_rewards.tolist() == [1, 3]
    assert not rs.grid_prior([0.2, 0.7], 3).candidates(0)[0].pays_unpulled
    with pytest.raises(
        rs.errors.ProblemError, match="passive_rewards must hold one number per state"
    ):
        rs.grid_prior([0.2, 0.7], 3, passive_rewards=[1])


# ---- worlds and trajectories


def test_a_world_pays_what_is_expected_of_the_arms_that_are_not_pulled():
    rng = np.random.default_rng(3)
    bandit = random_paying_bandit(rng, (2, 3, 2), 1)
    start = rs.BeliefState([0, 2, 1], [1, 7, 2])
    world = rs.World(bandit, start=start, seed=9)
    arms = [as_lists(arm) for arm in bandit.arms]
    passive = [arm.passive_rewards.tolist() for arm in bandit.arms]
    naive = tsde_naive.NaiveWorld(arms, start.last_state, start.elapsed, 9, 0, passive)
    for t in range(50):
        pulled = [[], [t % 3], [0, 2]][t % 3]
        states, earned, expected = world.pull(np.array(pulled, dtype=np.int64))
        naive_states, naive_earned, naive_expected = naive.pull(pulled)
        assert states.tolist() == naive_states
        assert (earned, expected) == pytest.approx((naive_earned, naive_expected), abs=1e-12)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_trajectory_tells_what_all_arms_pay(hidden):
    rng = np.random.default_rng(4)
    bandit = random_paying_bandit(rng, (2, 3, 2, 2), 2)
    run = rs.simulate(bandit, rs.whittle(bandit), 300, seed=3, hidden=hidden)
    assert run.hidden_states.shape == ((300, 4) if hidden else (0, 4))
    tables = [rs.theory.belief_table(arm, 60) for arm in bandit.arms]
    for t in range(300):
        earned = expected = 0.0
        seen = dict(zip(run.arms[t].tolist(), run.states[t].tolist(), strict=True))
        for k, arm in enumerate(bandit.arms):
            belief = tables[k][run.last_state[t, k], min(run.elapsed[t, k], 60) - 1]
            mean = belief @ (arm.rewards if k in seen else arm.passive_rewards)
            expected += mean
            if k in seen:
                earned += arm.rewards[seen[k]]
            else:
                earned += arm.passive_rewards[run.hidden_states[t, k]] if hidden else mean
        assert run.expected_rewards[t] == pytest.approx(expected, abs=1e-10)
        assert run.rewards[t] == pytest.approx(earned, abs=1e-10)
        if hidden:
            assert run.hidden_states[t, run.arms[t]].tolist() == run.states[t].tolist()


def test_hidden_states_move_by_the_matrices():
    """Every transition frequency within 4.8 standard errors: a false alarm in 1 of 10^4 or so."""
    rng = np.random.default_rng(5)
    bandit = random_paying_bandit(rng, (2, 3), 1, 0.3)
    run = rs.simulate(bandit, rs.policies.random_policy(bandit), 6000, seed=8, hidden=True)
    for k, arm in enumerate(bandit.arms):
        pulled = (run.arms[:-1] == k).any(axis=1)
        now, then = run.hidden_states[:-1, k], run.hidden_states[1:, k]
        for matrix, when in ((arm.active, pulled), (arm.passive, ~pulled)):
            for s in range(arm.num_states):
                count = int((when & (now == s)).sum())
                found = np.bincount(then[when & (now == s)], minlength=arm.num_states)
                error = np.sqrt(count * matrix[s] * (1 - matrix[s]))
                assert count > 50
                assert (np.abs(found - count * matrix[s]) <= 4.8 * error).all()


def test_hidden_states_begin_with_the_belief():
    """4.5 standard errors: a false alarm in about 1 of 10^5."""
    arm = rs.Arm([[0.2, 0.8], [0.5, 0.5]], [[0.9, 0.1], [0.3, 0.7]], [0, 1], [0, 1])
    start = rs.BeliefState([0], [3])
    bandit = rs.RestlessBandit([arm], 1)
    good = [
        int(rs.World(bandit, start=start, seed=seed, hidden=True).hidden_states[0])
        for seed in range(900)
    ]
    chance = rs.theory.belief_table(arm, 3)[0, 2, 1]
    assert abs(np.mean(good) - chance) < 4.5 * np.sqrt(chance * (1 - chance) / 900)


def test_what_hidden_states_pay_is_on_average_what_was_expected():
    """Totals of 400 runs, with states hidden and without: 4.5 standard errors, 1 of 10^5."""
    rng = np.random.default_rng(6)
    bandit = random_paying_bandit(rng, (2, 3, 2), 1, 0.4)
    policy = rs.whittle(bandit)
    runs = [rs.simulate(bandit, policy, 20, seed=seed, hidden=True) for seed in range(400)]
    paid = np.array([run.rewards.sum() for run in runs])
    hoped = np.array([run.expected_rewards.sum() for run in runs])
    gap = paid - hoped
    assert abs(gap.mean()) < 4.5 * gap.std(ddof=1) / 20
    arms = [as_paying_oracle(arm) for arm in bandit.arms]

    def choose(last_state, elapsed):
        return policy.select(rs.BeliefState(last_state, elapsed)).tolist()

    total = joint_paid_naive.total_reward(arms, choose, 60, 20)
    for found in (paid, hoped):
        assert abs(found.mean() - total) < 4.5 * found.std(ddof=1) / 20


# ---- nothing changes where arms pay only when pulled


@pytest.fixture(scope="module")
def stored(pytestconfig):
    path = pytestconfig.rootpath / "tests/stored/pulled_only_learning.json"
    return json.loads(path.read_text())


def digest(*arrays):
    found = sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


@pytest.mark.parametrize("name", ["channels", "controlled", "three_states", "joint"])
def test_arms_that_pay_only_when_pulled_are_learnt_as_ever_to_the_bit(stored, name):
    """Digests stored before arms that are learnt could pay while not pulled."""
    prior, num_pulls = CASES[name]()
    times = np.array([1, 7, 50, 299, 300])
    task = make_task(prior, num_pulls, "whittle", 300)
    for who in ("tsde", "ucb1", "beta_bernoulli"):
        done = replicate(task, learner(who), times, 6, seed=3)
        found = digest(
            done.expected, done.realised, done.episodes, done.oracle_expected, done.oracle_realised
        )
        assert found == stored[f"{name} {who}"], who
    agent = rs.TSDE(prior, num_pulls, horizon=60, seed=2)
    run = rs.simulate(true_bandit(prior, num_pulls), agent, 60, seed=4)
    found = digest(
        run.arms, run.states, run.rewards, run.expected_rewards, run.last_state, run.elapsed,
        run.episode,
    )  # fmt: skip
    assert found == stored[f"{name} trajectory"]


# ---- snapshots, the theory and comparisons


@pytest.mark.parametrize("name", ["controlled", "joint"])
def test_a_snapshot_keeps_what_arms_pay_while_they_are_not_pulled(name):
    prior, num_pulls = case_of(name)
    agent = rs.TSDE(prior, num_pulls, horizon=50, seed=1)
    truth = true_bandit(prior, num_pulls)
    world = rs.World(truth, seed=2)
    for _ in range(20):
        agent.observe(world.pull(agent.select())[0])
    twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
    for k in range(prior.num_arms):
        assert twin.task.prior.candidates(k) == prior.candidates(k)
    for _ in range(20):
        assert agent.select().tolist() == twin.select().tolist()
        states = world.pull(agent.select())[0]
        agent.observe(states)
        twin.observe(states)


def test_regret_is_taken_apart_where_all_arms_pay():
    prior, num_pulls = small_independent()
    found = rs.theory.decompose_regret(paying(prior), num_pulls, horizon=40, replications=5, seed=1)
    curve = rs.bayesian_regret(
        paying(prior), num_pulls, horizon=40, replications=5, seed=1, times=[40], baseline="exact"
    )
    assert found.regret == pytest.approx(curve.samples[:, -1], abs=1e-7)
    parts = (
        found.sampling_regret + found.switching_regret + found.transition_regret
        + found.reward_regret
    )  # fmt: skip
    assert parts == pytest.approx(found.regret, abs=1e-7)
    assert found.bellman_residual < 1e-8
    for bandit, j in zip(found.systems, found.average_rewards, strict=True):
        assert j == pytest.approx(rs.evaluate(bandit, "whittle").average_reward, abs=1e-8)


def test_discounted_spans_count_all_arms():
    bandit = random_paying_bandit(np.random.default_rng(8), (2, 3), 1, 0.6)
    policy = rs.whittle(bandit)

    def choose(last_state, elapsed):
        return policy.select(rs.BeliefState(last_state, elapsed)).tolist()

    arms = [as_paying_oracle(arm) for arm in bandit.arms]
    move, earn = joint_paid_naive._chain(arms, choose, 60)
    values = np.linalg.solve(np.eye(len(earn)) - 0.9 * move.toarray(), earn)
    assert rs.theory.discounted_spans(bandit, policy, [0.9]) == pytest.approx(
        np.ptp(values), abs=1e-8
    )


def test_bounds_say_that_the_theorem_does_not_cover_passive_rewards():
    here = rs.grid_prior([0.3, 0.6], 3)
    plain = rs.theory.bounds_for(here, 1, 1000, 2.0)
    assert (plain.scale, plain.remarks) == (1.0, ())
    always = rs.theory.bounds_for(
        rs.grid_prior([0.3, 0.6], 3, passive_rewards=[0, 1]), 1, 1000, 2.0
    )
    assert always.regret == plain.regret
    (remark,) = always.remarks
    assert "Theorem 1 does not cover" in remark


def test_bounds_are_scaled_by_the_range_of_rewards_and_say_so():
    here = rs.grid_prior([0.3, 0.6], 3)
    money = rs.grid_prior([0.3, 0.6], 3, rewards=[-2, 6])
    plain, scaled = (
        rs.theory.bounds_for(here, 1, 1000, 2.0),
        rs.theory.bounds_for(money, 1, 1000, 16.0),
    )
    assert scaled.scale == 8
    assert scaled.regret == pytest.approx(8 * plain.regret, rel=1e-14)
    assert scaled.times_trivial == pytest.approx(plain.times_trivial, rel=1e-14)
    assert "from -2 to 6" in scaled.remarks[0]
    within = rs.theory.bounds_for(rs.grid_prior([0.3, 0.6], 3, rewards=[0.2, 0.7]), 1, 1000, 2.0)
    assert (within.scale, within.remarks) == (1.0, ())


def test_a_comparison_says_who_solves_another_problem():
    prior, num_pulls = small_independent()
    prior = paying(prior)
    truth = true_bandit(prior, num_pulls)
    (found,) = rs.compare((truth, prior), ["tsde", "ucb1"], horizon=30, replications=2)
    (remark,) = found.remarks
    assert remark.startswith("arms also pay while not pulled: UCB1 plans for what pulled arms pay")
    assert str(found).endswith(remark)
    assert str(found).split("\n")[0].endswith("regret at T, ± half of the 95% interval")
    (alone,) = rs.compare((truth, prior), ["tsde"], horizon=30, replications=2)
    assert alone.remarks == ()


def test_a_comparison_says_where_the_question_looks_wrong():
    helped = rs.Arm([[0.4, 0.6], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0, 1])
    bandit = rs.RestlessBandit([helped] * 3, 1)
    prior = rs.IndependentPrior([rs.ArmPrior([helped])] * 3)
    (found,) = rs.compare((bandit, prior), ["tsde"], horizon=30, replications=2)
    assert "set passive_rewards" in found.remarks[0]
    moving = rs.gilbert_elliott(0.2, 0.8)
    plain = rs.RestlessBandit([moving] * 3, 1), rs.IndependentPrior([rs.ArmPrior([moving])] * 3)
    (fine,) = rs.compare(plain, ["tsde"], horizon=30, replications=2)
    assert fine.remarks == ()
