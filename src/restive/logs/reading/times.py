"""What the fields of a column of times mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.logs.values import AWARE, LOCAL, NUMBER, UNREADABLE, read_times
from restive.logs.reading.columns import mark
from restive.logs.reading.mistakes import Mistakes
from restive.logs.reading.rows import Chunk
from restive.logs.time_steps import StepRule, ZoneOffsets

__all__ = ["Times", "TimesFound"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MICROS = 1_000_000
TIME_KINDS = {NUMBER: "a number", LOCAL: "a date", AWARE: "a date with an offset"}


class TimesFound(NamedTuple):
    """Times that were read ahead of time."""

    times: IntArray  # [R]
    kinds: NDArray[np.int8]  # [R]
    kind: int  # of all of them, or UNREADABLE
    whole: bool
    ascending: bool


class Times:
    """A column of times: all numbers, or all dates, or all dates with an offset."""

    def __init__(self, slot: int, name: str, rule: StepRule | None, zone: str | None) -> None:
        self.slot, self.name, self.rule, self.zone = slot, name, rule, zone
        self.kind = UNREADABLE
        self.num_twice = 0
        self.last = np.iinfo(np.int64).min
        self.in_order = True

    @property
    def are_instants(self) -> bool:
        """Whether times are instants, as opposed to what a clock on the wall shows."""
        return self.kind == AWARE or self._converts

    @property
    def _converts(self) -> bool:
        """Whether clocks on the wall must be understood as instants: for steps within a day."""
        return bool(self.kind == LOCAL and self.zone and self.rule and self.rule.length)

    def look(self, chunk: Chunk) -> TimesFound:
        """Read times ahead of time."""
        starts, ends = chunk.starts[self.slot], chunk.ends[self.slot]
        times, kinds = np.empty(len(starts), np.int64), np.empty(len(starts), np.int8)
        return TimesFound(times, kinds, *read_times(chunk.text, starts, ends, times, kinds))

    def read(
        self, chunk: Chunk, found: TimesFound, good: BoolArray, mistakes: Mistakes
    ) -> IntArray:
        """Return times in micros [R]."""
        if self.kind == UNREADABLE:
            self._settle(found, good)
        whole = self.kind != NUMBER or self.rule is not None or found.whole
        if found.kind != self.kind or found.kind == UNREADABLE or not whole:
            self._mark_bad(chunk, found, good, mistakes)
        times = found.times
        if self._converts and good.any():
            times = self._instants(times, chunk, good, mistakes)
        if found.ascending and times is found.times and good.all():
            self.in_order &= bool(times[0] >= self.last)
            self.last = int(times[-1])
        else:
            self._watch_order(times[good])
        return times

    def _settle(self, found: TimesFound, good: BoolArray) -> None:
        """Let the first row that is good decide what times are."""
        kinds = found.kinds[good & (found.kinds != UNREADABLE)]
        if len(kinds):
            self.kind = int(kinds[0])
            self._require_step()

    def _mark_bad(
        self, chunk: Chunk, found: TimesFound, good: BoolArray, mistakes: Mistakes
    ) -> None:
        times, kinds = found.times, found.kinds
        empty = chunk.ends[self.slot] <= chunk.starts[self.slot]
        self._mark(good, empty, chunk, mistakes, "time is empty")
        self._mark(
            good, kinds == UNREADABLE, chunk, mistakes,
            "time is {}, expected a whole number (up to 2e12), 2026-03-29 or 2026-03-29 14:30:00 "
            "(also with an offset, +02:00)",
        )  # fmt: skip
        if self.kind != UNREADABLE:
            expected = f"expected {TIME_KINDS[self.kind]} as in the rows before"
            self._mark(good, kinds != self.kind, chunk, mistakes, f"time is {{}}, {expected}")
        if self.kind == NUMBER and self.rule is None:
            expected = "expected a whole number (or say how long a step is: step = 0.5)"
            self._mark(good, times % MICROS != 0, chunk, mistakes, f"time is {{}}, {expected}")

    def _mark(
        self, good: BoolArray, bad: BoolArray, chunk: Chunk, mistakes: Mistakes, reason: str
    ) -> None:
        mark(good, bad, chunk, mistakes, reason, self.slot)

    def _watch_order(self, times: IntArray) -> None:
        if len(times):
            self.in_order &= bool(times[0] >= self.last and (np.diff(times) >= 0).all())
            self.last = int(times[-1])

    def _instants(
        self, times: IntArray, chunk: Chunk, good: BoolArray, mistakes: Mistakes
    ) -> IntArray:
        assert self.zone is not None
        offsets = ZoneOffsets(self.zone, int(times[good].min()), int(times[good].max()))
        instants, missing, twice = offsets.instants(times)
        reason = f"time {{}} does not exist in {self.zone}: clocks were set forward"
        self._mark(good, missing, chunk, mistakes, reason)
        self.num_twice += int((twice & good).sum())
        return instants

    def _require_step(self) -> None:
        """Now that it is known what times are: is the step known, and does it fit?"""
        rule = self.rule
        if self.kind == NUMBER:
            if self.zone is not None:
                raise ProblemError(f"column {self.name!r} holds numbers; zone is for dates")
            if rule is not None and not rule.is_number:
                raise ProblemError(
                    f"column {self.name!r} holds numbers, so step is a number too, got "
                    f"{rule.text!r}"
                )
            return
        if rule is None or rule.is_number:
            told = "" if rule is None else f", got {rule.text!r}"
            raise ProblemError(
                f"column {self.name!r} holds dates; say how long a step is, as step = '1d' or '1h'"
                + told
            )
        if self.kind == AWARE and rule.days and self.zone is None:
            raise ProblemError(
                f"column {self.name!r} holds times with an offset; say whose days count, as "
                "zone = 'UTC' or 'Europe/Berlin'"
            )

    def notes(self) -> list[str]:
        """Tell what was decided."""
        told = []
        if not self.in_order:
            told.append("rows are not in order of time; they were sorted")
        if self.num_twice:
            told.append(
                f"{self.num_twice:,} times occur twice in {self.zone}, when clocks are set back; "
                "the first is taken"
            )
        return told
