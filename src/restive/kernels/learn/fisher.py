"""Gradient and information of a posterior at a point, for Fisher scoring.

With b = b(s, n)[s'] and its slopes db in the free numbers, the gradient of the log posterior is
g = sum C db / b + (alpha_j - A_r p_j), and its expected curvature, which is never indefinite,
H = sum N(s, n) db db' / b + A_r (diag p - p p'), where N counts what was seen from (s, n) and A_r
sums a row's alphas. Slopes are differences; d + 1 particles carry a point and its neighbours.

Where a chance is close to 0 or 1 the expected curvature all but vanishes, though the posterior is
no wider than the prior. So the diagonal of H is at least the prior's precision.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.cholesky import (
    back_solve,
    factorise,
    forward_solve,
    inverse_root,
)
from restive.kernels.learn.dirichlet import DirichletRows
from restive.kernels.learn.likelihood import (
    AgedBeliefs,
    Counts,
    advance,
    begin,
    empty_beliefs,
    in_use,
)

__all__ = ["SLIGHTLY", "look_around", "scoring_step"]

FloatArray = NDArray[np.float64]

SLIGHTLY = 1e-5  # step of the differences


@kernel
def look_around(
    rows: DirichletRows, counts: Counts, matrices: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Gradient [d] and information [d, d] of the log posterior at a point.

    Matrices [R, S, d + 1] are those at the point, and SLIGHTLY beside it in each free number.
    """
    d = len(rows.columns)
    gradient, information = np.zeros(d), np.zeros((d, d))
    _add_prior(rows, matrices, gradient, information)
    _add_counts(counts, empty_beliefs(counts, matrices), gradient, information)
    for i in range(d):
        information[i, i] = max(information[i, i], rows.precisions[i])
        for k in range(i):
            information[k, i] = information[i, k]
    return gradient, information


@part
def _add_prior(
    rows: DirichletRows, matrices: FloatArray, gradient: FloatArray, information: FloatArray
) -> None:
    for r in range(len(rows.totals)):
        total = rows.totals[r]
        for i in range(rows.firsts[r], rows.firsts[r + 1]):
            p = matrices[r, rows.columns[i], 0]
            gradient[i] += rows.alphas[r, rows.columns[i]] - total * p
            information[i, i] += total * p
            for k in range(rows.firsts[r], i + 1):
                information[i, k] -= total * p * matrices[r, rows.columns[k], 0]


@part
def _add_counts(
    counts: Counts, aged: AgedBeliefs, gradient: FloatArray, information: FloatArray
) -> None:
    size = aged.beliefs.shape[0]
    begin(aged)
    age = 1
    for k in range(len(counts.ages)):
        if not in_use(counts, k):
            continue
        advance(aged, counts.ages[k] - age)
        age = counts.ages[k]
        for s in range(size):
            number = 0.0
            for j in range(size):
                number += counts.cells[k, s, j]
            if number > 0.0:
                for j in range(size):
                    if aged.beliefs[s, j, 0] > 0.0:
                        _add_cell(
                            aged.beliefs[s, j], counts.cells[k, s, j], number, gradient,
                            information,
                        )  # fmt: skip


@part
def _add_cell(
    chances: FloatArray, count: float, number: float, gradient: FloatArray, information: FloatArray
) -> None:
    """Add what a cell's chance b(s, n)[s'] at the point and its neighbours contributes."""
    b = chances[0]
    for i in range(len(gradient)):
        slope = (chances[i + 1] - b) / SLIGHTLY
        gradient[i] += count * slope / b
        for k in range(i + 1):
            information[i, k] += number * slope * ((chances[k + 1] - b) / SLIGHTLY) / b


@kernel
def scoring_step(
    gradient: FloatArray, information: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """Return H^-1 g [d], g' H^-1 g, and a lower triangle B [d, d] with B B' = H^-1."""
    d = len(gradient)
    root, step = np.zeros((d, d)), gradient.copy()
    factorise(information, root)
    forward_solve(root, step)
    back_solve(root, step)
    gain = 0.0
    for i in range(d):
        gain += step[i] * gradient[i]
    shape, column = np.zeros((d, d)), np.empty(d)
    inverse_root(root, column, shape)
    return step, gain, shape
