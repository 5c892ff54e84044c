"""Since when an alarm on rewards rings, and what it compares.

An alarm rings some time after what it rings for began. Of all ticks since the watch began and all
its bets, the pair is taken whose bet, made in that tick and kept since, would have earned the most:
under the bets' model that is the most likely beginning.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from math import log
from typing import TypeAlias

from restive.live.journal.events import Journal
from restive.live.journal.sql_tables import DECIDED
from restive.live.memory import Memory
from restive.live.people.roster import Roster
from restive.live.session import Session
from restive.live.told.alarms import HIGH, LOW, SHIFTS, ClosedPull, reward_gains
from restive.live.words import Words

__all__ = ["began", "compared", "onset", "rang_on_others", "watched_since"]

SeenRow: TypeAlias = tuple[int, int, int, float]  # tick, slot, state and expected reward

MOST_TICKS = 520  # that are looked at
LITTLE = log(10)  # of a bet's gain: a watch rings at a hundred and more


def began(journal: Journal, memory: Memory, name: str) -> int | None:
    """Return since when rewards are likely off, by a watch on rewards that rings; else None."""
    what, _, kind = name.partition(": ")
    if what not in (LOW, HIGH):
        return None
    ticks = min(memory.watches.capital[name].ticks, MOST_TICKS)
    gains = _gains(journal, memory, what, kind)[-ticks:]
    return onset(gains) if gains else None


def onset(gains: list[tuple[int, list[float]]]) -> int:
    """Return the tick of which a bet, kept since, has earned the most: gains are logarithms."""
    sums = [0.0] * len(gains[0][1])
    best, found = float("-inf"), gains[-1][0]
    for tick, earned in reversed(gains):
        sums = [total + gain for total, gain in zip(sums, earned, strict=True)]
        if max(sums) > best:
            best, found = max(sums), tick
    return found


def _gains(journal: Journal, memory: Memory, what: str, kind: str) -> list[tuple[int, list[float]]]:
    """Logarithms of what each bet of a watch has earned in each tick that is over."""
    roster, found = memory.roster, []
    rows = journal.connection.execute(
        "SELECT tick, slot, state, expected FROM pull WHERE tick >= ? AND tick < ? AND "
        f"{DECIDED} AND state IS NOT NULL ORDER BY tick, slot",
        (memory.tick - 2 * MOST_TICKS, memory.tick),
    ).fetchall()
    for tick, own in groupby(_of_kind(roster, kind, rows), lambda row: int(row[0])):
        pulls = _closed(roster, own)
        if pulls:
            found.append((tick, _half(pulls, what)))
    return found


def _closed(roster: Roster, rows: Iterable[SeenRow]) -> list[ClosedPull]:
    """Return pulls of which more than one reward was possible, as watches see them."""
    found = []
    for _, slot, state, expected in rows:
        rewards, low, high = roster.pays(slot)
        if high > low:
            kind = roster.kind_of[slot]
            found.append(ClosedPull(kind, None, expected, 0.0, rewards[state], low, high))
    return found


def _half(pulls: list[ClosedPull], what: str) -> list[float]:
    """Logarithms of what bets on lower rewards earn, or those on higher ones."""
    gains = reward_gains(pulls)
    return gains[: len(SHIFTS)] if what == LOW else gains[len(SHIFTS) :]


def rang_on_others(session: Session, name: str, began: int, noticed: int) -> bool:
    """Whether a watch on rewards rang on results that have been corrected since, or came late.

    As they are known now, no bet earns much by them; one did when it rang.
    """
    what, _, kind = name.partition(": ")
    if what not in (LOW, HIGH):
        return False
    pulls = _closed(session.memory.roster, _seen(session, kind, began, noticed))
    return not pulls or max(_half(pulls, what)) < LITTLE


def compared(session: Session, name: str, began: int | None, noticed: int) -> str:
    """Say what was earned and foretold from a tick until the alarm rang; "" of other alarms.

    By results as they are known now: those that came late or were corrected since are in.
    """
    what, _, kind = name.partition(": ")
    if began is None or what not in (LOW, HIGH):
        return ""
    memory, roster = session.memory, session.memory.roster
    count, reward, foretold = 0, 0.0, 0.0
    for _, slot, state, expected in _seen(session, kind, began, noticed):
        count += 1
        reward += roster.pays(slot).rewards[state]
        foretold += expected
    words = memory.settings.words
    label = memory.settings.clock.label
    return (
        f"{_span(words, began, label(began), noticed - 1, label(noticed - 1))}: {reward:,.1f} "
        f"{words.reward} in {words.count(count, 'pull')}, forecast {foretold:,.1f}"
    )


def watched_since(session: Session, name: str, began: int, noticed: int) -> bool:
    """Whether a watch that rings has bet on nothing before the tick since when rewards are off.

    Kinds that are learnt are not bet on at first, and a watch that was answered begins anew.
    """
    _, _, kind = name.partition(": ")
    ticks = {tick for tick, *_ in _seen(session, kind, began, noticed)}
    earlier = session.journal.connection.execute(
        f"SELECT 1 FROM pull WHERE tick < ? AND {DECIDED} AND state IS NOT NULL LIMIT 1", (began,)
    ).fetchone()
    capital = session.memory.watches.capital[name]
    return earlier is not None and len(ticks) >= min(capital.ticks, MOST_TICKS)


def _seen(session: Session, kind: str, first: int, end: int) -> list[SeenRow]:
    """Return tick, slot, state and expected reward of pulls that were seen, of a kind or of all."""
    rows = session.journal.connection.execute(
        "SELECT tick, slot, state, expected FROM pull WHERE tick >= ? AND tick < ? AND "
        f"{DECIDED} AND state IS NOT NULL ORDER BY tick, slot",
        (first, end),
    ).fetchall()
    return _of_kind(session.memory.roster, kind, rows)


def _of_kind(roster: Roster, kind: str, rows: Iterable[SeenRow]) -> list[SeenRow]:
    """Return rows of pulls of a kind, or of all, whose rewards were not known before."""
    return [
        row
        for row in rows
        if kind in ("", roster.kind_of[row[1]]) and not roster.always_seen(row[1])
    ]


def _span(words: Words, first: int, begins: str, last: int, ends: str) -> str:
    if first == last:
        return words.when(first, begins)
    dates = f" ({begins} to {ends})" if begins else ""
    return f"{words.many('tick')} {first} to {last}{dates}"
