"""Undoing: the last act is withdrawn by an event of its own; nothing that was written changes.

An act is what one call did: a decision, results, both of a step, arms that join or leave, a
correction, an acknowledgement, a forgetting. What followed from it goes with it: alarms that rang,
and answers to requests that found nothing to do. Acts are withdrawn from the last one back, so none
that stands was built on one that does not, and the memory is that of a file in which it never
happened. Results that came since the last list may be withdrawn in any order: none is built on
results of other arms.

To change such a result is to withdraw what was recorded together with it, and to record it again,
by whom it was, with the other result: so a single one of a file can be changed. Older results are
corrected instead, which takes a rebuild.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from shlex import quote

from restive.arguments import checked_count, shown
from restive.errors import ConflictError, ProblemError
from restive.live.acts.forgetting import (
    FORGET,
    REMEMBER,
    forgetting_of,
    remembering,
    said_of_memory,
)
from restive.live.acts.recording import Batch, prepare, record
from restive.live.journal.answered import answers_of
from restive.live.journal.events import REBUILD, STANDING, UNDO, Event
from restive.live.journal.sql_tables import enter_undo
from restive.live.session import Session, Writer
from restive.live.settings import LEAVE
from restive.live.told.answers import Act, Receipt, alarm_title

__all__ = [
    "Pull",
    "acts_since_the_list",
    "change",
    "changeable",
    "last_act",
    "results_of",
    "undo",
    "undone",
]

Pull = tuple[int, int]  # tick and slot

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
        raise ProblemError(
            "there is nothing to undo; nothing was changed. What a rebuild took over stands: "
            "correct results instead"
        )
    act = _act(session, events)
    events += answers_of(session.journal, events, withdrawn)
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
    if last is None or last.actor == REBUILD:  # requests that it took over stay answered
        return []
    first = last.body.get("with", last.seq)
    return [
        one
        for one in session.journal.events(first - 1)
        if one.kind in ACTS + FOLLOWING and one.seq not in withdrawn
    ]


def _results_now(session: Session, event: int, withdrawn: set[int]) -> list[Event]:
    """Return the act of an event if it is results that came since the last list; else nothing.

    Nothing either if another result or a correction of the same pull has come since, or one on
    which its being used depends; who joined or left does not matter.
    """
    later = _acts_from(session, event, withdrawn)
    own = [one for one in later if one.seq == event or one.body.get("with") == event]
    others = [one for one in later if one not in own]
    if not _is_results(own) or own[0].seq != event:
        return []
    if any(one.kind == "decide" for one in later):
        return []
    if {"late", FORGET} <= {one.kind for one in later}:  # which knew what had come late
        return []
    told = Told(session.memory.tick)
    for one in others:
        told.add(_pulls(session, one))
    return [] if any(pull in told for one in own for pull in _pulls(session, one)) else own


def _is_results(own: list[Event]) -> bool:
    """Whether an act is results of pulls and nothing else."""
    return any(one.kind in CHANGEABLE or "of" in one.body for one in own) and all(
        one.kind in CHANGEABLE or (one.kind == "leave" and "of" in one.body) for one in own
    )


class Told:
    """Pulls of which something was told, which what was told before must not be withdrawn under."""

    def __init__(self, tick: int) -> None:
        self._tick = tick  # the open one
        self._pulls: set[Pull] = set()
        self._late: set[int] = set()  # slots: whether a late result is used depends on later ones

    def add(self, pulls: Iterable[Pull]) -> None:
        """Take in what was told later."""
        for tick, slot in pulls:
            self._pulls.add((tick, slot))
            if tick < self._tick:
                self._late.add(slot)

    def __contains__(self, pull: Pull) -> bool:
        tick, slot = pull
        return pull in self._pulls or (tick < self._tick and slot in self._late)


def changeable(session: Session) -> dict[Pull, int]:
    """Return pulls whose results can be taken back now, by tick and slot: the acts they are in.

    These are results of the open tick, and late ones that came since its list was made.
    """
    memory = session.memory
    acts = acts_since_the_list(session)
    found: dict[Pull, int] = {}
    told = Told(memory.tick)
    forgot = False  # whether a list of what had been seen was written later
    for event in sorted(acts, reverse=True):
        own = acts[event]
        forgot = forgot or own[0].kind == FORGET
        pulls = dict.fromkeys(pull for one in own for pull in _pulls(session, one))
        single = not any(one.kind == "shown" for one in own)
        single = single and not (forgot and any(one.kind == "late" for one in own))
        if single and _is_results(own) and not any(pull in told for pull in pulls):
            found |= dict.fromkeys(reversed(pulls), event)
        told.add(pulls)
    return dict(list(reversed(found.items()))[-MOST_CHANGEABLE:])


def acts_since_the_list(session: Session) -> dict[int, list[Event]]:
    """Return acts that came since the last list and stand, by their first event."""
    memory, journal = session.memory, session.journal
    if memory.open is None:
        return {}
    (first,) = journal.connection.execute(
        f"SELECT max(seq) FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING}",
        (memory.tick,),
    ).fetchone()
    acts: dict[int, list[Event]] = {}
    for one in _acts_from(session, first + 1, journal.withdrawn()):
        acts.setdefault(one.body.get("with", one.seq), []).append(one)
    return acts


def results_of(session: Session, own: Iterable[Event]) -> dict[Pull, int | str]:
    """Return what an act said of pulls, by tick and slot; "leave" of those who left with it."""
    found: dict[Pull, int | str] = {}
    for one in own:
        if one.kind == "leave":
            found |= dict.fromkeys(_pulls(session, one), LEAVE)
        else:
            found |= dict(zip(_pulls(session, one), one.body["results"], strict=True))
    return found


def _acts_from(session: Session, event: int, withdrawn: set[int]) -> list[Event]:
    """Return events of acts that stand, from this one on."""
    return [
        one
        for one in session.journal.events(event - 1)
        if one.kind in ACTS and one.seq not in withdrawn
    ]


def _pulls(session: Session, event: Event) -> list[Pull]:
    """Pulls that an event tells of, by tick and slot; results by themselves are of all."""
    if event.kind == "leave":
        return [(event.body["of"], slot) for slot in event.body["arms"] if "of" in event.body]
    if event.kind not in TOLD:
        return []
    assert session.memory.open is not None
    arms = event.body.get("arms", session.memory.open.choice.arms)
    return [(event.tick, slot) for slot in arms]


def _act(session: Session, events: list[Event]) -> Act:
    """Return an act as an operator sees it."""
    clock = session.memory.settings.clock
    own = [one for one in events if one.kind in ACTS]
    first, decided = own[0], own[-1].kind == "decide"
    if decided:
        kind, counted = ("decide" if len(own) == 1 else "step"), own[-1:]
    elif first.kind in RESULTS:
        kind, counted = "record", [one for one in own if one.kind in RESULTS]
    elif first.kind == "leave" and "of" in first.body:  # only that is new: the result was missing
        kind, counted = "record", own
    else:
        kind, counted = first.kind, [one for one in own if one.kind == first.kind]
    count = sum(_count(one) for one in counted)
    tick = own[-1].tick if decided else first.tick
    if kind == "record":
        tick = first.body.get("of", tick)
    return Act(
        event=first.seq, kind=kind, tick=tick, label=clock.label(tick), count=count, at=first.at,
        actor=first.actor,
        who=_who(session, kind, own) if count == 1 or kind in (FORGET, "acknowledge") else "",
    )  # fmt: skip


def _who(session: Session, kind: str, own: list[Event]) -> str:
    """Say of whom an act is that concerns one arm, and which result; "" where that says nothing."""
    names, body = session.memory.roster.names, own[0].body
    if kind == FORGET:
        return forgetting_of(session, own[0]).what(session.memory.settings.words)
    if kind == REMEMBER:
        return said_of_memory(remembering(session.memory.settings, body["ticks"]))
    if kind == "acknowledge":
        words = session.memory.settings.words
        return "” and “".join(alarm_title(one.body["name"], words) for one in own)
    if kind == "join":
        return str(body["names"][0])
    if kind in ("leave", "return"):
        return str(names[body["arms"][0]])
    if kind not in ("record", "correct") or "arms" not in body:
        return ""
    result = LEAVE if any(one.kind == "leave" for one in own) else body["results"][0]
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


def change(session: Session, name: str, result: int | str, tick: int | None, actor: str) -> Receipt:
    """Put a result in the place of the one that is there, inside a transaction."""
    memory = session.memory
    tick = memory.tick if tick is None else tick
    pull, now = (tick, memory.roster.slot(name)), changeable(session)
    event = now.get(pull)
    if event is None:
        raise ConflictError(
            f"{memory.settings.words.arm} {shown(name)}: {_instead(session, name, pull, now)}"
        )
    own = acts_since_the_list(session)[event]
    others = {one: said for one, said in results_of(session, own).items() if one != pull}
    undo(session, event, Writer(session, actor))
    if others:
        _record_again(session, others, own[0].actor)
    return _record_again(session, {pull: result}, actor)


def _instead(session: Session, name: str, pull: Pull, now: Mapping[Pull, int]) -> str:
    """Say why a result cannot be changed, and what to do instead."""
    (tick, slot), settings, file = pull, session.memory.settings, quote(session.journal.name)
    words, clock = settings.words, settings.clock
    when, changed = words.when(tick, clock.label(tick)), "nothing was changed"
    ticks = session.journal.connection.execute(
        "SELECT tick, recorded FROM pull WHERE slot = ? ORDER BY tick DESC", (slot,)
    ).fetchall()
    told = [of for of, recorded in ticks if recorded is not None]
    if (tick, None) in ticks:
        how = f"restive live record {file} RESULTS.csv {clock.option(tick)}"
        return f"there is no result of {when} yet; {changed}. To record it: {how}"
    why = f"no {words.pull} in {when}" if tick not in told else f"the result of {when} is older"
    why += " than the last list, or another rests on it" if tick in told else ""
    of = tick if tick in told else max(told, default=None)
    if of is None:
        return f"{why}, and no result of another {words.tick}; {changed}"
    if of != tick:
        why += f"; the last result is of {words.when(of, clock.label(of))}"
    if (of, slot) in now:
        how = f"restive live change {file} {quote(name)} OUTCOME {clock.option(of)}"
        return f"{why}; {changed}. To change that one: {how}"
    return (
        f"{why}; {changed}. Write a file RESULTS.csv with {words.column('arm')},outcome and "
        f"correct it: restive live correct {file} RESULTS.csv {clock.option(of)} --note WHY"
    )


def _record_again(session: Session, results: dict[Pull, int | str], actor: str) -> Receipt:
    memory = session.memory
    by_tick: dict[int, dict[str, int | str]] = {}
    for (tick, slot), result in results.items():
        by_tick.setdefault(tick, {})[memory.roster.names[slot]] = result
    prepared = prepare(session, memory, [Batch(tick, some) for tick, some in by_tick.items()])
    answer = {"receipt": vars(prepared.receipt)}
    record(session, memory, prepared, Writer(session, actor), answer)
    return prepared.receipt
