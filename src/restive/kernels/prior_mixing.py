"""Mixing times of many small matrices at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.chain import mixing_age, stationary_law
from restive.kernels.compiler import kernel

__all__ = ["mixing_ages"]

ALL_AT_ONCE = 1 << 62  # products: a matrix is done in one go


@kernel
def mixing_ages(matrices: NDArray[np.float64], epsilon: float) -> NDArray[np.int64]:
    """T^mix(epsilon) [M] of irreducible matrices [S, S, M]; -1 where 2^60 steps do not suffice."""
    size, count = matrices.shape[1], matrices.shape[2]
    ages = np.empty(count, dtype=np.int64)
    work, law, powers = np.empty((size, size)), np.empty(size), np.empty((61, size, size))
    current, following = np.empty((size, size)), np.empty((size, size))
    progress = np.empty(4, dtype=np.int64)
    for m in range(count):
        for i in range(size):
            for j in range(size):
                work[i, j] = matrices[i, j, m]
                powers[0, i, j] = matrices[i, j, m]
        stationary_law(work, law, size - 1, ALL_AT_ONCE)
        progress[:] = 0
        age = mixing_age(powers, current, following, law, epsilon, progress, ALL_AT_ONCE)
        ages[m] = age if law.sum() > 0.0 else -1  # never for a law that is not a number
    return ages
