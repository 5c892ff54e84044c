"""New files: of a new agent, of the good events of a damaged file, and of a rebuilt one.

A rebuilt file has all sightings in the order of time, with corrections taken in. Decisions stay
what they were; what was late or superseded is seen at its own time. Its first event holds the
digest of the old one's last, so that it is known what it came from.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from restive.errors import ProblemError, StoreError
from restive.files import replacing
from restive.live.journal import INSERT, Event, Journal, as_text, require_absent
from restive.live.memory import Memory
from restive.live.roster import NewArm, Roster, arms_from_data, arms_to_data
from restive.live.session import Now, Session
from restive.live.settings import Settings
from restive.live.sql_tables import (
    ExpectedTables,
    enter_arms,
    enter_choice,
    enter_instead,
    enter_leave,
    enter_results,
    enter_unseen,
    store_priors,
    stored_priors,
)

__all__ = ["create_file", "rebuild_file", "write_good_part"]

REBUILD = "rebuild"

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
    with replacing(path) as temporary:
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
    if not roster.moves_alike and settings.missing is None:
        raise ProblemError(
            "pulling changes how some arms move, so say what a pull without a result means: "
            "missing='refuse' or missing='as-not-pulled'"
        )
    Memory(settings, roster)  # finds what is wrong before there is a file
    Journal.prepare(path)
    journal = Journal(path)
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
    seq = _last_good(journal)
    require_absent(path)
    with replacing(path) as temporary:
        Journal.prepare(temporary)
        copy = Journal(temporary)
        try:
            with copy.writing():
                for table in ("meta", "prior"):
                    for row in journal.connection.execute(f"SELECT * FROM {table}"):
                        marks = ",".join("?" * len(row))
                        copy.connection.execute(f"INSERT INTO {table} VALUES ({marks})", row)
                _copy_events(journal, copy, seq)
        finally:
            copy.close()
    return seq


def _last_good(journal: Journal) -> int:
    """Return the number of the last event up to which the chain is good."""
    seq = 0
    try:
        for event in journal.checked_events():
            seq = event.seq
    except StoreError:
        pass
    return seq


def _copy_events(journal: Journal, copy: Journal, last: int) -> None:
    expected = ExpectedTables()
    kinds: dict[int, tuple[int, int]] = {}
    for event in journal.events():
        if event.seq > last:
            break
        copy.connection.execute(INSERT, event)
        before = len(expected.arms)
        expected.add(event)
        if event.kind in ("init", "join"):
            listed = (event.body["arms"] if event.kind == "init" else event.body)["kinds"]
            kinds |= {before + i: (1 + kind, event.tick) for i, kind in enumerate(listed)}
    copy.connection.executemany(
        "INSERT INTO arm VALUES (?, ?, ?, ?, ?)",
        [(slot, name, *kinds[slot], left) for (_, slot), (name, left) in expected.arms.items()],
    )
    foreseen = {
        (tick, slot): row
        for tick, slot, *row in journal.connection.execute(
            "SELECT tick, slot, audit, expected, recorded FROM pull"
        )
    }
    rows = []
    for key, (status, state) in expected.pulls.items():
        rows.append((*key, status, state, *foreseen.get(key, (0, None, None))))
    copy.connection.executemany("INSERT INTO pull VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


# ---------------------------------------------------------------- of all sightings, in order


def rebuild_file(path: str | os.PathLike[str], out: str | os.PathLike[str]) -> None:
    """Write a new file of all that is known now."""
    require_absent(out)
    old = Journal(path)
    try:
        with old.reading():
            events = list(old.checked_events())
            kinds = stored_priors(old, events[0].body["priors"])
    finally:
        old.close()
    first = events[0].body
    settings = Settings.from_data(first["settings"])
    arms = arms_from_data(first["arms"], list(kinds))
    with replacing(out) as temporary:
        _fill(temporary, settings, kinds, arms, REBUILD, parent=events[-1].digest.hex())
        session = Session(Journal(temporary))
        with session.writing():
            for event in _in_order_of_time(events):
                _enter(session, event)
        session.journal.close()


def _in_order_of_time(events: list[Event]) -> list[tuple[str, int, dict[str, Any]]]:
    """Return kind, tick and body of the new file's events."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    results: dict[int, dict[int, int | str]] = {}
    instead: dict[int, dict[int, int]] = {}
    decided: list[int] = []
    for event in events[1:]:
        body = event.body
        if event.kind in ("join", "leave"):
            body.pop("answer", None)
            found.append((event.kind, event.tick, body))
        elif event.kind == "decide":
            decided = body["arms"]
            kept = {"arms": body["arms"], "pulls": len(body["arms"]), "kept": True}
            found.append(("decide", event.tick, kept | {"audit": body.get("audit", [])}))
        elif event.kind in ("record", "late", "override", "correct"):
            pairs = dict(zip(body.get("arms", decided), body["results"], strict=True))
            others = instead.setdefault(event.tick, {})
            if event.kind == "override":
                others |= pairs
                continue
            for slot, result in pairs.items():
                of = others if slot in others else results.setdefault(event.tick, {})
                of[slot] = result
    ticks = {tick for kind, tick, _ in found if kind == "decide"}
    undecided = [tick for tick in sorted(instead.keys() - ticks) if instead[tick]]
    found += [("decide", tick, {"arms": [], "pulls": 0, "kept": True}) for tick in undecided]
    order = sorted(range(len(found)), key=lambda i: (found[i][1], found[i][0] == "decide", i))
    ordered = []
    for i in order:
        kind, tick, _ = found[i]
        ordered.append(found[i])
        if kind == "decide":
            ordered += [
                (name, tick, {"arms": sorted(given), "results": [given[k] for k in sorted(given)]})
                for name, given in (("record", results.get(tick)), ("override", instead.get(tick)))
                if given
            ]
    return ordered


def _enter(session: Session, event: tuple[str, int, dict[str, Any]]) -> None:
    kind, tick, body = event
    journal, memory = session.journal, session.memory
    before, first = memory.tick, len(memory.roster)
    entered = session.append(kind, tick, body, REBUILD)
    if kind == "join":
        enter_arms(journal, entered, first, body)
    elif kind == "leave":
        enter_leave(journal, entered, body["arms"])
    elif kind == "decide":
        assert memory.open is not None
        enter_unseen(journal, before)
        enter_choice(journal, entered, memory.open.choice)
    elif kind == "record":
        enter_results(journal, entered, body)
    else:
        enter_instead(journal, entered, body)
