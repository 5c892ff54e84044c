"""UCB1 with several plays, see `restive.agents.learners.ucb1`.

`ints` holds the pulls of each arm, `floats` the sum of its rewards, scaled to [0, 1].
"""

from __future__ import annotations

from math import inf, log, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel
from restive.kernels.learners.memory import OWN, Knowledge, Memory
from restive.kernels.world import top_many

__all__ = ["choose", "learn"]

IntArray = NDArray[np.int64]


@hot_kernel
def choose(knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, chosen: IntArray) -> None:
    """Write the arms with the largest upper confidence bounds."""
    for k in range(len(memory.values)):
        pulls = memory.ints[OWN + k]
        memory.values[k] = inf
        if pulls > 0:
            memory.values[k] = memory.floats[k] / pulls + sqrt(2 * log(t) / pulls)
    top_many(memory.values, chosen)


@hot_kernel
def learn(
    knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, pulled: IntArray, states: IntArray
) -> None:
    """Count the pulls and add up the rewards."""
    for i in range(len(pulled)):
        k = pulled[i]
        memory.ints[OWN + k] += 1
        memory.floats[k] += knowledge.shares[knowledge.reward_offsets[k] + states[i]]
