"""Numba's cache on disk, with a checksum to every file.

Numba loads what it finds: a file that a crash or a full disk has cut short ends in an error in
every process from then on, and one with a flipped bit may crash it. Here such a file is no file:
the kernel is compiled anew and the user is told. A file also names the signature that it was
compiled for, since two processes that fill an empty cache may choose the same name, and the
sources of all kernels, since a kernel contains those that it calls, from whatever file.
"""

from __future__ import annotations

import pickle
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import __version__ as numba_version
from numba.core.caching import IndexDataCacheFile
from numba.core.serialize import dumps

__all__ = ["checked"]

HEAD = f"restive kernel 1, numba {numba_version}\n".encode()
OTHERS = (b"restive kernel", b"\x80")  # of other versions, or of Numba itself: not damaged
DIGEST = sha256().digest_size


def checked(dispatcher: Any) -> Any:
    """Return a kernel whose cache, where it has one, is checked."""
    cached = getattr(dispatcher, "_cache", None)
    file = getattr(cached, "_cache_file", None)
    if isinstance(file, IndexDataCacheFile):  # else a Numba that keeps it elsewhere
        file.__class__ = CheckedCacheFile
        file._source_stamp = file._source_stamp, sources()
    return dispatcher


@cache
def sources() -> str:
    """Return a digest of the kernels' sources."""
    found = sorted(Path(__file__).parents[1].rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in found)).hexdigest()


class CheckedCacheFile(IndexDataCacheFile):
    """The files of one kernel: an index, and one file per signature."""

    def load(self, key: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        name = self._load_index().get(key)
        compiled_for, data = (None, None) if name is None else self._read(self._data_path(name))
        return data if compiled_for == key else None

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if the disk lets us."""
        try:
            super().save(key, (key, data))
        except OSError as error:
            _tell(f"{self._cache_path}: compiled kernels cannot be kept here: {error.strerror}")

    def _load_index(self) -> dict[Any, str]:
        stamp, overloads = self._read(self._index_path)
        return overloads if stamp == self._source_stamp else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._source_stamp, overloads))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _write(self, path: str, pair: tuple[Any, Any]) -> None:
        body = dumps(pair)
        with self._open_for_write(path) as file:
            file.write(HEAD + sha256(body).digest() + body)

    def _read(self, path: str) -> Any:
        """Return the pair in a file, (None, None) where there is none that is whole."""
        try:
            contents = Path(path).read_bytes()
        except FileNotFoundError:
            return None, None
        except OSError as error:
            contents = (error.strerror or "").encode()
        head, body = contents[: len(HEAD)], contents[len(HEAD) + DIGEST :]
        if head + sha256(body).digest() + body == contents and head == HEAD:
            return pickle.loads(body)
        if head == HEAD or not head.startswith(OTHERS):
            _tell(f"{self._cache_path}: kernels that were kept here are damaged: compiled anew")
        return None, None


@cache  # once for each folder
def _tell(line: str) -> None:
    print(f"restive: {line}", file=sys.stderr, flush=True)
