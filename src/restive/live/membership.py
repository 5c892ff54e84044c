"""Who is there: arms that join, leave, and come back if they left by mistake."""

from __future__ import annotations

from collections.abc import Sequence

from restive.errors import ConflictError, ProblemError
from restive.live.answers import Receipt
from restive.live.memory import Memory
from restive.live.roster import NewArm, arms_to_data
from restive.live.session import Session, Writer
from restive.live.sql_tables import enter_arms, enter_leave, enter_return

__all__ = ["come_back", "join", "leave"]


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
    for arm in new:
        like = memory.roster.kinds.get(arm.kind) if isinstance(arm.kind, str) else None
        if getattr(getattr(like, "typical", None), "always_seen", False):
            raise ProblemError(
                f"{memory.settings.words.arm} {arm.name!r}: who is seen every "
                f"{memory.settings.words.tick} cannot join a file that runs; make a new one"
            )
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
