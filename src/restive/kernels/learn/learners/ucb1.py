"""UCB1 with several plays, see `restive.learn.learners.ucb1`.

`ints` holds the pulls of each arm, `floats` the sum of its rewards, scaled to [0, 1].
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithm
from restive.kernels.jit.compiler import part
from restive.kernels.learn.learners.memory import OWN, Knowledge, LearnerMemory, top_available

__all__ = ["choose", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms with the largest upper confidence bounds."""
    for k in range(len(memory.values)):
        pulls = memory.ints[OWN + k]
        memory.values[k] = inf
        if pulls > 0:
            memory.values[k] = memory.floats[k] / pulls + sqrt(2 * logarithm(float(t)) / pulls)
    top_available(memory, available, chosen)


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Count the pulls and add up the rewards."""
    for i in range(len(pulled)):
        k = pulled[i]
        memory.ints[OWN + k] += 1
        memory.floats[k] += knowledge.shares[knowledge.reward_offsets[k] + states[i]]
