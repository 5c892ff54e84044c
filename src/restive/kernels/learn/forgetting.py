"""Forgetting: what was seen counts less as time goes by.

The posterior is the prior, given evidence that decays. Every so many steps all that was seen so far
loses the same share of its weight: likelihoods are raised to a power below 1, counts are multiplied
by it. Nothing becomes possible again that was ruled out.

With particles it is the same: a particle's weight is its likelihood times what its weight would be
had nothing been seen, which follows from how it was drawn and is remembered.
"""

from __future__ import annotations

from math import inf

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.particle_groups import bases_at, has_particles, has_renewed
from restive.kernels.learn.weights import lifts_at, multiply_pending, own_home, rescale
from restive.kernels.loop.tables import LIFTED, ParticleGroups, Posterior, cell_of

__all__ = ["fade_counts", "fade_weights", "take_in_faded"]

LN2 = 0.6931471805599453
FAINTEST = 2.0**-40  # of a sighting: less is as good as none, and would cost time


@part
def fade_weights(
    posterior: Posterior, share: float, laws_learnt: int, with_particles: bool | None
) -> None:
    """Let what was seen weigh `share` of what it did: w = p (w / p)^share, p without it.

    p is the law of the arm's kind, once that has been learnt.
    """
    weights = posterior.weights
    law = weights.status[0].shared // 2 if laws_learnt > 0 else 0
    for group in range(len(weights.homes)):
        multiply_pending(posterior, group)
        if weights.homes[group] >= weights.status[0].shared:  # or nothing was seen of it
            first, bases = weights.first_homes[group], -1
            if with_particles is not None and has_particles(posterior, group):
                if has_renewed(posterior, group):
                    bases = bases_at(posterior, group)
            else:
                first += law
            _fade(posterior, group, share, first, bases)


@part
def _fade(posterior: Posterior, group: int, share: float, first: int, bases: int) -> None:
    """Fade the weights of a group; without what was seen they are at `first`, or at `bases`."""
    slots, weights = posterior.slots, posterior.weights
    numbers, rows, home = weights.numbers, slots.row_counts[group], weights.homes[group]
    lifts, first_lifts = lifts_at(home, rows), lifts_at(first, rows)
    rescale(posterior, group)  # weights that mean the same are the same: so are their logarithms
    largest = -inf
    for j in range(rows * LANES):
        now, log = numbers[place(home + j)], -inf
        if bases >= 0:
            prior = posterior.particles.chains[place(bases + j)]
        else:
            prior = _log_of(numbers[place(first + j)], numbers[place(first_lifts + j)])
        if now > 0.0 and prior > -inf:
            seen = _log_of(now, numbers[place(lifts + j)]) - prior
            log = prior + share * seen
            largest = max(largest, log)
        numbers[place(home + j)] = log
    for j in range(rows * LANES):
        log, lift = numbers[place(home + j)], 0
        if log > -inf:
            lift = max(LIFTED - int((log - largest) / LN2), 0)
            numbers[place(home + j)] = exponential(log - largest + LN2 * lift)
        else:
            numbers[place(home + j)] = 0.0
        numbers[place(lifts + j)] = lift
    _settle(posterior, group)


@inlined
def _log_of(weight: float, lift: float) -> float:
    """Logarithm of what a weight means."""
    return logarithm(weight) - LN2 * lift if weight > 0.0 else -inf


@inlined
def _settle(posterior: Posterior, group: int) -> None:
    rescale(posterior, group)
    posterior.weights.lost[group] = 0
    posterior.weights.changed[group] = True


@part
def take_in_faded(
    posterior: Posterior, k: int, last_state: int, age: int, seen: int, weight: float
) -> None:
    """Learn of a sighting that has lost weight: its likelihood is raised to that power."""
    slots, weights = posterior.slots, posterior.weights
    group = slots.groups[k]
    rows = slots.row_counts[group]
    multiply_pending(posterior, group)
    source = weights.homes[group]
    if source >= weights.status[0].shared:
        rescale(posterior, group)
    home = own_home(posterior, place(group))
    row = cell_of(last_state, age, slots.lengths[k]) * slots.sizes[k] + seen
    likelihoods = slots.offsets[k] + row * rows * LANES
    for j in range(rows * LANES):
        chance, held = slots.likelihoods[place(likelihoods + j)], weights.numbers[place(source + j)]
        if chance > 0.0 and held > 0.0:
            held *= exponential(weight * logarithm(chance))
        else:
            held = 0.0
        weights.numbers[place(home) + place(j)] = held
    _settle(posterior, group)


@part
def fade_counts(posterior: Posterior, share: float) -> None:
    """Let what was counted weigh `share` of what it did; nothing is written down."""
    groups, particles = posterior.conjugates, posterior.particles
    for i in range(len(groups.counts)):
        groups.counts[i] = _less(groups.counts[i], share)
    for group in range(len(groups.number_of)):
        if groups.number_of[group] >= 0:
            posterior.weights.changed[group] = True
    for own in range(len(particles.homes)):
        if particles.begun[own] == particles.now[0].runs:
            _fade_cells(particles, own, share)


@part
def _fade_cells(particles: ParticleGroups, own: int, share: float) -> None:
    size, first = particles.sizes[own], particles.cell_starts[own]
    for i in range(particles.num_ages[own] * size * size):
        count = particles.cells[place(first + i)]
        if count > 0.0:
            particles.cells[place(first + i)] = _less(count, share)


@inlined
def _less(count: float, share: float) -> float:
    less = count * share
    return less if less > FAINTEST else 0.0
