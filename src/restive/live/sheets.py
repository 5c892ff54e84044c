"""Sheets: tables in files that a spreadsheet program reads and writes.

CSV in UTF-8, with or without a byte order mark, separated by commas or semicolons, columns in any
order; Parquet too where pyarrow is there.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from os import PathLike
from typing import Any

from restive.arguments import checked_path, suggestion
from restive.errors import ProblemError
from restive.files import FORMULA, read_regular, replacing, spreadsheet_text

__all__ = ["Sheet", "parse_sheet", "read_sheet", "sheet_text", "write_text"]

MOST_BYTES = 1 << 28


@dataclass(frozen=True)
class Sheet:
    """A sheet as it came: rows by column, each with the line on which it begins."""

    name: str
    columns: tuple[str, ...]
    lines: tuple[int, ...]
    rows: tuple[dict[str, str], ...]
    digest: str  # of the file's bytes

    def require(self, *columns: str) -> None:
        """Raise unless the columns are there."""
        for column in columns:
            if column not in self.columns:
                raise ProblemError(
                    f"{self.name}: there is no column {column!r}; "
                    f"{suggestion(column, self.columns)}"
                )


def read_sheet(path: str | PathLike[str]) -> Sheet:
    """Read a CSV or Parquet file."""
    place = checked_path(path, "path")
    try:
        contents = read_regular(place, MOST_BYTES)
    except OSError as error:
        raise ProblemError(f"{place}: cannot be read: {error.strerror or error}") from None
    if len(contents) > MOST_BYTES:
        raise ProblemError(f"{place}: larger than {MOST_BYTES >> 20} MiB; split it")
    if place.suffix.lower() == ".parquet":
        return _parquet_sheet(contents, str(place))
    return parse_sheet(contents, str(place))


def parse_sheet(contents: bytes, name: str) -> Sheet:
    """Read a sheet from the bytes of a CSV file; `name` is for messages."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = contents[: error.start].count(b"\n") + 1
        raise ProblemError(f"{name}: line {line} is not UTF-8; save it as UTF-8") from None
    first = text.partition("\n")[0]
    mark = ";" if first.count(";") > first.count(",") else ","
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    lines, rows = [], []
    try:
        columns = tuple(cell.strip().lower() for cell in next(reader, []))
        _require_columns(columns, name)
        before = reader.line_num
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            if len(cells) != len(columns):
                raise ProblemError(
                    f"{name}: line {line} has {len(cells)} cells, the header has {len(columns)}"
                )
            lines.append(line)
            rows.append(dict(zip(columns, (_cell(cell) for cell in cells), strict=True)))
    except csv.Error as error:
        raise ProblemError(f"{name}: line {reader.line_num} cannot be read: {error}") from None
    return Sheet(name, columns, tuple(lines), tuple(rows), sha256(contents).hexdigest())


def _require_columns(columns: Sequence[str], name: str) -> None:
    if not any(columns):
        raise ProblemError(f"{name}: is empty; expected a header with a column 'arm'")
    for column in columns:
        if columns.count(column) > 1:
            raise ProblemError(f"{name}: column {column!r} is there twice")


def _cell(text: str) -> str:
    """Return a cell without blanks, and without the quote that spreadsheets need."""
    bare = text.strip()
    return bare[1:] if bare.startswith("'") and bare[1:].startswith(FORMULA) else bare


def _parquet_sheet(contents: bytes, name: str) -> Sheet:
    try:
        from pyarrow import ArrowException, BufferReader
        from pyarrow.parquet import read_table as read_parquet
    except ImportError:
        raise ProblemError(f"{name}: Parquet needs `pip install 'restive[io]'`") from None
    try:
        table = read_parquet(BufferReader(contents))
        found = table.to_pylist()
    except (ArrowException, OSError, ValueError) as error:
        raise ProblemError(f"{name}: is not a Parquet file: {error!s:.100}") from None
    columns = tuple(str(column).strip().lower() for column in table.column_names)
    _require_columns(columns, name)
    rows = tuple(
        dict(
            zip(columns, ("" if cell is None else str(cell) for cell in row.values()), strict=True)
        )
        for row in found
    )
    lines = tuple(range(1, len(rows) + 1))
    return Sheet(name, columns, lines, rows, sha256(contents).hexdigest())


def sheet_text(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table as CSV; what a spreadsheet would compute gets a quote."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        cells = ("" if cell is None else cell for cell in row)
        writer.writerow(spreadsheet_text(c) if isinstance(c, str) else c for c in cells)
    return out.getvalue()


def write_text(path: str | PathLike[str], text: str) -> None:
    """Write a file; it is there whole or not at all."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="")
