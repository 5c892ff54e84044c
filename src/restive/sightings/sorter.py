"""Rows in any order, sorted by arm and step.

They are sorted in runs that fit in memory; where there are several, they wait (beyond some size in
temporary files) and are merged arm by arm. So memory is in proportion to the arms, not to the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.log_order import merge_runs, sort_rows, starts_by_arm
from restive.sightings.columns import Columns
from restive.steps import Steps

__all__ = ["SAME_STEP", "Merged", "SightingSorter", "end_of_block"]

MOST_STEPS = 1 << 42  # as in `sightings.log`

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

SAME_STEP = ("error", "last", "worst")
RUN_ROWS = 1 << 21  # rows sorted at once
MOST_NAMED = 10  # mistakes in a message
ROW = ("<i8", "<u4", "<i2")  # time, line, and 2 state + pulled
SIGHTING = ("<i8", "<i2")  # step, and 2 state + pulled


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
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._num_waiting = 0
        self._num_arms = 0
        self._runs: list[tuple[int, IntArray]] = []  # where they begin, and their arms' starts
        self._rows = Columns(ROW)

    def add(self, arms: IntArray, lines: IntArray, times: IntArray, codes: IntArray) -> None:
        """Take in rows: arms, lines for messages, times in micros and 2 state + pulled."""
        if not len(arms):
            return
        self.first = min(self.first, int(times.min()))
        self.last = max(self.last, int(times.max()))
        self._num_arms = max(self._num_arms, int(arms.max()) + 1)
        self.num_rows += len(arms)
        self._waiting.append(
            (arms.astype(np.int32), times, lines.astype(np.uint32), codes.astype(np.int16))
        )
        self._num_waiting += len(arms)
        if self._num_waiting >= RUN_ROWS:
            self._end_run()

    def _end_run(self) -> None:
        """Sort what waits and put it behind the runs there are."""
        columns = [np.concatenate(parts) for parts in zip(*self._waiting, strict=True)]
        arms, times, lines, codes = columns
        self._waiting, self._num_waiting = [], 0
        starts = starts_by_arm(arms, self._num_arms)
        ordered = [np.empty_like(column) for column in columns[1:]]
        if not sort_rows(arms, times, lines, codes, starts, *ordered):
            order = np.lexsort((times, arms))
            ordered = [column[order] for column in columns[1:]]
        self._runs.append((self._rows.size, starts))
        self._rows.append(*ordered)

    def merged(
        self,
        steps: Steps,
        num_arms: int,
        state_of: IntArray | None = None,
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
        state_of
            The state that each code read as a state stands for.
        row
            What messages call a row.
        progress
            Called with the share that is done.
        """
        if self._waiting:
            self._end_run()
        run_starts = np.array([_stretched(starts, num_arms) for _, starts in self._runs])
        totals = run_starts.sum(axis=0)
        merged = Merged(steps, self, num_arms)
        first = 0
        while first < num_arms:
            last = end_of_block(totals, first, RUN_ROWS)
            parts = [
                self._rows.read(begin + int(starts[first]), begin + int(starts[last]))
                for (begin, _), starts in zip(self._runs, run_starts, strict=True)
            ]
            arms = np.repeat(np.arange(first, last), np.diff(totals[first : last + 1]))
            rows = parts[0]
            if len(parts) > 1:
                rows = _merged_rows(parts, run_starts[:, first : last + 1], arms)
            merged.take_in(arms, *rows, state_of=state_of, row=row)
            first = last
            progress(first / num_arms)
        merged.refuse_doubles(row)
        return merged


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

    def take_in(
        self, arms: IntArray, times: IntArray, lines: NDArray[np.uint32], codes: NDArray[np.int16],
        *, state_of: IntArray | None, row: str,
    ) -> None:  # fmt: skip
        """Take in sorted rows of further arms."""
        steps = self.steps.of(times) - self.first_step
        if state_of is not None:
            codes = (2 * state_of[codes >> 1] + (codes & 1)).astype(np.int16)
        again = (steps[1:] == steps[:-1]) & (arms[1:] == arms[:-1])
        if again.any():
            self._note_doubles(again, steps, lines, row)
            begins = np.flatnonzero(np.concatenate([[True], ~again]))
            ends = np.concatenate([begins[1:], [len(steps)]]) - 1
            states = codes >> 1
            last = self.same_step == "last"
            chosen = states[ends] if last else np.minimum.reduceat(states, begins)
            codes = 2 * chosen + np.maximum.reduceat(codes & 1, begins)
            arms, steps = arms[begins], steps[begins]
        first = int(arms[0]) if len(arms) else 0
        counts = np.bincount(arms - first)
        self.counts[first : first + len(counts)] += counts
        self.sightings.append(steps, codes)

    def _note_doubles(
        self, again: BoolArray, steps: IntArray, lines: NDArray[np.uint32], row: str
    ) -> None:
        self.num_doubles += int(again.sum())
        for at in np.flatnonzero(again)[: MOST_NAMED - len(self._doubles)].tolist():
            low, high = sorted(lines[at : at + 2].tolist())
            time = self.steps.label(int(steps[at]) + self.first_step)
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


def _merged_rows(
    parts: list[list[NDArray[Any]]], run_starts: IntArray, arms: IntArray
) -> list[NDArray[Any]]:
    """Merge the rows of several runs; `arms` are those of the merged rows."""
    rows = [np.concatenate(columns) for columns in zip(*parts, strict=True)]
    own = run_starts - run_starts[:, :1]
    begins = np.concatenate([[0], np.cumsum(own[:, -1])[:-1]])
    ordered = [np.empty_like(column) for column in rows]
    if not merge_runs(own + begins[:, None], *rows, *ordered):
        order = np.lexsort((ordered[0], arms))
        ordered = [column[order] for column in ordered]
    return ordered


def _stretched(starts: IntArray, num_arms: int) -> IntArray:
    """Starts [K + 1] of all arms, where those beyond the ones given have no rows."""
    longer = np.full(num_arms + 1, starts[-1])
    longer[: len(starts)] = starts
    return longer


def end_of_block(starts: IntArray, first: int, most: int) -> int:
    """Return the arm at which a block of about `most` rows that begins at arm `first` ends."""
    last = int(np.searchsorted(starts, starts[first] + most, side="right")) - 1
    return min(max(last, first + 1), len(starts) - 1)
