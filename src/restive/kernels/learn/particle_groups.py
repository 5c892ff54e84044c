"""Arms with continuous priors in the loop: their likelihoods are made as they are needed.

Weights of particles are multiplied and drawn from as those of candidates are
(`kernels.learn.weights`). What is different: likelihoods are filled in age by age; what was seen is
written down, to be counted; and where the effective sample size is too small at the beginning of an
episode, particles are renewed (`renewals`), or the loop returns, for Python to do it
(`restive.learn.particles`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.jit.vectors import LANES, load, plus, store, times
from restive.kernels.learn.particles import DENSE, LOST
from restive.kernels.learn.weights import sum_of_squares, total_of
from restive.kernels.loop.tables import SIGHTING, ParticleGroups, Posterior, cell_of

FloatArray = NDArray[np.float64]

__all__ = [
    "bases_at",
    "central_slot",
    "forget_particles",
    "has_particles",
    "has_renewed",
    "impossible_for_particles",
    "is_noted",
    "is_spent",
    "must_count",
    "prepare_sighting",
    "require_likelihoods",
    "take_central_slots",
]


@part
def forget_particles(posterior: Posterior) -> None:
    """Go back to the points that stand for the priors."""
    slots, particles = posterior.slots, posterior.particles
    for particle_group in range(len(particles.homes)):
        particles.homes[particle_group] = particles.first_homes[particle_group]
        particles.effective_sizes[particle_group] = particles.first_effective_sizes[particle_group]
        particles.firsts[particle_group] = -1
        particles.ready[particle_group] = 0
    for k in range(len(slots.groups)):
        if has_particles(posterior, slots.groups[k]):
            particle_group = particles.number_of[slots.groups[k]]
            slots.offsets[k] = particles.row_starts[particles.homes[particle_group]]
    particles.now[0].num_sightings = 0
    particles.now[0].runs += 1


@inlined
def has_particles(posterior: Posterior, group: int) -> bool:
    """Whether a group has a continuous prior."""
    particles = posterior.particles
    return len(particles.number_of) > 0 and particles.number_of[place(group)] >= 0


@inlined
def has_renewed(posterior: Posterior, group: int) -> bool:
    """Whether a particle group has particles of its own, not its prior's points."""
    particles = posterior.particles
    own = particles.number_of[place(group)]
    return bool(particles.homes[own] != particles.first_homes[own])


@inlined
def bases_at(posterior: Posterior, group: int) -> int:
    """Where the logarithms stand of what a group's weights would be had nothing been seen."""
    particles, width = posterior.particles, posterior.slots.row_counts[place(group)] * LANES
    own = particles.number_of[place(group)]
    matrices = particles.num_rows[own] * particles.sizes[own] * width
    return int(particles.chain_starts[particles.homes[own]] + matrices)


@inlined
def is_noted(posterior: Posterior) -> bool:
    """Whether some sightings are written down and not counted."""
    particles = posterior.particles
    return len(particles.number_of) > 0 and bool(particles.now[0].num_sightings > 0)


@inlined
def must_count(posterior: Posterior) -> bool:
    """Whether sightings must be counted so that there is room for those of another step."""
    slots, particles = posterior.slots, posterior.particles
    used = (particles.now[0].num_sightings + len(slots.groups)) * SIGHTING
    return len(particles.number_of) > 0 and bool(used > len(particles.sightings))


@inlined
def prepare_sighting(posterior: Posterior, k: int, last_state: int, age: int, seen: int) -> bool:
    """Count that arm k was seen `age` steps after it was, and see to the likelihoods of that age.

    Tells whether they are not kept: the sighting must then be multiplied as soon as it is taken in.
    """
    slots, particles = posterior.slots, posterior.particles
    particle_group = particles.number_of[place(slots.groups[place(k)])]
    if age <= particles.ready[place(particle_group)]:
        _count(particles, particle_group, last_state, age, seen)
        return False
    return _prepare_unready(posterior, k, particle_group, last_state, age, seen)


@inlined
def _count(
    particles: ParticleGroups, particle_group: int, last_state: int, age: int, seen: int
) -> None:
    own = place(particle_group)
    size = particles.sizes[own]
    cell = ((age - 1) * size + last_state) * size + seen
    particles.cells[place(particles.cell_starts[own] + cell)] += 1.0


@part
def _prepare_unready(
    posterior: Posterior, k: int, particle_group: int, last_state: int, age: int, seen: int
) -> bool:
    """Do so where something may be missing; what cannot be counted yet is written down."""
    slots, particles = posterior.slots, posterior.particles
    begun = particles.begun[particle_group] == particles.now[0].runs
    if begun and age <= DENSE:
        _count(particles, particle_group, last_state, age, seen)
    else:
        _write_down(particles, particle_group, last_state, age, seen)
    filled, home = particles.filled, particles.homes[particle_group]
    if age > filled[home]:
        require_likelihoods(posterior, k, last_state, age)
    particles.ready[particle_group] = min(filled[home], DENSE) if begun else 0
    return bool(age >= slots.lengths[k])


@inlined
def _write_down(
    particles: ParticleGroups, particle_group: int, last_state: int, age: int, seen: int
) -> None:
    number, own = particles.now[0].num_sightings, place(particle_group)
    at = place(number * SIGHTING)
    particles.sightings[at] = -1
    particles.sightings[at + place(1)] = last_state
    particles.sightings[at + place(2)] = age
    particles.sightings[at + place(3)] = seen
    particles.now[0].num_sightings = number + 1
    if particles.firsts[own] < 0:
        particles.firsts[own] = number
    else:
        particles.sightings[place(particles.lasts[own] * SIGHTING)] = number
    particles.lasts[own] = number


@part
def require_likelihoods(posterior: Posterior, k: int, last_state: int, age: int) -> None:
    """See to it that the likelihoods of arm k at an age are there.

    Those of ages that are not kept take turns on the last place, on which nothing waits
    (`prepare_sighting`).
    """
    slots, particles = posterior.slots, posterior.particles
    home = particles.homes[particles.number_of[slots.groups[k]]]
    if age >= slots.lengths[k]:
        _write_old(posterior, k, home, last_state, age)
    else:
        while particles.filled[home] < age:
            _fill_next(posterior, k, home)


@part
def _fill_next(posterior: Posterior, k: int, home: int) -> None:
    """Write the likelihoods of arm k's particles at the next age: b(s, n) = b(s, n - 1) P."""
    slots, particles = posterior.slots, posterior.particles
    size, length = slots.sizes[k], slots.lengths[k]
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    row = size * width
    chains, likelihoods = particles.chain_starts[home], slots.likelihoods
    n = particles.filled[home]
    passive = chains + (particles.num_rows[particles.number_of[group]] - size) * row
    for s in range(size):
        target = particles.row_starts[home] + (s * length + n) * row
        if n == 0:
            for j in range(row):
                likelihoods[place(target + j)] = particles.chains[place(chains + s * row + j)]
        else:
            _multiply(likelihoods, target - row, target, particles.chains, passive, size, width)
    particles.filled[home] = n + 1


@inlined
def _multiply(
    rows: FloatArray, row: int, result: int, matrices: FloatArray, matrix: int, size: int,
    width: int,
) -> None:  # fmt: skip
    """Write the products of rows [size, width] and matrices [size, size, width].

    The row and the result begin where they say in `rows`, the matrix in `matrices`.
    """
    for j in range(size):
        for m in range(0, width, LANES):
            product = times(
                load(rows, place(row + m)), load(matrices, place(matrix + j * width + m))
            )
            for i in range(1, size):
                entry = matrix + (i * size + j) * width + m
                share = load(rows, place(row + i * width + m))
                product = plus(product, times(share, load(matrices, place(entry))))
            store(rows, place(result + j * width + m), product)


@part
def _write_old(posterior: Posterior, k: int, home: int, last_state: int, age: int) -> None:
    """Write the likelihoods of arm k's particles at an age that is not kept."""
    slots, particles = posterior.slots, posterior.particles
    group = slots.groups[k]
    particle_group, size = particles.number_of[group], slots.sizes[k]
    width = slots.row_counts[group] * LANES
    target = particles.row_starts[home] + ((last_state + 1) * slots.lengths[k] - 1) * size * width
    chains = particles.chain_starts[home]
    if size == 2 and particles.num_rows[particle_group] == 2:
        _write_channel(posterior, chains, target, width, last_state, age)
    else:
        passive = chains + (particles.num_rows[particle_group] - size) * size * width
        _write_beliefs(particles, chains, passive, width, size, last_state, age)
        for j in range(size * width):
            slots.likelihoods[target + j] = particles.scratch[j]


@inlined
def _write_channel(
    posterior: Posterior, chains: int, target: int, width: int, last_state: int, age: int
) -> None:
    """Two states and one matrix: the chance to be in the other is p (1 - rho^n) / (1 - rho).

    rho^n is made by squaring; 1 - rho is p01 + p10, and all particles do the same.
    """
    slots, particles = posterior.slots, posterior.particles
    numbers, power = particles.chains, particles.scratch
    up, down = chains + width, chains + 2 * width
    for j in range(width):
        power[place(j)] = 1.0
        power[place(width + j)] = 1.0 - (numbers[place(up + j)] + numbers[place(down + j)])
    steps = age
    while steps > 0:
        if steps & 1:
            for j in range(width):
                power[place(j)] *= power[place(width + j)]
        steps >>= 1
        for j in range(width):
            power[place(width + j)] *= power[place(width + j)]
    leaving = up if last_state == 0 else down
    stayed, left = target + last_state * width, target + (1 - last_state) * width
    for j in range(width):
        both = numbers[place(up + j)] + numbers[place(down + j)]
        moved = min(numbers[place(leaving + j)] * ((1.0 - power[place(j)]) / both), 1.0)
        slots.likelihoods[place(left + j)] = moved
        slots.likelihoods[place(stayed + j)] = 1.0 - moved


@part
def _write_beliefs(
    particles: ParticleGroups,
    chains: int,
    passive: int,
    width: int,
    size: int,
    last_state: int,
    age: int,
) -> None:
    """Write b(last_state, age) of all particles [size, width] to `scratch`, by squaring.

    The scratch holds the row, a row to spare, the power of the matrix and its square.
    """
    scratch = particles.scratch
    row = size * width
    power, square = 2 * row, 2 * row + size * row
    for j in range(row):
        scratch[j] = particles.chains[chains + last_state * row + j]
    for j in range(size * row):
        scratch[power + j] = particles.chains[passive + j]
    steps = age - 1
    while steps > 0:
        if steps & 1:
            for j in range(row):
                scratch[row + j] = scratch[j]
            _multiply(scratch, row, 0, scratch, power, size, width)
        steps >>= 1
        if steps > 0:
            for s in range(size):
                _multiply(scratch, power + s * row, square + s * row, scratch, power, size, width)
            for j in range(size * row):
                scratch[power + j] = scratch[square + j]


@inlined
def is_spent(posterior: Posterior, group: int) -> bool:
    """Whether a group's effective size is below a quarter of what it was after its renewal."""
    weights, particles = posterior.weights, posterior.particles
    if not (has_particles(posterior, group) and weights.changed[group]):
        return False
    total = total_of(posterior, group)
    squares = sum_of_squares(posterior, group)
    return bool(
        total * total < LOST * particles.effective_sizes[particles.number_of[group]] * squares
    )


@part
def impossible_for_particles(
    posterior: Posterior, k: int, last_state: int, age: int, seen: int
) -> bool:
    """Whether no particle that is left allows a sighting."""
    slots, weights = posterior.slots, posterior.weights
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    require_likelihoods(posterior, k, last_state, age)
    cell = cell_of(last_state, age, slots.lengths[k])
    first = slots.offsets[k] + (cell * slots.sizes[k] + seen) * width
    home = weights.homes[group]
    for j in range(width):
        if weights.numbers[home + j] > 0.0 and slots.likelihoods[first + j] > 0.0:
            return False
    return True


@part
def take_central_slots(posterior: Posterior) -> None:
    """Take the central particle of every group whose weights have changed."""
    weights, particles = posterior.weights, posterior.particles
    for group in range(len(particles.number_of)):
        if has_particles(posterior, group) and weights.changed[group]:
            weights.drawn[group] = central_slot(posterior, group)
            weights.changed[group] = False


@part
def central_slot(posterior: Posterior, group: int) -> int:
    """Slot of a group's particle that is closest to their mean.

    A particle's weight says how much it stands for and not how likely it is, so the heaviest one
    means nothing.
    """
    slots, weights, particles = posterior.slots, posterior.weights, posterior.particles
    particle_group = particles.number_of[group]
    rows = slots.row_counts[group]
    width = rows * LANES
    home = weights.homes[group]
    chains = particles.chain_starts[particles.homes[particle_group]]
    for j in range(width):
        particles.scratch[j] = 0.0
    for entry in range(particles.num_rows[particle_group] * particles.sizes[particle_group]):
        first = chains + entry * width
        total, mean = 0.0, 0.0
        for j in range(width):
            total += weights.numbers[home + j]
            mean += weights.numbers[home + j] * particles.chains[first + j]
        for j in range(width):
            apart = particles.chains[first + j] - mean / total
            particles.scratch[j] += apart * apart
    best, least = 0, np.inf
    for j in range(width):
        if weights.numbers[home + j] > 0.0 and particles.scratch[j] < least:
            best, least = j, particles.scratch[j]
    return int((best % LANES) * rows + best // LANES)
