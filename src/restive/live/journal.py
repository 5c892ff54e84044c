"""The journal: what happened, one event after the other, in one SQLite file on a local disk.

An event is kept once its transaction is committed, and never changes. Each carries a digest of
itself and of the one before it, so a change of any event shows.

An event of kind `undo` names events before it that were withdrawn: they stay where they are, and
whoever replays the journal passes them over.

`event` is the truth among the file's tables. `arm`, `pull` and `withdrawn` follow from it and are
written in the same transaction (see `sql_tables`). `snapshot` is a cache and may be emptied.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from pathlib import Path
from random import random
from shutil import disk_usage
from time import monotonic, sleep
from typing import Any, NamedTuple

from restive.arguments import checked_path, shown
from restive.errors import BusyError, ConflictError, DiskFullError, ProblemError, StoreError
from restive.files import remove_leftovers, replacing
from restive.live.file_guard import FileGuard, require_local, require_no_log

__all__ = ["RARE", "STANDING", "UNDO", "Event", "Journal", "as_text", "require_absent"]

DURABILITIES = {"power": "FULL", "process": "NORMAL"}
WAIT = 10.0  # seconds for another writer
WAITING = f"PRAGMA busy_timeout = {round(1000 * WAIT)}"  # for locks that are held for a moment
LONGEST_NAP = 0.002  # seconds between two looks whether another writer has done
STEPS_PER_LOOK = 200_000  # of SQLite's machine, some milliseconds
LEAST_SPACE = 1 << 20  # bytes without which a disk counts as full
ERRORS = (sqlite3.Error, UnicodeDecodeError)  # of a file that is busy, full or damaged
REFUSED = (sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_SHMSIZE)  # for want of space, mostly
UNDO = "undo"  # kind of events that withdraw others
FIRST = b""  # digest before the first event
INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
COLUMNS = "seq, kind, tick, at, request, fingerprint, actor, body, digest"

APPLICATION_ID = 0x52657374  # "Rest"
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
RARE = "kind NOT IN ('decide', 'record')"  # as the index has it, or SQLite does not use it
# of `event`, in queries: what was not withdrawn
STANDING = "NOT EXISTS (SELECT 1 FROM withdrawn WHERE withdrawn.seq = event.seq)"

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


# Plain data as JSON, the same data always the same; none of ours holds itself.
as_text = json.JSONEncoder(
    check_circular=False, separators=(",", ":"), ensure_ascii=False, sort_keys=True
).encode


class Event(NamedTuple):
    """A line of the journal."""

    seq: int  # from 1, without gaps
    kind: str
    tick: int
    at: int  # microseconds since 1970, UTC
    request: str | None  # the caller's id of what it asked for
    fingerprint: bytes | None  # of what it asked for
    actor: str
    text: str  # its body, as JSON
    digest: bytes

    @property
    def body(self) -> dict[str, Any]:
        """What happened, as plain data."""
        found: dict[str, Any] = json.loads(self.text)
        return found

    def expected_digest(self, before: bytes) -> bytes:
        """Digest that the event must have after one with this digest."""
        return digest_of(
            before, self.seq, self.kind, self.tick, self.at, self.request, self.fingerprint,
            self.actor, self.text,
        )  # fmt: skip


def digest_of(
    before: bytes, seq: int, kind: str, tick: int, at: int, request: str | None,
    fingerprint: bytes | None, actor: str, text: str,
) -> bytes:  # fmt: skip
    """Digest of an event and of the one before it."""
    mark = "null" if fingerprint is None else f'"{fingerprint.hex()}"'
    asked = "null" if request is None else quoted(request)
    # what `as_text` makes of the list of these, in a tenth of the time
    fields = f"[{seq},{quoted(kind)},{tick},{at},{asked},{mark},{quoted(actor)}]"
    return sha256(before + (fields + text).encode()).digest()


class _UndoneError(Exception):
    """Ends a transaction that shall leave nothing behind."""


class Journal:
    """The file of a live agent. One thread at a time may use it; any number of processes may.

    Parameters
    ----------
    path
        The file, which must be there.
    durability
        "power": what was acknowledged survives a power cut; "process": it survives a kill.
    temporary
        Whether nobody else knows of the file yet: nothing is acknowledged.
    """

    def __init__(
        self, path: str | os.PathLike[str], durability: str = "power", *, temporary: bool = False
    ) -> None:
        self.path = checked_path(path, "path")
        if durability not in DURABILITIES:
            raise ProblemError(f"durability must be 'power' or 'process', got {shown(durability)}")
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
        self.patience = WAIT  # seconds for another writer
        self._appended: tuple[int, bytes] | None = None  # the last event of the transaction
        with self.errors_named():
            if not temporary:
                self._guard.require_acknowledged(self._require_whole)
            self.connection = _connected(self.path)
            try:
                self._require_ours()
                self._migrate()
                self.connection.execute(f"PRAGMA synchronous = {DURABILITIES[durability]}")
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
            raise _named(path, error) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Move what is in the log beside the file into the file, and let go of it."""
        with suppress(sqlite3.Error, StoreError):
            self._guard.require_same()  # or another file's log would be taken for this one's
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.connection.close()
        self._guard.release()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: what is done in it is kept as a whole when it ends, or not at all."""
        with self.errors_named():
            self._appended = None
            self._take_lock()
            try:
                self._guard.require_same()
                yield
                self.commit()
            except BaseException:
                with suppress(sqlite3.Error):  # some errors have ended it already
                    self.connection.execute("ROLLBACK")
                raise

    def _take_lock(self) -> None:
        """Begin a transaction that writes, once nobody else does.

        SQLite's own waiting sleeps longer the longer it has waited, so that one who asks for the
        first time is served before one who has asked for seconds. Here all ask equally often.
        """
        execute, until = self.connection.execute, monotonic() + self.patience
        execute("PRAGMA busy_timeout = 0")
        try:
            while True:
                try:
                    execute("BEGIN IMMEDIATE")
                    return
                except sqlite3.OperationalError as error:
                    busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                    if not busy or monotonic() > until:
                        raise
                sleep(random() * LONGEST_NAP)
        finally:
            execute(WAITING)

    def commit(self) -> None:
        """End the transaction: what was done in it is kept from now on."""
        self.connection.execute("COMMIT")
        if self._appended is not None and not self._temporary:
            self._guard.acknowledge(*self._appended)
            self._guard.require_same()  # else it may have gone where nobody finds it

    def require_space(self) -> None:
        """Raise unless a transaction can be begun and written; it is rolled back."""
        free = disk_usage(self.path.parent).free
        if free < LEAST_SPACE:
            raise DiskFullError(f"{self.path}: {free:,} bytes are free on its disk; make room")
        with suppress(_UndoneError), self.writing():
            row = ("probe", "x" * LEAST_SPACE)
            self.connection.execute("INSERT INTO meta VALUES (?, ?)", row)
            raise _UndoneError

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction in which the file does not change."""
        with self.errors_named():
            self.connection.execute("BEGIN")
            try:
                self._guard.require_same()
                yield
            finally:
                with suppress(sqlite3.Error):
                    self.connection.execute("COMMIT")

    def last(self) -> tuple[int, bytes]:
        """Return the number and digest of the last event."""
        row = self.connection.execute(
            "SELECT seq, digest FROM event ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        return (0, FIRST) if row is None else row

    def version(self) -> int:
        """Return a number that changes when somebody else has written to the file."""
        number: int = self.connection.execute("PRAGMA data_version").fetchone()[0]
        return number

    def append(
        self, last: tuple[int, bytes], kind: str, tick: int, at: int, body: dict[str, Any],
        actor: str, request: str | None = None, fingerprint: bytes | None = None,
    ) -> Event:  # fmt: skip
        """Add an event after the last one, whose number and digest are given, in a transaction."""
        row = (last[0] + 1, kind, tick, at, request, fingerprint, actor, as_text(body))
        event = Event(*row, digest_of(last[1], *row))
        self.connection.execute(INSERT, (*row, event.digest))
        self._appended = event.seq, event.digest
        return event

    def events(
        self, after: int = 0, limit: int | None = None, kinds: tuple[str, ...] = ()
    ) -> Iterator[Event]:
        """Yield events in their order, without looking at their digests."""
        where = f"AND kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        where += f" AND {RARE}" if kinds and not {"decide", "record"}.intersection(kinds) else ""
        rows = self.connection.execute(
            f"SELECT {COLUMNS} FROM event WHERE seq > ? {where} ORDER BY seq LIMIT ?",
            (after, *kinds, -1 if limit is None else limit),
        )
        return (Event(*row) for row in rows)

    def latest(self) -> Iterator[Event]:
        """Yield events from the last one back, without looking at their digests."""
        rows = self.connection.execute(f"SELECT {COLUMNS} FROM event ORDER BY seq DESC")
        return (Event(*row) for row in rows)

    def checked_events(self, after: int = 0, before: bytes = FIRST) -> Iterator[Event]:
        """Yield the events that follow one with this number and digest; raise where one is bad."""
        expected = after
        for event in self.events(after):
            expected += 1
            if event.seq != expected or event.expected_digest(before) != event.digest:
                raise StoreError(
                    f"{self.path}: event {expected} was damaged or edited; `restive live check "
                    "--last-good COPY` writes a copy that ends before it"
                )
            yield event
            before = event.digest

    def withdrawn(self, after: int = 0) -> set[int]:
        """Return the numbers of the events that were withdrawn by those after this number."""
        found: set[int] = set()
        for event in self.events(after, kinds=(UNDO,)):
            found.update(event.body["events"])
        return found

    def requested(self, request: str) -> Event | None:
        """Return the event of a request, if there is one that was not withdrawn."""
        row = self.connection.execute(
            f"SELECT {COLUMNS} FROM event WHERE request = ? AND {STANDING}", (request,)
        ).fetchone()
        return None if row is None else Event(*row)

    def requests_like(self, beginning: str) -> list[Event]:
        """Return the events that stand whose requests are this, or this and a blank and more."""
        rows = self.connection.execute(
            f"SELECT {COLUMNS} FROM event WHERE request >= ? AND request < ? AND {STANDING} "
            "ORDER BY seq",
            (beginning, f"{beginning}!"),  # which comes after a blank
        )
        return [Event(*row) for row in rows]

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the file as it is now, while others may write to it."""
        require_absent(path)
        with replacing(path) as temporary, self.errors_named():
            os.chmod(temporary, 0o600)
            copy = _connected(temporary)
            try:
                self.connection.backup(copy)
            finally:
                copy.close()

    def require_last(self, last: tuple[int, bytes]) -> None:
        """Raise unless the file ends with the event of this number and digest."""
        if self.last() != last:
            raise ConflictError(
                f"{self.path}: was written to meanwhile; nothing was changed, try again"
            )

    def replace_contents(self, last: tuple[int, bytes], path: Path) -> None:
        """Take over all tables of another file, in one transaction.

        Raises if this one no longer ends with the event of this number and digest.
        """
        with self.errors_named():
            self.connection.execute("ATTACH ? AS fresh", (str(path),))
            try:
                with self.writing():
                    self.require_last(last)
                    for table in TABLES:
                        self.connection.execute(f"DELETE FROM main.{table}")
                        self.connection.execute(
                            f"INSERT INTO main.{table} SELECT * FROM fresh.{table}"
                        )
                    self._appended = self.last()
                    self._guard.forget()  # of which nothing is left
            finally:
                self.connection.execute("DETACH fresh")

    def _require_whole(self, connection: sqlite3.Connection) -> None:
        """Raise unless SQLite and the digests find all of a file as it should be."""
        self.connection = connection
        with self.errors_named():
            (answer,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if answer != "ok":
                raise StoreError(answer)
            for _ in self.checked_events():
                pass

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
            raise StoreError(_damaged(self.path, "it was cut short"))

    def _migrate(self) -> None:
        """Bring a file of an older format up to this one, in one transaction."""
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        if version == FORMAT_VERSION:
            return
        with self.writing():
            (version,) = self.connection.execute("PRAGMA user_version").fetchone()
            if version < FORMAT_VERSION:  # unless another process was faster
                for statement in MIGRATION.split(";")[:-1]:
                    self.connection.execute(statement)

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn SQLite's errors into ours."""
        try:
            yield
        except ERRORS as error:
            if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None  # by Ctrl-C, which SQLite swallows
            raise _named(self.path, error) from error


def require_absent(path: str | os.PathLike[str]) -> Path:
    """Raise if there is a file under this name, or if it must not be there."""
    final = checked_path(path, "path")
    if final.exists():
        raise StoreError(f"{final}: is there already; open it, or choose another name")
    require_no_log(final)
    require_local(final)
    remove_leftovers(final.resolve().parent, final.resolve().name)
    return final


def _connected(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(
        path, timeout=WAIT, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    # Python looks for Ctrl-C when this is called, in the midst of a long query too
    connection.set_progress_handler(lambda: 0, STEPS_PER_LOOK)
    return connection


def _named(path: Path, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
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


def _damaged(path: Path, how: str) -> str:
    return (
        f"{path}: the file is damaged ({how}); take your last backup, or recover what is left with "
        f"`sqlite3 {path} .recover`"
    )
