"""Since when: the tick from which on the bets of a watch that rings have earned the most.

An alarm rings some time after what it rings for began. Of all ticks since the watch began and all
its bets, the pair is taken whose bet, made in that tick and kept since, would have earned the most:
under the bets' model that is the most likely beginning.
"""

from __future__ import annotations

from itertools import groupby

from restive.live.alarms import HIGH, LOW, SHIFTS, ClosedPull, reward_gains
from restive.live.journal import Journal
from restive.live.memory import Memory
from restive.live.sql_tables import DECIDED

__all__ = ["began", "onset"]

MOST_TICKS = 520  # that are looked at


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
    for tick, own in groupby(rows, lambda row: int(row[0])):
        pulls = []
        for _, slot, state, expected in own:
            rewards, low, high = roster.pays(slot)
            if high > low and kind in ("", roster.kind_of[slot]) and not roster.always_seen(slot):
                pulls.append(
                    ClosedPull(roster.kind_of[slot], None, expected, 0.0, rewards[state], low, high)
                )
        if pulls:
            gains = reward_gains(pulls)
            half = gains[: len(SHIFTS)] if what == LOW else gains[len(SHIFTS) :]
            found.append((tick, half))
    return found
