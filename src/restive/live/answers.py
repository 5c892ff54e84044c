"""What a live agent answers, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from restive.arguments import counted, one_line
from restive.errors import ProblemError

__all__ = ["Alarm", "ArmRow", "Decision", "Mistake", "Receipt", "RefusedError", "Status"]


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


@dataclass(frozen=True)
class Mistake:
    """A result that cannot be taken, and why."""

    tick: int | None
    arm: str
    reason: str
    conflict: bool = False  # with what was recorded


class RefusedError(ProblemError):
    """Results of which some cannot be taken; nothing was recorded."""

    def __init__(self, mistakes: Sequence[Mistake], message: str | None = None) -> None:
        self.mistakes = tuple(mistakes)
        first = mistakes[0]
        more = f" (and {len(mistakes) - 1} more)" if len(mistakes) > 1 else ""
        super().__init__(
            message or f"arm {first.arm!r}: {first.reason}{more}; nothing was recorded"
        )


@dataclass(frozen=True)
class Alarm:
    """Something that an operator should look at, until somebody acknowledges it."""

    seq: int  # of its event, its id
    name: str
    tick: int
    sentence: str


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
    decided: int  # pulls of the open tick
    open: int  # of them without a result
    decisions: int
    pulls: int
    seen: int
    unseen: int
    late: int
    superseded: int
    not_pulled: int
    reward: float  # of all pulls that were seen
    forecast: float  # for these pulls, when they were decided
    audit_mean: float | None  # mean reward of audit pulls that were seen
    unseen_by_last_state: dict[int, tuple[int, int]]  # closed pulls: unseen, and all
    corrections: int  # that wait for a rebuild
    approximate: bool  # unseen pulls are taken as not pulled, though pulling moves these arms
    events: int
    alarms: tuple[Alarm, ...]
