"""The tables beside the events: `prior`, `arm`, `pull` and `withdrawn`, which can be asked.

The prior of each kind is written once, to the bit; the first event holds its digest. The others are
written with each event, in its transaction, and say nothing that the events do not say:
`checking` compares them. What was withdrawn is in `event` and `withdrawn` alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from restive.errors import StoreError
from restive.learn.priors.data import prior_from_data, prior_to_data
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import IndependentPrior
from restive.live.acts.open_tick import Choice
from restive.live.journal.events import RARE, STANDING, UNDO, Event, Journal, as_text
from restive.live.journal.sqlite import SqliteDatabase
from restive.live.memory import Memory
from restive.live.settings import NOT_PULLED, UNSEEN

__all__ = [
    "DECIDED",
    "REPLACED_BY",
    "WAITING",
    "ExpectedTables",
    "GoodEvents",
    "Progress",
    "PullRow",
    "enter_arms",
    "enter_choice",
    "enter_instead",
    "enter_leave",
    "enter_results",
    "enter_return",
    "enter_undo",
    "enter_unseen",
    "give_way",
    "left_with",
    "moved_on",
    "pulls_of",
    "store_priors",
    "stored_priors",
]

Progress = Callable[[int, int], None]
PullResult = tuple[str, int | None, int | None]  # status, state, and the event that told it

OPEN, SEEN, LATE, SUPERSEDED = "open", "seen", "late", "superseded"
NOT_YET: PullResult = (OPEN, None, None)
NEVER_SEEN: PullResult = (UNSEEN, None, None)
REPLACED_BY = "replaced by"  # of `meta`: the file that a rebuild made of this one
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
                f"{journal.name}: the prior of kind {kind!r} was damaged or edited; take your last "
                "backup"
            )
        prior = prior_from_data(json.loads(text))
        kinds[kind] = prior if isinstance(prior, JointPrior) else prior.arms[0]
    return kinds


# ---------------------------------------------------------------- of which file goes on


def moved_on(journal: Journal) -> str | None:
    """Return the file that a rebuild made of this one, while it is there; None if none is."""
    if not isinstance(journal.database, SqliteDatabase):
        return None
    row = journal.connection.execute(
        "SELECT value FROM meta WHERE key = ?", (REPLACED_BY,)
    ).fetchone()
    if row is None:
        return None
    new, here = Path(row[0]), journal.database.path.resolve()
    places = (new, here.with_name(new.name))  # both may have been moved
    found = next((one for one in places if one.is_file() and not one.samefile(here)), None)
    if found is None:
        return None
    return found.name if found.parent == Path(journal.name).resolve().parent else str(found)


def give_way(journal: Journal, last: tuple[int, bytes], path: Path) -> None:
    """Enter that another file goes on after this last event, so that nobody writes here any more.

    Raises if this is not the last event any more.
    """
    with journal.writing():
        journal.require_last(last)
        row = (REPLACED_BY, str(path.resolve()))
        journal.connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", row)


# ---------------------------------------------------------------- of who left by a result


def left_with(journal: Journal, gone: Mapping[int, int], slots: Iterable[int]) -> dict[int, int]:
    """Return the ticks of the results with which arms left; not of who is here or left otherwise.

    `gone` is in which tick each has left. Files of older versions say only with which act.
    """
    asked = gone.keys() & set(slots)
    if not asked:
        return {}
    bodies = journal.connection.execute(
        f"SELECT body FROM event WHERE kind = 'leave' AND {RARE} AND tick >= ? AND {STANDING} "
        "ORDER BY seq",
        (min(gone[slot] for slot in asked),),
    )
    found: dict[int, int] = {}
    for body in (json.loads(text) for (text,) in bodies):
        of = body.get("of")
        if of is None and "with" in body:
            of = next(journal.events(body["with"] - 1, 1)).tick
        for slot in asked.intersection(body["arms"]):  # the last time counts
            found.pop(slot, None)
            if of is not None:
                found[slot] = of
    return found


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


def enter_return(journal: Journal, slots: list[int]) -> None:
    """Enter that arms which had left by mistake are back."""
    rows = [(slot,) for slot in slots]
    journal.connection.executemany('UPDATE arm SET "left" = NULL WHERE slot = ?', rows)


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
    journal.connection.executemany(
        "UPDATE pull SET status = ?, state = ?, recorded = ? WHERE tick = ? AND slot = ?",
        [(*row, event.tick, slot) for slot, row in _results(event.seq, body, body["arms"]).items()],
    )


def enter_instead(journal: Journal, event: Event, body: dict[str, Any]) -> None:
    """Enter pulls that somebody chose himself."""
    journal.connection.executemany(
        "INSERT INTO pull VALUES (?, ?, ?, ?, 0, NULL, ?)",
        [(event.tick, slot, *row) for slot, row in _results(event.seq, body, body["arms"]).items()],
    )


def enter_undo(journal: Journal, memory: Memory, undo: Event, withdrawn: Sequence[Event]) -> None:
    """Enter that events were withdrawn, once the memory has forgotten them."""
    execute = journal.connection.execute
    for event in reversed(withdrawn):
        execute("INSERT INTO withdrawn VALUES (?, ?)", (event.seq, undo.seq))
        body = event.body
        if event.kind == "decide":
            execute("DELETE FROM pull WHERE tick = ?", (event.tick,))
            execute(  # what its beginning made of pulls without a result
                f"UPDATE pull SET status = ? WHERE tick = ? AND {DECIDED} AND status = ? AND "
                "recorded IS NULL",
                (OPEN, memory.tick, UNSEEN),
            )
        elif event.kind == "override":
            rows = [(event.tick, slot) for slot in body["arms"]]
            journal.connection.executemany("DELETE FROM pull WHERE tick = ? AND slot = ?", rows)
        elif event.kind in ("record", "late"):
            _withdraw_results(journal, memory, event)
        elif event.kind in ("leave", "return"):
            left = [(memory.gone.get(slot), slot) for slot in body["arms"]]
            journal.connection.executemany('UPDATE arm SET "left" = ? WHERE slot = ?', left)
        elif event.kind == "join":
            names = [(name,) for name in body["names"]]
            journal.connection.executemany("DELETE FROM arm WHERE name = ?", names)


def _withdraw_results(journal: Journal, memory: Memory, event: Event) -> None:
    """Enter what is known of the pulls of an event without it."""
    execute, tick = journal.connection.execute, event.tick
    row = execute(
        f"SELECT seq, body FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING}", (tick,)
    ).fetchone()
    first, arms = row[0], json.loads(row[1])["arms"]
    journal.connection.executemany(
        "UPDATE pull SET status = ?, state = NULL, recorded = NULL WHERE tick = ? AND slot = ?",
        [
            (OPEN if tick == memory.tick else UNSEEN, tick, slot)
            for slot in event.body.get("arms", arms)
        ],
    )
    # a pull that was recorded as unseen may have got its state later: it is unseen again
    for number, text in execute(
        f"SELECT seq, body FROM event WHERE seq > ? AND seq < ? AND tick = ? AND "
        f"kind IN ('record', 'late') AND {STANDING} ORDER BY seq",
        (first, event.seq, tick),
    ).fetchall():
        body = {"arms": arms, **json.loads(text)}
        enter_results(journal, event._replace(seq=number), body)


def _results(seq: int, body: dict[str, Any], slots: Sequence[int]) -> dict[int, PullResult]:
    """What an event of this number tells of pulls, by slot."""
    late, unused = body.get("late"), set(body.get("superseded", ()))
    found: dict[int, PullResult] = {}
    for slot, result in zip(slots, body["results"], strict=True):
        if isinstance(result, str):
            found[slot] = (NOT_PULLED if result == NOT_PULLED else UNSEEN, None, seq)
        elif slot in unused:
            found[slot] = (SUPERSEDED, result, seq)
        else:
            found[slot] = (LATE if late else SEEN, result, seq)
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
    """What `arm` and `pull` must say, from the events alone.

    Parameters
    ----------
    late
        Results of ticks that were over when they came, by tick, in their order.
    """

    def __init__(self, late: Mapping[int, Sequence[Event]]) -> None:
        self._late = late
        # by slot: name, number of its prior, tick it joined, and tick it left
        self.arms: dict[int, tuple[str, int, int, int | None]] = {}

    def pulls(self, events: Iterable[Event]) -> Iterator[tuple[int, dict[int, PullResult]]]:
        """Take in all events that stand; yield ticks and their pulls by slot, in order of time."""
        late = sorted(self._late, reverse=True)  # ticks; of those that are over, the last
        tick, decided, rows = -1, list[int](), dict[int, PullResult]()
        for event in events:
            body = event.body
            if event.kind == "decide":
                rows = {slot: NEVER_SEEN if row == NOT_YET else row for slot, row in rows.items()}
                while late and late[-1] < event.tick:
                    there = late.pop()
                    if tick < there:
                        yield from _if_any(tick, rows)
                        tick, rows = there, {}
                    for one in self._late[there]:
                        rows |= _results(one.seq, one.body, one.body["arms"])
                yield from _if_any(tick, rows)
                tick, decided = event.tick, body["arms"]
                rows = dict.fromkeys(decided, NOT_YET)
            elif event.kind in ("record", "override") and not body.get("late"):
                rows |= _results(event.seq, body, body.get("arms", decided))
            elif event.kind in ("init", "join"):
                new = body["arms"] if event.kind == "init" else body
                for name, kind in zip(new["names"], new["kinds"], strict=True):
                    self.arms[len(self.arms)] = (name, 1 + kind, event.tick, None)
            elif event.kind == "leave":
                for slot in body["arms"]:
                    self.arms[slot] = (*self.arms[slot][:3], event.tick)
            elif event.kind == "return":
                for slot in body["arms"]:
                    self.arms[slot] = (*self.arms[slot][:3], None)
        yield from _if_any(tick, rows)


def _if_any(tick: int, rows: dict[int, PullResult]) -> Iterator[tuple[int, dict[int, PullResult]]]:
    if rows:
        yield tick, rows


class GoodEvents:
    """The events of a journal up to a certain one, whose digests were looked at.

    Parameters
    ----------
    journal
        The journal, inside a transaction.
    progress
        Called with (events looked at, events that are there).
    """

    def __init__(self, journal: Journal, progress: Progress | None = None) -> None:
        self.journal = journal
        self.withdrawn: dict[int, int] = {}  # by number: the event that withdrew it
        self.last = 0  # the last good one
        self.error: StoreError | None = None  # that of the next one, if it is bad
        late: dict[int, list[Event]] = {}
        total, _ = journal.last()
        try:
            for event in journal.checked_events():
                self.last = event.seq
                if event.kind == UNDO:
                    self.withdrawn |= dict.fromkeys(event.body["events"], event.seq)
                elif event.kind == "late" or (event.kind == "override" and "late" in event.body):
                    late.setdefault(event.tick, []).append(event)
                if progress is not None and event.seq % 1024 == 0:
                    progress(event.seq, total)
        except StoreError as error:
            self.error = error
        self.late = {tick: [one for one in some if one.seq not in self.withdrawn]
                     for tick, some in late.items()}  # fmt: skip

    def standing(self) -> Iterator[Event]:
        """Yield those that were not withdrawn."""
        for event in self.journal.events(limit=self.last):
            if event.seq not in self.withdrawn:
                yield event
