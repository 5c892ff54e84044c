"""Writing files so that a reader finds the old one, the new one, or none: never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, EISDIR
from pathlib import Path
from secrets import token_hex

from restive.arguments import checked_path
from restive.errors import ProblemError, RestiveError

__all__ = ["replacing", "require_target"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; it takes the final name only when everything has been written."""
    final = checked_path(path, "path").resolve()  # a link stays one
    # named before it is there: Ctrl-C may come at any moment, and it is removed all the same
    temporary = final.parent / f".{final.name}.{token_hex(8)}{final.suffix}"
    try:
        _require_regular(final)
        temporary.touch(exist_ok=False)
        yield temporary
        os.replace(temporary, final)
    except OSError as error:
        raise RestiveError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        with suppress(OSError):  # a folder that is none, or not there
            temporary.unlink(missing_ok=True)


def _require_regular(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, "not a regular file")


def require_target(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> str:
    """Raise unless a file with one of these endings can be written here; return the ending.

    Asked before long computations, so that their results are not lost to a typing slip.
    """
    final = checked_path(path, "path")
    suffix = final.suffix.lower()
    if suffix not in suffixes:
        ending = repr(suffix) if suffix else "no ending"
        raise ProblemError(f"{final}: can be written as {', '.join(suffixes)}; got {ending}")
    try:
        _require_regular(final.resolve())
        with tempfile.NamedTemporaryFile(dir=final.parent, prefix=f".{final.name}."):
            pass
    except OSError as error:
        raise RestiveError(f"{final}: cannot be written: {error.strerror or error}") from None
    return suffix
