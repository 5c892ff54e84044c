"""What a live agent's file tells: decisions, arms, what is known, tables, and how all of it stands.

The reading half of `LiveAgent`: nothing here changes what the agent knows.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isnan
from typing import Any, Self

import numpy as np

from restive.arguments import checked_count, one_line, shown, suggestion
from restive.errors import ProblemError
from restive.learn.posterior import ArmPosterior
from restive.live import explaining, learned, sql_tables, status, tokens, undoing
from restive.live.answers import Act, Alarm, ArmRow, Decision, Mistake, Status
from restive.live.clock import utc_time
from restive.live.deciding import decision_or_none
from restive.live.explaining import Why
from restive.live.journal import Event
from restive.live.learned import Entropy, FloatArray, KnownKind, Learning
from restive.live.memory import Memory
from restive.live.recording import Batch, sort_results
from restive.live.session import Session
from restive.live.settings import UNSEEN, Settings
from restive.live.sql_tables import DECIDED, Progress
from restive.live.status import Forecast, Headroom
from restive.live.tokens import Token

__all__ = ["MOST_PAGE", "ORDERS", "LiveView"]

MOST_PAGE = 1000
ORDERS = ("name", "index", "pulls", "age", "belief")  # of a list of arms
QUERIES = {  # of tables that can be exported
    "pulls": "SELECT tick, name AS arm, kind, status, state, audit, expected, recorded "
    "FROM pull JOIN arm USING (slot) JOIN prior ON arm.prior = prior.id "
    "ORDER BY tick, slot",
    "events": "SELECT seq, kind, tick, at, request, actor, body, hex(digest) AS digest FROM event "
    "ORDER BY seq",
    "arms": 'SELECT name AS arm, kind, joined, "left" FROM arm JOIN prior ON arm.prior = prior.id '
    "ORDER BY slot",
}


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

    def tick_asked(self, tick: int | None, date: str | None) -> int | None:
        """Return the tick that is asked for by its number or its date; None for neither."""
        if tick is not None and date is not None:
            words = self.settings.words
            raise ProblemError(f"give the {words.tick}'s number or its date, not both")
        return tick if date is None else self.settings.clock.tick_of(date)

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
            return decision_or_none(self._session, wanted)

    def request(self, request: str) -> Event | None:
        """Return the event of a request with this id, if there was one."""
        with self._session.reading():
            return self._session.journal.requested(request)

    def requests_like(self, beginning: str) -> list[Event]:
        """Return the events of requests whose ids are this, or this and a blank and more."""
        with self._session.reading():
            return self._session.journal.requests_like(beginning)

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
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT slot, status, state FROM pull WHERE tick = ? ORDER BY slot",
                (memory.tick if tick is None else tick,),
            )
            names = memory.roster.names
            return {names[slot]: what if state is None else state for slot, what, state in rows}

    def recorded_alone(self, tick: int) -> dict[str, int]:
        """Return, by arm, the events of a tick that hold the result of one pull alone."""
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT min(slot), recorded FROM pull WHERE tick = ? AND recorded IS NOT NULL "
                "GROUP BY recorded HAVING count(*) = 1",
                (tick,),
            )
            return {memory.roster.names[slot]: event for slot, event in rows}

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
        with self._session.reading() as memory:
            journal, label = self._session.journal, memory.settings.clock.label
            withdrawn, events = journal.withdrawn(), journal.events(kinds=("acknowledge",))
            found = [one for one in events if one.seq not in withdrawn]
            return [
                (
                    Alarm(one.body["of"], one.body["name"], one.tick, "", label(one.tick)),
                    one.body["note"],
                    one.actor,
                )
                for one in reversed(found[-limit:])
            ]

    def last_act(self) -> Act | None:
        """Return what `undo` would withdraw now; None if there is nothing."""
        with self._session.reading():
            return undoing.last_act(self._session)

    def missing_results(self, ticks: int = 8, limit: int = 200) -> list[tuple[int, str]]:
        """Return pulls of the last ticks that are over and have no result: tick and arm.

        The newest tick comes first. What is recorded for them is late, and used where it can be.
        """
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
            return _arms(self._session, after, limit, by)

    def arm(self, name: str) -> ArmRow:
        """Return one arm."""
        with self._session.reading() as memory:
            return _arm_row(memory, memory.roster.slot(name))

    def history(self, name: str, limit: int = 1000) -> list[dict[str, Any]]:
        """Return the last pulls of an arm, in the order of time."""
        with self._session.reading() as memory:
            rows = self._session.journal.connection.execute(
                "SELECT tick, status, state, audit, expected FROM pull WHERE slot = ? "
                "ORDER BY tick DESC LIMIT ?",
                (memory.roster.slot(name), limit),
            ).fetchall()
            columns = ("tick", "status", "state", "audit", "expected")
            label = memory.settings.clock.label
            return [
                {"label": label(row[0]), **dict(zip(columns, row, strict=True))}
                for row in reversed(rows)
            ]

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
            self._session.expected_tick = tick
            try:
                yield
            finally:
                self._session.expected_tick = None

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
            return _table(self._session, name, progress)

    def tokens(self) -> list[Token]:
        """Return the tokens that clients may use, without their secrets."""
        with self._session.reading():
            return tokens.tokens(self._session.journal)

    def token_of(self, secret: str) -> Token | None:
        """Return the token with this secret, unless it has ended; None if there is none."""
        with self._session.reading():
            return tokens.token_of(self._session.journal, secret, self._session.at)

    def check(self, progress: Progress | None = None) -> int:
        """Walk the whole journal; return how many events there are, or raise at the first bad one.

        The tables of pulls and arms are compared with what the events say.
        """
        with self._session.reading():
            return sql_tables.check(self._session.journal, progress)

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


def _arm_row(memory: Memory, slot: int) -> ArmRow:
    """Return an arm as an operator sees it."""
    waiting = slot >= memory.num_joined
    state = tick = index = good = None
    if not waiting:
        now = memory.open_sightings
        if slot in now:
            state, tick = now[slot], memory.tick
        elif slot in memory.ever_seen:
            state, time = memory.agent.last_seen(slot)
            tick = time - 1
        good = float(learned.belief(memory, slot)[-1])
        if memory.tick >= 0:
            (value,) = memory.agent.index_of([slot])
            index = None if isnan(value) else value
    return ArmRow(
        name=memory.roster.names[slot],
        kind=memory.roster.kind_of[slot],
        joined=memory.joined[slot],
        left=memory.gone.get(slot),
        waiting=waiting,
        last_state=state,
        last_tick=tick,
        index=index,
        good=good,
        pulls=memory.pulls.get(slot, 0),
    )


def _arms(session: Session, after: str | int | None, limit: int, by: str) -> list[ArmRow]:
    """Return a page of arms."""
    limit = checked_count(limit, "limit", 1, MOST_PAGE)
    memory = session.memory
    if by == "name":
        found = session.journal.connection.execute(
            "SELECT slot FROM arm WHERE name > ? ORDER BY name LIMIT ?",
            ("" if after is None else str(after), limit),
        )
        return [_arm_row(memory, slot) for (slot,) in found]
    if by not in ORDERS:
        raise ProblemError(f"by must be one of {', '.join(ORDERS)}, got {shown(by)}")
    skipped = 0 if after is None else checked_count(after, "after", 0)
    urgency = np.full(len(memory.roster), -np.inf)
    joined = memory.num_joined
    if by == "pulls":
        urgency[list(memory.pulls)] = list(memory.pulls.values())
    elif by == "age":
        urgency[:joined] = memory.agent.belief_state.elapsed
    elif by == "belief":
        urgency[:joined] = learned.chances_of_the_top(memory)
    elif memory.tick >= 0:
        urgency[:joined] = np.nan_to_num(memory.agent.index(), nan=-np.inf)
    urgency[list(memory.gone)] = -np.inf
    order = np.argsort(-urgency, kind="stable")
    return [_arm_row(memory, int(slot)) for slot in order[skipped : skipped + limit]]


def _table(
    session: Session, name: str, progress: Progress | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows of a table."""
    if name == "beliefs":
        return _beliefs(session.memory)
    if name not in QUERIES:
        raise ProblemError(
            f"there is no table {shown(name)}; {suggestion(name, [*QUERIES, 'beliefs'])}"
        )
    execute = session.journal.connection.execute
    (total,) = execute(f"SELECT count(*) FROM {name.removesuffix('s')}").fetchone()
    cursor, rows = execute(QUERIES[name]), []
    for row in cursor:  # one by one: whoever waits can stop it
        rows.append((*row[:3], utc_time(row[3]).isoformat(), *row[4:]) if name == "events" else row)
        if progress is not None and len(rows) % 1024 == 0:
            progress(len(rows), total)
    columns = [column[0] for column in cursor.description]
    return columns, rows


def _beliefs(memory: Memory) -> tuple[list[str], list[tuple[Any, ...]]]:
    settings = memory.settings
    columns = ["arm", "kind", "last_state", "last_tick"]
    columns += [
        f"belief_{settings.state_name(state)}" for state in range(memory.roster.most_states)
    ]
    rows = []
    for slot in range(memory.num_joined):
        if slot in memory.gone:
            continue
        row = _arm_row(memory, slot)
        law = [*learned.belief(memory, slot).tolist(), *[None] * memory.roster.most_states]
        rows.append(
            (row.name, row.kind, row.last_state, row.last_tick, *law[: memory.roster.most_states])
        )
    return columns, rows
