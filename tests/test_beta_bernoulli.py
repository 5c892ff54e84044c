"""Thompson sampling of coins: the law of its draws, and a plain Python version step by step.

Each statistical test here has a fixed seed and fails by chance with probability 1e-6 or less.
"""

import numba
import numpy as np
import pytest
from scipy import stats

import restive as rs
from learning_cases import CASES, posed, trace, true_bandit
from oracles.beta_bernoulli_naive import NaiveBetaBernoulli, Stream
from oracles.tsde_naive import LEARNER, stream_key
from restive.kernels.elementary import EDGES, HEIGHTS, TAIL, draw_normal
from restive.kernels.jit.compiler import hot_kernel
from restive.kernels.learn.learners.beta_bernoulli import draw_beta
from restive.kernels.learn.learners.memory import DRAWS, OWN, PHASES
from restive.learn.learners import learner
from restive.learn.make import make_learner

FALSE_ALARM = 1e-6
SHAPES = [
    (1, 1), (1, 2), (2, 1), (1, 60), (3, 3), (7, 2), (25, 40), (900, 1), (1e3, 2e3), (1e6, 3e5),
]  # fmt: skip


@numba.njit  # not kept on disk, where a change in what it calls would not be seen
def beta(key, place, a, b):
    return draw_beta(key, place, a, b)


def drawn(a, b, count, seed):
    """Draw numbers one after the other from a stream."""
    key, place = np.uint64(stream_key(seed, 0, LEARNER)), 0
    found = np.empty(count)
    for i in range(count):
        found[i], place = beta(key, place, float(a), float(b))
    return found


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_draws_have_the_beta_law(a, b):
    """Kolmogorov and Smirnov, and no memory from one draw to the next."""
    count = 20_000
    shares = stats.beta(a, b).cdf(drawn(a, b, count, seed=12))
    assert stats.kstest(shares, "uniform").pvalue > FALSE_ALARM
    # pairs of successive draws: 10 x 10 cells, as full as they should be
    cells, _, _ = np.histogram2d(shares[::2], shares[1::2], bins=10, range=[[0, 1], [0, 1]])
    assert stats.chisquare(cells.ravel()).pvalue > FALSE_ALARM


def test_the_kolmogorov_smirnov_test_would_notice():
    """A law that is off by little, Beta(25, 41) for Beta(25, 40), fails."""
    shares = stats.beta(25, 41).cdf(drawn(25, 40, 20_000, seed=12))
    assert stats.kstest(shares, "uniform").pvalue < FALSE_ALARM


@pytest.mark.parametrize(("a", "b"), SHAPES)
def test_draws_equal_the_naive_ones(a, b):
    key = stream_key(99, 3, LEARNER)
    naive, place = Stream(key), 0
    for _ in range(300):
        value, place = beta(np.uint64(key), place, float(a), float(b))
        assert value == pytest.approx(naive.beta(a, b), rel=1e-12)
        assert place == naive.place
    assert place >= 300 * 4  # two normal numbers and two to accept them, at least


@hot_kernel
def fill_with_normals(key, found):
    """Draw numbers one after the other; return the place of the first that was not used."""
    place = 0
    for i in range(len(found)):
        found[i], place = draw_normal(key, place)
    return place


def test_normal_draws_equal_the_naive_ones():
    """Enough of them for some 25 from the tail, the curve's edges and everything else."""
    key = stream_key(5, 1, LEARNER)
    found, naive = np.empty(100_000), Stream(key)
    place = fill_with_normals(np.uint64(key), found)
    np.testing.assert_allclose(found, [naive.normal() for _ in found], rtol=1e-12)
    assert place == naive.place
    assert (np.abs(found) > TAIL).sum() >= 5


def test_normal_draws_have_the_normal_law():
    """Kolmogorov and Smirnov over all, and in the tail alone."""
    found = np.empty(4_000_000)
    fill_with_normals(np.uint64(stream_key(6, 1, LEARNER)), found)
    assert stats.kstest(found, "norm").pvalue > FALSE_ALARM
    tail = np.abs(found)[np.abs(found) > TAIL]
    assert stats.binomtest(len(tail), len(found), 2 * stats.norm.sf(TAIL)).pvalue > FALSE_ALARM
    assert stats.kstest(stats.norm.sf(tail) / stats.norm.sf(TAIL), "uniform").pvalue > FALSE_ALARM


def test_layers_of_the_ziggurat_have_equal_areas():
    """The top one, too, which ends at the top of the curve."""
    assert HEIGHTS[-1] == 1
    areas = EDGES[1:-1] * np.diff(HEIGHTS[1:])
    np.testing.assert_allclose(areas, EDGES[0] * HEIGHTS[1], rtol=1e-9)


@pytest.mark.parametrize("case", CASES)
def test_equal_to_the_naive_one_step_by_step(case):
    prior, num_pulls = CASES[case]()
    truth = true_bandit(prior, num_pulls)
    spec = learner("beta_bernoulli")
    setup = posed(prior, num_pulls, "myopic", true_bandit=truth, learner=spec)
    arms, states = trace(setup, 300, seed=7)
    rewards = [prior.candidates(k)[0].rewards.tolist() for k in range(prior.num_arms)]
    oracle = NaiveBetaBernoulli(rewards, num_pulls, seed=7)
    agent = make_learner("beta_bernoulli", prior, num_pulls, "myopic", seed=7)
    for t in range(300):
        chosen = oracle.select()
        assert arms[t].tolist() == agent.select().tolist() == chosen
        assert agent.num_phases == t + 1
        oracle.observe(states[t].tolist())
        agent.observe(states[t])
    ints = agent._actor.memory.ints.tolist()
    assert ints[OWN:] == oracle.successes + oracle.failures
    assert ints[DRAWS] == oracle.stream.place
    assert ints[PHASES] == 300


def test_counts_of_a_short_history_worked_by_hand():
    """Binary rewards need no luck: state 1 is a success, state 0 a failure."""
    agent = make_learner("beta_bernoulli", rs.grid_prior([0.5], 3), 3)
    counts = [0] * 6  # successes of the three arms, then failures
    for states in ([0, 1, 1], [0, 0, 1], [0, 1, 1], [1, 1, 1]):
        assert agent.select().tolist() == [0, 1, 2]
        agent.observe(states)
        for k, state in enumerate(states):
            counts[k if state else 3 + k] += 1
        assert agent._actor.memory.ints[OWN:].tolist() == counts
    assert counts == [1, 3, 4, 3, 1, 0]


def test_a_reward_between_is_a_coin_with_that_chance():
    """Of 20,000 rewards of 1/4 about a quarter are successes."""
    three = rs.Arm(np.full((3, 3), 1 / 3), rewards=[0, 1, 0.25])
    prior = rs.IndependentPrior([rs.ArmPrior([three])])
    agent = make_learner("beta_bernoulli", prior, 1, "myopic", seed=5)
    for _ in range(20_000):
        agent.select()
        agent.observe([2])
    successes, failures = agent._actor.memory.ints[OWN:].tolist()
    assert successes + failures == 20_000
    assert stats.binomtest(successes, 20_000, 0.25).pvalue > FALSE_ALARM


def test_arms_are_pulled_as_often_as_their_posterior_says_that_they_are_best():
    """The chance that Beta(3, 2) is above Beta(2, 3) is 53/70."""
    agent = make_learner("beta_bernoulli", rs.grid_prior([0.5], 2), 1, seed=3)
    pulled = 0
    for _ in range(5000):
        agent._actor.memory.ints[OWN:] = [2, 1, 1, 2]  # successes, then failures
        pulled += int(agent.select()[0] == 0)
        agent.observe([0])
    assert stats.binomtest(pulled, 5000, 53 / 70).pvalue > FALSE_ALARM
