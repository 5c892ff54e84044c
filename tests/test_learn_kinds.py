"""Laws of kinds that a learner estimates while it runs, against `estimate_kind` and plain numpy."""

from __future__ import annotations

import json

import numpy as np
import pytest

import restive as rs
from restive.errors import ProblemError
from restive.learn.kinds import estimate_kind
from restive.learn.make import with_more_arms

A = rs.spread_prior(1, points=24, controlled=True).arms[0]
B = rs.spread_prior(1, points=20, controlled=True).arms[0]
EPOCHS = [4, 6, 9, 13, 19, 28]
LEARNERS = [("mean_index", {}), ("tsde", {"draws": 1}), ("tsde", {"draws": 4})]


def two_kinds(num_arms=9):
    return rs.IndependentPrior([A if k % 3 else B for k in range(num_arms)])


def made(name="mean_index", prior=None, horizon=40, **options):
    prior = two_kinds() if prior is None else prior
    start = rs.BeliefState(np.ones(prior.num_arms, dtype=int), np.full(prior.num_arms, 5000))
    return rs.make_learner(
        name, prior, 3, horizon=horizon, seed=5, start=start, learn_kinds="epochs", **options
    )


def run(agent, num_steps, seed=1, seen=None):
    """Go on for some steps; append (arm, last state, age, state, time) to `seen`."""
    rng = np.random.default_rng([seed, agent.time])
    for _ in range(num_steps):
        state, arms = agent.belief_state, agent.select()
        states = rng.integers(2, size=len(arms))
        if seen is not None:
            for k, s in zip(arms.tolist(), states.tolist(), strict=True):
                seen.append((k, int(state.last_state[k]), int(state.elapsed[k]), s, agent.time))
        agent.observe(states)


def naive_law(kind, arms, seen, time):
    rows = [row[:4] for row in seen if row[0] in arms and row[4] < time]
    return estimate_kind(kind, *np.array(rows).T) if rows else None


@pytest.mark.parametrize(("name", "options"), LEARNERS)
def test_laws_are_those_of_all_sightings_so_far(name, options):
    agent, seen = made(name, **options), []
    for epoch in EPOCHS:
        run(agent, epoch - agent.time, seen=seen)
        run(agent, 1, seen=seen)  # which begins with the estimate
        for first, kind in ((0, B), (1, A)):
            arms = {k for k in range(9) if (k % 3 > 0) == (first > 0)}
            expected = naive_law(kind, arms, seen, epoch)
            law = agent.kind_law(first)
            weights = kind.weights if expected is None else expected.prior.weights
            # two searches end within their tolerance of the same maximum
            np.testing.assert_allclose(law.weights, weights, atol=2e-3)
        for k in range(9):  # posterior: law times likelihood
            weights = agent.kind_law(k).weights.copy()
            for who, last, age, state, _ in seen:
                if who == k:
                    for m, arm in enumerate(agent.prior.arms[k].candidates):
                        belief = arm.active[last] @ np.linalg.matrix_power(arm.passive, age - 1)
                        weights[m] *= belief[state]
            np.testing.assert_allclose(
                agent.posterior(k).weights, weights / weights.sum(), rtol=1e-9
            )


@pytest.mark.parametrize(("name", "options"), LEARNERS)
def test_a_restored_agent_goes_on_alike(name, options):
    agent = made(name, **options)
    for steps in (3, 1, 5, 4, 9):
        run(agent, steps)
        twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
        other = rs.restore(json.loads(json.dumps(twin.snapshot())))
        for _ in range(3):
            assert twin.select().tolist() == other.select().tolist()
            twin.observe([0, 1, 1])
            other.observe([0, 1, 1])
        twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
        run(twin, 6)
        copy = rs.restore(json.loads(json.dumps(agent.snapshot())))
        run(copy, 6)
        assert twin.snapshot() == copy.snapshot()


@pytest.mark.parametrize(("name", "options"), LEARNERS)
def test_restored_or_not_is_the_same(name, options):
    straight, cut = made(name, **options), made(name, **options)
    for _ in range(24):
        cut = rs.restore(json.loads(json.dumps(cut.snapshot())))
        assert straight.select().tolist() == cut.select().tolist()
        cut = rs.restore(json.loads(json.dumps(cut.snapshot())))
        states = [int(straight.time % 2), 1, 0]
        straight.observe(states)
        cut.observe(states)
    np.testing.assert_array_equal(straight.kind_law(1).weights, cut.kind_law(1).weights)


def test_replications_start_over():
    truth = rs.RestlessBandit([A.candidates[3]] * 4 + [A.candidates[9]] * 4, 3)
    prior = rs.IndependentPrior([A] * 8)
    learner = {"name": "mean_index", "learn_kinds": "epochs"}
    whole = rs.bayesian_regret(prior, 2, horizon=30, replications=6, learner=learner, seed=3)
    again = rs.bayesian_regret(
        prior, 2, horizon=30, replications=6, learner=learner, seed=3, threads=2
    )
    np.testing.assert_array_equal(whole.samples, again.samples)
    agent = made("mean_index", prior, 30)
    simulated = rs.simulate(truth, agent, 30, seed=2)
    assert len(simulated.arms) == 30


def test_kinds_of_which_the_same_is_known_share_what_they_show():
    """Each starts from the law of all their arms; one that was told apart beforehand does not."""
    told = A.with_weights(np.arange(1.0, 25.0))
    kinds = [A.with_weights(A.weights), A.with_weights(A.weights), told]
    prior = rs.IndependentPrior([kinds[k % 3] for k in range(9)])
    agent, seen = made(prior=prior), []
    while agent.time <= EPOCHS[4]:
        agent.select()  # which begins with the estimate, where one is due
        state, arms = agent.belief_state, [0, 3 if agent.time % 5 else 1, 6]
        agent.pull(arms)
        for k in arms:
            row = k, int(state.last_state[k]), int(state.elapsed[k]), 1, agent.time
            seen.append(row)
        agent.observe([1] * len(arms))
    rows = np.array([row[:4] for row in seen if row[4] < EPOCHS[4]])
    together = estimate_kind(A, *rows[rows[:, 0] % 3 < 2].T).prior
    for kind, base in ((0, together), (1, together), (2, told)):
        own = rows[rows[:, 0] % 3 == kind]
        expected = estimate_kind(base, *own.T).prior if len(own) else base
        found = agent.kind_law(kind).weights
        np.testing.assert_allclose(found, expected.weights, atol=2e-3)
        apart = estimate_kind(kinds[kind], *own.T).prior if len(own) else kinds[kind]
        assert (abs(found - apart.weights).max() > 0.01) == (kind < 2)


def test_who_joins_starts_from_the_law():
    agent = made()
    run(agent, 10)
    more = with_more_arms(agent, two_kinds(12), [1, 1, 1], [5000] * 3)
    for k in (9, 10, 11):
        law = agent.kind_law(k - 9).weights
        np.testing.assert_array_equal(more.kind_law(k).weights, law)
        np.testing.assert_allclose(more.posterior(k).weights, law, rtol=1e-12)
    run(more, 12)


def test_evidence_beforehand_counts():
    seen = rs.Evidence(2)
    seen.add([0, 0, 1], [1, 2, 1], [1, 1, 1], count=[9, 5, 9])
    informed = A.given(seen)
    assert informed.kind is A
    prior = rs.IndependentPrior([informed] * 3 + [A] * 3)
    agent = made("mean_index", prior)
    run(agent, 5)
    twin = rs.restore(json.loads(json.dumps(agent.snapshot())))
    run(agent, 12)
    run(twin, 12)
    assert agent.snapshot() == twin.snapshot()
    assert twin.prior.arms[0].kind is twin.prior.arms[3].kind


def test_what_cannot_be_learnt_is_said():
    with pytest.raises(ProblemError, match="learn_kinds needs arms with priors of candidates"):
        rs.TSDE(rs.beta_prior(3), 1, learn_kinds="epochs")
    with pytest.raises(ProblemError, match="learn_kinds must be 'epochs' or None, got 'daily'"):
        rs.TSDE(two_kinds(), 1, learn_kinds="daily")
    with pytest.raises(ProblemError, match="arm 0 has no prior of candidates"):
        rs.TSDE(rs.beta_prior(3), 1).kind_law(0)
