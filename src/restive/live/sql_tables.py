"""The tables beside the events: `prior`, `arm` and `pull`, in which the file can be asked.

The prior of each kind is written once, to the bit; the first event holds its digest. `arm` and
`pull` are written with each event, in its transaction, and say nothing that the events do not say:
`check` compares them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from restive.errors import StoreError
from restive.learn.priors.data import prior_from_data, prior_to_data
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import IndependentPrior
from restive.live.journal import Event, Journal, as_text
from restive.live.memory import Choice, Memory
from restive.live.settings import NOT_PULLED, UNSEEN

__all__ = [
    "DECIDED",
    "WAITING",
    "ExpectedTables",
    "PullRow",
    "check",
    "enter_arms",
    "enter_choice",
    "enter_instead",
    "enter_leave",
    "enter_results",
    "enter_unseen",
    "pulls_of",
    "store_priors",
    "stored_priors",
]

OPEN, SEEN, LATE, SUPERSEDED = "open", "seen", "late", "superseded"
DECIDED = "expected IS NOT NULL"  # of `pull`: what was decided, not pulled instead


class PullRow(NamedTuple):
    """What became of a pull."""

    status: str
    state: int | None
    decided: bool  # by the agent, not by somebody's own choice


WAITING = PullRow(OPEN, None, True)  # a pull of the open tick without a result


# ---------------------------------------------------------------- priors


def store_priors(journal: Journal, kinds: Mapping[str, Any]) -> list[list[str]]:
    """Write the prior of each kind; return kinds and digests, for the first event."""
    listed = []
    for number, (kind, own) in enumerate(kinds.items(), 1):
        prior = own if isinstance(own, JointPrior) else IndependentPrior([own])
        text = as_text(prior_to_data(prior))
        digest = sha256(text.encode()).digest()
        row = (number, kind, text, digest)
        journal.connection.execute("INSERT INTO prior VALUES (?, ?, ?, ?)", row)
        listed.append([kind, digest.hex()])
    return listed


def stored_priors(journal: Journal, listed: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return the prior of each kind that the first event lists."""
    kinds: dict[str, Any] = {}
    rows = journal.connection.execute("SELECT kind, body FROM prior ORDER BY id").fetchall()
    for (kind, text), (named, digest) in zip(rows, listed, strict=True):
        if named != kind or sha256(text.encode()).hexdigest() != digest:
            raise StoreError(
                f"{journal.path}: the prior of kind {kind!r} was damaged or edited; take your last "
                "backup"
            )
        prior = prior_from_data(json.loads(text))
        kinds[kind] = prior if isinstance(prior, JointPrior) else prior.arms[0]
    return kinds


# ---------------------------------------------------------------- arms and pulls, with each event


def enter_arms(journal: Journal, event: Event, first: int, body: dict[str, Any]) -> None:
    """Enter arms that join, from slot `first` on."""
    rows = (
        (first + i, name, 1 + kind, event.tick, None)
        for i, (name, kind) in enumerate(zip(body["names"], body["kinds"], strict=True))
    )
    journal.connection.executemany("INSERT INTO arm VALUES (?, ?, ?, ?, ?)", rows)


def enter_leave(journal: Journal, event: Event, slots: list[int]) -> None:
    """Enter that arms have left."""
    journal.connection.executemany(
        'UPDATE arm SET "left" = ? WHERE slot = ?', [(event.tick, slot) for slot in slots]
    )


def enter_unseen(journal: Journal, tick: int) -> None:
    """Enter that pulls of a tick that have no result become unseen."""
    journal.connection.execute(
        "UPDATE pull SET status = ? WHERE tick = ? AND status = ?", (UNSEEN, tick, OPEN)
    )


def enter_choice(journal: Journal, event: Event, choice: Choice) -> None:
    """Enter a decision."""
    audit = set(choice.audit)
    journal.connection.executemany(
        "INSERT INTO pull VALUES (?, ?, ?, NULL, ?, ?, NULL)",
        [
            (event.tick, arm, OPEN, int(arm in audit), mean)
            for arm, mean in zip(choice.arms, choice.expected, strict=True)
        ],
    )


def enter_results(journal: Journal, event: Event, body: dict[str, Any]) -> None:
    """Enter results of pulls, in time or late."""
    seq, tick = event.seq, event.tick
    journal.connection.executemany(
        "UPDATE pull SET status = ?, state = ?, recorded = ? WHERE tick = ? AND slot = ?",
        [(*row, seq, tick, slot) for slot, row in _results(body, body["arms"]).items()],
    )


def enter_instead(journal: Journal, event: Event, body: dict[str, Any]) -> None:
    """Enter pulls that somebody chose himself."""
    journal.connection.executemany(
        "INSERT INTO pull VALUES (?, ?, ?, ?, 0, NULL, ?)",
        [(event.tick, slot, *row, event.seq) for slot, row in _results(body, body["arms"]).items()],
    )


def _results(body: dict[str, Any], slots: Sequence[int]) -> dict[int, tuple[str, int | None]]:
    """Status and state of each pull of which an event tells the result, by slot."""
    late, unused = body.get("late"), set(body.get("superseded", ()))
    found: dict[int, tuple[str, int | None]] = {}
    for slot, result in zip(slots, body["results"], strict=True):
        if isinstance(result, str):
            found[slot] = (NOT_PULLED if result == NOT_PULLED else UNSEEN, None)
        elif slot in unused:
            found[slot] = (SUPERSEDED, result)
        else:
            found[slot] = (LATE if late else SEEN, result)
    return found


def pulls_of(journal: Journal, memory: Memory, tick: int) -> dict[int, PullRow]:
    """Return what became of a tick's pulls, by slot."""
    now = memory.open
    if now is not None and now.tick == tick:
        rows = dict.fromkeys(now.choice.arms, WAITING)
        rows |= {slot: PullRow(SEEN, state, False) for slot, state in now.instead.items()}
        for slot, result in now.results.items():
            if isinstance(result, int):
                rows[slot] = PullRow(SEEN, result, True)
            else:
                rows[slot] = PullRow(result, None, True)
        return rows
    found = journal.connection.execute(
        f"SELECT slot, status, state, {DECIDED} FROM pull WHERE tick = ?", (tick,)
    )
    return {slot: PullRow(status, state, bool(decided)) for slot, status, state, decided in found}


# ---------------------------------------------------------------- compared with the events


class ExpectedTables:
    """What `arm` and `pull` must say, from the events alone."""

    def __init__(self) -> None:
        self.pulls: dict[tuple[int, int], tuple[Any, ...]] = {}  # by tick and slot
        self.arms: dict[tuple[int, int], tuple[Any, ...]] = {}  # by 0 and slot
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
            rows = _results(body, body.get("arms", self.decided))
            self.pulls |= {(event.tick, slot): row for slot, row in rows.items()}


def check(journal: Journal) -> int:
    """Walk the journal and compare the tables with it; return the number of good events."""
    (answer,) = journal.connection.execute("PRAGMA integrity_check(1)").fetchone()
    if answer != "ok":
        raise StoreError(f"{journal.path}: SQLite finds it damaged: {answer}")
    expected = ExpectedTables()
    count = 0
    for event in journal.checked_events():
        expected.add(event)
        count += 1
    _compare(journal, "pull", expected.pulls, "SELECT tick, slot, status, state FROM pull")
    _compare(journal, "arm", expected.arms, 'SELECT 0, slot, name, "left" FROM arm')
    return count


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
