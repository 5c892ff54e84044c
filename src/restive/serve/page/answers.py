"""What becomes of a pull: buttons for it, what was told of it, and whether that can be changed."""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple

from restive.live.agent import LiveAgent
from restive.live.settings import LEAVE, UNSEEN, Settings
from restive.live.told.answers import Act
from restive.serve.auth import MANAGED, Caller

__all__ = ["Answer", "Said", "answer_of", "may_undo", "results_shown"]


class Said(NamedTuple):
    """What a page tells about what was just done."""

    text: str = ""
    wrong: bool = False


class Answer(NamedTuple):
    """A pull with its result, or buttons for it."""

    arm: str
    tick: int
    when: str
    result: str  # what a person reads; "" where one is waited for
    choices: dict[str, str]  # what may be said, each with what a person reads; none if nothing may
    chosen: str | None  # which of them it is now
    away: Container[str]  # those with which an arm leaves


def answer_of(
    settings: Settings, arm: str, tick: int, result: int | str | None, size: int, *,
    unseen: bool = True,
) -> Answer:  # fmt: skip
    """Return what a page shows of a pull.

    Parameters
    ----------
    settings, arm, tick
        Of the file, and which pull.
    result
        What is known of it, "leave" of who left by it; None if that is waited for.
    size
        States of the arm; 0 where nothing may be said.
    unseen
        Whether this file takes pulls that were made and not seen.
    """
    choices = settings.choices(size, unseen=unseen) if size else {}
    means = {word: settings.result_of(word) for word in choices}
    return Answer(
        arm,
        tick,
        settings.words.when(tick, settings.clock.label(tick)),
        "" if result is None else settings.outcome_text(result),
        choices,
        next((word for word, meant in means.items() if meant == result), None),
        frozenset(word for word, meant in means.items() if meant == LEAVE),
    )


def results_shown(agent: LiveAgent, tick: int) -> dict[str, int | str]:
    """Return what is known of each arm of a decision, and of whom it is that they left."""
    found = agent.results(tick)
    left = agent.left_with([arm for arm, result in found.items() if result == UNSEEN])
    return found | {arm: LEAVE for arm, of in left.items() if of == tick}


def may_undo(act: Act | None, caller: Caller, clients: Container[str]) -> bool:
    """Whether a page offers to undo an act: what was done on a page, by whoever may do it.

    What the command line or a rebuild has done is undone there, if at all.
    """
    if act is None or act.actor not in clients:
        return False
    return caller.token.allows("admin" if act.kind in MANAGED else "act")
