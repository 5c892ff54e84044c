"""Worlds that change, for the loop: the kinds of arms in each phase, and room for their beliefs."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.errors import TooLargeError
from restive.kernels.loop.tables import BeliefTables
from restive.kernels.loop.world import Changes, WorldTables
from restive.learn.task import Task
from restive.plan.actors import int_zeros, world_of
from restive.problem.arm import Arm
from restive.problem.bandit import kinds_among, starts_of
from restive.problem.beliefs import MOST_ELAPSED, settled_elapsed, settled_lengths
from restive.problem.changing import ChangingBandit

__all__ = ["Phases", "changing_world", "with_phases"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Phases:
    """The phases of a world after the first, on some task."""

    begins: IntArray  # [P]
    kinds: IntArray  # [P, K] of the arms, among those of the task
    settling: (
        IntArray  # [kinds] steps in which any belief of an arm left alone settles; 0 if unused
    )


def with_phases(task: Task, bandit: ChangingBandit) -> tuple[Task, Phases]:
    """Return the task on which the arms of all phases are known, and these phases.

    The task's true bandit is that of the first phase.
    """
    later = [arm for _, phase in bandit.changes for arm in phase.arms]
    labels = [
        f"true {phase.label(k)} from step {at:,} on"
        for at, phase in bandit.changes
        for k in range(phase.num_arms)
    ]
    kinds = kinds_among(later, labels.__getitem__)
    _ = task.choices.tables  # or what is wrong with an arm that is known so far
    settled_lengths(kinds, task.max_elapsed)  # or with one that comes later
    choices, drawn = task.choices.with_truths(later)
    task = replace(task, choices=choices, cached=OrderedDict(), cached_tables=OrderedDict())
    phases = drawn.reshape(len(bandit.changes), bandit.num_arms)
    settling = int_zeros(len(choices.kinds.arms))
    for kind in np.unique(phases).tolist():
        settling[kind] = _settling(choices.kinds.arms[kind], task.max_elapsed)
    return task, Phases(np.array(bandit.begins[1:], dtype=np.int64), phases, settling)


def _settling(arm: Arm, max_elapsed: int | None) -> int:
    """Steps after which the belief of an arm that is left alone is settled, whatever it was."""
    if arm.always_seen:
        return 0
    if max_elapsed is not None:
        return max_elapsed
    try:
        return settled_elapsed(Arm(arm.passive, None, arm.rewards))
    except TooLargeError:
        return MOST_ELAPSED


def changing_world(task: Task, phases: Phases, horizon: int) -> WorldTables:
    """Return a world with tables of its own, since it writes into them."""
    arms, num_arms = task.choices.kinds.arms, task.num_arms
    sizes = np.array([arm.num_states for arm in arms], dtype=np.int64)
    ends = np.append(phases.begins[1:], max(horizon + 1, int(phases.begins[-1]) + 1))
    longest = int((ends - phases.begins).max())
    rooms = np.minimum(phases.settling[phases.kinds].max(axis=0), longest) + 1
    tables = task.choices.tables
    room = rooms * sizes[phases.kinds[0]]
    world = world_of(_with_room(tables, int(room.sum()), rooms), num_arms)
    matrices = [arm.passive.ravel() for arm in arms]
    pays = len(tables.passive_means) > 0
    return world._replace(
        changes=Changes(
            begins=phases.begins,
            kinds=np.ascontiguousarray(phases.kinds).ravel(),
            moves=np.concatenate(matrices),
            move_offsets=starts_of([len(matrix) for matrix in matrices]),
            passive_rewards=np.concatenate(
                [arm.passive_rewards for arm in arms] if pays else [np.zeros(0)]
            ),
            rooms=rooms,
            room_offsets=len(tables.beliefs) + starts_of(room),
            # one more before each, for the sum of nothing
            room_mean_offsets=len(tables.means) + starts_of(rooms + 1) + 1,
            next_kinds=int_zeros(num_arms),
            since=np.ones(1, dtype=np.int64),
        )
    )


def _with_room(tables: BeliefTables, beliefs: int, rooms: IntArray) -> BeliefTables:
    """Return the tables with room behind them."""
    means = int((rooms + 1).sum())

    def longer(numbers: FloatArray, count: int) -> FloatArray:
        return np.concatenate([numbers, np.zeros(count)])

    pays = len(tables.passive_means) > 0
    return tables._replace(
        beliefs=longer(tables.beliefs, beliefs),
        thresholds=longer(tables.thresholds, beliefs),
        means=longer(tables.means, means),
        passive_means=longer(tables.passive_means, means if pays else 0),
        passive_totals=longer(tables.passive_totals, means if pays else 0),
    )
