"""What a live agent answers, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from restive.arguments import counted, one_line
from restive.errors import ProblemError
from restive.live.acts.forgetting import Forgetting
from restive.live.words import PLAIN, Words

__all__ = [
    "Act",
    "Alarm",
    "ArmRow",
    "Decision",
    "Mistake",
    "Receipt",
    "RefusedError",
    "Status",
    "alarm_title",
    "causes",
]


@dataclass(frozen=True, repr=False)
class Decision:
    """The arms to pull in a tick; it never changes once it is made."""

    tick: int
    arms: tuple[str, ...]
    expected: tuple[float, ...]  # reward of each arm
    audit: tuple[str, ...]  # those of the arms that were drawn evenly
    begins: datetime | None  # when the tick begins and ends, by the clock
    expires: datetime | None
    # of each arm, while the tick is open, where the policy has one
    index: tuple[float | None, ...] = field(compare=False)

    def __repr__(self) -> str:
        count = counted(len(self.arms), "arm")
        return one_line(
            f"Decision(tick={self.tick}, arms={list(self.arms)})",
            f"Decision(tick={self.tick}, {count})",
        )


@dataclass(frozen=True)
class Receipt:
    """What became of results that were recorded."""

    new: int = 0  # for the open tick
    known: int = 0  # already, with the same value
    late: int = 0  # for a tick that is closed, and used
    superseded: int = 0  # journaled only: the arm was seen since
    closed: bool = False  # whether every pull of the open tick has a result

    def text(self, words: Words = PLAIN) -> str:
        """Say what became of results, in the operators' words."""
        counts = (
            (self.new, "recorded"),
            (self.known, "known already"),
            (self.late, "late and used"),
            (self.superseded, "too late to be used, but kept"),
        )
        found = [(count, word) for count, word in counts if count]
        if not found:
            return "nothing new"
        (first, word), *rest = found
        parts = [f"{counted(first, 'result')} {word}", *(f"{n:,} {what}" for n, what in rest)]
        whole = self.closed and self.new  # of the open tick; others may still be missing
        return ", ".join(parts) + (
            f"; every {words.pull} on the list has a result" if whole else ""
        )

    def text_of_arms(self, done: str, words: Words = PLAIN) -> str:
        """Say how many arms "joined" or "left", in the operators' words."""
        known = f"{words.count(self.known, 'arm')} had {done} already"
        if not self.new:
            return known
        text = f"{words.count(self.new, 'arm')} {done}"
        return f"{text}, {known}" if self.known else text


@dataclass(frozen=True)
class Mistake:
    """A result that cannot be taken, and why."""

    tick: int | None
    arm: str
    reason: str
    conflict: bool = False  # with what was recorded


class RefusedError(ProblemError):
    """Results of which some cannot be taken; nothing was recorded."""

    def __init__(
        self, mistakes: Sequence[Mistake], message: str | None = None, *, noun: str = "arm"
    ) -> None:
        self.mistakes = tuple(mistakes)
        first = mistakes[0]
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        super().__init__(
            message or f"{noun} {first.arm!r}: {first.reason}{more}; nothing was recorded"
        )


@dataclass(frozen=True)
class Alarm:
    """Something that an operator should look at, until somebody acknowledges it.

    However often it rang since it was last acknowledged, it is one.
    """

    # of its first event, its id; a rebuild keeps it, though the event then has another
    seq: int
    name: str
    tick: int  # since when
    sentence: str  # what is wrong, what to look at and what to do
    label: str = ""  # the tick's date, where ticks have dates
    count: int = 1  # how often it rang
    last: int = 0  # tick when it last did
    began: int | None = None  # tick since when rewards are likely off, where that is not the first
    began_label: str = ""  # its date
    watched_since: bool = False  # nothing was bet on before that tick, though there were results
    forgotten: bool = False  # what was seen of these arms before that tick, by now

    @property
    def kind(self) -> str | None:
        """The kind of arms it is about; None for all."""
        return self.name.partition(": ")[2] or None

    def of(self, words: Words = PLAIN) -> str:
        """Say whom it is about."""
        arms = words.many("arm")
        return f"all {arms}" if self.kind is None else f"{arms} of kind {self.kind!r}"

    def remedy(self, words: Words = PLAIN) -> str:
        """Say what to do where arms have changed for good; "" where there is nothing to forget."""
        if self.began is None:
            return ""
        when, of = words.when(self.began, self.began_label), self.of(words)
        if self.forgotten:
            return f"what was seen of {of} before {when} is forgotten; now say what was found"
        early = ""
        if self.watched_since:
            early = f" or earlier, since {words.many('tick')} before {self.began} were not watched"
        return (
            f"likely since {when}{early}; if {of} have changed for good, forget what was seen of "
            f"them before {words.tick} {self.began}"
        )

    def since(self, words: Words = PLAIN) -> str:
        """Say when it rang first, and how often; what it rings for began before that."""
        since = f"noticed in {words.when(self.tick, self.label)}"
        often = f", {self.count:,} times, last in {words.when(self.last)}" if self.count > 1 else ""
        return since + often

    def text(self, words: Words = PLAIN) -> str:
        """Say all of it, in the operators' words."""
        return f"ALARM {self.seq}, {self.title(words)}, {self.since(words)}: {self.sentence}"

    def title(self, words: Words = PLAIN) -> str:
        """Return its name, in the operators' words."""
        return alarm_title(self.name, words)

    def __str__(self) -> str:
        return self.text()


def alarm_title(name: str, words: Words) -> str:
    """Return the name of an alarm in the operators' words."""
    return name.replace(PLAIN.reward, words.reward, 1)


def causes(found: Sequence[Alarm]) -> list[tuple[Alarm, ...]]:
    """Return alarms by what likely lets them ring: that of all arms leads those of single kinds."""
    of_all = {one.name for one in found if one.kind is None}
    return [
        (one, *(other for other in found if other.name.startswith(f"{one.name}: ")))
        for one in found
        if one.kind is None or one.name.partition(": ")[0] not in of_all
    ]


@dataclass(frozen=True)
class Act:
    """What one call did, and `undo` can withdraw."""

    event: int  # the first that it journaled, its id
    # decide, record, step (both), join, leave, return, correct, acknowledge, forget or remember
    kind: str
    tick: int
    label: str  # its date, where ticks have dates
    count: int  # arms decided, results, arms that join or leave, corrections
    at: int  # when, in microseconds since 1970, UTC
    actor: str  # who did it
    who: str = ""  # of whom, if of one arm, and which result; what was forgotten; which alarm

    def text(self, words: Words = PLAIN) -> str:
        """Say what was done and by whom, in the operators' words."""
        return f"{self.what(words)} (event {self.event}, by {self.actor})"

    def what(self, words: Words = PLAIN) -> str:
        """Say what was done."""
        when = words.when(self.tick, self.label)
        arms = words.count(self.count, "arm")
        what = {
            "decide": f"the list of {when}, {arms}",
            "record": f"{self.who} in {when}"
            if self.who
            else f"{counted(self.count, 'result')} of {when}",
            "step": f"the list of {when}, {arms}, and the results recorded with it",
            "join": f"the joining of {self.who or arms} in {when}",
            "return": f"the return of {self.who or arms} in {when}",
            "leave": f"the leaving of {self.who or arms} in {when}",
            "correct": f"the correction of {self.who} in {when}"
            if self.who
            else f"{counted(self.count, 'correction')} of {when}",
            "acknowledge": f"the answer to the alarm{'s' * (self.count > 1)} “{self.who}” in "
            f"{when}",
            "forget": f"the forgetting of {self.who}",
            "remember": f"the setting that {self.who}",
        }
        return what[self.kind]

    def undone(self, words: Words = PLAIN) -> str:
        """Say that it was taken back. What a result had replaced does not come back with that."""
        said = f"Taken back: {self.what(words)}."
        if self.kind != "record":
            return said
        of, _, _ = self.who.rpartition(": ")
        return f"{said} {of} has no result again." if of else f"{said} They have none again."

    def __str__(self) -> str:
        return self.text()


@dataclass(frozen=True)
class ArmRow:
    """An arm, as an operator sees it in a list."""

    name: str
    kind: str
    joined: int
    left: int | None
    waiting: bool  # until the next decision
    last_state: int | None  # None: never seen
    last_tick: int | None
    index: float | None  # now, under the sampled system
    good: float | None  # probability of the last state, now
    pulls: int  # in ticks that are over


@dataclass(frozen=True)
class Status:
    """Where a live agent stands."""

    tick: int  # of the last decision, -1 before the first
    label: str  # its date, where ticks have dates
    arms: int  # that have not left
    waiting: int  # arms that join with the next decision
    left: int
    left_last: tuple[str, ...]  # some of those, who left last first
    always_seen: bool  # some arms are, in every tick
    decided: int  # pulls of the open tick, and other arms that are seen in every tick
    open: int  # of them without a result
    unshown: int  # of these, not on the list: arms whose states all must be recorded
    decisions: int
    pulls: int
    seen: int
    unseen: int
    missing: int  # of these, pulls of which nobody has said what came of them
    leaving: int  # and those with which an arm left
    waiting_pulls: int  # of the open tick, without a result
    late: int
    superseded: int
    not_pulled: int
    reward: float  # of all pulls that were seen
    forecast: float  # for these pulls, when they were decided
    audit_mean: float | None  # mean reward of audit pulls that were seen
    unseen_by_last_state: dict[int, tuple[int, int]]  # closed pulls: unseen, and all
    corrections: int  # that wait for a rebuild
    approximate: bool  # unseen pulls are taken as not pulled, though pulling moves these arms
    pulled_only: bool  # arms pay unpulled too; reward, forecast and alarms are of pulls alone
    events: int
    alarms: tuple[Alarm, ...]
    forget_after: float | None  # ticks after which what was seen weighs 1/e; None: it never fades
    forgotten: tuple[Forgetting, ...]  # what was forgotten
