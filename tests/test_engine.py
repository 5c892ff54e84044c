"""The batch engine, the online agent and a naive Algorithm 1 take the same decisions."""

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

import restive as rs
from learning_cases import (
    CASES,
    channels,
    controlled,
    joint,
    naive_run,
    own_rule,
    posed,
    small_independent,
    small_joint,
    three_states,
    trace,
    true_bandit,
)
from restive.measure.replication import replicate
from restive.measure.simulation import simulate
from restive.measure.world import World

STEPS = 520
INDEX_RULES = ["best_fixed", "myopic", "whittle", own_rule]


def by_hand(setup, seed, replication, steps, truth):
    """Drive the agent of a replication step by step."""
    agent = rs.types.Agent(*setup, seed, replication)
    world = World(truth, start=setup.task.start, seed=seed, replication=replication)
    arms, states, episodes = [], [], []
    for _ in range(steps):
        arms.append(agent.select().tolist())
        seen, _, _ = world.pull(np.array(arms[-1]))
        agent.observe(seen)
        states.append(seen.tolist())
        episodes.append(agent.episode.number)
    return arms, states, episodes


def assert_same_run(
    prior, num_pulls, mapping, horizon, truth=None, seed=3, replication=0, steps=STEPS, **more
):
    """Compare the engine's sums, its trace where it has one, the agent and the oracle."""
    run = naive_run(prior, num_pulls, mapping, horizon, steps, seed, replication, truth, **more)
    setup = posed(prior, num_pulls, mapping, horizon, true_bandit=truth, **more)
    bandit = rs.RestlessBandit(run.truth, num_pulls)
    arms, states, episodes = by_hand(setup, seed, replication, steps, bandit)
    assert arms == run.arms
    assert states == run.states
    assert episodes == run.episodes
    if setup.task.ranks is not None:
        arms, states = trace(setup, steps, seed, replication)
        assert arms.tolist() == run.arms
        assert states.tolist() == run.states
    times = np.array([1, 2, steps // 2, steps])
    done = replicate(*setup, times, 1, seed, first=replication)
    assert done.episodes[0].tolist() == [run.episodes[t - 1] for t in times]
    assert done.realised[0, -1] == pytest.approx(run.realised, rel=1e-12)
    assert done.expected[0, -1] == pytest.approx(run.expected, rel=1e-9)
    assert [setup.task.choices.kinds.arms[kind] for kind in done.true_kinds[0]] == list(run.truth)
    return run


@pytest.mark.parametrize("horizon", [STEPS, None])
@pytest.mark.parametrize("mapping", INDEX_RULES)
@pytest.mark.parametrize("case", CASES)
def test_engine_agent_and_oracle_agree_with_the_truth_drawn_from_the_prior(case, mapping, horizon):
    prior, num_pulls = CASES[case]()
    run = assert_same_run(prior, num_pulls, mapping, horizon)
    assert run.agent.epoch == (9 if horizon is None else 0)
    assert run.agent.episode > 10


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("mapping", ["myopic", "whittle"])
@pytest.mark.parametrize("case", CASES)
def test_engine_agent_and_oracle_agree_on_a_given_truth(case, mapping, inside):
    prior, num_pulls = CASES[case]()
    truth = true_bandit(prior, num_pulls, inside=inside)
    assert_same_run(prior, num_pulls, mapping, STEPS, truth, seed=2**64 - 9, replication=41)


@pytest.mark.parametrize("horizon", [200, None])
@pytest.mark.parametrize("mapping", ["lp_priority", "optimal"])
@pytest.mark.parametrize("case", [small_independent, small_joint])
def test_mappings_that_look_at_whole_systems_agree_with_the_oracle(case, mapping, horizon):
    prior, num_pulls = case()
    run = assert_same_run(prior, num_pulls, mapping, horizon, seed=4, steps=200)
    assert len({tuple(arms) for arms in run.arms}) > 1
    truth = true_bandit(prior, num_pulls, inside=False)
    assert_same_run(prior, num_pulls, mapping, horizon, truth, seed=8, steps=100)


def patient_rule(arm):
    """Expected reward plus the age: poor arms are pulled too, after a long while."""
    return rs.theory.belief_table(arm, 90) @ arm.rewards + 0.015 * np.arange(90)


@pytest.mark.parametrize("horizon", [64, 2, None])
@pytest.mark.parametrize("case", [controlled, three_states, joint])
def test_ages_from_the_mixing_time_on_share_a_counter(case, horizon):
    # so short a T^mix(1/4) that most pulls after a pause fall into the shared counters
    prior, num_pulls = case()
    start = rs.BeliefState([0] * prior.num_arms, np.arange(prior.num_arms) * 7 + 1)
    more = {"start": start, "steps": 500, "seed": 6}
    run = assert_same_run(prior, num_pulls, patient_rule, horizon, mixing_time=1, **more)
    shared = [count for (_, _, n), count in run.agent.counts.items() if n == run.agent.mixing]
    assert max(shared) >= 4
    apart = naive_run(prior, num_pulls, patient_rule, horizon, mixing_time=90, **more)
    assert apart.episodes != run.episodes


def whittle_of(bandit):
    """Whittle's policy as a mapping of the user's."""
    return rs.whittle(bandit)


@pytest.mark.parametrize("case", [channels, controlled, joint])
@pytest.mark.parametrize("horizon", [150, None])
def test_a_mapping_of_bandits_equals_the_compiled_rule(case, horizon):
    prior, num_pulls = case()
    times = np.array([10, 150])
    found = [
        replicate(*posed(prior, num_pulls, mapping, horizon), times, 3, seed=4)
        for mapping in ("whittle", whittle_of)
    ]
    for field in ("true_kinds", "episodes"):
        assert np.array_equal(*(getattr(done, field) for done in found))
    for field in ("expected", "realised", "oracle_expected", "oracle_realised"):
        np.testing.assert_allclose(*(getattr(done, field) for done in found), rtol=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_oracle_run_is_the_true_systems_policy_in_the_same_world(case):
    prior, num_pulls = CASES[case]()
    setup = posed(prior, num_pulls, "whittle", 80)
    done = replicate(*setup, np.array([30, 80]), 3, seed=12)
    for r in range(3):
        bandit = setup.task.bandit_of(done.true_kinds[r])
        policy, world = rs.whittle(bandit), World(bandit, seed=12, replication=r)
        steps = [world.pull(policy.select(world.belief_state))[1:] for _ in range(80)]
        for mark, t in enumerate((30, 80)):
            realised, expected = np.sum(steps[:t], axis=0)
            assert done.oracle_realised[r, mark] == pytest.approx(realised, rel=1e-12)
            assert done.oracle_expected[r, mark] == pytest.approx(expected, rel=1e-12)


def as_bytes(done):
    """Return all that a run gives, as bytes."""
    fields = ("true_kinds", "expected", "realised", "episodes", "oracle_expected")
    return b"".join(getattr(done, name).tobytes() for name in (*fields, "oracle_realised"))


@pytest.mark.parametrize("case", [channels, joint])
def test_the_same_bytes_whatever_the_threads_and_the_chunks(case):
    prior, num_pulls = case()
    setup = posed(prior, num_pulls, "whittle")
    times = np.array([3, 60, 200])
    whole = as_bytes(replicate(*setup, times, 23, seed=9, threads=1))
    for threads in (1, 2, 5):
        for chunk in (1, 7, 23, 64):
            done = replicate(*setup, times, 23, seed=9, threads=threads, chunk=chunk)
            assert as_bytes(done) == whole


@pytest.mark.parametrize("mapping", ["whittle", "lp_priority"])
def test_more_replications_leave_the_earlier_ones_and_first_takes_a_slice(mapping):
    prior, num_pulls = small_joint()
    setup = posed(prior, num_pulls, mapping, 50)
    times = np.array([20, 50])
    many = replicate(*setup, times, 12, seed=1)
    few = replicate(*setup, times, 5, seed=1)
    some = replicate(*setup, times, 4, seed=1, first=6, threads=2, chunk=1)
    for field in ("true_kinds", "expected", "realised", "episodes", "oracle_expected"):
        assert np.array_equal(getattr(many, field)[:5], getattr(few, field))
        assert np.array_equal(getattr(many, field)[6:10], getattr(some, field))
    assert len({row.tobytes() for row in many.realised}) > 1


def test_other_seeds_give_other_runs():
    prior, num_pulls = channels()
    setup = posed(prior, num_pulls, "myopic", 60)
    found = [as_bytes(replicate(*setup, np.array([60]), 4, seed=seed)) for seed in (0, 1, 2**63)]
    assert len(set(found)) == 3


def test_without_an_oracle_the_learner_is_the_same():
    prior, num_pulls = channels()
    setup = posed(prior, num_pulls, "myopic", 60)
    with_one = replicate(*setup, np.array([60]), 4, seed=0)
    without = replicate(*setup, np.array([60]), 4, seed=0, with_oracle=False)
    assert np.array_equal(with_one.expected, without.expected)
    assert without.oracle_expected.shape == (0, 1)


def test_memory_does_not_grow_with_the_horizon():
    setup = posed(*channels(), "myopic", 1000)
    peaks = []
    for horizon in (300, 300_000):
        tracemalloc.start()
        replicate(*setup, np.array([10, horizon]), 2, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0] + 2000


def test_progress_counts_every_replication():
    prior, num_pulls = small_joint()
    for mapping in ("whittle", "optimal"):
        setup = posed(prior, num_pulls, mapping, 5)
        told = []
        replicate(*setup, np.array([5]), 11, chunk=4, threads=2, progress=told.append)
        assert sum(told) == 11


def test_a_failing_progress_ends_the_run():
    setup = posed(*channels(), "myopic", 5)

    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replicate(*setup, np.array([5]), 40, chunk=1, threads=2, progress=stop)


SMALL_RUN = """
import sys
import numpy as np
import restive as rs
from learning_cases import own_rule
from learning_cases import posed
from restive.measure.replication import replicate
from learning_cases import trace
arms = [rs.gilbert_elliott(*pair) for pair in [(.2, .7), (.6, .4), (.5, .5)]]
prior = rs.IndependentPrior([rs.ArmPrior(arms, [1, 2, 3])] * 3)
systems = rs.JointPrior([rs.RestlessBandit(arms[i:] + arms[:i], 1) for i in range(3)])
for given in (prior, systems):
    for mapping in ("myopic", "best_fixed", own_rule):
        setup = posed(given, 1, mapping, None if mapping == "myopic" else 60)
        done = replicate(*setup, np.array([7, 60]), 2, seed=2**64 - 1, threads=1)
        for array in (done.true_kinds, done.expected, done.realised, done.episodes,
                      done.oracle_expected, done.oracle_realised, *trace(setup, 60, 5, 1)):
            sys.stdout.write(array.tobytes().hex())
        agent = rs.TSDE(given, 1, mapping, seed=4)
        for t in range(30):
            agent.select()
            agent.observe([t % 2])
            sys.stdout.write(agent.posterior(2).weights.tobytes().hex())
        again = rs.restore(agent.snapshot(), mapping)
        sys.stdout.write(str(agent.select()) + str(again.select()))
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
    assert len(found[0]) > 10_000
    assert found[0] == found[1]


RULED_OUT = """
import numpy as np
import restive as rs
sure = rs.gilbert_elliott(1.0, 0.5)  # never twice bad
for count in (1, 9):
    near = [rs.gilbert_elliott(1.0, 0.5 + j / 50) for j in range(count)]
    arms = [rs.ArmPrior([rs.gilbert_elliott(0.1, 0.5)]), rs.ArmPrior(near)]
    truth = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.5)] * 2, 2)
    joint = rs.JointPrior([rs.RestlessBandit([truth.arms[0], arm], 2) for arm in near])
    for prior in (rs.IndependentPrior(arms), joint):
        try:
            rs.frequentist_regret(truth, prior, "whittle", horizon=300, replications=3)
        except rs.errors.ProblemError as error:
            print(error)
"""


def test_a_truth_that_the_prior_rules_out_is_an_error():
    # apart, since what a kernel does to memory must not end the other tests
    command = [sys.executable, "-W", "error", "-c", RULED_OUT]
    ran = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    said = ran.stdout.splitlines()
    rest = "has probability zero under every candidate: the prior rules out the true bandit"
    assert said == [f"what was seen of {who} {rest}" for who in ("arm 1", "the arms")] * 2


def test_simulate_gives_the_engines_trajectory():
    for case in (channels, joint):
        prior, num_pulls = case()
        truth = true_bandit(prior, num_pulls)
        setup = posed(prior, num_pulls, "whittle", true_bandit=truth)
        arms, states = trace(setup, 300, seed=17)
        ran = simulate(truth, rs.TSDE(prior, num_pulls, "whittle", seed=17), 300, seed=17)
        assert np.array_equal(ran.arms, arms)
        assert np.array_equal(ran.states, states)
        run = naive_run(prior, num_pulls, "whittle", None, 300, 17, truth=truth)
        assert ran.episode.tolist() == run.episodes
        assert ran.rewards.sum() == pytest.approx(run.realised, rel=1e-12)
        assert ran.expected_rewards.sum() == pytest.approx(run.expected, rel=1e-9)
