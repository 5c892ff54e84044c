"""The paper's bounds, Condition 2 and the decomposition of regret: numbers by hand and oracles."""

from itertools import product
from math import log, log2, sqrt

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES, own_rule, posed, small_joint
from oracles.whittle_naive import belief_table
from restive.measure import theory
from restive.measure.replication import replicate
from restive.measure.world import World
from restive.problem.beliefs import initial_state, settled_elapsed
from strategies import random_arm

# ---- the bounds of Section 5


@pytest.mark.parametrize(
    ("total_states", "num_pulls", "horizon", "mixing_time", "expected"),
    [
        (2, 1, 16, 2, sqrt(2 * 17 * 16)),  # 16 counters, NT = 16: log2(2) = 1
        (5, 2, 10, 1, sqrt(2 * 21 * 10)),  # T^mix = 3.32, so 5 x 4 counters, NT = 20
        (1, 3, 1, 7, sqrt(2 * 3)),  # T^mix = 0 counts as 1: one counter, log2(1 + 3) = 2
    ],
)
def test_the_corrected_episode_bound_by_hand(
    total_states, num_pulls, horizon, mixing_time, expected
):
    found = theory.episode_bound(total_states, num_pulls, horizon, mixing_time)
    assert found == pytest.approx(expected, rel=1e-14)


def test_the_printed_bounds_by_hand():
    """T = 16 and T^mix(1/4) = 1, so T^mix = 4, log(NT) = 5 log 2 and log(T^mix T) = 6 log 2."""
    episodes = theory.episode_bound(3, 2, 16, 1, as_printed=True)
    assert episodes == pytest.approx(2 * sqrt(3 * 4 * 16 * 5 * log(2)), rel=1e-14)
    assert episodes == pytest.approx(51.591522, abs=1e-6)
    regret = theory.regret_bound(3, 2, 16, 1, 0.5)
    model_error = 28 * 3 * sqrt(2 * 64 * 6 * log(2))
    assert regret == pytest.approx(2.5 * episodes + 1.5 * model_error, rel=1e-14)
    assert regret == pytest.approx(3036.1050, abs=1e-4)
    not_rounded = theory.episode_bound(5, 2, 10, 1, as_printed=True)
    assert not_rounded == pytest.approx(44.6130, abs=1e-4)


@pytest.mark.parametrize(
    ("num_arms", "num_pulls", "horizon", "bias_span", "times"),
    [(4, 2, 10_000, 0.0, 58.35), (8, 3, 2000, 12.0, 2299.5)],
)
def test_theorem_1_is_vacuous_at_the_sizes_of_the_paper(
    num_arms, num_pulls, horizon, bias_span, times
):
    """From 58 times N T, even for H = 0, to 2,300 times for the largest H of fixed arms."""
    prior = rs.grid_prior(np.arange(1, 10) / 10, num_arms)
    bounds = theory.bounds_for(prior, num_pulls, horizon, bias_span)
    assert (bounds.total_states, bounds.mixing_time) == (2 * num_arms, 7)
    assert bounds.truncation == pytest.approx(7 * log2(horizon))
    assert bounds.times_trivial == pytest.approx(times, abs=0.05)
    assert bounds.regret == pytest.approx(times * num_pulls * horizon, rel=1e-3)
    size = (2 * num_arms, num_pulls, horizon, 7)
    assert bounds.episodes == theory.episode_bound(*size)
    assert bounds.episodes_as_printed == theory.episode_bound(*size, as_printed=True)
    assert bounds.episodes < bounds.episodes_as_printed


def test_the_largest_bias_span_of_fixed_arms_in_the_paper_is_12():
    """Three channels (.1, .9), each with a span of .8 / .2."""
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.9)] * 8, 3)
    assert rs.evaluate(bandit, rs.policies.best_fixed(bandit)).bias_span == pytest.approx(12)


def test_bounds_look_at_the_support_of_the_prior_only():
    fast, slow = rs.gilbert_elliott(0.5, 0.5), rs.gilbert_elliott(0.02, 0.99)
    three = rs.Arm(np.full((3, 3), 1 / 3), rewards=[0, 0.5, 1])
    for weight in (0, 1):
        arms = [rs.ArmPrior([fast, slow], [1, weight]), rs.ArmPrior([three])]
        bounds = theory.bounds_for(rs.IndependentPrior(arms), 1, 100, 1.0)
        assert bounds.total_states == 5
        assert bounds.mixing_time == rs.theory.mixing_time(slow if weight else fast)


@pytest.mark.parametrize("horizon", [1, 2, 7, 40, 600])
@pytest.mark.parametrize("case", CASES)
def test_no_run_begins_more_episodes_than_the_corrected_bound(case, horizon):
    prior, num_pulls = CASES[case]()
    setup = posed(prior, num_pulls, "myopic", horizon)
    runs = replicate(*setup, np.array([horizon]), 100, 1, with_oracle=False)
    total_states = int(setup.task.choices.sizes.sum())
    bound = theory.episode_bound(total_states, num_pulls, horizon, setup.task.mixing_time)
    assert 1 <= runs.episodes.max() <= bound


@pytest.mark.parametrize("levels", [[0.5], [0.4, 0.6]])
def test_no_run_begins_more_episodes_than_the_corrected_bound_where_that_says_something(levels):
    """Few counters and many steps, so that the bound is below T, which is one in any case."""
    setup = posed(rs.grid_prior(levels, 2), 1, "whittle", 50_000)
    runs = replicate(*setup, np.array([50_000]), 20, 1, with_oracle=False)
    bound = theory.episode_bound(4, 1, 50_000, setup.task.mixing_time)
    assert 50 < runs.episodes.max() <= bound < 25_000


@pytest.mark.parametrize("position", range(4))
def test_sizes_must_be_whole_numbers_from_1_on(position):
    sizes = [4, 1, 16, 2]
    sizes[position] = 0
    for bound in (theory.episode_bound, lambda *size: theory.regret_bound(*size, 1.0)):
        with pytest.raises(rs.errors.ProblemError, match="must be at least"):
            bound(*sizes)


def test_the_printed_bounds_need_two_steps_and_a_span():
    with pytest.raises(rs.errors.ProblemError, match="horizon must be at least 2, got 1"):
        theory.episode_bound(4, 1, 1, 2, as_printed=True)
    with pytest.raises(rs.errors.ProblemError, match="bias_span must be at least 0, got nan"):
        theory.regret_bound(4, 1, 16, 2, float("nan"))


# ---- a joint chain by enumeration, in plain Python


def enumerated(bandit, policy, starts):
    """States reached from the starts, their number, transition matrix and expected rewards."""
    lengths = [settled_elapsed(arm) for arm in bandit.arms]
    laws = [belief_table(arm.active, arm.passive, 200) for arm in bandit.arms]

    def pooled(state):
        return rs.BeliefState(state.last_state, np.minimum(state.elapsed, lengths))

    number = {pooled(state): None for state in starts}
    number = {state: i for i, state in enumerate(number)}
    queue, rows, rewards = list(number), [], []
    for state in queue:
        pulled = policy.select(state).tolist()
        now = [laws[k][state.last_state[k], state.elapsed[k] - 1] for k in pulled]
        rewards.append(
            sum(law @ bandit.arms[k].rewards for k, law in zip(pulled, now, strict=True))
        )
        row = {}
        for seen in product(*(range(len(law)) for law in now)):
            after = pooled(state.updated(pulled, list(seen)))
            if after not in number:
                number[after] = len(queue)
                queue.append(after)
            chance = np.prod([law[s] for law, s in zip(now, seen, strict=True)])
            row[number[after]] = row.get(number[after], 0) + chance
        rows.append(row)
    matrix = np.zeros((len(queue), len(queue)))
    for i, row in enumerate(rows):
        matrix[i, list(row)] = list(row.values())
    return number, matrix, np.array(rewards), pooled


def gain_and_bias(matrix, rewards):
    """J, the same from every state, and the bias with mean 0 in each closed class."""
    limit = (np.eye(len(rewards)) + matrix) / 2
    for _ in range(40):  # squared, so that it is the power 2^40: what the long run looks like
        limit = limit @ limit
        limit /= limit.sum(axis=1, keepdims=True)
    gains = limit @ rewards
    assert np.ptp(gains) < 1e-9
    return gains[0], np.linalg.solve(np.eye(len(rewards)) - matrix + limit, rewards - gains)


# ---- Condition 2


def test_the_discounted_span_of_one_channel_is_its_closed_form():
    """Always pulled: v(good) - v(bad) = rho / (1 - beta rho)."""
    for p01, p11 in [(0.3, 0.7), (0.8, 0.3)]:
        bandit = rs.RestlessBandit([rs.gilbert_elliott(p01, p11)], 1)
        rho = p11 - p01
        betas = np.array([0.1, 0.5, 0.9, 0.999])
        spans = theory.discounted_spans(bandit, rs.whittle(bandit), betas)
        assert spans == pytest.approx(abs(rho) / (1 - betas * rho), abs=1e-9)


@pytest.mark.parametrize("name", ["whittle", "myopic"])
def test_discounted_spans_are_those_of_a_dense_solution(name):
    rng = np.random.default_rng(4)
    bandit = rs.RestlessBandit([random_arm(rng, size, spread=0.85) for size in (2, 3)], 1)
    policy = rs.registry.policy_mapping(name)(bandit)
    starts = [initial_state(bandit), rs.BeliefState([0, 1], [5, 40])]
    for chosen in (starts[:1], starts):
        _, matrix, rewards, _ = enumerated(bandit, policy, chosen)
        for beta in (0.3, 0.95, 0.9999):
            values = np.linalg.solve(np.eye(len(rewards)) - beta * matrix, rewards)
            found = theory.discounted_spans(bandit, policy, [beta], starts=chosen)
            assert found == pytest.approx([np.ptp(values)], abs=1e-8)


@pytest.mark.parametrize("name", ["whittle", "myopic"])
def test_discounted_spans_tend_to_the_span_of_the_bias(paper_bandit, name):
    policy = rs.registry.policy_mapping(name)(paper_bandit)
    limit = rs.evaluate(paper_bandit, policy).bias_span
    away = np.array([1e-2, 1e-4, 1e-6])
    spans = theory.discounted_spans(paper_bandit, policy, 1 - away)
    assert (np.abs(spans - limit) < away).all()
    assert (np.abs(spans - limit) > away / 10).all()


@pytest.fixture(scope="module")
def two_classes():
    """Return a bandit on which the myopic J depends on how old arm 2 is, and two such starts."""
    levels = [(0.6, 0.6), (0.5, 0.9), (0.9, 0.2), (0.6, 0.6)]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in levels], 2)
    return bandit, [rs.BeliefState([1] * 4, [1, 1, age, 1]) for age in (1, 1000)]


def test_discounted_spans_grow_without_bound_where_the_average_depends_on_the_start(two_classes):
    bandit, starts = two_classes
    policy = rs.myopic(bandit)
    gains = [rs.evaluate(bandit, policy, start=start).average_reward for start in starts]
    away = np.array([1e-1, 1e-2, 1e-3])
    both = theory.discounted_spans(bandit, policy, 1 - away, starts=starts)
    assert both * away == pytest.approx(np.full(3, gains[0] - gains[1]), abs=1.2 * away[0])
    assert both[2] * away[2] == pytest.approx(gains[0] - gains[1], abs=1e-3)
    assert (both[1:] > 6 * both[:-1]).all()
    for start in starts:  # each class alone is as the paper wants it
        assert theory.discounted_spans(bandit, policy, 1 - away, starts=[start]).max() < 1


def test_discounted_spans_say_what_is_wrong(paper_bandit, two_classes):
    policy = rs.whittle(paper_bandit)
    for discounts in ([1.0], [0.5, 0], [-1], 2):
        with pytest.raises(rs.errors.ProblemError, match="numbers between 0 and 1"):
            theory.discounted_spans(paper_bandit, policy, discounts)
    with pytest.raises(rs.errors.ProblemError, match="the state is for 2 arms"):
        theory.discounted_spans(
            paper_bandit, policy, [0.5], starts=[rs.BeliefState([1, 1], [1, 1])]
        )
    with pytest.raises(rs.errors.ProblemError, match="the policy is for 4 arms"):
        theory.discounted_spans(rs.RestlessBandit(paper_bandit.arms[:3], 2), policy, [0.5])
    bandit, starts = two_classes
    with pytest.raises(rs.errors.TooLargeError, match="or J depends on the start"):
        theory.discounted_spans(bandit, rs.myopic(bandit), [1 - 1e-6], starts=starts)


# ---- the decomposition of Section 5.1


def oldest_first(bandit):
    """Own mapping, no index rule: pull the arms that were not seen for longest."""

    class Oldest:
        def select(self, state):
            return np.sort(np.argsort(-state.elapsed, kind="stable")[: bandit.num_pulls])

    if not isinstance(bandit, rs.RestlessBandit):
        raise TypeError("a mapping takes a bandit")
    return Oldest()


def controlled_prior():
    """K=2: three states and two states, pulled and not pulled differ."""
    rng = np.random.default_rng(6)
    arms = []
    for size in (3, 2):
        candidates = [random_arm(rng, size, spread=0.6) for _ in range(3)]
        rewards = candidates[0].rewards
        alike = [rs.Arm(arm.active, arm.passive, rewards) for arm in candidates]
        arms.append(rs.ArmPrior(alike, [2, 1, 3]))
    return rs.IndependentPrior(arms)


DECOMPOSED = {
    "K=2, whittle": (rs.grid_prior([0.2, 0.8], 2), 1, "whittle"),
    "K=2, myopic, slow": (rs.grid_prior([0.1, 0.6], 2), 1, "myopic"),
    "K=3, whittle": (rs.grid_prior([0.3, 0.7], 3), 2, "whittle"),
    "K=3, best fixed": (rs.grid_prior([0.3, 0.7], 3), 1, "best_fixed"),
    "optimal": (controlled_prior(), 1, "optimal"),
    "own rule": (controlled_prior(), 1, own_rule),
    "own mapping": (controlled_prior(), 1, oldest_first),
    "joint": (*small_joint(), "whittle"),
}
HORIZON, REPLICATIONS, SEED = 150, 40, 3


@pytest.fixture(scope="module", params=DECOMPOSED)
def case(request):
    """Return a prior, pulls, a mapping and what its runs decompose into."""
    prior, num_pulls, mapping = DECOMPOSED[request.param]
    found = theory.decompose_regret(
        prior, num_pulls, mapping, HORIZON, replications=REPLICATIONS, seed=SEED
    )
    return prior, num_pulls, mapping, found


def parts_of(found):
    return np.array(
        [
            found.sampling_regret,
            found.switching_regret,
            found.transition_regret,
            found.reward_regret,
        ]
    )


def test_the_four_parts_sum_to_the_regret_of_each_replication(case):
    *_, found = case
    assert found.regret.shape == (REPLICATIONS,)
    assert np.abs(parts_of(found).sum(axis=0) - found.regret).max() < 1e-8
    assert np.abs(parts_of(found)).max(axis=1).min() > 0.01  # none of them is idle


def test_the_bellman_equation_holds_in_every_state_of_every_system(case):
    *_, found = case
    assert found.bellman_residual < 1e-9


@pytest.mark.parametrize("name", ["K=2, whittle", "own mapping", "joint"])
def test_what_is_used_as_average_and_bias_solves_an_enumerated_bellman_equation(name, monkeypatch):
    """In every state that was solved, all systems: transitions and rewards from plain Python."""
    used = []
    solve = theory._bellman

    def remembered(joint, policy, mapping):
        used.append((joint, *solve(joint, policy, mapping)))
        return used[-1][1:]

    monkeypatch.setattr(theory, "_bellman", remembered)
    prior, num_pulls, mapping = DECOMPOSED[name]
    found = theory.decompose_regret(prior, num_pulls, mapping, 30, replications=5, seed=SEED)
    assert len(used) == len(found.systems)
    for joint, gain, bias, _ in used:
        states = [rs.BeliefState(*pair) for pair in zip(*joint.unpacked(0, len(bias)), strict=True)]
        number, matrix, rewards, _ = enumerated(joint.bandit, made(mapping, joint.bandit), states)
        assert list(number) == states  # closed: no state is missing
        assert np.abs(rewards + matrix @ bias - bias - gain).max() < 1e-9


def test_regret_and_episodes_are_those_of_the_regret_curve(case):
    prior, num_pulls, mapping, found = case
    curve = rs.bayesian_regret(
        prior, num_pulls, mapping, HORIZON, replications=REPLICATIONS, seed=SEED, baseline="exact"
    )
    assert found.regret == pytest.approx(curve.samples[:, -1], abs=1e-7)
    assert found.num_episodes.mean() == pytest.approx(curve.num_episodes[-1], rel=1e-14)


def test_switching_regret_is_at_most_the_span_times_the_episodes(case):
    """Lemma 5, in each replication."""
    *_, found = case
    bound = found.bias_span * found.num_episodes
    assert (np.abs(found.switching_regret) <= bound + 1e-9).all()


def test_sampling_regret_and_episodes_keep_to_their_bounds(case):
    """Lemma 4 bounds a mean: 6 standard errors below it, false alarms 1e-6 a case (t, 39)."""
    _, num_pulls, _, found = case
    stderr = found.sampling_regret.std(ddof=1) / sqrt(REPLICATIONS)
    slack = num_pulls * found.num_episodes.mean() - found.sampling_regret.mean()
    assert slack > 6 * stderr
    assert found.num_episodes.max() <= found.bounds.episodes
    assert found.num_episodes.max() <= found.bounds.episodes_as_printed


def test_averages_and_spans_are_those_of_each_system_in_the_support(case):
    prior, num_pulls, mapping, found = case
    if isinstance(prior, rs.JointPrior):
        assert len(found.systems) == np.count_nonzero(prior.weights)
    else:
        assert len(found.systems) == np.prod([len(arm.candidates) for arm in prior.arms])
    for bandit, gain, span in zip(
        found.systems, found.average_rewards, found.bias_spans, strict=True
    ):
        value = rs.evaluate(bandit, made(mapping, bandit))
        assert gain == pytest.approx(value.average_reward, abs=1e-9)
        assert span >= value.bias_span - 1e-8
    assert found.bias_span == found.bias_spans.max() == found.bounds.bias_span
    assert found.bounds == theory.bounds_for(prior, num_pulls, HORIZON, found.bias_span)


def made(mapping, bandit):
    """Return the policy of a system."""
    if mapping is own_rule:
        return rs.policies.index_policy(bandit, own_rule)
    return (
        rs.registry.policy_mapping(mapping)(bandit) if isinstance(mapping, str) else mapping(bandit)
    )


@pytest.mark.parametrize("replication", [0, 17])
@pytest.mark.parametrize("name", ["K=2, whittle", "own mapping", "joint"])
def test_each_part_is_that_of_a_dense_solution_step_by_step(name, replication):
    """Every J and v from a chain enumerated in Python, every sum from its definition."""
    prior, num_pulls, mapping = DECOMPOSED[name]
    horizon = 60
    found = theory.decompose_regret(
        prior, num_pulls, mapping, horizon, replications=replication + 1, seed=SEED
    )
    setup = posed(prior, num_pulls, mapping, horizon)
    runs = replicate(*setup, np.array([horizon]), replication + 1, SEED, with_oracle=False)
    truth = setup.task.bandit_of(runs.true_kinds[replication])
    world = World(truth, seed=SEED, replication=replication)
    agent = rs.types.Agent(*setup, SEED, replication)
    metas, played, rewards = [world.belief_state], [], 0.0
    for _ in range(horizon):
        arms = agent.select()
        played.append((agent.sampled_bandit, arms.tolist()))
        states, _, expected = world.pull(arms)
        rewards += expected
        agent.observe(states)
        metas.append(world.belief_state)
    solved = {}
    for bandit in {truth, *(bandit for bandit, _ in played)}:
        number, matrix, reward, pooled = enumerated(bandit, made(mapping, bandit), metas)
        gain, bias = gain_and_bias(matrix, reward)
        solved[bandit] = gain, bias, matrix @ bias, reward, number, pooled
    worth = solved[truth][0] * horizon
    parts = np.array([worth, 0, 0, -rewards])
    for (bandit, arms), now, then in zip(played, metas[:-1], metas[1:], strict=True):
        gain, bias, ahead, reward, number, pooled = solved[bandit]
        assert made(mapping, bandit).select(now).tolist() == arms
        m, after = number[pooled(now)], number[pooled(then)]
        parts += [-gain, bias[after] - bias[m], ahead[m] - bias[after], reward[m]]
    assert parts_of(found)[:, replication] == pytest.approx(parts, abs=1e-7)
    assert found.regret[replication] == pytest.approx(worth - rewards, abs=1e-7)


def test_a_learner_that_knows_the_system_loses_by_luck_only():
    """With one system R_0 = R_3 = 0, R_1 telescopes over all steps, and R_2 has mean 0.

    4.5 standard errors of 200 replications: false alarms, 1.2e-5 (two-sided, t, 199).
    """
    arms = [rs.gilbert_elliott(0.2, 0.7), rs.gilbert_elliott(0.6, 0.3)]
    bandit = rs.RestlessBandit(arms, 1)
    found = theory.decompose_regret(
        rs.JointPrior([bandit]), 1, "whittle", 100, replications=200, seed=5
    )
    assert np.abs(found.sampling_regret).max() < 1e-9
    assert np.abs(found.reward_regret).max() < 1e-9
    assert np.abs(found.switching_regret).max() <= found.bias_span + 1e-9
    stderr = found.transition_regret.std(ddof=1) / sqrt(200)
    assert 0.01 < stderr < 1
    assert abs(found.transition_regret.mean()) < 4.5 * stderr


def test_ties_are_decided_as_the_learner_does():
    """Indices 0.75e-14 apart tie; a third arm between two others makes them equal, by the prior."""
    indices = {0.2: 1.0, 0.5: 1 + 1.5e-14, 0.8: 1 + 0.75e-14}

    def hairline(arm):
        return np.full((2, 1), indices[arm.active[0, 1]])

    first = rs.ArmPrior([rs.gilbert_elliott(0.2, 0.3), rs.gilbert_elliott(0.8, 0.9)])
    prior = rs.IndependentPrior([first, rs.ArmPrior([rs.gilbert_elliott(0.5, 0.6)])])
    found = theory.decompose_regret(prior, 1, hairline, 50, replications=20)
    assert np.abs(parts_of(found).sum(axis=0) - found.regret).max() < 1e-8
    alone = [
        rs.evaluate(s, rs.policies.index_policy(s, hairline)).average_reward for s in found.systems
    ]
    assert found.average_rewards == pytest.approx([2 / 9, 8 / 9], abs=1e-9)  # arm 0, always
    assert alone == pytest.approx([5 / 9, 8 / 9], abs=1e-9)


def test_the_span_of_one_channel_is_its_closed_form():
    """One arm, always pulled: rho / (1 - rho) of the channel that remembers best."""
    channels = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.8)]
    prior = rs.IndependentPrior([rs.ArmPrior(channels)])
    found = theory.decompose_regret(prior, 1, "myopic", 20, replications=3)
    assert sorted(found.bias_spans) == pytest.approx([0.4 / 0.6, 0.6 / 0.4], abs=1e-9)
    assert found.bias_span == pytest.approx(1.5, abs=1e-9)


def test_comparisons_are_means_beside_bounds():
    prior, num_pulls, mapping = DECOMPOSED["K=3, whittle"]
    found = theory.decompose_regret(
        prior, num_pulls, mapping, HORIZON, replications=REPLICATIONS, seed=SEED
    )
    rows = {row.name: row for row in found.comparisons}
    assert len(rows) == len(found.comparisons) == 5
    row = rows["R_0, at most N E M_T"]
    assert row.measured == pytest.approx(found.sampling_regret.sum() / REPLICATIONS)
    assert row.stderr**2 == pytest.approx(
        ((found.sampling_regret - row.measured) ** 2).sum() / REPLICATIONS / (REPLICATIONS - 1)
    )
    assert row.bound == pytest.approx(2 * found.num_episodes.sum() / REPLICATIONS)
    assert rows["R_1, at most H E M_T"].bound == pytest.approx(row.bound / 2 * found.bias_span)
    assert rows["R_1, at most H E M_T"].measured == pytest.approx(found.switching_regret.mean())
    assert rows["regret"].bound == found.bounds.regret
    assert rows["regret"].measured == pytest.approx(found.regret.mean())
    assert rows["episodes M_T"].bound == found.bounds.episodes
    assert rows["episodes M_T, as printed"].bound == found.bounds.episodes_as_printed
    for row in found.comparisons:
        assert row.ratio == pytest.approx(row.measured / row.bound)
        assert row.ratio < 1


def test_comparisons_where_there_is_nothing_to_compare():
    """One replication has no standard error; equal rewards have no bias, so that H = 0."""
    arms = [rs.ArmPrior([rs.gilbert_elliott(0.3, 0.7, rewards=[0.5, 0.5])])] * 2
    found = theory.decompose_regret(rs.IndependentPrior(arms), 1, "myopic", 10, replications=1)
    assert found.bias_span == 0
    rows = {row.name: row for row in found.comparisons}
    assert np.isnan(rows["R_1, at most H E M_T"].ratio)
    assert all(np.isnan(row.stderr) for row in found.comparisons)
    assert rows["regret"].measured == pytest.approx(0, abs=1e-12)


def test_a_mapping_that_violates_assumption_2_is_refused_by_name(two_classes):
    bandit, _ = two_classes
    other = rs.RestlessBandit([rs.gilbert_elliott(0.5, 0.5)] * 4, 2)
    prior = rs.JointPrior([other, bandit])
    with pytest.raises(rs.errors.AssumptionError) as raised:
        theory.decompose_regret(prior, 2, "myopic", 20, replications=2)
    message = str(raised.value)
    assert "J of 'myopic' depends on the start, 1.44444 to 1.55033" in message
    assert "Assumption 2" in message
    assert "use another policy mapping" in message
    assert repr(bandit) in message
    assert theory.decompose_regret(prior, 2, "whittle", 20, replications=2).bias_span < 10


def test_a_mapping_that_tells_settled_ages_apart_is_refused():
    """Arm 1 is pulled at age 70; from 54 on its ages are one, so that no chain has that choice."""

    def patient(bandit):
        class Patient:
            def select(self, state):
                return np.array([int(state.elapsed[1] == 70)])

        return Patient()

    prior = rs.grid_prior([0.2, 0.8], 2)
    assert theory.decompose_regret(prior, 1, patient, 60, replications=2).bias_span > 1
    with pytest.raises(
        rs.errors.ProblemError, match="'patient' does not choose by system and meta-state"
    ):
        theory.decompose_regret(prior, 1, patient, 80, replications=2)


def test_what_is_too_large_or_too_short_is_said():
    with pytest.raises(rs.errors.TooLargeError, match="more than 1,000 systems"):
        theory.decompose_regret(rs.grid_prior(np.arange(1, 10) / 10, 8), 3)
    with pytest.raises(rs.errors.TooLargeError, match="too many arms or joint states"):
        theory.decompose_regret(rs.grid_prior([0.4], 9), 1, "whittle", 5, replications=1)
    with pytest.raises(rs.errors.ProblemError, match="horizon must be at least 2"):
        theory.decompose_regret(rs.grid_prior([0.4], 2), 1, "whittle", 1, replications=1)
    with pytest.raises(rs.errors.ProblemError, match="replications must be at least 1"):
        theory.decompose_regret(rs.grid_prior([0.4], 2), 1, "whittle", 5, replications=0)
