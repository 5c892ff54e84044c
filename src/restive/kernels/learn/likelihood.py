"""The likelihood of a count table, many particles at once.

log L = sum of C(s, n, s') log b(s, n)[s'], with b(s, n) = e_s P_active P_passive^(n-1). Beliefs are
carried from one age in use to the next by products of non-negative matrices, so that even the
smallest chances have all their digits. A gap between ages is crossed by powers P^(2^k), made once.

Logarithms cost the most. Where C is whole, b = 2^e m is split: C e is added up, m^C is multiplied
to a product that is never too large or small, and one logarithm serves many cells.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import LOG2, logarithm, split
from restive.kernels.jit.compiler import kernel, part, place
from restive.kernels.jit.vectors import LANES, load, plus, store, times

__all__ = [
    "AgedBeliefs",
    "Counts",
    "add_log_likelihood",
    "add_logs",
    "advance",
    "begin",
    "empty_beliefs",
    "in_use",
    "levels_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


MOST_FACTORS = 1800  # each within [2^-1/2, 2^1/2): their product is within [2^-900, 2^900]


class Counts(NamedTuple):
    """What was seen of an arm; ages ascend, and are nodes (see `particles`).

    Ages at which nothing was counted may be among them.
    """

    ages: IntArray  # [A]
    cells: FloatArray  # [A, S, S] number seen in s, that age ago, and now in s'


class AgedBeliefs(NamedTuple):
    """Beliefs of particles as they age."""

    matrices: FloatArray  # [R, S, M]
    beliefs: FloatArray  # [S, S, M] b(s, n)[s'] at the present age
    spare: FloatArray  # [S, M]
    powers: FloatArray  # [L, S, S, M] P_passive^(2^k)


@kernel
def add_log_likelihood(counts: Counts, matrices: FloatArray, logs: FloatArray) -> None:
    """Add the log likelihood of matrices [R, S, M] to `logs` [M]."""
    add_logs(counts, empty_beliefs(counts, matrices), logs, np.empty((3, len(logs))))


@part
def add_logs(counts: Counts, aged: AgedBeliefs, logs: FloatArray, scratch: FloatArray) -> None:
    """Do so in arrays of the caller's; `scratch` is [3, M]: a product, a power, exponents."""
    product, power, exponents = scratch[0], scratch[1], scratch[2]
    product[:] = 1.0
    exponents[:] = 0.0
    size = aged.beliefs.shape[0]
    begin(aged)
    factors = 0.0
    age = 1
    for i in range(len(counts.ages)):
        if not in_use(counts, i):
            continue
        advance(aged, counts.ages[i] - age)
        age = counts.ages[i]
        for s in range(size):
            for j in range(size):
                number, chances = counts.cells[i, s, j], aged.beliefs[s, j]
                if number <= 0.0:
                    continue
                if number > MOST_FACTORS or number != int(number):
                    for m in range(len(logs)):
                        logs[m] += number * logarithm(chances[m])
                    continue
                if factors + number > MOST_FACTORS:
                    _add_logarithms(product, logs)
                    factors = 0.0
                factors += number
                _multiply_power(chances, int(number), power, product, exponents)
    _add_logarithms(product, logs)
    for m in range(len(logs)):
        logs[m] += LOG2 * exponents[m]


@part
def in_use(counts: Counts, i: int) -> bool:
    """Whether anything was counted at an age; others are passed over in one leap."""
    size = counts.cells.shape[1]
    for s in range(size):
        for j in range(size):
            if counts.cells[i, s, j] > 0.0:
                return True
    return False


@part
def _multiply_power(
    chances: FloatArray, number: int, power: FloatArray, product: FloatArray, exponents: FloatArray
) -> None:
    """Multiply chances [M], each to the power `number`, to 2^exponents times a product."""
    if number == 1:  # often, and one pass is enough
        for m in range(len(product)):
            chance, exponent = split(chances[m])
            exponents[m] += exponent
            product[m] *= chance
        return
    for m in range(len(product)):
        power[m], exponent = split(chances[m])
        exponents[m] += number * exponent
    while True:
        if number & 1:
            for m in range(len(product)):
                product[m] *= power[m]
        number >>= 1
        if number == 0:
            break
        for m in range(len(product)):
            power[m] *= power[m]


@part
def _add_logarithms(product: FloatArray, logs: FloatArray) -> None:
    """Add the logarithms of products [M], which become 1."""
    for m in range(len(product)):
        logs[m] += logarithm(product[m])
        product[m] = 1.0


@kernel
def empty_beliefs(counts: Counts, matrices: FloatArray) -> AgedBeliefs:
    """Return beliefs of these matrices [R, S, M], to be aged as the counts need it."""
    _, size, count = matrices.shape
    return AgedBeliefs(
        matrices,
        np.empty((size, size, count)),
        np.empty((size, count)),
        np.empty((levels_of(counts), size, size, count)),
    )


@part
def levels_of(counts: Counts) -> int:
    """How many powers P^(2^k) cross the widest gap between ages in use."""
    widest, before = 1, 1
    for i in range(len(counts.ages)):
        if in_use(counts, i):
            widest = max(widest, counts.ages[i] - before)
            before = counts.ages[i]
    levels = 1
    while widest >> levels:
        levels += 1
    return levels


@part
def begin(aged: AgedBeliefs) -> None:
    """Go to age 1, and make the powers."""
    size, levels = aged.beliefs.shape[0], aged.powers.shape[0]
    passive = aged.matrices.shape[0] - size  # the first of its rows
    for s in range(size):
        copy_rows(aged.matrices[s], aged.beliefs[s])
        copy_rows(aged.matrices[passive + s], aged.powers[0, s])
    for k in range(1, levels):
        for s in range(size):
            multiply_row(aged.powers[k - 1, s], aged.powers[k - 1], aged.powers[k, s])


@part
def advance(aged: AgedBeliefs, steps: int) -> None:
    """Make the beliefs so many steps older."""
    level = 0
    while steps >> level:
        if (steps >> level) & 1:
            for s in range(aged.beliefs.shape[0]):
                if aged.beliefs.shape[0] == 2:
                    _multiply_pair(aged.beliefs[s], aged.powers[level])
                else:
                    copy_rows(aged.beliefs[s], aged.spare)
                    multiply_row(aged.spare, aged.powers[level], aged.beliefs[s])
        level += 1


@part
def _multiply_pair(row: FloatArray, matrix: FloatArray) -> None:
    """Multiply rows [2, M] by matrices [2, 2, M], in one pass."""
    one, two = row[0], row[1]
    a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[1, 0], matrix[1, 1]
    whole = len(one) // LANES * LANES
    for m in range(place(0), place(whole), place(LANES)):
        p, q = load(one, m), load(two, m)
        store(one, m, plus(times(p, load(a, m)), times(q, load(c, m))))
        store(two, m, plus(times(p, load(b, m)), times(q, load(d, m))))
    for m in range(whole, len(one)):
        x, y = one[m], two[m]
        one[m] = x * a[m] + y * c[m]
        two[m] = x * b[m] + y * d[m]


@part
def copy_rows(source: FloatArray, target: FloatArray) -> None:
    """Copy numbers [S, M]."""
    for j in range(source.shape[0]):
        one, other = source[j], target[j]
        for m in range(len(one)):
            other[m] = one[m]


@part
def multiply_row(row: FloatArray, matrix: FloatArray, result: FloatArray) -> None:
    """Write the products [S, M] of rows [S, M] and matrices [S, S, M]."""
    for j in range(row.shape[0]):
        product, share, entry = result[j], row[0], matrix[0, j]
        for m in range(len(product)):
            product[m] = share[m] * entry[m]
        for i in range(1, row.shape[0]):
            share, entry = row[i], matrix[i, j]
            for m in range(len(product)):
                product[m] += share[m] * entry[m]
