"""A live agent's database in PostgreSQL: a schema for each agent, the same tables as in SQLite.

One writer at a time holds an advisory lock until its transaction ends; those who wait are served in
the order they came. A client that is killed loses its connection, and with it the transaction and
the lock. The sequence number of an event is the primary key: one that was not appended to the last
event could not be kept even without the lock.

Every transaction begins with a look at the last event, so a service knows at once what another one
has recorded: there is nothing to be notified of, and no notification that could be lost.

Where a connection breaks, the call ends with an error and the next call connects anew. Whether a
transaction whose COMMIT was not answered was kept, the server alone knows: whoever asks again with
the same request id finds out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from shlex import quote
from typing import Any, NamedTuple
from urllib.parse import unquote

from restive.errors import (
    BusyError,
    ConflictError,
    DiskFullError,
    ProblemError,
    RestiveError,
    StoreError,
    UnreachableError,
)
from restive.live.journal.sqlite import FORMAT_VERSION, SCHEMA

try:
    import psycopg
    from psycopg import conninfo, sql
    from psycopg import errors as found
except ImportError as error:  # it, or the library that it needs
    raise RestiveError(
        f"PostgreSQL needs {error.name or 'psycopg'}: pip install 'restive[postgres]'"
    ) from None

__all__ = [
    "Place",
    "PostgresDatabase",
    "agent_place",
    "agents_of",
    "make_schema",
    "require_no_schema",
]

MARK = "restive live agent, format "  # the comment on an agent's schema, with the format's number
AGENT = re.compile(r"(?!pg_)[A-Za-z0-9_-]{1,63}")
# Stricter than libpq: with an @, / or # in a password, parts of it would be taken for other things.
URL = re.compile(
    r"(?P<scheme>postgres(?:ql)?://)(?:(?P<user>[^@:/#]*)(?::[^@/#]*)?@)?(?P<rest>[^@?#]*)"
    r"(?:\?(?P<options>[^#]*))?(?:#(?P<agent>[^@]*))?"
)
SECRET = ("password", "secret")  # how keywords of libpq end whose values nobody may see
PORTS = re.compile("[0-9,]*")
TYPES = {
    " INTEGER": " BIGINT", " BLOB": " BYTEA", " REAL": " DOUBLE PRECISION",
    " TEXT": ' TEXT COLLATE "C"', " STRICT": "", ", WITHOUT ROWID": "",
}  # fmt: skip
LAST = "SELECT seq, digest FROM event ORDER BY seq DESC LIMIT 1"
BEGIN = (
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
    "SELECT pg_advisory_xact_lock(hashtextextended(current_schema, 0));" + LAST
)
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;" + LAST
# power: as the server is set up, but for not waiting for its disk at all
DURABILITY = {
    "power": "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'",
    "process": "SET synchronous_commit = off",
}
# Of a connection, where neither the URL nor the environment says otherwise. A machine that has
# vanished is noticed within about a minute: by us, and by the server, which lets go of its lock.
OURS = {
    "application_name": "restive", "connect_timeout": 10, "tcp_user_timeout": 30_000,
    "keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3,
}  # fmt: skip
ENVIRONMENT = {"application_name": "PGAPPNAME", "connect_timeout": "PGCONNECT_TIMEOUT"}
THEIRS = (
    "SET tcp_keepalives_idle = 30; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 3;"
)
BROKEN = (psycopg.OperationalError, psycopg.InterfaceError, found.IdleInTransactionSessionTimeout)
MOST_SAID = 200  # letters of what the server said
FETCHED = 1000  # rows at once, where there may be many


class Place(NamedTuple):
    """Where an agent is: what libpq is told, the agent's schema, and both without a password."""

    conninfo: str
    agent: str  # "" for a database as a whole
    name: str
    secret: bool  # whether there is a password in the URL


def agent_place(url: str, *, whole: bool = False) -> Place:
    """Read postgresql://USER@HOST/DATABASE#AGENT; `whole` is for a URL without #AGENT."""
    read, address = URL.fullmatch(url), url.partition("#")[0]
    try:
        parts = conninfo.conninfo_to_dict(address)
    except psycopg.Error:
        read, parts = None, {}
    if read is None or not PORTS.fullmatch(str(parts.get("port", ""))):
        # not quoted: who knows what of it is a password
        raise ProblemError(
            "this is no URL of PostgreSQL; write postgresql://USER@HOST/DATABASE#AGENT, and within "
            "a name or a password %40 for @, %2F for /, %23 for #, %25 for %"
        )
    agent, user = read["agent"] or "", read["user"]
    options = [
        one
        for one in (read["options"] or "").split("&")
        if one and not unquote(one.partition("=")[0]).endswith(SECRET)
    ]
    shown = read["scheme"] + (f"{user}@" if user else "") + read["rest"]
    shown += f"?{'&'.join(options)}" if options else ""
    if whole and agent:
        raise ProblemError(f"{shown}: leave out #{agent}: this is asked of all agents")
    if not whole and not AGENT.fullmatch(agent):
        raise ProblemError(
            f"{shown}: say which agent: {shown}#NAME, of up to 63 letters, digits, _ and -, not "
            f"beginning with pg_; `restive live list {quote(shown)}` lists those that are there"
        )
    secret = any(value for key, value in parts.items() if key.endswith(SECRET))
    return Place(address, agent, shown if whole else f"{shown}#{agent}", secret)


class Streamed(psycopg.ServerCursor[Any]):
    """Rows that come little by little; the end of the transaction lets go of them."""

    def __del__(self, *_: Any) -> None:
        pass  # nor does anybody need to be told


class Connection:
    """Speaks psycopg as `sqlite3` does: marks are ?, transactions are begun and ended by hand."""

    def __init__(self, place: Place, settings: str) -> None:
        self._place, self._settings = place, settings
        self._numbers = count(1)
        self._pid = os.getpid()
        self.raw = self._connected()

    def _connected(self) -> psycopg.Connection[Any]:
        made = _connect(self._place, autocommit=True)
        made.prepare_threshold = 1
        try:
            made.execute(
                sql.SQL("SET search_path = {};").format(sql.Identifier(self._place.agent))
                + sql.SQL(THEIRS + self._settings)
            )
        except BaseException:
            made.close()
            raise
        return made

    def begin(self, statements: str) -> Any:
        """Begin a transaction, on a new connection where the old one is broken; return the last."""
        try:
            if self.raw.closed:
                self.raw = self._connected()
            got = self.raw.execute(statements)
        except psycopg.OperationalError:
            if not self.raw.closed:
                raise
            self.raw = self._connected()  # once: nothing has been done yet
            got = self.raw.execute(statements)
        while got.nextset():
            pass
        return got.fetchone()

    def execute(self, query: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Any]:
        """Run a statement."""
        return self.raw.execute(_translated(query), values or None)

    def executemany(self, query: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run a statement for each row."""
        some = list(rows)
        if len(some) == 1:
            self.execute(query, some[0])
        elif some:
            with self.raw.cursor() as cursor:
                cursor.executemany(_translated(query), some)

    def stream(self, query: str) -> psycopg.ServerCursor[Any]:
        """Run a query whose rows are fetched little by little, in a transaction."""
        cursor = Streamed(self.raw, f"streamed{next(self._numbers)}")
        cursor.itersize = FETCHED
        return cursor.execute(query)

    def end(self, statement: str) -> None:
        """End a transaction, if there is one."""
        if not self.raw.closed:
            self.raw.execute(statement)

    def close(self) -> None:
        """Let go."""
        self.raw.close()

    def __del__(self) -> None:  # an agent that is dropped lets go, as one in a file does
        with suppress(AttributeError):
            if self._pid == os.getpid():  # to a child that was forked it does not belong
                self.raw.close()


class PostgresDatabase:
    """The schema of a live agent; as `SqliteDatabase`.

    Parameters
    ----------
    url
        postgresql://USER@HOST/DATABASE#AGENT.
    durability
        As in `Journal`; with "process" a crash of the server may lose its last half second.
    """

    error = psycopg.Error
    tell_waiting: Callable[[], None] | None = None  # as in SqliteDatabase; nobody is told here

    def __init__(self, url: str, durability: str) -> None:
        self._place = agent_place(url)
        self.name = self._place.name
        self._known: Any = None  # number and digest of the last event, as it is known here
        self._changes = 0  # by others
        with self.errors_named():
            self.connection = Connection(self._place, DURABILITY[durability])
            try:
                _require_ours(self.connection, self._place)
            except BaseException:
                self.connection.close()
                raise

    def close(self) -> None:
        """Let go."""
        self.connection.close()

    def begin(self, patience: float) -> None:
        """Begin a transaction that writes, once nobody else does."""
        wait = f"SET lock_timeout = {max(1, round(1000 * patience))};"
        try:
            self._look(self.connection.begin(wait + BEGIN))
        except BaseException:
            self.rollback()
            raise

    def begin_reading(self) -> None:
        """Begin a transaction in which nothing changes."""
        try:
            self._look(self.connection.begin(BEGIN_READING))
        except BaseException:
            self.rollback()
            raise

    def _look(self, last: Any) -> None:
        if last != self._known:
            self._known, self._changes = last, self._changes + 1

    def end_reading(self) -> None:
        """End a transaction that only read."""
        with suppress(psycopg.Error):
            self.connection.end("COMMIT")

    def commit(self, appended: tuple[int, bytes] | None) -> None:
        """End a transaction that writes; its last event, if there is one, is given."""
        self.connection.execute("COMMIT")
        self._known = self._known if appended is None else appended

    def rollback(self) -> None:
        """End a transaction and leave nothing of it."""
        with suppress(psycopg.Error):
            self.connection.end("ROLLBACK")

    def forget_acknowledged(self) -> None:
        """Do nothing: the server looks after its files."""

    def version(self) -> int:
        """Return a number that changes when somebody else has appended events."""
        return self._changes

    def probe(self) -> int:
        """Return how many bytes to try to write."""
        return 1

    def require_sound(self) -> None:
        """Do nothing: the server looks after its files."""

    @contextmanager
    def errors_named(self) -> Iterator[None]:
        """Turn psycopg's errors into ours."""
        with _errors_named(self._place):
            yield


def require_no_schema(url: str) -> None:
    """Raise if there is an agent, or anything else, under this name."""
    place = agent_place(url)
    with _errors_named(place), _connect(place) as connection:
        taken = connection.execute(
            "SELECT 1 FROM pg_namespace WHERE nspname = %s", (place.agent,)
        ).fetchone()
        if taken:
            raise StoreError(
                f"{place.name}: is there already: go on with it, or choose another name"
            )


@contextmanager
def make_schema(url: str) -> Iterator[Connection]:
    """Yield a connection to a new agent's empty tables; all is kept in the end, or nothing."""
    place = agent_place(url)
    with _errors_named(place):
        made = Connection(place, "")
        try:
            made.begin("BEGIN; SHOW server_encoding")
            (encoding,) = made.execute("SHOW server_encoding").fetchone() or ("",)
            if encoding != "UTF8":
                raise StoreError(f"{place.name}: the database's encoding is {encoding}, not UTF8")
            schema = sql.Identifier(place.agent)
            made.raw.execute(sql.SQL("CREATE SCHEMA {}").format(schema))
            made.raw.execute(_tables())
            mark = sql.Literal(f"{MARK}{FORMAT_VERSION}")
            made.raw.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(schema, mark))
            yield made
            made.execute("COMMIT")
        finally:
            made.close()  # which rolls back what was not committed


def agents_of(url: str) -> list[str]:
    """Return the names of all agents in a database."""
    place = agent_place(url, whole=True)
    with _errors_named(place), _connect(place) as connection:
        rows = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE obj_description(oid, 'pg_namespace') LIKE %s "
            'ORDER BY nspname COLLATE "C"',
            (f"{MARK}%",),
        ).fetchall()
    return [name for (name,) in rows]


def _connect(place: Place, *, autocommit: bool = False) -> psycopg.Connection[Any]:
    said = set(conninfo.conninfo_to_dict(place.conninfo))
    said |= {ours for ours, name in ENVIRONMENT.items() if name in os.environ}
    options: dict[str, Any] = {name: value for name, value in OURS.items() if name not in said}
    try:
        return psycopg.connect(
            place.conninfo, autocommit=autocommit, client_encoding="utf8", **options
        )
    except psycopg.Error as error:  # whose text may quote the URL
        raise UnreachableError(
            f"{place.name}: cannot connect ({_said(error)}); nothing was changed. Look at the URL, "
            "the password (PGPASSWORD, ~/.pgpass) and the server, then try again"
        ) from None


def _require_ours(connection: Connection, place: Place) -> None:
    row = connection.execute(
        "SELECT obj_description(oid, 'pg_namespace'), has_schema_privilege(oid, 'USAGE') "
        "FROM pg_namespace WHERE nspname = ?",
        (place.agent,),
    ).fetchone()
    if row is None:
        raise StoreError(
            f"{place.name}: there is no such agent; make one with `restive live init` or "
            "LiveAgent.create"
        )
    version = (row[0] or "").removeprefix(MARK)
    if version == row[0] or not version.isdecimal():
        raise StoreError(f"{place.name}: is a schema of another program, not of a live agent")
    if not row[1]:
        raise StoreError(
            f"{place.name}: this user may not do that; its owner can GRANT USAGE ON SCHEMA "
            f'"{place.agent}", and rights on its tables'
        )
    if int(version) != FORMAT_VERSION:
        raise StoreError(
            f"{place.name}: has format {version}, this restive reads {FORMAT_VERSION}; install the "
            "one that made it"
        )


@cache
def _tables() -> str:
    text = SCHEMA
    for ours, theirs in TYPES.items():
        text = text.replace(ours, theirs)
    return text


@cache
def _translated(query: str) -> str:
    return query.replace("?", "%s")


@contextmanager
def _errors_named(place: Place) -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise _named(place, error) from None  # whose text may quote the URL


def _named(place: Place, error: psycopg.Error) -> RestiveError:
    name, said = place.name, _said(error)
    if isinstance(error, found.LockNotAvailable | found.DeadlockDetected):
        return BusyError(f"{name}: somebody else has been writing to it for too long; try again")
    if isinstance(error, found.DiskFull):
        return DiskFullError(
            f"{name}: the server's disk is full; nothing was changed. Make room, try again"
        )
    if isinstance(error, found.UniqueViolation):
        return ConflictError(f"{name}: was written to meanwhile; nothing was changed, try again")
    if isinstance(error, found.UndefinedTable):
        return StoreError(f"{name}: its tables are gone ({said}); take your last backup")
    if isinstance(error, found.DuplicateSchema):
        return StoreError(f"{name}: is there already: go on with it, or choose another name")
    if isinstance(error, found.InsufficientPrivilege):
        return StoreError(f"{name}: this user may not do that ({said}); GRANT the right, or ask as "
                          "the agent's owner")  # fmt: skip
    if isinstance(error, found.ReadOnlySqlTransaction):
        return StoreError(f"{name}: the server takes no writes, say since it is a replica; name "
                          "the primary, or add ?target_session_attrs=read-write")  # fmt: skip
    if isinstance(error, BROKEN):
        return UnreachableError(
            f"{name}: the connection broke ({said}); what was asked for may have been done, so ask "
            "again with the same request id"
        )
    return StoreError(f"{name}: {said}")


def _said(error: psycopg.Error) -> str:
    said = " ".join(str(error).split())
    return said.rpartition("FATAL: ")[2].strip()[:MOST_SAID]  # what comes before says where
