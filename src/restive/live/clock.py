"""Clocks: which step of the chains it is.

A tick is a step, from 0. It passes with each decision ("calls"), by the clock on the wall, or when
the caller says so ("given").
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from restive.arguments import shown
from restive.errors import ProblemError
from restive.logs.time_steps import checked_zone

__all__ = ["Clock", "utc_time"]

PERIOD = re.compile(r"P(?:(\d+)([DW])|T(\d+)([HMS]))")
SECONDS = {"H": 3600, "M": 60, "S": 1}
DAYS = {"D": 1, "W": 7}
NAMED = {"hourly": "PT1H", "daily": "P1D", "weekly": "P7D"}
MOST_DAYS = 366 * 100
SHORTEST_DATE = 8  # digits: 20261207; fewer are a tick's number


def utc_time(at: int) -> datetime:
    """Return microseconds since 1970 as a time."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)


@dataclass(frozen=True)
class Clock:
    """When a tick begins and ends; made by `calls`, `wall` or `given`."""

    kind: str
    start: str | None = None  # of tick 0: a date, or a date and time, in the zone
    period: str | None = None  # as ISO 8601 writes it
    zone: str = "UTC"

    @classmethod
    def calls(cls) -> Clock:
        """A tick is a decision: it ends once all its pulls have a result."""
        return cls("calls")

    @classmethod
    def wall(cls, start: str, period: str, zone: str = "UTC") -> Clock:
        """A tick is a stretch of time, whether anybody calls or not.

        Parameters
        ----------
        start
            When tick 0 begins, as "2026-11-16" or "2026-11-16T06:00".
        period
            Its length: "P7D" (days), "P1W", "PT6H", "PT15M", "PT30S"; or weekly, daily, hourly.
            Days and weeks follow the zone's calendar, so a day of 23 hours is one.
        zone
            Whose clocks count.
        """
        if isinstance(period, str):
            period = NAMED.get(period, period)
        clock = cls("wall", start, period, zone)
        clock.tick_at(0)  # which checks all of it
        return clock

    @classmethod
    def given(cls, start: str | None = None, period: str | None = None, zone: str = "UTC") -> Clock:
        """A tick is what the caller says; with start and period, it may say a date."""
        if (start is None) != (period is None):
            raise ProblemError("a clock needs both start and period, or none of them")
        if start is None or period is None:
            return cls("given")
        return cls("given", start, cls.wall(start, period, zone).period, zone)

    @classmethod
    def from_data(cls, data: Any) -> Clock:
        """Return the clock that a table of settings describes."""
        if not isinstance(data, dict) or not set(data) <= {"kind", "start", "period", "zone"}:
            raise ProblemError(f"clock: expected kind, start, period and zone, got {shown(data)}")
        kind, start, period = data.get("kind"), data.get("start"), data.get("period")
        zone = data.get("zone") or "UTC"
        if kind == "calls":
            return cls.calls()
        if kind == "given":
            return cls.given(_text(start), period, zone)
        if kind == "wall":
            if start is None or period is None:
                raise ProblemError("clock: a wall clock needs start and period")
            return cls.wall(str(_text(start)), period, zone)
        raise ProblemError(f"clock: kind must be calls, wall or given, got {shown(kind)}")

    def to_data(self) -> dict[str, Any]:
        """Return the table that `from_data` reads."""
        return {key: value for key, value in asdict(self).items() if value is not None}

    @property
    def has_dates(self) -> bool:
        """Whether ticks have dates."""
        return self.start is not None

    @cached_property
    def _zone(self) -> ZoneInfo:
        return checked_zone(self.zone)

    @cached_property
    def _first(self) -> datetime:
        """When tick 0 begins, on the wall."""
        assert self.start is not None
        return _wall_time(self.start, "start")

    @cached_property
    def _length(self) -> tuple[int, timedelta]:
        """Days of a tick, or 0 and its length."""
        found = PERIOD.fullmatch(self.period) if isinstance(self.period, str) else None
        number = int(next(filter(None, (found[1], found[3])), 0)) if found else 0
        if not found or number == 0 or number > 10**9:
            raise ProblemError(
                f"period must be a length of time such as P1D, P7D, PT6H, PT15M or PT30S, got "
                f"{shown(self.period)}"
            )
        if found[1]:
            days = number * DAYS[found[2]]
            if days > MOST_DAYS:
                raise ProblemError(f"period: {self.period} is more than 100 years")
            return days, timedelta()
        return 0, timedelta(seconds=number * SECONDS[found[4]])

    def tick_at(self, at: int) -> int:
        """Return the tick at a time, in microseconds since 1970; negative before the first."""
        days, length = self._length
        now = utc_time(at)
        here = now.astimezone(self._zone)
        if days:
            tick = (here.replace(tzinfo=None) - self._first) // timedelta(days=days)
            # where the clock on the wall is set back, a tick that has begun does not begin again;
            # where it is set forward, one may begin at a time that it never shows
            return max(t for t in (tick - 1, tick, tick + 1) if self._has_begun(t, now))
        return (here - self._first.replace(tzinfo=self._zone).astimezone(UTC)) // length

    def tick_of(self, date: str, *, before: bool = False) -> int:
        """Return the tick of a date, or of a date and time, as "2026-11-16".

        Dates before tick 0 have negative ticks, where `before` allows that.
        """
        if not self.has_dates:
            raise ProblemError("this file's clock has no dates: say the number instead")
        there = _wall_time(date, "date").replace(tzinfo=self._zone)
        tick = self.tick_at(round(there.timestamp() * 1e6))
        if tick < 0 and not before:
            raise ProblemError(f"date {shown(date)} is before the start, {self.start}")
        return tick

    def tick_named(self, name: int | str) -> int:
        """Return the tick that a person names by its number or its date, as text too."""
        if isinstance(name, str):
            number = name.isdecimal() and len(name) < SHORTEST_DATE
            return int(name) if number else self.tick_of(name)
        return name

    def begins(self, tick: int) -> datetime | None:
        """When a tick begins; None where ticks have no dates."""
        if not self.has_dates:
            return None
        days, length = self._length
        try:
            if days:
                return (self._first + timedelta(days=days * tick)).replace(tzinfo=self._zone)
            first = self._first.replace(tzinfo=self._zone).astimezone(UTC)
            return (first + tick * length).astimezone(self._zone)
        except OverflowError:
            raise ProblemError(f"tick {tick} would begin after the year 9999") from None

    def _has_begun(self, tick: int, now: datetime) -> bool:
        begins = self.begins(tick)
        return begins is not None and begins.astimezone(UTC) <= now

    @cached_property
    def whole_days(self) -> bool:
        """Whether ticks begin with days, so that dates alone name them."""
        begins = self.begins(0)
        return begins is not None and bool(self._length[0]) and begins.time() == time()

    def label(self, tick: int) -> str:
        """Return the date of a tick for a person, "" where ticks have none."""
        begins = self.begins(tick)
        if begins is None:
            return ""
        here = begins.replace(tzinfo=None)  # by isoformat, which writes the zeros of early years
        return str(here.date()) if self.whole_days else here.isoformat(timespec="seconds")

    def option(self, tick: int) -> str:
        """Return how a tick is said to a command: by its date where it has one."""
        label = self.label(tick)
        return f"--date {label}" if label else f"--tick {tick}"

    def name(self, tick: int) -> str:
        """Return what a person calls a tick: its number, with its date where it has one."""
        label = self.label(tick)
        return f"tick {tick} ({label})" if label else f"tick {tick}"


def _text(value: Any) -> str | None:
    return value.isoformat() if isinstance(value, date | datetime) else value


def _wall_time(text: Any, what: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{what} must be year-month-day, such as 2026-11-16, got {shown(text)}"
        ) from None
    if found.tzinfo is not None:
        raise ProblemError(f"{what}: leave out the offset in {shown(text)} and give the zone")
    return found
