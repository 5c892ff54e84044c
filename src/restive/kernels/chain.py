"""Powers and stationary laws of small row-stochastic matrices, and beliefs of an arm.

Symbols: P a matrix [S, S]; pi its stationary law [S]; b(s, n) = e_s P_active P_passive^(n-1), the
law of an arm's state that was seen in s, n steps ago (pulled then, passive since).

All kernels return after a bounded number of products and continue where they left off when called
again with the same arrays; `problem.chains` and `problem.beliefs` do so.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part

FloatArray = NDArray[np.float64]

__all__ = ["belief_powers", "settling_age", "stationary_law"]


@hot_kernel
def stationary_law(work: FloatArray, law: FloatArray, last: int, most_work: int) -> int:
    """Stationary law of an irreducible matrix, by Grassmann, Taksar and Heyman's elimination.

    It never subtracts, so that every entry has full relative accuracy even for chains that almost
    fall apart. `work` holds the matrix and is overwritten. States are eliminated from `last` (at
    first S - 1) down; returns the next, 0 when the law is there.
    """
    size = len(work)
    done = 0
    while last > 0 and done <= most_work:
        leaving = 0.0
        for j in range(last):
            leaving += work[last, j]
        for i in range(last):
            work[i, last] /= leaving
            for j in range(last):
                work[i, j] += work[i, last] * work[last, j]
        done += last * last
        last -= 1
    if last > 0:
        return last
    total = 1.0
    law[0] = 1.0
    for j in range(1, size):
        law[j] = 0.0
        for i in range(j):
            law[j] += law[i] * work[i, j]
        total += law[j]
    for j in range(size):
        law[j] /= total
    return 0


@inlined
def advance(row: FloatArray, matrix: FloatArray, out: FloatArray) -> None:
    """Write row @ matrix into `out`, rescaled so that rounding never adds up over many steps."""
    size = len(row)
    total = 0.0
    for j in range(size):
        value = 0.0
        for i in range(size):
            value += row[i] * matrix[i, j]
        out[j] = value
        total += value
    for j in range(size):
        out[j] /= total


@inlined
def farthest(rows: FloatArray, law: FloatArray) -> float:
    """Return the largest L1 distance of a row from a law."""
    most = 0.0
    for s in range(len(rows)):
        total = 0.0
        for j in range(len(law)):
            total += abs(rows[s, j] - law[j])
        most = max(most, total)
    return most


@hot_kernel
def belief_powers(
    active: FloatArray, passive: FloatArray, table: FloatArray, first: int, most_work: int
) -> int:
    """Fill the table [S, L, S] of b(s, n) at [s, n - 1] from `first` on; return where it ends."""
    size, length = table.shape[0], table.shape[1]
    done = 0
    n = first
    while n < length and done <= most_work:
        for s in range(size):
            if n == 0:
                for j in range(size):
                    table[s, 0, j] = active[s, j]
            else:
                advance(table[s, n - 1], passive, table[s, n])
        done += size * size * size
        n += 1
    return n


@hot_kernel
def settling_age(
    beliefs: FloatArray, passive: FloatArray, law: FloatArray, tolerance: float, age: int,
    most: int, most_work: int,
) -> tuple[int, float]:  # fmt: skip
    """First age n <= most from which every b(s, n) is within `tolerance` of the stationary law.

    `beliefs` [2, S, S] holds those at `age`, which are led on, and room for as many. Also
    returns the largest distance at the age; unless that is small enough or the age is `most`, the
    search goes on from there.
    """
    rows, following = beliefs[0], beliefs[1]
    size = len(rows)
    done = 0
    while True:
        distance = farthest(rows, law)
        if distance <= tolerance or age == most or done > most_work:
            return age, distance
        for s in range(size):
            advance(rows[s], passive, following[s])
        _copy(following, rows)
        done += size * size * size
        age += 1


@part
def _copy(source: FloatArray, target: FloatArray) -> None:
    for i in range(source.shape[0]):
        for j in range(source.shape[1]):
            target[i, j] = source[i, j]
