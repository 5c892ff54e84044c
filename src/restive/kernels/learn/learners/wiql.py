"""WIQL, see `restive.learn.learners.wiql`.

`floats` holds Q(s, not pulled) and Q(s, pulled) of each state of each arm; `ints` how often each
was updated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part
from restive.kernels.learn.learners.memory import (
    DRAWS,
    OWN,
    Knowledge,
    LearnerMemory,
    top_available,
)
from restive.kernels.random import uniform_at

__all__ = ["choose", "explores", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms with the largest Q(s, pulled) - Q(s, not pulled), or arms at random."""
    num_arms = len(memory.values)
    if not explores(memory, key, num_arms / (num_arms + t)):
        for k in range(num_arms):
            cell = 2 * (knowledge.reward_offsets[k] + memory.last_state[k])
            memory.values[k] = memory.floats[cell + 1] - memory.floats[cell]
    top_available(memory, available, chosen)


@inlined
def explores(memory: LearnerMemory, key: np.uint64, share: float) -> bool:
    """With this probability give all arms random values."""
    u = uniform_at(key, memory.ints[DRAWS])
    memory.ints[DRAWS] += 1
    if u >= share:
        return False
    for k in range(len(memory.values)):
        memory.values[k] = uniform_at(key, memory.ints[DRAWS] + k)
    memory.ints[DRAWS] += len(memory.values)
    return True


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, shown: IntArray,
    states: IntArray, count: int,
) -> None:  # fmt: skip
    """Update what each arm did; the first `count` were pulled."""
    for i in range(len(shown)):
        k = shown[i]
        first = knowledge.reward_offsets[k]
        before, after = first + memory.last_state[k], first + states[i]
        reward = knowledge.rewards[before] if i < count else knowledge.passive_rewards[before]
        cell = 2 * before + (1 if i < count else 0)
        best = max(memory.floats[2 * after], memory.floats[2 * after + 1])
        rate = 1.0 / (memory.ints[OWN + cell] + 1)
        memory.floats[cell] += rate * (reward + best - memory.floats[cell])
        memory.ints[OWN + cell] += 1
