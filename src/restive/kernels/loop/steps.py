"""One step of any learner, cut where Python may have to act.

A step is: begin (what is due before anything is chosen), choose, see, take in. The engine runs all
four in its loop, with a world of its own; an online agent runs the first two when it is asked and
the last when it is shown what was seen. Where Python must act (a learner plans, an index table is
made), `begin` returns an event, and is called again afterwards; `Meta.now[STAGE]` says where to
continue.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.learn.channels import choose_by_value, follow_channels, see_channel
from restive.kernels.learn.episodes import (
    begin_episode,
    begin_epoch,
    due,
    epoch_fits,
    forget_episodes,
    note_visits,
    visit,
)
from restive.kernels.learn.learners import (
    beta_bernoulli,
    colored_ucrl2,
    regenerative_cycle,
    restless_ucb,
    ucb1,
)
from restive.kernels.learn.learners.memory import PHASES, PLANNING, Knowledge, Memory
from restive.kernels.learn.particle_groups import (
    forget_particles,
    has_particles,
    impossible_for_particles,
    must_count,
    must_renew,
    prepare_sighting,
    take_central_slots,
)
from restive.kernels.learn.weights import (
    draw_all,
    forget_all,
    impossible_arm,
    multiply_all,
    multiply_pending,
    take_in,
    take_modes,
)
from restive.kernels.loop.index_lookup import (
    REBASED,
    choose_by_rank,
    follow_all,
    follow_kind,
    follow_pulled,
    hide_unavailable,
)
from restive.kernels.loop.tables import (
    ASKED,
    DRAWS,
    EPISODE,
    EPOCH_END,
    EXPLORING,
    FIXED_LIMIT,
    FOLLOWED,
    NONE,
    PICK_MODE,
    STAGE,
    STARTED,
    TABLED,
    TIME,
    VALUED,
    Episodes,
    IndexLookup,
    Meta,
    ParticleGroups,
    Slots,
    Weights,
)
from restive.kernels.loop.world import top_arms
from restive.kernels.random import uniform_at

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "Actor",
    "begin",
    "choose",
    "end_step",
    "follow_drawn",
    "num_phases",
    "start_over",
    "take_in_arm",
    "take_in_others",
    "wrong_arm",
]

# Who acts: a policy that is given, TSDE and its relatives, the other compiled learners, or somebody
# in Python.
POLICY, TSDE, UCB1, BETA_BERNOULLI, REGENERATIVE_CYCLE, RESTLESS_UCB, COLORED_UCRL2, PYTHON = range(
    8
)

MASKED = 1  # in `Actor.who`

# Stages of a step.
BEGIN, DRAW, FOLLOW, CHOOSE, SEE = 0, 1, 2, 3, 4

# What Python must do before the step can go on; GO is nothing.
GO = 0
PLAN = 1  # the learner's planning
GROW = 2  # room for more counters
MAKE_RANKS = 3  # of the system that was drawn
ASK = 4  # which arms to pull
TELL = 5  # what was seen of them
PAUSE = 6  # hear whether the user has had enough
RULED_OUT = 7  # nothing: what was seen cannot be, under any system
DONE = 8
RENEW = 9  # particles whose effective sample size is too small
COUNT = 10  # what was seen of arms with particles


class Actor(NamedTuple):
    """A learner or a policy: all that it knows and remembers."""

    who: IntArray  # [2] who acts, and whether only some arms are available
    meta: Meta
    slots: Slots
    weights: Weights
    particles: ParticleGroups
    episodes: Episodes
    lookup: IndexLookup
    knowledge: Knowledge
    memory: Memory
    chosen: IntArray  # [K] arms to pull; the first N count
    states: IntArray  # [K] in which they are seen
    scratch: IntArray  # [K]
    available: BoolArray  # [K] arms that can be pulled now; empty until it is needed


# Steps take the parts of an actor that they need: handed over whole, it costs the compiler dearly.
# Parts that only some actors have may be None: the compiler then leaves out all that follows
# `if ... is not None`.


@part
def start_over(
    who: int, meta: Meta, slots: Slots, weights: Weights, particles: ParticleGroups | None,
    episodes: Episodes, lookup: IndexLookup, start_state: IntArray, start_elapsed: IntArray,
) -> None:  # fmt: skip
    """Go back to time 1; a compiled learner's memory is not touched."""
    for k in range(len(start_state)):
        meta.last_state[k] = start_state[k]
        meta.seen[k] = 1 - start_elapsed[k]
    meta.now[TIME] = 1
    meta.now[STAGE] = BEGIN
    lookup.mode[FOLLOWED] = -REBASED
    if weights is not None and who == TSDE:
        forget_all(weights)
        if particles is not None:
            forget_particles(slots, particles)
        forget_episodes(episodes)


@inlined
def begin(
    who: int, meta: Meta, slots: Slots, weights: Weights, particles: ParticleGroups | None,
    episodes: Episodes, lookup: IndexLookup, memory: Memory, t: int, key: np.uint64,
) -> int:  # fmt: skip
    """Do what is due before arms can be chosen; GO, or what Python must do first."""
    if weights is not None and who == TSDE:
        return _begin_tsde(meta, slots, weights, particles, episodes, lookup, t, key)
    if memory is not None and who > TSDE:
        return PLAN if who != PYTHON and memory.ints[PLANNING] != 0 else GO
    if t - lookup.mode[FOLLOWED] >= REBASED:
        follow_all(lookup, meta, t)
    return GO


@inlined
def _begin_tsde(
    meta: Meta, slots: Slots, weights: Weights, particles: ParticleGroups | None,
    episodes: Episodes, lookup: IndexLookup, t: int, key: np.uint64,
) -> int:  # fmt: skip
    """Begin an epoch and an episode where one is due: draw a system and follow its policy."""
    clock = episodes.clock
    if meta.now[STAGE] == BEGIN:
        if particles is not None and must_count(slots, particles):
            return COUNT
        if t == clock[EPOCH_END]:
            if not epoch_fits(episodes):
                return GROW
            begin_epoch(episodes, t)
        reason = due(episodes, t)
        if reason == NONE:
            if t - lookup.mode[FOLLOWED] >= REBASED:
                follow_all(lookup, meta, t)
            return GO
        begin_episode(episodes, t, reason)
        if episodes.rules[FIXED_LIMIT] != 0:  # otherwise nothing has waited
            multiply_all(slots, weights)
        meta.now[STAGE] = DRAW
    if meta.now[STAGE] == DRAW:
        if particles is not None and must_renew(slots, weights, particles):
            return RENEW
        if episodes.rules[PICK_MODE] != 0:
            if particles is not None:
                take_central_slots(slots, weights, particles)
            take_modes(slots, weights)
        else:
            draw_all(slots, weights, key, clock[DRAWS])
            clock[DRAWS] += len(weights.drawn)
        meta.now[STAGE] = FOLLOW
        if particles is not None and lookup.mode[VALUED] != 0:
            follow_channels(slots, weights, particles, lookup)
            meta.now[STAGE] = BEGIN
            return GO
        if lookup.mode[TABLED] == 0:
            return MAKE_RANKS
        follow_drawn(slots, weights, lookup)
    follow_all(lookup, meta, t)
    meta.now[STAGE] = BEGIN
    return GO


@inlined
def follow_drawn(slots: Slots, weights: Weights, lookup: IndexLookup) -> None:
    """Let every arm follow the ranks of what was drawn for it."""
    for k in range(len(lookup.begin)):
        drawn = weights.drawn[place(slots.groups[k])]
        follow_kind(lookup, k, slots.kinds[place(slots.kind_offsets[k] + drawn)])


@inlined
def choose(
    who: int, meta: Meta, particles: ParticleGroups | None, episodes: Episodes, lookup: IndexLookup,
    knowledge: Knowledge, memory: Memory, available: BoolArray, masked: bool, chosen: IntArray,
    t: int, key: np.uint64, count: int,
) -> int:  # fmt: skip
    """Write the `count` arms to pull, ascending; GO, or ASK where Python chooses.

    Of the arms those that are `available` can be pulled, all if not `masked`.
    """
    if memory is not None:
        if who == PYTHON:
            return ASK
        if who > TSDE:
            some = available if masked else available[:0]
            _choose_others(who, knowledge, memory, t, key, some, chosen[:count])
            return GO
    if particles is not None and lookup.mode[VALUED] != 0:
        began = episodes.clock[STARTED]
        choose_by_value(lookup, meta, began, t, available, masked, chosen, count)
    elif lookup.mode[ASKED] != 0:
        return ASK
    else:
        choose_by_rank(lookup, t, available, masked, chosen, count)
    if episodes is not None and who == TSDE and episodes.rules[EXPLORING] != 0:
        _explore(episodes, lookup, key, available, masked, chosen, count)
    return GO


@part
def _explore(
    episodes: Episodes, lookup: IndexLookup, key: np.uint64, available: BoolArray,
    masked: bool, chosen: IntArray, count: int,
) -> None:  # fmt: skip
    """With the probability that the rules say, choose arms at random instead."""
    clock = episodes.clock
    u = uniform_at(key, clock[DRAWS])
    clock[DRAWS] += 1
    if u * 2.0**53 >= episodes.rules[EXPLORING]:
        return
    for k in range(len(lookup.rank)):
        lookup.rank[k] = int(uniform_at(key, clock[DRAWS] + k) * 2.0**31)
    clock[DRAWS] += len(lookup.rank)
    if masked:
        hide_unavailable(lookup, available)
    top_arms(lookup.rank, chosen, count)


@part
def _choose_others(
    who: int, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Let a learner that is not of TSDE's family choose."""
    if who == UCB1:
        ucb1.choose(knowledge, memory, t, key, available, chosen)
    elif who == BETA_BERNOULLI:
        beta_bernoulli.choose(knowledge, memory, t, key, available, chosen)
    elif who == REGENERATIVE_CYCLE:
        regenerative_cycle.choose(knowledge, memory, t, key, available, chosen)
    elif who == RESTLESS_UCB:
        restless_ucb.choose(knowledge, memory, t, key, available, chosen)
    elif who == COLORED_UCRL2:
        colored_ucrl2.choose(knowledge, memory, t, key, available, chosen)


@inlined
def take_in_arm(
    who: int, meta: Meta, slots: Slots, weights: Weights, particles: ParticleGroups | None,
    episodes: Episodes, lookup: IndexLookup, k: int, state: int, t: int,
) -> bool:  # fmt: skip
    """Learn that arm k was seen at time t; tell whether TSDE's counter has more than doubled.

    For TSDE and policies; the others take in all arms of a step together.
    """
    at = place(k)
    doubled = False
    if weights is not None and who == TSDE:
        last_state = meta.last_state[at]
        age = t - meta.seen[at]
        at_once = False
        if particles is not None and has_particles(particles, slots.groups[at]):
            at_once = prepare_sighting(slots, particles, k, last_state, age, state)
        take_in(slots, weights, k, last_state, age, state, episodes.rules[FIXED_LIMIT] == 0)
        if particles is not None and at_once:
            multiply_pending(slots, weights, slots.groups[at])
        doubled = visit(episodes, k, last_state, age)
    meta.last_state[at] = state
    meta.seen[at] = t
    if particles is not None and lookup.mode[VALUED] != 0:
        see_channel(lookup, k, state)
    else:
        follow_pulled(lookup, k, state, t)
    return doubled


@inlined
def wrong_arm(
    slots: Slots, weights: Weights, particles: ParticleGroups | None, meta: Meta, pulled: IntArray,
    count: int, states: IntArray, rows: IntArray,
) -> int:  # fmt: skip
    """Pulled arm, among the first `count`, whose state is impossible by all that is left; or -1.

    Arms of one group must be possible together. All particles of a group rule out the same, so
    there each arm counts by itself.
    """
    for i in range(count):
        rows[i] = 0
        if particles is not None:
            k = pulled[i]
            age = meta.now[TIME] - meta.seen[k]
            if has_particles(particles, slots.groups[k]):
                rows[i] = -1
                if impossible_for_particles(
                    slots, weights, particles, k, meta.last_state[k], age, states[i]
                ):
                    return int(k)
    return impossible_arm(slots, weights, meta, pulled, count, states, rows)


@part
def take_in_others(
    who: int, meta: Meta, knowledge: Knowledge, memory: Memory, t: int, key: np.uint64,
    pulled: IntArray, states: IntArray,
) -> None:  # fmt: skip
    """Let a learner that is not of TSDE's family learn; the meta-state follows."""
    if who == UCB1:
        ucb1.learn(knowledge, memory, t, key, pulled, states)
    elif who == BETA_BERNOULLI:
        beta_bernoulli.learn(knowledge, memory, t, key, pulled, states)
    elif who == REGENERATIVE_CYCLE:
        regenerative_cycle.learn(knowledge, memory, t, key, pulled, states)
    elif who == RESTLESS_UCB:
        restless_ucb.learn(knowledge, memory, t, key, pulled, states)
    elif who == COLORED_UCRL2:
        colored_ucrl2.learn(knowledge, memory, t, key, pulled, states)
    for i in range(len(pulled)):
        meta.last_state[pulled[i]] = states[i]
        meta.seen[pulled[i]] = t


@inlined
def end_step(who: int, meta: Meta, episodes: Episodes, t: int, doubled: bool) -> None:
    """Go to the next time."""
    meta.now[TIME] = t + 1
    meta.now[STAGE] = BEGIN
    if episodes is not None and who == TSDE:
        note_visits(episodes, doubled)


@inlined
def num_phases(who: int, episodes: Episodes, memory: Memory) -> int:
    """Episodes or phases begun, however the learner calls them."""
    if episodes is not None and who == TSDE:
        return int(episodes.clock[EPISODE])
    if memory is not None and TSDE < who < PYTHON:
        return int(memory.ints[PHASES])
    return 0
