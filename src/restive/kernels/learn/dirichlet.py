"""Rows of transition matrices with Dirichlet priors, many particles at once.

A row's free numbers are the logits x_j = log p_j - log p_ref, where ref is its last possible entry.
In them the density of a Dirichlet law is prod_j p_j^alpha_j up to a factor. Numbers of particles
stand side by side, particle last, so that the compiler handles several at once.

Symbols: S states, R rows (S where one matrix serves pulled and passive steps, else 2 S, active rows
first), d free numbers in all, M particles.

Points of a prior are uniform numbers through the quantiles of stick breaking: of what a row's
earlier entries leave, entry j takes a share that is Beta(alpha_j, alphas after it).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.lattice import centred_place
from restive.kernels.learn.quantiles import beta_log_odds, log_share
from restive.kernels.random import uniform_at

__all__ = ["DirichletRows", "lattice_logits", "place_each_row", "place_rows", "random_logits"]

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
    generators: IntArray  # of the lattice of M points, see `lattice`


@kernel
def place_rows(
    rows: DirichletRows, logits: FloatArray, matrices: FloatArray, logs: FloatArray
) -> None:
    """Write the matrices [R, S, M] at logits [d, M], and their log prior [M] up to a constant."""
    place_each_row(rows, logits, matrices, logs, np.empty((2, len(logs))))


@part
def place_each_row(
    rows: DirichletRows, logits: FloatArray, matrices: FloatArray, logs: FloatArray,
    scratch: FloatArray,
) -> None:  # fmt: skip
    """Do so in an array of the caller's [2, M]."""
    logs[:] = 0.0
    matrices[:] = 0.0
    for r in range(len(rows.totals)):
        _place_row(rows, r, logits, matrices[r], logs, scratch)


@part
def _place_row(
    rows: DirichletRows, r: int, logits: FloatArray, row: FloatArray, logs: FloatArray,
    scratch: FloatArray,
) -> None:  # fmt: skip
    """Write one row [S, M]; `scratch` is [2, M]: the row's largest logit, and its sum."""
    reference = row[rows.references[r]]
    top, total = scratch[0], scratch[1]
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


@kernel
def lattice_logits(rows: DirichletRows, generators: IntArray, count: int) -> FloatArray:
    """Logits [d, count] of the lattice of so many points."""
    us = np.empty((len(rows.columns), count))
    for i in range(len(us)):
        for m in range(count):
            us[i, m] = (centred_place(m, generators[i], count) + 0.5) / count
    return _logits_at(rows, us)


@kernel
def random_logits(rows: DirichletRows, key: np.uint64) -> FloatArray:
    """Logits [d, 1] drawn with the first d numbers of `key`."""
    us = np.empty((len(rows.columns), 1))
    for i in range(len(us)):
        us[i, 0] = uniform_at(key, i) + 2.0**-54  # the middle of what 53 bits stand for
    return _logits_at(rows, us)


@kernel
def _logits_at(rows: DirichletRows, us: FloatArray) -> FloatArray:
    """Logits [d, M] at uniform numbers [d, M]."""
    logits = np.empty_like(us)
    count = us.shape[1]
    left = np.empty(count)  # log of what is left of the stick
    for r in range(len(rows.totals)):
        left[:] = 0.0
        after = rows.totals[r]
        for i in range(rows.firsts[r], rows.firsts[r + 1]):
            alpha = rows.alphas[r, rows.columns[i]]
            after -= alpha
            if i == rows.firsts[r + 1] - 1:
                after = rows.alphas[r, rows.references[r]]
            for m in range(count):
                y = beta_log_odds(alpha, after, min(us[i, m], 1.0 - 2.0**-53))
                logits[i, m] = left[m] + log_share(y)
                left[m] += log_share(-y)
        for i in range(rows.firsts[r], rows.firsts[r + 1]):
            for m in range(count):
                logits[i, m] -= left[m]
    return logits
