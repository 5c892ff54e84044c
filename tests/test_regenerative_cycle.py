"""Regenerative cycles: histories worked by hand, and plain Python versions step by step."""

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES, controlled, posed, trace, true_bandit
from oracles.regenerative_cycle_naive import NaiveRCAM, single_play
from restive.kernels.learn.learners import regenerative_cycle as kernels
from restive.learn.learners import learner
from restive.learn.make import make_learner
from restive.measure.replication import replicate


def rewards_of(prior):
    return [prior.candidates(k)[0].rewards.tolist() for k in range(prior.num_arms)]


def setup_of(prior, num_pulls, truth, **options):
    spec = learner("regenerative_cycle", **options)
    return posed(prior, num_pulls, "myopic", true_bandit=truth, learner=spec)


def test_a_history_of_one_pull_worked_by_hand():
    agent = make_learner("regenerative_cycle", rs.grid_prior([0.5], 2), 1)
    history = [
        (0, 1, 1),  # its regenerative state is 1; the cycle begins
        (0, 0, 1),
        (0, 1, 1),  # back: the first block ends; the cycle was 1, 0
        (1, 0, 2),  # its regenerative state is 0; the cycle begins
        (1, 0, 2),  # back: the cycle was 0
        (0, 0, 3),  # 1/2 + sqrt(2 ln 3 / 2) = 1.548 against 0 + sqrt(2 ln 3) = 1.482
        (0, 0, 3),  # still seeking state 1; this does not count
        (0, 1, 3),  # found
        (0, 1, 3),  # back: the cycle was 1
        (1, 1, 4),  # 2/3 + sqrt(2 ln 4 / 3) = 1.628 against 0 + sqrt(2 ln 4) = 1.665
        (1, 0, 4),  # found
        (1, 1, 4),
        (1, 1, 4),
        (1, 0, 4),  # back: the cycle was 0, 1, 1
        (0, 1, 5),  # 2/3 + sqrt(2 ln 7 / 3) = 1.806 against 2/4 + sqrt(2 ln 7 / 4) = 1.486
    ]
    for arm, state, blocks in history:
        assert agent.select().tolist() == [arm]
        assert agent.num_phases == blocks
        agent.observe([state])
    memory = agent._actor.memory
    assert memory.ints[kernels.CYCLE_STEPS] == 8
    assert memory.ints[kernels.ARMS :].tolist() == [2, kernels.CYCLE, 4, 1, kernels.NO_BLOCK, 4]
    assert memory.floats.tolist() == [3, 2, 2]  # rewards in cycles, and L


def test_a_history_of_two_pulls_worked_by_hand():
    agent = make_learner("regenerative_cycle", rs.grid_prior([0.5], 3), 2)
    history = [
        ([0, 1], [1, 0], 2, 1),  # the first two arms begin, with states 1 and 0
        ([0, 1], [1, 1], 2, 2),  # arm 0 is back at once
        ([1, 2], [1, 0], 3, 3),  # its place is for arm 2, which was never pulled
        ([1, 2], [0, 0], 3, 3),  # both are back, so nobody is in a cycle
        # 1 + sqrt(2 ln 3) = 2.48, 2/3 + sqrt(2/3 ln 3) = 1.52, 0 + sqrt(2 ln 3) = 1.48
        ([0, 1], [0, 1], 5, 3),  # both are seeking
        ([0, 1], [1, 1], 5, 4),  # arm 0 has found its state
        ([0, 1], [1, 1], 5, 4),  # and is back; arm 1 is still seeking and keeps its place
        # 2/2 + sqrt(2 ln 4 / 2) = 2.18 against 0 + sqrt(2 ln 4) = 1.67
        ([0, 1], [0, 0], 6, 5),
    ]
    for arms, states, blocks, steps in history:
        assert agent.select().tolist() == arms
        assert agent.num_phases == blocks
        agent.observe(states)
        assert agent._actor.memory.ints[kernels.CYCLE_STEPS] == steps


@pytest.mark.parametrize("exploration", [0, 0.3, 2, 500])
@pytest.mark.parametrize("case", CASES)
def test_equal_to_the_naive_one_step_by_step(case, exploration):
    prior, num_pulls = CASES[case]()
    truth = true_bandit(prior, num_pulls)
    setup = setup_of(prior, num_pulls, truth, exploration=exploration)
    arms, states = trace(setup, 160, seed=7)
    oracle = NaiveRCAM(rewards_of(prior), num_pulls, exploration)
    given = {"exploration": exploration}
    agent = make_learner("regenerative_cycle", prior, num_pulls, "myopic", **given)
    for t in range(160):
        chosen = oracle.select()
        assert arms[t].tolist() == agent.select().tolist() == chosen
        assert agent.num_phases == oracle.num_blocks
        oracle.observe(states[t].tolist())
        agent.observe(states[t])
    assert agent.num_phases > prior.num_arms


@pytest.mark.parametrize("exploration", [0.3, 2, 500])
@pytest.mark.parametrize("case", CASES)
def test_with_one_pull_it_is_rca(case, exploration):
    prior, _ = CASES[case]()
    truth = true_bandit(prior, 1)
    if isinstance(prior, rs.JointPrior):
        bandits = [rs.RestlessBandit(bandit.arms, 1) for bandit in prior.bandits]
        prior = rs.JointPrior(bandits, prior.weights)
    arms, states = trace(setup_of(prior, 1, truth, exploration=exploration), 2000, seed=8)
    oracle = single_play(rewards_of(prior), exploration)
    chosen = next(oracle)
    for arm, state in zip(arms[:, 0].tolist(), states[:, 0].tolist(), strict=True):
        assert arm == chosen
        chosen = oracle.send(state)
    assert len(np.unique(arms)) == prior.num_arms


def test_cycles_estimate_the_reward_of_an_arm_that_is_never_left():
    """Arms move otherwise while they are not pulled, and yet the means are those of `active`."""
    prior, num_pulls = controlled()
    truth = true_bandit(prior, num_pulls)
    setup = setup_of(prior, num_pulls, truth, exploration=200)  # so that all arms are pulled
    arms, states = trace(setup, 30_000, seed=1)
    agent = make_learner("regenerative_cycle", prior, num_pulls, "myopic", exploration=200)
    for t in range(30_000):
        agent.select()
        agent.observe(states[t])
    memory = agent._actor.memory
    for k, arm in enumerate(truth.arms):
        assert (arms == k).sum() > 3000
        length = memory.ints[kernels.ARMS + 3 * k + kernels.LENGTH]
        low, high = 0.1, 0.8
        mean = low + (high - low) * memory.floats[k] / length
        assert mean == pytest.approx(rs.theory.stationary(arm.active) @ arm.rewards, abs=0.03)


def test_it_settles_on_the_best_fixed_arms():
    """Weak regret: of 30 runs each spends nearly all late steps on the two best arms."""
    levels = [(0.2, 0.6), (0.6, 0.8), (0.3, 0.3), (0.7, 0.9)]  # good 1/3, 3/4, 3/10, 7/8 of time
    arms = [rs.gilbert_elliott(*pair) for pair in levels]
    prior = rs.IndependentPrior([rs.ArmPrior([arm]) for arm in arms])
    bandit = rs.RestlessBandit(arms, 2)
    done = replicate(*setup_of(prior, 2, bandit), np.array([10_000, 20_000]), 30, with_oracle=False)
    late = np.diff(done.expected, axis=1)[:, 0] / 10_000
    best = 3 / 4 + 7 / 8
    assert (late > 0.97 * best).all()
    assert (np.diff(done.episodes, axis=1) > 1000).all()  # blocks


def test_a_state_that_does_not_come_back_holds_the_arm():
    """As the class says: the paper's chains are irreducible."""
    agent = make_learner("regenerative_cycle", rs.grid_prior([0.5], 2), 1)
    agent.select()
    agent.observe([1])
    for _ in range(200):
        assert agent.select().tolist() == [0]
        agent.observe([0])
    assert agent.num_phases == 1


@pytest.mark.parametrize("exploration", [-1, 2e12, float("nan"), "2", True, None])
def test_an_exploration_that_cannot_be(exploration):
    with pytest.raises(
        rs.errors.ProblemError, match="regenerative_cycle: exploration must be a number"
    ):
        learner("regenerative_cycle", exploration=exploration)
