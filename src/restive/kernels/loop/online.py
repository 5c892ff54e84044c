"""The steps of a learner that is asked one by one, each in one call."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part
from restive.kernels.jit.handles import opener, where_wanted
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.channels import follow_channels
from restive.kernels.learn.episodes import note_visits, visit
from restive.kernels.learn.particle_groups import (
    central_slot,
    has_particles,
    must_count,
    prepare_sighting,
    require_likelihoods,
)
from restive.kernels.learn.weights import (
    add_up,
    draw_slot,
    likeliest_slot,
    multiply_all,
    multiply_pending,
    take_in,
)
from restive.kernels.loop.index_lookup import follow_all, follow_pulled
from restive.kernels.loop.steps import (
    GO,
    MASKED,
    TSDE,
    Actor,
    begin,
    choose,
    end_step,
    follow_drawn,
    start_over,
    take_in_arm,
    take_in_others,
    wrong_arm,
)
from restive.kernels.loop.tables import (
    BLOCK,
    DRAWS,
    FIXED_LIMIT,
    PICK_MODE,
    STANDS,
    TABLED,
    TIME,
    VALUED,
    Meta,
    cell_of,
)
from restive.kernels.random import uniform_at

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

__all__ = [
    "NOTE",
    "OnlineLearner",
    "begin_step",
    "bring_up_to_date",
    "could_see",
    "draw_again",
    "follow_again",
    "foresee",
    "late_sighting",
    "pass_steps",
    "reset",
    "see",
    "select",
    "settle",
]

NOTE = 4  # numbers of a note: arm, last state, age, state


class OnlineLearner(NamedTuple):
    """A learner that is asked step by step, and notes of what it has seen."""

    actor: Actor
    key: KeyArray  # [1] of its stream
    start_state: IntArray  # [K]
    start_elapsed: IntArray  # [K]
    notes: IntArray  # [notes * NOTE]
    num_notes: IntArray  # [1]
    one_arm: IntArray  # [1] scratch
    one_state: IntArray  # [1] scratch


_opened = opener(OnlineLearner)

# What `see` answers; otherwise 1 + the place of the arm that is wrong.
TAKEN_IN = 0
NOTES_FULL = -1
IMPOSSIBLE_BASE = 1 << 40  # added where no system allows what was seen


@hot_kernel
def reset(where: IntArray, with_particles: bool | None = None) -> None:
    """Go back to time 1."""
    learner = _opened(where)
    actor = learner.actor
    start_over(
        actor.who[0], actor.meta, actor.slots, actor.weights,
        where_wanted(with_particles, actor.particles), actor.episodes, actor.lookup,
        learner.start_state, learner.start_elapsed,
    )  # fmt: skip


# Kernels of steps are for TSDE and its relatives unless `others` is given; what belongs to the
# others is compiled only then (see `kernels.loop.steps`), and what belongs to continuous priors
# only where `with_particles` is given.


@hot_kernel
def begin_step(
    where: IntArray, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Do what is due; GO, or what Python must do first."""
    learner = _opened(where)
    return _begin(learner.actor, learner.key[0], others, with_particles)


@inlined
def _begin(actor: Actor, key: np.uint64, others: bool | None, with_particles: bool | None) -> int:
    no: Any = None
    if others is None:
        return begin(
            actor.who[0], actor.meta, actor.slots, actor.weights,
            where_wanted(with_particles, actor.particles), actor.episodes, actor.lookup, no,
            actor.meta.now[TIME], key,
        )  # fmt: skip
    return begin(
        actor.who[0], actor.meta, no, no, no, no, actor.lookup, actor.memory,
        actor.meta.now[TIME], key,
    )  # fmt: skip


@hot_kernel
def select(
    where: IntArray, count: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Do what is due and write the `count` arms to pull; GO, or what Python must do first."""
    learner = _opened(where)
    event = _begin(learner.actor, learner.key[0], others, with_particles)
    if event == GO and count > 0:
        event = _choose(learner.actor, learner.key[0], count, others, with_particles)
    return event


@inlined
def _choose(
    actor: Actor, key: np.uint64, count: int, others: bool | None, with_particles: bool | None
) -> int:
    no: Any = None
    masked, t = actor.who[MASKED] != 0, actor.meta.now[TIME]
    if others is None:
        return choose(
            actor.who[0], actor.meta, where_wanted(with_particles, actor.particles), actor.episodes,
            actor.lookup, no, no, actor.available, masked, actor.chosen, t, key, count,
        )  # fmt: skip
    return choose(
        actor.who[0], actor.meta, no, no, actor.lookup, actor.knowledge, actor.memory,
        actor.available, masked, actor.chosen, t, key, count,
    )  # fmt: skip


@hot_kernel
def see(
    where: IntArray, count: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Take in the states of the first `count` chosen arms, unless one of them cannot be."""
    learner = _opened(where)
    actor = learner.actor
    t = actor.meta.now[TIME]
    if (learner.num_notes[0] + count) * NOTE > len(learner.notes):
        return NOTES_FULL
    wrong = _wrong(actor, count, others, with_particles)
    if wrong != TAKEN_IN:
        return wrong
    for i in range(count):
        k = actor.chosen[i]
        _note(learner.notes, learner.num_notes, actor.meta, k, t, actor.states[i])
    _take_in(actor, t, learner.key[0], count, others, with_particles)
    return TAKEN_IN


@hot_kernel
def could_see(
    where: IntArray, count: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Answer as `see` would, but take nothing in."""
    return _wrong(_opened(where).actor, count, others, with_particles)


@part
def _wrong(actor: Actor, count: int, others: bool | None, with_particles: bool | None) -> int:
    """Tell which state of the first `count` chosen arms cannot be; TAKEN_IN if all can."""
    sizes = actor.slots.sizes if others is None else actor.knowledge.sizes
    for i in range(count):
        if actor.states[i] < 0 or actor.states[i] >= sizes[actor.chosen[i]]:
            return 1 + i
    if others is None:
        wrong = wrong_arm(
            actor.slots, actor.weights, where_wanted(with_particles, actor.particles), actor.meta,
            actor.chosen, count, actor.states, actor.scratch,
        )  # fmt: skip
        if wrong >= 0:
            return IMPOSSIBLE_BASE + wrong
    return TAKEN_IN


@part
def _note(notes: IntArray, num_notes: IntArray, meta: Meta, k: int, time: int, state: int) -> None:
    """Write down in which state arm k is seen."""
    at = num_notes[0] * NOTE
    notes[at] = k
    notes[at + 1] = meta.last_state[k]
    notes[at + 2] = time - meta.seen[k]
    notes[at + 3] = state
    num_notes[0] += 1


@inlined
def _take_in(
    actor: Actor,
    t: int,
    key: np.uint64,
    count: int,
    others: bool | None,
    with_particles: bool | None,
) -> None:
    doubled = False
    if others is None:
        particles = where_wanted(with_particles, actor.particles)
        for i in range(count):
            doubled |= take_in_arm(
                actor.who[0], actor.meta, actor.slots, actor.weights, particles, actor.episodes,
                actor.lookup, actor.chosen[i], actor.states[i], t,
            )  # fmt: skip
    else:
        take_in_others(
            actor.who[0], actor.meta, actor.knowledge, actor.memory, t, key, actor.chosen[:count],
            actor.states[:count],
        )  # fmt: skip
    end_step(actor.who[0], actor.meta, actor.episodes, t, doubled)


@hot_kernel
def pass_steps(
    where: IntArray, end: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Let steps without pulls pass until time `end`; GO, or what Python must do first."""
    learner = _opened(where)
    actor = learner.actor
    for t in range(actor.meta.now[TIME], end):
        event = _begin(actor, learner.key[0], others, with_particles)
        if event != GO:
            return event
        _take_in(actor, t, learner.key[0], 0, others, with_particles)
    return GO


@hot_kernel
def late_sighting(
    where: IntArray, k: int, state: int, time: int, with_particles: bool | None = None
) -> int:
    """Take in that arm k was in a state at an earlier time, after which it was not seen."""
    learner = _opened(where)
    actor = learner.actor
    meta = actor.meta
    if (learner.num_notes[0] + 1) * NOTE > len(learner.notes):
        return NOTES_FULL
    if with_particles is not None and must_count(actor.slots, actor.particles):
        return NOTES_FULL
    now = meta.now[TIME]
    last_state, age = meta.last_state[k], time - meta.seen[k]
    if actor.who[0] == TSDE:
        learner.one_arm[0], learner.one_state[0] = k, state
        meta.now[TIME] = time
        wrong = wrong_arm(
            actor.slots, actor.weights, where_wanted(with_particles, actor.particles), meta,
            learner.one_arm, 1, learner.one_state, actor.scratch,
        )  # fmt: skip
        meta.now[TIME] = now
        if wrong >= 0:
            return IMPOSSIBLE_BASE + wrong
        at_once = False
        if with_particles is not None and has_particles(actor.particles, actor.slots.groups[k]):
            at_once = prepare_sighting(actor.slots, actor.particles, k, last_state, age, state)
        each_step = actor.episodes.rules[FIXED_LIMIT] == 0
        take_in(actor.slots, actor.weights, k, last_state, age, state, each_step)
        if at_once:
            multiply_pending(actor.slots, actor.weights, actor.slots.groups[k])
        note_visits(actor.episodes, visit(actor.episodes, k, last_state, age))
    _note(learner.notes, learner.num_notes, meta, k, time, state)
    meta.last_state[k] = state
    meta.seen[k] = time
    actor.lookup.mode[STANDS] = -1
    if actor.who[0] <= TSDE:
        follow_pulled(actor.lookup, k, state, time)
    return TAKEN_IN


@hot_kernel
def bring_up_to_date(where: IntArray, group: int) -> None:
    """Multiply what waits of a group, or of all groups if it is negative."""
    actor = _opened(where).actor
    if group < 0:
        multiply_all(actor.slots, actor.weights)
    else:
        multiply_pending(actor.slots, actor.weights, group)


@hot_kernel
def foresee(
    where: IntArray, arms: IntArray, laws: FloatArray, with_particles: bool | None = None
) -> None:
    """Write the law of each arm's state now, over the posterior: S numbers each, end to end."""
    actor = _opened(where).actor
    slots, weights, meta = actor.slots, actor.weights, actor.meta
    at = 0
    for i in range(len(arms)):
        k = arms[i]
        group, size = slots.groups[k], slots.sizes[k]
        last_state, age = meta.last_state[k], meta.now[TIME] - meta.seen[k]
        if with_particles is not None and has_particles(actor.particles, group):
            require_likelihoods(slots, actor.particles, k, last_state, age)
        multiply_pending(slots, weights, group)
        lanes = slots.row_counts[group] * LANES
        home = weights.homes[group]
        lifts = home + lanes + (slots.row_counts[group] // BLOCK + 2) * LANES
        cell = cell_of(last_state, age, slots.lengths[k])
        total = 0.0
        for s in range(size):
            row = slots.offsets[k] + (cell * size + s) * lanes
            law = 0.0
            for j in range(lanes):
                weight = weights.numbers[home + j]
                if weights.numbers[lifts + j] > 0:
                    weight *= 2.0 ** -weights.numbers[lifts + j]
                law += weight * slots.likelihoods[row + j]
            laws[at + s] = law
            total += law
        for s in range(size):
            laws[at + s] /= total
        at += size


@hot_kernel
def draw_again(where: IntArray, with_particles: bool | None = None) -> None:
    """Repeat the last draw, for groups whose weights have not changed since."""
    learner = _opened(where)
    actor = learner.actor
    draws = actor.episodes.clock[DRAWS] - len(actor.weights.drawn)
    for group in range(len(actor.weights.drawn)):
        if not actor.weights.changed[group]:
            if actor.episodes.rules[PICK_MODE] == 0:
                u = uniform_at(learner.key[0], draws + group)
                slot = draw_slot(actor.slots, actor.weights, group, u)
            elif with_particles is not None and has_particles(actor.particles, group):
                slot = central_slot(actor.slots, actor.weights, actor.particles, group)
            else:
                slot = likeliest_slot(actor.slots, actor.weights, group)
            actor.weights.drawn[group] = slot


@hot_kernel
def settle(where: IntArray) -> None:
    """Make sums anew, for weights that were set from outside."""
    actor = _opened(where).actor
    for group in range(len(actor.weights.homes)):
        if actor.weights.homes[group] != actor.weights.first_homes[group]:
            add_up(actor.slots, actor.weights, group)


@hot_kernel
def follow_again(where: IntArray, with_particles: bool | None = None) -> None:
    """Place all arms anew, for draws and sightings that were set from outside."""
    actor = _opened(where).actor
    if with_particles is not None and actor.lookup.mode[VALUED] != 0:
        follow_channels(actor.slots, actor.weights, actor.particles, actor.lookup)
        return
    if actor.lookup.mode[TABLED] != 0:
        follow_drawn(actor.slots, actor.weights, actor.lookup)
    follow_all(actor.lookup, actor.meta, actor.meta.now[TIME])
