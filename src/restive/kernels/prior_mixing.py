"""Mixing times of many matrices at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.chain import mixing_age, stationary_law
from restive.kernels.compiler import kernel

__all__ = ["mixing_ages"]

ALL = 1 << 62  # work: a matrix takes no time


@kernel
def mixing_ages(matrices: NDArray[np.float64], epsilon: float) -> NDArray[np.int64]:
    """T^mix(epsilon) [M] of irreducible matrices [S, S, M]; -1 where 2^60 steps do not suffice."""
    size, count = matrices.shape[0], matrices.shape[2]
    ages = np.empty(count, dtype=np.int64)
    law, work = np.empty(size), np.empty((size, size))
    powers, progress = np.empty((61, size, size)), np.zeros(4, dtype=np.int64)
    current, following = np.empty((size, size)), np.empty((size, size))
    for m in range(count):
        for i in range(size):
            for j in range(size):
                work[i, j] = powers[0, i, j] = matrices[i, j, m]
        progress[:] = 0
        stationary_law(work, law, size - 1, ALL)
        ages[m] = -1
        if np.isfinite(law).all():
            ages[m] = mixing_age(powers, current, following, law, epsilon, progress, ALL)
    return ages
