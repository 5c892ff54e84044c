"""Checking a whole file: the chain of digests, and the tables against what the events say."""

from __future__ import annotations

import os
from typing import Any

from restive.errors import StoreError
from restive.files import replacing
from restive.live.contents import LATE, OPEN, SEEN, SUPERSEDED
from restive.live.journal import INSERT, Event, Journal, require_absent
from restive.live.settings import NOT_PULLED, UNSEEN

__all__ = ["check", "last_good", "write_good_part"]


def check(journal: Journal) -> int:
    """Walk the journal and compare the tables with it; return the number of good events."""
    (answer,) = journal.connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise StoreError(f"{journal.path}: SQLite finds it damaged: {answer}")
    expected = Contents()
    count = 0
    for event in journal.checked_events():
        expected.add(event)
        count += 1
    _compare(journal, "pull", expected.pulls, "SELECT tick, slot, status, state FROM pull")
    _compare(journal, "arm", expected.arms, 'SELECT 0, slot, name, "left" FROM arm')
    return count


class Contents:
    """What the tables of pulls and arms must say, from the events alone."""

    def __init__(self) -> None:
        self.pulls: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.arms: dict[tuple[int, int], tuple[Any, ...]] = {}
        self.open = -1
        self.decided: list[int] = []

    def add(self, event: Event) -> None:
        """Take in the next event."""
        body = event.body
        if event.kind in ("init", "join"):
            names = (body["arms"] if event.kind == "init" else body)["names"]
            for name in names:
                self.arms[0, len(self.arms)] = (name, None)
        elif event.kind == "leave":
            for slot in body["arms"]:
                self.arms[0, slot] = (self.arms[0, slot][0], event.tick)
        elif event.kind == "decide":
            for key, (status, state) in self.pulls.items():
                if key[0] == self.open and status == OPEN:
                    self.pulls[key] = (UNSEEN, state)
            self.open, self.decided = event.tick, body["arms"]
            self.pulls |= {(event.tick, slot): (OPEN, None) for slot in body["arms"]}
        elif event.kind in ("record", "late", "override"):
            self._results(event, body)

    def _results(self, event: Event, body: dict[str, Any]) -> None:
        arms = body.get("arms", self.decided)
        for slot, result in zip(arms, body["results"], strict=True):
            state = result if isinstance(result, int) else None
            status = LATE if body.get("late") else SEEN
            if slot in body.get("superseded", ()):
                status = SUPERSEDED
            if state is None:
                status = NOT_PULLED if result == NOT_PULLED else UNSEEN
            self.pulls[event.tick, slot] = (status, state)


def _compare(
    journal: Journal, name: str, expected: dict[tuple[int, int], tuple[Any, ...]], query: str
) -> None:
    found = {(row[0], row[1]): tuple(row[2:]) for row in journal.connection.execute(query)}
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            raise StoreError(
                f"{journal.path}: table {name} says {found.get(key)} of tick and slot {key}, the "
                f"events say {expected.get(key)}; it was edited. `restive live rebuild` makes a "
                "file from the events"
            )


def last_good(journal: Journal) -> int:
    """Return the number of the last event up to which the chain is good."""
    seq = 0
    try:
        for event in journal.checked_events():
            seq = event.seq
    except StoreError:
        pass
    return seq


def write_good_part(journal: Journal, path: str | os.PathLike[str]) -> int:
    """Write a copy that ends with the last good event; return its number."""
    seq = last_good(journal)
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


def _copy_events(journal: Journal, copy: Journal, last: int) -> None:
    expected = Contents()
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
