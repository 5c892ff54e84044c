"""What compiled learners know and remember: plain arrays, so that one snapshot serves them all."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.loop.choosing import top_arms

__all__ = ["DRAWS", "OWN", "PHASES", "PLANNING", "Knowledge", "LearnerMemory", "top_available"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# The first whole numbers of every memory.
DRAWS = 0  # random numbers used
PLANNING = 1  # not 0: `plan` must be called before the next `choose`
PHASES = 2  # episodes, resamplings or phases begun, however the learner calls them
OWN = 3  # where a learner's own numbers begin


class Knowledge(NamedTuple):
    """What every learner is told: sizes and rewards of the arms."""

    sizes: IntArray  # [K] numbers of states
    reward_offsets: IntArray  # [K]
    rewards: FloatArray  # flat
    shares: FloatArray  # flat: rewards scaled to [0, 1] over all arms
    passive_rewards: FloatArray  # flat: of steps in which an arm is not pulled


class LearnerMemory(NamedTuple):
    """Everything a learner remembers; kernels change the arrays in place."""

    last_state: IntArray  # [K] that of `Meta`
    seen: IntArray  # [K] that of `Meta`
    ints: IntArray  # DRAWS, PLANNING, PHASES, then the learner's own
    floats: FloatArray  # the learner's own
    values: FloatArray  # [K] scratch


@part
def top_available(memory: LearnerMemory, available: BoolArray, chosen: IntArray) -> None:
    """Write the arms of the largest values, among those that are available."""
    for k in range(len(available)):
        if not available[k]:
            memory.values[k] = -np.inf
    top_arms(memory.values, chosen, len(chosen))
