"""The loop in which compiled learners play, and the table of their numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, kernel
from restive.kernels.learners import (
    beta_bernoulli,
    colored_ucrl2,
    regenerative_cycle,
    restless_ucb,
    ucb1,
)
from restive.kernels.learners.memory import PHASES, PLANNING, Knowledge, Memory
from restive.kernels.tables import BeliefTables
from restive.kernels.world import pull

__all__ = [
    "BETA_BERNOULLI",
    "COLORED_UCRL2",
    "REGENERATIVE_CYCLE",
    "RESTLESS_UCB",
    "UCB1",
    "choose",
    "choose_step",
    "learn",
    "learn_step",
    "play",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

UCB1 = 0
BETA_BERNOULLI = 1
REGENERATIVE_CYCLE = 2
RESTLESS_UCB = 3
COLORED_UCRL2 = 4


@hot_kernel
def choose(
    learner: int, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, chosen: IntArray
) -> None:
    """Write the arms, ascending, that a learner pulls at time t."""
    if learner == UCB1:
        ucb1.choose(knowledge, memory, t, key, chosen)
    elif learner == BETA_BERNOULLI:
        beta_bernoulli.choose(knowledge, memory, t, key, chosen)
    elif learner == REGENERATIVE_CYCLE:
        regenerative_cycle.choose(knowledge, memory, t, key, chosen)
    elif learner == RESTLESS_UCB:
        restless_ucb.choose(knowledge, memory, t, key, chosen)
    elif learner == COLORED_UCRL2:
        colored_ucrl2.choose(knowledge, memory, t, key, chosen)


@hot_kernel
def learn(
    learner: int, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Let a learner take in what was seen at time t; the meta-state follows."""
    if learner == UCB1:
        ucb1.learn(knowledge, memory, t, key, pulled, states)
    elif learner == BETA_BERNOULLI:
        beta_bernoulli.learn(knowledge, memory, t, key, pulled, states)
    elif learner == REGENERATIVE_CYCLE:
        regenerative_cycle.learn(knowledge, memory, t, key, pulled, states)
    elif learner == RESTLESS_UCB:
        restless_ucb.learn(knowledge, memory, t, key, pulled, states)
    elif learner == COLORED_UCRL2:
        colored_ucrl2.learn(knowledge, memory, t, key, pulled, states)
    for i in range(len(pulled)):
        memory.last_state[pulled[i]] = states[i]
        memory.seen[pulled[i]] = t


@kernel
def choose_step(
    learner: int, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, chosen: IntArray
) -> None:
    """See `choose`; for a learner that is asked step by step."""
    choose(learner, knowledge, memory, t, key, chosen)


@kernel
def learn_step(
    learner: int, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """See `learn`; for a learner that is asked step by step."""
    learn(learner, knowledge, memory, t, key, pulled, states)


@hot_kernel
def play(
    learner: int, knowledge: Knowledge, memory: Memory, arms: BeliefTables, truth: IntArray,
    start: int, times: IntArray, world: np.uint64, key: np.uint64, chosen: IntArray,
    states: IntArray, sums: FloatArray, expected: FloatArray, realised: FloatArray,
    phases: IntArray, trace_arms: IntArray, trace_states: IntArray,
) -> int:  # fmt: skip
    """Play from time `start` on; return the time after the last step.

    That is after the horizon, times[-1], or earlier where the learner must plan first. `sums` are
    the rewards so far, expected and realised; they are written at each of the `times`. `truth` is
    the kind of each arm, in `arms`.
    """
    num_arms = len(truth)
    mark = 0
    while mark < len(times) and times[mark] < start:
        mark += 1
    for t in range(start, times[-1] + 1):
        if memory.ints[PLANNING] != 0:
            return t
        choose(learner, knowledge, memory, t, key, chosen)
        for i in range(len(chosen)):
            k = chosen[i]
            kind = truth[k]
            states[i], mean = pull(
                arms, kind, k, num_arms, t, memory.last_state, memory.seen, world
            )
            sums[0] += mean
            sums[1] += arms.rewards[arms.reward_offsets[kind] + states[i]]
        learn(learner, knowledge, memory, t, key, chosen, states)
        if len(trace_arms) > 0:
            for i in range(len(chosen)):
                trace_arms[t - 1, i] = chosen[i]
                trace_states[t - 1, i] = states[i]
        if t == times[mark]:
            expected[mark] = sums[0]
            realised[mark] = sums[1]
            phases[mark] = memory.ints[PHASES]
            mark += 1
    return int(times[-1]) + 1
