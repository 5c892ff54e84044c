"""Renewal of particles in the loop's arrays: the way that nearly always suffices, in one call.

`restive.particles.renewal` has all ways; what is here is its first, with the same bits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.clouds import is_spent
from restive.kernels.compiler import hot_kernel, kernel, part
from restive.kernels.dirichlet import DirichletRows, place_rows
from restive.kernels.handles import opener
from restive.kernels.likelihood import Counts, add_log_likelihood
from restive.kernels.particles import ArmParticles, count_one
from restive.kernels.proposals import draw_around, fit_particles
from restive.kernels.random import key_at
from restive.kernels.tables import BLOCK, SIGHTING, Clouds, Slots, Weights
from restive.kernels.vectors import LANES
from restive.kernels.weighing import weigh
from restive.kernels.weights import add_up

__all__ = [
    "FITS_BADLY",
    "NO_ROOM",
    "ONE_T",
    "RENEWED",
    "Cloudy",
    "count_sightings",
    "put",
    "put_chains",
    "renew_around_fit",
    "renewal_key",
    "spent_groups",
    "take_weights",
]

RENEWED, FITS_BADLY, NO_ROOM = 0, 1, 2
ONE_T = 1  # place of the key, as in `restive.particles.drawing`

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]


class Cloudy(NamedTuple):
    """The posterior of a learner, of which some groups have particles."""

    slots: Slots
    weights: Weights
    clouds: Clouds


_opened = opener(Cloudy)


@hot_kernel
def spent_groups(where: IntArray, spent: BoolArray) -> None:
    """Tell which groups' particles [groups] must be renewed."""
    whole = _opened(where)
    for group in range(len(spent)):
        spent[group] = is_spent(whole.slots, whole.weights, whole.clouds, group)


@hot_kernel
def count_sightings(where: IntArray, cloud: int, arm: ArmParticles) -> bool:
    """Count what was written down of a cloud, in its order; False if there is no room for all."""
    clouds = _opened(where).clouds
    while clouds.firsts[cloud] >= 0:
        at = clouds.firsts[cloud] * SIGHTING
        numbers = clouds.sightings[at : at + SIGHTING]
        if not count_one(arm, numbers[1], numbers[2], numbers[3], 1.0):
            return False
        clouds.firsts[cloud] = numbers[0]
    return True


@kernel
def renew_around_fit(
    where: IntArray, group: int, home: int, rows: DirichletRows, arm: ArmParticles, enough: float
) -> int:
    """Count a group's sightings and draw its particles from one t that fits the old ones.

    RENEWED if they are worth enough. Else they are as before: FITS_BADLY, or NO_ROOM where not all
    sightings could be counted.
    """
    if not count_sightings(where, _cloud_of(where, group), arm):
        return NO_ROOM
    take_weights(where, group, arm)
    count = len(arm.weights)
    centre, root = fit_particles(arm.logits, arm.weights)
    logits, matrices = np.empty_like(arm.logits), np.empty_like(arm.matrices)
    log_q, logs, weights = np.empty(count), np.empty(count), np.empty(count)
    key = key_at(key_at(renewal_key(where, group), arm.renewals[0]), ONE_T)
    draw_around(centre, root, rows.generators, key, logits, log_q)
    place_rows(rows, logits, matrices, logs)
    used = arm.num_ages[0]
    add_log_likelihood(Counts(arm.ages[:used], arm.cells[:used]), matrices, logs)
    worth = weigh(logs - log_q, weights)[0]
    if worth < enough:
        return FITS_BADLY
    arm.logits[:], arm.matrices[:], arm.weights[:] = logits, matrices, weights
    arm.worth[0] = worth
    arm.renewals[0] += 1
    put(where, group, home, arm)
    return RENEWED


@part
def _cloud_of(where: IntArray, group: int) -> int:
    return int(_opened(where).clouds.groups[group])


@hot_kernel
def renewal_key(where: IntArray, group: int) -> np.uint64:
    """Key of all renewals of a group; Python calls it as `np.uint64(renewal_key(...))`."""
    return key_at(_opened(where).clouds.keys[0], group)


@hot_kernel
def take_weights(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Copy the weights of a group."""
    whole = _opened(where)
    rows, home = whole.slots.row_counts[group], whole.weights.homes[group]
    for m in range(len(arm.weights)):
        arm.weights[m] = whole.weights.numbers[home + _lane_place(m, rows)]


@hot_kernel
def put(where: IntArray, group: int, home: int, arm: ArmParticles) -> None:
    """Let a group, which has weights of its own, have these particles and weights."""
    put_chains(where, group, home, arm)
    whole = _opened(where)
    slots, weights = whole.slots, whole.weights
    rows, first = slots.row_counts[group], weights.homes[group]
    for m in range((2 * rows + rows // BLOCK + 2) * LANES):
        weights.numbers[first + m] = 0.0
    for m in range(len(arm.weights)):
        weights.numbers[first + _lane_place(m, rows)] = arm.weights[m]
    weights.changed[group] = True
    add_up(slots, weights, group)


@hot_kernel
def put_chains(where: IntArray, group: int, home: int, arm: ArmParticles) -> None:
    """Let a group have these particles, in this home."""
    whole = _opened(where)
    slots, clouds = whole.slots, whole.clouds
    rows, cloud = slots.row_counts[group], clouds.groups[group]
    clouds.homes[cloud] = home
    clouds.filled[home] = 0
    clouds.worths[cloud] = arm.worth[0]
    for k in range(len(slots.groups)):
        if slots.groups[k] == group:
            slots.offsets[k] = clouds.row_starts[home]
    entry = clouds.chain_starts[home]
    for r in range(arm.matrices.shape[0]):
        for j in range(arm.matrices.shape[1]):
            for m in range(rows * LANES):
                clouds.chains[entry + m] = arm.matrices[r, j, 0]
            for m in range(len(arm.weights)):
                clouds.chains[entry + _lane_place(m, rows)] = arm.matrices[r, j, m]
            entry += rows * LANES


@part
def _lane_place(slot: int, rows: int) -> int:
    """Where a slot stands: row slot % rows of lane slot // rows."""
    return (slot % rows) * LANES + slot // rows
