"""Where a log is read from, by pyarrow: the columns that are wanted, and the rows' lines.

That is a CSV or Parquet file, a data frame, or columns by name.

A CSV file is cut into blocks of whole rows, which threads read while the next ones are looked for.
Where pyarrow cannot read a row, or would not read it as we do, those around it are read one by one
in Python (`lines`). Of each block and column the different fields are kept once, and for each row
which of them it has.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_path, shown, suggestion
from restive.errors import ProblemError, RestiveError
from restive.files import read_regular
from restive.logs.reading.lines import (
    FAULTS,
    PADDING,
    UTF8_MARK,
    ReadRows,
    end_of_rows,
    read_rows,
    row_lines,
)
from restive.threads import in_order

__all__ = ["Column", "FileRows", "LogFile", "LogSource", "open_log"]

Lines = NDArray[np.uint32]
LogSource = Any  # a path, a data frame or columns by name: what `open_log` takes

HEADER_BYTES = 1 << 19
NEAR = 0.6  # of a column's name: else all are listed
BLOCK_BYTES = 1 << 22
FEW_BYTES = 1 << 17  # that are read row by row at once, if they must be
BATCH_ROWS = 1 << 17  # of what is no text
MOST_ROW_BYTES = 1 << 22  # a quote that is never closed makes one row of the rest of a file
MARKS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16", b"\x00\x00\xfe\xff": "UTF-32"}
GZIP_MARK = b"\x1f\x8b"
DELIMITERS = (b",", b";", b"\t")
# up to a line's end that is not within quotes; one that is never closed goes on to the end
LINE = re.compile(rb'((?:[^"\r\n]++|"[^"]*+"?+)*+)(\r\n?|\n|\Z)')


class Column:
    """The fields of a column.

    Parameters
    ----------
    chunks
        Dictionary-encoded arrays of bytes, end to end.
    """

    def __init__(self, chunks: Sequence[Any]) -> None:
        import pyarrow

        self._chunks = pyarrow.chunked_array(chunks, pyarrow.dictionary("int32", "binary"))

    def text(self, row: int) -> str:
        """Return a field as text, for messages."""
        return str(self._chunks[int(row)].as_py().decode("utf-8", errors="replace"))

    @cached_property
    def words(self) -> tuple[list[bytes], NDArray[np.int32]]:
        """The different fields in the order of their first rows, and which one each row has [R]."""
        chunks = self._chunks.unify_dictionaries().chunks
        words = chunks[-1].dictionary.to_pylist() if chunks else []
        return words, np.concatenate([chunk.indices.to_numpy() for chunk in chunks])

    def read(self, convert: Callable[[Any], tuple[NDArray[Any], ...]]) -> tuple[NDArray[Any], ...]:
        """Return what fields mean, arrays [R]; `convert` is given an array of bytes at a time."""
        parts = []
        for chunk in self._chunks.chunks:
            which = chunk.indices.to_numpy()
            parts.append([meaning[which] for meaning in convert(chunk.dictionary)])
        return tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))


class FileRows(NamedTuple):
    """All rows of a log."""

    columns: list[Column]  # those that were wanted
    lines: Lines  # [R]
    faults: NDArray[np.int8]  # [R], 0 where there is none


class _Batch(NamedTuple):
    """Some rows of a file."""

    columns: list[Any]
    lines: Lines  # [r]
    faults: NDArray[np.int8]  # [r]
    share: float  # of the file that has been read


@dataclass(frozen=True)
class LogFile:
    """A file, or what else has named columns."""

    path: Path | str  # or what messages call it
    header: tuple[str, ...]
    tables: Callable[[list[str]], Any] | None = None  # where it is no file: its columns, by name
    delimiter: bytes = b""  # of a CSV file
    body: int = 0  # where the rows below its header begin
    first_line: int = 1  # of the first row

    @property
    def row(self) -> str:
        """What a message calls a row's place."""
        return "line" if self.delimiter else "row"

    def column(self, name: Any, what: str) -> int:
        """Return the place of the column with this name."""
        if not isinstance(name, str):
            raise ProblemError(f"{what} must be a column's name, got {name!r:.60}")
        places = [at for at, known in enumerate(self.header) if known == name]
        if len(places) > 1:
            raise ProblemError(f"{self.path}: {len(places)} columns are called {name!r}")
        if not places:
            raise ProblemError(
                f"{self.path}: no column {name!r} for {what}; {suggestion(name, self.header, NEAR)}"
            )
        return places[0]

    def rows(
        self, columns: Sequence[int], progress: Callable[[float], None] = lambda share: None
    ) -> FileRows:
        """Return these columns, by their places, of all rows below the header."""
        batches = []
        for batch in self._csv(columns) if self.delimiter else self._typed(columns):
            batches.append(batch)
            progress(batch.share)
        return FileRows(
            [Column([batch.columns[at] for batch in batches]) for at in range(len(columns))],
            np.concatenate([np.zeros(0, np.uint32), *(batch.lines for batch in batches)]),
            np.concatenate([np.zeros(0, np.int8), *(batch.faults for batch in batches)]),
        )

    def _csv(self, columns: Sequence[int]) -> Iterator[_Batch]:
        for batches in in_order(lambda block: self._read(block, columns), self._blocks()):
            yield from batches

    def _read(self, block: _Block, columns: Sequence[int]) -> list[_Batch]:
        """Return the rows of a block; one that pyarrow cannot read is halved until it is small."""
        text, found, line, share = block
        if found is None:
            lines = row_lines(text) + np.uint32(line)
            fields = _parsed(text, self.delimiter, len(self.header), columns)
            if fields is not None and len(fields[0]) == len(lines):
                return [_Batch(fields, lines, np.zeros(len(lines), np.int8), share)]
            half = end_of_rows(text[: len(text) // 2], self.delimiter, final=False)
            if half is not None and len(text) > FEW_BYTES:
                second = line + text.count(b"\n", 0, half)
                halves = (
                    _Block(text[:half], None, line, share),
                    _Block(text[half:], None, second, share),
                )
                return [batch for part in halves for batch in self._read(part, columns)]
            found = read_rows(text, self.delimiter, len(self.header), final=True)
        lines = np.array(found.lines, dtype=np.uint32) + np.uint32(line)
        faults = np.array(found.faults, dtype=np.int8)
        return [_Batch(_picked(found, columns), lines, faults, share)]

    def _blocks(self) -> Iterator[_Block]:
        """Yield all rows below the header."""
        line, rest = self.first_line, b""
        try:
            with Path(self.path).open("rb", buffering=0) as file:
                size = max(os.fstat(file.fileno()).st_size, 1)
                file.seek(self.body)
                while text := rest + (part := file.read(BLOCK_BYTES)):
                    rows, final = None, not part
                    end = end_of_rows(text, self.delimiter, final)
                    if end is None:
                        rows = read_rows(text, self.delimiter, len(self.header), final)
                        end = rows.end
                    block = text[:end]
                    if block:
                        yield _Block(block, rows, line, min(file.tell() / size, 1.0))
                    line += block.count(b"\n") if rows is None else rows.num_lines
                    rest = text[end:]
                    if len(rest) > MOST_ROW_BYTES:
                        raise ProblemError(
                            f"{self.path}: line {line} is longer than {MOST_ROW_BYTES:,} bytes; "
                            "is a quote never closed?"
                        )
        except OSError as error:
            raise RestiveError(f"{self.path}: cannot be read: {error.strerror or error}") from None

    def _typed(self, columns: Sequence[int]) -> Iterator[_Batch]:
        import pyarrow

        names = [self.header[at] for at in columns]
        wanted = [*dict.fromkeys(names)]  # a column may serve twice
        if self.tables is None:
            file = _parquet_file(Path(self.path))
            batches = file.iter_batches(batch_size=BATCH_ROWS, columns=wanted)
            total = int(file.metadata.num_rows)
        else:
            table = self.tables(wanted)
            batches, total = table.to_batches(max_chunksize=BATCH_ROWS), table.num_rows
        done, total = 0, max(total, 1)
        try:
            for batch in batches:
                fields = [_as_bytes(batch.column(name)) for name in names]
                lines = np.arange(done + 1, done + 1 + batch.num_rows, dtype=np.uint32)
                done += batch.num_rows
                yield _Batch(fields, lines, np.zeros(batch.num_rows, dtype=np.int8), done / total)
        except (OSError, pyarrow.ArrowException) as error:  # damaged data may be either
            raise ProblemError(
                f"{self.path}: columns {', '.join(names)} cannot be read: {error}"
            ) from None


class _Block(NamedTuple):
    """Whole rows of a CSV file."""

    text: bytes
    rows: ReadRows | None  # if pyarrow may not read them
    line: int  # of the first one
    share: float  # of the file that has been read


def _parsed(text: bytes, delimiter: bytes, width: int, columns: Sequence[int]) -> list[Any] | None:
    """Return columns as pyarrow reads them; None where a row has another number of fields."""
    import pyarrow
    import pyarrow.compute
    import pyarrow.csv

    names = [str(at) for at in range(width)]
    wanted = [names[at] for at in dict.fromkeys(columns)]  # a column may serve twice
    try:
        table = pyarrow.csv.read_csv(
            pyarrow.BufferReader(text),
            pyarrow.csv.ReadOptions(
                use_threads=False, block_size=len(text) + 1, column_names=names
            ),
            pyarrow.csv.ParseOptions(delimiter=delimiter.decode(), newlines_in_values=True),
            pyarrow.csv.ConvertOptions(
                include_columns=wanted, column_types=dict.fromkeys(wanted, pyarrow.binary())
            ),
        )
    except pyarrow.ArrowInvalid:
        return None
    padding = PADDING.replace(delimiter, b"").decode()
    fields = {}
    for name in wanted:
        found = table.column(name).combine_chunks().dictionary_encode()
        words = found.dictionary
        # looks at bytes only, and text need not be UTF-8 yet
        trimmed = pyarrow.compute.ascii_trim(words.view("string"), padding).view("binary")
        if not trimmed.equals(words):
            found = trimmed.take(found.indices).dictionary_encode()
        fields[name] = found
    return [fields[names[at]] for at in columns]


def _picked(rows: ReadRows, columns: Sequence[int]) -> list[Any]:
    """Return columns of rows that were read one by one; a missing field is empty."""
    import pyarrow

    return [
        pyarrow.array(
            [own[at] if at < len(own) else b"" for own in rows.fields], "binary"
        ).dictionary_encode()
        for at in columns
    ]


def _as_bytes(values: Any) -> Any:
    """Return a column of any type as text, so that all logs are judged alike."""
    import pyarrow

    if pyarrow.types.is_nested(values.type):
        raise pyarrow.ArrowNotImplementedError(f"unsupported type {values.type}")
    if pyarrow.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    found = values.dictionary_encode()
    words = found.dictionary.cast("string").cast("binary")
    if found.null_count:
        return words.take(found.indices).fill_null(b"").dictionary_encode()
    return pyarrow.DictionaryArray.from_arrays(found.indices, words)


def _parquet_file(path: Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except OSError as error:
        raise RestiveError(f"{path}: cannot be read: {error.strerror or error}") from None
    except pyarrow.ArrowException as error:
        raise ProblemError(f"{path}: is not a Parquet file: {error}") from None


def open_log(source: LogSource) -> LogFile:
    """Look at a log: what it is, and the names of its columns."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise RestiveError("reading logs needs pyarrow: pip install 'restive[io]'") from None
    if isinstance(source, Mapping):
        for name in source:
            if not isinstance(name, str):
                raise ProblemError(f"the columns: a name must be text, got {shown(name)}")
        if not source:
            raise ProblemError("the columns: there are none")
        return LogFile("the columns", tuple(source), partial(_table, source))
    if hasattr(source, "__arrow_c_stream__"):
        return _frame(source)
    if not isinstance(source, str | os.PathLike):
        raise ProblemError(f"a log is a path, a data frame or columns by name, got {shown(source)}")
    return _open_file(checked_path(source, "the path of a log"))


def _frame(frame: Any) -> LogFile:
    import pyarrow

    try:
        table = pyarrow.table(frame)
    except (pyarrow.ArrowException, TypeError, ValueError) as error:
        told = "; ".join(str(part) for part in error.args[::-1])
        mixed = isinstance(error, pyarrow.ArrowException) and "column" in told
        advice = "; give each column values of one type" if mixed else ""
        raise ProblemError(f"the data frame cannot be read: {told}{advice}") from None
    if not table.column_names:
        raise ProblemError("the data frame has no columns")
    return LogFile("the data frame", tuple(table.column_names), table.select)


def _table(columns: Mapping[str, Any], names: list[str]) -> Any:
    """Return the columns of these names, which must be of one length and of a type each."""
    import pyarrow

    fields = {}
    for name in names:
        values = columns[name]
        if isinstance(values, str | bytes | Mapping):
            raise ProblemError(f"the columns: {name!r} must be a list, got {shown(values)}")
        try:
            fields[name] = pyarrow.array(values, from_pandas=True)
        except (pyarrow.ArrowException, TypeError, ValueError) as error:
            raise ProblemError(
                f"the columns: {name!r} must be a list with values of one type, got "
                f"{shown(values)}: {error}"
            ) from None
    if len({len(field) for field in fields.values()}) > 1:
        told = ", ".join(f"{name!r} has {len(field):,}" for name, field in fields.items())
        raise ProblemError(f"the columns: not of one length: {told}")
    return pyarrow.table(fields)


def _open_file(file: Path) -> LogFile:
    try:
        begin = read_regular(file, HEADER_BYTES)  # of a pipe nothing would be left to read again
    except OSError as error:
        raise RestiveError(f"{file}: cannot be read: {error.strerror or error}") from None
    if file.suffix.lower() in (".parquet", ".pq"):
        return LogFile(file, tuple(_parquet_file(file).schema_arrow.names))
    for mark, encoding in MARKS.items():
        if begin.startswith(mark):
            raise ProblemError(f"{file}: is {encoding}; save it as CSV in UTF-8")
    if begin.startswith(GZIP_MARK):
        raise ProblemError(f"{file}: is compressed; unpack it first")
    if b"\0" in begin:
        raise ProblemError(
            f"{file}: is not text; a log is a CSV or Parquet file (save a spreadsheet as CSV)"
        )
    at = len(UTF8_MARK) if begin.startswith(UTF8_MARK) else 0
    for line, found in enumerate(LINE.finditer(begin, at), start=1):
        if found[1].strip():
            if found.end() > HEADER_BYTES:  # and where it ends has not been read
                raise ProblemError(
                    f"{file}: line {line}, which names the columns, is longer than "
                    f"{HEADER_BYTES:,} bytes; is a quote never closed?"
                )
            return _with_header(file, found[1], found.end(), line)
    raise ProblemError(f"{file}: is empty; the first line must name the columns")


def _with_header(file: Path, text: bytes, end: int, line: int) -> LogFile:
    bare = b"".join(text.split(b'"')[::2])
    delimiter = max(DELIMITERS, key=bare.count)
    rows = read_rows(text, delimiter, bare.count(delimiter) + 1, final=True)
    if rows.faults[0]:
        raise ProblemError(f"{file}: line {line} {FAULTS[rows.faults[0]]}")
    try:
        header = tuple(name.decode("utf-8") for name in rows.fields[0])
    except UnicodeDecodeError:
        raise ProblemError(
            f"{file}: line {line} is not UTF-8; save the file as CSV in UTF-8"
        ) from None
    return LogFile(file, header, None, delimiter, end, line + text.count(b"\n") + 1)
