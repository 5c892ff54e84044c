"""Renewal of particles in the loop's arrays: the way that nearly always suffices, in one call.

`restive.learn.particles.drawing` has all ways; what is here is its first, with the same bits, for
as many groups as are due.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, kernel, part
from restive.kernels.jit.handles import opener
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.dirichlet import DirichletRows, place_rows
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import Counts, add_log_likelihood
from restive.kernels.learn.particle_groups import is_spent
from restive.kernels.learn.particles import DENSE, ArmParticles, count_one
from restive.kernels.learn.proposals import draw_around, fit_particles
from restive.kernels.learn.weighing import weigh
from restive.kernels.learn.weights import add_up
from restive.kernels.loop.tables import (
    BLOCK,
    ENTRIES,
    FREE_NUMBERS,
    GENERATORS,
    LAW_STARTS,
    ROWS,
    RUNS,
    SIGHTING,
    Clouds,
    Slots,
    Weights,
)
from restive.kernels.random import key_at

__all__ = [
    "ONE_T",
    "Cloudy",
    "count_sightings",
    "put",
    "put_particles",
    "renew_around_fit",
    "renew_spent",
    "renewal_key",
    "spent_groups",
    "take_weights",
]

ONE_T = 1  # place of the key, as in `restive.learn.particles.drawing`

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Cloudy(NamedTuple):
    """The posterior of a learner, of which some groups have particles."""

    slots: Slots
    weights: Weights
    clouds: Clouds


_opened = opener(Cloudy)


@kernel
def renew_spent(where: IntArray) -> bool:
    """Renew the particles of all groups that must be; whether some are left that need Python."""
    whole = _opened(where)
    some_left = False
    for group in range(len(whole.clouds.groups)):
        if is_spent(whole.slots, whole.weights, whole.clouds, group):
            some_left |= not renew_around_fit(where, group)
    return some_left


@hot_kernel
def spent_groups(where: IntArray, spent: BoolArray) -> None:
    """Tell which groups' particles [groups] must be renewed."""
    whole = _opened(where)
    for group in range(len(spent)):
        spent[group] = is_spent(whole.slots, whole.weights, whole.clouds, group)


@kernel
def renew_around_fit(where: IntArray, group: int) -> bool:
    """Count a group's sightings and draw its particles from one t that fits the old ones.

    False where they are as before: if the new ones are not worth enough, if too many numbers are
    free, or if there is no room yet for particles or counts.
    """
    clouds = _opened(where).clouds
    cloud = clouds.groups[group]
    rows = _rows_of(clouds, cloud)
    if len(rows.columns) > FEW or clouds.own_homes[cloud] < 0 or not _begin(clouds, cloud):
        return False
    arm = _arm_of(clouds, cloud)
    if not count_sightings(where, cloud, arm):
        return False
    take_weights(where, group, arm)
    count = len(arm.weights)
    centre, root = fit_particles(arm.logits, arm.weights)
    log_q, logs, weights = np.empty(count), np.empty(count), np.empty(count)
    key = key_at(key_at(renewal_key(where, group), arm.renewals[0]), ONE_T)
    draw_around(centre, root, rows.generators, key, arm.logits, log_q)
    place_rows(rows, arm.logits, arm.matrices, logs)
    add_log_likelihood(_counts_of(arm), arm.matrices, logs)
    worth = weigh(logs - log_q, weights)[0]
    if worth < clouds.laws.enough[clouds.first_homes[cloud]]:
        return False
    arm.weights[:] = weights
    arm.worth[0] = worth
    arm.renewals[0] += 1
    put(where, group, arm)
    return True


@inlined
def _rows_of(clouds: Clouds, cloud: int) -> DirichletRows:
    """What is fixed of a cloud's prior."""
    laws, size = clouds.laws, clouds.sizes[cloud]
    law = clouds.first_homes[cloud]
    begin = laws.starts[law * LAW_STARTS : (law + 1) * LAW_STARTS]
    end = laws.starts[(law + 1) * LAW_STARTS : (law + 2) * LAW_STARTS]
    return DirichletRows(
        laws.alphas[begin[ENTRIES] : end[ENTRIES]].reshape((clouds.num_rows[cloud], size)),
        laws.totals[begin[ROWS] : end[ROWS]],
        laws.references[begin[ROWS] : end[ROWS]],
        laws.firsts[begin[ROWS] + law : end[ROWS] + law + 1],
        laws.columns[begin[FREE_NUMBERS] : end[FREE_NUMBERS]],
        laws.precisions[begin[FREE_NUMBERS] : end[FREE_NUMBERS]],
        laws.generators[begin[GENERATORS] : end[GENERATORS]],
    )


@part
def _begin(clouds: Clouds, cloud: int) -> bool:
    """See to it that a cloud's counts are of this run; False if Python must."""
    if clouds.begun[cloud] == clouds.now[RUNS]:
        return True
    if clouds.age_rooms[cloud] == 0 or clouds.laws.evident[clouds.first_homes[cloud]] != 0:
        return False
    first = clouds.cell_starts[cloud]
    for i in range(DENSE * clouds.sizes[cloud] * clouds.sizes[cloud]):
        clouds.cells[first + i] = 0.0
    clouds.num_ages[cloud] = DENSE
    clouds.renewals[cloud] = 0
    clouds.begun[cloud] = clouds.now[RUNS]
    return True


@kernel
def _arm_of(clouds: Clouds, cloud: int) -> ArmParticles:
    """A cloud as an arm by itself: its counts, a copy of its logits, room for the rest."""
    home, size = clouds.homes[cloud], clouds.sizes[cloud]
    law, num_rows = clouds.first_homes[cloud], clouds.num_rows[cloud]
    starts = clouds.laws.starts
    free = starts[(law + 1) * LAW_STARTS + FREE_NUMBERS] - starts[law * LAW_STARTS + FREE_NUMBERS]
    count = clouds.num_particles[cloud]
    logits = np.empty((free, count))
    first = clouds.logit_starts[home]
    for i in range(free):
        for m in range(count):
            logits[i, m] = clouds.logits[first + i * count + m]
    first, space = clouds.age_starts[cloud], clouds.age_rooms[cloud]
    cells = clouds.cell_starts[cloud]
    return ArmParticles(
        clouds.ages[first : first + space],
        clouds.cells[cells : cells + space * size * size].reshape((space, size, size)),
        logits,
        np.empty((num_rows, size, count)),
        np.empty(count),
        clouds.worths[cloud : cloud + 1],
        clouds.num_ages[cloud : cloud + 1],
        clouds.renewals[cloud : cloud + 1],
    )


@kernel
def _counts_of(arm: ArmParticles) -> Counts:
    """The ages at which something was counted, and the counts."""
    used, size = 0, arm.cells.shape[1]
    ages = np.empty(arm.num_ages[0], dtype=np.int64)
    cells = np.empty((arm.num_ages[0], size, size))
    for i in range(arm.num_ages[0]):
        some = False
        for s in range(size):
            for j in range(size):
                cells[used, s, j] = arm.cells[i, s, j]
                some |= arm.cells[i, s, j] > 0.0
        ages[used] = arm.ages[i]
        used += some
    return Counts(ages[:used], cells[:used])


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


@hot_kernel
def renewal_key(where: IntArray, group: int) -> np.uint64:
    """Key of all renewals of a group; Python calls it as `np.uint64(renewal_key(...))`."""
    return key_at(_opened(where).clouds.keys[0], group)


@hot_kernel
def take_weights(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Copy the weights of a group."""
    whole = _opened(where)
    rows, home = whole.slots.row_counts[group], whole.weights.homes[group]
    count, m = len(arm.weights), 0
    for lane in range(LANES):
        for row in range(rows):
            if m < count:
                arm.weights[m] = whole.weights.numbers[home + row * LANES + lane]
            m += 1


@hot_kernel
def put(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Let a group, which has homes of its own, have these particles and weights."""
    put_particles(where, group, arm)
    whole = _opened(where)
    slots, weights = whole.slots, whole.weights
    rows, first = slots.row_counts[group], weights.homes[group]
    for m in range((2 * rows + rows // BLOCK + 2) * LANES):
        weights.numbers[first + m] = 0.0
    _write_lanes(arm.weights, 0.0, weights.numbers, first, rows)
    weights.changed[group] = True
    add_up(slots, weights, group)


@hot_kernel
def put_particles(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Let a group have these particles, in a home of its own."""
    whole = _opened(where)
    slots, clouds = whole.slots, whole.clouds
    rows, cloud = slots.row_counts[group], clouds.groups[group]
    home = clouds.own_homes[cloud]
    clouds.homes[cloud] = home
    clouds.filled[home] = 0
    clouds.ready[cloud] = 0
    for k in range(len(slots.groups)):
        if slots.groups[k] == group:
            slots.offsets[k] = clouds.row_starts[home]
    first, count = clouds.logit_starts[home], len(arm.weights)
    for i in range(len(arm.logits)):
        for m in range(count):
            clouds.logits[first + i * count + m] = arm.logits[i, m]
    entry = clouds.chain_starts[home]
    for r in range(arm.matrices.shape[0]):
        for j in range(arm.matrices.shape[1]):
            _write_lanes(arm.matrices[r, j], arm.matrices[r, j, 0], clouds.chains, entry, rows)
            entry += rows * LANES


@part
def _write_lanes(
    numbers: FloatArray, filler: float, target: FloatArray, first: int, rows: int
) -> None:
    """Write numbers by slot [M] in rows of LANES: slot c is in row c % rows of lane c // rows."""
    m = 0
    for lane in range(LANES):
        for row in range(rows):
            target[first + row * LANES + lane] = numbers[m] if m < len(numbers) else filler
            m += 1
