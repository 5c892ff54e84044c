"""What is known of an arm with a continuous prior, as a learner keeps it.

Its sightings are counted here. Weights are multiplied in the loop (`particle_groups`), and where
the effective sample size falls too low, particles are drawn anew (`renewals`,
`restive.learn.particles`). A snapshot holds counts, logits, weights, the effective size and the
number of renewals; matrices follow from the logits.

Ages at which sightings are counted are nodes. A chain of two states returns to its limit like
rho^n, and the log of a belief hardly bends between neighbouring ages once n is large. So all ages
up to 64 are nodes and beyond, one odd and one even age for each step of a sixteenth: a few hundred
nodes reach any age. A sighting between two nodes counts for both, in proportion to how near it is:
the log-likelihood is interpolated linearly in n, wrong by at most about 3e-4 / b a sighting. The
two neighbours have its parity, since rho^n has either sign in turn where rho < 0.

With three states and more a chain may turn in circles of any length, and between nodes anything may
happen. There every age is a node.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part

__all__ = ["DENSE", "LOST", "ArmParticles", "add_sighting", "count_one", "neighbours"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

DENSE = 64  # ages up to which every age is a node
LOST = 0.35  # share of the effective size after a renewal at which another is due


class ArmParticles(NamedTuple):
    """The posterior of one arm; kernels change the arrays in place."""

    ages: IntArray  # [ages] 1 to DENSE and later ones counted, ascending (see the module)
    cells: FloatArray  # [ages, S, S] counts by age
    logits: FloatArray  # [d, M]
    matrices: FloatArray  # [R, S, M]
    weights: FloatArray  # [M], in any scale
    effective_size: FloatArray  # [1] effective sample size after the last renewal, M at first
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


@part
def neighbours(age: int, num_states: int) -> tuple[int, int, float]:
    """Nodes at or below and above an age, and the share of a sighting that goes to the latter.

    Even nodes beyond DENSE: within each octave from 64 * 2^k on, 64 * 2^k + i * 4 * 2^k; before
    each an odd one.
    """
    if num_states != 2 or age <= DENSE:
        return age, age, 0.0
    odd = age & 1
    even = age + odd  # the even node that goes with an odd one is one above it
    step = 4
    while even >= DENSE // 4 * step * 2:  # a sixteenth of the octave's beginning
        step *= 2
    low = even - even % step
    if low == even:
        return age, age, 0.0
    high = low + step
    return low - odd, high - odd, (even - low) / step
