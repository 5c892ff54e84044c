"""Learners with continuous priors: engine, agent and oracle agree; nothing but the seed matters."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats

import restive as rs
from continuous_cases import CASES, NaiveParticles, beta_channels, dirichlet, mixed, pooled
from learning_cases import agent_with, as_lists, posed, run_engine
from oracles.tsde_naive import NaiveWorld
from restive.learn.learners import learner
from restive.learn.task import make_task
from restive.measure.replication import replicate, with_truths

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
    learner_state, arms, states = run_engine(posed_on(task), HORIZON, seed=3)
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
    assert learner_state.time == agent.time


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
        renewals.add(
            sum(
                particle_group["renewals"] for particle_group in whole.snapshot()["clouds"].values()
            )
        )
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
    """The same chains as candidates, and as particles of which any number is enough."""
    prior = dirichlet([[1, 1], [1, 1]], particles=64)
    chains = prior.particles()
    arms = [prior.arm(a, p) for a, p in zip(chains.active, chains.passive, strict=True)]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(a, b) for a, b in [(0.2, 0.7), (0.4, 0.6)]], 1)

    def never_renew(learner_state):
        learner_state.actor.posterior.particles.first_effective_sizes[:] = 0.0

    found = []
    for one in (rs.ArmPrior(arms, chains.weights), prior):
        both = rs.IndependentPrior([one, one])
        task = make_task(both, 1, "whittle", 300, mixing_time=4, true_bandit=bandit)
        found.append(run_engine(posed_on(task), 300, seed=6, prepare=never_renew)[1:])
    for finite, particles in zip(*found, strict=True):
        assert (finite == particles).all()


@pytest.mark.parametrize("mapping", ["whittle", "myopic"])
@pytest.mark.parametrize(("num_arms", "num_pulls"), [(1, 1), (3, 1), (5, 4), (11, 4)])
def test_rewards_may_be_negative(mapping, num_arms, num_pulls):
    """They pay the same less 8: whatever fills up a row of eight channels is never chosen."""
    chances = [(0.1 + 0.05 * i, 0.9 - 0.05 * i) for i in range(num_arms)]

    def arms_pulled(rewards):
        bandit = rs.RestlessBandit([rs.gilbert_elliott(*c, rewards) for c in chances], num_pulls)
        prior = rs.beta_prior(num_arms, rewards=rewards)
        agent = rs.TSDE(prior, num_pulls, mapping, 100, seed=5)
        return played(agent, bandit, 100, seed=2)

    assert arms_pulled((-8, -7)) == arms_pulled((0, 1))


def test_what_was_seen_of_pooled_arms_is_learned_of_all():
    """The posterior is that of one arm that was given all their evidence."""
    prior, num_pulls = pooled()
    agent = rs.TSDE(prior, num_pulls, "whittle", 200, seed=1)
    rs.simulate(truth_of(prior, num_pulls), agent, 40, seed=2)
    for pool in prior.pooled:
        first = agent.posterior(pool[0])
        assert all((agent.posterior(k).weights == first.weights).all() for k in pool)
        everything = sum((agent.evidence(k) for k in pool[1:]), start=agent.evidence(pool[0]))
        alone = prior.arms[pool[0]].given(everything)
        if isinstance(alone, rs.ArmPrior):
            assert first.weights == pytest.approx(alone.weights)
        else:  # other particles of the same posterior, 32 of them
            spread = np.sqrt(np.einsum("m,mij->ij", first.weights, first.active**2)
                             - first.mean().active ** 2)  # fmt: skip
            assert (abs(first.mean().active - alone.particles().mean().active) < spread / 3).all()
    together = prior.given([agent.evidence(k) for k in range(prior.num_arms)])
    assert together.pooled == prior.pooled


@pytest.mark.parametrize(
    ("pools", "words"),
    [
        ([[0, 7]], "pooled arm"),
        ([[0, 1], [1, 2]], "arm 1 is named twice"),
        ([[0, 3]], "the priors of arms 0 and 3 differ"),
        (3, "pooled must be a list"),
    ],
)
def test_what_cannot_be_pooled(pools, words):
    arms = [*[dirichlet([[1, 1], [1, 1]])] * 3, dirichlet([[1, 2], [1, 1]])]
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.IndependentPrior(arms, pooled=pools)


def test_calibration_inside_tsde():
    """Truths drawn from the prior, sightings chosen by the learner: ranks are uniform.

    Two chi-square tests of 400 ranks in ten bins; together they give 0.02% false alarms.
    """
    task = make_task(rs.beta_prior(4), 2, "whittle", 120)
    ranks = []
    for replication in range(400):
        learner_state = run_engine(posed_on(task), 120, seed=11, replication=replication)[0]
        truth, _ = with_truths(task, 1, 11, replication)
        k = replication % 4
        true = truth.choices.kinds.arms[truth.choices.drawn_kinds[k]].active[:, 1]
        posterior = agent_with(learner_state, 11, replication).posterior(k)
        ranks.append(posterior.weights @ (posterior.active[:, :, 1] < true))
    for column in np.array(ranks).T:
        counts, _ = np.histogram(column, bins=10, range=(0, 1 + 1e-9))
        assert stats.chisquare(counts).pvalue > 1e-4, counts


def test_renewals_become_rare():
    """At most 4 + 1.5 log t of an arm's t sightings, and all by the one fit that is compiled."""
    bandit = rs.RestlessBandit([rs.gilbert_elliott(*p) for p in [(0.35, 0.65), (0.54, 0.45)]], 1)
    agent = rs.TSDE(rs.beta_prior(2), 1, seed=3)
    rs.simulate(bandit, agent, 20_000, seed=4)
    for k, particle_group in agent.snapshot()["clouds"].items():
        total = agent.evidence(int(k)).total
        assert 4 < particle_group["renewals"] <= 4 + 1.5 * np.log(total)


SMALL_RUN = """
import sys
import numpy as np
import restive as rs
from continuous_cases import beta_channels, mixed
from restive.learn.learners import learner
from restive.measure.replication import replicate
from restive.learn.task import make_task
for case in (beta_channels, mixed):
    prior, num_pulls = case()
    task = make_task(prior, num_pulls, "whittle", 25, mixing_time=3)
    done = replicate(task, learner("tsde"), np.array([7, 25]), 2, 5, threads=1)
    for array in (done.expected, done.realised, done.episodes, done.oracle_expected):
        sys.stdout.write(array.tobytes().hex())
    agent = rs.TSDE(prior, num_pulls, "myopic", mixing_time=3, seed=4)
    for t in range(25):
        agent.select()
        agent.observe([t % 2] * num_pulls)
    sys.stdout.write(str(agent.snapshot()))
"""


def test_the_same_bytes_without_jit():
    found = []
    for disabled in ("0", "1"):
        environment = os.environ | {
            "NUMBA_DISABLE_JIT": disabled,
            "PYTHONPATH": os.path.dirname(__file__),
        }
        command = [sys.executable, "-W", "error", "-c", SMALL_RUN]
        ran = subprocess.run(command, env=environment, capture_output=True, check=False, text=True)
        assert ran.returncode == 0, ran.stderr[-2000:]
        found.append(ran.stdout)
    assert "'renewals': 1" in found[0]
    assert found[0] == found[1]


def test_regret_functions_and_comparisons_take_continuous_priors():
    prior, num_pulls = mixed()
    bandit = truth_of(prior, num_pulls)
    curve = rs.frequentist_regret(bandit, prior, horizon=80, replications=3)
    assert np.isfinite(curve.mean).all()
    drawn = rs.bayesian_regret(prior, num_pulls, "whittle", 80, replications=3)
    assert np.isfinite(drawn.mean).all()
    exact = rs.bayesian_regret(rs.beta_prior(2), 1, "whittle", 40, replications=3, baseline="exact")
    assert exact.baseline.startswith("exact")
    found = rs.compare((bandit, prior), ["tsde", "ucb1"], horizon=80, replications=3)
    assert len(found[0].curves) == 2


def test_a_truth_that_no_fixed_zero_allows_is_an_error():
    zeros = rs.IndependentPrior([dirichlet([[0, 1], [1, 1]])] * 2)
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.5, 0.5)] * 2, 1)
    with pytest.raises(rs.errors.ProblemError, match="the prior rules out the true bandit"):
        rs.frequentist_regret(bandit, zeros, horizon=200, replications=2, mixing_time=3)
    agent = rs.TSDE(zeros, 1, mixing_time=3)
    arms = agent.select()
    agent.observe([0])
    agent.pull(arms)
    with pytest.raises(rs.errors.ProblemError, match="has probability zero"):
        agent.observe([0])


def test_mixing_time_and_bounds():
    prior = rs.beta_prior(3)
    task = make_task(prior, 1, "whittle", 1000)
    assert task.mixing_time == prior.arms[0].mixing_time(0.95) == 7
    assert make_task(prior, 1, "whittle", 1000, mixing_time=5).mixing_time == 5
    bounds = rs.theory.bounds_for(prior, 1, 1000, 2.0)
    assert bounds.mixing_time == 7
    assert bounds.covered == pytest.approx(0.95**3)
    assert rs.theory.bounds_for(rs.grid_prior([0.2, 0.5], 3), 1, 1000, 2.0).covered == 1
    with pytest.raises(rs.errors.ProblemError, match="no list of systems"):
        rs.theory.decompose_regret(prior, 1, horizon=10, replications=2)


@pytest.mark.parametrize("passive", [None, [[50, 1], [1, 60]]])
def test_arms_that_share_a_prior_were_seen_at_different_times_long_ago(passive):
    """Likelihoods of old ages take turns on a place that both arms share."""
    arm = dirichlet([[60, 1], [1, 60]], passive)
    prior, ages = rs.IndependentPrior([arm] * 3), [40, 90, 200]
    agent = rs.TSDE(prior, 3, seed=1, start=rs.BeliefState([1] * 3, ages))
    before = [agent.posterior(k) for k in range(3)]
    beliefs = [agent.belief(k) for k in range(3)]
    agent.select()
    agent.observe([0, 0, 0])
    for k, (was, age) in enumerate(zip(before, ages, strict=True)):
        laws = (was.active @ np.linalg.matrix_power(was.passive, age - 1))[:, 1]
        np.testing.assert_allclose(beliefs[k], was.weights @ laws, rtol=1e-10)
        weights = was.weights * laws[:, 0]
        np.testing.assert_allclose(agent.posterior(k).weights, weights / weights.sum(), rtol=1e-10)


@pytest.mark.parametrize("case", CASES)
def test_beliefs_are_means_over_particles(case):
    prior, num_pulls = CASES[case]()
    agent = rs.TSDE(prior, num_pulls, seed=2)
    for step in range(30):
        agent.skip(step % 4 * 11)
        agent.observe([int(np.argmax(agent.belief(k))) for k in agent.select()])
        for k in range(prior.num_arms):
            found = agent.posterior(k)
            state, seen = agent.last_seen(k)
            powers = np.linalg.matrix_power(found.passive, agent.time - seen - 1)
            law = found.weights @ (found.active @ powers)[:, state]
            np.testing.assert_allclose(agent.belief(k), law / law.sum(), rtol=1e-9)


def test_a_prior_of_the_slowest_chains_can_be_learned_under():
    """Its 95% quantile of the mixing time would take terabytes of counters."""
    prior = rs.beta_prior(3, p01=(0.05, 0.05), p11=(0.05, 0.05))
    assert prior.arms[0].mixing_time() > 10**9
    agent = rs.TSDE(prior, num_pulls=1, seed=1)
    assert agent.task.mixing_time == 10_000
    for time in range(50):
        agent.select()
        agent.observe([time // 10 % 2])
    assert agent.time == 51
