"""Points of a prior: uniform numbers through the quantiles of stick breaking.

Of what a row's earlier entries leave, entry j takes a share that is Beta(alpha_j, alphas after it).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel
from restive.kernels.dirichlet import DirichletRows
from restive.kernels.quantiles import beta_log_odds, log_share
from restive.kernels.random import uniform_at

__all__ = ["lattice_logits", "random_logits"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def lattice_logits(rows: DirichletRows, generators: IntArray, count: int) -> FloatArray:
    """Logits [d, count] of the lattice of so many points."""
    us = np.empty((len(rows.columns), count))
    for i in range(len(us)):
        for m in range(count):
            us[i, m] = (m * generators[i] % count + 0.5) / count
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
