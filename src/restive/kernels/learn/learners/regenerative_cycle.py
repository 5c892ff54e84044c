"""Regenerative cycles with several plays, see `restive.learn.learners.regenerative_cycle`.

`ints` holds the steps in which any arm was in its cycle, then of each arm its regenerative state
plus 1 (0 before it is known), the part of its block in which it is, and the length of its cycles so
far. `floats` holds the sum of each arm's rewards in its cycles, scaled to [0, 1], then L.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithm
from restive.kernels.jit.compiler import part
from restive.kernels.learn.learners.memory import OWN, PHASES, Knowledge, LearnerMemory
from restive.kernels.loop.choosing import top_arms

__all__ = ["choose", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

CYCLE_STEPS = OWN  # t2
ARMS = OWN + 1  # where what is known of each arm begins
STATE, PART, LENGTH, PER_ARM = 0, 1, 2, 3

NO_BLOCK, SEEKING, CYCLE = 0, 1, 2  # parts: SB1 seeks the state, SB2 is the cycle, SB3 ends it

FIRST = 1e300  # more than any index


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Go on with the blocks that have begun; begin others with the arms of the largest indices."""
    num_arms = len(memory.values)
    held = 0
    for k in range(num_arms):
        memory.values[k] = -inf
        if memory.ints[ARMS + k * PER_ARM + PART] != NO_BLOCK:
            memory.values[k] = inf
            chosen[held] = k
            held += 1
    if held == len(chosen):
        return
    spread = memory.floats[num_arms] * logarithm(float(max(1, memory.ints[CYCLE_STEPS])))  # L ln t2
    for k in range(num_arms):
        length = memory.ints[ARMS + k * PER_ARM + LENGTH]
        if memory.values[k] < 0 and length == 0:
            memory.values[k] = FIRST
        elif memory.values[k] < 0:
            memory.values[k] = memory.floats[k] / length + sqrt(spread / length)
    top_arms(memory.values, chosen, len(chosen))
    for i in range(len(chosen)):
        part = ARMS + chosen[i] * PER_ARM + PART
        if memory.ints[part] == NO_BLOCK:
            memory.ints[part] = SEEKING
            memory.ints[PHASES] += 1


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Lead each arm through its block; only its cycle counts."""
    any_cycle = 0
    for i in range(len(pulled)):
        k = pulled[i]
        at = ARMS + k * PER_ARM
        if memory.ints[at + STATE] == 0:
            memory.ints[at + STATE] = states[i] + 1
        if memory.ints[at + STATE] == states[i] + 1:
            memory.ints[at + PART] = CYCLE if memory.ints[at + PART] == SEEKING else NO_BLOCK
        if memory.ints[at + PART] == CYCLE:
            memory.ints[at + LENGTH] += 1
            memory.floats[k] += knowledge.shares[knowledge.reward_offsets[k] + states[i]]
            any_cycle = 1
    memory.ints[CYCLE_STEPS] += any_cycle
