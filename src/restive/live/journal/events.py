"""The journal: what happened, one event after the other, in a SQLite file or in PostgreSQL.

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
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from hashlib import sha256
from json.encoder import encode_basestring as quoted
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from restive.arguments import shown
from restive.errors import ConflictError, ProblemError, StoreError
from restive.files import replacing
from restive.live.journal.sqlite import TABLES, SqliteDatabase, require_no_file

if TYPE_CHECKING:
    from restive.live.journal.postgres import PostgresDatabase

__all__ = ["RARE", "STANDING", "UNDO", "Event", "Journal", "as_text", "require_absent"]

DURABILITIES = ("power", "process")
WAIT = 10.0  # seconds for another writer
PAGE = 256  # events that are fetched at once
UNDO = "undo"  # kind of events that withdraw others
REBUILD = "rebuild"  # who did what a rebuild took over
FIRST = b""  # digest before the first event
INSERT = "INSERT INTO event VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
COLUMNS = "seq, kind, tick, at, request, fingerprint, actor, body, digest"

RARE = "kind NOT IN ('decide', 'record')"  # as the index has it, or SQLite does not use it
# of `event`, in queries: what was not withdrawn
STANDING = "NOT EXISTS (SELECT 1 FROM withdrawn WHERE withdrawn.seq = event.seq)"

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
        The file, which must be there, or postgresql://USER@HOST/DATABASE#AGENT.
    durability
        "power": what was acknowledged survives a power cut; "process": it survives a kill.
    temporary
        Whether nobody else knows of the file yet: nothing is acknowledged.
    """

    def __init__(
        self, path: str | os.PathLike[str], durability: str = "power", *, temporary: bool = False
    ) -> None:
        if durability not in DURABILITIES:
            raise ProblemError(f"durability must be 'power' or 'process', got {shown(durability)}")
        self.patience = WAIT  # seconds for another writer
        self._appended: tuple[int, bytes] | None = None  # the last event of the transaction
        self.database: SqliteDatabase | PostgresDatabase
        if is_url(path):
            from restive.live.journal.postgres import PostgresDatabase

            self.database = PostgresDatabase(str(path), durability)
        else:
            self.name = str(path)  # should the file be damaged
            self.database = SqliteDatabase(path, durability, temporary, self._require_good)
        self.name = self.database.name  # in messages, without a password
        self.connection: Any = self.database.connection

    prepare = staticmethod(SqliteDatabase.prepare)

    @property
    def error(self) -> type[Exception]:
        """What the database raises, which `errors_named` turns into ours."""
        return self.database.error

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction: what is done in it is kept as a whole when it ends, or not at all."""
        with self.errors_named():
            self._appended = None
            self.database.begin(self.patience)
            try:
                yield
                self.commit()
            except BaseException:
                self.database.rollback()
                raise

    def commit(self) -> None:
        """End the transaction: what was done in it is kept from now on."""
        self.database.commit(self._appended)

    def require_space(self) -> None:
        """Raise unless a transaction can be begun and written; it is rolled back."""
        row = ("probe", "x" * self.database.probe())
        with suppress(_UndoneError), self.writing():
            self.connection.execute("INSERT INTO meta VALUES (?, ?)", row)
            raise _UndoneError

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction in which the database does not change."""
        with self.errors_named():
            self.database.begin_reading()
            try:
                yield
            finally:
                self.database.end_reading()

    def errors_named(self) -> AbstractContextManager[None]:
        """Turn the database's errors into ours."""
        return self.database.errors_named()

    def last(self) -> tuple[int, bytes]:
        """Return the number and digest of the last event."""
        row = self.connection.execute(
            "SELECT seq, digest FROM event ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        return (0, FIRST) if row is None else row

    def version(self) -> int:
        """Return a number that changes when somebody else has appended events."""
        return self.database.version()

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
        query = f"SELECT {COLUMNS} FROM event WHERE seq > ? {where} ORDER BY seq LIMIT ?"
        while limit is None or limit > 0:
            most = PAGE if limit is None else min(limit, PAGE)
            rows = self.connection.execute(query, (after, *kinds, most)).fetchall()
            yield from map(Event._make, rows)
            if len(rows) < most:
                return
            after, limit = rows[-1][0], None if limit is None else limit - most

    def latest(self) -> Iterator[Event]:
        """Yield events from the last one back, without looking at their digests."""
        before, most = self.last()[0] + 1, 8
        query = f"SELECT {COLUMNS} FROM event WHERE seq < ? ORDER BY seq DESC LIMIT ?"
        while rows := self.connection.execute(query, (before, most)).fetchall():
            yield from map(Event._make, rows)
            before, most = rows[-1][0], PAGE

    def checked_events(self, after: int = 0, before: bytes = FIRST) -> Iterator[Event]:
        """Yield the events that follow one with this number and digest; raise where one is bad."""
        expected = after
        for event in self.events(after):
            expected += 1
            if event.seq != expected or event.expected_digest(before) != event.digest:
                raise StoreError(
                    f"{self.name}: event {expected} was damaged or edited; `restive live check "
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
        """Write a file with all that is there now, while others may write to it."""
        if isinstance(self.database, SqliteDatabase):
            self.database.backup(path)
        else:
            copy_journal(self, path)

    def require_last(self, last: tuple[int, bytes]) -> None:
        """Raise unless the file ends with the event of this number and digest."""
        if self.last() != last:
            raise ConflictError(
                f"{self.name}: was written to meanwhile; nothing was changed, try again"
            )

    def replace_contents(self, last: tuple[int, bytes], path: Path) -> None:
        """Take over all tables of a file, in one transaction.

        Raises if this one no longer ends with the event of this number and digest.
        """
        fresh = Journal(path, temporary=True)
        try:
            with self.writing():
                self.require_last(last)
                for table in reversed(TABLES):
                    self.connection.execute(f"DELETE FROM {table}")
                self.take_over(fresh)
                self._appended = self.last()
                self.database.forget_acknowledged()  # of which nothing is left
        finally:
            fresh.close()

    def take_over(self, other: Journal) -> None:
        """Copy all rows of another journal into tables that are empty, in a transaction."""
        for table in TABLES:
            copy_rows(other.connection, self.connection, table)

    def _require_good(self, connection: Any) -> None:
        """Raise unless the digests of all events fit; the database is not open yet."""
        self.connection = connection
        for _ in self.checked_events():
            pass


def copy_journal(source: Journal, target: str | os.PathLike[str]) -> tuple[int, bytes]:
    """Copy an agent into a new file or schema; return number and digest of its last event."""
    require_absent(target)
    with source.reading(), empty_tables(target) as connection:
        for table in TABLES:
            copy_rows(source.connection, connection, table)
        return source.last()


@contextmanager
def empty_tables(target: str | os.PathLike[str]) -> Iterator[Any]:
    """Yield a connection to the tables of a new agent; they are there whole or not at all."""
    if is_url(target):
        from restive.live.journal.postgres import make_schema

        with make_schema(str(target)) as connection:
            yield connection
        return
    with replacing(target) as temporary:
        Journal.prepare(temporary)
        copy = Journal(temporary, temporary=True)
        try:
            with copy.writing():
                yield copy.connection
        finally:
            copy.close()


@contextmanager
def new_file(target: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield an empty file to make an agent in; it becomes the target when all is written."""
    if not is_url(target):
        with replacing(target) as temporary:
            yield temporary
        return
    with TemporaryDirectory() as folder:
        path = Path(folder) / "agent.db"
        path.touch()
        yield path
        made = Journal(path, temporary=True)
        try:
            copy_journal(made, target)
        finally:
            made.close()


def is_url(path: str | os.PathLike[str]) -> bool:
    """Whether a place is in PostgreSQL."""
    return isinstance(path, str) and path.startswith(("postgresql://", "postgres://"))


def copy_rows(source: Any, target: Any, table: str) -> None:
    """Copy all rows of a table between connections into one that is empty, in transactions."""
    rows = source.stream(f"SELECT * FROM {table}")
    marks = ",".join("?" * len(rows.description))
    for some in iter(lambda: rows.fetchmany(PAGE), []):
        target.executemany(f"INSERT INTO {table} VALUES ({marks})", some)
    rows.close()


def require_absent(path: str | os.PathLike[str]) -> None:
    """Raise if there is something under this name, or if it must not be there."""
    if is_url(path):
        from restive.live.journal.postgres import require_no_schema

        require_no_schema(str(path))
    else:
        require_no_file(path)
