"""QWI, see `restive.learn.learners.qwi`.

For each state h of each arm, `floats` holds Q_h(s, not pulled) and Q_h(s, pulled) of all states,
tables [S, S, 2] one after the other, and then the indices lambda_h; `ints` how often each (s, a) of
each arm was updated.
"""

from __future__ import annotations

from math import ceil, log

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part
from restive.kernels.learn.learners.memory import OWN, Knowledge, LearnerMemory, top_available
from restive.kernels.learn.learners.wiql import explores

__all__ = ["choose", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

EXPLORING, RATE, SLOW_RATE, STAGE = 0.1, 0.1, 0.2, 500


@inlined
def _num_values(knowledge: Knowledge) -> int:
    """How many values Q_h(s, a) there are."""
    total = 0
    for k in range(len(knowledge.sizes)):
        total += 2 * knowledge.sizes[k] * knowledge.sizes[k]
    return total


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms with the largest indices of their states, or arms at random."""
    if not explores(memory, key, EXPLORING):
        first = _num_values(knowledge)
        for k in range(len(memory.values)):
            state = knowledge.reward_offsets[k] + memory.last_state[k]
            memory.values[k] = memory.floats[first + state]
    top_available(memory, available, chosen)


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, shown: IntArray,
    states: IntArray, count: int,
) -> None:  # fmt: skip
    """Update what each arm did; the first `count` were pulled. The indices follow now and then."""
    indices = _num_values(knowledge)
    for i in range(len(shown)):
        k = shown[i]
        pulled = 1 if i < count else 0
        before = knowledge.reward_offsets[k] + memory.last_state[k]
        reward = knowledge.rewards[before] if pulled else knowledge.passive_rewards[before]
        memory.ints[OWN + 2 * before + pulled] += 1
        rate = RATE / ceil(memory.ints[OWN + 2 * before + pulled] / STAGE)
        _update(knowledge, memory, k, pulled, states[i], reward, rate)
    num_arms = len(memory.values)
    if t % num_arms == 0:
        rate = SLOW_RATE / (1 + ceil(t * log(t) / STAGE))
        table = 0
        for k in range(num_arms):
            size = knowledge.sizes[k]
            for h in range(size):
                gained = memory.floats[table + 2 * h + 1] - memory.floats[table + 2 * h]
                memory.floats[indices + knowledge.reward_offsets[k] + h] += rate * gained
                table += 2 * size


@part
def _update(
    knowledge: Knowledge, memory: LearnerMemory, k: int, pulled: int, state: int, reward: float,
    rate: float,
) -> None:  # fmt: skip
    """Update Q_h of one arm, for all h."""
    size, table = knowledge.sizes[k], 0
    for other in range(k):
        table += 2 * knowledge.sizes[other] * knowledge.sizes[other]
    indices = _num_values(knowledge) + knowledge.reward_offsets[k]
    for h in range(size):
        mean = 0.0
        for cell in range(2 * size):
            mean += memory.floats[table + cell] / (2 * size)
        best = max(memory.floats[table + 2 * state], memory.floats[table + 2 * state + 1])
        at = table + 2 * memory.last_state[k] + pulled
        paid = reward + (1 - pulled) * memory.floats[indices + h]
        memory.floats[at] += rate * (paid + best - mean - memory.floats[at])
        table += 2 * size
