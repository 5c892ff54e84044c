"""What the fields of a column of times mean: all numbers, or all dates, or dates with an offset."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.logs.reading.columns import Mistakes, all_match, is_empty
from restive.logs.reading.file import Column
from restive.logs.time_steps import EPOCH, MICROS, StepRule, ZoneOffsets

__all__ = ["Times", "read_times", "time_of"]

IntArray = NDArray[np.int64]

UNREADABLE, NUMBER, LOCAL, AWARE = 0, 1, 2, 3  # what a time is: a date and time without, with zone
TIME_KINDS = {NUMBER: "a number", LOCAL: "a date", AWARE: "a date with an offset"}
MOST_WHOLE = 1 << 41  # of a time: then differences in millionths fit 64 bits
NUMBER_TEXT = re.compile(r"(-?)([0-9]{1,13})(?:\.([0-9]*))?")
DATE_TEXT = re.compile(
    r"(\d{4}-\d\d-\d\d)(?:[Tt ]((?:[01]\d|2[0-3]):[0-5]\d)(?:(:[0-5]\d)(?:\.(\d*))?)?"
    r"([Zz]|([+-])([01]\d|2[0-3])(?::?([0-5]\d))?)?)?",
    re.ASCII,
)

# What pyarrow reads as we do, many at once.
CLOCK = r"^[12]\d{3}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
PLAIN_TIMES = {
    r"^-?[0-9]{1,12}$": NUMBER,
    r"^[12]\d{3}-\d\d-\d\d$": LOCAL,
    CLOCK + "$": LOCAL,
    CLOCK + r"(Z|[+-][01]\d(:?[0-5]\d)?)$": AWARE,
}


class Times(NamedTuple):
    """When rows are from."""

    micros: IntArray  # [R]
    are_instants: bool  # as opposed to what a clock on the wall shows
    notes: list[str]


def read_times(
    column: Column, name: str, rule: StepRule | None, zone: str | None, mistakes: Mistakes
) -> Times:
    """Read a column of times.

    Parameters
    ----------
    column, name
        The column and its name.
    rule
        How long a step is; None if nothing was said.
    zone
        Whose clocks count.
    mistakes
        Where rows without such a time are marked.
    """
    micros, kinds = column.read(_times)
    readable = kinds[mistakes.good & (kinds != UNREADABLE)]
    kind = int(readable[0]) if len(readable) else UNREADABLE  # the first good row decides
    if kind != UNREADABLE:
        _require_step(kind, name, rule, zone)
    if (kinds == UNREADABLE).any():
        mistakes.mark(is_empty(column), "time is empty")
        mistakes.mark_field(
            kinds == UNREADABLE,
            "time is {}, expected a whole number (up to 2e12), 2026-03-29 or 2026-03-29 14:30:00 "
            "(also with an offset, +02:00)",
            column,
        )
    if kind != UNREADABLE:
        reason = f"time is {{}}, expected {TIME_KINDS[kind]} as in the rows before"
        mistakes.mark_field(kinds != kind, reason, column)
    if kind == NUMBER and rule is None:
        reason = "time is {}, expected a whole number (or say how long a step is: step = 0.5)"
        mistakes.mark_field(micros % MICROS != 0, reason, column)
    notes = []
    # for steps within a day, clocks on the wall must be understood as instants
    converts = bool(kind == LOCAL and zone and rule and rule.length)
    if converts and zone is not None and mistakes.good.any():
        own = micros[mistakes.good]
        micros, missing, twice = ZoneOffsets(zone, int(own.min()), int(own.max())).instants(micros)
        reason = f"time {{}} does not exist in {zone}: clocks were set forward"
        mistakes.mark_field(missing, reason, column)
        if num_twice := int((twice & mistakes.good).sum()):
            notes = [
                f"{num_twice:,} times occur twice in {zone}, when clocks are set back; the first "
                "is taken"
            ]
    own = micros[mistakes.good]
    if (own[1:] < own[:-1]).any():
        notes = ["rows are not in order of time; they were sorted", *notes]
    return Times(micros, kind == AWARE or converts, notes)


def _require_step(kind: int, name: str, rule: StepRule | None, zone: str | None) -> None:
    """Now that it is known what times are: is the step known, and does it fit?"""
    if kind == NUMBER:
        if zone is not None:
            raise ProblemError(f"column {name!r} holds numbers; zone is for dates")
        if rule is not None and not rule.is_number:
            raise ProblemError(
                f"column {name!r} holds numbers, so step is a number too, got {rule.text!r}"
            )
        return
    if rule is None or rule.is_number:
        told = "" if rule is None else f", got {rule.text!r}"
        raise ProblemError(
            f"column {name!r} holds dates; say how long a step is, as step = '1d' or '1h'" + told
        )
    if kind == AWARE and rule.days and zone is None:
        raise ProblemError(
            f"column {name!r} holds times with an offset; say whose days count, as zone = 'UTC' or "
            "'Europe/Berlin'"
        )


def _times(texts: Any) -> tuple[IntArray, NDArray[np.int8]]:
    """Return times [n], and what they are [n], of an array of bytes."""
    import pyarrow

    types = {LOCAL: pyarrow.timestamp("us"), AWARE: pyarrow.timestamp("us", "UTC")}
    for pattern, kind in PLAIN_TIMES.items():
        if all_match(texts, pattern):
            try:
                found = texts.cast("string").cast(types.get(kind, "int64")).cast("int64")
            except pyarrow.ArrowInvalid:  # there is no such day, or hour
                break
            micros = found.to_numpy() * (MICROS if kind == NUMBER else 1)
            return micros, np.full(len(micros), kind, dtype=np.int8)
    times = [time_of(text.decode("utf-8", errors="replace")) for text in texts.to_pylist()]
    kinds = np.array([kind for _, kind in times], dtype=np.int8)
    return np.array([time for time, _ in times], dtype=np.int64), kinds


def time_of(text: str) -> tuple[int, int]:
    """Return a time in micros, and what it is.

    It is a number, or the time since 1970: of an instant, where an offset is given, else of what a
    clock on the wall shows.
    """
    if found := NUMBER_TEXT.fullmatch(text):
        sign, whole, decimals = found.groups()
        if int(whole) >= MOST_WHOLE:
            return 0, UNREADABLE
        size = int(whole) * MICROS + _millionths(decimals)
        return (-size if sign else size), NUMBER
    found = DATE_TEXT.fullmatch(text)
    if found is None:
        return 0, UNREADABLE
    day, minute, second, decimals, zone, sign, hours, minutes = found.groups()
    try:
        moment = datetime.fromisoformat(f"{day} {minute or '00:00'}{second or ''}")
    except ValueError:  # there is no such day
        return 0, UNREADABLE
    micros = (moment - EPOCH) // timedelta(microseconds=1) + _millionths(decimals)
    if zone is None:
        return micros, LOCAL
    offset = (3600 * int(hours or 0) + 60 * int(minutes or 0)) * MICROS
    return micros + (offset if sign == "-" else -offset), AWARE


def _millionths(decimals: str | None) -> int:
    """Return what the digits behind a point say; those beyond the sixth are dropped."""
    return int((decimals or "")[:6].ljust(6, "0"))
