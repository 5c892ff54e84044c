"""Undoing: the last act is withdrawn by an event of its own; nothing that was written changes.

An act is what one call did: a decision, results, both of a step, arms that join or leave, a
correction, an acknowledgement, a forgetting. What followed from it goes with it: alarms that rang,
and answers to requests that found nothing to do. Acts are withdrawn from the last one back, so none
that stands was built on one that does not, and the memory is that of a file in which it never
happened. Results of the open tick may be withdrawn in any order: none is built on results of other
arms.
"""

from __future__ import annotations

from collections.abc import Mapping

from restive.arguments import checked_count
from restive.errors import ConflictError, ProblemError
from restive.live.answers import Act
from restive.live.forgetting import FORGET, REMEMBER, forgetting_of, remembering, said_of_memory
from restive.live.journal import STANDING, UNDO, Event
from restive.live.session import Session, Writer
from restive.live.settings import LEAVE
from restive.live.sql_tables import enter_undo

__all__ = ["changeable", "last_act", "undo", "undone"]

ACTS = (
    *("decide", "record", "shown", "late", "override", "join", "leave"),
    *("correct", "return", "acknowledge", FORGET, REMEMBER),
)
FOLLOWING = ("alarm", "again")  # what follows from an act and is withdrawn with it
RESULTS = ("record", "shown", "late", "override")
CHANGEABLE = ("record", "shown", "late")  # until the next list is made
TOLD = (*RESULTS, "correct")
MOST_EVENT = 2**62
MOST_CHANGEABLE = 400  # results that may be changed one by one


def undo(session: Session, event: int | None, writer: Writer) -> Act:
    """Withdraw the last act, inside a transaction; `event` is one of its events, or None."""
    withdrawn = session.journal.withdrawn()
    events = _last_events(session, withdrawn)
    if event is not None:
        event = checked_count(event, "event", 1, MOST_EVENT)
        events = _results_now(session, event, withdrawn) or events
        _require_last(session, event, events, withdrawn)
    if not events:
        raise ProblemError("there is nothing to undo; nothing was changed")
    act = _act(session, events)
    body = {"events": [one.seq for one in events]}
    tick = max(session.memory.tick, 0)
    entered = writer.append(UNDO, tick, body, body, applied=True)
    memory = session.forget_from(act.event)
    enter_undo(session.journal, memory, entered, events)
    return act


def undone(session: Session, answer: Mapping[str, list[int]]) -> Act:
    """Return the act that a request withdrew, from its answer."""
    numbers = set(answer["events"])
    found = session.journal.events(min(numbers) - 1, max(numbers) - min(numbers) + 1)
    return _act(session, [one for one in found if one.seq in numbers])


def last_act(session: Session) -> Act | None:
    """Return what `undo` would withdraw; None if there is nothing."""
    events = _last_events(session, session.journal.withdrawn())
    return _act(session, events) if events else None


def _last_events(session: Session, withdrawn: set[int]) -> list[Event]:
    """Return the events of the last act that stands and what followed from it, in their order."""
    last = next(
        (one for one in session.journal.latest() if one.kind in ACTS and one.seq not in withdrawn),
        None,
    )
    if last is None:
        return []
    first = last.body.get("with", last.seq)
    return [
        one
        for one in session.journal.events(first - 1)
        if one.kind in ACTS + FOLLOWING and one.seq not in withdrawn
    ]


def _results_now(session: Session, event: int, withdrawn: set[int]) -> list[Event]:
    """Return the act of an event if it is results of the open tick; nothing if it is not.

    Or late results that came since the list was made. Not if another list was made since, or there
    is another result or a correction of one of its arms; who joined or left does not matter.
    """
    later = _acts_from(session, event, withdrawn)
    own = [one for one in later if one.seq == event or one.body.get("with") == event]
    others = [one for one in later if one not in own]
    results = [one for one in own if one.kind in CHANGEABLE]
    foreign = {one.kind for one in own} - {*CHANGEABLE, "leave"}
    if not results or own[0].seq != event or foreign:
        return []
    if any(one.kind == "decide" for one in later):
        return []
    if {"late", FORGET} <= {one.kind for one in later}:  # which knew what had come late
        return []
    arms = {slot for one in results for slot in _arms(session, one)}
    told = [one for one in others if one.kind in TOLD]
    if any(arms.intersection(_arms(session, one)) for one in told):
        return []
    return own


def changeable(session: Session) -> dict[tuple[int, int], int]:
    """Return pulls whose results can be taken back alone, by tick and slot: the events they are in.

    These are results of the open tick, and late ones that came since its list was made.
    """
    memory, journal = session.memory, session.journal
    if memory.open is None:
        return {}
    (first,) = journal.connection.execute(
        f"SELECT max(seq) FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING}",
        (memory.tick,),
    ).fetchone()
    acts: dict[int, list[Event]] = {}  # by their first event
    for one in _acts_from(session, first + 1, journal.withdrawn()):
        acts.setdefault(one.body.get("with", one.seq), []).append(one)
    found: dict[tuple[int, int], int] = {}
    told: set[int] = set()  # slots of which something was said later
    forgot = False  # whether a list of what had been seen was written later
    for event in sorted(acts, reverse=True):
        own = acts[event]
        forgot = forgot or own[0].kind == FORGET
        pulls = [(one.tick, k) for one in own if one.kind in TOLD for k in _arms(session, one)]
        alone = len(pulls) == 1 and {one.kind for one in own} <= {"record", "late", "leave"}
        if alone and pulls[0][1] not in told and not (forgot and own[0].kind == "late"):
            found[pulls[0]] = event
        told.update(slot for _, slot in pulls)
    return dict(list(reversed(found.items()))[:MOST_CHANGEABLE])


def _acts_from(session: Session, event: int, withdrawn: set[int]) -> list[Event]:
    """Return events of acts that stand, from this one on."""
    return [
        one
        for one in session.journal.events(event - 1)
        if one.kind in ACTS and one.seq not in withdrawn
    ]


def _arms(session: Session, event: Event) -> list[int]:
    """Slots that an event with results of the open tick is about; by itself it means all."""
    assert session.memory.open is not None
    return list(event.body.get("arms", session.memory.open.choice.arms))


def _act(session: Session, events: list[Event]) -> Act:
    """Return an act as an operator sees it."""
    clock = session.memory.settings.clock
    own = [one for one in events if one.kind in ACTS]
    first, decided = own[0], own[-1].kind == "decide"
    if decided:
        kind, counted = ("decide" if len(own) == 1 else "step"), own[-1:]
    elif first.kind in RESULTS:
        kind, counted = "record", [one for one in own if one.kind in RESULTS]
    else:
        kind, counted = first.kind, [one for one in own if one.kind != "return"]
    count = sum(_count(one) for one in counted)
    tick = own[-1].tick if decided else first.tick
    return Act(
        event=first.seq, kind=kind, tick=tick, label=clock.label(tick), count=count, at=first.at,
        actor=first.actor,
        who=_who(session, kind, own) if count == 1 or kind == FORGET else "",
    )  # fmt: skip


def _who(session: Session, kind: str, own: list[Event]) -> str:
    """Say of whom an act is that concerns one arm, and which result; "" where that says nothing."""
    names, body = session.memory.roster.names, own[0].body
    if kind == FORGET:
        return forgetting_of(session, own[0]).what(session.memory.settings.words)
    if kind == REMEMBER:
        return said_of_memory(remembering(session.memory.settings, body["ticks"]))
    if kind == "join":
        return str(body["names"][0])
    if kind == "leave":
        return str(names[body["arms"][0]])
    if kind != "record" or "arms" not in body:
        return ""
    result = LEAVE if own[-1].kind == "leave" else body["results"][0]
    return f"{names[body['arms'][0]]}: {session.memory.settings.outcome_text(result)}"


def _count(event: Event) -> int:
    """How many arms an event is about."""
    body = event.body
    if event.kind in ("acknowledge", REMEMBER):
        return 1
    if event.kind == "join":
        return len(body["names"])
    return len(body["results"] if "results" in body else body["arms"])


def _require_last(session: Session, event: int, events: list[Event], withdrawn: set[int]) -> None:
    """Raise unless an event is one of the last act's."""
    if event in [one.seq for one in events]:
        return
    nothing = "nothing was changed"
    found = next(session.journal.events(event - 1, 1), None)
    if found is None or found.seq != event:
        raise ProblemError(f"there is no event {event}; {nothing}")
    if event in withdrawn:
        raise ConflictError(f"event {event} was withdrawn already; {nothing}")
    if found.kind not in ACTS:
        raise ProblemError(
            f"event {event} ({found.kind}) is nothing that can be undone by itself; {nothing}"
        )
    raise ConflictError(
        f"event {event} has been built on: undo "
        f"{_act(session, events).text(session.memory.settings.words)} first; {nothing}"
    )
