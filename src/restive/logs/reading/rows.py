"""Rows of a file of comma- or semicolon-separated values, a chunk at a time.

The file is cut into stretches of whole rows, whose fields threads find and look at while earlier
ones are taken in. Without quotes a row ends where its line does, so a stretch is cut at its last
line end. With quotes nobody knows without reading from the beginning; then fields are found
first, one stretch after the other.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_path, suggestion
from restive.errors import ProblemError, RestiveError
from restive.kernels.logs.fields import find_fields
from restive.threads import in_order

__all__ = ["Chunk", "Table", "open_table"]

IntArray = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Looked = TypeVar("Looked")

CHUNK_BYTES = 1 << 19
MOST_ROW_BYTES = 1 << 22  # a quote that is never closed makes one row of the rest of a file
BATCH_ROWS = 1 << 17
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
GZIP_MARK = b"\x1f\x8b"
UTF8_MARK = b"\xef\xbb\xbf"
DELIMITERS = (",", ";", "\t")
NEWLINE, RETURN = b"\n\r"


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows: where the wanted fields are in `text`."""

    text: Bytes  # [B]
    starts: IntArray  # [C, R]
    ends: IntArray  # [C, R]
    lines: IntArray  # [R], from the text's beginning until the chunk is taken in
    faults: IntArray  # [R]
    end: int  # where reading stopped
    num_lines: int  # until there

    def word(self, row: int, slot: int) -> str:
        """Return a field as text, for messages."""
        raw = self.text[self.starts[slot, row] : self.ends[slot, row]].tobytes()
        return raw.decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Table:
    """A file with named columns."""

    path: Path
    header: tuple[str, ...]
    delimiter: str
    parquet: bool

    @property
    def row(self) -> str:
        """What a message calls a row's place."""
        return "row" if self.parquet else "line"

    def column(self, name: Any, what: str) -> int:
        """Return the place of the column with this name."""
        if not isinstance(name, str):
            raise ProblemError(f"{what} must be a column's name, got {name!r:.60}")
        places = [at for at, known in enumerate(self.header) if known == name]
        if len(places) > 1:
            raise ProblemError(f"{self.path}: {len(places)} columns are called {name!r}")
        if not places:
            raise ProblemError(
                f"{self.path}: no column {name!r} for {what}; {suggestion(name, self.header)}"
            )
        return places[0]

    def chunks(
        self,
        columns: Sequence[int],
        look: Callable[[Chunk], Looked],
        progress: Callable[[float], None] = lambda share: None,
    ) -> Iterator[tuple[Chunk, Looked]]:
        """Yield all rows but the header, and what `look` finds in them.

        A chunk has the fields of these columns, in their order. Threads look at chunks ahead of
        time, several at once; only the lines of their rows are not known yet.
        """
        wanted = list(dict.fromkeys(columns))  # a column may serve twice
        if self.parquet:  # only these are read
            slot_of = np.arange(len(wanted), dtype=np.int64)
            source = _parquet_bytes(self.path, [self.header[at] for at in wanted])
        else:
            slot_of = np.full(len(self.header), -1, dtype=np.int64)
            slot_of[wanted] = np.arange(len(wanted))
            source = _file_bytes(self.path)
        pick = np.array([wanted.index(at) for at in columns])
        fields = _Fields(ord(self.delimiter), slot_of, pick)

        def looked_at(stretch: _Stretch) -> tuple[_Stretch, Chunk, Looked]:
            chunk = stretch.chunk or fields.found(stretch.text, True)
            return stretch, chunk, look(chunk)

        line = 1 - self.parquet  # that has no line for its header
        for stretch, chunk, looked in in_order(looked_at, _stretches(source, fields)):
            if stretch.endless:
                raise ProblemError(
                    f"{self.path}: {self.row} {line} is longer than {MOST_ROW_BYTES:,} bytes; "
                    "is a quote never closed?"
                )
            np.add(chunk.lines, line, out=chunk.lines)
            line += chunk.num_lines
            if len(chunk.lines):
                yield chunk, looked
            progress(stretch.share)


def open_table(path: str | os.PathLike[str]) -> Table:
    """Look at a file: its kind, its delimiter and the names of its columns."""
    file = checked_path(path, "path")
    if file.suffix.lower() in (".parquet", ".pq"):
        schema = _parquet(file).schema_arrow
        return Table(file, tuple(schema.names), ",", True)
    begin, _ = next(_file_bytes(file), (b"", 1.0))
    for mark, encoding in MARKS.items():
        if begin.startswith(mark):
            raise ProblemError(f"{file}: is {encoding}; save it as CSV in UTF-8")
    if begin.startswith(GZIP_MARK):
        raise ProblemError(f"{file}: is compressed; unpack it first")
    if b"\0" in begin:
        raise ProblemError(
            f"{file}: is not text; a log is a CSV or Parquet file (save a spreadsheet as CSV)"
        )
    begin = begin.removeprefix(UTF8_MARK)
    line = _first_record(begin)
    if not line.strip():
        raise ProblemError(f"{file}: is empty; the first line must name the columns")
    delimiter = max(DELIMITERS, key=lambda mark: _unquoted(line).count(mark.encode()))
    slots = np.arange(_unquoted(line).count(delimiter.encode()) + 1, dtype=np.int64)
    text = np.frombuffer(line, dtype=np.uint8)
    found = _Fields(ord(delimiter), slots, slots).found(text, True)
    fields = [line[a:b] for a, b in zip(found.starts[:, 0], found.ends[:, 0], strict=True)]
    try:
        header = tuple(field.decode("utf-8").replace('""', '"') for field in fields)
    except UnicodeDecodeError:
        raise ProblemError(f"{file}: line 1 is not UTF-8; save the file as CSV in UTF-8") from None
    return Table(file, header, delimiter, False)


def _first_record(text: bytes) -> bytes:
    """Return the first line that is not empty."""
    for line in text.replace(b"\r", b"\n").split(b"\n"):
        if line.strip():
            return line
    return b""


def _unquoted(line: bytes) -> bytes:
    return b"".join(line.split(b'"')[::2])


def _file_bytes(path: Path) -> Iterator[tuple[bytes, float]]:
    """Yield stretches of a file, and which share of it has been read."""
    try:
        with path.open("rb", buffering=0) as file:
            size = max(os.fstat(file.fileno()).st_size, 1)
            while part := file.read(CHUNK_BYTES):
                yield part, min(file.tell() / size, 1.0)
    except OSError as error:
        raise RestiveError(f"{path}: cannot be read: {error.strerror or error}") from None


def _parquet(path: Path) -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise RestiveError(
            "Parquet files need pyarrow: pip install 'restive[io]', or save the log as CSV"
        ) from None
    try:
        return pyarrow.parquet.ParquetFile(path)
    except OSError as error:
        raise RestiveError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pyarrow.ArrowException as error:
        raise ProblemError(f"{path}: is not a Parquet file: {error}") from None


def _parquet_bytes(path: Path, names: list[str]) -> Iterator[tuple[bytes, float]]:
    """Yield a Parquet file's columns as CSV, so that both are read and judged the same way."""
    import pyarrow
    import pyarrow.csv

    file = _parquet(path)
    done, total = 0, max(int(file.metadata.num_rows), 1)
    sink = io.BytesIO()
    first = True
    try:
        for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names):
            options = pyarrow.csv.WriteOptions(include_header=first)
            pyarrow.csv.write_csv(pyarrow.Table.from_batches([batch]).select(names), sink, options)
            done += batch.num_rows
            text = sink.getvalue()
            for at in range(0, len(text), CHUNK_BYTES):
                yield text[at : at + CHUNK_BYTES], done / total
            sink.seek(0)
            sink.truncate()
            first = False
    except pyarrow.ArrowException as error:
        raise ProblemError(f"{path}: columns {', '.join(names)} cannot be read: {error}") from None


@dataclass(frozen=True, eq=False)
class _Fields:
    """Which fields are wanted."""

    delimiter: int
    slot_of: IntArray  # by column of the file: where among the wanted ones, or -1
    pick: IntArray  # which of these a chunk has, as a column may be wanted twice

    def found(self, text: Bytes, final: bool) -> Chunk:
        """Return the rows of a text; unless it is the last, a row that does not end is left."""
        most = np.count_nonzero(text == NEWLINE) + np.count_nonzero(text == RETURN) + 1
        width = int(self.slot_of.max()) + 1
        room = np.empty((2 + 2 * width, most), dtype=np.int64)
        lines, faults, starts, ends = room[0], room[1], room[2 : 2 + width], room[2 + width :]
        count, end, num_lines = find_fields(
            text, final, self.delimiter, self.slot_of, starts, ends, lines, faults
        )
        if len(self.pick) > width:
            starts, ends = starts[self.pick], ends[self.pick]
        where = starts[:, :count], ends[:, :count]
        return Chunk(text, *where, lines[:count], faults[:count], end, num_lines)


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A text of whole rows."""

    text: Bytes
    share: float  # of the file that has been read
    chunk: Chunk | None = None  # its rows, if they are known
    endless: bool = False  # whether it is the beginning of a row without end


def _stretches(source: Iterator[tuple[bytes, float]], fields: _Fields) -> Iterator[_Stretch]:
    """Cut a file into stretches of whole rows; the header is left out."""
    rest, header = b"", True
    part, share = next(source, (b"", 1.0))
    part = part.removeprefix(UTF8_MARK)
    while part or rest:
        following, next_share = next(source, (b"", 1.0))
        raw = rest + part
        text = np.frombuffer(raw, dtype=np.uint8)
        end = raw.rfind(b"\n") + 1 if following else len(raw)
        if header or not end or b'"' in raw:
            chunk = fields.found(text, not following)
            end = chunk.end
            if header and len(chunk.lines):
                chunk, header = _without_first(chunk), False
            yield _Stretch(text[:end], share, chunk)
        else:
            yield _Stretch(text[:end], share)
        rest, part, share = raw[end:], following, next_share
        if len(rest) > MOST_ROW_BYTES:
            yield _Stretch(text[:0], share, endless=True)
            return
        if not following:
            return


def _without_first(chunk: Chunk) -> Chunk:
    return replace(
        chunk,
        starts=chunk.starts[:, 1:],
        ends=chunk.ends[:, 1:],
        lines=chunk.lines[1:],
        faults=chunk.faults[1:],
    )
