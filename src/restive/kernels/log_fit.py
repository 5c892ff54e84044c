"""Posteriors of many arms over shared candidates.

Symbols: L[k, m] the likelihood of what was seen of arm k if it is candidate m; w[m] weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel

__all__ = ["add_log_likelihoods", "mean_posterior"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@kernel
def add_log_likelihoods(
    starts: IntArray, cells: IntArray, counts: IntArray, log_chances: FloatArray, out: FloatArray
) -> None:
    """Add up log likelihoods [K, M]: counts times log chances [cells, M] of each arm's cells."""
    for k in range(len(starts) - 1):
        for i in range(starts[k], starts[k + 1]):
            chances = log_chances[cells[i]]
            count = float(counts[i])
            for m in range(len(chances)):
                out[k, m] += count * chances[m]


@kernel
def mean_posterior(likelihoods: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean over arms of their posteriors [M], for likelihoods [K, M] and a common prior [M]."""
    num_arms, size = likelihoods.shape
    sums = np.zeros(size)
    for k in range(num_arms):
        total = 0.0
        for m in range(size):
            total += likelihoods[k, m] * weights[m]
        for m in range(size):
            sums[m] += likelihoods[k, m] / total
    return np.asarray(sums * weights / num_arms)
