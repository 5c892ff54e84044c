"""Powers and stationary laws of small row-stochastic matrices, and beliefs of an arm.

Symbols: P a matrix [S, S]; pi its stationary law [S]; b(s, n) = e_s P_active P_passive^(n-1), the
law of an arm's state that was seen in s, n steps ago (pulled then, passive since).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel, part

FloatArray = NDArray[np.float64]

__all__ = ["belief_powers", "mixing_age", "settling_age", "stationary_law"]


@kernel
def stationary_law(matrix: FloatArray) -> FloatArray:
    """Stationary law of an irreducible matrix, by Grassmann, Taksar and Heyman's elimination.

    It never subtracts, so that every entry has full relative accuracy even for chains that almost
    fall apart.
    """
    work = matrix.copy()
    size = len(work)
    for last in range(size - 1, 0, -1):
        leaving = 0.0
        for j in range(last):
            leaving += work[last, j]
        for i in range(last):
            work[i, last] /= leaving
            for j in range(last):
                work[i, j] += work[i, last] * work[last, j]
    law = np.zeros(size)
    law[0] = 1.0
    for j in range(1, size):
        for i in range(j):
            law[j] += law[i] * work[i, j]
    law /= law.sum()
    return law


@kernel
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


@part
def _overwrite(row: FloatArray, by: FloatArray) -> None:
    """Copy a row; numba takes seconds to compile the assignment of one array to another."""
    for j in range(len(row)):
        row[j] = by[j]


@kernel
def distance(row: FloatArray, law: FloatArray) -> float:
    """L1 distance of two laws."""
    total = 0.0
    for j in range(len(row)):
        total += abs(row[j] - law[j])
    return total


@kernel
def belief_powers(active: FloatArray, passive: FloatArray, length: int) -> FloatArray:
    """Table [S, length, S] of b(s, n) at [s, n - 1]."""
    size = len(active)
    table = np.empty((size, length, size))
    for s in range(size):
        _overwrite(table[s, 0], active[s])
        for n in range(1, length):
            advance(table[s, n - 1], passive, table[s, n])
    return table


@kernel
def settling_age(
    active: FloatArray, passive: FloatArray, law: FloatArray, tolerance: float, most: int
) -> tuple[int, float]:
    """First age n <= most from which every b(s, n) is within `tolerance` of the stationary law.

    Also the largest distance at that age; the age is `most` when none is close enough.
    """
    size = len(active)
    rows = active.copy()
    following = np.empty(size)
    for age in range(1, most + 1):
        farthest = 0.0
        for s in range(size):
            farthest = max(farthest, distance(rows[s], law))
        if farthest <= tolerance or age == most:
            return age, farthest
        for s in range(size):
            advance(rows[s], passive, following)
            _overwrite(rows[s], following)
    return most, np.inf


@kernel
def mixing_age(matrix: FloatArray, law: FloatArray, epsilon: float) -> int:
    """First t >= 1 such that every row of P^t is within `epsilon` of the stationary law.

    The distance never grows with t, so t is found by doubling and then bisection over powers of
    two: 60 products whatever the answer. Returns -1 when 2^60 steps do not suffice.
    """
    size = len(matrix)
    powers = np.empty((61, size, size))  # powers[j] = P^(2^j)
    for s in range(size):
        _overwrite(powers[0, s], matrix[s])
    top = 0
    while _farthest(powers[top], law) > epsilon:
        if top == 60:
            return -1
        for s in range(size):
            advance(powers[top, s], powers[top], powers[top + 1, s])
        top += 1
    if top == 0:
        return 1
    age = 1 << (top - 1)  # the largest age known to be too early
    current = powers[top - 1].copy()
    following = np.empty_like(current)
    for j in range(top - 2, -1, -1):
        for s in range(size):
            advance(current[s], powers[j], following[s])
        if _farthest(following, law) > epsilon:
            age += 1 << j
            for s in range(size):
                _overwrite(current[s], following[s])
    return age + 1


@kernel
def _farthest(matrix: FloatArray, law: FloatArray) -> float:
    farthest = 0.0
    for s in range(len(matrix)):
        farthest = max(farthest, distance(matrix[s], law))
    return farthest
