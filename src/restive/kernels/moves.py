"""Metropolis steps of many particles at once."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel, part
from restive.kernels.elementary import logarithm
from restive.kernels.quantiles import normal_quantile
from restive.kernels.random import uniform_at
from restive.kernels.weighing import choose_ancestors

__all__ = ["accept", "propose", "resample"]

FloatArray = NDArray[np.float64]

LEAST = 2.0**-54


@kernel
def resample(logits: FloatArray, weights: FloatArray, key: np.uint64) -> FloatArray:
    """Particles [d, M] that are as many as the weights say."""
    d, count = logits.shape
    ancestors = np.empty(count, dtype=np.int64)
    choose_ancestors(weights, key, ancestors)
    chosen = np.empty((d, count))
    for m in range(count):
        for i in range(d):
            chosen[i, m] = logits[i, ancestors[m]]
    return chosen


@kernel
def propose(
    old: FloatArray, root: FloatArray, step: int, key: np.uint64, logits: FloatArray,
    trial: FloatArray,
) -> None:  # fmt: skip
    """Propose a step for each particle [d, M].

    In turn: a random walk of the width that suits a normal law of shape root root', one of a
    quarter of it, and the difference of two old particles, which leaps between modes.
    """
    d, count = logits.shape
    normals = np.empty(d)
    width = 2.38 / sqrt(d) * (1.0 if step % 3 == 0 else 0.25)
    for m in range(count):
        if step % 3 == 2:
            _leap(old, logits, m, key, trial)
        else:
            _stroll(root, logits, m, width, key, normals, trial)


@part
def _leap(old: FloatArray, logits: FloatArray, m: int, key: np.uint64, trial: FloatArray) -> None:
    d, count = old.shape
    one = int(uniform_at(key, m * (d + 2)) * count)
    other = int(uniform_at(key, m * (d + 2) + 1) * count)
    for i in range(d):
        trial[i, m] = logits[i, m] + (old[i, one] - old[i, other])


@part
def _stroll(
    root: FloatArray, logits: FloatArray, m: int, width: float, key: np.uint64,
    normals: FloatArray, trial: FloatArray,
) -> None:  # fmt: skip
    d = len(normals)
    for i in range(d):
        normals[i] = normal_quantile(max(uniform_at(key, m * (d + 2) + i), LEAST))
    for i in range(d):
        x = logits[i, m]
        for j in range(d):
            x += width * root[i, j] * normals[j]
        trial[i, m] = x


@kernel
def accept(
    key: np.uint64, trial: FloatArray, trial_logs: FloatArray, logits: FloatArray, logs: FloatArray
) -> None:
    """Take the proposed steps [d, M] that Metropolis' rule takes."""
    d, count = logits.shape
    for m in range(count):
        u = max(uniform_at(key, m * (d + 2) + d + 1), LEAST)
        if trial_logs[m] - logs[m] >= logarithm(u):
            logs[m] = trial_logs[m]
            for i in range(d):
                logits[i, m] = trial[i, m]
