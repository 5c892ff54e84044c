"""The lock of a results folder: one run writes at a time, and knows when its folder is taken away.

The lock is an open file. The system lets go of it when the process ends, however it does. The same
file tells whether the folder's name still leads to the folder that was locked. Where the system or
the file system has no locks, the latter still holds, and the user is warned of the former.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISREG
from time import sleep

from restive.errors import RestiveError
from restive.files import CAREFUL, try_lock

__all__ = ["LOCK", "is_locked", "locked"]

LOCK = "lock"
NOT_OURS = "a link, a pipe or a device, and no file of its own; remove it"
ATTEMPTS = 20
SECONDS = 0.05  # between two of them
HOLDER_BYTES = 200  # of the lock's text that are shown


@contextmanager
def locked(folder: Path, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Lock a folder; yield a function that raises unless its name still leads to it."""
    handle = _opened(folder)
    try:
        if not _acquire(handle, folder):
            tell(f"{folder}: no locks here; make sure that no other run writes to this folder")
        mine = os.fstat(handle)
        _require_same(folder, mine)
        with suppress(OSError):  # a full disk: what is written here only names the holder
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        yield lambda: _require_same(folder, mine)
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Whether a run holds a folder now; False where there is no lock that can be asked."""
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | CAREFUL)
    except OSError:
        return False
    try:
        return try_lock(handle, shared=True) is False
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    """Open the lock's file, which is made where there is none; links are not followed."""
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | CAREFUL, 0o666)
    except OSError as error:
        if path.is_symlink():
            raise RestiveError(f"{path}: {NOT_OURS}") from None
        raise RestiveError(f"{folder}: cannot be written: {LOCK}: {error.strerror}") from None
    found = os.fstat(handle)
    if not S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        raise RestiveError(f"{path}: {NOT_OURS}")
    return handle


def _acquire(handle: int, folder: Path) -> bool:
    """Lock an open file, or raise if somebody else has; False where there are no locks."""
    for attempt in range(ATTEMPTS):  # `status` looks at the lock for a moment
        sleep(SECONDS if attempt else 0)
        if (locked := try_lock(handle)) is not False:
            return locked is True
    holder = os.pread(handle, HOLDER_BYTES, 0).decode(errors="replace").strip()
    raise RestiveError(
        f"{folder}: another run is writing here ({holder}); wait for it, or name another folder"
    )


def _require_same(folder: Path, mine: os.stat_result) -> None:
    try:
        same = os.path.samestat(os.lstat(folder / LOCK), mine)
    except OSError:
        same = False
    if not same:
        raise RestiveError(
            f"{folder}: was moved, removed or replaced while a run was writing to it (its {LOCK} "
            "is not the one that the run holds); what is done is wherever the folder is now: "
            "restive run THERE continues it"
        )
