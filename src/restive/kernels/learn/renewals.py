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
    PRIOR_STARTS,
    ROWS,
    RUNS,
    SIGHTING,
    ParticleGroups,
    Slots,
    Weights,
)
from restive.kernels.random import key_at

__all__ = [
    "ONE_T",
    "Posterior",
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


class Posterior(NamedTuple):
    """The posterior of a learner, of which some groups have particles."""

    slots: Slots
    weights: Weights
    particles: ParticleGroups


_opened = opener(Posterior)


@kernel
def renew_spent(where: IntArray) -> bool:
    """Renew the particles of all groups that must be; whether some are left that need Python."""
    whole = _opened(where)
    some_left = False
    for group in range(len(whole.particles.number_of)):
        if is_spent(whole.slots, whole.weights, whole.particles, group):
            some_left |= not renew_around_fit(where, group)
    return some_left


@hot_kernel
def spent_groups(where: IntArray, spent: BoolArray) -> None:
    """Tell which groups' particles [groups] must be renewed."""
    whole = _opened(where)
    for group in range(len(spent)):
        spent[group] = is_spent(whole.slots, whole.weights, whole.particles, group)


@kernel
def renew_around_fit(where: IntArray, group: int) -> bool:
    """Count a group's sightings and draw its particles from one t that fits the old ones.

    False where they are as before: if the effective size would be too small, if too many numbers
    are free, or if there is no room yet for particles or counts.
    """
    particles = _opened(where).particles
    particle_group = particles.number_of[group]
    rows = _rows_of(particles, particle_group)
    if (
        len(rows.columns) > FEW
        or particles.own_homes[particle_group] < 0
        or not _begin(particles, particle_group)
    ):
        return False
    arm = _arm_of(particles, particle_group)
    if not count_sightings(where, particle_group, arm):
        return False
    take_weights(where, group, arm)
    count = len(arm.weights)
    centre, root = fit_particles(arm.logits, arm.weights)
    log_q, logs, weights = np.empty(count), np.empty(count), np.empty(count)
    key = key_at(key_at(renewal_key(where, group), arm.renewals[0]), ONE_T)
    draw_around(centre, root, rows.generators, key, arm.logits, log_q)
    place_rows(rows, arm.logits, arm.matrices, logs)
    add_log_likelihood(_counts_of(arm), arm.matrices, logs)
    effective_size = weigh(logs - log_q, weights)[0]
    if effective_size < particles.priors.enough[particles.first_homes[particle_group]]:
        return False
    arm.weights[:] = weights
    arm.effective_size[0] = effective_size
    arm.renewals[0] += 1
    put(where, group, arm)
    return True


@inlined
def _rows_of(particles: ParticleGroups, particle_group: int) -> DirichletRows:
    """What is fixed of a particle group's prior."""
    laws, size = particles.priors, particles.sizes[particle_group]
    law = particles.first_homes[particle_group]
    begin = laws.starts[law * PRIOR_STARTS : (law + 1) * PRIOR_STARTS]
    end = laws.starts[(law + 1) * PRIOR_STARTS : (law + 2) * PRIOR_STARTS]
    return DirichletRows(
        laws.alphas[begin[ENTRIES] : end[ENTRIES]].reshape(
            (particles.num_rows[particle_group], size)
        ),
        laws.totals[begin[ROWS] : end[ROWS]],
        laws.references[begin[ROWS] : end[ROWS]],
        laws.firsts[begin[ROWS] + law : end[ROWS] + law + 1],
        laws.columns[begin[FREE_NUMBERS] : end[FREE_NUMBERS]],
        laws.precisions[begin[FREE_NUMBERS] : end[FREE_NUMBERS]],
        laws.generators[begin[GENERATORS] : end[GENERATORS]],
    )


@part
def _begin(particles: ParticleGroups, particle_group: int) -> bool:
    """See to it that a particle group's counts are of this run; False if Python must."""
    if particles.begun[particle_group] == particles.now[RUNS]:
        return True
    if (
        particles.age_capacities[particle_group] == 0
        or particles.priors.evident[particles.first_homes[particle_group]] != 0
    ):
        return False
    first = particles.cell_starts[particle_group]
    for i in range(DENSE * particles.sizes[particle_group] * particles.sizes[particle_group]):
        particles.cells[first + i] = 0.0
    particles.num_ages[particle_group] = DENSE
    particles.renewals[particle_group] = 0
    particles.begun[particle_group] = particles.now[RUNS]
    return True


@kernel
def _arm_of(particles: ParticleGroups, particle_group: int) -> ArmParticles:
    """A particle group as an arm by itself: its counts, a copy of its logits, room for the rest."""
    home, size = particles.homes[particle_group], particles.sizes[particle_group]
    law, num_rows = particles.first_homes[particle_group], particles.num_rows[particle_group]
    starts = particles.priors.starts
    free = (
        starts[(law + 1) * PRIOR_STARTS + FREE_NUMBERS] - starts[law * PRIOR_STARTS + FREE_NUMBERS]
    )
    count = particles.num_particles[particle_group]
    logits = np.empty((free, count))
    first = particles.logit_starts[home]
    for i in range(free):
        for m in range(count):
            logits[i, m] = particles.logits[first + i * count + m]
    first, space = particles.age_starts[particle_group], particles.age_capacities[particle_group]
    cells = particles.cell_starts[particle_group]
    return ArmParticles(
        particles.ages[first : first + space],
        particles.cells[cells : cells + space * size * size].reshape((space, size, size)),
        logits,
        np.empty((num_rows, size, count)),
        np.empty(count),
        particles.effective_sizes[particle_group : particle_group + 1],
        particles.num_ages[particle_group : particle_group + 1],
        particles.renewals[particle_group : particle_group + 1],
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
def count_sightings(where: IntArray, particle_group: int, arm: ArmParticles) -> bool:
    """Count what was written down of a particle group, in order; False if there is no room."""
    particles = _opened(where).particles
    while particles.firsts[particle_group] >= 0:
        at = particles.firsts[particle_group] * SIGHTING
        numbers = particles.sightings[at : at + SIGHTING]
        if not count_one(arm, numbers[1], numbers[2], numbers[3], 1.0):
            return False
        particles.firsts[particle_group] = numbers[0]
    return True


@hot_kernel
def renewal_key(where: IntArray, group: int) -> np.uint64:
    """Key of all renewals of a group; Python calls it as `np.uint64(renewal_key(...))`."""
    return key_at(_opened(where).particles.keys[0], group)


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
    slots, particles = whole.slots, whole.particles
    rows, particle_group = slots.row_counts[group], particles.number_of[group]
    home = particles.own_homes[particle_group]
    particles.homes[particle_group] = home
    particles.filled[home] = 0
    particles.ready[particle_group] = 0
    for k in range(len(slots.groups)):
        if slots.groups[k] == group:
            slots.offsets[k] = particles.row_starts[home]
    first, count = particles.logit_starts[home], len(arm.weights)
    for i in range(len(arm.logits)):
        for m in range(count):
            particles.logits[first + i * count + m] = arm.logits[i, m]
    entry = particles.chain_starts[home]
    for r in range(arm.matrices.shape[0]):
        for j in range(arm.matrices.shape[1]):
            _write_lanes(arm.matrices[r, j], arm.matrices[r, j, 0], particles.chains, entry, rows)
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
