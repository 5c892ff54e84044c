"""Rows of delimited text, and the lines they are on.

pyarrow reads text whose quotes are where they belong, but tells no lines. `end_of_rows` says how
far that is the case, and `row_lines` on which lines the rows begin. All other text is read here,
field by field, so that each row has its fields, its line, and what is wrong with it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "FAULTS",
    "PADDING",
    "UTF8_MARK",
    "ReadRows",
    "end_of_rows",
    "read_rows",
    "row_lines",
]

IntArray = NDArray[np.int64]
Lines = NDArray[np.uint32]

WRONG_WIDTH, STRAY_QUOTE, UNCLOSED_QUOTE = 1, 2, 3  # faults of a row; the largest is told
FAULTS = {
    WRONG_WIDTH: "has another number of fields than the header",
    STRAY_QUOTE: "has a quote inside a field; quote the whole field and double the quote",
    UNCLOSED_QUOTE: "has a quote that is never closed",
}

UTF8_MARK = b"\xef\xbb\xbf"
PADDING = b" \t"  # around a field
NEWLINE, RETURN, QUOTE = b'\n\r"'
LINE_END = re.compile(rb"\r\n?|\n")
# a quoted field: what is within, the end, and what is behind it; or any other
FIELD = rb'[%(padding)s]*+(?:"((?:[^"]++|"")*+)("?)([^%(mark)s\r\n]*)|([^%(mark)s\r\n]*))'


def end_of_rows(text: bytes, delimiter: bytes, final: bool) -> int | None:
    """Return where the last whole row ends of a text that begins with one.

    If the text is the last, its end is the last row's, too. None is the answer where quotes are
    misplaced. They belong at either end of a field or, doubled, within quotes. Then every second
    one ends a quoted stretch, and a line ends a row where an even number of them came before. None
    is also the answer to padding within quotes, which pyarrow would not tell from padding around a
    field; to lines that end as on an old Mac; and to a mark that pyarrow leaves out.
    """
    if b'"' in text:
        row_ends = _row_ends(np.frombuffer(text, dtype=np.uint8))
        end = int(row_ends[-1]) + 1 if len(row_ends) else 0
    else:
        end = text.rfind(b"\n") + 1
    end = len(text) if final else end
    if not end or not _quotes_in_place(text[:end], delimiter) or text.startswith(UTF8_MARK):
        return None
    if b"\r" in text and text.count(b"\r", 0, end) != text.count(b"\r\n", 0, end):
        return None
    return end


def row_lines(text: bytes) -> Lines:
    """Return the lines [R], from 0, on which the rows of a text begin; its quotes are in place."""
    raw = np.frombuffer(text, dtype=np.uint8)
    begins = np.concatenate([[0], _row_ends(raw) + 1])
    begins = begins[begins < len(raw)]
    following = np.minimum(begins + 1, len(raw) - 1)
    empty = (raw[begins] == NEWLINE) | ((raw[begins] == RETURN) & (raw[following] == NEWLINE))
    lines: IntArray = np.searchsorted(np.flatnonzero(raw == NEWLINE), begins[~empty])
    return lines.astype(np.uint32)


def _row_ends(raw: NDArray[np.uint8]) -> IntArray:
    """Return the ends of lines that are not within quotes."""
    breaks, quotes = np.flatnonzero(raw == NEWLINE), np.flatnonzero(raw == QUOTE)
    return breaks[np.searchsorted(quotes, breaks) % 2 == 0] if len(quotes) else breaks


def _quotes_in_place(text: bytes, delimiter: bytes) -> bool:
    if b'"' not in text:
        return True
    around = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
    quotes = np.flatnonzero(around == QUOTE)
    if len(quotes) % 2:
        return False
    opening, closing = quotes[::2], quotes[1::2]
    return bool(
        np.isin(around[opening - 1], [*delimiter, NEWLINE, QUOTE]).all()
        and np.isin(around[closing + 1], [*delimiter, NEWLINE, RETURN, QUOTE]).all()
        and not np.isin(around[opening + 1], [*PADDING]).any()
        and not np.isin(around[closing - 1], [*PADDING]).any()
    )


class ReadRows(NamedTuple):
    """Rows as they were read field by field."""

    fields: list[list[bytes]]
    lines: list[int]  # from 0
    faults: list[int]  # 0 where there is none
    end: int  # where reading stopped, in the text
    num_lines: int  # until there


def read_rows(text: bytes, delimiter: bytes, width: int, final: bool) -> ReadRows:
    """Read the rows of any text; unless it is the last, a row that does not end in it is left."""
    padding = PADDING.replace(delimiter, b"")
    pattern = re.compile(FIELD % {b"padding": padding, b"mark": delimiter})
    fields: list[list[bytes]] = []
    lines, faults = [], []
    at = line = 0
    while at < len(text):
        found = LINE_END.search(text, at)
        end = found.start() if found else len(text)
        if end == at and found is not None:  # an empty line
            if not final and found[0] == b"\r" and found.end() == len(text):
                break  # the \n may follow
            at, line = found.end(), line + 1
            continue
        fault, num_breaks = 0, 0
        if text.find(b'"', at, end) < 0:
            own = [field.strip(padding) for field in text[at:end].split(delimiter)]
        else:
            own, fault, end = _quoted_row(text, at, delimiter, pattern, padding)
            num_breaks = text.count(b"\n", at, end)
            found = LINE_END.match(text, end)
        if not final and (found is None or (found[0] == b"\r" and found.end() == len(text))):
            break
        if len(own) != width:
            fault = max(fault, WRONG_WIDTH)
        fields.append(own)
        lines.append(line)
        faults.append(fault)
        at = len(text) if found is None else found.end()
        line += num_breaks + (found is not None)
    return ReadRows(fields, lines, faults, at, line)


def _quoted_row(
    text: bytes, at: int, delimiter: bytes, pattern: re.Pattern[bytes], padding: bytes
) -> tuple[list[bytes], int, int]:
    """Return the fields of a row with quotes, its fault, and where it ends."""
    fields: list[bytes] = []
    fault = 0
    while True:
        found = pattern.match(text, at)
        assert found is not None  # it matches nothing at all, too
        within, closed, behind, plain = found.groups()
        if within is None:
            fields.append(plain.rstrip(padding))
            wrong = STRAY_QUOTE if b'"' in plain else 0
        else:
            fields.append(within.replace(b'""', b'"'))
            wrong = STRAY_QUOTE if behind.strip(padding) else 0
            wrong = wrong if closed else UNCLOSED_QUOTE
        fault, at = max(fault, wrong), found.end()
        if text[at : at + 1] != delimiter:
            return fields, fault, at
        at += 1
