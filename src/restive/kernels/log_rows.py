"""Reading delimited text: where fields are, and words, numbers and times in them.

A chunk of a file is bytes [B]. `find_fields` tells where the wanted fields of its rows are; the
others read these fields column by column. What they cannot read they mark, and Python says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, kernel, part, place

__all__ = [
    "AWARE",
    "EMPTY",
    "LOCAL",
    "NEW",
    "NUMBER",
    "STRAY_QUOTE",
    "UNCLOSED_QUOTE",
    "UNREADABLE",
    "WRONG_WIDTH",
    "add_words",
    "find_fields",
    "find_words",
    "read_numbers",
    "read_times",
    "rehash_words",
]

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
Kinds = NDArray[np.int8]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

WRONG_WIDTH, STRAY_QUOTE, UNCLOSED_QUOTE = 1, 2, 4  # faults of a row, added up
UNREADABLE, NUMBER, LOCAL, AWARE = 0, 1, 2, 3  # what a time is: a date and time without, with zone
EMPTY, NEW = -1, -2  # instead of a word's number

TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
PLUS, MINUS, POINT, ZERO, COLON = 43, 45, 46, 48, 58
MICROS = 1_000_000
MOST_WHOLE = (
    1 << 41
)  # of a time: two of them, and a step, are less than 64 bits of millionths apart
MOST_WHOLE_DIGITS = 13
MOST_EXACT = 1 << 53
ONE = place(1)
DAY_SECONDS = 86_400


@kernel
def find_fields(
    text: Bytes, final: bool, delimiter: int, slot_of: IntArray, starts: IntArray, ends: IntArray,
    lines: IntArray, faults: IntArray,
) -> tuple[int, int, int]:  # fmt: skip
    """Find the wanted fields of all rows.

    Parameters
    ----------
    text, final
        Bytes [B], and whether they are the last: otherwise a row that does not end in them is left
        for later.
    delimiter
        The byte between fields.
    slot_of
        By column [W]: at which place the field is kept, or -1.
    starts, ends
        Where fields begin and end [C, R], without spaces around them and quotes; with room for as
        many rows as there are line ends, and one more. A missing field is empty.
    lines, faults
        Line of each row [R], counted from 0, and what is wrong with it.

    Returns
    -------
    Number of rows, where reading stopped, and the line there.
    """
    at, end, row, line = place(0), place(len(text)), place(0), 0
    num_columns = place(len(slot_of))
    inner = np.ones(256, dtype=np.bool_)  # bytes within a field
    for mark in (delimiter, NEWLINE, RETURN, QUOTE):
        inner[mark] = False
    padding = np.zeros(256, dtype=np.bool_)  # bytes around a field
    for mark in (SPACE, TAB):
        padding[mark] = mark != delimiter
    while at < end:
        first, first_line = at, line
        if text[at] == NEWLINE or text[at] == RETURN:  # an empty line
            if not final and text[at] == RETURN and at + ONE == end:
                break  # the \n may follow
            at = _after_line_end(text, at)
            line += 1
            continue
        column, fault, whole = place(0), 0, final
        while True:
            start = at
            while at < end and inner[text[at]]:
                at += ONE
            stop = at
            if (at < end and text[at] == QUOTE) or (
                stop > start and (padding[text[start]] or padding[text[stop - ONE]])
            ):
                start, stop, at, breaks, wrong = _odd_field(text, start, inner, padding)
                line += breaks
                fault |= wrong
            if column < num_columns and slot_of[column] >= 0:
                starts[place(slot_of[column]), row] = start
                ends[place(slot_of[column]), row] = stop
            column += ONE
            if at >= end:
                break
            if text[at] != delimiter:
                whole = bool(final or text[at] == NEWLINE or at + ONE < end)  # else a \n may follow
                at = _after_line_end(text, at)
                line += 1
                break
            at += ONE
        if not whole:
            at, line = first, first_line
            break
        if column != num_columns:
            fault |= WRONG_WIDTH
            for missing in range(column, num_columns):
                if slot_of[missing] >= 0:
                    starts[slot_of[missing], row] = ends[slot_of[missing], row] = 0
        lines[row], faults[row] = first_line, fault
        row += ONE
    return int(np.int64(row)), int(np.int64(at)), line


@inlined
def _after_line_end(text: Bytes, at: np.uint64) -> np.uint64:
    """Return where the next line begins, from where this one ends: one byte, or two."""
    following = at + ONE
    if text[at] == RETURN and following < place(len(text)) and text[following] == NEWLINE:
        following += ONE
    return following


@part
def _odd_field(
    text: Bytes, at: np.uint64, inner: Flags, padding: Flags
) -> tuple[np.uint64, np.uint64, np.uint64, int, int]:
    """Read a field with a quote, or with spaces around it.

    Returns where it begins and ends, where reading stopped, line ends within it, and faults.
    """
    end, breaks, fault = place(len(text)), 0, 0
    while at < end and padding[text[at]]:
        at += ONE
    start = at
    if at == end or text[at] != QUOTE:
        while at < end and (inner[text[at]] or text[at] == QUOTE):
            if text[at] == QUOTE:
                fault = STRAY_QUOTE
            at += ONE
        stop = at
        while stop > start and padding[text[stop - ONE]]:
            stop -= ONE
        return start, stop, at, breaks, fault
    at += ONE
    start = at
    while at < end:
        if text[at] == QUOTE:
            if at + ONE == end or text[at + ONE] != QUOTE:
                break
            at += ONE
        breaks += text[at] == NEWLINE
        at += ONE
    stop = at
    if at == end:
        fault = UNCLOSED_QUOTE
    else:
        at += ONE
    while at < end and (inner[text[at]] or text[at] == QUOTE):
        if not padding[text[at]]:
            fault |= STRAY_QUOTE
        at += ONE
    return start, stop, at, breaks, fault


@kernel
def find_words(
    text: Bytes, starts: IntArray, ends: IntArray, numbers: IntArray, slots: IntArray, pool: Bytes,
    pool_ends: IntArray, following: IntArray, short: IntArray, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Look words up; a new word is number -2, an empty one -1.

    While this runs, another thread may add words: then their numbers are `count` or more, and they
    are still new here.

    Parameters
    ----------
    text, starts, ends
        The words [R] of a chunk.
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
    How many words are new, and how many empty.
    """
    mask = np.uint64(len(slots) - 1)
    last = num_new = num_empty = 0
    for row in range(len(numbers)):
        start, size = starts[row], ends[row] - starts[row]
        if size <= 0:
            numbers[row] = EMPTY
            num_empty += 1
            continue
        if size == 1 and 0 <= short[text[start]] < count:
            numbers[row] = short[text[start]]
            continue
        known = following[last]
        if known >= count or not _same_word(text, start, size, pool, pool_ends, known):
            slot = _hash(text, start, size) & mask
            known = slots[slot]
            while 0 <= known < count and not _same_word(text, start, size, pool, pool_ends, known):
                slot = (slot + np.uint64(1)) & mask
                known = slots[slot]
            if known < 0 or known >= count:
                numbers[row] = NEW
                num_new += 1
                continue
            following[last] = known
        numbers[row] = known
        last = known
    return num_new, num_empty


@kernel
def add_words(
    text: Bytes, starts: IntArray, ends: IntArray, first: int, numbers: IntArray, slots: IntArray,
    pool: Bytes, pool_ends: IntArray, following: IntArray, short: IntArray, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Number new words (-2), from row `first` on, in the order of their first appearance.

    Arguments as in `find_words`. Returns the row that there was no room for (R if there was), and
    how many words are known now.
    """
    mask = np.uint64(len(slots) - 1)
    for row in range(first, len(numbers)):
        if numbers[row] != NEW:
            continue
        start, size = starts[row], ends[row] - starts[row]
        slot = _hash(text, start, size) & mask
        while slots[slot] >= 0 and not _same_word(text, start, size, pool, pool_ends, slots[slot]):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            begin = pool_ends[count]
            room = begin + size <= len(pool) and 2 * (count + 1) <= len(slots)
            if not room or count + 1 >= len(pool_ends):
                return row, count
            for i in range(size):
                pool[begin + i] = text[start + i]
            pool_ends[count + 1] = begin + size
            slots[slot] = count
            if size == 1:
                short[text[start]] = count
            count += 1
        numbers[row] = slots[slot]
    return len(numbers), count


@inlined
def _same_word(
    text: Bytes, start: int, size: int, pool: Bytes, pool_ends: IntArray, known: int
) -> bool:
    first = place(pool_ends[place(known)])
    here, there = place(start + size), place(pool_ends[place(known + 1)])
    if there - first != place(size):
        return False
    while there > first and pool[there - ONE] == text[here - ONE]:  # names differ at the end
        there -= ONE
        here -= ONE
    return bool(there == first)


@inlined
def _hash(text: Bytes, start: int, size: int) -> np.uint64:
    """FNV-1a, with its high bits mixed into the low ones."""
    code = np.uint64(14695981039346656037)
    for i in range(place(start), place(start + size)):
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
    at, last = place(start), place(end)
    back = place(start - other)
    while at < last and text[at] == text[at - back]:
        at += ONE
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
