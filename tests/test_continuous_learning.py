"""Learners with continuous priors: engine, agent and oracle agree; nothing but the seed matters."""

import json

import numpy as np
import pytest

import restive as rs
from continuous_cases import CASES, NaiveParticles, beta_channels, dirichlet, mixed, pooled
from learning_cases import as_lists, posed, run_engine
from oracles.tsde_naive import NaiveWorld
from restive.agents.learners import learner
from restive.replication import replicate, with_truths
from restive.task import make_task

HORIZON = 90
RELATIVES = {
    "tsde": {},
    "episodic_thompson": {"length": 7},
    "thompson_every_step": {},
    "certainty_equivalence": {},
    "epsilon_greedy": {"epsilon": 0.3},
}


def truth_of(prior, num_pulls, seed=5):
    """Return a bandit that the prior holds possible, which is none of its particles."""
    task, kinds = with_truths(make_task(prior, num_pulls, "myopic", 10), 1, seed)
    return task.bandit_of(kinds[0])


def played(agent, bandit, steps, seed):
    """Arms and states [T, N] of an agent in the world of replication 0."""
    trajectory = rs.simulate(bandit, agent, steps, seed=seed)
    return trajectory.arms.tolist(), trajectory.states.tolist()


@pytest.mark.parametrize("mapping", ["whittle", "myopic"])
@pytest.mark.parametrize("case", CASES)
def test_engine_agent_and_oracle_take_the_same_steps(case, mapping):
    prior, num_pulls = CASES[case]()
    bandit = truth_of(prior, num_pulls)
    task = make_task(prior, num_pulls, mapping, HORIZON, mixing_time=3, true_bandit=bandit)
    mind, arms, states = run_engine(posed_on(task), HORIZON, seed=3)
    agent = rs.TSDE(prior, num_pulls, mapping, HORIZON, mixing_time=3, seed=3)
    assert played(agent, bandit, HORIZON, 3) == (arms.tolist(), states.tolist())
    oracle = NaiveParticles(prior, num_pulls, mapping, HORIZON, 3, quarter=3)
    for t in range(HORIZON):
        assert oracle.select() == arms[t].tolist()
        oracle.observe(states[t].tolist())
    assert oracle.episode == agent.episode.number
    assert oracle.renewed, "a test without renewals tells little"
    for k in range(prior.num_arms):
        expected = oracle.posterior(prior.groups[k])
        assert agent.posterior(k).weights == pytest.approx(
            expected, rel=1e-6, abs=1e-9
        )  # a fit of many numbers is sensitive
    assert mind.time == agent.time


def posed_on(task, name="tsde", **options):
    return type(posed(*beta_channels()))(task, learner(name, **options))


@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize("case", ["beta_channels", "mixed"])
def test_every_relative_does_in_the_engine_what_its_agent_does(name, case):
    prior, num_pulls = CASES[case]()
    bandit = truth_of(prior, num_pulls)
    task = make_task(prior, num_pulls, "whittle", 60, true_bandit=bandit)
    _, arms, states = run_engine(posed_on(task, name, **RELATIVES[name]), 60, seed=4)
    agent = rs.make_learner(name, prior, num_pulls, "whittle", 60, seed=4, **RELATIVES[name])
    assert played(agent, bandit, 60, 4) == (arms.tolist(), states.tolist())


def through_json(agent):
    return rs.restore(json.loads(json.dumps(agent.snapshot(), allow_nan=False)))


@pytest.mark.parametrize("horizon", [HORIZON, None])
@pytest.mark.parametrize("case", CASES)
def test_a_chain_of_agents_each_restored_from_the_last_is_one_agent(case, horizon):
    """Stop at every moment: after `observe` and after `select`, before and after renewals."""
    prior, num_pulls = CASES[case]()
    start = [prior.typical(k).num_states - 1 for k in range(prior.num_arms)]
    truth = [as_lists(arm) for arm in truth_of(prior, num_pulls).arms]
    world = NaiveWorld(truth, start, [1] * prior.num_arms, 7, 0)
    whole, chained = (rs.TSDE(prior, num_pulls, "whittle", horizon, seed=8) for _ in range(2))
    renewals = set()
    for t in range(HORIZON):
        if t % 2:
            chained = through_json(chained)
        arms = whole.select()
        assert arms.tolist() == chained.select().tolist()
        chained = through_json(chained)
        states, _, _ = world.pull(arms.tolist())
        whole.observe(states)
        chained.observe(states)
        renewals.add(sum(cloud["renewals"] for cloud in whole.snapshot()["clouds"].values()))
    assert len(renewals) >= 3
    assert whole.snapshot() == chained.snapshot()
    for k in range(prior.num_arms):
        assert (whole.posterior(k).active == chained.posterior(k).active).all()


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_are_restored_and_skip_and_take_in_late_sightings(name):
    prior, num_pulls = beta_channels()
    agent = rs.make_learner(name, prior, num_pulls, "whittle", 200, seed=2, **RELATIVES[name])
    for t in range(30):
        other = through_json(agent)
        for one in (agent, other):
            chosen = one.select(available=[0, 1, 3]) if t % 5 == 1 else one.select()
            if t % 7 == 3:
                one.observe([1], arms=chosen[:1], missing="not pulled")
                one.observe_late(int(chosen[1]), 0, one.time - 1)
                one.skip(t)
            else:
                one.observe(np.arange(len(chosen)) % 2)
        assert other.snapshot() == agent.snapshot()


@pytest.mark.parametrize("case", [beta_channels, mixed, pooled])
def test_the_same_bytes_for_any_threads_chunks_and_first_replication(case):
    prior, num_pulls = case()
    times = np.array([10, 60])
    task = make_task(prior, num_pulls, "whittle", 60)
    one = replicate(task, learner("tsde"), times, 6, 9, threads=1, chunk=6)
    two = replicate(task, learner("tsde"), times, 6, 9, threads=2, chunk=2)
    late = replicate(task, learner("tsde"), times, 2, 9, first=4, threads=1)
    for field in ("expected", "realised", "episodes", "oracle_expected"):
        assert (getattr(one, field) == getattr(two, field)).all()
        assert (getattr(one, field)[4:] == getattr(late, field)).all()
    for r in range(6):
        assert one.true_bandit(r) == two.true_bandit(r)
        truth = one.true_bandit(r)
        for pool in prior.pooled:
            assert len({truth.arms[k].numbers for k in pool}) == 1


def test_a_finite_prior_decides_as_particles_that_are_never_renewed():
    """The same chains as candidates, and as particles whose worth never falls below any bound."""
    prior = dirichlet([[1, 1], [1, 1]], particles=64)
    chains = prior.particles()
    arms = [prior.arm(a, p) for a, p in zip(chains.active, chains.passive, strict=True)]
    finite = rs.ArmPrior(arms, chains.weights)
    bandit = rs.RestlessBandit([rs.gilbert_elliott(a, b) for a, b in [(0.2, 0.7), (0.4, 0.6)]], 1)
    runs = []
    for one in (finite, prior):
        joint = rs.IndependentPrior([one, one])
        task = make_task(joint, 1, "whittle", 300, mixing_time=4, true_bandit=bandit)
        setup = posed_on(task)
        mind = type(run_engine(setup, 1, 1)[0])(task, setup.learner, 300)
        if len(mind.actor.clouds.groups):
            mind.actor.clouds.first_worths[:] = 0.0
        runs.append(run_with(mind, 300, seed=6))
    assert runs[0] == runs[1]


def run_with(mind, horizon, seed):
    from restive.actors import make_record, make_trace, world_of
    from restive.loop import drive
    from restive.replication import drawn_truths

    task = mind.task
    truth = drawn_truths(task, 1, seed)
    record = make_record(task.num_pulls, task.start, np.array([horizon]), truth, seed)
    happened = make_trace(horizon, task.num_pulls)
    drive(mind, world_of(task.choices.tables, task.num_arms), record, happened)
    return happened.arms.tolist(), happened.states.tolist()
