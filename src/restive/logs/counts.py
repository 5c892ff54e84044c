"""Counts of (last state, age, next state) for every arm of a log: all that its posterior needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.learn.evidence import Evidence
from restive.logs.log import ArmBlock, Log
from restive.threads import in_order

__all__ = ["LogCounts", "count_log", "first_states"]

IntArray = NDArray[np.int64]

MOST_PACKED = 1 << 32  # a cell up to which any arm's number fits beside it


@dataclass(frozen=True, eq=False)
class LogCounts:
    """Counts of all arms, end to end, and where each arm was last seen.

    A cell is packed as (n S + s) S + s'; each arm's cells ascend.
    """

    num_states: int
    starts: IntArray  # [K + 1]
    cells: IntArray  # [C]
    counts: IntArray  # [C]
    last_state: IntArray  # [K]
    last_step: IntArray  # [K], -1 for an arm that was not seen

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
        last_state, elapsed, next_state = self.unpacked(self.cells[own])
        evidence = Evidence(self.num_states)
        if len(elapsed):
            evidence.add(last_state, elapsed, next_state, self.counts[own])
        return evidence

    def unpacked(self, cells: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return last states, ages and next states of cells."""
        before, next_state = np.divmod(cells, self.num_states)
        elapsed, last_state = np.divmod(before, self.num_states)
        return last_state, elapsed, next_state


def count_log(
    log: Log,
    until: int | None = None,
    pulled_only: bool = False,
    progress: Callable[[float], None] = lambda share: None,
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
    """
    end = log.num_steps if until is None else until
    last_state = np.zeros(log.num_arms, dtype=np.int64)
    last_step = np.full(log.num_arms, -1, dtype=np.int64)

    def counted(block: ArmBlock) -> tuple[int, IntArray, IntArray, IntArray]:
        if pulled_only:
            block = block.of_pulled()
        own = slice(block.first_arm, block.first_arm + len(block.starts) - 1)
        _note_last(block, end, last_step[own], last_state[own])
        return own.stop, *_count_cells(block, log.num_states, end)

    cells, counts, ends = [], [], [np.zeros(1, dtype=np.int64)]
    for done, own_cells, own_counts, own_starts in in_order(counted, log.blocks()):
        cells.append(own_cells)
        counts.append(own_counts)
        ends.append(ends[-1][-1] + own_starts[1:])
        progress(done / log.num_arms)
    return LogCounts(
        log.num_states,
        np.concatenate(ends),
        np.concatenate(cells),
        np.concatenate(counts),
        last_state,
        last_step,
    )


def first_states(log: Log, until: int, pulled_only: bool = False) -> IntArray:
    """State of each arm's first sighting before step `until` [K], -1 without one."""
    found = np.full(log.num_arms, -1, dtype=np.int64)
    for block in log.blocks():
        own = block.of_pulled() if pulled_only else block
        first = own.starts[:-1]
        there = np.flatnonzero(first < own.starts[1:])
        there = there[own.steps[first[there]] < until]
        found[block.first_arm + there] = own.states[first[there]]
    return found


def _note_last(block: ArmBlock, until: int, last_step: IntArray, last_state: IntArray) -> None:
    """Note step and state [K] of each arm's last sighting before step `until`, if there is one."""
    earlier = np.concatenate([[0], np.cumsum(block.steps < until)])
    count = np.diff(earlier[block.starts])
    seen = np.flatnonzero(count)
    last = block.starts[seen] + count[seen] - 1
    last_step[seen], last_state[seen] = block.steps[last], block.states[last]


def _count_cells(
    block: ArmBlock, num_states: int, until: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Count, for each arm, how often state s was followed by s' at age n.

    Only what was seen again before step `until` is counted. Returns cells [C] as in `LogCounts`,
    their counts [C], and where each arm's cells begin [K + 1].
    """
    arms, steps, states = block.arms - block.first_arm, block.steps, block.states
    cells = np.diff(steps) * num_states + states[:-1]
    cells = cells * num_states + states[1:]
    later = (arms[1:] == arms[:-1]) & (steps[1:] < until)
    arms, cells = arms[1:][later], cells[later]
    distinct = None
    if len(cells) and int(cells.max()) >= MOST_PACKED:  # arm and cell do not fit into 64 bits
        distinct, cells = np.unique(cells, return_inverse=True)
    width = int(cells.max(initial=0)) + 1
    keys, counts = np.unique(arms * width + cells, return_counts=True)
    arms, cells = np.divmod(keys, width)
    starts = np.searchsorted(arms, np.arange(len(block.starts)))
    return cells if distinct is None else distinct[cells], counts, starts
