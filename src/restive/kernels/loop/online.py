"""The steps of a learner that is asked one by one, each in one call."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part
from restive.kernels.jit.handles import opener
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.channels import follow_channels
from restive.kernels.learn.conjugate import count_move, is_conjugate
from restive.kernels.learn.draws import draw_slot, likeliest_slot
from restive.kernels.learn.episodes import note_visits, visit
from restive.kernels.learn.forgetting import take_in_faded
from restive.kernels.learn.mean_index import mean_index
from restive.kernels.learn.particle_groups import (
    central_slot,
    has_particles,
    must_count,
    prepare_sighting,
    require_likelihoods,
)
from restive.kernels.learn.weights import add_up, lifts_at, multiply_all, multiply_pending
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.index_lookup import follow_all, follow_pulled
from restive.kernels.loop.steps import (
    GO,
    TSDE,
    begin,
    choose,
    end_step,
    follow_drawn,
    learn_arm,
    learn_sighting,
    see_arm,
    start_over,
    take_in_others,
    wrong_arm,
)
from restive.kernels.loop.tables import MYOPIC, NOT_PULLED, cell_of
from restive.kernels.random import uniform_at

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

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
    "mean_indices",
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
    start_over(
        learner.actor, learner.start_state, learner.start_elapsed, True, with_particles
    )  # fmt: skip


# Kernels of steps are for TSDE and its relatives unless `others` is given; what belongs to the
# others is compiled only then (see `kernels.loop.steps`), and what belongs to continuous priors
# only where `with_particles` is given.


@hot_kernel
def begin_step(
    where: IntArray, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Do what is due; GO, or what Python must do first."""
    return _begin(_opened(where).actor, others, with_particles)


@inlined
def _begin(actor: Actor, others: bool | None, with_particles: bool | None) -> int:
    who, t = actor.role[0].who, actor.meta.now[0].time
    if others is None:
        return begin(actor, who, t, True, None, with_particles)
    return begin(actor, who, t, None, True, None)


@hot_kernel
def select(
    where: IntArray, count: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Do what is due and write the `count` arms to pull; GO, or what Python must do first."""
    actor = _opened(where).actor
    event = _begin(actor, others, with_particles)
    if event == GO and count > 0:
        who, t = actor.role[0].who, actor.meta.now[0].time
        if others is None:
            event = choose(actor, who, t, count, True, None, with_particles)
        else:
            event = choose(actor, who, t, count, None, True, None)
    return event


@hot_kernel
def see(
    where: IntArray, count: int, shown: int, others: bool | None = None,
    with_particles: bool | None = None,
) -> int:  # fmt: skip
    """Take in the states of the first `shown` chosen arms, unless one of them cannot be.

    The first `count` of them were pulled, the others are always seen.
    """
    learner = _opened(where)
    actor = learner.actor
    if (learner.num_notes[0] + shown) * NOTE > len(learner.notes):
        return NOTES_FULL
    wrong = _wrong(actor, count, shown, others, with_particles)
    if wrong != TAKEN_IN:
        return wrong
    t = actor.meta.now[0].time
    for i in range(shown):
        k = actor.chosen[i]
        _note(learner, k, t - actor.meta.seen[k] if i < count else NOT_PULLED, actor.states[i])
    _take_in(actor, count, shown, others, with_particles)
    return TAKEN_IN


@hot_kernel
def could_see(
    where: IntArray, count: int, shown: int, others: bool | None = None,
    with_particles: bool | None = None,
) -> int:  # fmt: skip
    """Answer as `see` would, but take nothing in."""
    return _wrong(_opened(where).actor, count, shown, others, with_particles)


@part
def _wrong(
    actor: Actor, count: int, shown: int, others: bool | None, with_particles: bool | None
) -> int:
    """Tell which state of the first `shown` chosen arms cannot be; TAKEN_IN if all can."""
    sizes = actor.posterior.slots.sizes if others is None else actor.knowledge.sizes
    for i in range(shown):
        if actor.states[i] < 0 or actor.states[i] >= sizes[actor.chosen[i]]:
            return 1 + i
    if others is None:
        wrong = wrong_arm(actor, actor.chosen, actor.states, count, shown, with_particles)
        if wrong >= 0:
            return IMPOSSIBLE_BASE + wrong
    return TAKEN_IN


@part
def _note(learner: OnlineLearner, k: int, age: int, state: int) -> None:
    """Write down in which state arm k is seen, at which age."""
    notes, meta = learner.notes, learner.actor.meta
    at = learner.num_notes[0] * NOTE
    notes[at] = k
    notes[at + 1] = meta.last_state[k]
    notes[at + 2] = age
    notes[at + 3] = state
    learner.num_notes[0] += 1


@inlined
def _take_in(
    actor: Actor, count: int, shown: int, others: bool | None, with_particles: bool | None
) -> None:
    who, t = actor.role[0].who, actor.meta.now[0].time
    if others is None:
        doubled = False
        for i in range(shown):
            k = actor.chosen[i]
            age = t - actor.meta.seen[k] if i < count else NOT_PULLED
            state = actor.states[i]
            doubled |= learn_arm(actor, who, k, age, state, True, with_particles)
            see_arm(actor, k, state, t, with_particles)
        end_step(actor, who, t, doubled, True)
    else:
        take_in_others(actor, who, t, count, shown)
        end_step(actor, who, t, False, None)


@hot_kernel
def pass_steps(
    where: IntArray, end: int, others: bool | None = None, with_particles: bool | None = None
) -> int:
    """Let steps without pulls pass until time `end`; GO, or what Python must do first."""
    actor = _opened(where).actor
    while actor.meta.now[0].time < end:
        event = _begin(actor, others, with_particles)
        if event != GO:
            return event
        _take_in(actor, 0, 0, others, with_particles)
    return GO


@hot_kernel
def late_sighting(
    where: IntArray, k: int, state: int, time: int, weight: float,
    with_particles: bool | None = None,
) -> int:  # fmt: skip
    """Take in that arm k was in a state at an earlier time, after which it was not seen.

    What was seen then weighs so much now, if things are forgotten; else 1.
    """
    learner = _opened(where)
    actor = learner.actor
    meta = actor.meta
    if (learner.num_notes[0] + 1) * NOTE > len(learner.notes):
        return NOTES_FULL
    if with_particles is not None and must_count(actor.posterior):
        return NOTES_FULL
    now = meta.now[0].time
    last_state, age = meta.last_state[k], time - meta.seen[k]
    who = actor.role[0].who
    if who == TSDE:
        learner.one_arm[0], learner.one_state[0] = k, state
        meta.now[0].time = time
        wrong = wrong_arm(actor, learner.one_arm, learner.one_state, 1, 1, with_particles)
        meta.now[0].time = now
        if wrong >= 0:
            return IMPOSSIBLE_BASE + wrong
        if weight < 1.0:
            _learn_faded(actor, k, last_state, age, state, weight, with_particles)
        else:
            learn_sighting(actor, k, last_state, age, state, with_particles)
        note_visits(actor.episodes, visit(actor.episodes, k, last_state, age))
    _note(learner, k, age, state)
    meta.last_state[k] = state
    meta.seen[k] = time
    actor.lookup.mode[0].stands = -1
    if who <= TSDE:
        follow_pulled(actor.lookup, k, state, time)
    return TAKEN_IN


@part
def _learn_faded(
    actor: Actor, k: int, last_state: int, age: int, state: int, weight: float,
    with_particles: bool | None,
) -> None:  # fmt: skip
    """Let the posterior learn of a sighting that has lost weight; particles count it in full."""
    posterior = actor.posterior
    group = posterior.slots.groups[k]
    if with_particles is not None:
        if has_particles(posterior, group):
            prepare_sighting(posterior, k, last_state, age, state)
        elif is_conjugate(posterior, group):
            count_move(posterior, group, last_state, age, state, weight)
            return
    take_in_faded(posterior, k, last_state, age, state, weight)


@hot_kernel
def bring_up_to_date(where: IntArray, group: int) -> None:
    """Multiply what waits of a group, or of all groups if it is negative."""
    posterior = _opened(where).actor.posterior
    if group < 0:
        multiply_all(posterior)
    else:
        multiply_pending(posterior, group)


@hot_kernel
def foresee(
    where: IntArray, arms: IntArray, laws: FloatArray, with_particles: bool | None = None
) -> None:
    """Write the law of each arm's state now, over the posterior: S numbers each, end to end."""
    actor = _opened(where).actor
    posterior, meta = actor.posterior, actor.meta
    slots, numbers = posterior.slots, posterior.weights.numbers
    at = 0
    for i in range(len(arms)):
        k = arms[i]
        group, size = slots.groups[k], slots.sizes[k]
        last_state, age = meta.last_state[k], meta.now[0].time - meta.seen[k]
        if with_particles is not None and has_particles(posterior, group):
            require_likelihoods(posterior, k, last_state, age)
        multiply_pending(posterior, group)
        width, home = slots.row_counts[group] * LANES, posterior.weights.homes[group]
        lifts = lifts_at(home, slots.row_counts[group])
        cell = cell_of(last_state, age, slots.lengths[k])
        total = 0.0
        for s in range(size):
            row = slots.offsets[k] + (cell * size + s) * width
            law = 0.0
            for j in range(width):
                weight = numbers[home + j]
                if numbers[lifts + j] > 0:
                    weight *= 2.0 ** -numbers[lifts + j]
                law += weight * slots.likelihoods[row + j]
            laws[at + s] = law
            total += law
        for s in range(size):
            laws[at + s] /= total
        at += size


@hot_kernel
def mean_indices(
    where: IntArray, arms: IntArray, found: FloatArray, with_particles: bool | None = None
) -> None:
    """Write the mean index of each of these arms now."""
    actor = _opened(where).actor
    for i in range(len(arms)):
        found[i] = mean_index(actor, arms[i], actor.meta.now[0].time, with_particles)


@hot_kernel
def draw_again(where: IntArray, with_particles: bool | None = None) -> None:
    """Repeat the last draws, for groups whose weights have not changed since."""
    actor = _opened(where).actor
    posterior, episodes = actor.posterior, actor.episodes
    weights = posterior.weights
    if episodes.rules[0].draws == 0:
        return
    draws = episodes.clock[0].draws - len(weights.drawn)
    for i in range(len(weights.drawn)):
        group = i % len(weights.homes)
        if not weights.changed[group]:
            if episodes.rules[0].pick_mode == 0:
                u = uniform_at(actor.role[0].key, draws + i)
                slot = draw_slot(posterior, group, u)
            elif with_particles is not None and has_particles(posterior, group):
                slot = central_slot(posterior, group)
            else:
                slot = likeliest_slot(posterior, group)
            weights.drawn[i] = slot


@hot_kernel
def settle(where: IntArray) -> None:
    """Make sums anew, for weights that were set from outside."""
    posterior = _opened(where).actor.posterior
    weights = posterior.weights
    for group in range(len(weights.homes)):
        if weights.homes[group] != weights.first_homes[group]:
            add_up(posterior, group)


@hot_kernel
def follow_again(where: IntArray, with_particles: bool | None = None) -> None:
    """Place all arms anew, for draws and sightings that were set from outside."""
    actor = _opened(where).actor
    if with_particles is not None and actor.lookup.mode[0].valued != 0:
        if actor.lookup.mode[0].valued <= MYOPIC:
            follow_channels(actor.posterior, actor.lookup)
        return
    if actor.lookup.mode[0].tabled != 0 and actor.episodes.rules[0].draws == 1:
        follow_drawn(actor.posterior, actor.lookup)
    follow_all(actor.lookup, actor.meta, actor.meta.now[0].time)
