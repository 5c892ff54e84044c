"""Posteriors of many arms over shared candidates.

Symbols: L[k, m] the likelihood of what was seen of arm k if it is candidate m; w[m] weights.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential
from restive.kernels.jit.compiler import inlined, kernel, place

__all__ = [
    "add_log_likelihoods",
    "normalise_posteriors",
    "summarise_posteriors",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

FAINT = -60.0  # log of a weight, relative to the largest, that no sum would show


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
def normalise_posteriors(logs: FloatArray) -> int:
    """Turn log posteriors [K, M], up to a constant for each arm, into weights that sum to 1.

    Returns the first arm that nothing has any weight for, or -1.
    """
    num_arms, size = logs.shape
    for k in range(num_arms):
        weights = logs[k]
        largest = weights.max()
        if not np.isfinite(largest):
            return k
        total = 0.0
        for m in range(size):
            weights[m] = exponential(weights[m] - largest)
            total += weights[m]
        for m in range(size):
            weights[m] /= total
    return -1


@kernel
def summarise_posteriors(
    logs: FloatArray, level_of: IntArray, levels: FloatArray, edges: FloatArray, ends: FloatArray,
    means: FloatArray, quantiles: FloatArray,
) -> int:  # fmt: skip
    """Means and quantiles of several probabilities, for each arm.

    Parameters
    ----------
    logs
        Log posteriors [K, M], up to a constant for each arm.
    level_of, levels
        By probability and candidate [E, M]: which of its distinct values it has; and these [E, L].
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
    weights = np.empty(size)
    masses = np.empty(levels.shape[1])
    for k in range(num_arms):
        largest = -np.inf
        for m in range(size):
            largest = max(largest, logs[k, m])
        if not np.isfinite(largest):
            return k
        total = 0.0
        for m in range(size):
            weight = logs[k, m] - largest
            weight = exponential(weight) if weight > FAINT else 0.0
            weights[m] = weight
            total += weight
        for e in range(len(level_of)):
            _add_up(weights, level_of[e], masses)
            mean = 0.0
            for level in range(len(masses)):
                mean += masses[level] * levels[e, level]
            means[k, e] = mean / total
            _read_off(masses, total, edges[e], ends, quantiles[k, e])
    return -1


@inlined
def _add_up(weights: FloatArray, level_of: IntArray, masses: FloatArray) -> None:
    """Add up weights [M] by level; neighbours that share one are added up first."""
    masses[:] = 0.0
    level, mass = level_of[0], 0.0
    for m in range(len(weights)):
        if level_of[m] != level:
            masses[place(level)] += mass
            level, mass = level_of[m], 0.0
        mass += weights[m]
    masses[place(level)] += mass


@inlined
def _read_off(
    masses: FloatArray, total: float, edges: FloatArray, ends: FloatArray, quantiles: FloatArray
) -> None:
    """Quantiles [Q] of a distribution that is even on each stretch."""
    below, level = 0.0, 0
    for q in range(len(ends)):
        wanted = ends[q] * total
        # the last stretch that there is takes whatever rounding leaves over
        while below + masses[level] < wanted and edges[level + 2] == edges[level + 2]:
            below += masses[level]
            level += 1
        share = min((wanted - below) / max(masses[level], 1e-300), 1.0)
        quantiles[q] = edges[level] + share * (edges[level + 1] - edges[level])
