"""A log: when each of many arms was seen in which state, sorted by arm and step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted, one_line
from restive.errors import ProblemError
from restive.logs.time_steps import StepRule, Steps

__all__ = [
    "ArmBlock",
    "Log",
    "Rows",
    "UnsortedLog",
    "checked_same_step",
    "names_or_none",
    "sorted_log",
]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Codes = NDArray[np.int16]

SAME_STEP = ("error", "last", "worst")
MOST_ARMS = 1 << 30
MOST_STEPS = 1 << 42  # of a log: an age of as many fits into evidence
INNER = ("block", "blocks", "calendar", "code_column", "first_step", "starts", "step_column")
BLOCK_ROWS = 1 << 18  # sightings that are looked at together
MOST_NAMED = 10  # rows of the same arm and step in a message


class ArmBlock(NamedTuple):
    """All sightings of some arms, sorted by arm, then step."""

    first_arm: int
    starts: IntArray  # [arms of the block + 1]
    steps: IntArray  # [R]
    codes: Codes  # [R] twice the state, and one more where the arm was pulled

    @property
    def states(self) -> IntArray:
        """The state of each sighting [R]."""
        return (self.codes >> 1).astype(np.int64)

    @property
    def pulled(self) -> BoolArray:
        """Whether the arm was pulled [R]."""
        return (self.codes & 1).astype(np.bool_)

    def of_pulled(self) -> ArmBlock:
        """Return the sightings of pulled arms only."""
        pulled = self.pulled
        kept = np.concatenate([[0], np.cumsum(pulled)])
        return ArmBlock(self.first_arm, kept[self.starts], self.steps[pulled], self.codes[pulled])

    @property
    def arms(self) -> IntArray:
        """The arm of each sighting [R]."""
        own = np.arange(self.first_arm, self.first_arm + len(self.starts) - 1)
        return np.repeat(own, np.diff(self.starts))


@dataclass(frozen=True, eq=False)
class Log:
    """Sightings of many arms.

    `arms` are their names, in the order of their first row, and `kinds` what they were grouped by;
    `states` are the states' names, worst first. Steps are counted from 0, the first in which an arm
    was seen; `calendar` says what they are called. `notes` tell what was decided in reading the
    log.
    """

    arms: tuple[str, ...]
    states: tuple[str, ...]
    kinds: tuple[str, ...]
    kind_of: IntArray  # [K]
    calendar: Steps
    first_step: int  # as `calendar` counts
    num_steps: int
    starts: IntArray  # [K + 1]
    notes: tuple[str, ...]
    has_pulled: bool  # whether the log says which arms were pulled
    step_column: IntArray = field(repr=False)  # [R], as `steps` of a block
    code_column: Codes = field(repr=False)  # [R], as `codes` of a block

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in INNER]  # for who looks around

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.arms)

    @property
    def num_states(self) -> int:
        """The number of states S."""
        return len(self.states)

    @property
    def state_names(self) -> tuple[str, ...] | None:
        """The states' names for arms made of the log; None where they are mere numbers."""
        return names_or_none(self.states)

    @property
    def num_sightings(self) -> int:
        """How often an arm was seen, over all arms."""
        return int(self.starts[-1])

    @property
    def usual_pulls(self) -> int:
        """How many arms were pulled in a step: the median of the steps in which any was."""
        _, counts = np.unique(self.step_column[self.code_column & 1 == 1], return_counts=True)
        return round(float(np.median(counts))) if len(counts) else 0

    def label(self, step: int) -> str:
        """Return how a person calls a step: a number, a date, or a date and time."""
        return self.calendar.label(step + self.first_step)

    @property
    def span(self) -> str:
        """First and last step, as a person calls them."""
        return f"{self.label(0)} to {self.label(self.num_steps - 1)}"

    @property
    def in_brief(self) -> str:
        """How much was seen and when: 3 sightings of 1 arm in 3 steps, 1 to 3."""
        return (
            f"{counted(self.num_sightings, 'sighting')} of {counted(self.num_arms, 'arm')} in "
            f"{counted(self.num_steps, 'step')}, {self.span}"
        )

    @property
    def steps_apart(self) -> int:
        """Of how many steps all rows are a multiple apart: 7 where days of weekly dates are."""
        return int(np.gcd.reduce(self.step_column - self.step_column.min())) or 1

    def blocks(self) -> Iterator[ArmBlock]:
        """Yield all sightings, some arms at a time."""
        first = 0
        while first < self.num_arms:
            full = int(np.searchsorted(self.starts, self.starts[first] + BLOCK_ROWS, side="right"))
            last = min(max(full - 1, first + 1), self.num_arms)
            yield self.block(first, last)
            first = last

    def block(self, first: int, last: int) -> ArmBlock:
        """Return the sightings of arms `first` to `last` - 1."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        starts = self.starts[first : last + 1] - begin
        return ArmBlock(first, starts, self.step_column[begin:end], self.code_column[begin:end])

    def __repr__(self) -> str:
        return one_line(
            f"Log({self.in_brief}, states {', '.join(self.states)})", f"Log({self.in_brief})"
        )


def names_or_none(states: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of states, None where they are mere numbers."""
    return None if states == _plain_names(len(states)) else states


def _plain_names(size: int) -> tuple[str, ...]:
    return tuple(str(state) for state in range(size))


# --- rows in any order -------------------------------------------------------------------------


class Rows(NamedTuple):
    """Rows as they were read: who was seen when, in which state."""

    arms: NDArray[np.int32]  # [R]
    times: IntArray  # [R] in micros
    lines: NDArray[np.uint32]  # [R] for messages
    codes: Codes  # [R] as in a block

    def picked(self, which: IntArray | BoolArray) -> Rows:
        """Return some of the rows, or all in another order."""
        return Rows(self.arms[which], self.times[which], self.lines[which], self.codes[which])

    def in_order(self) -> Rows:
        """Return the rows sorted by arm, then time; those of one time stay in their order."""
        order = np.argsort(self.times, kind="stable")  # one pass, where a log is in order
        # Stable sorts by 16 bits take one pass, too: first by the low bits, then by the high ones.
        for digit in (self.arms & 0xFFFF, self.arms >> 16):
            if digit.any():
                order = order[np.argsort(digit.astype(np.uint16)[order], kind="stable")]
        return self.picked(order)


class UnsortedLog(NamedTuple):
    """A log whose rows are still in any order."""

    rows: Rows
    arms: Sequence[str]  # their names [K]
    states: Sequence[str]
    kinds: Sequence[str]
    kind_of: IntArray  # [K]
    rule: StepRule
    aware: bool  # whether times are instants
    has_pulled: bool
    notes: Sequence[str] = ()


def checked_same_step(same_step: Any) -> str:
    """Return what counts where an arm has several rows in one step, or raise."""
    if same_step not in SAME_STEP:
        raise ProblemError(
            f"same_step must be one of {', '.join(SAME_STEP)}, got {same_step!r:.60}"
        )
    return str(same_step)


def sorted_log(log: UnsortedLog, same_step: str, row: str) -> Log:
    """Return the log with one sighting for each arm and step; `row` is what messages call a row."""
    first, last = int(log.rows.times.min()), int(log.rows.times.max())
    calendar = Steps.spanning(log.rule, first, last, log.aware)
    limits = calendar.of(np.array([first, last]))
    first_step, num_steps = int(limits[0]), int(limits[1] - limits[0]) + 1
    if num_steps > MOST_STEPS:
        raise ProblemError(
            f"the log spans {num_steps:,} steps, more than {MOST_STEPS:,}; is a time wrong, or "
            "the step too short?"
        )
    found = log.rows.in_order()
    steps, own, codes = calendar.of(found.times) - first_step, found.arms, found.codes
    notes = [*log.notes]
    again = np.flatnonzero((steps[1:] == steps[:-1]) & (own[1:] == own[:-1]))
    if len(again):
        if same_step == "error":
            named = []
            for at in again[:MOST_NAMED].tolist():
                low, high = sorted(found.lines[at : at + 2].tolist())
                time = calendar.label(int(steps[at]) + first_step)
                named.append(f"{row}s {low} and {high} ({time})")
            raise _doubles(len(again), named)
        which = "the latest counts" if same_step == "last" else "the lowest state counts"
        are = "is" if len(again) == 1 else "are"
        notes.append(
            f"{len(again):,} of {len(steps):,} rows {are} of the same arm and step as another; "
            + which
        )
        begins = np.delete(np.arange(len(steps)), again + 1)
        codes = _settled(codes, begins, same_step)
        steps, own = steps[begins], own[begins]
    counts = np.bincount(own, minlength=len(log.arms))
    seen = counts > 0  # all rows of an arm may have been left out
    return Log(
        arms=tuple(log.arms) if seen.all() else tuple(np.array(log.arms, object)[seen]),
        states=tuple(log.states),
        kinds=tuple(log.kinds),
        kind_of=log.kind_of[seen],
        calendar=calendar,
        first_step=first_step,
        num_steps=num_steps,
        starts=np.concatenate([[0], np.cumsum(counts[seen])]),
        notes=tuple(notes),
        has_pulled=log.has_pulled,
        step_column=steps,
        code_column=codes,
    )


def _settled(codes: Codes, begins: IntArray, same_step: str) -> Codes:
    """Return one code for the rows from each beginning to the next; a pull among them counts."""
    states = codes >> 1
    if same_step == "last":
        chosen = states[np.append(begins[1:], len(codes)) - 1]
    else:
        chosen = np.minimum.reduceat(states, begins)
    settled: Codes = 2 * chosen + np.maximum.reduceat(codes & 1, begins)
    return settled


def _doubles(count: int, named: Sequence[str]) -> ProblemError:
    more = count - len(named)
    are = "row is" if count == 1 else "rows are"
    return ProblemError(
        f"{count:,} {are} of the same arm and step as another: "
        + ", ".join(named)
        + (f" and {more:,} more" if more else "")
        + "; say which counts with same_step (--same-step): 'last' (the later) or 'worst' (the "
        "lowest state), or take a shorter step"
    )
