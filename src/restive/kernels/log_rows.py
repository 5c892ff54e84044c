"""Reading delimited text: where fields are, and words, numbers and times in them.

A chunk of a file is bytes [B]. `find_fields` tells where the wanted fields of its rows are; the
others read these fields column by column. What they cannot read they mark, and Python says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, kernel, place

__all__ = [
    "AWARE",
    "LOCAL",
    "NUMBER",
    "STRAY_QUOTE",
    "UNCLOSED_QUOTE",
    "UNREADABLE",
    "WRONG_WIDTH",
    "find_fields",
    "intern_words",
    "read_numbers",
    "read_times",
    "rehash_words",
]

Bytes = NDArray[np.uint8]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

WRONG_WIDTH, STRAY_QUOTE, UNCLOSED_QUOTE = 1, 2, 4  # faults of a row, added up
UNREADABLE, NUMBER, LOCAL, AWARE = 0, 1, 2, 3  # what a time is: a date and time without, with zone

TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
PLUS, MINUS, POINT, ZERO, COLON = 43, 45, 46, 48, 58
MICROS = 1_000_000
MOST_WHOLE_DIGITS = 12  # of a time: in millionths it still fits 64 bits
MOST_EXACT = 1 << 53
DAY_SECONDS = 86_400


@kernel
def find_fields(
    text: Bytes, begin: int, final: bool, delimiter: int, slot_of: IntArray,
    starts: IntArray, ends: IntArray, lines: IntArray, faults: IntArray, line: int,
) -> tuple[int, int, int]:  # fmt: skip
    """Find the wanted fields of as many rows as there is room for.

    Parameters
    ----------
    text, begin, final
        Bytes [B], where to begin, and whether they are the last: otherwise a row that does not end
        in them is left for later.
    delimiter
        The byte between fields.
    slot_of
        By column [W]: at which place the field is kept, or -1.
    starts, ends
        Where fields begin and end [C, R], without spaces around them and quotes.
    lines, faults
        Line of each row [R], and what is wrong with it.
    line
        The line at which `begin` is.

    Returns
    -------
    Number of rows, where reading stopped, and the line there.
    """
    num_columns, at, row = len(slot_of), begin, 0
    end = len(text)
    plain = np.ones(256, dtype=np.bool_)  # bytes within a field
    for mark in (delimiter, NEWLINE, RETURN, QUOTE):
        plain[mark] = False
    while row < len(lines) and at < end:
        first, first_line = at, line
        if text[at] in (NEWLINE, RETURN):  # an empty line
            if text[at] == RETURN and at + 1 == end and not final:
                break  # the \n may follow
            line += text[at] == NEWLINE or not (at + 1 < end and text[at + 1] == NEWLINE)
            at += 1
            continue
        column, fault, whole = 0, 0, False
        while True:
            while at < end and text[at] in (SPACE, TAB) and text[at] != delimiter:
                at += 1
            if at < end and text[at] == QUOTE:
                start = at + 1
                at = start
                while at < end:
                    if text[at] == QUOTE:
                        if at + 1 < end and text[at + 1] == QUOTE:
                            at += 1
                        else:
                            break
                    elif text[at] == NEWLINE:
                        line += 1
                    at += 1
                stop = at
                if at < end:
                    at += 1
                elif final:
                    fault |= UNCLOSED_QUOTE
                while at < end and text[at] not in (delimiter, NEWLINE, RETURN):
                    if text[at] not in (SPACE, TAB):
                        fault |= STRAY_QUOTE
                    at += 1
            else:
                start = at
                at = _after_plain(text, at, plain)
                while at < end and (plain[text[at]] or text[at] == QUOTE):  # only past a quote
                    if text[at] == QUOTE:
                        fault |= STRAY_QUOTE
                    at += 1
                stop = at
                while stop > start and text[stop - 1] in (SPACE, TAB):
                    stop -= 1
            if column < num_columns and slot_of[column] >= 0:
                starts[slot_of[column], row] = start
                ends[slot_of[column], row] = stop
            column += 1
            if at >= end:
                whole = final
                break
            at += 1
            if text[at - 1] != delimiter:
                whole = True
                if text[at - 1] == RETURN:
                    if at < end and text[at] == NEWLINE:
                        at += 1
                    elif at >= end and not final:
                        whole = False  # the \n may follow
                line += 1
                break
        if not whole:
            at, line = first, first_line
            break
        if column != num_columns:
            fault |= WRONG_WIDTH
        lines[row], faults[row] = first_line, fault
        row += 1
    return row, at, line


@inlined
def _after_plain(text: Bytes, at: int, plain: NDArray[np.bool_]) -> int:
    """Return the next place that is not plain."""
    spot, end = place(at), place(len(text))
    while spot < end and plain[text[spot]]:
        spot += place(1)
    return int(np.int64(spot))


@kernel
def intern_words(
    text: Bytes, starts: IntArray, ends: IntArray, first: int, numbers: IntArray,
    slots: IntArray, pool: Bytes, pool_ends: IntArray, following: IntArray, short: IntArray,
    count: int,
) -> tuple[int, int]:  # fmt: skip
    """Number words in the order of their first appearance; an empty word is number -1.

    Parameters
    ----------
    text, starts, ends, first
        The words [R] of a chunk, read from row `first` on.
    numbers
        Gets their numbers [R].
    slots
        Hash table: numbers of known words, or -1; its size is a power of two.
    pool, pool_ends
        The known words end to end, and where each ends [room + 1], from 0.
    following
        Which word came last time after each [room]: many logs list all arms again and again in the
        same order, and a good guess saves the search.
    short
        The number of each word of one byte [256], or -1.
    count
        How many are known.

    Returns
    -------
    The row that there was no room for (R if there was), and how many words are known now.
    """
    mask = np.uint64(len(slots) - 1)
    last = 0
    for row in range(first, len(numbers)):
        start, size = starts[row], ends[row] - starts[row]
        if size <= 0:
            numbers[row] = -1
            continue
        if size == 1 and short[text[start]] >= 0:
            numbers[row] = short[text[start]]
            continue
        guess = following[last]
        if guess < count and _same_word(text, start, size, pool, pool_ends, guess):
            numbers[row] = guess
            last = guess
            continue
        slot = _hash(text, start, size) & mask
        while True:
            known = slots[slot]
            if known < 0:
                room = pool_ends[count] + size <= len(pool) and 2 * (count + 1) <= len(slots)
                if not room or count + 1 >= len(pool_ends):
                    return row, count
                begin = pool_ends[count]
                for i in range(size):
                    pool[begin + i] = text[start + i]
                pool_ends[count + 1] = begin + size
                slots[slot] = known = count
                if size == 1:
                    short[text[start]] = known
                count += 1
                break
            if _same_word(text, start, size, pool, pool_ends, known):
                break
            slot = (slot + np.uint64(1)) & mask
        numbers[row] = known
        following[last] = known
        last = known
    return len(numbers), count


@inlined
def _same_word(
    text: Bytes, start: int, size: int, pool: Bytes, pool_ends: IntArray, known: int
) -> bool:
    begin = pool_ends[known]
    if pool_ends[known + 1] - begin != size:
        return False
    at = size - 1  # names that count up differ at the end
    while at >= 0 and pool[begin + at] == text[start + at]:
        at -= 1
    return at < 0


@inlined
def _hash(text: Bytes, start: int, size: int) -> np.uint64:
    """FNV-1a, with its high bits mixed into the low ones."""
    code = np.uint64(14695981039346656037)
    for i in range(start, start + size):
        code = (code ^ np.uint64(text[i])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(29))


@kernel
def rehash_words(pool: Bytes, pool_ends: IntArray, count: int, slots: IntArray) -> None:
    """Enter the known words into a fresh, larger hash table."""
    mask = np.uint64(len(slots) - 1)
    for word in range(count):
        slot = _hash(pool, pool_ends[word], pool_ends[word + 1] - pool_ends[word]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word


@inlined
def _digits(text: Bytes, at: int, count: int) -> int:
    """Return the number that `count` digits make, or -1."""
    number = 0
    for i in range(at, at + count):
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
    text: Bytes, starts: IntArray, ends: IntArray, times: IntArray, kinds: IntArray
) -> None:
    """Read times [R]: numbers in millionths, or dates and times in microseconds since 1970.

    A time with an offset is an instant; one without is what a clock on the wall shows.
    """
    for row in range(len(times)):
        times[row], kinds[row] = _read_time(text, starts[row], ends[row])


@inlined
def _read_time(text: Bytes, at: int, end: int) -> tuple[int, int]:
    if end - at >= 10 and text[at + 4] == MINUS and text[at + 7] == MINUS:
        return _read_date(text, at, end)
    negative = end > at and text[at] == MINUS
    if negative:
        at += 1
    whole, begin = 0, at
    while at < end and ZERO <= text[at] < ZERO + 10 and at - begin <= MOST_WHOLE_DIGITS:
        whole = 10 * whole + int(text[at]) - ZERO
        at += 1
    if at == begin or at - begin > MOST_WHOLE_DIGITS:
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
