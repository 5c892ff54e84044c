"""What a live agent's file tells: everything that changes nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from restive.arguments import checked_count, one_line
from restive.learn.posterior import ArmPosterior
from restive.live import checking, forecast, knowledge, reading, status
from restive.live.answers import Alarm, Decision, Mistake, Status
from restive.live.entropy import Entropy, entropy_over_time
from restive.live.forecast import Forecast
from restive.live.journal import Event
from restive.live.knowledge import KnownKind, Learning, Room
from restive.live.memory import Memory
from restive.live.reading import ArmRow, FloatArray
from restive.live.results import Batch, sort_results
from restive.live.session import Session
from restive.live.settings import Settings
from restive.live.tokens import Token, token_of
from restive.live.tokens import tokens as all_tokens

__all__ = ["LiveView"]


class LiveView:
    """The reading half of a `LiveAgent`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def close(self) -> None:
        """Let go of the file; everything is in it already."""
        with self._session.turn():
            self._session.journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @property
    def path(self) -> str:
        """The file."""
        return str(self._session.journal.path)

    @property
    def settings(self) -> Settings:
        """What the agent was told when its file was made."""
        return self._session.memory.settings

    @property
    def tick(self) -> int:
        """The tick of the last decision, -1 before the first."""
        with self._session.reading() as memory:
            return memory.tick

    @property
    def tick_of_arms(self) -> int:
        """The tick in which arms would join and leave now."""
        with self._session.reading() as memory:
            return self._tick_for_arms(memory)

    def _tick_for_arms(self, memory: Memory) -> int:
        clock = memory.settings.clock
        now = clock.tick_at(self._session.at) if clock.kind == "wall" else 0
        return max(now, memory.tick, 0)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arms."""
        return tuple(self._session.memory.roster.kinds)

    @property
    def num_arms(self) -> int:
        """Arms that have not left."""
        with self._session.reading() as memory:
            return memory.num_available

    def decision(self, tick: int | None = None) -> Decision | None:
        """Return the decision of a tick, by default the last; None if there is none."""
        with self._session.reading() as memory:
            wanted = memory.tick if tick is None else tick
            return reading.decision_or_none(self._session, wanted)

    def request(self, request: str) -> Event | None:
        """Return the event of a request with this id, if there was one."""
        with self._session.reading():
            return self._session.journal.requested(request)

    def mistakes(self, batches: Sequence[Batch]) -> list[Mistake]:
        """Tell which of these results could not be recorded now."""
        with self._session.reading() as memory:
            journal = self._session.journal
            found = [sort_results(journal, memory, batch).mistakes for batch in batches]
            return [mistake for some in found for mistake in some]

    def kinds_of(self, names: Sequence[str]) -> list[str]:
        """Return the kinds of arms."""
        with self._session.reading() as memory:
            return [memory.roster.kind_of[memory.roster.slot(name)] for name in names]

    def results(self, tick: int | None = None) -> dict[str, int | str]:
        """Return what is known of each arm of a decision: its state, or "open", "unseen", ..."""
        with self._session.reading() as memory:
            return reading.results(self._session, memory.tick if tick is None else tick)

    def belief(self, name: str) -> FloatArray:
        """Law of an arm's state at the last decision's tick, given all that is recorded."""
        with self._session.reading() as memory:
            return reading.belief(memory, reading.known_slot(memory, name))

    def posterior(self, name: str) -> ArmPosterior:
        """Return what is believed of an arm, given all that is recorded."""
        with self._session.reading() as memory:
            return reading.posterior(memory, reading.known_slot(memory, name))

    def forecast(self, ticks: int = 4, paths: int = 200, seed: int = 0) -> Forecast:
        """Foretell the rewards of the ticks to come, if the model is right.

        Parameters
        ----------
        ticks
            How many, after the last decision's.
        paths
            Futures that are drawn: each one is seen, learned from and decided as it would be.
        seed
            Of the draws.
        """
        with self._session.reading() as memory:
            return forecast.forecast(memory, ticks, paths, seed)

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarms that nobody has acknowledged."""
        with self._session.reading():
            return tuple(status.alarms(self._session))

    def status(self) -> Status:
        """Tell where the agent stands."""
        with self._session.reading():
            return status.status(self._session)

    def events(self, since: int = 0, limit: int | None = None) -> list[Event]:
        """Return the journal's events after number `since`."""
        since = checked_count(since, "since", 0)
        limit = None if limit is None else checked_count(limit, "limit", 0)
        with self._session.reading():
            return list(self._session.journal.events(since, limit))

    def arms(
        self, after: str | int | None = None, limit: int = 50, by: str = "name"
    ) -> list[ArmRow]:
        """Return a page of arms.

        Parameters
        ----------
        after
            The name of the last arm of the page before; for other orders, how many to pass over.
        limit
            Arms on a page, at most 1,000.
        by
            "name", "index" (the most urgent first), "pulls" (the most), "age" (not seen for
            longest), or "belief" (the most likely in the top state).
        """
        with self._session.reading():
            return reading.arms(self._session, after, limit, by)

    def arm(self, name: str) -> ArmRow:
        """Return one arm."""
        with self._session.reading() as memory:
            return reading.arm_row(self._session, memory.roster.slot(name))

    def history(self, name: str, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the last pulls of an arm, in the order of time."""
        with self._session.reading() as memory:
            return reading.history(self._session, memory.roster.slot(name), limit)

    def rewards(self) -> list[dict[str, Any]]:
        """Return reward and forecast of every tick that was decided."""
        with self._session.reading():
            return status.rewards(self._session)

    @contextmanager
    def expecting(self, tick: int | None) -> Iterator[None]:
        """Refuse what would write here, unless the last decision is of this tick; None: never.

        A request that was answered before is answered again in any case.
        """
        with self._session.turn():
            self._session.expected = tick
            try:
                yield
            finally:
                self._session.expected = None

    def require_writable(self) -> None:
        """Raise unless the file can be written now and has room; nothing is changed."""
        with self._session.turn():
            self._session.journal.require_room()

    @property
    def events_replayed(self) -> int:
        """How many events were replayed when the file was opened."""
        return self._session.replayed

    def snapshot_age(self) -> float | None:
        """Seconds since the last snapshot was made; None if there is none."""
        with self._session.reading():
            return status.snapshot_age(self._session)

    def known(self) -> list[KnownKind]:
        """Return what is known of each kind of arms."""
        with self._session.reading() as memory:
            return knowledge.known_by_kind(memory)

    def prior(self, name: str) -> ArmPosterior:
        """Return what was believed of an arm's kind before anything was seen."""
        with self._session.reading() as memory:
            return reading.prior_of(memory, memory.roster.slot(name))

    def entropy(self) -> list[Entropy]:
        """Return how uncertain the arms of each kind with a finite prior were, over time."""
        with self._session.reading():
            return entropy_over_time(self._session)

    def room(self) -> Room | None:
        """Compare what was earned with what could be; None where arms pay without being pulled."""
        with self._session.reading():
            return knowledge.room_left(self._session)

    def learning(self) -> Learning:
        """Tell how learning stands: the episode, and the system that it draws on."""
        with self._session.reading() as memory:
            return knowledge.learning(memory)

    def to_pandas(self, table: str = "pulls") -> Any:
        """Return "pulls", "events", "arms" or "beliefs" as a data frame."""
        import pandas

        columns, rows = self.table(table)
        return pandas.DataFrame(rows, columns=columns)

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns and rows of "pulls", "events", "arms" or "beliefs"."""
        with self._session.reading():
            return reading.table(self._session, name)

    def tokens(self) -> list[Token]:
        """Return the tokens that clients may use, without their secrets."""
        with self._session.reading():
            return all_tokens(self._session.journal)

    def token_of(self, secret: str) -> Token | None:
        """Return the token with this secret, unless it has ended; None if there is none."""
        with self._session.reading():
            return token_of(self._session.journal, secret, self._session.at)

    def check(self) -> int:
        """Walk the whole journal; return how many events there are, or raise at the first bad one.

        The tables of pulls and arms are compared with what the events say.
        """
        with self._session.reading():
            return checking.check(self._session.journal)

    def snapshot(self) -> None:
        """Keep a snapshot now, for a quick opening; else they are made when they are worth it."""
        self._session.keep_snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the file as it is now, while others may write to it."""
        with self._session.turn():
            self._session.journal.backup(path)

    def __repr__(self) -> str:
        own = type(self).__name__
        return one_line(f"{own}({self.path!r}, tick {self.tick})", f"{own}(tick {self.tick})")
