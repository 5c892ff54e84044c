"""Rows of a file of comma- or semicolon-separated values, a chunk at a time."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_path, suggestion
from restive.errors import ProblemError, RestiveError
from restive.kernels.log_rows import find_fields

__all__ = ["Chunk", "Table", "open_table"]

IntArray = NDArray[np.int64]
Bytes = NDArray[np.uint8]

CHUNK_BYTES = 1 << 22
CHUNK_ROWS = 1 << 18
MOST_ROW_BYTES = 1 << 22  # a quote that is never closed makes one row of the rest of a file
BATCH_ROWS = 1 << 17
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
UTF8_MARK = b"\xef\xbb\xbf"
DELIMITERS = (",", ";", "\t")


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some rows: where the wanted fields are in `text`. It is valid until the next is asked for."""

    share: float  # of the file that has been read
    text: Bytes  # [B]
    starts: IntArray  # [C, R]
    ends: IntArray  # [C, R]
    lines: IntArray  # [R]
    faults: IntArray  # [R]

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
        self, columns: Sequence[int], progress: Callable[[float], None] = lambda share: None
    ) -> Iterator[Chunk]:
        """Yield all rows but the header, with the fields of these columns in their order."""
        wanted = list(dict.fromkeys(columns))  # a column may serve twice
        if self.parquet:  # only these are read
            slot_of = np.arange(len(wanted), dtype=np.int64)
            source = _parquet_bytes(self.path, [self.header[at] for at in wanted])
        else:
            slot_of = np.full(len(self.header), -1, dtype=np.int64)
            slot_of[wanted] = np.arange(len(wanted))
            source = _file_bytes(self.path)
        pick = [wanted.index(at) for at in columns]
        own = None if len(pick) == len(wanted) else pick
        for chunk in _ahead(_chunks_of(source, self, slot_of, own)):
            yield chunk
            progress(chunk.share)


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
    if b"\0" in begin:
        raise ProblemError(f"{file}: is not text; a log is a CSV or Parquet file")
    begin = begin.removeprefix(UTF8_MARK)
    line = _first_record(begin)
    if not line.strip():
        raise ProblemError(f"{file}: is empty; the first line must name the columns")
    delimiter = max(DELIMITERS, key=lambda mark: _unquoted(line).count(mark.encode()))
    slots = np.arange(line.count(delimiter.encode()) + 1, dtype=np.int64)
    starts = np.zeros((len(slots), 1), dtype=np.int64)
    ends = np.full((len(slots), 1), -1, dtype=np.int64)
    text = np.frombuffer(line, dtype=np.uint8)
    one = np.zeros((2, 1), dtype=np.int64)
    find_fields(text, 0, True, ord(delimiter), slots, starts, ends, one[0], one[1], 1)
    fields = [line[a:b] for a, b in zip(starts[:, 0], ends[:, 0], strict=True) if b >= 0]
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
        with path.open("rb") as file:
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
            yield sink.getvalue(), done / total
            sink.seek(0)
            sink.truncate()
            first = False
    except pyarrow.ArrowException as error:
        raise ProblemError(f"{path}: columns {', '.join(names)} cannot be read: {error}") from None


def _chunks_of(
    source: Iterator[tuple[bytes, float]], table: Table, slot_of: IntArray, pick: list[int] | None
) -> Iterator[Chunk]:
    # two, in turn: while one is looked at, the other is filled
    width = int(slot_of.max()) + 1
    rooms = cycle([np.zeros((2 + 2 * width, CHUNK_ROWS), dtype=np.int64) for _ in range(2)])
    rest, line, header = b"", 1, True
    part, share = next(source, (b"", 1.0))
    part = part.removeprefix(UTF8_MARK)
    while part or rest:
        following, next_share = next(source, (b"", 1.0))
        text = np.frombuffer(rest + part, dtype=np.uint8)
        at, count = 0, CHUNK_ROWS
        while count == CHUNK_ROWS:
            room = next(rooms)
            lines, faults, starts, ends = room[0], room[1], room[2 : 2 + width], room[2 + width :]
            count, at, line = find_fields(
                text, at, not following, ord(table.delimiter), slot_of, starts, ends, lines,
                faults, line,
            )  # fmt: skip
            kept = slice(int(header), count)
            header &= count == 0
            if count > kept.start:
                where = starts[:, kept], ends[:, kept]
                if pick is not None:
                    where = where[0][pick], where[1][pick]
                # a Parquet file has no line for its header
                yield Chunk(share, text, *where, lines[kept] - table.parquet, faults[kept])
        rest, part, share = text[at:].tobytes(), following, next_share
        if len(rest) > MOST_ROW_BYTES:
            raise ProblemError(
                f"{table.path}: {table.row} {line} is longer than {MOST_ROW_BYTES:,} bytes; "
                "is a quote never closed?"
            )
        if not following:
            return


def _ahead(chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    """Yield what there is while a thread finds what comes next."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk
