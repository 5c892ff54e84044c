"""Driving the one compiled loop: who acts, in which world, and what Python must do in between."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.loop import engine, steps
from restive.kernels.loop.engine import Record, Run, Trace, run
from restive.kernels.loop.world import World
from restive.learn.learner_state import Mind
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
    mind: Mind,
    world: World,
    record: Record,
    trace: Trace,
    player: InPython | None = None,
) -> None:
    """Run the replications of a record to their end; Ctrl-C is heard about ten times a second.

    Parameters
    ----------
    mind
        Who acts, or for whom `player` acts.
    world
        Tables of the true arms.
    record, trace
        What is to be run, and arrays for what happens.
    player
        Somebody in Python who chooses, where the mind has no learner.
    """
    at_once = steps_at_once(mind.task.num_arms)
    parts: tuple[bool | None, ...] = (None, True, None)  # see `kernels.loop.engine.run`
    if mind.actor.who[0] <= steps.TSDE:
        parts = (True, None, True if mind.task.choices.has_clouds else None)
    held: steps.Actor | None = None
    while True:
        if held is not mind.actor:
            held = mind.actor
            handle = Handle(Run(mind.actor, world, record, trace))
        event = run(handle.where, at_once, *parts)
        if event == steps.DONE:
            return
        stop_if_interrupted()
        if event == steps.ASK:
            chosen = _asked(mind) if player is None else _selected(player, mind)
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


def _selected(player: InPython, mind: Mind) -> IntArray:
    return checked_pulls(player.select(), mind.task.num_arms, mind.task.num_pulls)


def checked_pulls(arms: ArrayLike, num_arms: int, num_pulls: int) -> IntArray:
    """Arms that somebody in Python selected, or what is wrong with them."""
    chosen = checked_arms(arms, num_arms, "arms to pull")
    if len(chosen) != num_pulls:
        raise ProblemError(f"{num_pulls} arms are pulled each step, {len(chosen)} were selected")
    return chosen
