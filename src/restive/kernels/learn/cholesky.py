"""Small positive definite matrices: roots and solutions, in scratch arrays of the caller's."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithm
from restive.kernels.jit.compiler import part

__all__ = ["back_solve", "factorise", "forward_solve", "inverse_root", "log_diagonal"]

FloatArray = NDArray[np.float64]

NOISE = 1e-12  # of a diagonal entry: narrower directions count as this wide


@part
def factorise(matrix: FloatArray, root: FloatArray) -> None:
    """Write the lower triangle A with A A' = matrix [d, d]; it may replace the matrix.

    The matrix is given by its lower triangle.
    """
    for i in range(len(matrix)):
        for j in range(i + 1):
            value = matrix[i, j]
            for k in range(j):
                value -= root[i, k] * root[j, k]
            if i == j:
                root[i, i] = sqrt(max(value, NOISE * matrix[i, i] + 1e-280))
            else:
                root[i, j] = value / root[j, j]
                root[j, i] = 0.0


@part
def forward_solve(root: FloatArray, vector: FloatArray) -> None:
    """Replace the vector [d] by A^-1 times it."""
    for i in range(len(vector)):
        value = vector[i]
        for j in range(i):
            value -= root[i, j] * vector[j]
        vector[i] = value / root[i, i]


@part
def back_solve(root: FloatArray, vector: FloatArray) -> None:
    """Replace the vector [d] by A'^-1 times it."""
    for i in range(len(vector) - 1, -1, -1):
        value = vector[i]
        for j in range(i + 1, len(vector)):
            value -= root[j, i] * vector[j]
        vector[i] = value / root[i, i]


@part
def inverse_root(root: FloatArray, column: FloatArray, result: FloatArray) -> None:
    """Write the lower triangle B with B B' = (A A')^-1, where `root` is A."""
    d = len(column)
    for i in range(d):  # columns of (A A')^-1
        column[:] = 0.0
        column[i] = 1.0
        forward_solve(root, column)
        back_solve(root, column)
        for j in range(i, d):
            result[j, i] = column[j]
    factorise(result, result)


@part
def log_diagonal(root: FloatArray) -> float:
    """Sum of the logarithms of the diagonal: half the log determinant of A A'."""
    total = 0.0
    for i in range(len(root)):
        total += logarithm(root[i, i])
    return total
