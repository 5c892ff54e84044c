"""Files: a reader finds the old one, the new one, or none, never half of one.

A file is written beside its final name, flushed to the disk, renamed, and its folder is flushed
too: once it is there, it is there after a power cut. While it is written its writer holds it, so
that what a kill has left behind can be told from what is still being written, and be removed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, EIO, EISDIR
from pathlib import Path
from secrets import token_hex
from stat import S_ISREG

from restive.arguments import checked_path
from restive.errors import ProblemError, RestiveError, StoreError

__all__ = [
    "CAREFUL",
    "beside",
    "leftover_of",
    "read_regular",
    "remove_leftovers",
    "replacing",
    "require_no_database",
    "require_target",
    "spreadsheet_text",
    "text_of_cell",
    "try_lock",
]

DATABASE = b"SQLite format 3\0"
WRITE_AHEAD = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")  # how its log begins
OF_SQLITE = ("-wal", "-shm")  # ends of the names of what it keeps beside a database
FORMULA = ("=", "+", "-", "@", "\t", "\r")
LEFTOVER = re.compile(r"\.(.+)\.[0-9a-f]{16}(\.[^.]*)?", re.DOTALL)
NOT_REGULAR = "not a regular file (a pipe or a device?)"
# what makes a name that is a link or a pipe an error, where the system can
CAREFUL = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; it takes the final name only when everything has been written."""
    final = checked_path(path, "path").resolve()  # a link stays one
    try:
        _require_regular(final)
        require_no_database(final)
        with beside(final) as temporary:
            yield temporary
            _flush(temporary)
            os.replace(temporary, final)
        _flush_folder(final.parent)
    except OSError as error:
        raise RestiveError(f"{path}: cannot be written: {error.strerror or error}") from None


def require_no_database(path: str | os.PathLike[str]) -> None:
    """Raise if a file is a SQLite database, say that of a live agent, which nothing may replace."""
    final = checked_path(path, "path")
    try:
        first = read_regular(final, len(DATABASE))[: len(DATABASE)] if final.is_file() else b""
    except OSError:  # it is reported when it is to be written
        return
    if first == DATABASE or first[:4] in WRITE_AHEAD:
        raise ProblemError(
            f"{final}: this is a SQLite database, such as the file of a live agent; give another "
            "name to write to"
        )


def require_target(
    path: str | os.PathLike[str], suffixes: tuple[str, ...], *, absent: bool = False
) -> str:
    """Raise unless a file with one of these endings can be written here; return the ending.

    Asked before long computations, so that their results are not lost to a typing slip. What a
    killed writer of the same file has left behind is removed. With `absent` a file that is there
    is not written over.
    """
    final = checked_path(path, "path")
    suffix = final.suffix.lower()
    if suffix not in suffixes:
        ending = repr(suffix) if suffix else "no ending"
        raise ProblemError(f"{final}: can be written as {', '.join(suffixes)}; got {ending}")
    try:
        resolved = final.resolve()
        _require_regular(resolved)
        require_no_database(resolved)
        if absent and resolved.exists():
            raise StoreError(f"{final}: is there already; move it away, or choose another name")
        with beside(resolved):
            pass
    except OSError as error:
        raise RestiveError(f"{final}: cannot be written: {error.strerror or error}") from None
    remove_leftovers(resolved.parent, resolved.name)
    return suffix


def read_regular(path: Path, most: int | None = None) -> bytes:
    """Return a file's bytes, `most` and one more at most; raise OSError for what may never end."""

    def opened(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", opener=opened) as file:
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(EINVAL, NOT_REGULAR)
        return file.read() if most is None else file.read(most + 1)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove what killed writers left in a folder, of all files or of one; others are kept."""
    with suppress(OSError):  # a folder that cannot be listed
        for found in os.listdir(folder):
            final = leftover_of(found)
            if final is not None and name in (None, final):
                _remove_unless_held(folder / found)


def leftover_of(name: str) -> str | None:
    """Return the final name of a file that is being written under this one, or None."""
    match = LEFTOVER.fullmatch(name)
    return match[1] if match and Path(match[1]).suffix == (match[2] or "") else None


def spreadsheet_text(text: str) -> str:
    """Return text for a cell of a CSV file; what a spreadsheet would compute gets a quote.

    So does what has one already, and no two texts are written alike.
    """
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def text_of_cell(cell: str) -> str:
    """Return the text that `spreadsheet_text` made a cell of."""
    quoted = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA)
    return cell[1:] if quoted else cell


def try_lock(handle: int, *, shared: bool = False) -> bool | None:
    """Lock an open file: True if that worked, False if others hold it, None without locks.

    The lock ends when the file is closed, or with the process.
    """
    try:
        import fcntl

        fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
    except (ImportError, OSError):  # a system or a file system that has none
        return None


@contextmanager
def beside(final: Path) -> Iterator[Path]:
    """Make a file beside the final one and hold it; it is removed unless it was renamed."""
    # named before it is there: Ctrl-C may come at any moment, and it is removed all the same
    temporary = final.parent / f".{final.name}.{token_hex(8)}{final.suffix}"
    try:
        temporary.touch(exist_ok=False)
        with temporary.open("rb+") as file:
            try_lock(file.fileno())
            yield temporary
    finally:
        with suppress(OSError):  # a folder that is none, or not there
            temporary.unlink(missing_ok=True)


def _remove_unless_held(path: Path) -> None:
    """Remove a file that nobody holds; where that cannot be told, it stays."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDWR | CAREFUL)
        try:
            if S_ISREG(os.fstat(handle).st_mode) and try_lock(handle):
                for end in ("", *OF_SQLITE):
                    Path(f"{path}{end}").unlink(missing_ok=True)
        finally:
            os.close(handle)


def _require_regular(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
    if path.exists() and not path.is_file():
        raise OSError(EINVAL, NOT_REGULAR)


def _flush(path: Path) -> None:
    """Wait until a file's contents would survive a power cut."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    """Wait until a folder's names would; some systems cannot, and then nothing is promised."""
    try:
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno == EIO:
            raise
