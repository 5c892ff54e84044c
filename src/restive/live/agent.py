"""A live agent: one file that operators run for months.

    live = rs.LiveAgent.create("calls.db", prior=prior, num_pulls=200, seed=7,
                               clock=rs.Clock.wall("2026-11-16", "P7D", zone="Asia/Kolkata"))
    decision = live.decide()                      # the same answer until the next tick
    live.record({"A17": 1, "B02": 0})             # in parts, twice, late: as it comes

What a call has acknowledged survives a kill at any moment. The decisions that follow are those that
would have followed without the kill, to the bit. Any number of processes and threads may use one
file. A client that was killed asks for the open decision and continues from there: the file knows
more than its own memory does.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from restive.agents.snapshots import prior_to_data
from restive.arguments import checked_count
from restive.arm_posterior import ArmPosterior
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.files import replacing
from restive.live import checking, deciding, forecast, reading, recording
from restive.live.answers import Alarm, Decision, Mistake, Receipt, Status
from restive.live.bodies import joining
from restive.live.clock import Clock
from restive.live.contents import enter_arms
from restive.live.forecast import Forecast
from restive.live.journal import Event, Journal, as_text, require_absent
from restive.live.memory import Memory
from restive.live.reading import ArmRow, FloatArray
from restive.live.recording import Writer
from restive.live.results import Batch
from restive.live.roster import LONG_AGO, NewArm, Roster, arms_of_prior
from restive.live.session import Now, Session, fingerprint_of
from restive.live.settings import Settings
from restive.prior import IndependentPrior, JointPrior

__all__ = ["LiveAgent"]

PYTHON = "python"


class LiveAgent:
    """A durable agent; made by `create` or `open`."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        prior: Any,
        num_pulls: int,
        policy_mapping: str = "whittle",
        clock: Clock | None = None,
        seed: int = 0,
        *,
        names: Sequence[str] | None = None,
        start: BeliefState | None = None,
        audit_pulls: int = 0,
        missing: str | None = None,
        outcomes: Mapping[str, int | str] | None = None,
        states: Sequence[str] = (),
        mixing_time: int | None = None,
        max_elapsed: int | None = None,
        durability: str = "power",
        actor: str = PYTHON,
        now: Now | None = None,
    ) -> LiveAgent:
        """Make the file of a new agent, which learns by TSDE, and open it.

        Parameters
        ----------
        path
            The file; it must not be there yet, nor lie on a network file system.
        prior
            What the arms may be: an `IndependentPrior`, a `JointPrior`, or what `load_prior`
            returned, with names, kinds and what was seen of each arm.
        num_pulls
            Arms pulled each tick, N.
        policy_mapping
            A registered name.
        clock
            When a tick passes; with each decision by default.
        seed
            Of the agent's own draws.
        names
            The arms' names; "0", "1", ... by default.
        start
            When and in which state each arm was last seen before tick 0; by default nothing is
            known, and each arm follows its long-run law.
        audit_pulls
            Of the N arms, how many are drawn evenly among all: the only look at arms that the
            policy avoids.
        missing
            Needed where pulling changes how arms move, since a pull that was made and not seen
            then leaves (state, age) behind: "refuse" (a tick ends when all its pulls have a
            result) or "as-not-pulled" (approximate).
        outcomes
            What results files say, and what it means: a state's number, "unseen", "not-pulled" or
            "leave".
        states
            Names of states that results files may use.
        mixing_time, max_elapsed
            As in `TSDE`.
        durability
            "power": what was acknowledged survives a power cut; "process": it survives a kill.
        actor
            Who does this, for the journal.
        now
            Tells the time, for tests: a function that returns an aware datetime.
        """
        kinds, arms = arms_of_prior(prior, names, start)
        settings = Settings(
            num_pulls, policy_mapping, clock or Clock.calls(), seed, audit_pulls, missing,
            dict(outcomes or {}), tuple(states), mixing_time, max_elapsed,
        )  # fmt: skip
        return cls.create_with(path, settings, kinds, arms, durability, actor, now)

    @classmethod
    def create_with(
        cls,
        path: str | os.PathLike[str],
        settings: Settings,
        kinds: Mapping[str, Any],
        arms: Sequence[NewArm],
        durability: str = "power",
        actor: str = PYTHON,
        now: Now | None = None,
        parent: str | None = None,
    ) -> LiveAgent:
        """Make the file of a new agent from settings, kinds and arms, and open it."""
        roster = Roster(kinds)
        roster.checked(arms)
        roster.add(arms)
        if not roster.moves_alike and settings.missing is None:
            raise ProblemError(
                "pulling changes how some arms move, so say what a pull without a result means: "
                "missing='refuse' or missing='as-not-pulled'"
            )
        Memory(settings, roster)  # finds what is wrong before there is a file
        require_absent(path)
        with replacing(path) as temporary:
            Journal.prepare(temporary)
            journal = Journal(temporary)
            try:
                _write_first(journal, settings, roster, arms, actor, parent, now)
            finally:
                journal.close()
        return cls.open(path, durability, now=now)

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        durability: str = "power",
        *,
        now: Now | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> LiveAgent:
        """Open the file of an agent: it continues where it left off, to the bit.

        Parameters
        ----------
        path
            The file.
        durability, now
            As in `create`.
        progress
            Called with (events replayed, events to replay).
        """
        return cls(Session(Journal(path, durability), now, progress))

    def close(self) -> None:
        """Let go of the file; everything is in it already."""
        with self._session.turn():
            self._session.journal.close()

    def __enter__(self) -> LiveAgent:
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
    def kinds(self) -> tuple[str, ...]:
        """The kinds of arms."""
        return tuple(self._session.memory.roster.kinds)

    # ------------------------------------------------------------ what changes the file

    def decide(
        self,
        request: str | None = None,
        tick: int | None = None,
        num_pulls: int | None = None,
        unavailable: Iterable[str] = (),
        *,
        skip: bool = False,
        actor: str = PYTHON,
    ) -> Decision:
        """Return the arms to pull now. Asked again in the same tick, the answer is the same.

        A new tick closes the one before: results that are missing become unseen, ticks in which
        nobody called pass, and arms that were waiting join.

        Parameters
        ----------
        request
            Your id of this request: sent again, it is given the same answer.
        tick
            Which tick, for a clock that is given; for others the tick that you expect.
        num_pulls
            Pull this many arms instead of N.
        unavailable
            Names of arms that cannot be pulled in this tick.
        skip
            Let more than a million missed ticks pass.
        actor
            Who asks, for the journal.
        """
        session = self._session
        out = sorted(_names(unavailable, "unavailable"))
        mark = fingerprint_of("decide", [tick, num_pulls, out])
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return reading.decision(session, answer["decision"])
            now = deciding.tick_now(session, memory, tick)
            if now == memory.tick:
                deciding.ring(session, memory)
                Writer(session, actor, request, mark).finish(now, {"decision": now})
            else:
                deciding.decide(
                    session, memory, now, num_pulls, out, skip=skip, actor=actor, request=request,
                    fingerprint=mark,
                )  # fmt: skip
            return reading.decision(session, now)

    def record(
        self,
        results: Mapping[str, Any],
        tick: int | None = None,
        *,
        instead: Mapping[str, int] | None = None,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Receipt:
        """Record what was seen: all of it, or nothing if a result cannot be.

        Parameters
        ----------
        results
            By arm: its state, "unseen" (pulled, result not known), "not-pulled", or "leave".
        tick
            Of which decision; by default of the last one. For a tick that is over, a sighting is
            used at its own time if the arm was not seen since.
        instead
            States of arms that were pulled by somebody's own choice.
        request, actor
            As in `decide`.
        """
        batch = Batch(tick, _results(results), _results(instead or {}))
        return self.record_batches([batch], request=request, actor=actor)[0]

    def record_batches(
        self,
        batches: Sequence[Batch],
        *,
        accept_good: bool = False,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> tuple[Receipt, list[Mistake]]:
        """Record results of several ticks in one transaction.

        All or nothing, unless `accept_good` takes what can be taken and returns the mistakes.
        """
        session = self._session
        content = [[b.tick, _plain(b.results), _plain(b.instead)] for b in batches]
        mark = fingerprint_of("record", [content, accept_good])
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return Receipt(**answer["receipt"]), []
            writer = Writer(session, actor, request, mark)
            return recording.record(session, memory, batches, writer, accept_good)

    def step(
        self,
        results: Mapping[str, Any],
        tick: int | None = None,
        *,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Decision:
        """Record what was seen and decide the next tick, in one transaction.

        Parameters
        ----------
        results, tick
            As in `record`. A clock that is given moves on by one tick.
        request, actor
            As in `decide`.
        """
        session = self._session
        batch = Batch(tick, _results(results))
        mark = fingerprint_of("step", [tick, _plain(results)])
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return reading.decision(session, answer["decision"])
            if memory.tick < 0:
                raise ProblemError("nothing has been decided yet: call decide() first")

            def following(receipt: Receipt) -> int:
                kind = memory.settings.clock.kind
                if kind == "calls":
                    return memory.tick + receipt.closed
                wanted = (memory.tick if tick is None else tick) + 1 if kind == "given" else None
                return deciding.tick_now(session, memory, wanted)

            writer = Writer(session, actor, request, mark)
            chosen: list[int] = []
            recording.record(
                session, memory, [batch], writer,
                next_tick=lambda receipt: chosen.append(following(receipt)) or chosen[0],
            )  # fmt: skip
            now = deciding.decide(session, memory, chosen[0], None, (), skip=False, actor=actor)
            return reading.decision(session, now)

    def join(
        self,
        arms: Mapping[str, str] | Iterable[str],
        last_seen: Mapping[str, tuple[int, int]] | None = None,
        *,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Receipt:
        """Let arms join; they can be pulled from the next decision on.

        Parameters
        ----------
        arms
            Names and kinds; names alone where there is one kind.
        last_seen
            In which state an arm was last seen and how many ticks ago, where that is known.
        request, actor
            As in `decide`.
        """
        named = dict(arms) if isinstance(arms, Mapping) else dict.fromkeys(_names(arms, "arms"))
        known = dict(last_seen or {})
        for name in known:
            if name not in named:
                raise ProblemError(f"last_seen: arm {name!r:.60} does not join")
        content = [sorted(named.items()), sorted((k, list(v)) for k, v in known.items())]
        session, mark = self._session, fingerprint_of("join", content)
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return Receipt(**answer["receipt"])
            kinds = list(memory.roster.kinds)
            if None in named.values() and len(kinds) > 1:
                raise ProblemError(f"say each arm's kind: one of {', '.join(kinds)}")
            new = [
                NewArm(name, kinds[0] if kind is None else kind, *known.get(name, (None, LONG_AGO)))
                for name, kind in named.items()
            ]
            writer = Writer(session, actor, request, mark)
            return recording.join(session, memory, new, self._tick_of_arms(memory), writer)

    def leave(
        self, arms: Iterable[str], *, request: str | None = None, actor: str = PYTHON
    ) -> Receipt:
        """Let arms leave for ever; what was seen of them stays."""
        names = _names(arms, "arms")
        session, mark = self._session, fingerprint_of("leave", sorted(names))
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return Receipt(**answer["receipt"])
            writer = Writer(session, actor, request, mark)
            return recording.leave(session, memory, names, self._tick_of_arms(memory), writer)

    def correct(
        self,
        results: Mapping[str, int],
        tick: int,
        note: str,
        *,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Receipt:
        """Journal that states were recorded wrongly; `rebuild` makes a file that knows better."""
        session, mark = self._session, fingerprint_of("correct", [_plain(results), tick, note])
        with session.writing() as memory:
            answer = session.answered(request, mark)
            if answer is not None:
                return Receipt(**answer["receipt"])
            writer = Writer(session, actor, request, mark)
            tick = checked_count(tick, "tick", 0)
            return recording.correct(session, memory, dict(results), tick, note, writer)

    def note(self, text: str, *, actor: str = PYTHON) -> None:
        """Write a note into the journal."""
        with self._session.writing() as memory:
            self._session.append("note", max(memory.tick, 0), {"text": str(text)}, actor)

    def acknowledge(self, alarm: int, note: str, *, actor: str = PYTHON) -> None:
        """Say that somebody has looked at an alarm, by its id, and what was found."""
        if not isinstance(note, str) or not note.strip():
            raise ProblemError("an alarm is acknowledged with a note: say what was found")
        session = self._session
        with session.writing() as memory:
            for one in reading.alarms(session):
                if one.seq == alarm:
                    writer = Writer(session, actor, None, None)
                    recording.acknowledge(memory, one.seq, note, one.name, writer)
                    return
        raise ProblemError(f"there is no alarm {alarm!r:.20} that waits to be acknowledged")

    # ------------------------------------------------------------ what only reads it

    def decision(self, tick: int | None = None) -> Decision | None:
        """Return the decision of a tick, by default the last; None if there is none."""
        with self._session.reading() as memory:
            wanted = memory.tick if tick is None else tick
            return reading.decision_or_none(self._session, wanted)

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
            return tuple(reading.alarms(self._session))

    def status(self) -> Status:
        """Tell where the agent stands."""
        with self._session.reading():
            return reading.status(self._session)

    def events(self, since: int = 0, limit: int | None = None) -> list[Event]:
        """Return the journal's events after number `since`."""
        with self._session.reading():
            return list(self._session.journal.events(since, limit))

    def arms(
        self, after: str | int | None = None, limit: int = 50, by: str = "name"
    ) -> list[ArmRow]:
        """Return a page of arms.

        Parameters
        ----------
        after
            The name of the last arm of the page before; for `by="index"`, how many to pass over.
        limit
            Arms on a page, at most 1,000.
        by
            "name", or "index" (the most urgent first).
        """
        with self._session.reading():
            return reading.arms(self._session, after, limit, by)

    def arm(self, name: str) -> ArmRow:
        """Return one arm."""
        with self._session.reading() as memory:
            return reading.arm_row(self._session, memory.roster.slot(name))

    def history(self, name: str) -> list[dict[str, Any]]:
        """Return all pulls of an arm, in the order of time."""
        with self._session.reading() as memory:
            return reading.history(self._session, memory.roster.slot(name))

    def rewards(self) -> list[dict[str, Any]]:
        """Return reward and forecast of every tick that was decided."""
        with self._session.reading():
            return reading.rewards(self._session)

    def to_pandas(self, table: str = "pulls") -> Any:
        """Return "pulls", "events", "arms" or "beliefs" as a data frame."""
        import pandas

        columns, rows = self.table(table)
        return pandas.DataFrame(rows, columns=columns)

    def table(self, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the columns and rows of "pulls", "events", "arms" or "beliefs"."""
        with self._session.reading():
            return reading.table(self._session, name)

    def check(self) -> int:
        """Walk the whole journal; return how many events are good, or raise at the first that is not.

        The tables of pulls and arms are compared with what the events say.
        """
        with self._session.reading():
            return checking.check(self._session.journal)

    def snapshot(self) -> None:
        """Keep a snapshot now, for a quick opening; otherwise they are made when they are worth it."""
        self._session.keep_snapshot()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the file as it is now, while others may write to it."""
        with self._session.turn():
            self._session.journal.backup(path)

    def _tick_of_arms(self, memory: Memory) -> int:
        """Return the tick at which arms join and leave."""
        clock = memory.settings.clock
        now = clock.tick_at(self._session.at) if clock.kind == "wall" else 0
        return max(now, memory.tick, 0)

    def __repr__(self) -> str:
        return f"LiveAgent({self.path!r}, tick {self.tick})"


def _write_first(
    journal: Journal, settings: Settings, roster: Roster, arms: Sequence[NewArm], actor: str,
    parent: str | None, now: Now | None,
) -> None:  # fmt: skip
    """Write priors, the first event and its arms."""
    from datetime import UTC, datetime
    from importlib.metadata import version

    listed = []
    with journal.writing():
        execute = journal.connection.execute
        execute("INSERT INTO meta VALUES ('made_by', ?)", (f"restive {version('restive')}",))
        for number, (kind, law) in enumerate(roster.kinds.items(), 1):
            prior = law if isinstance(law, JointPrior) else IndependentPrior([law])
            text = as_text(prior_to_data(prior))
            digest = sha256(text.encode()).digest()
            execute("INSERT INTO prior VALUES (?, ?, ?, ?)", (number, kind, text, digest))
            listed.append([kind, digest.hex()])
        body: dict[str, Any] = {
            "settings": json.loads(as_text(settings.to_data())),
            "priors": listed,
            "arms": joining(arms, list(roster.kinds)),
            **({"parent": parent} if parent is not None else {}),
        }
        moment = now() if now is not None else datetime.now(UTC)
        event = journal.append("init", 0, round(moment.timestamp() * 1e6), body, actor)
        enter_arms(journal, event, 0, body["arms"])


def _names(arms: Iterable[str], what: str) -> list[str]:
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise ProblemError(f"{what} must be a list of names, got {arms!r:.60}")
    return [str(name) for name in arms]


def _results(results: Any) -> Mapping[str, Any]:
    if not isinstance(results, Mapping):
        raise ProblemError(f"results must be a mapping from arms to states, got {results!r:.60}")
    return {str(name): _plain_number(value) for name, value in results.items()}


def _plain_number(value: Any) -> Any:
    return value.item() if hasattr(value, "item") and not isinstance(value, str) else value


def _plain(results: Mapping[str, Any]) -> list[list[Any]]:
    """Results in an order of their own, for fingerprints."""
    return sorted([str(name), _plain_number(value)] for name, value in results.items())
