"""The joint chain of all arms' meta-states: numbering states, and what follows from them.

A joint state is a row of K cells; the cell of arm k is sigma_k * L_k + (n_k - 1), with ages pooled
from L_k on. States are numbered as they are found, through an open-addressing hash table `slots`
(a power of two long, -1 for free).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, part

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]

__all__ = ["ArmTables", "find_or_add", "rehash", "successors"]


class ArmTables(NamedTuple):
    """Beliefs and expected rewards of all arms, and room for one step of theirs."""

    beliefs: FloatArray  # flat: that of a cell begins at begins[k] + cell * sizes[k]
    means: FloatArray  # flat: that of a cell is at mean_begins[k] + cell
    begins: IntArray  # [K]
    mean_begins: IntArray  # [K]
    sizes: IntArray  # [K] numbers of states
    lengths: IntArray  # [K] numbers of ages
    following: Int32Array  # [K] room
    seen: IntArray  # [K] room


@part
def _slot_of(row: Int32Array, states: Int32Array, slots: Int32Array) -> int:
    """Slot that holds the row, or the free slot where it belongs."""
    mask = len(slots) - 1
    mixed = 0
    for k in range(len(row)):
        # kept below 2^31, so that the product never leaves 64 bits
        mixed = ((mixed ^ int(row[k])) * 1000003 + k) & 0x7FFFFFFF
    slot = (mixed ^ (mixed >> 15)) & mask
    while slots[slot] >= 0:
        same = True
        for k in range(len(row)):
            if states[slots[slot], k] != row[k]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@part
def _number_of(
    row: Int32Array, states: Int32Array, slots: Int32Array, count: int, add: bool
) -> int:
    """Return the number of a state; if it is new it is `count`, and entered where `add` says so."""
    slot = _slot_of(row, states, slots)
    if slots[slot] < 0 and add:
        for k in range(len(row)):
            states[count, k] = row[k]
        slots[slot] = count
    return int(slots[slot])


@hot_kernel
def find_or_add(rows: Int32Array, states: Int32Array, slots: Int32Array, count: int) -> int:
    """Add the rows that are new; return the new number of states. Room must be there."""
    for i in range(len(rows)):
        if _number_of(rows[i], states, slots, count, bool(1)) == count:
            count += 1
    return count


@hot_kernel
def rehash(states: Int32Array, first: int, last: int, slots: Int32Array) -> None:
    """Enter the states with numbers in [first, last) into a table that does not hold them."""
    for i in range(first, last):
        slots[_slot_of(states[i], states, slots)] = i


@hot_kernel
def successors(
    rows: Int32Array, actions: IntArray, arms: ArmTables, states: Int32Array, slots: Int32Array,
    count: int, add: bool, successor: Int32Array, probability: FloatArray, reward: FloatArray,
) -> int:  # fmt: skip
    """Outcomes of pulling actions[i] in rows[i]: numbers and probabilities of the next states.

    With `add` unknown states are numbered anew; without, they must be there. Outcomes of
    probability zero, and the unused places of a row, have probability 0 and successor -1. Returns
    the number of states.
    """
    beliefs, sizes, lengths = arms.beliefs, arms.sizes, arms.lengths
    following, seen = arms.following, arms.seen
    num_pulls = actions.shape[1]
    for i in range(len(rows)):
        for k in range(rows.shape[1]):
            age = rows[i, k] % lengths[k]
            following[k] = rows[i, k] + (1 if age + 1 < lengths[k] else 0)
        reward[i] = 0.0
        for j in range(num_pulls):
            k = actions[i, j]
            reward[i] += arms.means[arms.mean_begins[k] + rows[i, k]]
            seen[j] = 0
        place = 0
        j = 0
        while j < num_pulls:
            chance = 1.0
            for pull in range(num_pulls):
                k = actions[i, pull]
                chance *= beliefs[arms.begins[k] + rows[i, k] * sizes[k] + seen[pull]]
                following[k] = seen[pull] * lengths[k]
            if chance > 0:
                number = _number_of(following, states, slots, count, add)
                if number == count:
                    count += 1
                successor[i, place] = number
                probability[i, place] = chance
                place += 1
            j = 0
            while j < num_pulls:  # count on, arm by arm
                seen[j] += 1
                if seen[j] < sizes[actions[i, j]]:
                    break
                seen[j] = 0
                j += 1
        for rest in range(place, successor.shape[1]):
            successor[i, rest] = -1
            probability[i, rest] = 0.0
    return count
