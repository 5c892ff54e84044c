"""Following the mean of an index: over several draws of each arm, or over its whole posterior.

Where tables of all candidates are there, the index of an arm is looked up in those that count and
averaged anew in every step: the mean over m draws goes by how often each was drawn, the mean over
the posterior by the weights. Values are compared as they are, and the lowest arm wins ties.
"""

from __future__ import annotations

import numpy as np

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.particle_groups import has_particles
from restive.kernels.learn.weights import lifts_at
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.choosing import top_arms
from restive.kernels.loop.tables import IndexLookup, cell_of

__all__ = ["choose_by_mean", "mean_index"]


@part
def choose_by_mean(actor: Actor, t: int, count: int, with_particles: bool | None) -> None:
    """Write the `count` arms of the largest mean indices now, among those that are available."""
    values = actor.lookup.values
    for k in range(len(values)):
        values[k] = mean_index(actor, k, t, with_particles)
    if actor.role[0].masked != 0:
        for k in range(len(values)):
            if not actor.available[k]:
                values[k] = -np.inf
    top_arms(values, actor.chosen, count)


@part
def mean_index(actor: Actor, k: int, t: int, with_particles: bool | None) -> float:
    """Mean of arm k's index at time t, over what was drawn for it or over the posterior."""
    slots, weights, lookup = actor.posterior.slots, actor.posterior.weights, actor.lookup
    group = slots.groups[k]
    # Kinds are numbered by slot; those of a home of particles from a number of their own.
    first, kinds, home_kinds = slots.kind_offsets[k], slots.kinds, -1
    if with_particles is not None and has_particles(actor.posterior, group):
        particles = actor.posterior.particles
        home_kinds = lookup.home_kinds[particles.homes[particles.number_of[group]]]
    state, age = actor.meta.last_state[k], t - actor.meta.seen[k]
    draws = actor.episodes.rules[0].draws
    total = 0.0
    if draws > 0:
        for i in range(draws):
            drawn = weights.drawn[place(i * len(weights.homes) + group)]
            kind = home_kinds + drawn if home_kinds >= 0 else kinds[place(first + drawn)]
            total += _index(lookup, kind, state, age)
        return total / draws
    rows, home = slots.row_counts[group], weights.homes[group]
    lifts = lifts_at(home, rows)
    mass = 0.0
    for lane in range(LANES):
        for row in range(rows):
            j = row * LANES + lane
            weight = weights.numbers[place(home + j)]
            # fillers weigh nothing and have no kind; what is lifted is below 2^-600 of the rest
            if weight > 0.0 and weights.numbers[place(lifts + j)] == 0.0:
                slot = lane * rows + row
                kind = home_kinds + slot if home_kinds >= 0 else kinds[place(first + slot)]
                total += weight * _index(lookup, kind, state, age)
                mass += weight
    return total / mass


@inlined
def _index(lookup: IndexLookup, kind: int, state: int, age: int) -> float:
    """Index of an arm of this kind that was seen in `state` so many steps ago."""
    cell = cell_of(state, age, lookup.lengths[place(kind)])
    return float(lookup.indices[place(lookup.offsets[place(kind)] + cell)])
