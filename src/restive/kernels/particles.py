"""What is known of an arm with a continuous prior, as a learner keeps it.

Its sightings are counted here. Weights are multiplied in the loop (`kernels.clouds`), and particles
that have lost their worth are drawn anew (`kernels.renewals`, `restive.particles`). A snapshot
holds the counts, logits, weights, `worth` and `renewals`; matrices follow from the logits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.ages import DENSE, neighbours
from restive.kernels.compiler import hot_kernel, inlined

__all__ = ["LOST", "ArmParticles", "add_sighting", "count_one"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOST = 0.25  # share of the worth after the last renewal at which another is due


class ArmParticles(NamedTuple):
    """The posterior of one arm; kernels change the arrays in place."""

    ages: IntArray  # [room] 1 to DENSE and later ones counted, ascending (see kernels.ages)
    cells: FloatArray  # [room, S, S] counts by age
    logits: FloatArray  # [d, M]
    matrices: FloatArray  # [R, S, M]
    weights: FloatArray  # [M], in any scale
    worth: FloatArray  # [1] effective number of particles after the last renewal, M at first
    num_ages: IntArray  # [1] ages in use
    renewals: IntArray  # [1] how often the particles were drawn anew


@hot_kernel
def add_sighting(arm: ArmParticles, state: int, age: int, seen: int, number: float) -> bool:
    """Count a sighting so many times, for Python."""
    return count_one(arm, state, age, seen, number)


@inlined
def count_one(arm: ArmParticles, state: int, age: int, seen: int, number: float) -> bool:
    """Count a sighting so many times; False, with nothing counted, if its ages have no room."""
    low, high, share = neighbours(age, arm.cells.shape[1])
    if arm.num_ages[0] + 2 > len(arm.ages):
        return False
    arm.cells[_place_of(arm, low), state, seen] += (1.0 - share) * number
    if share > 0.0:
        arm.cells[_place_of(arm, high), state, seen] += share * number
    return True


@inlined
def _place_of(arm: ArmParticles, age: int) -> int:
    """Place of an age among those in use, where it is put if it is not among them."""
    if age <= DENSE:
        return age - 1
    low, high = DENSE, arm.num_ages[0]
    while low < high:
        middle = (low + high) >> 1
        if arm.ages[middle] < age:
            low = middle + 1
        else:
            high = middle
    if low == arm.num_ages[0] or arm.ages[low] != age:
        size = arm.cells.shape[1]
        for i in range(arm.num_ages[0], low, -1):
            arm.ages[i] = arm.ages[i - 1]
            for s in range(size):
                for j in range(size):
                    arm.cells[i, s, j] = arm.cells[i - 1, s, j]
        arm.ages[low] = age
        for s in range(size):
            for j in range(size):
                arm.cells[low, s, j] = 0.0
        arm.num_ages[0] += 1
    return low
