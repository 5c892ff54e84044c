"""Restless-UCB, see `restive.learn.learners.restless_ucb`.

States of all arms are numbered end to end, as the rewards are: state s of arm k is the row
`reward_offsets[k] + s`. `ints` holds, from `OWN` on, the four numbers below, then for each arm how
many of its states still lack transitions, for each row how many transitions out of it were seen,
and for each row how many went to each state (`WIDTH` numbers a row). `floats` holds the rank of the
planned index by row and age (`AGES` numbers a row).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.learn.learners.memory import (
    OWN,
    PLANNING,
    Knowledge,
    LearnerMemory,
    top_available,
)

__all__ = ["AGES", "LACKING", "UNFINISHED", "WANTED", "WIDTH", "choose", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

WANTED = OWN  # transitions out of each state
UNFINISHED = OWN + 1  # arms some state of which lacks transitions; 0 ends the exploration
WIDTH = OWN + 2  # the largest number of states of any arm
AGES = OWN + 3  # told apart in the table of ranks
LACKING = OWN + 4  # where the numbers of the arms begin


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the first arms that are not explored yet, or those with the largest indices."""
    ints = memory.ints
    exploring = ints[UNFINISHED] > 0
    ages = ints[AGES]
    for k in range(len(memory.values)):
        if exploring:
            memory.values[k] = 1.0 if ints[LACKING + k] > 0 else 0.0
        else:
            row = knowledge.reward_offsets[k] + memory.last_state[k]
            memory.values[k] = memory.floats[row * ages + min(t - memory.seen[k], ages) - 1]
    top_available(memory, available, chosen)


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Count transitions between pulls in successive steps until there are enough."""
    ints = memory.ints
    if ints[UNFINISHED] == 0:
        return
    totals = LACKING + len(memory.values)
    counts = totals + len(knowledge.rewards)
    for i in range(len(pulled)):
        k = pulled[i]
        # before the first step nothing was pulled, even if the start says when arms were seen
        if t == 1 or memory.seen[k] != t - 1:
            continue
        row = knowledge.reward_offsets[k] + memory.last_state[k]
        ints[counts + row * ints[WIDTH] + states[i]] += 1
        ints[totals + row] += 1
        if ints[totals + row] == ints[WANTED]:
            ints[LACKING + k] -= 1
            if ints[LACKING + k] == 0:
                ints[UNFINISHED] -= 1
    if ints[UNFINISHED] == 0:
        ints[PLANNING] = 1
