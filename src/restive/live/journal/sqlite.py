"""A live agent's database in one SQLite file on a local disk, and the tables of any.

`postgres` has the other, which gives the columns its own types; `journal` says what is kept.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import random
from shutil import disk_usage
from time import monotonic, sleep

from restive.arguments import checked_path
from restive.errors import BusyError, DiskFullError, StoreError
from restive.files import remove_leftovers, replacing
from restive.live.journal.file_guard import FileGuard, require_local, require_no_log

__all__ = ["FORMAT_VERSION", "SCHEMA", "TABLES", "SqliteDatabase", "require_no_file"]

FORMAT_VERSION = 2

# Without a unique request: one that was withdrawn may be sent again.
EVENTS = """
CREATE TABLE event(seq INTEGER PRIMARY KEY, kind TEXT NOT NULL, tick INTEGER NOT NULL,
  at INTEGER NOT NULL, request TEXT, fingerprint BLOB, actor TEXT NOT NULL,
  body TEXT NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE INDEX rare_event ON event(kind, seq)
  WHERE kind NOT IN ('decide', 'record');
CREATE INDEX decision ON event(tick) WHERE kind = 'decide';
CREATE INDEX request ON event(request) WHERE request IS NOT NULL;
CREATE TABLE withdrawn(seq INTEGER PRIMARY KEY, undo INTEGER NOT NULL) STRICT;
"""

SESSIONS = """
CREATE TABLE session(sha256 BLOB PRIMARY KEY, token TEXT NOT NULL, ends INTEGER NOT NULL) STRICT;
"""

SCHEMA = f"""
CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE prior(id INTEGER PRIMARY KEY, kind TEXT UNIQUE NOT NULL, body TEXT NOT NULL,
  digest BLOB NOT NULL) STRICT;
{EVENTS}
CREATE TABLE arm(slot INTEGER PRIMARY KEY, name TEXT UNIQUE NOT NULL, prior INTEGER NOT NULL
  REFERENCES prior(id), joined INTEGER NOT NULL, "left" INTEGER) STRICT;
CREATE TABLE pull(tick INTEGER NOT NULL, slot INTEGER NOT NULL, status TEXT NOT NULL,
  state INTEGER, audit INTEGER NOT NULL, expected REAL, recorded INTEGER,
  PRIMARY KEY(tick, slot)) STRICT, WITHOUT ROWID;
CREATE TABLE snapshot(seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, version TEXT NOT NULL,
  body BLOB NOT NULL, digest BLOB NOT NULL) STRICT;
CREATE TABLE token(name TEXT PRIMARY KEY, role TEXT NOT NULL, sha256 BLOB UNIQUE NOT NULL,
  made INTEGER NOT NULL, ends INTEGER) STRICT;
{SESSIONS}"""

TABLES = (
    "meta", "prior", "event", "withdrawn", "arm", "pull", "snapshot", "token", "session",
)  # fmt: skip

SYNCHRONOUS = {"power": "FULL", "process": "NORMAL"}  # by durability
WAIT = 10.0  # seconds for locks that are held for a moment
WAITING = f"PRAGMA busy_timeout = {round(1000 * WAIT)}"
WORD = 1.0  # of them, after which whoever waits is told
LONGEST_NAP = 0.002  # seconds between two looks whether another writer has done
STEPS_PER_LOOK = 200_000  # of SQLite's machine, some milliseconds
LEAST_SPACE = 1 << 20  # bytes without which a disk counts as full
ERRORS = (sqlite3.Error, UnicodeDecodeError)  # of a file that is busy, full or damaged
REFUSED = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)  # for want of space, mostly

APPLICATION_ID = 0x52657374  # "Rest"

# From format 1, whose requests were unique for ever.
MIGRATION = f"""
ALTER TABLE event RENAME TO old_event;
DROP INDEX rare_event;
DROP INDEX decision;
{EVENTS}
INSERT INTO event SELECT * FROM old_event;
DROP TABLE old_event;
{SESSIONS}
PRAGMA user_version = {FORMAT_VERSION};
"""


class Connection(sqlite3.Connection):
    """As SQLite has it; its rows come one by one anyway."""

    stream = sqlite3.Connection.execute


class SqliteDatabase:
    """The file of a live agent.

    Parameters
    ----------
    path
        The file, which must be there.
    durability
        As in `Journal`.
    temporary
        Whether nobody else knows of the file yet: nothing is acknowledged.
    check_events
        Raises unless all events that a connection finds are good.
    """

    error = sqlite3.Error

    def __init__(
        self,
        path: str | os.PathLike[str],
        durability: str,
        temporary: bool,
        check_events: Callable[[sqlite3.Connection], None],
    ) -> None:
        self.path = checked_path(path, "path")
        self.name = str(self.path)
        if self.path.is_dir():
            raise StoreError(f"{self.path}: this is a folder, not the file of a live agent")
        if not self.path.is_file():
            raise StoreError(
                f"{self.path}: there is no such file; make one with `restive live init` or "
                "LiveAgent.create"
            )
        require_local(self.path)
        self._guard = FileGuard(self.path)
        self._temporary = temporary
        self._check_events = check_events
        self.tell_waiting: Callable[[], None] | None = None  # for another writer
        with self.errors_named():
            if not temporary:
                self._guard.require_acknowledged(self._require_whole)
            self.connection = _connected(self.path)
            try:
                self._require_ours()
                self._migrate()
                self.connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS[durability]}")
            except BaseException:
                self.connection.close()
                raise

    @staticmethod
    def prepare(path: Path) -> None:
        """Make the tables in a file that is there and empty."""
        os.chmod(path, 0o600)
        connection = _connected(path)
        try:
            connection.executescript(
                f"PRAGMA application_id = {APPLICATION_ID};"
                f"PRAGMA user_version = {FORMAT_VERSION}; PRAGMA journal_mode = WAL; BEGIN;"
                f"{SCHEMA} COMMIT;"
            )
        except sqlite3.Error as error:
            raise _named(str(path), error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Move what is in the log beside the file into the file, and let go of it."""
        with suppress(sqlite3.Error, StoreError):
            self._guard.require_same()  # or another file's log would be taken for this one's
            self.connection.execute("PRAGMA busy_timeout = 100")  # the last one to close does it
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()
        self._guard.release()

    def begin(self, patience: float) -> None:
        """Begin a transaction that writes, once nobody else does.

        SQLite's own waiting sleeps longer the longer it has waited, so that one who asks for the
        first time is served before one who has asked for seconds. Here all ask equally often.
        """
        execute, now, told = self.connection.execute, monotonic(), False
        until = now + patience
        execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    execute("BEGIN IMMEDIATE")
                    break
                except sqlite3.OperationalError as error:
                    busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                    if not busy or monotonic() > until:
                        raise
                    if self.tell_waiting is not None and not told and monotonic() > now + WORD:
                        self.tell_waiting()
                        told = True
                sleep(random() * LONGEST_NAP)
        finally:
            execute(WAITING)
        self._require_same()

    def begin_reading(self) -> None:
        """Begin a transaction in which nothing changes."""
        self.connection.execute("BEGIN")
        self._require_same()

    def _require_same(self) -> None:
        try:
            self._guard.require_same()
        except BaseException:
            self.rollback()
            raise

    def end_reading(self) -> None:
        """End a transaction that only read."""
        with suppress(sqlite3.Error):
            self.connection.execute("COMMIT")

    def commit(self, appended: tuple[int, bytes] | None) -> None:
        """End a transaction that writes; its last event, if there is one, is given."""
        self.connection.execute("COMMIT")
        if appended is not None and not self._temporary:
            self._guard.acknowledge(*appended)
            self._guard.require_same()  # else it may have gone where nobody finds it

    def rollback(self) -> None:
        """End a transaction and leave nothing of it."""
        with suppress(sqlite3.Error):  # some errors have ended it already
            self.connection.execute("ROLLBACK")

    def forget_acknowledged(self) -> None:
        """Let go of what was acknowledged, since nothing of it is left."""
        self._guard.forget()

    def version(self) -> int:
        """Return a number that changes when somebody else has written to the file."""
        number: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return number

    def probe(self) -> int:
        """Raise if the disk is full; return how many bytes to try to write."""
        free = disk_usage(self.path.parent).free
        if free < LEAST_SPACE:
            raise DiskFullError(f"{self.path}: {free:,} bytes are free on its disk; make room")
        return LEAST_SPACE

    def require_sound(self) -> None:
        """Raise if SQLite finds the file damaged."""
        (answer,) = self.connection.execute("PRAGMA integrity_check(1)").fetchone()
        if answer != "ok":
            raise StoreError(f"{self.path}: SQLite finds it damaged: {answer}")

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the file as it is now, while others may write to it."""
        require_no_file(path)
        with replacing(path) as temporary, self.errors_named():
            os.chmod(temporary, 0o600)
            copy = _connected(temporary)
            try:
                self.connection.backup(copy)
            finally:
                copy.close()

    def _require_whole(self, connection: sqlite3.Connection) -> None:
        """Raise unless SQLite and the digests find all of a file as it should be."""
        with self.errors_named():
            (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise StoreError(answer)
            self._check_events(connection)

    def _require_ours(self) -> None:
        (found,) = self.connection.execute("PRAGMA application_id").fetchone()
        if found != APPLICATION_ID:
            raise StoreError(f"{self.path}: is not the file of a live agent")
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version > FORMAT_VERSION:
            raise StoreError(
                f"{self.path}: has format {version}, made by a newer restive than this one, which "
                f"reads up to {FORMAT_VERSION}; install the newer one"
            )
        (pages,) = self.connection.execute("PRAGMA page_count").fetchone()
        (size,) = self.connection.execute("PRAGMA page_size").fetchone()
        wal = Path(f"{self.path.resolve()}-wal")  # beside the file, not beside a link to it
        whole = not (wal.exists() and wal.stat().st_size) and pages * size > os.path.getsize(
            self.path
        )
        if whole:
            raise StoreError(_damaged(self.name, "it was cut short"))

    def _migrate(self) -> None:
        """Bring a file of an older format up to this one, in one transaction."""
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version == FORMAT_VERSION:
            return
        self.begin(WAIT)
        try:
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            if version < FORMAT_VERSION:  # unless another process was faster
                for statement in MIGRATION.split(";")[:-1]:
                    self.connection.execute(statement)
            self.commit(None)
        except BaseException:
            self.rollback()
            raise

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except ERRORS as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None  # by Ctrl-C, which SQLite swallows
            raise _named(self.name, error) from error


def require_no_file(path: str | os.PathLike[str]) -> Path:
    """Raise if there is a file under this name, or if it must not be there."""
    final = checked_path(path, "path")
    if final.exists():
        raise StoreError(f"{final}: is there already: go on with it, or choose another name")
    require_no_log(final)
    require_local(final)
    remove_leftovers(final.resolve().parent, final.resolve().name)
    return final


def _connected(path: Path) -> Connection:
    connection: Connection = sqlite3.connect(
        path,
        timeout=WAIT,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
        factory=Connection,
    )
    # Python looks for Ctrl-C when this is called, in the midst of a long query too
    connection.set_progress_handler(lambda: 0, STEPS_PER_LOOK)
    return connection


def _named(path: str, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
    if isinstance(error, UnicodeDecodeError):
        return StoreError(_damaged(path, "a text in it is none"))
    exact = getattr(error, "sqlite_errorcode", 0)
    code = exact & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return BusyError(f"{path}: somebody else has been writing to it for too long; try again")
    if code == sqlite3.SQLITE_FULL:
        return DiskFullError(f"{path}: the disk is full; nothing was changed. Make room, try again")
    if exact in REFUSED:
        return DiskFullError(
            f"{path}: the disk refused a write ({error}): it is over a quota or a limit on the "
            "size of files, or it fails; nothing was changed. Make room, try again"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        nothing = "or it never was the file of a live agent"
        return StoreError(_damaged(path, nothing if code == sqlite3.SQLITE_NOTADB else str(error)))
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
        return StoreError(f"{path}: cannot be written: {error}; look at its permissions")
    if code == sqlite3.SQLITE_IOERR:
        return StoreError(f"{path}: the disk failed: {error}; nothing was acknowledged")
    return StoreError(f"{path}: {error}")


def _damaged(path: str, how: str) -> str:
    return (
        f"{path}: the file is damaged ({how}); take your last backup, or recover what is left with "
        f"`sqlite3 {path} .recover`"
    )
