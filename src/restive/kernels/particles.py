"""What is known of an arm with a continuous prior, as a learner keeps it.

A learner does four things with it. Three are here:

* `take_in`: the arm was seen in s' after n steps in the dark from s. Count it, and multiply each
  particle's weight by b(s, n)[s'].
* `must_renew`: have the particles lost too much of their weight? Ask when a draw is due.
* `belief_row`: likelihoods b(s, n) of all particles at an exact age, for tables of slots.

The fourth, to draw the particles anew, is `restive.particles.renew_arm`: it is rare, and a loop
returns to Python for it. A snapshot holds the counts, logits, weights, `worth` and `renewals`;
matrices follow from the logits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.ages import neighbours
from restive.kernels.compiler import kernel, part
from restive.kernels.likelihood import copy_rows, multiply_row
from restive.kernels.weighing import effective_number

__all__ = [
    "ArmParticles",
    "RowRoom",
    "add_sighting",
    "add_sightings",
    "belief_row",
    "multiply_weights",
    "must_renew",
    "take_in",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LOW_WEIGHT = 2.0**-300  # their squares are added up too
LOST = 0.25  # share of the worth after the last renewal at which another is due


class ArmParticles(NamedTuple):
    """The posterior of one arm; kernels change the arrays in place."""

    ages: IntArray  # [room] ages counted, ascending (see kernels.ages)
    cells: FloatArray  # [room, S, S] counts by age
    logits: FloatArray  # [d, M]
    matrices: FloatArray  # [R, S, M]
    weights: FloatArray  # [M], in any scale
    worth: FloatArray  # [1] effective number of particles after the last renewal, M at first
    num_ages: IntArray  # [1] ages in use
    renewals: IntArray  # [1] how often the particles were drawn anew


class RowRoom(NamedTuple):
    """Room for one row of beliefs."""

    row: FloatArray  # [S, M] the result
    spare: FloatArray  # [S, M]
    power: FloatArray  # [S, S, M]
    square: FloatArray  # [S, S, M]


@kernel
def add_sighting(arm: ArmParticles, state: int, age: int, seen: int, number: float) -> bool:
    """Count a sighting; False, with nothing counted, if its ages have no room."""
    low, high, share = neighbours(age, arm.cells.shape[1])
    if arm.num_ages[0] + 2 > len(arm.ages):
        return False
    arm.cells[_place_of(arm, low), state, seen] += (1.0 - share) * number
    if share > 0.0:
        arm.cells[_place_of(arm, high), state, seen] += share * number
    return True


@kernel
def add_sightings(arm: ArmParticles, sightings: IntArray, first: int) -> int:
    """Count sightings [n, 4] from `first` on; return the first that has no room, n if all have.

    Each is an arm (of no interest here), last state, age and state.
    """
    for i in range(first, len(sightings)):
        if not add_sighting(arm, sightings[i, 1], sightings[i, 2], sightings[i, 3], 1.0):
            return i
    return len(sightings)


@part
def _place_of(arm: ArmParticles, age: int) -> int:
    """Place of an age among those in use, where it is put if it is not among them."""
    low, high = 0, arm.num_ages[0]
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
        arm.cells[low] = 0.0
        arm.num_ages[0] += 1
    return low


@part
def belief_row(matrices: FloatArray, state: int, age: int, room: RowRoom) -> None:
    """Write b(state, age) of all particles [S, M] to `room.row`, from matrices [R, S, M]."""
    size = matrices.shape[1]
    passive = matrices.shape[0] - size  # the first of its rows
    copy_rows(matrices[state], room.row)
    steps = age - 1
    if steps:
        for s in range(size):
            copy_rows(matrices[passive + s], room.power[s])
    while steps:
        if steps & 1:
            copy_rows(room.row, room.spare)
            multiply_row(room.spare, room.power, room.row)
        steps >>= 1
        if steps:
            for s in range(size):
                multiply_row(room.power[s], room.power, room.square[s])
            for s in range(size):
                copy_rows(room.square[s], room.power[s])


@part
def multiply_weights(arm: ArmParticles, chances: FloatArray) -> None:
    """Multiply the weights by chances [M], and rescale them before they are too small to square."""
    weights = arm.weights
    for m in range(len(weights)):
        weights[m] *= chances[m]
    largest = 0.0
    for m in range(len(weights)):
        largest = max(largest, weights[m])
    if 0.0 < largest < LOW_WEIGHT:
        scale = 1.0
        while largest * scale < 0.5:
            scale *= 2.0
        for m in range(len(weights)):
            weights[m] *= scale


@kernel
def take_in(arm: ArmParticles, room: RowRoom, state: int, age: int, seen: int) -> bool:
    """Take in a sighting; False, with nothing changed, if the table of ages has no room."""
    if not add_sighting(arm, state, age, seen, 1.0):
        return False
    belief_row(arm.matrices, state, age, room)
    multiply_weights(arm, room.row[seen])
    return True


@kernel
def must_renew(arm: ArmParticles) -> bool:
    """Whether the particles are worth less than a quarter of what they were when drawn."""
    return bool(effective_number(arm.weights) < LOST * arm.worth[0])
