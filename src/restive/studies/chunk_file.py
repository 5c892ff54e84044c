"""The file of a chunk: a line that tells what is in it, then the arrays' bytes.

The line is JSON with the arrays' names, types and shapes and a checksum of everything after it, so
that a truncated or changed file is noticed. The bytes are little-endian and in C order: the same
arrays make the same file on every machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from errno import EACCES, EINVAL, EIO, EISDIR, ELOOP, ENXIO, EPERM
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from restive.errors import RestiveError
from restive.files import read_regular
from restive.studies.work import Arrays

__all__ = ["DamagedChunkError", "UnreadableChunkError", "decoded", "encoded", "read_chunk"]

FORMAT = "restive chunk 1"
KINDS = ("<f8", "<i8")


# errors of what is no chunk, or of a disk that has lost it; others may pass
LOST = (EACCES, EINVAL, EIO, EISDIR, ELOOP, ENXIO, EPERM)


class DamagedChunkError(RestiveError):
    """A chunk's file is not what was written."""


class UnreadableChunkError(DamagedChunkError):
    """What has a chunk's name cannot be read, say a folder."""


def encoded(arrays: Arrays, what: str = "") -> list[bytes | memoryview]:
    """Return the contents of a chunk's file, piece by piece; `what` says which chunk it is."""
    described, pieces = [], []
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        described.append([name, array.dtype.str, list(array.shape)])
        pieces.append(array.reshape(-1).view(np.uint8).data)
    checksum = _checksum([what, described], pieces)
    head = {"format": FORMAT, "what": what, "sha256": checksum, "arrays": described}
    return [json.dumps(head).encode() + b"\n", *pieces]


def read_chunk(path: Path, what: str = "") -> Arrays:
    """Read a chunk's file, or raise DamagedChunkError; also if it is not what it should be."""
    try:
        return decoded(read_regular(path), what)
    except OSError as error:
        kind = UnreadableChunkError if error.errno in LOST else RestiveError
        raise kind(f"{path}: cannot be read: {error.strerror}") from None
    except DamagedChunkError as error:
        raise DamagedChunkError(f"{path}: damaged: {error}") from None


def decoded(contents: bytes, what: str = "") -> Arrays:
    """Return the arrays of a chunk's file."""
    line, newline, body = contents.partition(b"\n")
    try:
        head = json.loads(line)
        known = head["format"] == FORMAT
        described = head["arrays"]
        right = head["sha256"] == _checksum([head["what"], described], [body])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedChunkError("its first line cannot be read") from None
    if not newline or not known:
        raise DamagedChunkError(f"not a file of the kind {FORMAT!r}")
    if not right:
        raise DamagedChunkError("its checksum does not match")
    if head["what"] != what:
        raise DamagedChunkError("not what its name says")
    try:
        return _arrays(described, body)
    except (ValueError, TypeError, OverflowError, MemoryError):
        raise DamagedChunkError("its arrays are not what it says of them") from None


def _arrays(described: Any, body: bytes) -> Arrays:
    """Cut a chunk's bytes into its arrays."""
    arrays: Arrays = {}
    begin = 0
    for name, kind, shape in described:
        if kind not in KINDS or any(type(size) is not int or size < 0 for size in shape):
            raise ValueError(f"{kind} {shape}")
        dtype = np.dtype(kind)
        end = begin + prod(shape) * dtype.itemsize
        arrays[name] = np.frombuffer(body[begin:end], dtype=dtype).reshape(shape)
        begin = end
    if begin != len(body):
        raise ValueError(f"{begin} bytes of {len(body)}")
    return arrays


def _checksum(described: object, pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256(json.dumps(described).encode())
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()
