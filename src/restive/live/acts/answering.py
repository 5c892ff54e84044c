"""Alarms are answered: somebody has looked, and says what was found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from restive.arguments import shown
from restive.errors import ProblemError
from restive.live.memory import Memory
from restive.live.session import Session
from restive.live.told.status import alarms

__all__ = ["answer"]


def answer(session: Session, memory: Memory, numbers: Sequence[Any], note: str, actor: str) -> None:
    """Journal what was found, of all of these alarms or none; `undo` takes it back as one."""
    waiting = {one.seq: one for one in alarms(session)}
    for number in numbers:
        if number not in list(waiting):  # whatever it is
            others = f", but {', '.join(map(str, waiting))}" if waiting else ""
            raise ProblemError(
                f"there is no alarm {shown(number)} that waits to be acknowledged{others}; "
                "nothing was changed"
            )
    first: dict[str, int] = {}
    for number in dict.fromkeys(numbers):  # each of all events of its name
        body = {"of": number, "name": waiting[number].name, "note": note}
        event = session.append("acknowledge", max(memory.tick, 0), body | first, actor)
        first = first or {"with": event.seq}
