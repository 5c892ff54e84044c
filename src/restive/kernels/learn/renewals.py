"""Renewal of particles in the loop's arrays: the way that nearly always suffices.

`restive.learn.particles.drawing` has all ways; what is here is its first, for as many groups as are
due. All that it makes stands in `ParticleGroups.renewal`, so that it can be a part of hot loops,
which make no arrays: an arm's logits [d, M], matrices [R, S, M] and weights [M], then scratch
of `draw_weighed` [7 + d, M], the beliefs that the likelihood needs and, at the end,
centre [d] and root [d, d] of the t.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part
from restive.kernels.jit.handles import opener
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.dirichlet import DirichletRows
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import AgedBeliefs, Counts, levels_of
from restive.kernels.learn.particle_groups import bases_at, is_spent
from restive.kernels.learn.particles import DENSE, ArmParticles, count_one
from restive.kernels.learn.proposals import Student, draw_weighed, write_proposal
from restive.kernels.learn.weights import add_up
from restive.kernels.loop.tables import BLOCK, SIGHTING, ParticleGroups, Posterior
from restive.kernels.random import key_at

__all__ = [
    "ONE_T",
    "count_sightings",
    "must_renew",
    "put",
    "put_particles",
    "renew_around_fit",
    "renewal_key",
    "renewal_size",
    "spent_groups",
    "take_weights",
]

ONE_T = 1  # place of the key, as in `restive.learn.particles.drawing`
MOST_LEVELS = 20  # powers of matrices: wider gaps than 2^20 steps between ages are left to Python

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


_opened = opener(Posterior)


@part
def must_renew(posterior: Posterior) -> bool:
    """Renew particles of too small an effective size; tell whether some are left for Python."""
    some_left = False
    for group in range(len(posterior.particles.number_of)):
        if is_spent(posterior, group):
            some_left |= not _renew(posterior, group)
    return some_left


@hot_kernel
def spent_groups(where: IntArray, spent: BoolArray) -> None:
    """Tell which groups' particles [groups] must be renewed."""
    posterior = _opened(where)
    for group in range(len(spent)):
        spent[group] = is_spent(posterior, group)


@hot_kernel
def renew_around_fit(where: IntArray, group: int) -> bool:
    """Renew a group's particles, for Python; False where they are as before."""
    return _renew(_opened(where), group)


@part
def _renew(posterior: Posterior, group: int) -> bool:
    """Count a group's sightings and draw its particles from one t that fits the old ones.

    False where they are as before: if the effective size would be too small, if too many numbers
    are free, or if there is no room yet for particles, counts or powers.
    """
    particles = posterior.particles
    own = particles.number_of[group]
    rows = _rows_of(particles, own)
    if len(rows.columns) > FEW or particles.own_homes[own] < 0 or not _begin(particles, own):
        return False
    fades = particles.now[0].fades != 0
    if fades and particles.priors.evident[particles.first_homes[own]] != 0:
        return False  # what was seen beforehand does not fade, and is not among the counts
    arm = _arm_of(particles, own)
    if not _count(particles, own, arm):
        return False
    counts = Counts(arm.ages[: arm.num_ages[0]], arm.cells[: arm.num_ages[0]])
    levels = levels_of(counts)
    if levels > MOST_LEVELS:
        return False
    _take_weights(posterior, group, arm)
    d, count = arm.logits.shape
    num_rows, size, _ = arm.matrices.shape
    rest = particles.renewal[count * (d + num_rows * size + 1) :]
    scratch = rest[: (7 + d) * count].reshape((7 + d, count))
    aged = _beliefs(arm.matrices, rest[(7 + d) * count :], levels)
    end = len(rest) - d * d
    centre, root = rest[end - d : end], rest[end:].reshape((d, d))
    write_proposal(arm.logits, arm.weights, centre, root)
    key = key_at(key_at(_key(particles, group), arm.renewals[0]), ONE_T)
    student = Student(centre, root)
    effective_size = draw_weighed(rows, counts, aged, student, key, arm.logits, scratch)[0]
    if effective_size < particles.priors.enough[particles.first_homes[own]]:
        return False
    for m in range(count):
        arm.weights[m] = scratch[0, m]
    arm.effective_size[0] = effective_size
    arm.renewals[0] += 1
    _put(posterior, group, arm)
    if fades:
        first = bases_at(posterior, group)
        _write_lanes(scratch[1], -inf, particles.chains, first, posterior.slots.row_counts[group])
    return True


def renewal_size(d: int, num_rows: int, size: int, count: int) -> int:
    """Return the numbers of scratch that a renewal takes, for Python."""
    vectors = 7 + d + size * (size + 1) + MOST_LEVELS * size * size
    return count * (d + num_rows * size + 1 + vectors) + d + d * d


@inlined
def _beliefs(matrices: FloatArray, scratch: FloatArray, levels: int) -> AgedBeliefs:
    """Beliefs of matrices [R, S, M], in scratch."""
    _, size, count = matrices.shape
    row = size * count
    end = (size + 1 + levels * size) * row
    return AgedBeliefs(
        matrices,
        scratch[: size * row].reshape((size, size, count)),
        scratch[size * row : (size + 1) * row].reshape((size, count)),
        scratch[(size + 1) * row : end].reshape((levels, size, size, count)),
    )


@inlined
def _rows_of(particles: ParticleGroups, particle_group: int) -> DirichletRows:
    """What is fixed of a particle group's prior."""
    priors, size = particles.priors, particles.sizes[particle_group]
    prior = particles.first_homes[particle_group]
    begin, end = priors.starts[prior], priors.starts[prior + 1]
    return DirichletRows(
        priors.alphas[begin.entries : end.entries].reshape(
            (particles.num_rows[particle_group], size)
        ),
        priors.totals[begin.rows : end.rows],
        priors.references[begin.rows : end.rows],
        priors.firsts[begin.rows + prior : end.rows + prior + 1],
        priors.columns[begin.free_numbers : end.free_numbers],
        priors.precisions[begin.free_numbers : end.free_numbers],
        priors.generators[begin.generators : end.generators],
    )


@part
def _begin(particles: ParticleGroups, particle_group: int) -> bool:
    """See to it that a particle group's counts are of this run; False if Python must."""
    if particles.begun[particle_group] == particles.now[0].runs:
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
    particles.begun[particle_group] = particles.now[0].runs
    return True


@inlined
def _arm_of(particles: ParticleGroups, particle_group: int) -> ArmParticles:
    """A particle group as an arm by itself: its counts and, in scratch, a copy of its logits."""
    home, size = particles.homes[particle_group], particles.sizes[particle_group]
    prior, num_rows = particles.first_homes[particle_group], particles.num_rows[particle_group]
    starts = particles.priors.starts
    d = starts[prior + 1].free_numbers - starts[prior].free_numbers
    count = particles.num_particles[particle_group]
    scratch, logits = particles.renewal, particles.logits
    first = particles.logit_starts[home]
    for i in range(d * count):
        scratch[i] = logits[first + i]
    matrices = d * count + num_rows * size * count
    first, space = particles.age_starts[particle_group], particles.age_capacities[particle_group]
    cells = particles.cell_starts[particle_group]
    return ArmParticles(
        particles.ages[first : first + space],
        particles.cells[cells : cells + space * size * size].reshape((space, size, size)),
        scratch[: d * count].reshape((d, count)),
        scratch[d * count : matrices].reshape((num_rows, size, count)),
        scratch[matrices : matrices + count],
        particles.effective_sizes[particle_group : particle_group + 1],
        particles.num_ages[particle_group : particle_group + 1],
        particles.renewals[particle_group : particle_group + 1],
    )


@hot_kernel
def count_sightings(where: IntArray, particle_group: int, arm: ArmParticles) -> bool:
    """Count what was written down of a particle group, for Python."""
    return _count(_opened(where).particles, particle_group, arm)


@part
def _count(particles: ParticleGroups, particle_group: int, arm: ArmParticles) -> bool:
    """Count what was written down of a particle group, in order; False if there is no room."""
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
    return _key(_opened(where).particles, group)


@inlined
def _key(particles: ParticleGroups, group: int) -> np.uint64:
    return key_at(particles.keys[0], group)


@hot_kernel
def take_weights(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Copy the weights of a group, for Python."""
    _take_weights(_opened(where), group, arm)


@part
def _take_weights(posterior: Posterior, group: int, arm: ArmParticles) -> None:
    rows, home = posterior.slots.row_counts[group], posterior.weights.homes[group]
    count, m = len(arm.weights), 0
    for lane in range(LANES):
        for row in range(rows):
            if m < count:
                arm.weights[m] = posterior.weights.numbers[home + row * LANES + lane]
            m += 1


@hot_kernel
def put(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Let a group, which has homes of its own, have these particles and weights, for Python."""
    _put(_opened(where), group, arm)


@part
def _put(posterior: Posterior, group: int, arm: ArmParticles) -> None:
    _put_particles(posterior, group, arm)
    slots, weights = posterior.slots, posterior.weights
    rows, first = slots.row_counts[group], weights.homes[group]
    for m in range((2 * rows + rows // BLOCK + 2) * LANES):
        weights.numbers[first + m] = 0.0
    _write_lanes(arm.weights, 0.0, weights.numbers, first, rows)
    weights.changed[group] = True
    add_up(posterior, group)


@hot_kernel
def put_particles(where: IntArray, group: int, arm: ArmParticles) -> None:
    """Let a group have these particles, in a home of its own, for Python."""
    _put_particles(_opened(where), group, arm)


@part
def _put_particles(posterior: Posterior, group: int, arm: ArmParticles) -> None:
    slots, particles = posterior.slots, posterior.particles
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
