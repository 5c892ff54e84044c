"""Learners that average the index: `mean_index` and `tsde` with several draws.

The oracle multiplies likelihoods of candidates one by one and averages index tables by numpy.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

import restive as rs
from restive.errors import ProblemError

LEVELS = [0.1, 0.35, 0.6, 0.9]


def naive_means(prior, policy_mapping, last_state, elapsed, seen):
    """Mean index [K] over the posterior: `seen` lists (arm, last state, age, state)."""
    found = []
    for k in range(prior.num_arms):
        arm = prior.arms[k]
        weights = np.array(arm.weights)
        for who, state, age, then in seen:
            if who == k:
                chances = []
                for candidate in arm.candidates:
                    law = candidate.active[state] @ np.linalg.matrix_power(
                        candidate.passive, age - 1
                    )
                    chances.append(law[then])
                weights = weights * chances
                weights /= weights.sum()
        indices = []
        for candidate in arm.candidates:
            policy = policy_mapping(rs.RestlessBandit([candidate], 1))
            indices.append(policy.index(rs.BeliefState([last_state[k]], [elapsed[k]]))[0])
        found.append(weights @ np.array(indices))
    return np.array(found)


def top(values, count):
    order = np.lexsort((np.arange(len(values)), -np.round(values, 10)))
    return np.sort(order[:count])


def controlled_prior(num_arms, seed=3, count=12):
    rng = np.random.default_rng(seed)
    arms = []
    for _ in range(count):
        active, passive = rng.dirichlet(np.ones(2), size=(2, 2))
        arms.append(rs.Arm(active, passive, [0, 1], [0, 1]))
    return rs.IndependentPrior([rs.ArmPrior(arms)] * num_arms)


@pytest.mark.parametrize("mapping", ["whittle", "myopic"])
@pytest.mark.parametrize("kind", ["channels", "controlled"])
def test_mean_index_is_the_naive_one(kind, mapping):
    prior = rs.grid_prior(LEVELS, 5) if kind == "channels" else controlled_prior(5)
    agent = rs.make_learner("mean_index", prior, 2, mapping, 60, seed=1)
    make = {"whittle": rs.whittle, "myopic": rs.myopic}[mapping]
    rng, seen = np.random.default_rng(5), []
    for _ in range(12):
        state = agent.belief_state
        arms = agent.select()
        means = naive_means(prior, make, state.last_state, state.elapsed, seen)
        np.testing.assert_allclose(agent.index(), means, rtol=1e-9, atol=1e-12)
        assert arms.tolist() == top(means, 2).tolist()
        states = rng.integers(2, size=2)
        seen += [
            (k, int(state.last_state[k]), int(state.elapsed[k]), int(s))
            for k, s in zip(arms.tolist(), states, strict=True)
        ]
        agent.observe(states)


def drawn_means(agent, draws):
    """Mean index [K] over what an agent has drawn, by the tables of its candidates."""
    weights, slots = agent._actor.posterior.weights, agent._actor.posterior.slots
    drawn, state = weights.drawn.reshape(draws, -1), agent.belief_state
    means = []
    for k in range(agent.task.num_arms):
        own = []
        for slot in drawn[:, slots.groups[k]]:
            candidate = agent.prior.candidates(k)[slot]
            policy = rs.whittle(rs.RestlessBandit([candidate], 1))
            own.append(policy.index(rs.BeliefState([state.last_state[k]], [state.elapsed[k]]))[0])
        means.append(np.mean(own))
    return np.array(means)


@pytest.mark.parametrize("draws", [2, 7])
def test_draws_are_averaged(draws):
    prior = rs.grid_prior(LEVELS, 6)
    agent = rs.make_learner("tsde", prior, 2, horizon=60, seed=2, draws=draws)
    rng = np.random.default_rng(5)
    for _ in range(30):
        arms = agent.select()
        means = drawn_means(agent, draws)
        np.testing.assert_allclose(agent.index(), means, rtol=1e-12)
        assert arms.tolist() == top(means, 2).tolist()
        agent.observe(rng.integers(2, size=2))


def test_draws_are_from_the_posterior():
    # 16 candidates, 4,000 draws of each of 6 arms: chi^2 with 15 degrees each; the largest of six
    # is above 44.3 in 1 of 1,700 tries
    agent = rs.make_learner("tsde", rs.grid_prior(LEVELS, 6), 2, horizon=60, seed=4, draws=4000)
    rng = np.random.default_rng(5)
    for _ in range(8):
        agent.select()
        agent.observe(rng.integers(2, size=2))
    agent.skip(8)
    agent.select()
    assert agent.episode.length == 0 or not agent._actor.posterior.weights.changed.any()
    drawn = agent._actor.posterior.weights.drawn.reshape(4000, -1)
    for k in range(6):
        expected = 4000 * agent.posterior(k).weights
        counts = np.bincount(drawn[:, k], minlength=16)
        held = expected > 1e-3
        assert ((counts - expected)[held] ** 2 / expected[held]).sum() < 44.3


def test_one_draw_is_tsde():
    prior = rs.grid_prior(LEVELS, 4)
    one = rs.make_learner("tsde", prior, 2, horizon=80, seed=9, draws=1)
    plain = rs.TSDE(prior, 2, horizon=80, seed=9)
    rng = np.random.default_rng(1)
    for _ in range(80):
        assert one.select().tolist() == plain.select().tolist()
        states = rng.integers(2, size=2)
        one.observe(states)
        plain.observe(states)
    assert one.snapshot()["posterior"] == plain.snapshot()["posterior"]


LEARNERS = [("mean_index", {}), ("tsde", {"draws": 5})]
PRIORS = {
    "finite": lambda: rs.grid_prior(LEVELS, 5),
    "channels": lambda: rs.beta_prior(5),
    "controlled": lambda: rs.IndependentPrior(
        [rs.DirichletArmPrior(np.ones((2, 2)), np.ones((2, 2)), [0, 1], [0, 1])] * 5
    ),
    "mixed": lambda: rs.IndependentPrior(
        [*rs.beta_prior(2).arms, *rs.grid_prior(LEVELS, 2).arms, *rs.beta_prior(1).arms]
    ),
    "pooled": lambda: rs.IndependentPrior(rs.grid_prior(LEVELS, 5).arms, pooled=[[0, 2, 3]]),
}


def particle_means(agent, draws):
    """Mean index [K] by the particles that the posterior shows."""
    state, means = agent.belief_state, []
    drawn = agent._actor.posterior.weights.drawn.reshape(max(1, draws), -1)
    for k in range(agent.task.num_arms):
        found, like = agent.posterior(k), agent.prior.typical(k)
        weights = found.weights
        if draws:
            group = agent._actor.posterior.slots.groups[k]
            weights = np.bincount(drawn[:, group], minlength=len(found)) / draws
        total = 0.0
        for j in np.flatnonzero(weights):
            arm = rs.Arm(found.active[j], found.passive[j], like.rewards, like.passive_rewards)
            at = rs.BeliefState([state.last_state[k]], [state.elapsed[k]])
            total += weights[j] * rs.whittle(rs.RestlessBandit([arm], 1)).index(at)[0]
        means.append(total)
    return np.array(means)


@pytest.mark.parametrize(("name", "options"), LEARNERS)
@pytest.mark.parametrize("kind", PRIORS)
def test_any_prior_will_do(kind, name, options):
    agent = rs.make_learner(name, PRIORS[kind](), 2, horizon=40, seed=1, **options)
    rng = np.random.default_rng(2)
    for step in range(25):
        arms = agent.select()
        if step % 8 == 0:
            means = particle_means(agent, options.get("draws", 0))
            np.testing.assert_allclose(agent.index(), means, rtol=1e-6, atol=1e-9)
            assert arms.tolist() == top(means, 2).tolist()
        agent.observe(rng.integers(2, size=2))


@pytest.mark.parametrize(("name", "options"), LEARNERS)
@pytest.mark.parametrize("kind", PRIORS)
def test_a_restored_agent_goes_on_alike(kind, name, options):
    agent = rs.make_learner(name, PRIORS[kind](), 2, horizon=40, seed=1, **options)
    rng = np.random.default_rng(2)
    twin = None
    for step in range(24):
        if step in (5, 11):
            twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
        arms = agent.select()
        if step == 17:
            twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
        states = rng.integers(2, size=2)
        if twin is not None:
            assert twin.select().tolist() == arms.tolist()
            np.testing.assert_array_equal(twin.index(), agent.index())
            twin.observe(states)
        agent.observe(states)


@pytest.mark.parametrize(("name", "options"), LEARNERS)
@pytest.mark.parametrize("kind", ["finite", "channels"])
def test_simulation_and_agent_decide_alike(kind, name, options):
    prior = PRIORS[kind]()
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.1 + 0.1 * k, 0.8) for k in range(5)], 2)
    agent = rs.make_learner(name, prior, 2, horizon=60, seed=3, **options)
    run = rs.simulate(bandit, agent, 60, seed=3)
    other = rs.make_learner(name, prior, 2, horizon=60, seed=3, **options)
    for t in range(60):
        assert other.select().tolist() == np.asarray(run.arms[t]).tolist()
        other.observe(np.asarray(run.states[t]))


def test_masks_and_narrowing():
    agent = rs.make_learner("mean_index", rs.grid_prior(LEVELS, 6), 2, horizon=20)
    assert agent.select(1, [4, 5]).tolist() == [4]
    agent.observe([1])
    assert set(agent.select(2, [1, 4, 5]).tolist()) <= {1, 4, 5}


def test_what_has_no_index_is_refused():
    with pytest.raises(ProblemError, match=r"mean_index averages an index.*'optimal' has none"):
        rs.make_learner("mean_index", rs.grid_prior([0.2, 0.8], 2), 1, "optimal", 20)
    agent = rs.make_learner("tsde", rs.grid_prior([0.2, 0.8], 2), 1, "optimal", 20, draws=2)
    with pytest.raises(ProblemError, match="tsde averages an index"):
        agent.select()
    with pytest.raises(ProblemError, match="tsde: draws must be"):
        rs.make_learner("tsde", rs.grid_prior([0.2, 0.8], 2), 1, draws=0)
    agent = rs.make_learner("mean_index", rs.grid_prior([0.2, 0.8], 2), 1)
    agent.select()
    with pytest.raises(ProblemError, match="there is no sampled one"):
        _ = agent.sampled_bandit


def test_lp_priority_is_averaged_over_systems():
    agent = rs.make_learner("tsde", rs.grid_prior([0.2, 0.8], 3), 1, "lp_priority", 20, draws=3)
    agent.select()
    state = agent._learner_state
    means = np.mean([state.sampled_policy(i).index(agent.belief_state) for i in range(3)], axis=0)
    np.testing.assert_allclose(agent.index(), means)
