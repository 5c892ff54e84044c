"""Sums over all ticks: those of ticks that are long over are kept, the others are looked up.

A file of a million events would have to be read from end to end for a page that says what was
earned. Of ticks that are over results come seldom; where one does come, all is summed up anew.
"""

from __future__ import annotations

import json
from array import array
from collections import Counter
from math import fsum, nan
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.live.journal.events import STANDING, UNDO
from restive.live.journal.sql_tables import DECIDED
from restive.live.settings import UNSEEN

if TYPE_CHECKING:
    from restive.live.session import Session

__all__ = ["RewardTable", "Summaries", "Totals"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

RECENT = 64  # ticks whose results may still come
AT_LEAST = 64  # ticks that are added to what is kept, at a time


class RewardTable(NamedTuple):
    """What was earned and foreseen in each tick that was decided, [ticks] each."""

    tick: IntArray
    pulls: IntArray
    seen: IntArray
    reward: FloatArray
    forecast: FloatArray  # of the pulls that were seen
    mean: FloatArray  # of all pulls; NaN, as the variance, where decisions were taken over
    variance: FloatArray


class Totals(NamedTuple):
    """Sums over all ticks."""

    statuses: Counter[str]  # of pulls that were decided
    missing: int  # unseen ones of which nobody has said anything
    audited: Counter[tuple[int, int]]  # by kind (or arm, under a joint prior) and state
    decisions: int
    reward: float
    forecast: float


class _Sums:
    """Sums of some ticks, one after the other.

    What a decision itself foretold is read only for the whole of a table: most of a long file's
    time would go there.
    """

    def __init__(self, whole: bool) -> None:
        self.whole = whole
        self.statuses: Counter[str] = Counter()
        self.missing = 0
        self.audited: Counter[tuple[int, int]] = Counter()
        self.columns = tuple(array(kind) for kind in "qqqdddd")

    def add(self, session: Session, first: int, end: int) -> None:
        """Sum up the ticks from the first on, before the end."""
        execute, roster = session.journal.connection.execute, session.memory.roster
        group = "pull.slot" if roster.joint else "arm.prior - 1"
        within, ticks = "tick >= ? AND tick < ?", (first, end)
        self.statuses.update(dict(execute(
            f"SELECT status, count(*) FROM pull WHERE {within} AND {DECIDED} GROUP BY status", ticks
        )))  # fmt: skip
        (missing,) = execute(
            f"SELECT count(*) FROM pull WHERE {within} AND {DECIDED} AND status = ? AND "
            "recorded IS NULL",
            (*ticks, UNSEEN),
        ).fetchone()
        self.missing += missing
        seen = f"FROM pull JOIN arm USING (slot) WHERE {within} AND state IS NOT NULL"
        for key, state, count in execute(
            f"SELECT {group}, state, count(*) {seen} AND audit = 1 GROUP BY 1, 2", ticks
        ):
            self.audited[key, state] += count
        always = roster.groups_always_seen()
        by_group, earned = roster.rewards_by_group(), dict[int, tuple[int, float, float]]()
        for tick, key, state, count, mean in execute(
            f"SELECT tick, {group}, state, count(*), sum(expected) {seen} AND {DECIDED} "
            "GROUP BY 1, 2, 3",
            ticks,
        ):
            before = earned.get(tick, (0, 0.0, 0.0))
            # what is always seen pays for the state before, which was known: as foreseen
            known = mean if key in always else by_group[key][state] * count
            now = (count, known, mean)
            earned[tick] = (before[0] + now[0], before[1] + now[1], before[2] + now[2])
        foretold = "body" if self.whole else "NULL"
        for tick, text in execute(
            f"SELECT tick, {foretold} FROM event WHERE kind = 'decide' AND {within} AND {STANDING} "
            "ORDER BY tick",
            ticks,
        ):
            body = {"arms": ()} if text is None else json.loads(text)
            row = (
                tick, len(body["arms"]), *earned.get(tick, (0, 0.0, 0.0)),
                body.get("mean", nan), body.get("variance", nan),
            )  # fmt: skip
            for column, value in zip(self.columns, row, strict=True):
                column.append(value)


class Summaries:
    """Sums over the ticks of an open file."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self, whole: bool = False) -> None:
        self._kept = _Sums(whole)
        self._until = 0  # ticks before this one are in them
        self._last: tuple[int, bytes] = (0, b"")  # event that was looked at

    def totals(self, session: Session) -> Totals:
        """Return sums over all ticks, in a transaction."""
        recent = self._recent(session)
        reward, forecast = (
            fsum([*self._kept.columns[at], *recent.columns[at]]) for at in (3, 4)
        )  # fmt: skip
        return Totals(
            self._kept.statuses + recent.statuses, self._kept.missing + recent.missing,
            self._kept.audited + recent.audited,
            len(self._kept.columns[0]) + len(recent.columns[0]), reward, forecast,
        )  # fmt: skip

    def rewards(self, session: Session) -> RewardTable:
        """Return what was earned in each tick, in a transaction."""
        if not self._kept.whole:
            self._forget(whole=True)
        recent = self._recent(session)
        return RewardTable(*(
            np.concatenate([np.array(kept), np.array(new)])
            for kept, new in zip(self._kept.columns, recent.columns, strict=True)
        ))  # fmt: skip

    def _recent(self, session: Session) -> _Sums:
        """Bring what is kept up to date; return the sums of the ticks that are not in it."""
        memory = session.memory
        if self._changed(session):
            self._forget(self._kept.whole)
        self._last = memory.seq, memory.digest
        end = memory.tick - RECENT
        if end - self._until >= AT_LEAST:
            self._kept.add(session, self._until, end)
            self._until = end
        recent = _Sums(self._kept.whole)
        recent.add(session, self._until, memory.tick + 1)
        return recent

    def _changed(self, session: Session) -> bool:
        """Whether something has happened since to ticks that are kept."""
        journal, (seq, digest) = session.journal, self._last
        if seq == 0 or (session.memory.seq == seq and session.memory.digest == digest):
            return False
        known = next(journal.events(seq - 1, 1), None)
        if known is None or known.digest != digest:
            return True  # the file was rebuilt
        execute = journal.connection.execute
        (earliest,) = execute("SELECT min(tick) FROM event WHERE seq > ?", (seq,)).fetchone()
        for event in journal.events(seq, kinds=(UNDO,)):
            for number in event.body["events"]:
                (tick,) = execute("SELECT tick FROM event WHERE seq = ?", (number,)).fetchone()
                earliest = min(earliest, tick)
        return earliest is not None and earliest <= self._until
