"""A live agent: one file that operators run for months.

    live = rs.LiveAgent.create("calls.db", prior=prior, num_pulls=200, seed=7,
                               clock=rs.Clock.wall("2026-11-16", "P7D", zone="Asia/Kolkata"))
    decision = live.decide()                      # the same answer until the next tick
    live.record({"A17": 1, "B02": 0})             # in parts, twice, late: as it comes

What a call has acknowledged survives a kill, and the decisions that follow are those that would
have followed without it, to the bit. Many processes and threads may use one file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from restive.arguments import checked_count
from restive.errors import ProblemError
from restive.live.acts import answering, deciding, forgetting, membership, recording, undoing
from restive.live.acts.forgetting import Forgetting
from restive.live.acts.given import (
    checked_last_seen,
    checked_names,
    checked_results,
    checked_tick,
    plain_number,
)
from restive.live.acts.recording import Batch
from restive.live.clock import Clock
from restive.live.creating import create_file
from restive.live.journal.events import Journal
from restive.live.journal.tokens import make_token, remove_token
from restive.live.memory import Memory
from restive.live.people.prior_arms import arms_of_prior, states_of_prior
from restive.live.session import Now, Session, Writer, journalable
from restive.live.settings import Settings, learner_table
from restive.live.told.answers import Act, Decision, Mistake, Receipt
from restive.live.view import LiveView
from restive.live.words import Words
from restive.problem.beliefs import BeliefState

__all__ = ["LiveAgent"]

PYTHON = "python"
MOST_NOTE = 10_000


class LiveAgent(LiveView):
    """A durable agent; made by `create` or `open`."""

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
        learner: str | Mapping[str, Any] = "tsde",
        audit_pulls: int = 0,
        rest: int = 0,
        missing: str | None = None,
        outcomes: Mapping[str, int | str] | None = None,
        states: Sequence[str] = (),
        mixing_time: int | None = None,
        max_elapsed: int | None = None,
        words: Mapping[str, str] | None = None,
        on_alarm: str | None = None,
        durability: str = "power",
        actor: str = PYTHON,
        now: Now | None = None,
    ) -> LiveAgent:
        """Make the file of a new agent and open it.

        Parameters
        ----------
        path
            A file to be, on a local disk; or a schema, postgresql://USER@HOST/DATABASE#AGENT.
        prior
            What the arms may be: an `IndependentPrior`, a `JointPrior`, or what `load_prior`
            returned, with names, kinds and what was seen of each arm: as long ago at tick 0 as the
            dates of its log and of the clock say, else one tick longer than at the log's end.
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
            When and in which state each was last seen before tick 0; by default nobody knows.
        learner
            One of TSDE's family, by name, as "tsde(forget_after=1000)", or as a table:
            {"name": "mean_index", "learn_kinds": "epochs"}.
        audit_pulls
            Of the N arms, how many are drawn evenly: the only look at arms the policy avoids.
        rest
            Ticks for which an arm is not chosen again after a pull that has shown no state.
        missing
            Needed where pulling changes how arms move, since a pull that was made and not seen
            then leaves (state, age) behind: "refuse" (a tick ends when all its pulls have a
            result) or "as-not-pulled" (approximate).
        outcomes
            What results files say, and what it means: a state's number, "unseen", "not-pulled" or
            "leave".
        states
            Names of states; those of the prior by default.
        mixing_time, max_elapsed
            As in `TSDE`.
        words
            What the operators call things, as {"arm": "patient", "pull": "call", "tick": "week",
            "reward": "adherent weeks"}, on pages, in CSV files, on the command line and in alarms.
        on_alarm
            "forget" to forget by itself, when an alarm rings that rewards are not as foretold, what
            was seen of the arms it is of before it began. None to leave that to people.
        durability
            "power": what was acknowledged survives a power cut; "process": it survives a kill.
        actor
            Who does this, for the journal.
        now
            Tells the time, for tests: a function that returns an aware datetime.
        """
        clock = Clock.calls() if clock is None else clock
        kinds, arms = arms_of_prior(prior, names, start, clock)
        settings = Settings(
            num_pulls, policy_mapping, clock, seed, learner_table(learner), audit_pulls, rest,
            missing, dict(outcomes or {}), tuple(states) or states_of_prior(prior), mixing_time,
            max_elapsed, Words.from_data({} if words is None else words), on_alarm,
        )  # fmt: skip
        create_file(path, settings, kinds, arms, actor, now)
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
            The file, or the URL of a schema, as in `create`.
        durability, now
            As in `create`.
        progress
            Called with (events replayed, events to replay).
        """
        return cls(Session(Journal(path, durability), now, progress))

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
            Let ticks pass without a decision: where the tick is given, more than one needs this; a
            clock on the wall needs it after a year.
        actor
            Who asks, for the journal.
        """
        session = self._session
        out = sorted(checked_names(unavailable, "unavailable"))
        writer = Writer(session, actor, request, "decide", [tick, num_pulls, out])
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return deciding.decision(session, answer["decision"])
            now = deciding.tick_now(session, memory, checked_tick(tick))
            if now == memory.tick:
                deciding.ring(session, memory)
                writer.finish(now, {"decision": now})
            else:
                deciding.decide(session, memory, now, num_pulls, out, writer, skip=skip)
            return deciding.decision(session, now)

    def record(
        self,
        results: Mapping[str, Any],
        tick: int | None = None,
        *,
        instead: Mapping[str, Any] | None = None,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Receipt:
        """Record what was seen: all of it, or nothing if a result cannot be.

        Parameters
        ----------
        results
            By arm: its state or the name of it, "unseen" (pulled, result not known), "not-pulled",
            "leave", or one of the file's outcomes.
        tick
            Of which decision; by default of the last one. For a tick that is over, a sighting is
            used at its own time if the arm was not seen since.
        instead
            States of arms that were pulled by somebody's own choice.
        request, actor
            As in `decide`.
        """
        tick = checked_tick(tick)
        batch = Batch(tick, checked_results(results), checked_results(instead or {}, "instead"))
        return self.record_batches([batch], request=request, actor=actor)[0]

    def record_batches(
        self,
        batches: Sequence[Batch],
        *,
        accept_good: bool = False,
        request: str | None = None,
        of_file: bool = False,  # whose id no caller can have
        actor: str = PYTHON,
    ) -> tuple[Receipt, list[Mistake]]:
        """Record results of several ticks in one transaction.

        All or nothing, unless `accept_good` takes what can be taken and returns the mistakes.
        """
        session = self._session
        content = [[b.tick, b.results, b.instead] for b in recording.checked_batches(batches)]
        writer = Writer(session, actor, request, "record", content, ours=of_file)
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return Receipt(**answer["receipt"]), []
            prepared = recording.prepare(session, memory, batches, accept_good)
            answer = {"receipt": vars(prepared.receipt)}
            recording.record(session, memory, prepared, writer, answer)
            return prepared.receipt, prepared.mistakes

    def change(self, name: str, result: int | str, tick: int, *, actor: str = PYTHON) -> Receipt:
        """Put another result in the place of one in `changeable`; older ones are corrected."""
        with self._session.writing():
            return undoing.change(
                self._session, name, plain_number(result), checked_tick(tick), actor
            )

    def step(
        self,
        results: Mapping[str, Any],
        tick: int | None = None,
        *,
        skip: bool = False,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Decision:
        """Record what was seen and decide the next tick, in one transaction.

        Parameters
        ----------
        results, tick
            As in `record`. A clock that is given moves on by one tick.
        skip, request, actor
            As in `decide`.
        """
        session, tick, results = self._session, checked_tick(tick), checked_results(results)
        batch = Batch(tick, results)
        writer = Writer(session, actor, request, "step", [tick, results])
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return deciding.decision(session, answer["decision"])
            if memory.tick < 0:
                raise ProblemError("nothing has been decided yet: call decide() first")
            prepared = recording.prepare(session, memory, [batch])
            following = deciding.following(session, memory, tick, prepared.receipt.closed)
            answer = {"receipt": vars(prepared.receipt), "decision": following}
            recording.record(session, memory, prepared, writer, answer)
            deciding.decide(session, memory, following, None, (), writer, skip=skip)
            return deciding.decision(session, following)

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
        named: dict[str, Any] = dict.fromkeys(checked_names(arms, "arms"))
        if isinstance(arms, Mapping):
            named = checked_results(arms, "arms")
        known = checked_last_seen(last_seen, named)
        session = self._session
        writer = Writer(session, actor, request, "join", [named, known])
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return Receipt(**answer["receipt"])
            new = membership.new_arms(memory, named, known)
            return membership.join(session, memory, new, self._tick_for_arms(memory), writer)

    def leave(
        self, arms: Iterable[str], *, request: str | None = None, actor: str = PYTHON
    ) -> Receipt:
        """Let arms leave for ever; what was seen of them stays."""
        return self._move("leave", membership.leave, arms, request, actor)

    def come_back(
        self, arms: Iterable[str], *, request: str | None = None, actor: str = PYTHON
    ) -> Receipt:
        """Let arms that left by mistake come back, with all that was seen of them."""
        return self._move("return", membership.come_back, arms, request, actor)

    def _move(
        self, kind: str, move: membership.Move, arms: Iterable[str], request: str | None, actor: str
    ) -> Receipt:
        names = checked_names(arms, "arms")
        session = self._session
        writer = Writer(session, actor, request, kind, sorted(names))
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return Receipt(**answer["receipt"])
            return move(session, memory, names, self._tick_for_arms(memory), writer)

    def correct(
        self,
        results: Mapping[str, Any],
        tick: int,
        note: str,
        *,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Receipt:
        """Journal that states were recorded wrongly; `rebuild` makes a file that knows better."""
        given = checked_results(results)
        session = self._session
        writer = Writer(session, actor, request, "correct", [given, tick, note])
        with session.writing() as memory:
            answer = writer.answered()
            if answer is not None:
                return Receipt(**answer["receipt"])
            tick = checked_count(tick, "tick", 0)
            journalable(note, "the note on why it is corrected", MOST_NOTE)
            return recording.correct(session, memory, given, tick, note, writer)

    def undo(
        self, event: int | None = None, *, request: str | None = None, actor: str = PYTHON
    ) -> Act:
        """Withdraw the last act: a decision, results, arms that joined or left, and so on.

        The journal keeps it, and an event that says it was withdrawn; all else is as if it had
        never happened. Called again, it withdraws the act before; `last_act` says which.

        Parameters
        ----------
        event
            The act that is meant, by an event of it: one that others have built on since, or that
            was withdrawn already, is an error.
        request, actor
            As in `decide`.
        """
        session = self._session
        writer = Writer(session, actor, request, "undo", event)
        with session.writing():
            answer = writer.answered()
            if answer is not None:
                return undoing.undone(session, answer)
            return undoing.undo(session, event, writer)

    def forget(
        self,
        before: int | str,
        arms: Iterable[str] | None = None,
        *,
        kind: str | None = None,
        request: str | None = None,
        actor: str = PYTHON,
    ) -> Forgetting:
        """Forget what was seen of some arms before a tick, where they have changed.

        What is believed of them is then the law of their kind, given what was seen of them since;
        what a log said of them is forgotten too. `undo` withdraws it.

        Parameters
        ----------
        before
            The first tick that still counts: its number or its date.
        arms, kind
            Names of arms, or all of a kind; without either, all arms.
        request, actor
            As in `decide`.
        """
        names = None if arms is None else checked_names(arms, "arms")
        before = checked_count(self.settings.clock.tick_named(before), "before", 0)
        session = self._session
        writer = Writer(session, actor, request, "forget", [names, kind, before])
        with session.writing() as memory:
            if writer.answered() is None:
                slots = forgetting.named(memory, names, kind)
                return forgetting.forget(session, memory, slots, before, kind, names, writer)
            return forgetting.of_request(session, request)

    def remember(
        self, ticks: float | None, *, request: str | None = None, actor: str = PYTHON
    ) -> None:
        """Change how long what was seen is remembered: after so many ticks it weighs 1/e.

        None for ever, as the learner's option `forget_after`. `undo` withdraws the change; what has
        faded meanwhile stays faded if it is changed back.
        """
        session = self._session
        writer = Writer(session, actor, request, "remember", ticks)
        with session.writing() as memory:
            if writer.answered() is None:
                forgetting.remember(memory, ticks, writer)

    def set_words(
        self,
        words: Mapping[str, str],
        outcomes: Mapping[str, int | str] | None = None,
        *,
        actor: str = PYTHON,
    ) -> None:
        """Change words, or what outcomes mean, as in `create`; results that are in stay."""
        meant = checked_results(outcomes or {}, "outcomes")
        with self._session.writing() as memory:
            self._append("words", memory, memory.settings.words_event(words, meant), actor)

    def note(self, text: str, *, actor: str = PYTHON) -> None:
        """Write a note into the journal."""
        with self._session.writing() as memory:
            journalable(text, "a note", MOST_NOTE)
            self._append("note", memory, {"text": text}, actor)

    def acknowledge(self, alarm: int | Sequence[int], note: str, *, actor: str = PYTHON) -> None:
        """Say that somebody has looked at an alarm, or at several, by id, and what was found."""
        journalable(note, "the note on what was found", MOST_NOTE)
        with self._session.writing() as memory:
            numbers = list(alarm) if isinstance(alarm, Sequence) else [alarm]
            answering.answer(self._session, memory, numbers, note, actor)

    def make_token(
        self, name: str, role: str, days: float | None = None, *, actor: str = PYTHON
    ) -> str:
        """Let a client in; return its secret, which is shown this once.

        Parameters
        ----------
        name, role, days, actor
            Whose; "read", "act" (decide and record) or "admin" (arms too); until it ends; by whom.
        """
        with (session := self._session).writing() as memory:
            secret = make_token(session.journal, name, role, session.at, days)
            self._append("note", memory, {"text": f"token {name!r} of role {role} was made"}, actor)
            return secret

    def remove_token(self, name: str, *, actor: str = PYTHON) -> None:
        """Shut a client out."""
        with self._session.writing() as memory:
            remove_token(self._session.journal, name)
            self._append("note", memory, {"text": f"token {name!r} was removed"}, actor)

    def _append(self, kind: str, memory: Memory, body: dict[str, Any], actor: str) -> None:
        self._session.append(kind, max(memory.tick, 0), body, actor)
