"""Driving the one compiled loop: who acts, in which world, and what Python must do in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.mind import Mind
from restive.arguments import checked_seed
from restive.errors import ProblemError
from restive.kernels import engine, steps
from restive.kernels.engine import CURSOR_SIZE, KEYS_SIZE, Record, Run, Trace, run
from restive.kernels.handles import Handle
from restive.kernels.learners.memory import Memory
from restive.kernels.tables import BeliefTables
from restive.kernels.world import World
from restive.policies.base import checked_choice
from restive.task import Task

__all__ = ["InPython", "drive", "make_record", "make_trace", "no_trace", "world_of"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WORK_AT_ONCE = 1 << 19  # steps times arms before Python hears whether the user has had enough


class InPython(Protocol):
    """Somebody who acts in Python."""

    def select(self) -> ArrayLike:
        """Return the arms to pull."""

    def observe(self, states: IntArray) -> None:
        """Learn what was seen of them."""


def drive(
    mind: Mind,
    world: World,
    record: Record,
    trace: Trace,
    player: InPython | None = None,
    check: Callable[[], None] = lambda: None,
) -> None:
    """Run the replications of a record to their end.

    Parameters
    ----------
    mind
        Who acts, or for whom `player` acts.
    world
        Tables of the true arms.
    record, trace
        What is to be run, and room for what happens.
    player
        Somebody in Python who chooses, where the mind has no learner.
    check
        Called about ten times a second; whatever it raises ends the run.
    """
    at_once = max(1, WORK_AT_ONCE // mind.task.num_arms)
    held: steps.Actor | None = None
    while True:
        if held is not mind.actor:
            held = mind.actor
            handle = Handle(Run(mind.actor, world, record, trace))
        event = run(handle.where, at_once)
        if event == steps.DONE:
            return
        check()
        if event == steps.ASK:
            chosen = _asked(mind) if player is None else _checked_arms(player.select(), mind.task)
            mind.actor.chosen[: len(chosen)] = chosen
        elif event == steps.TELL:
            assert player is not None
            player.observe(mind.actor.states[: mind.task.num_pulls].copy())
        elif event == steps.MAKE_RANKS and mind.learner is None:
            first = int(record.cursor[engine.ROW]) * mind.task.num_arms
            mind.follow(record.truths[first : first + mind.task.num_arms])
        elif event != steps.PAUSE:
            mind.respond(event)


def _asked(mind: Mind) -> IntArray:
    """Arms that a policy without an index pulls."""
    assert mind.policy is not None
    assert mind.followed is not None
    return checked_choice(mind.policy, mind.followed, mind.belief_state)


def _checked_arms(arms: ArrayLike, task: Task) -> IntArray:
    """Arms that somebody in Python selected, or what is wrong with them."""
    try:
        chosen = np.asarray(arms)
    except ValueError:  # lists of different lengths
        chosen = np.zeros((0, 0))
    if chosen.ndim != 1 or (chosen.size and not np.issubdtype(chosen.dtype, np.integer)):
        raise ProblemError(f"arms to pull must be a list of whole numbers, got {arms!r:.60}")
    if len(chosen) != task.num_pulls:
        raise ProblemError(f"{task.num_pulls} arms are pulled each step, {len(chosen)} were selected")
    if not 0 <= chosen.min() <= chosen.max() < task.num_arms:
        raise ProblemError(
            f"the arms are 0 to {task.num_arms - 1}, {chosen.tolist()!s:.60} were selected"
        )
    if len(np.unique(chosen)) != len(chosen):
        raise ProblemError(f"an arm was selected twice: {chosen.tolist()!s:.60}")
    return chosen.astype(np.int64)


def world_of(tables: BeliefTables, num_arms: int) -> World:
    """Room for a world whose arms are of the kinds in these tables."""
    return World(tables, *(np.zeros(num_arms, dtype=np.int64) for _ in range(5)))


def make_record(
    task: Task,
    times: IntArray,
    truths: IntArray,
    memory: Memory,
    seed: int,
    first: int,
    *,
    with_posterior: bool = False,
) -> Record:
    """Room for what replications first, first + 1, ... earn, one for each row of `truths`."""
    rows, num_arms = truths.shape
    size = rows * len(times)
    cursor = np.zeros(CURSOR_SIZE, dtype=np.int64)
    cursor[engine.NUM_PULLS], cursor[engine.FIRST] = task.num_pulls, first
    keys = np.zeros(KEYS_SIZE, dtype=np.uint64)
    keys[engine.SEED] = np.uint64(checked_seed(seed))
    return Record(
        times=times,
        truths=np.ascontiguousarray(truths).ravel(),
        start_state=task.start.last_state,
        start_elapsed=task.start.elapsed,
        fresh_ints=memory.ints.copy(),
        fresh_floats=memory.floats.copy(),
        expected=np.empty(size),
        realised=np.empty(size),
        phases=np.empty(size, dtype=np.int64),
        truth_weights=np.empty(size * num_arms if with_posterior else 0),
        sums=np.zeros(2),
        cursor=cursor,
        keys=keys,
    )


def make_trace(horizon: int, num_pulls: int) -> Trace:
    """Room for what happens in each step."""
    pulls = horizon * num_pulls
    return Trace(
        arms=np.empty(pulls, dtype=np.int64),
        states=np.empty(pulls, dtype=np.int64),
        expected=np.empty(horizon),
        earned=np.empty(horizon),
        phases=np.empty(horizon, dtype=np.int64),
    )


def no_trace() -> Trace:
    """Room for nothing."""
    return make_trace(0, 0)
