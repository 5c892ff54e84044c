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
from restive.kernels.jit.handles import opener, where_wanted
from restive.kernels.learn.learners.memory import Memory
from restive.kernels.learn.weights import multiply_all, weigh_kinds
from restive.kernels.loop.index_lookup import follow_all, follow_kind
from restive.kernels.loop.steps import (
    DONE,
    GO,
    MAKE_RANKS,
    MASKED,
    PAUSE,
    POLICY,
    PYTHON,
    RULED_OUT,
    SEE,
    TELL,
    TSDE,
    Actor,
    begin,
    choose,
    end_step,
    num_phases,
    start_over,
    take_in_arm,
    take_in_others,
)
from restive.kernels.loop.tables import (
    IMPOSSIBLE,
    STAGE,
    TABLED,
    TIME,
    Episodes,
    IndexLookup,
    Meta,
    ParticleGroups,
    Slots,
    Weights,
)
from restive.kernels.loop.world import (
    World,
    become,
    paid_by_all,
    paid_by_others,
    paid_until_pulled,
    pull,
)
from restive.kernels.random import LEARNER, RENEWAL, WORLD, stream_key

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

__all__ = ["NUMBERS", "Record", "Run", "Trace", "run"]

NUMBERS = 3  # to be raised with any change that gives a replication other numbers than before

# What `Record.cursor` holds.
ROW = 0  # the replication that is running, from 0
STARTED = 1  # whether it has begun
MARK = 2  # the next time to record
NUM_PULLS = 3
FIRST = 4  # number of the replication in row 0
CURSOR_SIZE = 5

# What `Record.sums` holds, so far.
EXPECTED, REALISED = 0, 1  # of pulls
UNPULLED = 2  # what arms paid until they were pulled again
SUMS_SIZE = 3

# What `Record.keys` holds.
SEED, WORLD_KEY, LEARNER_KEY = 0, 1, 2
KEYS_SIZE = 3


class Record(NamedTuple):
    """What replications are to be run, and what they earned up to each time, a row for each."""

    times: IntArray  # [M] ascending; the last is the horizon
    truths: IntArray  # [R * K] kinds of the true arms
    start_state: IntArray  # [K]
    start_elapsed: IntArray  # [K]
    fresh_ints: IntArray  # what a compiled learner's memory begins with
    fresh_floats: FloatArray
    expected: FloatArray  # [R * M] sum of E[r | xi, A]
    realised: FloatArray  # [R * M] sum of the rewards; of arms not pulled, those expected
    phases: IntArray  # [R * M] episodes or phases begun
    truth_weights: FloatArray  # [R * M * K] posterior weight of each true arm, or empty
    sums: FloatArray  # [SUMS_SIZE]
    cursor: IntArray  # [CURSOR_SIZE]
    keys: KeyArray  # [KEYS_SIZE]


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
    world: World
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
    actor, world, record, trace = whole.actor, whole.world, whole.record, whole.trace
    slots, weights = where_wanted(tsde, actor.slots), where_wanted(tsde, actor.weights)
    particles, episodes = (
        where_wanted(with_particles, actor.particles),
        where_wanted(tsde, actor.episodes),
    )
    knowledge, memory = where_wanted(others, actor.knowledge), where_wanted(others, actor.memory)
    who, masked = actor.who[0], actor.who[MASKED] != 0
    meta, lookup = actor.meta, actor.lookup
    available, chosen, states = actor.available, actor.chosen, actor.states
    now, cursor, times, sums = meta.now, record.cursor, record.times, record.sums
    num_pulls = cursor[NUM_PULLS]
    pays_unpulled = len(world.tables.passive_means) > 0
    while cursor[ROW] * len(times) < len(record.expected):
        if cursor[STARTED] == 0:
            _start(who, meta, slots, weights, particles, episodes, lookup, memory, world, record)
            if who == POLICY and lookup.mode[TABLED] == 0:
                return MAKE_RANKS
        key, luck = record.keys[LEARNER_KEY], record.keys[WORLD_KEY]
        mark = cursor[MARK]
        for t in range(now[TIME], times[-1] + 1):
            if steps == 0:
                return PAUSE
            steps -= 1
            if now[STAGE] != SEE:
                event = begin(
                    who, meta, slots, weights, particles, episodes, lookup, memory, t, key
                )
                if event == GO:
                    event = choose(
                        who, meta, particles, episodes, lookup, knowledge, memory, available,
                        masked, chosen, t, key, num_pulls,
                    )  # fmt: skip
                    now[STAGE] = SEE
                if event != GO:
                    return event
            doubled = False
            expected, earned = 0.0, 0.0
            if pays_unpulled:
                sums[UNPULLED] += paid_until_pulled(
                    world, meta.last_state, meta.seen, chosen[:num_pulls], t
                )
            for i in range(num_pulls):
                k = chosen[i]
                at = place(k)
                state, mean = pull(world, k, t, meta.last_state[at], t - meta.seen[at], luck)
                reward = world.tables.rewards[place(world.reward_offsets[at] + state)]
                sums[EXPECTED] += mean
                sums[REALISED] += reward
                expected += mean
                earned += reward
                states[i] = state
                if who <= TSDE:
                    doubled |= take_in_arm(
                        who, meta, slots, weights, particles, episodes, lookup, k, state, t
                    )
            if others is not None and who > TSDE:
                take_in_others(
                    who, meta, knowledge, memory, t, key, chosen[:num_pulls],
                    states[:num_pulls],
                )  # fmt: skip
            end_step(who, meta, episodes, t, doubled)
            phases = num_phases(who, episodes, memory)
            if len(trace.expected) > 0:
                if pays_unpulled:
                    unseen = paid_by_others(world, meta.last_state, meta.seen, t)
                    expected += unseen
                    earned += unseen
                _note(trace, t, chosen, states, num_pulls, expected, earned, phases)
            if t == times[place(mark)]:
                at_mark = cursor[ROW] * len(times) + mark
                record.expected[at_mark] = sums[EXPECTED]
                record.realised[at_mark] = sums[REALISED]
                if pays_unpulled:
                    unpulled = sums[UNPULLED] + paid_by_all(world, meta.last_state, meta.seen, t)
                    record.expected[at_mark] += unpulled
                    record.realised[at_mark] += unpulled
                record.phases[at_mark] = phases
                if tsde is not None and len(record.truth_weights) > 0:
                    _weigh_truth(slots, weights, record, at_mark)
                mark += 1
                cursor[MARK] = mark
            if who == PYTHON:
                return TELL
        if tsde is not None and who == TSDE:
            multiply_all(slots, weights)
            if weights.status[IMPOSSIBLE] != 0:
                return RULED_OUT
        cursor[ROW] += 1
        cursor[STARTED] = 0
    return DONE


@part
def _start(
    who: int, meta: Meta, slots: Slots, weights: Weights, particles: ParticleGroups | None,
    episodes: Episodes, lookup: IndexLookup, memory: Memory, world: World, record: Record,
) -> None:  # fmt: skip
    """Begin a replication."""
    cursor, keys = record.cursor, record.keys
    num_arms = len(record.start_state)
    number = cursor[FIRST] + cursor[ROW]
    # int: constants have types of their own, and a function is compiled for each
    keys[WORLD_KEY] = stream_key(keys[SEED], number, int(WORLD))
    keys[LEARNER_KEY] = stream_key(keys[SEED], number, int(LEARNER))
    first = cursor[ROW] * num_arms
    become(world, record.truths, first)
    if particles is not None:
        particles.keys[0] = stream_key(keys[SEED], number, int(RENEWAL))
    start_over(
        who, meta, slots, weights, particles, episodes, lookup, record.start_state,
        record.start_elapsed,
    )  # fmt: skip
    if memory is not None:
        for i in range(len(record.fresh_ints)):
            memory.ints[i] = record.fresh_ints[i]
        for i in range(len(record.fresh_floats)):
            memory.floats[i] = record.fresh_floats[i]
    if who == POLICY and lookup.mode[TABLED] != 0:
        for k in range(num_arms):
            follow_kind(lookup, k, record.truths[first + k])
        follow_all(lookup, meta, meta.now[TIME])
    for i in range(SUMS_SIZE):
        record.sums[i] = 0.0
    cursor[MARK] = 0
    cursor[STARTED] = 1


@part
def _note(
    trace: Trace, t: int, chosen: IntArray, states: IntArray, num_pulls: int, expected: float,
    earned: float, phases: int,
) -> None:  # fmt: skip
    """Write down a step."""
    for i in range(num_pulls):
        trace.arms[(t - 1) * num_pulls + i] = chosen[i]
        trace.states[(t - 1) * num_pulls + i] = states[i]
    trace.expected[t - 1] = expected
    trace.earned[t - 1] = earned
    trace.phases[t - 1] = phases


@part
def _weigh_truth(slots: Slots, weights: Weights, record: Record, at: int) -> None:
    """Write the posterior weights of the true arms."""
    num_arms = len(record.start_state)
    first = record.cursor[ROW] * num_arms
    truth = record.truths[first : first + num_arms]
    weigh_kinds(slots, weights, truth, record.truth_weights, at * num_arms)
