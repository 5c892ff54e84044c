"""Whether a file is still the one that was opened, and still holds what was acknowledged.

SQLite trusts names: it goes on with a file that was moved or deleted under it, and takes in the log
(-wal) that lies beside a file whosever it is. A log that was lost or cut takes its events with it,
silently. So the file's place is looked at in every transaction. While a file is in use, and
after a kill, a small file beside it (-last) has the number and digest of the last event that was
acknowledged, and says which file that was; what is opened must hold this event. It is removed with
the log when the last user lets go. It is not flushed for its own sake: after a power cut it may be
some events behind, and then notices less.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from hashlib import sha256
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from restive.errors import StoreError
from restive.files import read_regular

__all__ = ["FileGuard", "require_local", "require_no_log"]

RECORD = Struct("<8sQQQ32s")  # mark, device, node, number and digest of an event
MARK = b"restive1"
SEAL = 16  # bytes of a digest of the record
# File systems that share no memory between machines, without which SQLite's log does not work.
NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs"}
MOUNTS = Path("/proc/self/mounts")


class Acknowledged(NamedTuple):
    """What was last acknowledged, and of which file."""

    device: int
    node: int
    seq: int
    digest: bytes


class FileGuard:
    """Looks after a file that is open.

    Parameters
    ----------
    path
        The file, which is there.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._name = os.path.abspath(path)  # wherever the process goes
        self._place = path.resolve()  # beside which SQLite's files are, if the name is a link
        self._beside = Path(f"{self._place}-last")
        self._handle = -1
        self._identity = self._found()

    def require_same(self) -> None:
        """Raise if another file, or none, is where this one was."""
        if self._found() != self._identity:
            raise StoreError(
                f"{self._path}: was moved, deleted or replaced while it was open, so nothing more "
                "is read from it or written to it; stop whatever uses it, see to the file, and "
                "start again"
            )

    def require_acknowledged(self, check: Callable[[sqlite3.Connection], None]) -> None:
        """Raise if the file does not hold what was acknowledged; nothing in it is touched.

        Where another file lies beside the log of an earlier one, `check` looks at all of it.
        """
        known = self._read()
        if known is None:
            return
        # read-only, or SQLite would move the log into the file when it is closed
        with closing(sqlite3.connect(f"{self._place.as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute(
                "SELECT digest FROM event WHERE seq = ?", (known.seq,)
            ).fetchone()
            if row is None or row[0] != known.digest:
                raise StoreError(
                    f"{self._path}: event {known.seq} was acknowledged, but is not in the file: "
                    f"its log ({self._place.name}-wal) was lost or damaged, or an older copy of it "
                    f"was put in its place. Put back what was there; to go on without, delete "
                    f"{self._beside.name}"
                )
            if self._identity != known[:2] and _has_log(self._place):
                try:
                    check(connection)
                except StoreError as error:
                    raise StoreError(
                        f"{self._path}: was put in the place of another file whose log "
                        f"({self._place.name}-wal) is still there and does not fit it ({error}). "
                        f"Delete {self._place.name}-wal, {self._place.name}-shm and "
                        f"{self._beside.name}"
                    ) from None

    def acknowledge(self, seq: int, digest: bytes) -> None:
        """Remember an event that is committed; a disk that is full does not keep it from being."""
        record = RECORD.pack(MARK, *(self._identity or (0, 0)), seq, digest)
        with suppress(OSError):
            if self._handle < 0 or not os.fstat(self._handle).st_nlink:
                self.release()
                self._handle = os.open(self._beside, os.O_RDWR | os.O_CREAT, 0o600)
            os.lseek(self._handle, 0, os.SEEK_SET)
            os.write(self._handle, record + sha256(record).digest()[:SEAL])

    def release(self) -> None:
        """Let go; once nobody has the file open, all is in it and nothing is left beside it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
        if self._found() == self._identity and not Path(f"{self._place}-wal").exists():
            self.forget()

    def forget(self) -> None:
        """Remove what was remembered."""
        with suppress(OSError):
            self._beside.unlink(missing_ok=True)

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._name)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _read(self) -> Acknowledged | None:
        """Return what was remembered; None if that is nothing, or half of it."""
        try:
            contents = read_regular(self._beside, RECORD.size + SEAL)
        except OSError:
            return None
        record, seal = contents[: RECORD.size], contents[RECORD.size :]
        if len(record) < RECORD.size or seal != sha256(record).digest()[:SEAL]:
            return None
        mark, *known = RECORD.unpack(record)
        return Acknowledged(*known) if mark == MARK else None


def require_no_log(path: Path) -> None:
    """Raise if the log of a file that is gone would be taken for that of a new one."""
    place = path.resolve()
    if _has_log(place):
        raise StoreError(
            f"{path}: the log of an earlier file of this name is still there ({place.name}-wal): "
            f"stop whatever has that file open, then delete {place.name}-wal and {place.name}-shm"
        )


def _has_log(place: Path) -> bool:
    try:
        return os.stat(f"{place}-wal").st_size > 0
    except OSError:
        return False


def require_local(path: Path) -> None:
    """Raise if a file is on a network file system; systems that do not tell are trusted."""
    kind = file_system(path.resolve().parent, _mounts())
    if kind in NETWORK:
        raise StoreError(
            f"{path}: is on a network file system ({kind}), where several processes would damage "
            "it; keep the file on a local disk and reach it through `restive serve`"
        )


def file_system(folder: Path, mounts: str) -> str:
    """Return the type of the file system that holds a folder, "" if that is not known."""
    found, longest = "", -1
    for line in mounts.splitlines():
        _, where, kind, *_ = [*line.split(" "), "", "", ""]
        place = where.replace("\\040", " ")
        inside = place == "/" or f"{folder}/".startswith(f"{place}/")
        if inside and len(place) >= longest:  # of two on one place, the later hides the other
            found, longest = kind, len(place)
    return found


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
