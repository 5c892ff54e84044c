"""Driving the one compiled loop: who acts, in which world, and what Python must do in between."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.loop import steps
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.engine import Record, Run, Trace, run
from restive.kernels.loop.world import WorldTables
from restive.learn.learner_state import LearnerState
from restive.learn.requests import checked_arms
from restive.plan.actors import steps_at_once
from restive.plan.policies.base import checked_choice
from restive.threads import stop_if_interrupted

__all__ = ["InPython", "checked_pulls", "drive"]

IntArray = NDArray[np.int64]


class InPython(Protocol):
    """Somebody who acts in Python."""

    def select(self) -> ArrayLike:
        """Return the arms to pull."""

    def observe(self, states: IntArray) -> None:
        """Learn what was seen of them."""


def drive(
    learner_state: LearnerState,
    world: WorldTables,
    record: Record,
    trace: Trace,
    player: InPython | None = None,
) -> None:
    """Run the replications of a record to their end; Ctrl-C is heard about ten times a second.

    Parameters
    ----------
    learner_state
        Who acts, or for whom `player` acts.
    world
        Tables of the true arms.
    record, trace
        What is to be run, and arrays for what happens.
    player
        Somebody in Python who chooses, where the learner state has no learner.
    """
    at_once = steps_at_once(learner_state.task.num_arms)
    parts: tuple[bool | None, ...] = (None, True, None)  # see `kernels.loop.engine.run`
    if learner_state.actor.role[0].who <= steps.TSDE:
        parts = (True, None, True if learner_state.task.choices.has_particles else None)
    held: Actor | None = None
    while True:
        if held is not learner_state.actor:
            held = learner_state.actor
            handle = Handle(Run(learner_state.actor, world, record, trace))
        event = run(handle.where, at_once, *parts)
        if event == steps.DONE:
            return
        stop_if_interrupted()
        if event == steps.ASK:
            chosen = _asked(learner_state) if player is None else _selected(player, learner_state)
            learner_state.actor.chosen[: len(chosen)] = chosen
        elif event == steps.TELL:
            assert player is not None
            player.observe(_shown(learner_state))
        elif event == steps.MAKE_RANKS and learner_state.learner is None:
            first = int(record.cursor[0].row) * learner_state.task.num_arms
            learner_state.follow(record.truths[first : first + learner_state.task.num_arms])
        elif event != steps.PAUSE:
            learner_state.respond(event)


def _shown(learner_state: LearnerState) -> IntArray:
    """States of the arms that were just seen: of those pulled, or of all that were shown."""
    if not len(learner_state.task.always_seen):
        return learner_state.actor.states[: learner_state.task.num_pulls].copy()
    meta = learner_state.actor.meta
    shown: IntArray = meta.last_state[meta.seen == learner_state.time - 1]
    return shown


def _asked(learner_state: LearnerState) -> IntArray:
    """Arms that a policy without an index pulls."""
    assert learner_state.policy is not None
    assert learner_state.followed is not None
    return checked_choice(learner_state.policy, learner_state.followed, learner_state.belief_state)


def _selected(player: InPython, learner_state: LearnerState) -> IntArray:
    return checked_pulls(player.select(), learner_state.task.num_arms, learner_state.task.num_pulls)


def checked_pulls(arms: ArrayLike, num_arms: int, num_pulls: int) -> IntArray:
    """Arms that somebody in Python selected, or what is wrong with them."""
    chosen = checked_arms(arms, num_arms, "arms to pull")
    if len(chosen) != num_pulls:
        raise ProblemError(f"{num_pulls} arms are pulled each step, {len(chosen)} were selected")
    return chosen
