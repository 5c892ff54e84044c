"""Sightings sorted by arm and time, and what follows what: counts of (state, age, next state)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import kernel, part, place

__all__ = [
    "ROW",
    "count_arms",
    "count_cells",
    "has_doubles",
    "last_seen",
    "merge_run",
    "place_rows",
]

IntArray = NDArray[np.int64]
Arms = NDArray[np.int32]
Lines = NDArray[np.uint32]
Codes = NDArray[np.int16]
Rows = NDArray[np.void]

# together, so that a row put into its place touches memory at one place
ROW = np.dtype([("time", "<i8"), ("line", "<u4"), ("code", "<i2")], align=True)

ONE = place(1)
YOUNG_CELLS = 64  # of the smallest ages, counted in a table


@kernel
def count_arms(arms: Arms, counts: IntArray) -> None:
    """Add how many rows [R] each arm has to counts [K]."""
    for arm in arms:
        counts[place(arm)] += 1


@kernel
def place_rows(
    arms: Arms, times: IntArray, lines: Lines, codes: Codes, free: IntArray, rows: Rows
) -> None:
    """Put rows [R] where their arms' begin, `free` [K]; that becomes where the next ones go."""
    for i in range(len(arms)):
        arm = place(arms[i])
        row = rows[place(free[arm])]
        row["time"], row["line"], row["code"] = times[i], lines[i], codes[i]
        free[arm] += 1


@kernel
def merge_run(
    rows: Rows, run_starts: IntArray, starts: IntArray, free: IntArray, times: IntArray,
    lines: Lines, codes: Codes,
) -> bool:  # fmt: skip
    """Put the rows of a run, which is sorted by arm, behind those of earlier ones.

    Parameters
    ----------
    rows, run_starts
        The run's rows, and where in them those of each arm begin [K + 1].
    starts, free
        Where an arm's rows of all runs begin [K + 1], and where its next ones go [K].
    times, lines, codes
        Get the rows [R].

    Returns
    -------
    Whether each arm's rows are in order of time so far, as in most logs.
    """
    ordered = True
    for arm in range(len(run_starts) - 1):
        to = place(free[arm])
        for at in range(place(run_starts[arm]), place(run_starts[arm + 1])):
            time = rows[at]["time"]
            ordered &= to == place(starts[arm]) or times[to - ONE] <= time
            times[to], lines[to], codes[to] = time, rows[at]["line"], rows[at]["code"]
            to += ONE
        free[arm] = to
    return ordered


@kernel
def has_doubles(steps: IntArray, starts: IntArray) -> bool:
    """Whether an arm has two rows in one step, for rows [R] sorted by arm and time."""
    found = False
    for arm in range(len(starts) - 1):
        for at in range(starts[arm] + 1, starts[arm + 1]):
            found |= steps[place(at)] == steps[place(at - 1)]
    return found


@kernel
def last_seen(
    steps: IntArray, codes: Codes, starts: IntArray, until: int, last_step: IntArray,
    last_state: IntArray,
) -> None:  # fmt: skip
    """Note step and state [K] of each arm's last sighting before step `until`, if there is one."""
    for arm in range(len(starts) - 1):
        for i in range(starts[arm + 1] - 1, starts[arm] - 1, -1):
            if steps[i] < until:
                last_step[arm], last_state[arm] = steps[i], codes[i] >> 1
                break


@kernel
def count_cells(
    steps: IntArray, codes: Codes, starts: IntArray, num_states: int, since: int, until: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Count, for each arm, how often state s was followed by s' at age n.

    Parameters
    ----------
    steps, codes
        Sightings [R] sorted by arm, then step, no two of an arm in one step: when, and twice the
        state (and one more if the arm was pulled).
    starts
        Where each arm's sightings begin [K + 1].
    num_states
        The number of states S.
    since, until
        Only what was seen again from step `since` on and before step `until` is counted.

    Returns
    -------
    Cells packed as (n S + s) S + s', ascending for each arm; their counts; and where each arm's
    cells begin [K + 1].
    """
    num_pairs = num_states * num_states
    cells = np.empty(len(steps), dtype=np.int64)
    counts = np.empty(len(steps), dtype=np.int64)
    cell_starts = np.zeros(len(starts), dtype=np.int64)
    table = np.zeros(max(YOUNG_CELLS // num_pairs, 1) * num_pairs, dtype=np.int64)
    found = 0
    for arm in range(len(starts) - 1):
        free = len(cells)  # old cells wait at the end
        first = place(starts[arm])
        for i in range(first + ONE, place(starts[arm + 1])):
            step = steps[i]
            if step >= until:
                break
            if step >= since:
                before = int(codes[i - ONE] >> 1)
                cell = ((step - steps[i - ONE]) * num_states + before) * num_states
                cell += codes[i] >> 1
                if cell - num_pairs < len(table):
                    table[place(cell - num_pairs)] += 1
                else:
                    free -= 1
                    cells[free] = cell
        for young in range(len(table)):
            if table[young]:
                cells[found], counts[found] = young + num_pairs, table[young]
                table[young] = 0
                found += 1
        _heapsort(cells[free:])
        first_old = found
        for i in range(free, len(cells)):
            cell = cells[i]
            if found > first_old and cells[found - 1] == cell:
                counts[found - 1] += 1
            else:
                cells[found], counts[found] = cell, 1
                found += 1
        cell_starts[arm + 1] = found
    return cells[:found].copy(), counts[:found].copy(), cell_starts


@part
def _heapsort(values: IntArray) -> None:
    size = len(values)
    for begin in range(size // 2 - 1, -1, -1):
        _sift(values, begin, size)
    for end in range(size - 1, 0, -1):
        values[0], values[end] = values[end], values[0]
        _sift(values, 0, end)


@part
def _sift(values: IntArray, root: int, size: int) -> None:
    while 2 * root + 1 < size:
        child = 2 * root + 1
        if child + 1 < size and values[child] < values[child + 1]:
            child += 1
        if values[root] >= values[child]:
            return
        values[root], values[child] = values[child], values[root]
        root = child
