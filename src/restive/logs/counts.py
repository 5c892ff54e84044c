"""Counts of (last state, age, next state) for every arm of a log: all that its posterior needs.

Where pulls change how arms move and sightings of arms that were not pulled count too, the last
state is a *row*: s where the arm was pulled when it was seen in s, S + s where it was not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.learn.evidence import Evidence
from restive.logs.log import ArmBlock, Log
from restive.threads import in_order

__all__ = ["LogCounts", "count_log", "first_sightings"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MOST_PACKED = 1 << 32  # a cell up to which any arm's number fits beside it


@dataclass(frozen=True, eq=False)
class LogCounts:
    """Counts of all arms, end to end, and where each arm was last seen.

    A cell is packed as (n R + s) S + s', with R rows; each arm's cells ascend.
    """

    num_states: int
    starts: IntArray  # [K + 1]
    cells: IntArray  # [C]
    counts: IntArray  # [C]
    last_state: IntArray  # [K]
    last_step: IntArray  # [K], -1 for an arm that was not seen
    by_mode: bool = False  # whether a row says if the arm was pulled
    last_row: IntArray | None = None  # [K] of the last sighting, if by mode
    left_out: int = 0  # moves over steps without a row, where they say nothing

    @property
    def num_rows(self) -> int:
        """The number of rows R."""
        return self.num_states * (1 + self.by_mode)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.starts) - 1

    @property
    def totals(self) -> IntArray:
        """How often each arm was seen again [K]."""
        sums = np.concatenate([[0], np.cumsum(self.counts)])
        totals: IntArray = np.diff(sums[self.starts])
        return totals

    def evidence(self, k: int) -> Evidence:
        """Return what was seen of arm k."""
        own = slice(int(self.starts[k]), int(self.starts[k + 1]))
        rows, elapsed, next_state = self.unpacked(self.cells[own])
        modes, last_state = np.divmod(rows, self.num_states)
        evidence = Evidence(self.num_states)
        for mode in np.unique(modes).tolist():
            its = modes == mode
            evidence.add(
                last_state[its], elapsed[its], next_state[its], self.counts[own][its],
                pulled=mode == 0,
            )  # fmt: skip
        return evidence

    def unpacked(self, cells: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows (last states), ages and next states of cells."""
        before, next_state = np.divmod(cells, self.num_states)
        elapsed, row = np.divmod(before, self.num_rows)
        return row, elapsed, next_state

    def moves(self, arms: IntArray) -> FloatArray:
        """Counts [arms, R, S] of what followed in the next step."""
        found = np.zeros((len(arms), self.num_rows, self.num_states))
        for at, k in enumerate(arms.tolist()):
            own = slice(int(self.starts[k]), int(self.starts[k + 1]))
            row, elapsed, following = self.unpacked(self.cells[own])
            next_step = elapsed == 1
            found[at, row[next_step], following[next_step]] = self.counts[own][next_step]
        return found


def count_log(
    log: Log,
    until: int | None = None,
    pulled_only: bool = False,
    progress: Callable[[float], None] = lambda share: None,
    *,
    by_mode: bool = False,
    next_only: bool = False,
    since: int = 0,
) -> LogCounts:
    """Count what followed what in a log.

    Parameters
    ----------
    log
        The sightings.
    until
        Count what was seen before this step; by default all.
    pulled_only
        Leave out sightings of arms that were not pulled.
    progress
        Called with the share that is done.
    by_mode
        Tell sightings of arms that were pulled from others.
    next_only
        Count only what was seen in the very next step.
    since
        Count what was seen from this step on.
    """
    end = log.num_steps if until is None else until
    last_step = np.full(log.num_arms, -1, dtype=np.int64)

    def counted(block: ArmBlock) -> tuple[int, int, IntArray, IntArray, IntArray]:
        if pulled_only:
            block = block.of_pulled()
        own = slice(block.first_arm, block.first_arm + len(block.starts) - 1)
        rows = block.states + log.num_states * ~block.pulled if by_mode else block.states
        _note_last(block, rows, end, last_step[own], last_row[own])
        return own.stop, *_count_cells(block, rows, shape, range(since, end), next_only)

    shape = (log.num_states * (1 + by_mode), log.num_states)
    last_row = np.zeros(log.num_arms, dtype=np.int64)
    cells, counts, ends, left_out = [], [], [np.zeros(1, dtype=np.int64)], 0
    for done, broken, own_cells, own_counts, own_starts in in_order(counted, log.blocks()):
        left_out += broken
        cells.append(own_cells)
        counts.append(own_counts)
        ends.append(ends[-1][-1] + own_starts[1:])
        progress(done / log.num_arms)
    return LogCounts(
        log.num_states,
        np.concatenate(ends),
        np.concatenate(cells),
        np.concatenate(counts),
        last_row % log.num_states,
        last_step,
        by_mode,
        last_row if by_mode else None,
        left_out,
    )


def first_sightings(log: Log, until: int, pulled_only: bool = False) -> tuple[IntArray, IntArray]:
    """Step and state of each arm's first sighting before step `until` [K], -1 without one."""
    found = np.full((2, log.num_arms), -1, dtype=np.int64)
    for block in log.blocks():
        own = block.of_pulled() if pulled_only else block
        first = own.starts[:-1]
        there = np.flatnonzero(first < own.starts[1:])
        there = there[own.steps[first[there]] < until]
        found[0, block.first_arm + there] = own.steps[first[there]]
        found[1, block.first_arm + there] = own.states[first[there]]
    return found[0], found[1]


def _note_last(
    block: ArmBlock, rows: IntArray, until: int, last_step: IntArray, last_row: IntArray
) -> None:
    """Note step and row [K] of each arm's last sighting before step `until`, if there is one."""
    earlier = np.concatenate([[0], np.cumsum(block.steps < until)])
    count = np.diff(earlier[block.starts])
    seen = np.flatnonzero(count)
    last = block.starts[seen] + count[seen] - 1
    last_step[seen], last_row[seen] = block.steps[last], rows[last]


def _count_cells(
    block: ArmBlock, rows: IntArray, shape: tuple[int, int], within: range, next_only: bool
) -> tuple[int, IntArray, IntArray, IntArray]:
    """Count, for each arm, how often a row was followed by s' at age n.

    `shape` is rows and states. Only what was seen again in steps `within` is counted, with
    `next_only` only in the next step. Returns how many moves were left out for that,
    cells [C] as in `LogCounts`, their counts [C], and where each arm's cells begin [K + 1].
    """
    arms, steps, states = block.arms - block.first_arm, block.steps, block.states
    ages = np.diff(steps)
    cells = ages * shape[0] + rows[:-1]
    cells = cells * shape[1] + states[1:]
    later = (arms[1:] == arms[:-1]) & (steps[1:] >= within.start) & (steps[1:] < within.stop)
    broken = later & (ages > 1) if next_only else np.zeros_like(later)
    later &= ~broken
    arms, cells = arms[1:][later], cells[later]
    distinct = None
    if len(cells) and int(cells.max()) >= MOST_PACKED:  # arm and cell do not fit into 64 bits
        distinct, cells = np.unique(cells, return_inverse=True)
    width = int(cells.max(initial=0)) + 1
    keys, counts = np.unique(arms * width + cells, return_counts=True)
    arms, cells = np.divmod(keys, width)
    starts = np.searchsorted(arms, np.arange(len(block.starts)))
    return int(broken.sum()), cells if distinct is None else distinct[cells], counts, starts
