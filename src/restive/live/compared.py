"""What an alarm on rewards compares: of which ticks, and how far off they were."""

from __future__ import annotations

from restive.live.alarms import HIGH, LOW
from restive.live.session import Session
from restive.live.sql_tables import DECIDED
from restive.live.words import Words

__all__ = ["compared"]


def compared(session: Session, name: str, began: int | None, noticed: int) -> str:
    """Say what was earned and foretold from a tick until the alarm rang; "" of other alarms.

    By results as they are known now: those that came late or were corrected since are in.
    """
    what, _, kind = name.partition(": ")
    if began is None or what not in (LOW, HIGH):
        return ""
    memory, roster = session.memory, session.memory.roster
    count, reward, foretold = 0, 0.0, 0.0
    for slot, state, expected in session.journal.connection.execute(
        "SELECT slot, state, expected FROM pull WHERE tick >= ? AND tick < ? AND "
        f"{DECIDED} AND state IS NOT NULL ORDER BY tick, slot",
        (began, noticed),
    ).fetchall():
        if kind in ("", roster.kind_of[slot]) and not roster.always_seen(slot):
            count += 1
            reward += roster.pays(slot).rewards[state]
            foretold += expected
    words = memory.settings.words
    label = memory.settings.clock.label
    said = (
        f"{_span(words, began, label(began), noticed - 1, label(noticed - 1))}: {reward:,.1f} "
        f"{words.reward} in {words.count(count, 'pull')}, forecast {foretold:,.1f}"
    )
    if (reward < foretold) != (what == LOW):
        said += ", by results that have changed since"
    return said


def _span(words: Words, first: int, begins: str, last: int, ends: str) -> str:
    if first == last:
        return words.when(first, begins)
    dates = f" ({begins} to {ends})" if begins else ""
    return f"{words.many('tick')} {first} to {last}{dates}"
