"""From time stamps to steps: how long a step is, and whose days count.

A time in a log is a number, or a date and time. Numbers are counted in millionths and times in
microseconds since 1970, so that both are 64-bit whole numbers. Steps of hours and shorter are
counted from the first day's midnight in absolute time; steps of days and weeks follow the zone's
calendar, so that a day of 23 hours is one step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from restive.arguments import shown
from restive.errors import ProblemError

__all__ = ["StepRule", "Steps", "ZoneOffsets", "checked_zone", "step_rule"]

IntArray = NDArray[np.int64]

MICROS = 1_000_000
DAY = 86_400 * MICROS
LONGEST = (1 << 41) * MICROS  # as times in a log
SECONDS = {"s": 1, "min": 60, "h": 3600}
DAYS = {"d": 1, "w": 7}
LOOK_EVERY = 6 * 3600 * MICROS  # no zone has changed its clocks twice within six hours
EPOCH = datetime(1970, 1, 1)
MOST_YEARS = 300
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True)
class StepRule:
    """How long a step is: a stretch of numbers or of time, or whole days by a calendar."""

    text: str  # as given, for messages
    length: int = 0  # in micros; 0 for days
    days: int = 0
    zone: str | None = None

    @property
    def is_number(self) -> bool:
        """Whether times are plain numbers."""
        return self.text[-1:].isdigit()

    @property
    def is_weeks(self) -> bool:
        """Whether a step is a week, or several."""
        return self.text.endswith("w")

    @property
    def period(self) -> str:
        """What a clock of an agent calls such a step; "" where it has no such clock."""
        if self.days:
            return {1: "daily", 7: "weekly"}.get(self.days, f"P{self.days}D")
        seconds, rest = divmod(0 if self.is_number else self.length, MICROS)
        return "" if rest or not seconds else f"PT{seconds}S"


def step_rule(step: Any, zone: Any = None) -> StepRule | None:
    """Return what "1d", "2w", "6h", "15min", "30s" or a number means; None if nothing was said."""
    if zone is not None:
        checked_zone(zone)
    if step is None:
        return None
    if isinstance(step, bool) or not isinstance(step, str | int | float | np.number):
        raise ProblemError(f"step must be a number or a text like '1d', got {step!r:.60}")
    text = str(step).strip()
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text)
    unit = found[2] if found else ""
    if found is None or float(found[1]) == 0 or (unit and unit not in SECONDS | DAYS):
        raise ProblemError(
            f"step must be a number or a length of time such as 1d, 2w, 6h, 15min or 30s, "
            f"got {step!r:.60}"
        )
    if unit in DAYS:
        if "." in found[1]:
            raise ProblemError(f"step: days and weeks are counted whole, got {step!r:.60}")
        rule = StepRule(text, days=int(found[1]) * DAYS[unit], zone=zone)
    else:
        length = round(float(found[1]) * MICROS * SECONDS.get(unit, 1))
        rule = StepRule(text, length=length, zone=zone)
    if not 0 < rule.length + rule.days * DAY <= LONGEST:
        raise ProblemError(
            f"step must be at least a millionth and at most {LONGEST // MICROS:,} (or as many "
            f"seconds), got {step!r:.60}"
        )
    return rule


def checked_zone(zone: Any) -> ZoneInfo:
    """Return a zone by its name, or raise."""
    if not isinstance(zone, str):
        raise ProblemError(f"zone must be a name like 'Europe/Berlin', got {shown(zone)}")
    try:
        return ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ProblemError(
            f"zone {zone!r:.60} is not known; it is a name like 'UTC' or 'Europe/Berlin' (a "
            "machine without zone data needs `pip install tzdata`)"
        ) from None


class ZoneOffsets:
    """A zone's offsets from UTC over a range of instants.

    Parameters
    ----------
    zone
        The zone's name.
    first, last
        The range, in micros since 1970; local times count as instants here, a day more or less.
    """

    def __init__(self, zone: str, first: int, last: int) -> None:
        self._info = checked_zone(zone)
        grid = np.arange(first - 2 * DAY, last + 2 * DAY + LOOK_EVERY, LOOK_EVERY)
        if len(grid) > MOST_YEARS * 366 * 4:
            raise ProblemError(f"times span more than {MOST_YEARS} years; are all of them right?")
        offsets = np.array([self._offset(instant) for instant in grid.tolist()], dtype=np.int64)
        starts = [int(grid[0])]
        found = [int(offsets[0])]
        for i in np.flatnonzero(np.diff(offsets)).tolist():
            starts.append(self._change(int(grid[i]), int(grid[i + 1])))
            found.append(int(offsets[i + 1]))
        self.starts = np.array(starts, dtype=np.int64)
        self.offsets = np.array(found, dtype=np.int64)

    def _offset(self, instant: int) -> int:
        moment = EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=instant)
        offset = moment.astimezone(self._info).utcoffset()
        assert offset is not None
        return round(offset.total_seconds() * MICROS)

    def _change(self, low: int, high: int) -> int:
        """Return the first instant, to the second, that has the offset of `high`."""
        new = self._offset(high)
        while high - low > MICROS:
            middle = (low + high) // 2
            low, high = (low, middle) if self._offset(middle) == new else (middle, high)
        return high // MICROS * MICROS

    def local(self, instants: IntArray) -> IntArray:
        """What a clock on the wall shows."""
        at = np.searchsorted(self.starts, instants, side="right") - 1
        shown: IntArray = instants + self.offsets[np.maximum(at, 0)]
        return shown

    def instants(self, local: IntArray) -> tuple[IntArray, NDArray[np.bool_], NDArray[np.bool_]]:
        """Instants of local times, which of these do not exist, and which occur twice.

        Of a time that occurs twice, when clocks are set back, it is the first.
        """
        begins = self.starts.copy()  # of each offset, on a clock that still shows the one before
        begins[1:] += self.offsets[:-1]
        begins[0] += self.offsets[0]
        at = np.maximum(np.searchsorted(begins, local, side="right") - 1, 0)
        instants = local - self.offsets[at]
        missing = instants < self.starts[at]
        later = np.minimum(at + 1, len(begins) - 1)
        twice = (later > at) & (local - self.offsets[later] >= self.starts[later])
        return instants, missing & (at > 0), twice


@dataclass(frozen=True)
class Steps:
    """Steps of one log: its rule and its first time, from which steps are counted.

    `first` is in micros: the first step's number, the first day's midnight on the wall, or that
    midnight as an instant, for steps shorter than a day.
    """

    rule: StepRule
    first: int = 0
    zone_offsets: ZoneOffsets | None = None

    @classmethod
    def spanning(cls, rule: StepRule, first: int, last: int, aware: bool) -> Steps:
        """Return the steps of a log whose times range from `first` to `last`.

        `aware` tells that these are instants, as opposed to what a clock on the wall shows.
        """
        if rule.is_number:
            return cls(rule, first // rule.length * rule.length)
        offsets = None if rule.zone is None or not aware else ZoneOffsets(rule.zone, first, last)
        steps = cls(rule, 0, offsets)
        midnight = int(steps._on_the_wall(np.array([first]))[0]) // DAY * DAY
        if rule.days:
            days = midnight // DAY
            monday = days - (days + 3) % 7  # 1970 began on a Thursday
            return replace(steps, first=DAY * (monday if rule.is_weeks else days))
        if offsets is not None:
            midnight = int(offsets.instants(np.array([midnight]))[0][0])
        return replace(steps, first=midnight)

    def _on_the_wall(self, times: IntArray) -> IntArray:
        return times if self.zone_offsets is None else self.zone_offsets.local(times)

    def of(self, times: IntArray) -> IntArray:
        """Return the step of each time, from 0 (from some step of the first day, for hours)."""
        if self.rule.days:
            steps: IntArray = (self._on_the_wall(times) - self.first) // (DAY * self.rule.days)
            return steps
        return np.asarray((times - self.first) // self.rule.length)

    def starts(self, steps: IntArray) -> IntArray:
        """When steps begin, as clocks on the wall show it (or as numbers), in micros."""
        steps = np.asarray(steps, dtype=np.int64)
        if self.rule.days:
            return np.asarray(self.first + steps * (DAY * self.rule.days))
        begun = self.first + steps * self.rule.length
        return begun if self.rule.is_number else self._on_the_wall(begun)

    def label(self, step: int) -> str:
        """Return how a person calls a step: a number, a date, or a date and time."""
        start = int(self.starts(np.array([step]))[0])
        if self.rule.is_number:
            return f"{start / MICROS:.6f}".rstrip("0").rstrip(".")
        moment = EPOCH + timedelta(microseconds=start)
        return f"{moment:%Y-%m-%d}" if self.rule.days else f"{moment:%Y-%m-%d %H:%M:%S}"

    def weekdays(self, steps: IntArray) -> IntArray | None:
        """Day of the week of steps, 0 for Monday, where steps are days or shorter."""
        if self.rule.is_number or self.rule.days > 1 or self.rule.length > DAY:
            return None
        return np.asarray((self.starts(steps) // DAY + 3) % 7)

    def hours(self, steps: IntArray) -> IntArray | None:
        """Hour of the day at which steps begin, where they are half a day or shorter."""
        if self.rule.is_number or self.rule.days or self.rule.length > DAY // 2:
            return None
        return np.asarray(self.starts(steps) % DAY // (DAY // 24))
