"""Means and spreads over replications, one replication after the other.

Each row is added by itself, in order, so the result does not depend on how rows were cut into
chunks (Welford's recurrence).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import kernel

__all__ = ["add_rows"]

FloatArray = NDArray[np.float64]


@kernel
def add_rows(
    rows: FloatArray, first: int, mean: FloatArray, squares: FloatArray, groups: FloatArray
) -> None:
    """Take in rows [R, M] of replications first, first + 1, ...

    `mean` [M] and `squares` [M] (sum of squared deviations) are brought up to date; `groups` [G, M]
    gets the sums of each G-th replication.
    """
    num_groups = len(groups)
    for r in range(rows.shape[0]):
        count = first + r + 1
        group = (first + r) % num_groups
        for j in range(rows.shape[1]):
            value = rows[r, j]
            deviation = value - mean[j]
            mean[j] += deviation / count
            squares[j] += deviation * (value - mean[j])
            groups[group, j] += value
