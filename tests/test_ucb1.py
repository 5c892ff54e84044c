"""UCB1: a history worked by hand, and a plain Python version step by step."""

import numpy as np
import pytest

import restive as rs
from learning_cases import CASES, controlled, posed, trace, true_bandit
from oracles.ucb1_naive import NaiveUCB1
from restive.learn.learners import learner
from restive.learn.make import make_learner


def rewards_of(prior):
    return [prior.candidates(k)[0].rewards.tolist() for k in range(prior.num_arms)]


def test_a_history_worked_by_hand():
    agent = make_learner("ucb1", rs.grid_prior([0.5], 2), 1)
    history = [
        (0, 0),  # never pulled, the lowest
        (1, 1),  # never pulled
        (1, 1),  # 0 + sqrt(2 ln 3) = 1.48 against 1 + 1.48
        (1, 0),  # sqrt(2 ln 4) = 1.67 against 1 + sqrt(ln 4) = 2.18
        (0, 1),  # sqrt(2 ln 5) = 1.79 against 2/3 + sqrt(2/3 ln 5) = 1.70
        (0, 1),  # 1/2 + sqrt(ln 6) = 1.84 against 2/3 + sqrt(2/3 ln 6) = 1.76
        (0, 0),  # 2/3 + sqrt(2/3 ln 7) = 1.81 against the same: the lowest
        (1, 1),  # 1/2 + sqrt(1/2 ln 8) = 1.52 against 2/3 + sqrt(2/3 ln 8) = 1.84
    ]
    for arm, state in history:
        assert agent.select().tolist() == [arm]
        agent.observe([state])


def test_a_history_with_two_pulls_worked_by_hand():
    arms = [rs.ArmPrior([rs.gilbert_elliott(0.5, 0.5)])] * 3
    agent = make_learner("ucb1", rs.IndependentPrior(arms), 2)
    history = [
        ([0, 1], [0, 1]),  # never pulled
        ([1, 2], [0, 1]),  # sqrt(2 ln 2) = 1.18, 1 + 1.18, never pulled
        ([1, 2], [0, 0]),  # sqrt(2 ln 3) = 1.48, 1/2 + sqrt(ln 3) = 1.55, 1 + 1.48
        ([0, 2], [1, 1]),  # 1.67, 1/3 + sqrt(2/3 ln 4) = 1.29, 1/2 + sqrt(ln 4) = 1.68
    ]
    for chosen, states in history:
        assert agent.select().tolist() == chosen
        agent.observe(states)


@pytest.mark.parametrize("case", CASES)
def test_equal_to_the_naive_one_step_by_step(case):
    prior, num_pulls = CASES[case]()
    truth = true_bandit(prior, num_pulls)
    setup = posed(prior, num_pulls, "myopic", true_bandit=truth, learner=learner("ucb1"))
    arms, states = trace(setup, 600, seed=7)
    oracle = NaiveUCB1(rewards_of(prior), num_pulls)
    agent = make_learner("ucb1", prior, num_pulls, "myopic")
    for t in range(600):
        chosen = oracle.select()
        assert arms[t].tolist() == agent.select().tolist() == chosen
        oracle.observe(states[t].tolist())
        agent.observe(states[t])
    assert len({tuple(row) for row in arms.tolist()}) > 1


def test_rewards_are_scaled():
    """Rewards in other units, r / 2 + 0.1, lead to the same decisions."""
    prior, num_pulls = controlled()
    other = [
        rs.ArmPrior([rs.Arm(arm.active, arm.passive, arm.rewards / 2 + 0.1) for arm in candidates])
        for candidates in map(prior.candidates, range(prior.num_arms))
    ]
    given = (prior, rs.IndependentPrior(other))
    agents = [make_learner("ucb1", each, num_pulls, "myopic") for each in given]
    rng = np.random.default_rng(3)
    for _ in range(300):
        first, second = (agent.select().tolist() for agent in agents)
        assert first == second
        states = rng.integers(0, 2, num_pulls)
        for agent in agents:
            agent.observe(states)


def test_arms_that_all_pay_the_same_are_pulled_in_turn():
    flat = rs.ArmPrior([rs.Arm([[0.5, 0.5], [0.5, 0.5]], rewards=[0.3, 0.3])])
    agent = make_learner("ucb1", rs.IndependentPrior([flat] * 3), 1, "myopic")
    pulled = []
    for _ in range(30):
        pulled.append(int(agent.select()[0]))
        agent.observe([0])
    assert np.bincount(pulled).tolist() == [10, 10, 10]
