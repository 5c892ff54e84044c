"""Sheets: tables in files that a spreadsheet program reads and writes.

CSV in UTF-8, with or without a byte order mark, separated by commas or semicolons, columns in any
order; Parquet too where pyarrow is there.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from typing import Any

from restive.arguments import checked_path, shown, suggestion
from restive.errors import ProblemError
from restive.files import read_regular, replacing, spreadsheet_text, text_of_cell
from restive.live.words import COLUMNS, PLAIN, TAKEN, Words

__all__ = [
    "Sheet",
    "listed",
    "parse_sheet",
    "read_sheet",
    "rejected_text",
    "sheet_text",
    "write_text",
]

# spreadsheets, pictures, PDF, old Office, and text in UTF-16
OTHER_FILES = (b"PK", b"\x89PNG", b"\xff\xd8", b"%PDF", b"\xd0\xcf", b"\xff\xfe", b"\xfe\xff")
LIKE = 0.6  # of headers to a column that is missing: "region" is not "person"
MOST_BYTES = 1 << 28
MOST_COLUMNS = 1000
MOST_NAMED = 20  # bad rows that a message lists
MOST_ALIKE = 3  # of which the same is said, and which are listed one by one
MOST_ROWS = 1 << 20  # as a spreadsheet has


@dataclass(frozen=True)
class Sheet:
    """A sheet as it came: rows by column, each with the line on which it begins."""

    name: str
    headers: tuple[str, ...]  # as the file has them
    columns: tuple[str, ...]  # the same, by restive's names
    lines: tuple[int, ...]
    rows: tuple[dict[str, str], ...]
    digest: str  # of the file's bytes
    words: Words = PLAIN  # in which the file may name its columns

    @property
    def has_results(self) -> bool:
        """Whether a result is told in some row."""
        return any(row.get("outcome") or row.get("state") for row in self.rows)

    def require(self, *columns: str) -> None:
        """Raise unless the columns are there."""
        for column in columns:
            if column not in self.columns:
                wanted = self.words.column(column)
                own = f", your word for {column!r}" if wanted != column else ""
                near = suggestion(wanted, self.headers, LIKE)
                said = f"{own}; its columns are {', '.join(self.headers)}: rename the one that is"
                said = f"; {near} Rename it" if near.startswith("did") else f"{said} meant"
                said = f"{said} to {wanted!r}"
                if {*COLUMNS, *TAKEN}.isdisjoint(self.columns):  # so there may be no header
                    said += f"; the first line must be {','.join(map(self.words.column, columns))}"
                raise ProblemError(f"{self.name}: there is no column {wanted!r}{said}")


def read_sheet(path: str | PathLike[str], words: Words = PLAIN) -> Sheet:
    """Read a CSV or Parquet file, whose columns may have the operators' names."""
    place = checked_path(path, "path")
    try:
        contents = read_regular(place, MOST_BYTES)
    except OSError as error:
        raise ProblemError(f"{place}: cannot be read: {error.strerror or error}") from None
    if len(contents) > MOST_BYTES:
        raise ProblemError(f"{place}: larger than {MOST_BYTES >> 20} MiB; split it")
    if place.suffix.lower() == ".parquet":
        return _parquet_sheet(contents, str(place), words)
    return parse_sheet(contents, str(place), words)


def parse_sheet(contents: bytes, name: str, words: Words = PLAIN) -> Sheet:
    """Read a sheet from the bytes of a CSV file; `name` is for messages."""
    if contents.startswith(OTHER_FILES):
        raise ProblemError(_no_text(contents, name, 0))
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ProblemError(_no_text(contents, name, error.start)) from None
    first = text.partition("\n")[0]
    mark = max(",;\t", key=first.count)  # the first of them where there is none
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    lines: list[int] = []
    rows: list[dict[str, str]] = []
    try:
        headers = tuple(_cell(cell).lower() for cell in next(reader, []))
        columns = _columns(headers, name, words)
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise ProblemError(
                    f"{name}: line {line} has {len(cells)} cells, the header has {len(columns)}"
                )
            if len(rows) == MOST_ROWS:
                raise ProblemError(f"{name}: has more than {MOST_ROWS:,} rows; split it")
            lines.append(line)
            rows.append(dict(zip(columns, (_cell(cell) for cell in cells), strict=True)))
    except csv.Error as error:
        raise ProblemError(f"{name}: line {reader.line_num} cannot be read: {error}") from None
    digest = sha256(contents).hexdigest()
    return Sheet(name, headers, columns, tuple(lines), tuple(rows), digest, words)


def _no_text(contents: bytes, name: str, start: int) -> str:
    """Say what a file is that is not text in UTF-8, and how to save it."""
    how = "in Excel, choose File, Save as, CSV UTF-8"
    if contents.startswith(b"PK"):
        return f"{name}: is a workbook, not a CSV file: {how}"
    if contents.startswith((b"\xff\xfe", b"\xfe\xff")):
        return f"{name}: is text in UTF-16, not in UTF-8: {how}"
    if contents.startswith(OTHER_FILES):
        return f"{name}: is not a CSV file: {how}"
    line = contents[:start].count(b"\n") + 1
    return f"{name}: line {line} is not UTF-8, or this is no CSV file; {how}"


def _columns(headers: Sequence[str], name: str, words: Words) -> tuple[str, ...]:
    """Return restive's names of columns, or raise."""
    if not any(headers):
        raise ProblemError(f"{name}: is empty; expected a header with a column {words.arm!r}")
    if len(headers) > MOST_COLUMNS:
        raise ProblemError(f"{name}: has {len(headers):,} columns, more than {MOST_COLUMNS:,}")
    for header, count in Counter(headers).items():
        if count > 1:
            raise ProblemError(f"{name}: column {header!r} is there twice")
    own = {words.column(column).lower(): column for column in COLUMNS}
    columns = tuple(own.get(header, header) for header in headers)
    for column, count in Counter(columns).items():
        if count > 1:
            raise ProblemError(
                f"{name}: columns {column!r} and {words.column(column)!r} say the same; leave one "
                "out"
            )
    return columns


def _cell(text: str) -> str:
    """Return a cell without blanks, and without the quote that spreadsheets need."""
    return text_of_cell(text.strip())


def _parquet_sheet(contents: bytes, name: str, words: Words) -> Sheet:
    try:
        from pyarrow import ArrowException, BufferReader
        from pyarrow.parquet import ParquetFile
    except ImportError:
        raise ProblemError(f"{name}: Parquet needs `pip install 'restive[io]'`") from None
    try:
        file = ParquetFile(BufferReader(contents))
        size = file.metadata.num_columns, file.metadata.num_rows
    except (ArrowException, OSError, ValueError) as error:
        raise ProblemError(f"{name}: is not a Parquet file: {error!s:.100}") from None
    if size[0] > MOST_COLUMNS or size[1] > MOST_ROWS:
        raise ProblemError(
            f"{name}: has {size[0]:,} columns and {size[1]:,} rows, more than {MOST_COLUMNS:,} or "
            f"{MOST_ROWS:,}; split it"
        )
    try:
        table = file.read()
        found = table.to_pylist()
    except (ArrowException, OSError, ValueError, TypeError, OverflowError) as error:
        raise ProblemError(f"{name}: is not a Parquet file: {error!s:.100}") from None
    headers = tuple(str(column).strip().lower() for column in table.column_names)
    columns = _columns(headers, name, words)
    rows = tuple(
        dict(
            zip(columns, ("" if cell is None else str(cell) for cell in row.values()), strict=True)
        )
        for row in found
    )
    lines = tuple(range(1, len(rows) + 1))
    return Sheet(name, headers, columns, lines, rows, sha256(contents).hexdigest(), words)


def sheet_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; what a spreadsheet would compute gets a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for row in (columns, *rows):
        cells = ("" if cell is None else cell for cell in row)
        writer.writerow(spreadsheet_text(c) if isinstance(c, str) else c for c in cells)
    return out.getvalue()


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file; it is there whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")


def listed(sheet: Sheet, wrong: Sequence[tuple[int, str, str]], after: str) -> str:
    """Say which rows cannot be taken: line, arm and reason of each."""
    noun = sheet.words.arm
    reasons = {reason for *_, reason in wrong}
    if len(wrong) == len(sheet.rows) > 2 and len(reasons) == 1:
        return f"{sheet.name}: none of its {len(wrong)} rows can be taken: {reasons.pop()}; {after}"
    alike: dict[str, list[tuple[int, str]]] = {}
    for line, arm, reason in wrong:
        alike.setdefault(reason, []).append((line, arm))
    rows = []
    for line, arm, reason in wrong:
        same = alike[reason]
        if len(same) <= MOST_ALIKE:
            rows.append(f"  line {line}: {noun} {shown(arm)}: {reason}")
        elif (line, arm) == same[0]:
            lines = f"{len(same)} lines, {same[0][0]} to {same[-1][0]}"
            names = ", ".join(shown(one) for _, one in same[:MOST_ALIKE])
            rows.append(f"  {lines} ({names}, ...): {reason}")
    more = [f"  and {len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    what = "1 row" if len(wrong) == 1 else f"{len(wrong)} rows"
    return "\n".join([f"{sheet.name}: {what} cannot be taken; {after}", *rows[:MOST_NAMED], *more])


def rejected_text(sheet: Sheet, rejected: Sequence[tuple[int, str, str]]) -> str:
    """Write the rows that were not taken, each with its reason."""
    by_line = dict(zip(sheet.lines, sheet.rows, strict=True))
    rows = [(*by_line[line].values(), reason) for line, _, reason in rejected if line in by_line]
    return sheet_text([*sheet.headers, "reason"], rows)
