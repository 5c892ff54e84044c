"""UCWhittle, see `restive.learn.learners.ucwhittle`.

`ints` holds the time at which the next episode begins, then counts of moves [2, S, S] of each arm,
not pulled and pulled; `floats` the optimistic indices of each state, made by Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.learn.learners.memory import (
    OWN,
    PHASES,
    PLANNING,
    Knowledge,
    LearnerMemory,
    top_available,
)

__all__ = ["COUNTS", "LENGTH", "NEXT", "choose", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

NEXT, LENGTH, COUNTS = OWN, OWN + 1, OWN + 2  # of the whole numbers: next episode, length, counts


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms with the largest optimistic indices of their states."""
    for k in range(len(memory.values)):
        memory.values[k] = memory.floats[knowledge.reward_offsets[k] + memory.last_state[k]]
    top_available(memory, available, chosen)


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, shown: IntArray,
    states: IntArray, count: int,
) -> None:  # fmt: skip
    """Count the moves; at the end of an episode ask for a plan. All arms have two states."""
    for i in range(len(shown)):
        pulled = 1 if i < count else 0
        move = 2 * memory.last_state[shown[i]] + states[i]
        memory.ints[COUNTS + 8 * shown[i] + 4 * pulled + move] += 1
    if t + 1 >= memory.ints[NEXT]:
        memory.ints[NEXT] = t + 1 + memory.ints[LENGTH]
        memory.ints[PLANNING] = 1
        memory.ints[PHASES] += 1
