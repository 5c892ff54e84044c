"""The one loop: an actor in a world, step by step, replication by replication.

A replication is a pure function of (seed, its number): the true system is given for each, the actor
starts over, and its luck and the world's come from the two streams of that number. The loop returns
to Python whenever Python must act (`kernels.loop.steps`), and now and then so that Ctrl-C is heard;
called again, it continues where it left off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, part, place
from restive.kernels.jit.handles import opener
from restive.kernels.jit.records import Block, Records
from restive.kernels.learn.weights import multiply_all, weigh_kinds
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.changes import enter_phase
from restive.kernels.loop.index_lookup import follow_all, follow_kind
from restive.kernels.loop.steps import (
    DONE,
    GO,
    MAKE_RANKS,
    PAUSE,
    POLICY,
    PYTHON,
    RULED_OUT,
    SEE,
    TELL,
    TSDE,
    begin,
    choose,
    end_step,
    learn_arm,
    num_phases,
    see_arm,
    start_over,
    take_in_others,
)
from restive.kernels.loop.tables import NOT_PULLED, Posterior
from restive.kernels.loop.world import (
    WorldTables,
    become,
    paid_by_all,
    paid_by_others,
    paid_until_pulled,
    pull,
    see_changed,
)
from restive.kernels.random import LEARNER, RENEWAL, WORLD, stream_key

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["NUMBERS", "Cursor", "Keys", "Record", "Run", "Sums", "Trace", "run"]

NUMBERS = 5  # to be raised with any change that gives a replication other numbers than before


class Cursor(Block):
    """Where the loop stands in its replications."""

    row: int  # the replication that is running, from 0
    started: int  # whether it has begun
    mark: int  # the next time to record
    num_pulls: int
    first: int  # number of the replication in row 0
    phase: int  # of the world that comes next, of those after the first
    change: int  # the step with which it begins, 0 if there is none


class Sums(Block):
    """What the running replication has earned so far."""

    expected: float  # of pulls
    realised: float  # of pulls
    unpulled: float  # what arms paid until they were pulled again


class Keys(Block):
    """The luck of the running replication; that of the actor is the actor's."""

    seed: np.uint64
    world: np.uint64


class Record(NamedTuple):
    """What replications are to be run, and what they earned up to each time, a row for each."""

    times: IntArray  # [M] ascending; the last is the horizon
    truths: IntArray  # [R * K] kinds of the true arms, in the phase that is reached
    start_state: IntArray  # [K]
    start_elapsed: IntArray  # [K]
    fresh_ints: IntArray  # what a compiled learner's memory begins with
    fresh_floats: FloatArray
    expected: FloatArray  # [R * M] sum of E[r | xi, A]
    realised: FloatArray  # [R * M] sum of the rewards; of arms not pulled, those expected
    phases: IntArray  # [R * M] episodes or phases begun
    truth_weights: FloatArray  # [R * M * K] posterior weight of each true arm, or empty
    sums: Records[Sums]  # [1]
    cursor: Records[Cursor]  # [1]
    keys: Records[Keys]  # [1]


class Trace(NamedTuple):
    """What happened in each step of a single replication; empty where nobody asks."""

    arms: IntArray  # [T * N]
    states: IntArray  # [T * N]
    expected: FloatArray  # [T]
    earned: FloatArray  # [T]
    phases: IntArray  # [T]


class Run(NamedTuple):
    """All that the loop needs."""

    actor: Actor
    world: WorldTables
    record: Record
    trace: Trace


_opened = opener(Run)


@hot_kernel
def run(
    where: IntArray, steps: int, tsde: bool | None, others: bool | None, with_particles: bool | None
) -> int:
    """Run until all replications are DONE or Python must act; PAUSE after so many steps.

    It is compiled up to four times: with `tsde` for TSDE, its relatives and policies beside them,
    with that and `with_particles` where arms have continuous priors, with `others` for the other
    learners, and with none for policies alone. What is None is left out: whoever plans need not
    wait for learners to be compiled, and candidates do not pay for particles.
    """
    whole = _opened(where)
    actor, world, record = whole.actor, whole.world, whole.record
    who, meta, chosen, states = actor.role[0].who, actor.meta, actor.chosen, actor.states
    now, cursor, sums, times = meta.now[0], record.cursor[0], record.sums[0], record.times
    num_pulls = cursor.num_pulls
    pays_unpulled = len(world.tables.passive_means) > 0
    some_seen = len(world.always) > 0
    changing = len(world.changes.begins) > 0
    while cursor.row * len(times) < len(record.expected):
        if cursor.started == 0:
            _start(whole, tsde, others, with_particles)
            if who == POLICY and actor.lookup.mode[0].tabled == 0:
                return MAKE_RANKS
        luck, mark = record.keys[0].world, cursor.mark
        for t in range(now.time, times[-1] + 1):
            if steps == 0:
                return PAUSE
            steps -= 1
            if t == cursor.change:
                _change(whole, t)
                if who == POLICY and actor.lookup.mode[0].tabled == 0:
                    return MAKE_RANKS
            if now.stage != SEE:
                event = begin(actor, who, t, tsde, others, with_particles)
                if event == GO:
                    event = choose(actor, who, t, num_pulls, tsde, others, with_particles)
                    now.stage = SEE
                if event != GO:
                    return event
            doubled = False
            expected, earned = 0.0, 0.0
            if pays_unpulled:
                sums.unpulled += paid_until_pulled(
                    world, meta.last_state, meta.seen, chosen[:num_pulls], t
                )
            for i in range(num_pulls):
                k = chosen[i]
                at = place(k)
                age = t - meta.seen[at]
                state, mean = pull(world, k, t, meta.last_state[at], age, luck)
                reward = world.tables.rewards[place(world.reward_offsets[at] + state)]
                if some_seen and world.always[at] != 0:
                    reward = mean  # of the state that it was in
                elif changing:
                    see_changed(world, k)
                sums.expected += mean
                sums.realised += reward
                expected += mean
                earned += reward
                states[i] = state
                if who <= TSDE:
                    doubled |= learn_arm(actor, who, k, age, state, tsde, with_particles)
                    see_arm(actor, k, state, t, with_particles)
            shown = num_pulls
            if some_seen:
                i = 0
                for k in range(len(world.always)):
                    while i < num_pulls and chosen[i] < k:
                        i += 1
                    if world.always[k] == 0 or (i < num_pulls and chosen[i] == k):
                        continue
                    state, mean = pull(world, k, t, meta.last_state[k], NOT_PULLED, luck)
                    sums.expected += mean
                    sums.realised += mean
                    expected += mean
                    earned += mean
                    if who <= TSDE:
                        doubled |= learn_arm(actor, who, k, NOT_PULLED, state, tsde, with_particles)
                        see_arm(actor, k, state, t, with_particles)
                    else:
                        chosen[shown], states[shown] = k, state
                        shown += 1
            if others is not None and who > TSDE:
                take_in_others(actor, who, t, num_pulls, shown)
            end_step(actor, who, t, doubled, tsde)
            phases = num_phases(actor, who, tsde, others)
            if len(whole.trace.expected) > 0:
                if pays_unpulled:
                    unseen = paid_by_others(world, meta.last_state, meta.seen, t)
                    expected += unseen
                    earned += unseen
                _note(whole, t, expected, earned, phases)
            if t == times[place(mark)]:
                at_mark = cursor.row * len(times) + mark
                record.expected[at_mark] = sums.expected
                record.realised[at_mark] = sums.realised
                if pays_unpulled:
                    unpulled = sums.unpulled + paid_by_all(world, meta.last_state, meta.seen, t)
                    record.expected[at_mark] += unpulled
                    record.realised[at_mark] += unpulled
                record.phases[at_mark] = phases
                if tsde is not None and len(record.truth_weights) > 0:
                    _weigh_truth(actor.posterior, record, at_mark)
                mark += 1
                cursor.mark = mark
            if who == PYTHON:
                return TELL
        if tsde is not None and who == TSDE:
            multiply_all(actor.posterior)
            if actor.posterior.weights.status[0].impossible != 0:
                return RULED_OUT
        cursor.row += 1
        cursor.started = 0
    return DONE


@part
def _start(whole: Run, tsde: bool | None, others: bool | None, with_particles: bool | None) -> None:
    """Begin a replication."""
    actor, record = whole.actor, whole.record
    cursor, keys, sums = record.cursor[0], record.keys[0], record.sums[0]
    num_arms = len(record.start_state)
    number = cursor.first + cursor.row
    # int: constants have types of their own, and a function is compiled for each
    keys.world = stream_key(keys.seed, number, int(WORLD))
    actor.role[0].key = stream_key(keys.seed, number, int(LEARNER))
    first = cursor.row * num_arms
    become(whole.world, record.truths, first)
    if with_particles is not None:
        actor.posterior.particles.keys[0] = stream_key(keys.seed, number, int(RENEWAL))
    start_over(actor, record.start_state, record.start_elapsed, tsde, with_particles)
    if others is not None:
        for i in range(len(record.fresh_ints)):
            actor.memory.ints[i] = record.fresh_ints[i]
        for i in range(len(record.fresh_floats)):
            actor.memory.floats[i] = record.fresh_floats[i]
    if actor.role[0].who == POLICY and actor.lookup.mode[0].tabled != 0:
        for k in range(num_arms):
            follow_kind(actor.lookup, k, record.truths[first + k])
        follow_all(actor.lookup, actor.meta, actor.meta.now[0].time)
    sums.expected = 0.0
    sums.realised = 0.0
    sums.unpulled = 0.0
    cursor.mark = 0
    cursor.started = 1
    cursor.phase = 0
    cursor.change = whole.world.changes.begins[0] if len(whole.world.changes.begins) > 0 else 0


@part
def _change(whole: Run, t: int) -> None:
    """Begin the next phase of the world at time t; whoever knows the truth follows it."""
    actor, world, record = whole.actor, whole.world, whole.record
    meta, cursor, changes = actor.meta, record.cursor[0], world.changes
    if len(world.tables.passive_means) > 0:
        record.sums[0].unpulled += paid_by_all(world, meta.last_state, meta.seen, t - 1)
    num_arms, phase = len(record.start_state), cursor.phase
    cursor.phase += 1
    last = cursor.phase == len(changes.begins)
    cursor.change = 0 if last else changes.begins[cursor.phase]
    until = record.times[-1] + 1 if last else cursor.change
    enter_phase(world, phase, meta.last_state, meta.seen, t, until)
    first = cursor.row * num_arms
    for k in range(num_arms):
        record.truths[first + k] = changes.kinds[phase * num_arms + k]
    if actor.role[0].who == POLICY and actor.lookup.mode[0].tabled != 0:
        for k in range(num_arms):
            follow_kind(actor.lookup, k, record.truths[first + k])
        follow_all(actor.lookup, meta, t)


@part
def _note(whole: Run, t: int, expected: float, earned: float, phases: int) -> None:
    """Write down a step."""
    trace, num_pulls = whole.trace, whole.record.cursor[0].num_pulls
    for i in range(num_pulls):
        trace.arms[(t - 1) * num_pulls + i] = whole.actor.chosen[i]
        trace.states[(t - 1) * num_pulls + i] = whole.actor.states[i]
    trace.expected[t - 1] = expected
    trace.earned[t - 1] = earned
    trace.phases[t - 1] = phases


@part
def _weigh_truth(posterior: Posterior, record: Record, at: int) -> None:
    """Write the posterior weights of the true arms."""
    num_arms = len(record.start_state)
    first = record.cursor[0].row * num_arms
    truth = record.truths[first : first + num_arms]
    weigh_kinds(posterior, truth, record.truth_weights, at * num_arms)
