"""What a live agent's file tells: decisions, arms, what is known, tables, and how all of it stands.

The reading half of `LiveAgent`: nothing here changes what the agent knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

from restive.arguments import checked_count, one_line, shown
from restive.errors import ProblemError
from restive.learn.posterior import ArmPosterior
from restive.live import checking
from restive.live.acts import undoing
from restive.live.acts.deciding import decision_or_none
from restive.live.acts.given import checked_names
from restive.live.acts.recording import Batch, SortedResults, checked_batches, sort_results
from restive.live.journal import tokens
from restive.live.journal.events import Event
from restive.live.journal.sql_tables import DECIDED, Progress, left_with, moved_on
from restive.live.journal.tokens import Token
from restive.live.memory import Memory
from restive.live.session import Session, journalable
from restive.live.settings import UNSEEN, Settings
from restive.live.told import explaining, learned, status
from restive.live.told.answers import Act, Alarm, ArmRow, Decision, Mistake, Status
from restive.live.told.explaining import Why
from restive.live.told.how_long import remembered
from restive.live.told.learned import Entropy, FloatArray, KnownKind, Learning
from restive.live.told.listing import MOST_PAGE, ORDERS, arm_row, arm_rows, table_rows
from restive.live.told.status import Forecast, Headroom
from restive.live.told.summaries import RewardTable
from restive.logs.forgetting import ForgettingAdvice

__all__ = ["MOST_PAGE", "ORDERS", "LiveView"]


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
        return self._session.journal.name

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

    def tick_asked(self, tick: int | None, date: str | None) -> int | None:
        """Return the tick that is asked for by its number or its date; None for neither."""
        if tick is not None and date is not None:
            words = self.settings.words
            raise ProblemError(f"give the {words.tick}'s number or its date, not both")
        return tick if date is None else self.settings.clock.tick_named(date)

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
        asked = None if tick is None else checked_count(tick, "tick", 0)
        with self._session.reading() as memory:
            wanted = memory.tick if asked is None else asked
            return decision_or_none(self._session, wanted)

    def request(self, request: str) -> Event | None:
        """Return the event of a request with this id, if there was one."""
        journalable(request, "a request's id")
        with self._session.reading():
            return self._session.journal.requested(request)

    def requests_like(self, beginning: str) -> list[Event]:
        """Return the events of requests whose ids are this, or this and a blank and more."""
        journalable(beginning, "a request's id")
        with self._session.reading():
            return self._session.journal.requests_like(beginning)

    def mistakes(self, batches: Sequence[Batch]) -> list[Mistake]:
        """Tell which of these results could not be recorded now."""
        return [mistake for one in self._sorted(batches) for mistake in one.mistakes]

    def adds(self, batches: Sequence[Batch]) -> bool:
        """Whether some of these results could be recorded now and are not there."""
        return any(one.adds for one in self._sorted(batches))

    def _sorted(self, batches: Sequence[Batch]) -> list[SortedResults]:
        checked_batches(batches)
        with self._session.reading() as memory:
            return [sort_results(self._session.journal, memory, batch) for batch in batches]

    def kinds_of(self, names: Sequence[str]) -> list[str]:
        """Return the kinds of arms."""
        if isinstance(names, str) or not isinstance(names, Sequence):
            raise ProblemError(f"names must be a list of names, got {shown(names)}")
        with self._session.reading() as memory:
            return [memory.roster.kind_of[memory.roster.slot(name)] for name in names]

    def num_states(self, name: str) -> int:
        """Return the number of states of an arm."""
        with self._session.reading() as memory:
            return memory.roster.num_states(memory.roster.slot(name))

    @property
    def top_state(self) -> str:
        """What a person reads of the state with the highest number."""
        with self._session.reading() as memory:
            sizes = {
                memory.roster.num_states(slot) for slot in range(min(len(memory.roster), 1000))
            }
            names = memory.settings.has_names and len(sizes) == 1
            return memory.settings.state_text(max(sizes) - 1) if names else "the top state"

    def results(self, tick: int | None = None) -> dict[str, int | str]:
        """Return what is known of each arm of a decision: its state, or "open", "unseen", ..."""
        asked = None if tick is None else checked_count(tick, "tick", 0)
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT slot, status, state FROM pull WHERE tick = ? ORDER BY slot",
                (memory.tick if asked is None else asked,),
            )
            names = memory.roster.names
            return {names[slot]: what if state is None else state for slot, what, state in rows}

    def outcome_words(self, tick: int) -> dict[str, str]:
        """Return, by arm, what a results file says of pulls of a tick that were told of."""
        found = self.results(tick)
        told = {arm: result for arm, result in found.items() if result != "open"}
        left = {arm for arm, of in self.left_with(list(told)).items() if of == tick}
        with self._session.reading() as memory:
            word = memory.settings.outcome_word
            missing = {
                memory.roster.names[slot]
                for (slot,) in self._session.journal.connection.execute(
                    "SELECT slot FROM pull WHERE tick = ? AND recorded IS NULL", (tick,)
                )
            }
        return {
            arm: word("leave" if arm in left else result)
            for arm, result in told.items()
            if arm in left or arm not in missing
        }

    def left_with(self, names: Iterable[str]) -> dict[str, int]:
        """Return, for arms that left by a result ("leave"), the tick which that was of."""
        with self._session.reading() as memory:
            slots = {memory.roster.slot(name): name for name in checked_names(names, "names")}
            found = left_with(self._session.journal, memory.gone, slots)
            return {slots[slot]: tick for slot, tick in found.items()}

    def names_left(self, names: Iterable[str]) -> list[str]:
        """Return those of these names under which an arm has left."""
        with self._session.reading() as memory:
            slots = memory.roster.slots
            return [
                name for name in checked_names(names, "names") if slots.get(name) in memory.gone
            ]

    def uncalled(self, tick: int) -> set[str]:
        """Return those on a list who have left since and have no result: nobody shall call them."""
        return set(self.names_left(self.results(tick))).difference(self.outcome_words(tick))

    def names_like(self, text: str) -> list[str]:
        """Return the names of arms that begin with this, in capitals or not, in their order."""
        if not isinstance(text, str):
            raise ProblemError(f"the beginning of a name must be a text, got {shown(text)}")
        begins = text.casefold()
        with self._session.reading() as memory:
            names = memory.roster.names
            return sorted(name for name in names if name.casefold().startswith(begins))

    def names_but_for_capitals(self, name: str) -> list[str]:
        """Return the names that are this one, or differ from it by capitals alone."""
        if not isinstance(name, str):
            raise ProblemError(f"a name must be a text, got {shown(name)}")
        with self._session.reading() as memory:
            return list(memory.roster.same_but_for_capitals(name))

    def changeable(self) -> dict[tuple[int, str], int]:
        """Return, by tick and arm, results that `change` can replace now: the events of their acts.

        `undo` can take back each of these acts as a whole.
        """
        with self._session.reading() as memory:
            names = memory.roster.names
            found = undoing.changeable(self._session)
            return {(tick, names[slot]): event for (tick, slot), event in found.items()}

    def belief(self, name: str) -> FloatArray:
        """Law of an arm's state at the last decision's tick, given all that is recorded."""
        with self._session.reading() as memory:
            return learned.belief(memory, learned.known_slot(memory, name))

    def posterior(self, name: str) -> ArmPosterior:
        """Return what is believed of an arm, given all that is recorded."""
        with self._session.reading() as memory:
            return learned.posterior(memory, learned.known_slot(memory, name))

    def explain(self, name: str) -> Why:
        """Explain why an arm is on the list of the last decision, or is not.

        `print` says it in the operators' words; the numbers are fields.
        """
        with self._session.reading():
            return explaining.why(self._session, name)

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
            return status.forecast(memory, ticks, paths, seed)

    def alarms(self) -> tuple[Alarm, ...]:
        """Return the alarms that nobody has acknowledged."""
        with self._session.reading():
            return tuple(status.alarms(self._session))

    def answered_alarms(self, limit: int) -> list[tuple[Alarm, str, str]]:
        """Return alarms that somebody has looked at, the newest first: what was found, by whom."""
        limit = checked_count(limit, "limit")
        with self._session.reading() as memory:
            journal, label = self._session.journal, memory.settings.clock.label
            withdrawn, events = journal.withdrawn(), journal.events(kinds=("acknowledge",))
            found = [(one, one.body) for one in events if one.seq not in withdrawn]
            return [
                (Alarm(b["of"], b["name"], one.tick, "", label(one.tick)), b["note"], one.actor)
                for one, b in reversed(found[-limit:])
            ]

    def moved_on(self) -> str | None:
        """Return the file that goes on where this one ended, if a rebuild has made one."""
        with self._session.reading():
            return moved_on(self._session.journal)

    def require_newest(self) -> None:
        """Raise if a rebuild has made another file of this one."""
        with self._session.reading():
            self._session.require_newest()

    def last_act(self) -> Act | None:
        """Return what `undo` would withdraw now; None if there is nothing."""
        with self._session.reading():
            return undoing.last_act(self._session)

    def missing_results(self, ticks: int = 8, limit: int = 200) -> list[tuple[int, str]]:
        """Return pulls of the last ticks that are over and have no result: tick and arm.

        The newest tick comes first. What is recorded for them is late, and used where it can be.
        """
        ticks, limit = checked_count(ticks, "ticks", 0), checked_count(limit, "limit", 0)
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT tick, slot FROM pull WHERE tick >= ? AND tick < ? AND status = ? AND "
                f"recorded IS NULL AND {DECIDED} ORDER BY tick DESC, slot LIMIT ?",
                (memory.tick - ticks, memory.tick, UNSEEN, limit),
            ).fetchall()
            gone, names = memory.gone, memory.roster.names
            return [(tick, names[slot]) for tick, slot in rows if slot not in gone]

    def status(self) -> Status:
        """Tell where the agent stands."""
        with self._session.reading():
            return status.status(self._session)

    def advised_forgetting(self) -> ForgettingAdvice | None:
        """Find out whether the arms change, and how long to remember; None if it cannot be told.

        It takes longer than `status`, which is asked often, and so it is not a part of that.
        """
        with self._session.reading():
            return remembered(self._session)

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
            return arm_rows(self._session, after, limit, by)

    def arm(self, name: str) -> ArmRow:
        """Return one arm."""
        with self._session.reading() as memory:
            return arm_row(memory, memory.roster.slot(name))

    def history(self, name: str, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the last pulls of an arm, in the order of time."""
        limit = checked_count(limit, "limit", 0)
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT tick, status, state, audit, expected, recorded FROM pull WHERE slot = ? "
                "ORDER BY tick DESC LIMIT ?",
                (memory.roster.slot(name), limit),
            ).fetchall()
            columns = ("tick", "status", "state", "audit", "expected")
            label = memory.settings.clock.label
            return [
                {"label": label(row[0]), **dict(zip(columns, row, strict=False))}
                | {"told": row[-1] is not None}
                for row in reversed(rows)
            ]

    def rewards(self) -> list[dict[str, Any]]:
        """Return reward and forecast of every tick that was decided."""
        with self._session.reading():
            return status.rewards(self._session)

    def reward_table(self) -> RewardTable:
        """Return the same as arrays, quickly."""
        with self._session.reading():
            return self._session.summaries.rewards(self._session)

    @contextmanager
    def expecting(self, tick: int | None) -> Iterator[None]:
        """Refuse what would write here, unless the last decision is of this tick; None: never.

        A request that was answered before is answered again in any case.
        """
        with self._session.turn():
            self._session.expected_tick = tick
            try:
                yield
            finally:
                self._session.expected_tick = None

    def wait_for_others(self, seconds: float) -> None:
        """Wait so long, and no longer, where another process writes to the file; then BusyError."""
        self._session.journal.patience = seconds

    def require_writable(self) -> None:
        """Raise unless the file can be written now and has room; nothing is changed."""
        with self._session.turn():
            self._session.journal.require_space()

    @property
    def events_replayed(self) -> int:
        """How many events were replayed when the file was opened."""
        return self._session.replayed

    def snapshot_age(self) -> float | None:
        """Seconds since the last snapshot was made; None if there is none."""
        with self._session.reading():
            session = self._session
            (made,) = session.journal.connection.execute("SELECT max(at) FROM snapshot").fetchone()
            return None if made is None else (session.at - made) / 1e6

    def known(self) -> list[KnownKind]:
        """Return what is known of each kind of arms."""
        with self._session.reading() as memory:
            return learned.known_by_kind(memory)

    def prior(self, name: str) -> ArmPosterior:
        """Return what was believed of an arm's kind before anything was seen."""
        with self._session.reading() as memory:
            return learned.prior_of(memory, memory.roster.slot(name))

    def entropy(self) -> list[Entropy]:
        """Return how uncertain the arms of each kind with a finite prior were, over time."""
        with self._session.reading():
            return learned.entropy_over_time(self._session)

    def headroom(self) -> Headroom | None:
        """Compare what was earned with what could be; None where arms pay without being pulled."""
        with self._session.reading():
            return status.headroom(self._session)

    def learning(self) -> Learning:
        """Tell how learning stands: the episode, and the system that it draws on."""
        with self._session.reading() as memory:
            return learned.learning(memory)

    def to_pandas(self, table: str = "pulls") -> Any:
        """Return "pulls", "events", "arms" or "beliefs" as a data frame."""
        import pandas

        columns, rows = self.table(table)
        return pandas.DataFrame(rows, columns=columns)

    def table(
        self, name: str, progress: Progress | None = None
    ) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns and rows of "pulls", "events", "arms" or "beliefs".

        `progress` is called with (rows read, rows that are there).
        """
        with self._session.reading():
            return table_rows(self._session, name, progress)

    def tokens(self) -> list[Token]:
        """Return the tokens that clients may use, without their secrets."""
        with self._session.reading():
            return tokens.tokens(self._session.journal)

    def token_of(self, secret: str, *, session: bool = False) -> Token | None:
        """Return the token with this secret, or with a session that has it; None if it ended."""
        find = tokens.token_of_session if session else tokens.token_of
        with self._session.reading():
            return find(self._session.journal, secret, self._session.at)

    def sign_in(self, secret: str, days: float) -> str:
        """Begin a session with a token; return its secret, which is good for some days."""
        with self._session.turn(), self._session.journal.writing():
            return tokens.begin_session(self._session.journal, secret, self._session.at, days)

    def sign_out(self, session: str) -> None:
        """End a session."""
        with self._session.turn(), self._session.journal.writing():
            tokens.end_session(self._session.journal, session)

    def check(self, progress: Progress | None = None) -> int:
        """Walk the whole journal; return how many events there are, or raise at the first bad one.

        The events are replayed, and all else in the file compared with what they lead to. What
        somebody changed who then computed all digests anew is not found.
        """
        with self._session.reading():
            return checking.check(self._session.journal, progress)[0]

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
