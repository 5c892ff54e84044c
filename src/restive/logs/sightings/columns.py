"""Columns of numbers that may be longer than memory should be: appended to, read in stretches."""

from __future__ import annotations

import tempfile
import weakref
from collections.abc import Sequence
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from restive.errors import RestiveError

__all__ = ["Columns"]

MOST_IN_MEMORY = 1 << 24  # rows


class Columns:
    """Columns of equal length: in memory up to 2^24 rows, beyond in temporary files.

    The files vanish with the object.

    Parameters
    ----------
    dtypes
        The columns' types.
    """

    def __init__(self, dtypes: Sequence[DTypeLike]) -> None:
        self.dtypes = [np.dtype(dtype) for dtype in dtypes]
        self.size = 0
        self._parts: list[list[NDArray[Any]]] = []  # in memory, as they were appended
        self._ends: list[int] = []
        self._files: list[IO[bytes]] = []
        weakref.finalize(self, _close, self._files)

    def append(self, *columns: NDArray[Any]) -> None:
        """Add rows at the end."""
        typed = [np.ascontiguousarray(c, t) for c, t in zip(columns, self.dtypes, strict=True)]
        self.size += len(typed[0])
        self._parts.append(typed)
        self._ends.append(self.size)
        if self.size > MOST_IN_MEMORY:
            self._write()

    def _write(self) -> None:
        try:
            if not self._files:
                for _ in self.dtypes:
                    self._files.append(tempfile.TemporaryFile(prefix="restive-log-"))  # noqa: SIM115
            for part in self._parts:
                for file, column in zip(self._files, part, strict=True):
                    file.seek(0, 2)
                    file.write(column.data)
        except OSError as error:
            raise RestiveError(
                f"{tempfile.gettempdir()}: cannot be written: {error.strerror or error}; set "
                "TMPDIR to a folder with more room"
            ) from None
        self._parts, self._ends = [], []

    def read(self, begin: int, end: int) -> list[NDArray[Any]]:
        """Return rows `begin` to `end` - 1 of each column."""
        if self._files:
            return [
                np.fromfile(file, dtype, end - begin, offset=begin * dtype.itemsize)
                for file, dtype in zip(self._rewound(), self.dtypes, strict=True)
            ]
        first = int(np.searchsorted(self._ends, begin, side="right"))
        found = []
        for part, part_end in zip(self._parts[first:], self._ends[first:], strict=True):
            offset = part_end - len(part[0])
            found.append([column[max(begin - offset, 0) : end - offset] for column in part])
            if part_end >= end:
                break
        if len(found) == 1:
            return found[0]
        empty = [np.empty(0, dtype) for dtype in self.dtypes]
        return [np.concatenate(columns) for columns in zip(empty, *found, strict=True)]

    def _rewound(self) -> list[IO[bytes]]:
        for file in self._files:
            file.flush()
            file.seek(0)
        return self._files


def _close(files: list[IO[bytes]]) -> None:
    for file in files:
        file.close()
