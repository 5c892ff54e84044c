"""Posteriors of many arms over shared candidates.

Symbols: L[k, m] the likelihood of what was seen of arm k if it is candidate m; w[m] weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel

__all__ = ["add_log_likelihoods", "mean_posterior", "summarise_posteriors"]

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


@kernel
def summarise_posteriors(
    logs: FloatArray, values: FloatArray, level_of: IntArray, edges: FloatArray, ends: FloatArray,
    means: FloatArray, quantiles: FloatArray,
) -> int:  # fmt: skip
    """Means and quantiles of several probabilities, for each arm.

    Parameters
    ----------
    logs
        Log posteriors [K, M], up to a constant for each arm; overwritten by weights that sum to 1.
    values, level_of
        By probability and candidate [E, M]: its value, and which of its distinct values that is.
    edges
        Edges [E, L + 1] of the stretches that the distinct values stand for; nan beyond the last.
    ends
        Which quantiles [Q], ascending.
    means, quantiles
        Get the results [K, E] and [K, E, Q].

    Returns
    -------
    The first arm that nothing has any weight for, or -1.
    """
    num_arms, size = logs.shape
    masses = np.empty(edges.shape[1] - 1)
    for k in range(num_arms):
        weights = logs[k]
        largest = weights.max()
        if not np.isfinite(largest):
            return k
        total = 0.0
        for m in range(size):
            weights[m] = np.exp(weights[m] - largest)
            total += weights[m]
        for m in range(size):
            weights[m] /= total
        for e in range(len(values)):
            masses[:] = 0.0
            mean = 0.0
            for m in range(size):
                mean += weights[m] * values[e, m]
                masses[level_of[e, m]] += weights[m]
            means[k, e] = mean
            below, level = 0.0, 0
            for q in range(len(ends)):
                # the last stretch that there is takes whatever rounding leaves over
                while (
                    below + masses[level] < ends[q] and edges[e, level + 2] == edges[e, level + 2]
                ):
                    below += masses[level]
                    level += 1
                share = min((ends[q] - below) / max(masses[level], 1e-300), 1.0)
                step = edges[e, level + 1] - edges[e, level]
                quantiles[k, e, q] = edges[e, level] + share * step
    return -1
