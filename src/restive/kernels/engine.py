"""The one loop: an actor in a world, step by step, replication by replication.

A replication is a pure function of (seed, its number): the true system is given for each, the
actor starts over, and its luck and the world's come from the two streams of that number. The loop
returns to Python whenever Python must act (`kernels.steps`), and now and then so that Ctrl-C is
heard; called again, it continues where it left off.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined, part, place
from restive.kernels.following import follow_all, follow_kind
from restive.kernels.handles import opener
from restive.kernels.random import LEARNER, WORLD, stream_key
from restive.kernels.steps import (
    CHOOSE,
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
    Actor,
    begin,
    choose,
    end_step,
    num_phases,
    start_over,
    take_in_arm,
    take_in_others,
)
from restive.kernels.tables import IMPOSSIBLE, STAGE, TABLED, TIME
from restive.kernels.weights import multiply_all, weigh_kinds
from restive.kernels.world import World, become, pull

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

__all__ = ["NUMBERS", "Record", "Run", "Trace", "run"]

NUMBERS = 2  # to be raised with any change that gives a replication other numbers than before

# What `Record.cursor` holds.
ROW = 0  # the replication that is running, from 0
STARTED = 1  # whether it has begun
MARK = 2  # the next time to record
NUM_PULLS = 3
FIRST = 4  # number of the replication in row 0
CURSOR_SIZE = 5

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
    realised: FloatArray  # [R * M] sum of the rewards
    phases: IntArray  # [R * M] episodes or phases begun
    truth_weights: FloatArray  # [R * M * K] posterior weight of each true arm, or empty
    sums: FloatArray  # [2] expected and realised so far
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
def run(where: IntArray, steps: int) -> int:
    """Run until all replications are DONE or Python must act; PAUSE after so many steps."""
    whole = _opened(where)
    actor, record = whole.actor, whole.record
    cursor = record.cursor
    num_times = len(record.times)
    while cursor[ROW] * num_times < len(record.expected):
        if cursor[STARTED] == 0:
            _start(actor, whole.world, record)
            if actor.who[0] == POLICY and actor.following.mode[TABLED] == 0:
                return MAKE_RANKS
        before = actor.meta.now[TIME]
        event = _play(actor, whole.world, record, whole.trace, steps)
        if event != GO:
            return event
        steps -= actor.meta.now[TIME] - before
        if actor.who[0] == TSDE:
            multiply_all(actor.slots, actor.weights)
            if actor.weights.room[IMPOSSIBLE] != 0:
                return RULED_OUT
        cursor[ROW] += 1
        cursor[STARTED] = 0
    return DONE


@part
def _start(actor: Actor, world: World, record: Record) -> None:
    """Begin a replication."""
    cursor, keys = record.cursor, record.keys
    num_arms = len(record.start_state)
    number = cursor[FIRST] + cursor[ROW]
    keys[WORLD_KEY] = stream_key(keys[SEED], number, WORLD)
    keys[LEARNER_KEY] = stream_key(keys[SEED], number, LEARNER)
    first = cursor[ROW] * num_arms
    become(world, record.truths, first)
    start_over(actor, record.start_state, record.start_elapsed)
    for i in range(len(record.fresh_ints)):
        actor.memory.ints[i] = record.fresh_ints[i]
    for i in range(len(record.fresh_floats)):
        actor.memory.floats[i] = record.fresh_floats[i]
    if actor.who[0] == POLICY and actor.following.mode[TABLED] != 0:
        for k in range(num_arms):
            follow_kind(actor.following, k, record.truths[first + k])
        follow_all(actor.following, actor.meta, 1)
    record.sums[0], record.sums[1] = 0.0, 0.0
    cursor[MARK] = 0
    cursor[STARTED] = 1


@inlined
def _play(actor: Actor, world: World, record: Record, trace: Trace, steps: int) -> int:
    """Play the current replication to its end, or until Python must act."""
    now, cursor = actor.meta.now, record.cursor
    num_pulls = cursor[NUM_PULLS]
    key, luck = record.keys[LEARNER_KEY], record.keys[WORLD_KEY]
    who = actor.who[0]
    total_expected, total_realised = record.sums[0], record.sums[1]
    mark = cursor[MARK]
    event = GO
    for t in range(now[TIME], record.times[-1] + 1):
        if steps == 0:
            event = PAUSE
            break
        steps -= 1
        if now[STAGE] != SEE:
            if now[STAGE] != CHOOSE:
                event = begin(actor, t, key)
                if event != GO:
                    break
            event = choose(actor, t, key, num_pulls)
            if event != GO:
                now[STAGE] = SEE
                break
        doubled = False
        step_expected, step_earned = 0.0, 0.0
        for i in range(num_pulls):
            k = actor.chosen[i]
            at = place(k)
            state, mean = pull(
                world, k, t, actor.meta.last_state[at], t - actor.meta.seen[at], luck
            )
            reward = world.tables.rewards[place(world.reward_offsets[at] + state)]
            total_expected += mean
            total_realised += reward
            step_expected += mean
            step_earned += reward
            actor.states[i] = state
            if who <= TSDE:
                doubled |= take_in_arm(actor, k, state, t)
        if who > TSDE:
            take_in_others(
                who, actor.meta, actor.knowledge, actor.memory, t, key, actor.chosen[:num_pulls],
                actor.states[:num_pulls],
            )  # fmt: skip
        end_step(actor, t, doubled)
        if len(trace.expected) > 0:
            for i in range(num_pulls):
                trace.arms[(t - 1) * num_pulls + i] = actor.chosen[i]
                trace.states[(t - 1) * num_pulls + i] = actor.states[i]
            trace.expected[t - 1] = step_expected
            trace.earned[t - 1] = step_earned
            trace.phases[t - 1] = num_phases(actor)
        if t == record.times[place(mark)]:
            at = cursor[ROW] * len(record.times) + mark
            record.expected[at] = total_expected
            record.realised[at] = total_realised
            record.phases[at] = num_phases(actor)
            if len(record.truth_weights) > 0:
                _weigh_truth(actor, record, at)
            mark += 1
        if who == PYTHON:
            event = TELL
            break
    record.sums[0], record.sums[1] = total_expected, total_realised
    cursor[MARK] = mark
    return event


@part
def _weigh_truth(actor: Actor, record: Record, at: int) -> None:
    """Write the posterior weights of the true arms."""
    num_arms = len(record.start_state)
    first = record.cursor[ROW] * num_arms
    truth = record.truths[first : first + num_arms]
    weigh_kinds(actor.slots, actor.weights, truth, record.truth_weights, at * num_arms)
