"""Counts of (last state, age, next state) for every arm of a log: all that its posterior needs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.kernels.logs.order import count_cells, last_seen
from restive.learn.evidence import Evidence
from restive.logs.sightings.log import Block, Log
from restive.threads import in_order

__all__ = ["LogCounts", "count_log"]

IntArray = NDArray[np.int64]


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
    since: int = 0,
    until: int | None = None,
    pulled_only: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> LogCounts:
    """Count what followed what in a log.

    Parameters
    ----------
    log
        The sightings.
    since, until
        Count what was seen again from step `since` on and before step `until`; by default all.
    pulled_only
        Leave out sightings of arms that were not pulled.
    progress
        Called with the share that is done.
    """
    end = log.num_steps if until is None else until
    last_state = np.zeros(log.num_arms, dtype=np.int64)
    last_step = np.full(log.num_arms, -1, dtype=np.int64)

    def counted(block: Block) -> tuple[int, IntArray, IntArray, IntArray]:
        if pulled_only:
            block = block.of_pulled()
        seen = block.steps, block.codes, block.starts
        own = slice(block.first_arm, block.first_arm + len(block.starts) - 1)
        last_seen(*seen, end, last_step[own], last_state[own])
        return own.stop, *count_cells(*seen, log.num_states, since, end)

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
