"""Rows of transition matrices with Dirichlet priors, many particles at once.

A row's free numbers are the logits x_j = log p_j - log p_ref, where ref is its last possible entry.
In them the density of a Dirichlet law is prod_j p_j^alpha_j up to a factor. Numbers of particles
stand side by side, particle last, so that the compiler handles several at once.

Symbols: S states, R rows (S where one matrix serves pulled and passive steps, else 2 S, active rows
first), d free numbers in all, M particles.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel, part
from restive.kernels.elementary import exponential, logarithm

__all__ = ["DirichletRows", "place_rows"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class DirichletRows(NamedTuple):
    """What is fixed of an arm's prior."""

    alphas: FloatArray  # [R, S], zero where a step is impossible
    totals: FloatArray  # [R] sums of alphas
    references: IntArray  # [R] column of each row's last possible entry
    firsts: IntArray  # [R + 1] first free number of each row
    columns: IntArray  # [d] column of each free number
    precisions: FloatArray  # [d] one over the prior variance of each free number
    generators: IntArray  # of the lattice of M points, see kernels.lattice


@kernel
def place_rows(
    rows: DirichletRows, logits: FloatArray, matrices: FloatArray, logs: FloatArray
) -> None:
    """Write the matrices [R, S, M] at logits [d, M], and their log prior [M] up to a constant."""
    room = np.empty((2, len(logs)))
    logs[:] = 0.0
    matrices[:] = 0.0
    for r in range(len(rows.totals)):
        _place_row(rows, r, logits, matrices[r], logs, room)


@part
def _place_row(
    rows: DirichletRows, r: int, logits: FloatArray, row: FloatArray, logs: FloatArray,
    room: FloatArray,
) -> None:  # fmt: skip
    """Write one row [S, M]; `room` is [2, M]: the row's largest logit, and its sum."""
    reference = row[rows.references[r]]
    top, total = room[0], room[1]
    first, end = rows.firsts[r], rows.firsts[r + 1]
    top[:] = 0.0
    for i in range(first, end):
        x = logits[i]
        for m in range(len(top)):
            top[m] = max(top[m], x[m])
    for m in range(len(top)):
        reference[m] = exponential(-top[m])
        total[m] = reference[m]
    for i in range(first, end):
        alpha, x, entry = rows.alphas[r, rows.columns[i]], logits[i], row[rows.columns[i]]
        for m in range(len(top)):
            entry[m] = exponential(x[m] - top[m])
            total[m] += entry[m]
            logs[m] += alpha * x[m]
    for m in range(len(top)):
        logs[m] -= rows.totals[r] * (top[m] + logarithm(total[m]))
        reference[m] /= total[m]
    for i in range(first, end):
        entry = row[rows.columns[i]]
        for m in range(len(top)):
            entry[m] /= total[m]
