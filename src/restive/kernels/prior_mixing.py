"""Mixing times of many matrices at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.chain import mixing_age, stationary_law
from restive.kernels.compiler import kernel

__all__ = ["mixing_ages"]


@kernel
def mixing_ages(matrices: NDArray[np.float64], epsilon: float) -> NDArray[np.int64]:
    """T^mix(epsilon) [M] of irreducible matrices [S, S, M]; -1 where 2^60 steps do not suffice."""
    count = matrices.shape[2]
    ages = np.empty(count, dtype=np.int64)
    for m in range(count):
        matrix = matrices[:, :, m].copy()
        law = stationary_law(matrix)
        ages[m] = mixing_age(matrix, law, epsilon) if np.isfinite(law).all() else -1
    return ages
