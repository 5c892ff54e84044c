"""A file that is open: its journal, and the memory that follows from it, kept in step.

Every call that writes takes the file's only write lock, catches up with what others have written,
and commits before it answers. If anything fails the transaction is rolled back and the memory is
dropped; the next call makes it again from the journal.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from threading import RLock
from time import perf_counter, time_ns
from typing import Any

from restive.arguments import shown
from restive.errors import ConflictError, MovedOnError, ProblemError, RestiveError, StoreError
from restive.kernels.loop.engine import NUMBERS
from restive.live.acts.forgetting import REMEMBER, remembering
from restive.live.journal.events import Event, Journal
from restive.live.journal.sql_tables import moved_on, stored_priors
from restive.live.memory import Memory
from restive.live.people.roster import Roster, arms_from_data
from restive.live.settings import Settings
from restive.live.told.summaries import Summaries

__all__ = [
    "OURS",
    "UNREADABLE",
    "Now",
    "Session",
    "Writer",
    "first_memory",
    "journalable",
    "snapshot_data",
    "snapshot_version",
    "unreadable",
]

Now = Callable[[], datetime]

COMPUTED_PER_SNAPSHOT = 20.0  # seconds of computing since the last, for each that a snapshot takes
LONG_REPLAY = 2.0  # seconds, after which the next one to open the file need not do it again
MOST_TEXT = 200
ALARMS = ("alarm", "divergence")  # events that people look at, until they are acknowledged
KEEP = (
    "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?) ON CONFLICT (seq) DO UPDATE SET at = excluded.at, "
    "version = excluded.version, body = excluded.body, digest = excluded.digest"
)
OURS = " "  # what ids of requests begin with that no caller chose
# what plain data that was damaged or edited leads to
UNREADABLE = (
    RestiveError, LookupError, TypeError, ValueError, AttributeError, ArithmeticError,
    AssertionError, RecursionError, zlib.error,
)  # fmt: skip
UNWRITABLE = re.compile("[\ud800-\udfff\0]")


def journalable(value: Any, what: str, most: int = MOST_TEXT) -> str:
    """Return a text that can be journaled, or raise."""
    if not isinstance(value, str) or not 0 < len(value) <= most:
        raise ProblemError(f"{what} must be a text of 1 to {most:,} letters, got {shown(value)}")
    if UNWRITABLE.search(value):
        raise ProblemError(f"{what} has letters that cannot be written: {shown(value)}")
    return value


class Session:
    """An open file; threads take turns.

    Parameters
    ----------
    journal
        The file.
    now
        Tells the time, as an aware datetime.
    progress
        Called with (events replayed, events to replay) while the memory is made.
    """

    def __init__(
        self,
        journal: Journal,
        now: Now | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> None:
        self.journal = journal
        self._now = now
        self._progress = progress or (lambda done, total: None)
        self._lock = RLock()
        self._pid = os.getpid()
        self._memory: Memory | None = None
        self._version: int | None = None  # of the file, when the memory last caught up
        self._spent = 0.0  # seconds of computing since the last snapshot
        self._snapshot_cost = 0.0  # seconds that one took; 0 before the first
        self._touched = False  # whether the memory is ahead of what is committed
        self.expected_tick: int | None = None  # tick of the last decision, where the caller insists
        self.summaries = Summaries()
        self.replayed = 0  # events, when the memory was made
        with self.turn(), journal.reading():
            self._memory = self._loaded()
        if self.memory.divergences:
            with self.writing():
                pass  # which journals them
        elif self._spent > LONG_REPLAY:
            with suppress(StoreError):  # of a file that is busy, or not ours to write
                self.keep_snapshot()

    @property
    def memory(self) -> Memory:
        """What follows from the journal; inside a turn."""
        if self._memory is None:
            self._memory = self._loaded()
        return self._memory

    @property
    def at(self) -> int:
        """The time, in microseconds since 1970."""
        return time_ns() // 1000 if self._now is None else round(self._now().timestamp() * 1e6)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Let one thread in at a time, of the process that opened the file."""
        if os.getpid() != self._pid:
            raise StoreError(
                f"{self.journal.name}: was opened by another process; open it again in this one"
            )
        with self._lock:
            yield

    @contextmanager
    def reading(self) -> Iterator[Memory]:
        """Yield a memory that knows all that is committed."""
        with self.turn(), self.journal.reading():
            self._catch_up()
            yield self.memory

    @contextmanager
    def writing(self) -> Iterator[Memory]:
        """Yield a memory that knows all that is committed, and commit in the end."""
        with self.turn():
            try:
                with self.journal.writing():
                    self._catch_up()
                    if self.memory.divergences:
                        body = {"decisions": self.memory.divergences, "version": _version()}
                        self.append("divergence", self.memory.tick, body, "restive")
                    began = perf_counter()
                    yield self.memory
                    self._spent += perf_counter() - began
            except BaseException:
                if self._touched:
                    self._memory = None
                raise
            finally:
                self._touched = False
            if self._spent > COMPUTED_PER_SNAPSHOT * (self._snapshot_cost or self._guessed_cost()):
                with suppress(StoreError):  # what was asked for is done: nobody should ask again
                    self.keep_snapshot()

    def touch(self) -> Memory:
        """Return the memory to change it ahead of the journal."""
        self._touched = True
        return self.memory

    def append(
        self, kind: str, tick: int, body: dict[str, Any], actor: str, request: str | None = None,
        fingerprint: bytes | None = None, *, applied: bool = False,
    ) -> Event:  # fmt: skip
        """Journal an event and apply it, unless the memory has it already."""
        if kind != "divergence":
            self.require_newest()
        memory = self.touch()
        journalable(actor, "actor")
        if kind in ALARMS:
            body = self._numbered(body)
        last = (memory.seq, memory.digest)
        event = self.journal.append(last, kind, tick, self.at, body, actor, request, fingerprint)
        if applied:
            memory.seq, memory.digest = event.seq, event.digest
        else:
            memory.apply(event, body)
        return event

    def _numbered(self, body: dict[str, Any]) -> dict[str, Any]:
        """Let no alarm have a number that one had in the file from which this one was rebuilt."""
        others = (event.body.get("number", 0) for event in self.journal.events(kinds=ALARMS))
        taken = max(others, default=0)
        known = "number" in body or self.memory.seq >= taken
        return body if known else body | {"number": taken + 1}

    def require_newest(self) -> None:
        """Raise if a rebuild has made another file of this one."""
        moved = moved_on(self.journal)
        if moved is not None:
            path = Path(self.journal.name)
            raise ConflictError(
                f"{path}: was rebuilt, and {moved} goes on where it ended; nothing was changed. "
                f"Use {moved} from now on ({path.name} is written to again only if {moved} is "
                "deleted)"
            )

    def forget_from(self, first: int) -> Memory:
        """Make the memory anew, in a transaction, after events from this one on were withdrawn."""
        self.touch()
        # one of these holds what was withdrawn: others would find that out too, and pass it over
        self.journal.connection.execute("DELETE FROM snapshot WHERE seq >= ?", (first,))
        self._memory = None
        return self.memory

    def _catch_up(self) -> None:
        memory, version = self.memory, self.journal.version()
        if version == self._version:
            return
        began = perf_counter()
        withdrawn = self.journal.withdrawn(memory.seq)
        known = next(self.journal.events(memory.seq - 1, 1), None)
        rebuilt = known is None or known.digest != memory.digest
        if rebuilt or min(withdrawn, default=memory.seq + 1) <= memory.seq:
            self._memory = None  # it knows of what somebody has withdrawn, or made anew
            self._memory = self._loaded()
        else:
            try:
                self._replay(memory, withdrawn)
            except BaseException:
                self._memory = None
                raise
        self._version = version
        self._spent += perf_counter() - began

    def _replay(self, memory: Memory, withdrawn: Set[int]) -> None:
        """Apply the events that a memory does not know yet, but for those that were withdrawn."""
        (last, _), first = self.journal.last(), memory.seq
        for event in self.journal.checked_events(memory.seq, memory.digest):
            if event.seq in withdrawn:
                memory.pass_over(event)
            else:
                memory.apply(event)
            if event.seq % 256 == 0:
                self._progress(event.seq - first, last - first)

    def _loaded(self) -> Memory:
        try:
            return self._read()
        except (RestiveError, self.journal.error):
            raise
        except UNREADABLE as error:
            raise unreadable(self.journal, error) from None

    def _read(self) -> Memory:
        began = perf_counter()
        memory = self._from_snapshot() or first_memory(self.journal)
        first = memory.seq
        self._replay(memory, self.journal.withdrawn())
        self.replayed = memory.seq - first
        self._spent = perf_counter() - began if memory.seq > first else 0.0
        return memory

    def _from_snapshot(self) -> Memory | None:
        """Return the memory of the newest snapshot that is good; None if there is none."""
        rows = self.journal.connection.execute(
            "SELECT seq, version, body, digest FROM snapshot ORDER BY seq DESC"
        ).fetchall()
        for seq, made_by, body, digest in rows:
            if min(self.journal.withdrawn(seq), default=seq + 1) <= seq:
                continue
            if made_by != snapshot_version() or sha256(body).digest() != digest:
                continue
            event = next(self.journal.events(seq - 1, 1), None)
            try:
                data = snapshot_data(body)
                if event is not None and event.digest.hex() == data["digest"]:
                    return Memory.from_data(*self._beginning_until(seq), data)
            except UNREADABLE:
                continue  # it was edited; what it was made of is there
        return None

    def _beginning_until(self, seq: int) -> tuple[Settings, Roster]:
        """Return settings and arms as they were after an event."""
        settings, roster = _beginning(self.journal, next(self.journal.events(0, 1)))
        withdrawn = self.journal.withdrawn()
        for joined in self.journal.events(kinds=("join",)):
            if joined.seq <= seq and joined.seq not in withdrawn:
                roster.add(arms_from_data(joined.body, list(roster.kinds)))
        for said in self.journal.events(kinds=("words", REMEMBER)):
            if said.seq > seq or said.seq in withdrawn:
                continue
            if said.kind == REMEMBER:
                settings = remembering(settings, said.body["ticks"])
            else:
                settings = settings.after_words(said.body)
        return settings, roster

    def _guessed_cost(self) -> float:
        """Seconds that a snapshot may take, before one was made: arms that were seen are in it."""
        return 0.01 + 2e-4 * len(self.memory.ever_seen)

    def keep_snapshot(self) -> None:
        """Keep the memory in the file, beside the one before; a cache, which may be deleted."""
        with self.turn():
            began = perf_counter()
            memory = self.memory
            body = zlib.compress(json.dumps(memory.to_data()).encode(), 1)
            row = (memory.seq, self.at, snapshot_version(), body, sha256(body).digest())
            with self.journal.writing():
                execute = self.journal.connection.execute
                execute(KEEP, row)
                execute(
                    "DELETE FROM snapshot WHERE seq NOT IN "
                    "(SELECT seq FROM snapshot ORDER BY seq DESC LIMIT 2)"
                )
            self._spent, self._snapshot_cost = 0.0, perf_counter() - began


def first_memory(journal: Journal) -> Memory:
    """Return the memory of a journal's first event."""
    event = next(journal.checked_events(), None)
    if event is None or event.kind != "init":
        raise StoreError(f"{journal.name}: holds no live agent; make it anew")
    memory = Memory(*_beginning(journal, event))
    memory.seq, memory.digest = event.seq, event.digest
    return memory


def _beginning(journal: Journal, event: Event) -> tuple[Settings, Roster]:
    body = event.body
    kinds = stored_priors(journal, body["priors"])
    roster = Roster(kinds)
    roster.add(arms_from_data(body["arms"], list(kinds)))
    return Settings.from_data(body["settings"]), roster


def unreadable(journal: Journal, error: BaseException) -> StoreError:
    """Return what is said of a file whose digests fit and whose contents cannot be."""
    return StoreError(
        f"{journal.name}: cannot be read ({error!r:.100}): it was damaged or edited; take your "
        "last backup"
    )


def snapshot_data(body: bytes) -> dict[str, Any]:
    """Return the memory that a snapshot holds, as plain data."""
    found: dict[str, Any] = json.loads(zlib.decompress(body))
    return found


class Writer:
    """Journals the events of one request: the first of them carries its id and its answer.

    Parameters
    ----------
    session
        The open file.
    actor
        Who asks.
    request
        The caller's id of the request, if it has one.
    call, content
        What is asked for: a request that is repeated has the same.
    ours
        Whether the id was made by restive, and not by the caller.
    """

    def __init__(
        self, session: Session, actor: str, request: str | None = None, call: str = "",
        content: Any = None, *, ours: bool = False,
    ) -> None:  # fmt: skip
        if isinstance(request, str) and request.startswith(OURS) and not ours:
            raise ProblemError(f"a request's id must not begin with a blank, got {shown(request)}")
        self._session = session
        self._actor = actor
        self._request = request
        self._fingerprint = None if request is None else _fingerprint(call, content)
        self._first: int | None = None  # event of this request, once there is one

    def answered(self) -> dict[str, Any] | None:
        """Return the answer that the request was given before; raise if it was another request.

        A request that was not answered yet may insist on the tick of the last decision.
        """
        session, request = self._session, self._request
        if request is not None:
            journalable(request, "a request's id")
        event = None if request is None else session.journal.requested(request)
        if event is None:
            if session.expected_tick not in (None, session.memory.tick):
                raise MovedOnError(
                    f"tick {session.expected_tick} was expected, but the last decision is of tick "
                    f"{session.memory.tick}; nothing was changed"
                )
            return None
        if event.fingerprint != self._fingerprint:
            raise ConflictError(
                f"request {request!r} was used for something else (event {event.seq}); give each "
                "request an id of its own"
            )
        answer: dict[str, Any] = event.body["answer"]
        return answer

    def append(
        self, kind: str, tick: int, body: dict[str, Any], answer: Any, *, applied: bool = False
    ) -> Event:
        """Journal an event and apply it, unless the memory has it already."""
        request, self._request = self._request, None
        if self._first is not None:  # so that all of it is undone together
            body = body | {"with": self._first}
        if request is not None:
            body = body | {"answer": answer}
        mark = None if request is None else self._fingerprint
        event = self._session.append(
            kind, tick, body, self._actor, request, mark, applied=applied
        )  # fmt: skip
        self._first = self._first or event.seq
        return event

    def finish(self, tick: int, answer: Any) -> None:
        """Journal that a request with an id was answered, if nothing else did."""
        if self._request is not None:
            self.append("again", tick, {}, answer)


def _fingerprint(call: str, content: Any) -> bytes:
    """Digest of what was asked for."""
    try:
        text = json.dumps([call, _plain(content)], sort_keys=True, default=repr)
    except (RecursionError, ValueError, TypeError):
        raise ProblemError(f"what was asked for cannot be read: {shown(content)}") from None
    return sha256(text.encode()).digest()


def _plain(content: Any) -> Any:
    """Return content with its mappings as pairs in an order of their own."""
    if isinstance(content, Mapping):
        return [[name, content[name]] for name in sorted(content)]
    return [_plain(part) for part in content] if isinstance(content, list) else content


@cache
def _version() -> str:
    return version("restive")  # which looks it up in the file system every time


def snapshot_version() -> str:
    """What must agree for a snapshot to be used."""
    return f"{_version()} numbers {NUMBERS} memory 1"
