"""Who is there: arms that join, leave, and come back if they left by mistake."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from restive.errors import ConflictError, ProblemError
from restive.live.journal.sql_tables import enter_arms, enter_leave, enter_return
from restive.live.memory import Memory
from restive.live.people.roster import LONG_AGO, NewArm, arms_to_data
from restive.live.session import Session, Writer
from restive.live.told.answers import Receipt

__all__ = ["Move", "come_back", "join", "leave", "new_arms"]

Move: TypeAlias = Callable[[Session, Memory, Sequence[str], int, Writer], Receipt]


def new_arms(
    memory: Memory, named: Mapping[str, str | None], known: Mapping[str, tuple[int, int]]
) -> list[NewArm]:
    """Return arms by name and kind, which may be left out where there is one, and last sighting."""
    kinds = list(memory.roster.kinds)
    if None in named.values() and len(kinds) > 1:
        raise ProblemError(f"say each arm's kind: one of {', '.join(kinds)}")
    return [
        NewArm(name, kinds[0] if kind is None else kind, *known.get(name, (None, LONG_AGO)))
        for name, kind in named.items()
    ]


def join(
    session: Session, memory: Memory, arms: Sequence[NewArm], tick: int, writer: Writer
) -> Receipt:
    """Let arms join with the next decision; those of the same kind who have left are back.

    Those that are there with the same kind are known.
    """
    if memory.roster.joint is not None:
        arms_here = memory.settings.words.many("arm")
        raise ProblemError(
            f"{arms_here} cannot join under a joint prior, which names all {arms_here}"
        )
    slots = memory.roster.slots
    new, back = [], list[int]()
    for arm in arms:
        there = slots.get(arm.name)
        if there is None:
            new.append(arm)
        elif memory.roster.kind_of[there] != arm.kind:
            raise ConflictError(
                f"{memory.settings.words.arm} {arm.name!r} is there already, of kind "
                f"{memory.roster.kind_of[there]!r}"
            )
        elif there in memory.gone:
            back.append(there)
    memory.roster.checked(new)
    come = len(new) + len(back)
    receipt = Receipt(new=come, known=len(arms) - come)
    answer = {"receipt": vars(receipt)}
    if back:  # who left by mistake
        writer.append("return", tick, {"arms": sorted(back)}, answer)
        enter_return(session.journal, back)
    if new:
        body = arms_to_data(new, list(memory.roster.kinds))
        first = len(memory.roster)
        enter_arms(session.journal, writer.append("join", tick, body, answer), first, body)
    writer.finish(tick, answer)
    return receipt


def leave(
    session: Session, memory: Memory, names: Sequence[str], tick: int, writer: Writer
) -> Receipt:
    """Let arms leave for ever."""
    slots = {memory.roster.slot(name) for name in names}
    new = sorted(slots - set(memory.gone))
    receipt = Receipt(new=len(new), known=len(slots) - len(new))
    answer = {"receipt": vars(receipt)}
    if new:
        event = writer.append("leave", tick, {"arms": new}, answer)
        enter_leave(session.journal, event, new)
    writer.finish(tick, answer)
    return receipt


def come_back(
    session: Session, memory: Memory, names: Sequence[str], tick: int, writer: Writer
) -> Receipt:
    """Let arms that have left come back."""
    slots = {memory.roster.slot(name) for name in names}
    back = sorted(slots & set(memory.gone))
    receipt = Receipt(new=len(back), known=len(slots) - len(back))
    answer = {"receipt": vars(receipt)}
    if back:
        writer.append("return", tick, {"arms": back}, answer)
        enter_return(session.journal, back)
    writer.finish(tick, answer)
    return receipt
