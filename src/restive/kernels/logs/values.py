"""Numbers and times in delimited text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, kernel, place

__all__ = ["AWARE", "LOCAL", "NUMBER", "UNREADABLE", "read_numbers", "read_times"]

Bytes = NDArray[np.uint8]
Kinds = NDArray[np.int8]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

UNREADABLE, NUMBER, LOCAL, AWARE = 0, 1, 2, 3  # what a time is: a date and time without, with zone

SPACE, PLUS, MINUS, POINT, ZERO, COLON = 32, 43, 45, 46, 48, 58
MICROS = 1_000_000
MOST_WHOLE = 1 << 41  # of a time: then differences in millionths fit 64 bits
MOST_WHOLE_DIGITS = 13
MOST_EXACT = 1 << 53
DAY_SECONDS = 86_400
ONE = place(1)


@inlined
def _digits(text: Bytes, at: int, count: int) -> int:
    """Return the number that `count` digits make, or -1."""
    number = 0
    for i in range(place(at), place(at + count)):
        digit = int(text[i]) - ZERO
        if digit < 0 or digit > 9:
            return -1
        number = 10 * number + digit
    return number


@kernel
def read_numbers(text: Bytes, starts: IntArray, ends: IntArray, values: FloatArray) -> None:
    """Read plain decimal numbers [R]; nan for what is none (or is written with an exponent)."""
    for row in range(len(values)):
        values[row] = np.nan
        at, end = starts[row], ends[row]
        if at >= end:
            continue
        negative = text[at] == MINUS
        if negative or text[at] == PLUS:
            at += 1
        mantissa, decimals, digits, pointed = 0, 0, 0, False
        while at < end:
            digit = int(text[at]) - ZERO
            if text[at] == POINT and not pointed:
                pointed = True
            elif 0 <= digit <= 9 and mantissa < MOST_EXACT // 10 and decimals < 22:
                mantissa = 10 * mantissa + digit
                digits += 1
                decimals += pointed
            else:
                break
            at += 1
        if at == end and digits:  # both exact, so the quotient is the nearest float
            value = mantissa / 10.0**decimals
            values[row] = -value if negative else value


@kernel
def read_times(
    text: Bytes, starts: IntArray, ends: IntArray, times: IntArray, kinds: Kinds
) -> tuple[int, bool, bool]:
    """Read times [R]: numbers in millionths, or dates and times in microseconds since 1970.

    A time with an offset is an instant; one without is what a clock on the wall shows.

    Returns
    -------
    What all times are (UNREADABLE if they differ), whether all are whole seconds or numbers, and
    whether they ascend.
    """
    alike = whole = ascending = True
    for row in range(len(times)):
        before = max(row - 1, 0)
        if row and _same_text(text, starts[row], ends[row], starts[before], ends[before]):
            times[row], kinds[row] = times[before], kinds[before]
            continue
        time, kind = _read_time(text, starts[row], ends[row])
        times[row], kinds[row] = time, kind
        alike &= kind == kinds[0]
        whole &= time % MICROS == 0
        ascending &= time >= times[before]
    common = int(kinds[0]) if alike and len(times) else UNREADABLE
    return common, whole, ascending


@inlined
def _same_text(text: Bytes, start: int, end: int, other: int, other_end: int) -> bool:
    """Whether two fields hold the same, as times of neighbours often do."""
    if end - start != other_end - other:
        return False
    at, last, there = place(start), place(end), place(other)
    while at < last and text[at] == text[there]:
        at += ONE
        there += ONE
    return bool(at == last)


@inlined
def _read_time(text: Bytes, at: int, end: int) -> tuple[int, int]:
    if end - at >= 10 and text[at + 4] == MINUS and text[at + 7] == MINUS:
        return _read_date(text, at, end)
    negative = end > at and text[at] == MINUS
    if negative:
        at += 1
    whole, begin = 0, at
    while at < end and ZERO <= text[at] < ZERO + 10 and at - begin < MOST_WHOLE_DIGITS:
        whole = 10 * whole + int(text[at]) - ZERO
        at += 1
    if at == begin or whole >= MOST_WHOLE:
        return 0, UNREADABLE
    value, at = _fraction(text, at, end)
    value += whole * MICROS
    if at < end:
        return 0, UNREADABLE
    return (-value if negative else value), NUMBER


@inlined
def _fraction(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read .digits if there: millionths (further digits are dropped), and where they end."""
    value, unit = 0, MICROS
    if at < end and text[at] == POINT:
        at += 1
        while at < end and ZERO <= text[at] < ZERO + 10:
            unit //= 10
            value += (int(text[at]) - ZERO) * unit
            at += 1
    return value, at


@inlined
def _read_date(text: Bytes, at: int, end: int) -> tuple[int, int]:
    """Read 2026-03-29, also followed by [T or space] 02:30[:15[.25]] and Z or an offset."""
    year, month = _digits(text, at, 4), _digits(text, at + 5, 2)
    day = _digits(text, at + 8, 2)
    if year < 1 or month < 1 or month > 12 or day < 1 or day > _month_days(year, month):
        return 0, UNREADABLE
    micros = _days_since_1970(year, month, day) * DAY_SECONDS * MICROS
    at += 10
    if at == end:
        return micros, LOCAL
    if end - at < 6 or text[at] not in (SPACE, 84, 116) or text[at + 3] != COLON:
        return 0, UNREADABLE
    hour, minute, second, fraction = _digits(text, at + 1, 2), _digits(text, at + 4, 2), 0, 0
    at += 6
    if end - at >= 3 and text[at] == COLON:
        second = _digits(text, at + 1, 2)
        fraction, at = _fraction(text, at + 3, end)
    if not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= second < 60):
        return 0, UNREADABLE
    micros += (hour * 3600 + minute * 60 + second) * MICROS + fraction
    if at == end:
        return micros, LOCAL
    if end - at == 1 and text[at] in (90, 122):  # Z
        return micros, AWARE
    sign = 1 if text[at] == PLUS else -1
    if text[at] not in (PLUS, MINUS) or end - at not in (3, 5, 6):
        return 0, UNREADABLE
    hours, minutes = _digits(text, at + 1, 2), 0
    if end - at > 3:
        minutes = _digits(text, end - 2, 2)
    if not (0 <= hours < 24 and 0 <= minutes < 60) or (end - at == 6 and text[at + 3] != COLON):
        return 0, UNREADABLE
    return micros - sign * (hours * 3600 + minutes * 60) * MICROS, AWARE


@inlined
def _month_days(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31


@inlined
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01 in the Gregorian calendar, with years that begin in March."""
    shifted = year - (month <= 2)
    month_from_march = (month + 9) % 12
    year_day = (153 * month_from_march + 2) // 5 + day - 1
    era, year_of_era = shifted // 400, shifted % 400
    return (
        era * 146_097 + year_of_era * 365 + year_of_era // 4 - year_of_era // 100
        + year_day - 719_468
    )  # fmt: skip
