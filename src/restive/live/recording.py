"""Recording: results, arms that join and leave, corrections, notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from restive.arguments import shown
from restive.errors import ConflictError, ProblemError
from restive.live.answers import Mistake, Receipt, RefusedError
from restive.live.bodies import joining
from restive.live.contents import (
    enter_arms,
    enter_instead,
    enter_leave,
    enter_results,
    pulls_of,
)
from restive.live.memory import Memory
from restive.live.results import Batch, Sorted, sort_results
from restive.live.roster import NewArm
from restive.live.session import Session

__all__ = ["Prepared", "Writer", "acknowledge", "correct", "join", "leave", "prepare", "record"]


class Writer:
    """Journals the events of one request: the first of them carries its id and its answer."""

    def __init__(
        self, session: Session, actor: str, request: str | None, fingerprint: bytes | None
    ) -> None:
        self.session = session
        self.actor = actor
        self.request = request
        self.fingerprint = fingerprint

    def append(self, kind: str, tick: int, body: dict[str, Any], answer: Any) -> Any:
        """Journal and apply an event."""
        request, self.request = self.request, None
        mark = self.fingerprint if request is not None else None
        body = body | ({"answer": answer} if request is not None else {})
        return self.session.append(kind, tick, body, self.actor, request, mark)

    def finish(self, tick: int, answer: Any) -> None:
        """Journal that a request with an id was answered, if nothing else did."""
        if self.request is not None:
            self.append("again", tick, {}, answer)


@dataclass
class Prepared:
    """Results that were looked at, before anything is journaled."""

    found: list[Sorted]  # by tick, ascending
    mistakes: list[Mistake]
    receipt: Receipt


def prepare(
    session: Session, memory: Memory, batches: Sequence[Batch], accept_good: bool = False
) -> Prepared:
    """Look at results, inside a transaction; raise if some cannot be taken, unless that is fine."""
    found = [sort_results(session.journal, memory, batch) for batch in batches]
    found.sort(key=lambda one: one.tick)  # late ones in the order of time
    mistakes = [mistake for one in found for mistake in one.mistakes]
    if mistakes and not accept_good:
        raise RefusedError(mistakes)
    return Prepared(found, mistakes, _total(found, memory))


def record(
    session: Session, memory: Memory, prepared: Prepared, writer: Writer, answer: dict[str, Any]
) -> None:
    """Journal results that can be taken."""
    for one in prepared.found:
        _journal_results(session, memory, one, writer, answer)
    writer.finish(max(memory.tick, 0), answer)


def _total(found: Sequence[Sorted], memory: Memory) -> Receipt:
    missing = set() if memory.open is None else set(memory.open.missing)
    new = known = late = superseded = 0
    for one in found:
        missing.difference_update(one.record)
        new += len(one.record) + len(one.instead)
        known += one.known
        late += len(one.late) + len(one.late_instead) - len(one.superseded)
        superseded += len(one.superseded)
    closed = memory.open is not None and not missing
    return Receipt(new, known, late, superseded, closed)


def _journal_results(
    session: Session, memory: Memory, one: Sorted, writer: Writer, answer: Any
) -> None:
    journal = session.journal
    if one.record:
        body = _columns(one.record)
        assert memory.open is not None
        short = body if body["arms"] != memory.open.choice.arms else {"results": body["results"]}
        enter_results(journal, writer.append("record", one.tick, short, answer), body)
    if one.instead:
        body = _columns(one.instead)
        enter_instead(journal, writer.append("override", one.tick, body, answer), body)
    for late, kind, enter in (
        (one.late, "late", enter_results),
        (one.late_instead, "override", enter_instead),
    ):
        if late:
            body = _columns(late) | {"late": True}
            unused = [slot for slot in sorted(late) if slot in one.superseded]
            if unused:
                body["superseded"] = unused
            session.touch()
            event = _append_late(memory, writer, kind, one.tick, body, answer)
            enter(journal, event, body)
    leaving = [slot for slot in sorted(set(one.leaving)) if slot not in memory.gone]
    if leaving:
        body = {"arms": leaving}
        event = writer.append("leave", max(memory.tick, 0), body, answer)
        enter_leave(journal, event, leaving)


def _append_late(
    memory: Memory, writer: Writer, kind: str, tick: int, body: dict[str, Any], answer: Any
) -> Any:
    """Journal late results; refuse them if they contradict what is known."""
    try:
        event = writer.append(kind, tick, body, answer)
    except ProblemError as error:
        raise RefusedError([_late_mistake(memory, tick, body, str(error))]) from None
    if memory.open is not None and memory.impossible(memory.open.sightings) is not None:
        reason = "it contradicts what was recorded for the open tick; the prior rules it out"
        raise RefusedError([_late_mistake(memory, tick, body, reason)])
    return event


def _late_mistake(memory: Memory, tick: int, body: dict[str, Any], reason: str) -> Mistake:
    names = [memory.roster.names[arm] for arm in body["arms"]]
    place = next((i for i, arm in enumerate(body["arms"]) if f"arm {arm}:" in reason), 0)
    return Mistake(tick, names[place], reason.partition(": ")[2] or reason)


def _columns(results: dict[int, Any]) -> dict[str, Any]:
    ordered = dict(sorted(results.items()))
    return {"arms": list(ordered), "results": list(ordered.values())}


def join(
    session: Session, memory: Memory, arms: Sequence[NewArm], tick: int, writer: Writer
) -> Receipt:
    """Let arms join with the next decision; those that are there with the same kind are known."""
    if memory.roster.joint is not None:
        raise ProblemError("arms cannot join under a joint prior, which names all arms")
    slots = memory.roster.slots
    new = []
    for arm in arms:
        there = slots.get(arm.name)
        if there is None:
            new.append(arm)
        elif memory.roster.kind_of[there] != arm.kind or there in memory.gone:
            raise ConflictError(
                f"arm {arm.name!r} is there already"
                + (" and has left; names are used once" if there in memory.gone else
                   f", of kind {memory.roster.kind_of[there]!r}")
            )  # fmt: skip
    memory.roster.checked(new)
    receipt = Receipt(new=len(new), known=len(arms) - len(new))
    answer = {"receipt": vars(receipt)}
    if new:
        body = joining(new, list(memory.roster.kinds))
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


def correct(
    session: Session, memory: Memory, results: dict[str, int], tick: int, note: str, writer: Writer
) -> Receipt:
    """Journal that states were recorded wrongly; a rebuild takes it in."""
    there = pulls_of(session.journal, memory, tick)
    body: dict[str, Any] = {"arms": [], "results": [], "note": note}
    for name, state in results.items():
        slot = memory.roster.slot(name)
        size = memory.roster.num_states(slot)
        if slot not in there or there[slot][1] is None:
            raise ProblemError(f"arm {name!r}: no state was recorded for tick {tick}")
        if isinstance(state, bool) or not isinstance(state, int) or not 0 <= state < size:
            raise ProblemError(
                f"arm {name!r}: {shown(state)} is none of its states 0 to {size - 1}"
            )
        body["arms"].append(slot)
        body["results"].append(state)
    receipt = Receipt(new=len(results))
    writer.append("correct", tick, body, {"receipt": vars(receipt)})
    return receipt


def acknowledge(memory: Memory, seq: int, note: str, name: str, writer: Writer) -> None:
    """Journal that somebody has looked at an alarm."""
    writer.append("acknowledge", max(memory.tick, 0), {"of": seq, "name": name, "note": note}, {})
