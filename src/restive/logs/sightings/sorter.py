"""Rows in any order, sorted by arm and step.

They are sorted by arm in runs that fit in memory, each while the next is read. The runs wait
(beyond some size in temporary files) and are merged, some arms at a time. So memory is in
proportion to the arms, not to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.logs.order import ROW, count_arms, has_doubles, merge_run, place_rows
from restive.logs.sightings.columns import Columns
from restive.logs.time_steps import Steps
from restive.threads import in_order

__all__ = ["SAME_STEP", "Merged", "Rows", "SightingSorter", "end_of_block"]

MOST_STEPS = 1 << 42  # as in `sightings.log`

IntArray = NDArray[np.int64]
Records = NDArray[np.void]  # as ROW

SAME_STEP = ("error", "last", "worst")
RUN_ROWS = 1 << 21  # rows sorted at once
BLOCK_ROWS = 1 << 18  # rows merged at once
MOST_NAMED = 10  # mistakes in a message
SIGHTING = ("<i8", "<i2")  # step, and 2 state + pulled


class Rows(NamedTuple):
    """Rows as they are read."""

    arms: NDArray[np.int32]
    times: IntArray  # in micros
    lines: NDArray[np.uint32]  # for messages
    codes: NDArray[np.int16]  # twice the state, and one more where the arm was pulled

    @classmethod
    def of(cls, arms: IntArray, times: IntArray, lines: IntArray, codes: IntArray) -> Rows:
        """Return rows with these columns."""
        narrow = arms.astype(np.int32), times, lines.astype(np.uint32), codes.astype(np.int16)
        return cls(*narrow)


class SightingSorter:
    """Takes in rows as they are read; `merged` gives them back in order."""

    def __init__(self, same_step: str = "error") -> None:
        if same_step not in SAME_STEP:
            raise ProblemError(
                f"same_step must be one of {', '.join(SAME_STEP)}, got {same_step!r:.60}"
            )
        self.same_step = same_step
        self.num_rows = 0
        self.first, self.last = np.iinfo(np.int64).max, np.iinfo(np.int64).min  # times
        self._runs: list[tuple[int, IntArray]] = []  # where they begin, and their arms' starts
        self._rows = Columns([ROW])

    def take_in(self, parts: Iterable[Rows]) -> None:
        """Take in rows, some at a time; a thread sorts them while the next are asked for."""
        for run in in_order(_sorted_by_arm, self._unsorted(parts), ahead=1):
            self._runs.append((self._rows.size, run.starts))
            self._rows.append(run.records)

    def _unsorted(self, parts: Iterable[Rows]) -> Iterator[_Unsorted]:
        """Yield as many rows at a time as make a run."""
        waiting: list[Rows] = []
        size = num_arms = 0
        for rows in parts:
            if not len(rows.arms):
                continue
            self.first = min(self.first, int(rows.times.min()))
            self.last = max(self.last, int(rows.times.max()))
            num_arms = max(num_arms, int(rows.arms.max()) + 1)
            waiting.append(rows)
            size += len(rows.arms)
            if size >= RUN_ROWS:
                self.num_rows += size
                yield _Unsorted(waiting, num_arms)
                waiting, size = [], 0
        if size:
            self.num_rows += size
            yield _Unsorted(waiting, num_arms)

    def merged(
        self,
        steps: Steps,
        num_arms: int,
        row: str = "line",
        progress: Callable[[float], None] = lambda share: None,
    ) -> Merged:
        """Return all rows as sightings, one for each arm and step.

        Parameters
        ----------
        steps
            Which step a time is in.
        num_arms
            The number of arms K.
        row
            What messages call a row.
        progress
            Called with the share that is done.
        """
        merged = Merged(steps, self, num_arms)
        for block in in_order(merged.settled, self._blocks(num_arms)):
            merged.take_in(block, row)
            progress((block.first_arm + len(block.starts) - 1) / num_arms)
        merged.refuse_doubles(row)
        return merged

    def _blocks(self, num_arms: int) -> Iterator[_Block]:
        """Yield the rows of some arms at a time."""
        run_starts = np.array([_stretched(starts, num_arms) for _, starts in self._runs])
        totals = run_starts.sum(axis=0)
        first = 0
        while first < num_arms:
            last = end_of_block(totals, first, BLOCK_ROWS)
            parts = [
                self._rows.read(begin + int(starts[first]), begin + int(starts[last]))[0]
                for (begin, _), starts in zip(self._runs, run_starts, strict=True)
            ]
            starts = totals[first : last + 1] - totals[first]
            yield _Block(first, starts, parts, run_starts[:, first : last + 1])
            first = last


class _Unsorted(NamedTuple):
    """Rows of a run as they were read."""

    parts: list[Rows]
    num_arms: int  # that are known by now


class _Run(NamedTuple):
    """Rows sorted by arm."""

    starts: IntArray  # [K + 1]
    records: Records


def _sorted_by_arm(run: _Unsorted) -> _Run:
    """Sort rows by arm; rows of an arm stay in their order (a counting sort)."""
    counts = np.zeros(run.num_arms + 1, dtype=np.int64)
    for rows in run.parts:
        count_arms(rows.arms, counts[1:])
    starts = np.cumsum(counts)
    free, records = starts.copy(), np.empty(starts[-1], ROW)
    for rows in run.parts:
        place_rows(*rows, free, records)
    return _Run(starts, records)


class _Block(NamedTuple):
    """All rows of some arms, run by run."""

    first_arm: int
    starts: IntArray  # [arms of the block + 1], once the runs are merged
    runs: list[Records]
    run_starts: IntArray  # [runs, arms of the block + 1]

    def merged(self) -> tuple[IntArray, NDArray[np.uint32], NDArray[np.int16]]:
        """Return times, lines and codes of the rows, sorted by arm, then time."""
        size = int(self.starts[-1])
        times, lines = np.empty(size, np.int64), np.empty(size, np.uint32)
        codes = np.empty(size, np.int16)
        free = self.starts[:-1].copy()
        ordered = True
        for records, starts in zip(self.runs, self.run_starts, strict=True):
            own = starts - starts[0]
            ordered &= merge_run(records, own, self.starts, free, times, lines, codes)
        if not ordered:
            arms = np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))
            order = np.lexsort((times, arms))
            times, lines, codes = times[order], lines[order], codes[order]
        return times, lines, codes


class _Settled(NamedTuple):
    """Sightings of some arms, and which rows are of the same arm and step as the one before."""

    first_arm: int
    starts: IntArray  # [arms of the block + 1]
    steps: IntArray
    codes: NDArray[np.int16]
    doubles: list[tuple[int, int, int]]  # lines of both and step, of the first few
    num_doubles: int


class Merged:
    """Sightings sorted by arm, then step; two rows of an arm in one step are settled here."""

    def __init__(self, steps: Steps, sorter: SightingSorter, num_arms: int) -> None:
        self.steps, self.same_step, self.num_rows = steps, sorter.same_step, sorter.num_rows
        limits = steps.of(np.array([sorter.first, sorter.last]))
        self.first_step, self.num_steps = int(limits[0]), int(limits[1] - limits[0]) + 1
        if self.num_steps > MOST_STEPS:
            raise ProblemError(
                f"the log spans {self.num_steps:,} steps, more than {MOST_STEPS:,}; is a time "
                "wrong, or the step too short?"
            )
        self.counts = np.zeros(num_arms, dtype=np.int64)
        self.sightings = Columns(SIGHTING)
        self.num_doubles = 0
        self._doubles: list[str] = []  # the first of them

    def settled(self, block: _Block) -> _Settled:
        """Return one sighting for each arm and step of a block."""
        times, lines, codes = block.merged()
        steps = self.steps.of(times) - self.first_step
        if not has_doubles(steps, block.starts):
            return _Settled(block.first_arm, block.starts, steps, codes, [], 0)
        begins_arm = np.zeros(len(steps) + 1, dtype=np.bool_)
        begins_arm[block.starts] = True
        again = (steps[1:] == steps[:-1]) & ~begins_arm[1:-1]
        shown = [
            (*sorted(lines[at : at + 2].tolist()), int(steps[at]))
            for at in np.flatnonzero(again)[:MOST_NAMED].tolist()
        ]
        begins = np.flatnonzero(np.concatenate([[True], ~again]))
        ends = np.concatenate([begins[1:], [len(steps)]]) - 1
        states = codes >> 1
        last = self.same_step == "last"
        chosen = states[ends] if last else np.minimum.reduceat(states, begins)
        codes = 2 * chosen + np.maximum.reduceat(codes & 1, begins)
        starts = np.searchsorted(begins, block.starts)
        return _Settled(block.first_arm, starts, steps[begins], codes, shown, int(again.sum()))

    def take_in(self, block: _Settled, row: str) -> None:
        """Take in sightings of further arms."""
        arms = slice(block.first_arm, block.first_arm + len(block.starts) - 1)
        self.counts[arms] = np.diff(block.starts)
        self.sightings.append(block.steps, block.codes)
        self.num_doubles += block.num_doubles
        for low, high, step in block.doubles[: MOST_NAMED - len(self._doubles)]:
            time = self.steps.label(step + self.first_step)
            self._doubles.append(f"{row}s {low} and {high} ({time})")

    def refuse_doubles(self, row: str) -> None:
        """Raise if an arm has several rows in one step and nothing was said of that."""
        if self.same_step != "error" or not self.num_doubles:
            return
        more = self.num_doubles - len(self._doubles)
        raise ProblemError(
            f"{self.num_doubles:,} rows are of the same arm and step as another: "
            + ", ".join(self._doubles)
            + (f" and {more:,} more" if more else "")
            + "; say which counts with same_step (--same-step): 'last' (the later) or 'worst' (the "
            "lowest state), or take a shorter step"
        )

    def notes(self) -> list[str]:
        """Tell what was settled."""
        if not self.num_doubles:
            return []
        which = "the latest counts" if self.same_step == "last" else "the lowest state counts"
        return [
            f"{self.num_doubles:,} of {self.num_rows:,} rows are of the same arm and step as "
            f"another; {which}"
        ]


def _stretched(starts: IntArray, num_arms: int) -> IntArray:
    """Starts [K + 1] of all arms, where those beyond the ones given have no rows."""
    longer = np.full(num_arms + 1, starts[-1])
    longer[: len(starts)] = starts
    return longer


def end_of_block(starts: IntArray, first: int, most: int) -> int:
    """Return the arm at which a block of about `most` rows that begins at arm `first` ends."""
    last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
    return min(max(last, first + 1), len(starts) - 1)
