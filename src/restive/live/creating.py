"""New files: of a new agent, of the good events of a damaged file, and of a rebuilt one.

A rebuilt file has all sightings in the order of time, with corrections taken in. Decisions stay
what they were; what was late or superseded is seen at its own time. Its first event holds the
digest of the old one's last, so that it is known what it came from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from restive.errors import ProblemError
from restive.files import beside, remove_leftovers
from restive.live.acts.forgetting import FORGET, REMEMBER, forget_body
from restive.live.journal.answered import ANSWERED, answered_requests
from restive.live.journal.events import (
    INSERT,
    REBUILD,
    Event,
    Journal,
    as_text,
    copy_rows,
    empty_tables,
    is_url,
    new_file,
    require_absent,
)
from restive.live.journal.sql_tables import (
    REPLACED_BY,
    ExpectedTables,
    GoodEvents,
    Progress,
    enter_arms,
    enter_choice,
    enter_instead,
    enter_leave,
    enter_results,
    enter_return,
    enter_unseen,
    give_way,
    store_priors,
    stored_priors,
)
from restive.live.journal.sqlite import SqliteDatabase
from restive.live.memory import Memory
from restive.live.people.roster import NewArm, Roster, arms_from_data, arms_to_data
from restive.live.session import Now, Session
from restive.live.settings import Settings

__all__ = ["create_file", "rebuild_file", "write_good_part"]

# ---------------------------------------------------------------- of a new agent


def create_file(
    path: str | os.PathLike[str],
    settings: Settings,
    kinds: Mapping[str, Any],
    arms: Sequence[NewArm],
    actor: str,
    now: Now | None = None,
) -> None:
    """Make the file of a new agent; it is there whole or not at all."""
    require_absent(path)
    with new_file(path) as temporary:
        _fill(temporary, settings, kinds, arms, actor, now)


def _fill(
    path: Path,
    settings: Settings,
    kinds: Mapping[str, Any],
    arms: Sequence[NewArm],
    actor: str,
    now: Now | None = None,
    parent: str | None = None,
) -> None:
    """Write the tables and the first event of a new agent into an empty file."""
    roster = Roster(kinds)
    roster.checked(arms)
    roster.add(arms)
    words = settings.words
    if roster.may_hide and settings.missing is None:
        raise ProblemError(
            f"a {words.pull} changes how some {words.many('arm')} move, so say what a {words.pull} "
            "without a result means: "
            "missing='refuse' or missing='as-not-pulled' (--missing refuse, --missing "
            "as-not-pulled)"
        )
    Memory(settings, roster)  # finds what is wrong before there is a file
    Journal.prepare(path)
    journal = Journal(path, "process", temporary=True)  # flushed when it gets its name
    try:
        _write_first(journal, settings, roster, arms, actor, parent, now)
    finally:
        journal.close()


def _write_first(
    journal: Journal, settings: Settings, roster: Roster, arms: Sequence[NewArm], actor: str,
    parent: str | None, now: Now | None,
) -> None:  # fmt: skip
    """Write priors, the first event and its arms."""
    with journal.writing():
        journal.connection.execute(
            "INSERT INTO meta VALUES ('made_by', ?)", (f"restive {version('restive')}",)
        )
        listed = store_priors(journal, roster.kinds)
        body: dict[str, Any] = {
            "settings": json.loads(as_text(settings.to_data())),
            "priors": listed,
            "arms": arms_to_data(arms, list(roster.kinds)),
            **({"parent": parent} if parent is not None else {}),
        }
        began = now() if now is not None else datetime.now(UTC)
        event = journal.append(
            journal.last(), "init", 0, round(began.timestamp() * 1e6), body, actor
        )
        enter_arms(journal, event, 0, body["arms"])


# ---------------------------------------------------------------- of the good events of a file


def write_good_part(journal: Journal, path: str | os.PathLike[str]) -> int:
    """Write a copy that ends with the last good event; return its number."""
    require_absent(path)
    with journal.reading():
        events = GoodEvents(journal)
        with empty_tables(path) as copy:
            for table in ("meta", "prior"):
                copy_rows(journal.connection, copy, table)
            copy.execute("DELETE FROM meta WHERE key = ?", (REPLACED_BY,))  # to go on with
            _copy_events(events, copy)
    return events.last


def _copy_events(events: GoodEvents, copy: Any) -> None:
    journal, insert = events.journal, copy.executemany
    insert(INSERT, journal.events(limit=events.last))
    insert("INSERT INTO withdrawn VALUES (?, ?)", events.withdrawn.items())
    expected = ExpectedTables(events.late)
    for tick, rows in expected.pulls(events.standing()):
        foreseen = {
            slot: row
            for slot, *row in journal.connection.execute(
                "SELECT slot, audit, expected FROM pull WHERE tick = ?", (tick,)
            )
        }
        insert(
            "INSERT INTO pull VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (tick, slot, status, state, *foreseen.get(slot, (0, None)), recorded)
                for slot, (status, state, recorded) in rows.items()
            ],
        )
    insert(
        "INSERT INTO arm VALUES (?, ?, ?, ?, ?)",
        [(slot, *row) for slot, row in expected.arms.items()],
    )


# ---------------------------------------------------------------- of all sightings, in order


class NewEvent(NamedTuple):
    """An event of a rebuilt file."""

    kind: str
    tick: int
    body: dict[str, Any]
    actor: str = REBUILD
    request: str | None = None
    fingerprint: bytes | None = None


# what is kept as it was said, where it was said
SAID = ("note", "alarm", "acknowledge", FORGET, REMEMBER)
AT_ONCE = 4096  # events of a rebuilt file in one transaction, so that it can be stopped


def rebuild_file(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None,
    progress: Progress | None = None,
) -> None:
    """Write a new file of all that is known now.

    Parameters
    ----------
    path, out
        The file, and the new one, for which it gives way: it can be read and not written
        any more while that is there. With None the file itself becomes the new one, in one
        transaction, and whoever has it open goes on with that; so it is in PostgreSQL.
    progress
        Called with (events done, events to do): each is looked at, then written.
    """
    if out is not None:
        if is_url(path) or is_url(out):
            raise ProblemError(
                "an agent in PostgreSQL is rebuilt where it is: say --in-place; to look at the "
                "outcome first, rebuild a `restive live backup` of it"
            )
        require_absent(out)
    old = Journal(path)
    try:
        if out is not None:
            with new_file(out) as temporary:
                give_way(old, _rebuild(old, temporary, progress), Path(out))
        else:
            with _beside(old) as temporary:
                old.replace_contents(_rebuild(old, temporary, progress), temporary)
    finally:
        old.close()


@contextmanager
def _beside(old: Journal) -> Iterator[Path]:
    """Yield an empty file: beside the old one, or in a temporary folder if that is a schema."""
    if isinstance(old.database, SqliteDatabase):
        place = old.database.path.resolve()
        remove_leftovers(place.parent, place.name)
        with beside(place) as temporary:
            yield temporary
    else:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "rebuilt.db"
            path.touch()
            yield path


def _rebuild(old: Journal, path: Path, progress: Progress | None) -> tuple[int, bytes]:
    """Fill an empty file; return number and digest of the last event that went into it."""
    show = progress or (lambda done, total: None)
    with old.reading():
        events = GoodEvents(old, lambda done, total: show(done, 2 * total))
        if events.error is not None:
            raise events.error
        first, total = next(old.events()).body, events.last
        kinds = stored_priors(old, first["priors"])
        settings = Settings.from_data(first["settings"])
        for said in old.events(kinds=("words",)):
            settings = settings.after_words(said.body)
        arms = arms_from_data(first["arms"], list(kinds))
        _fill(path, settings, kinds, arms, REBUILD, parent=old.last()[1].hex())
        journal = Journal(path, "process", temporary=True)
        try:
            with journal.writing():  # who may come in is not in the events
                for table, marks in (("token", "?, ?, ?, ?, ?"), ("session", "?, ?, ?")):
                    rows = old.connection.execute(f"SELECT * FROM {table}")
                    journal.connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
            # the new file may have more events: that requests were answered is told at its end
            _enter_all(
                Session(journal), events, lambda done: show(min(total + done, 2 * total), 2 * total)
            )
        finally:
            journal.close()
        return old.last()


def _enter_all(session: Session, events: GoodEvents, show: Callable[[int], None]) -> None:
    waiting = _in_order_of_time(events)
    while some := list(islice(waiting, AT_ONCE)):
        with session.writing():
            for event in some:
                _enter(session, event)
        show(session.memory.seq)
    session.keep_snapshot()


def _in_order_of_time(events: GoodEvents) -> Iterator[NewEvent]:
    """Yield the new file's events: who joins and leaves, decisions, and what was seen in each.

    Notes, alarms and their answers stand where they stood. Requests that were answered come last,
    so that whoever repeats one is given the same answer.
    """
    found = list(events.journal.events(kinds=("join", "leave", "return", "correct", *SAID)))
    standing = [event for event in found if event.seq not in events.withdrawn]
    arms = [event for event in standing if event.kind != "correct"]
    # the next at the end; an alarm rings once its tick is decided
    arms.sort(key=lambda event: (event.tick, event.kind in SAID, event.seq), reverse=True)
    later = {tick: list(some) for tick, some in events.late.items()}  # than in time, by tick
    for event in standing:
        if event.kind == "correct":
            later.setdefault(event.tick, []).append(event)
    ticks = sorted(later, reverse=True)
    for own in _by_tick(events.standing()):
        tick = own[0].tick
        while ticks and ticks[-1] < tick:  # of these nothing was decided
            undecided = ticks.pop()
            yield from _of_tick(undecided, arms, None, later[undecided])
        if ticks and ticks[-1] == tick:
            ticks.pop()
        some = sorted([*own[1:], *later.get(tick, ())], key=lambda event: event.seq)
        yield from _of_tick(tick, arms, own[0], some)
    yield from _arms_until(None, arms)
    yield from _requests(events)


def _requests(events: GoodEvents) -> Iterator[NewEvent]:
    """Yield that requests were answered, but for those that withdrew something."""
    for event, body in answered_requests(events):
        yield NewEvent(ANSWERED, event.tick, body, event.actor, event.request, event.fingerprint)


def _by_tick(events: Iterable[Event]) -> Iterator[list[Event]]:
    """Decisions, each with the results that came in time."""
    own: list[Event] = []
    for event in events:
        if event.kind == "decide":
            if own:
                yield own
            own = [event]
        elif event.kind in ("record", "shown") or (
            event.kind == "override" and "late" not in event.body
        ):
            own.append(event)
    if own:
        yield own


def _of_tick(
    tick: int, arms: list[Event], decision: Event | None, told: Sequence[Event]
) -> Iterator[NewEvent]:
    """Yield what happened in a tick; nothing if nothing was decided nor seen."""
    body = {"arms": [], "audit": []} if decision is None else decision.body
    results: dict[int, int | str] = {}
    instead: dict[int, int | str] = {}
    shown: dict[int, int | str] = {}  # states of arms that were not pulled
    for event in told:
        said = event.body
        pairs = dict(zip(said.get("arms", body["arms"]), said["results"], strict=True))
        for slot, result in pairs.items():
            of = instead if event.kind == "override" or slot in instead else results
            if event.kind == "shown" or slot in shown:
                of = shown
            of[slot] = result
    if decision is None and not instead:
        return
    yield from _arms_until(tick, arms)
    kept: dict[str, Any] = {"arms": body["arms"], "pulls": len(body["arms"]), "kept": True}
    if decision is not None:
        kept["audit"] = body.get("audit", [])
        foretold = ("mean", "variance")  # as it was said when the list was made
        kept |= {key: body[key] for key in foretold if key in body}
    yield NewEvent("decide", tick, kept)
    for name, given in (("record", results), ("override", instead), ("shown", shown)):
        if given:
            order = sorted(given)
            told_now = {"arms": order, "results": [given[k] for k in order]}
            yield NewEvent(name, tick, told_now)


def _arms_until(tick: int | None, arms: list[Event]) -> Iterator[NewEvent]:
    """Take out who joined or left until a tick, and what was said before it, in their order."""
    while arms and (
        tick is None
        or arms[-1].tick < tick
        or (arms[-1].tick == tick and arms[-1].kind not in SAID)
    ):
        event = arms.pop()
        body = {key: value for key, value in event.body.items() if key not in ("answer", "with")}
        if event.kind == "alarm":  # people know it by its number
            body.setdefault("number", event.seq)
        yield NewEvent(event.kind, event.tick, body, event.actor if event.kind in SAID else REBUILD)


def _enter(session: Session, event: NewEvent) -> None:
    kind, tick, body, actor, request, fingerprint = event
    journal, memory = session.journal, session.memory
    before, first = memory.tick, len(memory.roster)
    if kind == FORGET:
        of: dict[str, Any] = {key: body[key] for key in ("all", "kind") if key in body}
        body = forget_body(journal, memory, body["arms"], body["before"], of)
    entered = session.append(kind, tick, body, actor, request, fingerprint)
    if kind == "join":
        enter_arms(journal, entered, first, body)
    elif kind == "leave":
        enter_leave(journal, entered, body["arms"])
    elif kind == "return":
        enter_return(journal, body["arms"])
    elif kind == "decide":
        assert memory.open is not None
        enter_unseen(journal, before)
        enter_choice(journal, entered, memory.open.choice)
    elif kind == "record":
        enter_results(journal, entered, body)
    elif kind == "override":
        enter_instead(journal, entered, body)
