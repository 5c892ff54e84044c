"""Priors and true bandits that the tests of the learner share, and the naive TSDE on them."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

import restive as rs
from oracles import tsde_naive as naive
from restive.learn.learner_state import LearnerState
from restive.learn.learners.base import Learner
from restive.learn.learners.relatives import DynamicEpisodes
from restive.learn.task import Task, make_task
from restive.measure.loop import drive
from restive.measure.replication import with_truths
from restive.plan.actors import make_record, make_trace, world_of


class Posed(NamedTuple):
    """A learner on a task."""

    task: Task
    learner: Learner


def posed(*args, learner=None, **options):
    """Put a learner, by default TSDE, on a task."""
    return Posed(make_task(*args, **options), learner or DynamicEpisodes())


def run_engine(setup, horizon, seed, replication=0, prepare=lambda learner_state: None):
    """Run one replication of the engine; return its learner_state, and arms and states [T, N]."""
    task, truth = with_truths(setup.task, 1, seed, replication)
    learner_state = LearnerState(task, setup.learner, horizon)
    record = make_record(
        task.num_pulls, task.start, np.array([horizon]), truth, seed, replication,
        memory=learner_state.actor.memory,
    )  # fmt: skip
    happened = make_trace(horizon, task.num_pulls)
    prepare(learner_state)
    drive(learner_state, world_of(task.choices.tables, task.num_arms), record, happened)
    return (learner_state, *(part.reshape(horizon, -1) for part in happened[:2]))


def trace(setup, horizon, seed, replication=0):
    """Arms and states [T, N] of one replication of the engine."""
    return run_engine(setup, horizon, seed, replication)[1:]


def agent_with(learner_state, seed, replication=0):
    """Return an agent that continues with what the engine left in a learner's state."""
    agent = rs.types.Agent(learner_state.task, learner_state.learner, seed, replication)
    agent._learner_state = learner_state
    agent._hold()
    return agent


def random_arm(rng, size, rewards, spread=0.4, controlled=True):
    """Return an arm with random matrices; the uniform law is mixed in by `spread`."""

    def matrix():
        return (1 - spread) * rng.dirichlet(np.full(size, 0.7), size) + spread / size

    active = matrix()
    return rs.Arm(active, matrix() if controlled else None, rewards)


def random_prior(rng, size, count, rewards, **options):
    """Return an arm prior with random candidates and weights."""
    candidates = [random_arm(rng, size, rewards, **options) for _ in range(count)]
    return rs.ArmPrior(candidates, rng.random(count) + 0.1)


def channels():
    """K=4, N=2: channels, three of the arms with one prior, the fourth with its own."""
    levels = [(0.1, 0.9), (0.3, 0.6), (0.5, 0.5), (0.8, 0.3), (0.2, 0.2), (0.7, 0.9)]
    shared = rs.ArmPrior([rs.gilbert_elliott(*pair) for pair in levels])
    own = rs.ArmPrior([rs.gilbert_elliott(*pair) for pair in levels[2:]], [3, 1, 2, 5])
    return rs.IndependentPrior([shared, own, shared, shared]), 2


def controlled():
    """K=3, N=1: two states, unequal matrices, 11 candidates, some with impossible steps."""
    rng = np.random.default_rng(11)
    sure = rs.Arm([[0, 1], [0.5, 0.5]], [[0.4, 0.6], [1, 0]], [0.1, 0.8])
    other = rs.Arm([[0.5, 0.5], [1, 0]], [[0.1, 0.9], [0.7, 0.3]], [0.1, 0.8])
    arms = [random_prior(rng, 2, 9, [0.1, 0.8]) for _ in range(3)]
    wide = [rs.ArmPrior([sure, *arm.candidates, other], [1, *(3 * arm.weights), 1]) for arm in arms]
    return rs.IndependentPrior(wide), 1


def three_states():
    """K=5, N=2: three, two and one states, unequal matrices, 19 candidates in one."""
    rng = np.random.default_rng(12)
    three = random_prior(rng, 3, 5, [0, 0.5, 1])
    two = random_prior(rng, 2, 3, [0.2, 0.9])
    many = random_prior(rng, 3, 19, [1, 0, 0.3], controlled=False)
    sure = rs.ArmPrior([rs.Arm([[1.0]], rewards=[0.55])])
    return rs.IndependentPrior([three, two, sure, many, three]), 2


def many_pulls():
    """K=9, N=6: channels of a coarse grid, so that ties are frequent."""
    return rs.grid_prior([0.2, 0.5, 0.8], 9), 6


def joint(num_arms=3, sizes=(2, 2, 3), count=7, num_pulls=1, seed=13):
    """Whole systems, the second of them with weight zero."""
    rng = np.random.default_rng(seed)
    rewards = [np.linspace(0, 1 - 0.1 * k, size) for k, size in enumerate(sizes)]
    bandits = [
        rs.RestlessBandit(
            [random_arm(rng, sizes[k], rewards[k]) for k in range(num_arms)], num_pulls
        )
        for _ in range(count)
    ]
    weights = rng.random(count) + 0.2
    weights[1] = 0
    return rs.JointPrior(bandits, weights), num_pulls


def wide_joint():
    """Seventeen systems of four arms, two pulled."""
    return joint(num_arms=4, sizes=(3, 2, 2, 3), count=17, num_pulls=2, seed=14)


CASES = {
    "channels": channels,
    "controlled": controlled,
    "three_states": three_states,
    "many_pulls": many_pulls,
    "joint": joint,
    "wide_joint": wide_joint,
}


def small_independent():
    """K=2, N=1, two candidates each: four systems, of which the optimum is soon found."""
    rng = np.random.default_rng(22)
    arms = [random_prior(rng, 2, 2, [0, 1], spread=0.3) for _ in range(2)]
    return rs.IndependentPrior(arms), 1


def small_joint():
    """K=3, N=1, three systems."""
    return joint(sizes=(2, 2, 2), count=3, seed=22)


def paying(prior, seed=31):
    """Return the prior of the same arms, which now also pay while not pulled, some below 0."""
    rng = np.random.default_rng(seed)
    passive = [rng.normal(size=prior.candidates(k)[0].num_states) for k in range(prior.num_arms)]
    if isinstance(prior, rs.JointPrior):
        bandits = [
            rs.RestlessBandit(map(with_passive, bandit.arms, passive), bandit.num_pulls)
            for bandit in prior.bandits
        ]
        return rs.JointPrior(bandits, prior.weights)
    return rs.IndependentPrior(
        rs.ArmPrior([with_passive(arm, rewards) for arm in one.candidates], one.weights)
        for one, rewards in zip(prior.arms, passive, strict=True)
    )


def with_passive(arm, passive_rewards):
    """Return the arm with these rewards while it is not pulled."""
    return rs.Arm(arm.active, arm.passive, arm.rewards, passive_rewards)


def true_bandit(prior, num_pulls, seed=5, inside=True):
    """Return a bandit from the prior's support, or one that is not in it."""
    rng = np.random.default_rng(seed)
    if isinstance(prior, rs.JointPrior):
        arms = prior.bandits[rng.choice(np.flatnonzero(prior.weights))].arms
    else:
        arms = [arm.candidates[rng.integers(len(arm.candidates))] for arm in prior.arms]
    if not inside:
        arms = [
            rs.Arm(
                (arm.active + 0.1) / (1 + 0.1 * arm.num_states),
                arm.passive,
                arm.rewards,
                arm.passive_rewards,
            )
            for arm in arms
        ]
    return rs.RestlessBandit(arms, num_pulls)


def own_rule(arm):
    """A user's rule: expected reward, and a little more the longer an arm was not seen."""
    return rs.theory.belief_table(arm, 9) @ arm.rewards + 0.01 * np.arange(9)


def as_lists(arm):
    """Return an arm as the oracle takes it."""
    return arm.active.tolist(), arm.passive.tolist(), arm.rewards.tolist()


def groups_of(prior):
    """Return a prior as the oracle takes it."""
    if isinstance(prior, rs.JointPrior):
        systems = [dict(enumerate(map(as_lists, bandit.arms))) for bandit in prior.bandits]
        return [(prior.weights.tolist(), systems)]
    return [
        (arm.weights.tolist(), [{k: as_lists(candidate)} for candidate in arm.candidates])
        for k, arm in enumerate(prior.arms)
    ]


def chooser_of(prior, num_pulls, mapping):
    """What the oracle plays for a sampled system.

    Index rules go through the oracle's own ranks; other mappings are asked for their policy.
    """
    candidates = [prior.candidates(k) for k in range(prior.num_arms)]
    rule = rs.registry.policy_mapping(mapping).rule if isinstance(mapping, str) else mapping
    if rule is not None:
        return naive.index_chooser(candidates, lambda arm: np.asarray(rule(arm)).tolist())
    policies = {}

    def scores(sampled, last_state, elapsed):
        key = tuple(sampled)
        if key not in policies:
            arms = [candidates[k][c] for k, c in enumerate(sampled)]
            policies[key] = rs.registry.policy_mapping(mapping)(rs.RestlessBandit(arms, num_pulls))
        chosen = policies[key].select(rs.BeliefState(last_state, elapsed))
        return [int(k in chosen) for k in range(len(sampled))]

    return scores


def start_of(prior):
    """Return the paper's start: every arm seen in its last state one step ago."""
    sizes = [prior.candidates(k)[0].num_states for k in range(prior.num_arms)]
    return rs.BeliefState([size - 1 for size in sizes], [1] * prior.num_arms)


def always_seen(prior):
    """Return the numbers of the arms that are seen in every step."""
    return {k for k in range(prior.num_arms) if prior.typical(k).always_seen}


def naive_agent(
    prior, num_pulls, mapping, horizon, seed=0, replication=0, start=None, mixing_time=None,
    **options,
):  # fmt: skip
    """Return the oracle's TSDE."""
    start = start_of(prior) if start is None else start
    return naive.NaiveTSDE(
        groups_of(prior), num_pulls, chooser_of(prior, num_pulls, mapping), horizon,
        start.last_state.tolist(), start.elapsed.tolist(), seed, replication, mixing_time,
        always=always_seen(prior), **options,
    )  # fmt: skip


@dataclass
class NaiveRun:
    """What happened to the oracle."""

    agent: naive.NaiveTSDE
    truth: list
    arms: list = field(default_factory=list)
    states: list = field(default_factory=list)
    episodes: list = field(default_factory=list)
    ended_by: list = field(default_factory=list)
    starts: list = field(default_factory=list)
    expected: float = 0.0
    realised: float = 0.0
    totals: list = field(default_factory=list)  # (expected, realised) up to each step


def naive_run(
    prior, num_pulls, mapping, horizon, steps, seed=0, replication=0, truth=None, start=None,
    mixing_time=None,
):  # fmt: skip
    """Run the oracle's TSDE in the oracle's world; the truth is drawn where none is given."""
    start = start_of(prior) if start is None else start
    agent = naive_agent(prior, num_pulls, mapping, horizon, seed, replication, start, mixing_time)
    if truth is None:
        drawn = naive.drawn_truth(agent.groups, prior.num_arms, seed, replication)
        arms = [prior.candidates(k)[c] for k, c in enumerate(drawn)]
    else:
        arms = truth.arms
    world = naive.NaiveWorld(
        [as_lists(arm) for arm in arms], start.last_state, start.elapsed, seed, replication,
        [arm.passive_rewards.tolist() for arm in arms], always_seen(prior),
    )  # fmt: skip
    run = NaiveRun(agent, arms)
    for _ in range(steps):
        chosen = agent.select()
        states, earned, expected = world.pull(chosen)
        agent.observe(states)
        run.arms.append(chosen)
        run.states.append(states)
        run.episodes.append(agent.episode)
        run.ended_by.append(agent.ended_by)
        run.starts.append(agent.started)
        run.realised += earned
        run.expected += expected
        run.totals.append((run.expected, run.realised))
    return run
