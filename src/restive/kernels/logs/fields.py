"""Delimited text: where the fields of its rows are.

A chunk of a file is bytes [B]. `find_fields` says where the wanted fields of its rows are; the
kernels of `log_words` and `log_values` read them column by column. What they cannot read they mark,
and Python says why.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, kernel, part, place

__all__ = ["STRAY_QUOTE", "UNCLOSED_QUOTE", "WRONG_WIDTH", "find_fields"]

Bytes = NDArray[np.uint8]
Flags = NDArray[np.bool_]
IntArray = NDArray[np.int64]

WRONG_WIDTH, STRAY_QUOTE, UNCLOSED_QUOTE = 1, 2, 4  # faults of a row, added up

TAB, NEWLINE, RETURN, SPACE, QUOTE = 9, 10, 13, 32, 34
ONE = place(1)


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
