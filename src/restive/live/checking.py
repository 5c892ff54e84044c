"""Checking a whole file: its digests, its tables, and all that follows from its events.

The events are walked three times. Their digests must be a chain. The tables `arm`, `pull` and
`withdrawn` must say what they say. And they are replayed from the first: decisions, what was
expected of each pull and the snapshots must come out as they are in the file. What is compared here
was written by one who knows the file's format: a person who can write the file, and computes all
digests and all that follows anew, leaves a file that is consistent and wrong. Against that helps a
digest that is kept elsewhere, which is why a check tells the last one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import groupby
from math import isclose
from typing import Any

from restive.arguments import counted
from restive.errors import RestiveError, StoreError
from restive.live.acts.forgetting import FORGET, forget_body
from restive.live.journal.events import Event, Journal
from restive.live.journal.sql_tables import DECIDED, ExpectedTables, GoodEvents, Progress
from restive.live.memory import Memory
from restive.live.session import (
    UNREADABLE,
    first_memory,
    snapshot_data,
    snapshot_version,
    unreadable,
)

__all__ = ["check"]

REBUILD = "`restive live rebuild` makes a file from the events"


def check(journal: Journal, progress: Progress | None = None) -> tuple[int, str]:
    """Check all of a file, in a transaction; return number and digest of its last event, or raise.

    Parameters
    ----------
    journal
        The file.
    progress
        Called with (events done, events to do): each is looked at, then replayed.
    """
    show = progress or (lambda done, total: None)
    try:
        journal.database.require_sound()
        events = GoodEvents(journal, lambda done, total: show(done, 2 * total))
        if events.error is not None:
            raise events.error
        _check_tables(journal, events)
        _replay(journal, events, lambda done, total: show(total + done, 2 * total))
        return events.last, journal.last()[1].hex()
    except (RestiveError, journal.error):
        raise
    except UNREADABLE as error:
        raise unreadable(journal, error) from None


def _check_tables(journal: Journal, events: GoodEvents) -> None:
    expected = ExpectedTables(events.late)
    execute = journal.connection.execute
    found = groupby(
        journal.connection.stream(
            "SELECT tick, slot, status, state, recorded FROM pull ORDER BY tick, slot"
        ),
        lambda row: int(row[0]),
    )
    for tick, rows in expected.pulls(events.standing()):
        there, own = next(found, (-1, iter(())))
        if there != tick:
            own = iter(())
        _compare(journal, "pull", f"tick {tick}", rows, {row[1]: row[2:] for row in own})
    for tick, own in found:
        _compare(journal, "pull", f"tick {tick}", {}, {row[1]: row[2:] for row in own})
    arms = {row[0]: row[1:] for row in execute('SELECT slot, name, prior, joined, "left" FROM arm')}
    _compare(journal, "arm", "the arms", expected.arms, arms)
    withdrawn = dict(execute("SELECT seq, undo FROM withdrawn"))
    _compare(journal, "withdrawn", "the events", events.withdrawn, withdrawn)


def _compare(
    journal: Journal, name: str, where: str, expected: Mapping[int, Any], found: Mapping[int, Any]
) -> None:
    for key in sorted(expected.keys() | found.keys()):
        if expected.get(key) != found.get(key):
            raise StoreError(
                f"{journal.name}: table {name} says {found.get(key)} of {key} of {where}, the "
                f"events say {expected.get(key)}; it was edited. {REBUILD}"
            )


def _replay(journal: Journal, events: GoodEvents, show: Progress) -> None:
    """Make the memory anew, and compare what it decides and foresees with what is in the file."""
    memory = first_memory(journal)
    snapshots = {
        row[0]: row[1:]
        for row in journal.connection.execute("SELECT seq, version, body, digest FROM snapshot")
    }
    for event in journal.events(memory.seq):
        if event.seq in events.withdrawn:
            memory.pass_over(event)
            snapshots.pop(event.seq, None)
            continue
        if event.kind == FORGET:
            _compare_forgotten(journal, event, memory)
        memory.apply(event)
        if event.kind == "decide" and event.seq not in memory.divergences:
            _compare_decision(journal, event, memory)
        if event.seq in snapshots:
            _compare_snapshot(journal, memory, *snapshots.pop(event.seq))
        if event.seq % 256 == 0:
            show(event.seq, events.last)
    if memory.divergences:
        count = counted(len(memory.divergences), "decision")
        raise StoreError(
            f"{journal.name}: {count} came out differently when replayed, the first in event "
            f"{memory.divergences[0]}: restive or the machine is another one, or the events were "
            "edited and their digests too. Opening the file keeps the journal's decisions and says "
            "so in an alarm"
        )


def _compare_decision(journal: Journal, event: Event, memory: Memory) -> None:
    """Raise unless a tick's pulls are what its decision foresaw."""
    assert memory.open is not None
    choice = memory.open.choice
    found = journal.connection.execute(
        f"SELECT slot, audit, expected FROM pull WHERE tick = ? AND {DECIDED} ORDER BY slot",
        (event.tick,),
    ).fetchall()
    audit = set(choice.audit)
    right = [slot for slot, _, _ in found] == choice.arms and all(
        drawn == (slot in audit) and isclose(mean, own, rel_tol=1e-9, abs_tol=1e-12)
        for (slot, drawn, mean), own in zip(found, choice.expected, strict=True)
    )
    if not right:
        raise StoreError(
            f"{journal.name}: table pull does not say what the decision of tick {event.tick} "
            f"(event {event.seq}) expected of its pulls; it was edited. {REBUILD}"
        )


def _compare_forgotten(journal: Journal, event: Event, memory: Memory) -> None:
    """Raise unless the sightings that still count are those that were known."""
    body = event.body
    found = forget_body(journal, memory, body["arms"], body["before"], {})
    if any(body[key] != value for key, value in found.items()):
        raise StoreError(
            f"{journal.name}: event {event.seq} does not say what was seen since tick "
            f"{body['before']}; it was edited. {REBUILD}"
        )


def _compare_snapshot(
    journal: Journal, memory: Memory, made_by: str, body: bytes, digest: bytes
) -> None:
    """Raise unless a snapshot is what its events lead to; one of another version is not used."""
    if made_by != snapshot_version():
        return
    try:
        right = sha256(body).digest() == digest and snapshot_data(body) == json.loads(
            json.dumps(memory.to_data())
        )
    except UNREADABLE:
        right = False
    if not right:
        raise StoreError(
            f"{journal.name}: the snapshot of event {memory.seq} is not what the events lead to; "
            f"it was edited. {REBUILD}"
        )
