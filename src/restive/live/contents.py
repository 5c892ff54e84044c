"""Tables of contents of the journal: `arm` and `pull`, written together with each event."""

from __future__ import annotations

from typing import Any

from restive.live.journal import Event, Journal
from restive.live.memory import Choice, Memory
from restive.live.settings import NOT_PULLED, UNSEEN

__all__ = [
    "WAITING",
    "enter_arms",
    "enter_choice",
    "enter_instead",
    "enter_leave",
    "enter_results",
    "enter_unseen",
    "pulls_of",
]

Row = tuple[str, int | None, bool]  # status, state, and whether it was our decision

OPEN, SEEN, LATE, SUPERSEDED = "open", "seen", "late", "superseded"
WAITING: Row = (OPEN, None, True)  # a pull of the open tick without a result


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
    unused, late = set(body.get("superseded", ())), event.kind == "late"
    seq, tick, rows = event.seq, event.tick, []
    for arm, result in zip(body["arms"], body["results"], strict=True):
        state = result if isinstance(result, int) else None
        rows.append((_status(late, arm in unused, result), state, seq, tick, arm))
    journal.connection.executemany(
        "UPDATE pull SET status = ?, state = ?, recorded = ? WHERE tick = ? AND slot = ?", rows
    )


def enter_instead(journal: Journal, event: Event, body: dict[str, Any]) -> None:
    """Enter pulls that somebody chose himself."""
    unused, late = set(body.get("superseded", ())), bool(body.get("late"))
    journal.connection.executemany(
        "INSERT INTO pull VALUES (?, ?, ?, ?, 0, NULL, ?)",
        [
            (event.tick, arm, _status(late, arm in unused, state), state, event.seq)
            for arm, state in zip(body["arms"], body["results"], strict=True)
        ],
    )


def _status(late: bool, unused: bool, result: int | str) -> str:
    if isinstance(result, str):
        return NOT_PULLED if result == NOT_PULLED else UNSEEN
    if unused:
        return SUPERSEDED
    return LATE if late else SEEN


def pulls_of(journal: Journal, memory: Memory, tick: int) -> dict[int, Row]:
    """Return what became of a tick's pulls, by slot."""
    now = memory.open
    if now is not None and now.tick == tick:
        rows: dict[int, Row] = dict.fromkeys(now.choice.arms, WAITING)
        rows |= {slot: (SEEN, state, False) for slot, state in now.instead.items()}
        for slot, result in now.results.items():
            rows[slot] = (SEEN, result, True) if isinstance(result, int) else (result, None, True)
        return rows
    found = journal.connection.execute(
        "SELECT slot, status, state, expected IS NOT NULL FROM pull WHERE tick = ?", (tick,)
    )
    return {slot: (status, state, bool(ours)) for slot, status, state, ours in found}
