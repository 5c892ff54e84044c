"""The law of a kind: weights of candidates, from what was seen of all its arms.

Symbols: L[k, m] the likelihood of what was seen of arm k if it is candidate m, relative to that of
its best candidate; n[k] how many arms have shown just that; w[m] the law; d[k] the sum over m of
w[m] L[k, m]. A cell is (age n, last state s, next state s'), packed as (n S + s) S + s'. M is a
multiple of LANES: candidates that fill it up have no likelihood and no weight.

Sums are made in one order, and logarithms of sums and products alone, so that the numbers are the
same on every machine.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.chain import advance
from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import hot_kernel, inlined, part, place
from restive.kernels.jit.vectors import (
    LANES,
    everywhere,
    last,
    load,
    plus,
    store,
    sums_before,
    times,
)

__all__ = [
    "add_posteriors",
    "extrapolate",
    "improve_law",
    "write_likelihoods",
    "write_log_chances",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_GROWTH = 200.0  # of the logarithm of a weight, when steps are extrapolated


@hot_kernel
def write_log_chances(
    active: FloatArray, passive: FloatArray, cells: IntArray, work: FloatArray, logs: FloatArray
) -> None:
    """Write the log chances [M, C] of ascending cells [C] under candidates.

    `active` and `passive` are the candidates' matrices [M, S, S], `work` [3, S, S] is scratch.
    """
    size = active.shape[1]
    beliefs = work[0]  # b(s, n) of the age that was reached
    for m in range(len(active)):
        _copy(active[m], beliefs)
        reached = 1
        for c in range(len(cells)):
            before, seen = divmod(cells[c], size)
            age, state = divmod(before, size)
            if age > reached:
                _lead_on(passive[m], age - reached, work)
                reached = age
            logs[m, c] = logarithm(beliefs[state, seen])


@part
def _lead_on(passive: FloatArray, steps: int, work: FloatArray) -> None:
    """Lead the beliefs in work[0] on by so many steps: powers of the matrix by squaring."""
    beliefs, power, room = work[0], work[1], work[2]
    _copy(passive, power)
    while steps:
        if steps & 1:
            _multiply(beliefs, power, room)
            _copy(room, beliefs)
        steps >>= 1
        if steps:
            _multiply(power, power, room)
            _copy(room, power)


@part
def _multiply(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    for s in range(len(left)):
        advance(left[s], right, out[s])


@part
def _copy(source: FloatArray, target: FloatArray) -> None:
    for s in range(len(source)):
        for j in range(len(source)):
            target[s, j] = source[s, j]


@hot_kernel
def write_likelihoods(
    starts: IntArray, cells: IntArray, counts: IntArray, logs: FloatArray,
    likelihoods: FloatArray, tops: FloatArray,
) -> None:  # fmt: skip
    """Write likelihoods [K, M], relative to each row's largest.

    Row k was seen in `cells` from starts[k] on, as often as `counts` says; `logs` [cells, M] are
    the chances. `tops` [K] gets the logarithm of the largest; -inf where nothing is possible, and
    then the likelihoods are zeros.
    """
    for k in range(len(likelihoods)):
        row = likelihoods[k]
        for m in range(len(row)):
            row[m] = 0.0
        for i in range(starts[k], starts[k + 1]):
            chances, count = logs[cells[i]], float(counts[i])
            for m in range(len(row)):
                row[m] += count * chances[m]
        top = -inf
        for m in range(len(row)):
            top = max(top, row[m])
        tops[k] = top
        for m in range(len(row)):
            row[m] = exponential(row[m] - top) if top > -inf else 0.0


@hot_kernel
def add_posteriors(
    likelihoods: FloatArray, numbers: FloatArray, law: FloatArray, sums: FloatArray
) -> float:
    """Add up n[k] L[k, m] / d[k] in `sums` [M]; return sum_k n[k] log d[k]."""
    evidence = 0.0
    end = place(len(law))
    for k in range(len(likelihoods)):
        row = likelihoods[k]
        total = everywhere(0.0)
        for m in range(place(0), end, place(LANES)):
            total = plus(total, times(load(row, m), load(law, m)))
        chance = last(sums_before(total)) + last(total)
        evidence += numbers[k] * logarithm(chance)
        share = everywhere(numbers[k] / chance)
        for m in range(place(0), end, place(LANES)):
            store(sums, m, plus(load(sums, m), times(share, load(row, m))))
    return evidence


@hot_kernel
def improve_law(
    law: FloatArray, sums: FloatArray, flat: FloatArray, num_arms: float, better: FloatArray
) -> tuple[float, float]:
    """Write the law that a step of EM finds: the mean of the arms' posteriors and of `flat` [M].

    `flat` is the law of arms of which nothing is known, times their number.

    Returns
    -------
    The logarithm of the prior's density at `law`, up to a constant, and the largest share by which
    a weight grows.
    """
    total = num_arms
    for m in range(len(law)):
        total += flat[m]
    density, growth = 0.0, 0.0
    for m in range(len(law)):
        if law[m] > 0.0:
            better[m] = (law[m] * sums[m] + flat[m]) / total
            density += flat[m] * logarithm(law[m])
            growth = max(growth, better[m] / law[m] - 1.0)
        else:
            better[m] = 0.0
    return density, growth


@hot_kernel
def extrapolate(
    first: FloatArray, second: FloatArray, third: FloatArray, least: FloatArray, far: FloatArray
) -> None:
    """Write where two steps of EM, over three laws [M], seem to lead to (SQUAREM).

    In logarithms, where small weights go as far as large ones, and none below `least` [M].
    """
    squares, bends = 0.0, 0.0
    for m in range(len(far)):
        if first[m] > 0.0:
            step, bend = _steps(first[m], second[m], third[m])
            squares += step * step
            bends += bend * bend
    length = max(1.0, sqrt(squares / bends)) if bends > 0.0 else 1.0
    total = 0.0
    for m in range(len(far)):
        far[m] = 0.0
        if first[m] > 0.0:
            step, bend = _steps(first[m], second[m], third[m])
            ahead = 2.0 * length * step + length * length * bend
            far[m] = max(first[m] * exponential(min(ahead, MOST_GROWTH)), least[m])
        total += far[m]
    for m in range(len(far)):
        far[m] /= total


@inlined
def _steps(first: float, second: float, third: float) -> tuple[float, float]:
    """Return a step in logarithms, and how the next one differs from it."""
    step = logarithm(second / first)
    return step, logarithm(third / second) - step
