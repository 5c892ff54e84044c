"""A log: when each of many arms was seen in which state, sorted by arm and step."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import counted, one_line, suggestion
from restive.errors import ProblemError
from restive.learn.evidence import MOST_STATES
from restive.logs.sightings import sorter
from restive.logs.sightings.columns import Columns
from restive.logs.sightings.sorter import Rows, SightingSorter, end_of_block
from restive.logs.time_steps import StepRule, Steps
from restive.problem.arm import state_names

__all__ = ["Block", "Log", "log_of", "names_or_none", "sorted_log"]

MOST_STEPS = 1 << 42  # of a log: an age of as many fits into evidence

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

MOST_ARMS = 1 << 30
MICROS = 1_000_000


class Block(NamedTuple):
    """All sightings of some arms, sorted by arm, then step."""

    first_arm: int
    starts: IntArray  # [arms of the block + 1]
    steps: IntArray  # [R]
    codes: NDArray[np.int16]  # [R] twice the state, and one more where the arm was pulled

    @property
    def states(self) -> IntArray:
        """The state of each sighting [R]."""
        return (self.codes >> 1).astype(np.int64)

    @property
    def pulled(self) -> BoolArray:
        """Whether the arm was pulled [R]."""
        return (self.codes & 1).astype(np.bool_)

    def of_pulled(self) -> Block:
        """Return the sightings of pulled arms only."""
        pulled = self.pulled
        kept = np.concatenate([[0], np.cumsum(pulled)])
        return Block(self.first_arm, kept[self.starts], self.steps[pulled], self.codes[pulled])

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
    was seen; `steps` says what they are called. `notes` tell what was decided in reading the log.
    """

    arms: tuple[str, ...]
    states: tuple[str, ...]
    kinds: tuple[str, ...]
    kind_of: IntArray  # [K]
    steps: Steps
    first_step: int  # as `steps` counts
    num_steps: int
    starts: IntArray  # [K + 1]
    notes: tuple[str, ...]
    has_pulled: bool  # whether the log says which arms were pulled
    sightings: Columns = field(repr=False)

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

    def label(self, step: int) -> str:
        """Return how a person calls a step: a number, a date, or a date and time."""
        return self.steps.label(step + self.first_step)

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

    def blocks(self) -> Iterator[Block]:
        """Yield all sightings, arm by arm, in blocks that fit in memory."""
        first = 0
        while first < self.num_arms:
            last = end_of_block(self.starts, first, sorter.BLOCK_ROWS)
            yield self.block(first, last)
            first = last

    def block(self, first: int, last: int) -> Block:
        """Return the sightings of arms `first` to `last` - 1."""
        begin, end = int(self.starts[first]), int(self.starts[last])
        steps, codes = self.sightings.read(begin, end)
        return Block(first, self.starts[first : last + 1] - begin, steps, codes)

    def __repr__(self) -> str:
        return one_line(
            f"Log({self.in_brief}, states {', '.join(self.states)})", f"Log({self.in_brief})"
        )


def sorted_log(
    taken_in: SightingSorter,
    *,
    arms: Sequence[str],
    states: Sequence[str],
    kinds: Sequence[str],
    kind_of: IntArray,
    rule: StepRule,
    aware: bool,
    has_pulled: bool,
    notes: Sequence[str] = (),
    row: str = "line",
    progress: Callable[[float], None] = lambda share: None,
) -> Log:
    """Make a log of what a sorter has taken in."""
    steps = Steps.spanning(rule, taken_in.first, taken_in.last, aware)
    merged = taken_in.merged(steps, len(arms), row, progress)
    seen = merged.counts > 0  # all rows of an arm may have been left out
    return Log(
        arms=tuple(arms) if seen.all() else tuple(np.array(arms, object)[seen]),
        states=tuple(states),
        kinds=tuple(kinds),
        kind_of=kind_of[seen],
        steps=steps,
        first_step=merged.first_step,
        num_steps=merged.num_steps,
        starts=np.concatenate([[0], np.cumsum(merged.counts[seen])]),
        notes=(*notes, *merged.notes()),
        has_pulled=has_pulled,
        sightings=merged.sightings,
    )


def log_of(
    arm: ArrayLike,
    step: ArrayLike,
    state: ArrayLike,
    *,
    pulled: ArrayLike | None = None,
    num_states: int | None = None,
    states: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None,
    same_step: str = "error",
) -> Log:
    """Return a log from arrays, in any order.

    Parameters
    ----------
    arm
        Arm [R] of each sighting: whole numbers from 0, or names.
    step
        Step [R], a whole number.
    state
        State [R]: a whole number from 0, the worst, or one of the names in `states`.
    pulled
        Whether the arm was pulled when it was seen [R]; by default it was.
    num_states
        By default one more than the largest state.
    states
        Names of the states, worst first, such as those of an `Arm`.
    kinds
        Kind [K] of each arm, in the order of numbers or of first appearance.
    same_step
        What counts where an arm has several rows in one step: "error", "last" or "worst".
    """
    arms, names = _numbered(arm)
    names_of_states = None if states is None else state_names(states, num_states, "the log")
    steps, codes = _column(step, "step"), _state_column(state, names_of_states)
    flags = np.ones(len(arms), np.bool_) if pulled is None else np.asarray(pulled, np.bool_)
    sizes = {"arm": len(arms), "step": len(steps), "state": len(codes), "pulled": len(flags)}
    if len(set(sizes.values())) > 1:
        told = ", ".join(f"{what} has {size}" for what, size in sizes.items())
        raise ProblemError(f"a log needs arrays of one length: {told}")
    if len(arms) == 0:
        raise ProblemError("a log needs at least one sighting, got none")
    if names_of_states is None:
        size = max(int(codes.max()) + 1, 2) if num_states is None else num_states
        names_of_states = _plain_names(min(size, MOST_STATES))
    size = len(names_of_states)
    if not 0 <= codes.min() <= codes.max() < size:
        raise ProblemError(
            f"states are whole numbers from 0 to {size - 1}, got {codes.min()} to {codes.max()}"
        )
    rows = SightingSorter(same_step)
    rows.take_in([Rows.of(arms, steps * MICROS, np.arange(len(arms)), codes * 2 + flags)])
    labels, kind_of = _kinds(kinds, len(names))
    return sorted_log(
        rows,
        arms=names,
        states=names_of_states,
        kinds=labels,
        kind_of=kind_of,
        rule=StepRule("1", length=MICROS),
        aware=False,
        has_pulled=pulled is not None,
        row="row",
    )


def names_or_none(states: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the names of states, None where they are mere numbers."""
    return None if states == _plain_names(len(states)) else states


def _plain_names(size: int) -> tuple[str, ...]:
    return tuple(str(state) for state in range(size))


def _state_column(values: ArrayLike, names: tuple[str, ...] | None) -> IntArray:
    """Return states as whole numbers; they may be given by name."""
    array = np.asarray(values)
    if names is None or array.dtype.kind not in "UO":
        return _column(values, "state")
    place = {name: code for code, name in enumerate(names)}
    for row, name in enumerate(array.tolist()):
        if name not in place:
            raise ProblemError(
                f"row {row}: state {name!r:.60} is not one of the states; {suggestion(name, names)}"
            )
    return np.array([place[name] for name in array.tolist()], dtype=np.int64)


def _column(values: ArrayLike, what: str) -> IntArray:
    array = np.asarray(values)
    whole_numbers = np.issubdtype(array.dtype, np.integer) or array.dtype == np.bool_
    if array.ndim != 1 or (array.size and not whole_numbers):
        raise ProblemError(f"{what} must be a list of whole numbers, got {values!r:.60}")
    whole: IntArray = array.astype(np.int64)
    if len(whole) and max(abs(int(whole.min())), abs(int(whole.max()))) > MOST_STEPS:
        raise ProblemError(f"{what} must be at most {MOST_STEPS:,}, got {values!r:.60}")
    return whole


def _numbered(arm: ArrayLike) -> tuple[IntArray, tuple[str, ...]]:
    array = np.asarray(arm)
    if np.issubdtype(array.dtype, np.integer):
        numbers = _column(arm, "arm")
        if len(numbers) and not 0 <= numbers.min() <= numbers.max() < MOST_ARMS:
            raise ProblemError(f"arms are numbered from 0, got {numbers.min()} to {numbers.max()}")
        size = int(numbers.max()) + 1 if len(numbers) else 0
        return numbers, tuple(str(k) for k in range(size))
    place: dict[str, int] = {}
    found = [place.setdefault(str(name), len(place)) for name in array.tolist()]
    return np.array(found, dtype=np.int64), tuple(place)


def _kinds(kinds: Sequence[str] | None, num_arms: int) -> tuple[tuple[str, ...], IntArray]:
    if kinds is None:
        return ("all",), np.zeros(num_arms, dtype=np.int64)
    if len(kinds) != num_arms:
        raise ProblemError(f"kinds has {len(kinds)} entries, the log has {num_arms} arms")
    place: dict[str, int] = {}
    of = [place.setdefault(str(kind), len(place)) for kind in kinds]
    return tuple(place), np.array(of, dtype=np.int64)
