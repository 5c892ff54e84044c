"""Forgetting: what was seen of some arms before a tick counts no more; and how long to remember.

An event of kind `forget` names arms and a tick. From then on what is believed of each of them is
the law of its kind, given the sightings of it at that tick and later, and nothing else: not what
was seen before, neither here nor in the log that the prior came from. Where it was seen last before
the tick stays known, as of an arm that joins: it says how old the first sighting after it is, and
weighs nothing itself. A sighting from before the tick that comes later is journaled and not used.

The event holds the sightings that still count, so that memory remains a function of the events. An
event of kind `remember` says how fast all that was seen fades.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from restive.arguments import shown, suggestion
from restive.errors import ProblemError
from restive.live.journal.events import STANDING, Event, Journal
from restive.live.words import PLAIN, Words

if TYPE_CHECKING:
    from restive.live.memory import Memory
    from restive.live.session import Session, Writer
    from restive.live.settings import Settings

__all__ = [
    "FORGET",
    "REMEMBER",
    "Forgetting",
    "Kept",
    "forget",
    "forget_body",
    "forget_by_itself",
    "forgettable",
    "forgetting_of",
    "forgettings",
    "kept_of",
    "named",
    "of_request",
    "remember",
    "remembering",
    "said_of_memory",
    "standing",
]

FORGET, REMEMBER = "forget", "remember"  # kinds of events
MOST_SAID = 5  # forgettings that are told
# of `pull`: what had been learned from by an event
USED = "state IS NOT NULL AND status <> 'superseded' AND recorded <= ?"


class Kept(NamedTuple):
    """A sighting that still counts, as evidence."""

    slot: int
    last_state: int
    elapsed: int  # ticks from that to this sighting
    state: int
    tick: int
    pulled: int  # 0: the arm is always seen, and was not pulled when it was seen last


@dataclass(frozen=True)
class Forgetting:
    """What was forgotten."""

    event: int
    before: int  # sightings of this tick and later still count
    label: str  # its date, where ticks have dates
    arms: int  # how many these were
    kind: str | None  # all of this kind
    name: str | None  # of this arm alone
    everyone: bool
    actor: str

    def of(self, words: Words = PLAIN) -> str:
        """Say of whom, in the operators' words."""
        if self.everyone:
            return f"all {words.many('arm')}"
        if self.kind is not None:
            return f"{words.many('arm')} of kind {self.kind!r}"
        return self.name or words.count(self.arms, "arm")

    def what(self, words: Words = PLAIN) -> str:
        """Say what was forgotten."""
        return f"what was seen of {self.of(words)} before {words.when(self.before, self.label)}"

    def text(self, words: Words = PLAIN) -> str:
        """Say it in a sentence."""
        return f"{self.what(words)} is forgotten"


# ---------------------------------------------------------------- of whom, and before when


def named(memory: Memory, arms: Iterable[str] | None, kind: str | None) -> list[int]:
    """Return the slots of the arms that are meant: by name, of a kind, or all that have joined."""
    words, roster = memory.settings.words, memory.roster
    if arms is not None and kind is not None:
        raise ProblemError(
            f"forget what was seen of some {words.many('arm')} or of a kind, not both; nothing was "
            "changed"
        )
    if roster.joint is not None:
        raise ProblemError(
            f"under a joint prior what was seen of one {words.arm} tells of all, so nothing can be "
            "forgotten of some; nothing was changed"
        )
    if kind is not None and (not isinstance(kind, str) or kind not in roster.kinds):
        raise ProblemError(
            f"there is no kind {shown(kind)}; {suggestion(str(kind), roster.kinds)}; nothing was "
            "changed"
        )
    if arms is None:
        joined = range(memory.num_joined)
        return [slot for slot in joined if kind in (None, roster.kind_of[slot])]
    slots = {_joined(memory, name) for name in arms}
    if not slots:
        raise ProblemError(f"no {words.arm} is named; nothing was changed")
    # of identical arms one tells of all
    return sorted({other for slot in slots for other in roster.informing(slot)})


def _joined(memory: Memory, name: str) -> int:
    try:
        slot = memory.roster.slot(name)
    except ProblemError as error:
        raise ProblemError(f"{error}; nothing was changed") from None
    if slot >= memory.num_joined:
        raise ProblemError(
            f"{memory.settings.words.arm} {name!r} joins with the next decision, so there is "
            "nothing to forget; nothing was changed"
        )
    return slot


def _require_past(memory: Memory, before: int) -> None:
    """Raise unless something may have been seen before this tick."""
    words, clock = memory.settings.words, memory.settings.clock
    when = words.when(before, clock.label(before))
    if memory.tick < 0:
        raise ProblemError(
            "nothing has been decided yet, so there is nothing to forget; nothing was changed"
        )
    if before > memory.tick:
        last = words.when(memory.tick, clock.label(memory.tick))
        raise ProblemError(
            f"{when} has no list yet: say {last}, the last one, or an earlier {words.tick}; "
            "nothing was changed"
        )
    if before < 1:
        raise ProblemError(
            f"nothing was seen before {when}, the first {words.tick}; nothing was changed"
        )


# ---------------------------------------------------------------- forgetting


def forget(
    session: Session, memory: Memory, slots: Sequence[int], before: int, kind: str | None,
    names: Sequence[str] | None, writer: Writer,
) -> Forgetting:  # fmt: skip
    """Journal that what was seen of some arms before a tick counts no more, in a transaction.

    The arms are those of a kind or with these names; or, where both are None, all.
    """
    _require_past(memory, before)
    new = forgettable(memory, slots, before)
    if not new:
        words = memory.settings.words
        when = words.when(before, memory.settings.clock.label(before))
        raise ProblemError(
            f"nothing that counts was seen before {when}: it is forgotten already, or they joined "
            "later; nothing was changed"
        )
    body = forget_body(session.journal, memory, new, before, _of(kind, names))
    event = writer.append(FORGET, memory.tick, body, {"forgotten": len(new)})
    return forgetting_of(session, event)


def _of(kind: str | None, names: Sequence[str] | None = None) -> dict[str, Any]:
    """Return who was meant, for an event."""
    if names is not None:
        return {}
    return {"all": True} if kind is None else {"kind": kind}


def forgettable(memory: Memory, slots: Iterable[int], before: int) -> list[int]:
    """Return those of some arms of which something before a tick may count."""
    return [
        slot
        for slot in slots
        if memory.joined[slot] < before and memory.forgotten.get(slot, 0) < before
    ]


def forget_by_itself(session: Session, memory: Memory, kind: str | None, before: int) -> None:
    """Journal the same of all arms or of a kind, after an alarm."""
    new = forgettable(memory, named(memory, None, kind), before)
    if new:
        body = forget_body(session.journal, memory, new, before, _of(kind))
        session.append(FORGET, memory.tick, body, "restive")


def of_request(session: Session, request: str | None) -> Forgetting:
    """Return what a request has forgotten that was answered before."""
    assert request is not None
    event = session.journal.requested(request)
    assert event is not None
    return forgetting_of(session, event)


def forget_body(
    journal: Journal, memory: Memory, slots: Sequence[int], before: int, of: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the body of the event that follows what a memory knows.

    It says who, before when, and which sightings of them still count.
    """
    kept = [*_seen_when_pulled(journal, memory, slots, before)]
    kept += _always_seen(journal, memory, slots, before)
    kept.sort(key=lambda one: (one.tick, one.slot))  # as they would have been learned from
    columns = [list(column) for column in zip(*kept, strict=True)] or [[] for _ in Kept._fields]
    return {
        "arms": list(slots),
        "before": before,
        **of,
        "kept": dict(zip(Kept._fields, columns, strict=True)),
    }


def kept_of(body: Mapping[str, Any]) -> list[Kept]:
    """Return the sightings that still count, from the body of an event."""
    columns = [body["kept"][name] for name in Kept._fields]
    return [Kept(*row) for row in zip(*columns, strict=True)]


def _seen_when_pulled(
    journal: Journal, memory: Memory, slots: Sequence[int], before: int
) -> Iterator[Kept]:
    """Yield what was seen from a tick on of arms that are seen when pulled, in the order of time.

    Results of the open tick are not among them: they are learned from when it closes. Nor is what
    was recorded after the memory's last event.
    """
    wanted = {slot for slot in slots if not memory.roster.always_seen(slot)}
    if not wanted:
        return
    execute = journal.connection.execute
    last = dict[int, tuple[int, int]]()  # tick and state
    for slot in wanted:
        (state,), (age,) = memory.roster.start(range(slot, slot + 1))
        last[slot] = (memory.joined[slot] - age, state)
    for slot, tick, state in execute(
        "SELECT slot, tick, state FROM pull JOIN (SELECT slot AS k, max(tick) AS t FROM pull "
        f"WHERE tick < ? AND {USED} GROUP BY slot) AS l ON slot = k AND tick = t",
        (before, memory.seq),
    ).fetchall():
        if slot in wanted:
            last[slot] = (tick, state)
    for slot, tick, state in execute(
        f"SELECT slot, tick, state FROM pull WHERE tick >= ? AND tick < ? AND {USED} "
        "ORDER BY tick, slot",
        (before, memory.tick, memory.seq),
    ).fetchall():
        if slot in wanted:
            then, known = last[slot]
            yield Kept(slot, known, tick - then, state, tick, 1)
            last[slot] = (tick, state)


def _always_seen(
    journal: Journal, memory: Memory, slots: Sequence[int], before: int
) -> Iterator[Kept]:
    """Yield what was seen from a tick on of arms that are always seen, in the order of time."""
    wanted = sorted(slot for slot in slots if memory.roster.always_seen(slot))
    if not wanted:
        return
    now: dict[int, int] = {}  # states at the beginning of the tick, where they are known
    for tick, (pulled, seen) in enumerate(_told(journal, memory, before - 1), before - 1):
        for slot in wanted:
            if slot in now and slot in seen and tick >= before:
                yield Kept(slot, now[slot], 1, seen[slot], tick, int(slot in pulled))
        now = seen


def _told(
    journal: Journal, memory: Memory, first: int
) -> Iterator[tuple[set[int], dict[int, int]]]:
    """Yield, of each tick from the first on that is over, who was pulled and what was seen."""
    (began,) = journal.connection.execute(
        f"SELECT max(seq) FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING}", (first,)
    ).fetchone()
    pulled, seen, listed = set[int](), dict[int, int](), list[int]()
    withdrawn = journal.withdrawn()
    for event in journal.events(began - 1, memory.seq + 1 - began):
        if event.kind not in ("decide", "record", "shown", "override") or event.seq in withdrawn:
            continue
        body = event.body
        if event.kind == "decide":
            if event.tick > first:
                yield pulled, seen
            listed, seen = body["arms"], {}
            pulled = set(listed)
        elif not body.get("late"):
            rows = zip(body.get("arms", listed), body["results"], strict=True)
            found = {slot: state for slot, state in rows if isinstance(state, int)}
            seen |= found
            if event.kind == "override":
                pulled |= found.keys()


# ---------------------------------------------------------------- how long to remember


def remember(memory: Memory, ticks: float | None, writer: Writer) -> None:
    """Journal how long what was seen is remembered: after so many ticks it weighs 1/e."""
    settings = remembering(memory.settings, ticks)  # which finds a wrong number
    if settings == memory.settings:
        raise ProblemError(f"{said_of_memory(settings)} already; nothing was changed")
    tick = max(memory.tick, 0)
    writer.append(REMEMBER, tick, {"ticks": ticks}, {"ticks": ticks})


def remembering(settings: Settings, ticks: float | None) -> Settings:
    """Return settings with another memory."""
    learner = {key: value for key, value in settings.learner.items() if key != "forget_after"}
    return replace(settings, learner=learner | ({} if ticks is None else {"forget_after": ticks}))


def said_of_memory(settings: Settings) -> str:
    """Say how long what was seen is remembered, in the operators' words."""
    ticks, words = settings.learner.get("forget_after"), settings.words
    if ticks is None:
        return "old results count as much as new ones"
    return f"results count less as they grow old: 37% after {ticks:,.12g} {words.many('tick')}"


# ---------------------------------------------------------------- as people are told


def standing(session: Session, kind: str) -> list[Event]:
    """Return the events of a kind that were not withdrawn."""
    withdrawn = session.journal.withdrawn()
    return [one for one in session.journal.events(kinds=(kind,)) if one.seq not in withdrawn]


def forgettings(session: Session) -> list[Forgetting]:
    """Return what was forgotten and is no part of more, the newest last."""
    events = standing(session, FORGET)
    found: dict[Any, Forgetting] = {}
    for event in events:
        one = forgetting_of(session, event)
        key = (one.everyone, one.kind, one.name or event.seq)
        found.pop(key, None)
        if one.everyone:  # which the others are part of
            found = {other: told for other, told in found.items() if told.before > one.before}
        found[key] = one
    return list(found.values())[-MOST_SAID:]


def forgetting_of(session: Session, event: Event) -> Forgetting:
    """Return what an event says was forgotten."""
    body, memory = event.body, session.memory
    arms = body["arms"]
    return Forgetting(
        event=event.seq,
        before=body["before"],
        label=memory.settings.clock.label(body["before"]),
        arms=len(arms),
        kind=body.get("kind"),
        name=memory.roster.names[arms[0]] if len(arms) == 1 else None,
        everyone=bool(body.get("all")),
        actor=event.actor,
    )
