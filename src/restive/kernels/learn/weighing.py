"""Weights of particles from their logarithms, and what is read off them.

Sums are taken from the first particle on, so they have the same bits on every machine.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.random import uniform_at

__all__ = ["choose_ancestors", "effective_sample_size", "weigh", "write_weights"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@kernel
def weigh(logs: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Write e^logs relative to the largest [M].

    Returns
    -------
    Their effective sample size, and the logarithm of the mean of e^logs.
    """
    return write_weights(logs, weights)


@part
def write_weights(logs: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Do what `weigh` does, for kernels."""
    top = -inf
    for m in range(len(logs)):
        top = max(top, logs[m])
    if top == -inf:
        weights[:] = 0.0
        return 0.0, -inf
    total = 0.0
    for m in range(len(logs)):
        weights[m] = exponential(logs[m] - top)
    for m in range(len(logs)):
        total += weights[m]
    return effective_sample_size(weights), top + logarithm(total / len(logs))


@part
def effective_sample_size(weights: FloatArray) -> float:
    """How many equal weights estimate as well as these: (sum w)^2 / sum w^2, 0 if all are 0."""
    total, squares = 0.0, 0.0
    for m in range(len(weights)):
        total += weights[m]
        squares += weights[m] * weights[m]
    return total * total / squares if squares > 0.0 else 0.0


@part
def choose_ancestors(weights: FloatArray, key: np.uint64, ancestors: IntArray) -> None:
    """Choose a source for each particle [M]: each as often as its weight says, in random order.

    The order must be random: a lattice is used beside it, whose points are in order too.
    """
    count = len(ancestors)
    total = 0.0
    for j in range(len(weights)):
        total += weights[j]
    start = uniform_at(key, count)
    chosen, below = 0, weights[0]
    for i in range(count):
        while below <= (i + start) / count * total and chosen < len(weights) - 1:
            chosen += 1
            below += weights[chosen]
        ancestors[i] = chosen
    for i in range(count - 1, 0, -1):
        j = int(uniform_at(key, i) * (i + 1))
        ancestors[i], ancestors[j] = ancestors[j], ancestors[i]
