"""How long Markov chains remember where they started, for many of equal size at once.

Products are plain sums in a fixed order, so that the ages are the same on every machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.pace import look

__all__ = ["irreducible_laws", "mixing_ages"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_DOUBLINGS = 60


def mixing_ages(matrices: FloatArray, laws: FloatArray, epsilon: float) -> IntArray:
    """First t >= 1 at which every row of P^t is within `epsilon` of the stationary law, [M].

    Matrices are [S, S, M], laws [S, M]. The L1 distance never grows with t, so that t is found by
    doubling and then bisection over powers of two: at most 120 products. It is -1 where 2^60 steps
    do not suffice.
    """
    powers = [matrices]  # P^(2^j)
    mixed = [_farthest(matrices, laws) <= epsilon]
    while not mixed[-1].all() and len(powers) <= MOST_DOUBLINGS:
        powers.append(_product(powers[-1], powers[-1]))
        mixed.append(mixed[-1] | (_farthest(powers[-1], laws) <= epsilon))
    doublings = np.sum(~np.array(mixed), axis=0)  # the first power of two that is late enough
    early = np.zeros(len(doublings), dtype=np.int64)  # the largest age known to be too early
    current = np.broadcast_to(np.eye(len(matrices))[:, :, None], matrices.shape)
    for j in range(len(powers) - 2, -1, -1):
        following = np.where(early == 0, powers[j], _product(current, powers[j]))
        too_early = (j < doublings) & ~(_farthest(following, laws) <= epsilon)
        early += too_early * (1 << j)
        current = np.where(too_early, following, current)
    return np.where(mixed[-1], early + 1, -1)


def irreducible_laws(matrices: FloatArray) -> FloatArray:
    """Stationary laws [S, M] of irreducible matrices [S, S, M].

    Grassmann, Taksar and Heyman's elimination, as in `kernels.chain`.
    """
    work = matrices.copy()
    for last in range(len(work) - 1, 0, -1):
        work[:last, last] /= work[last, :last].sum(axis=0)
        work[:last, :last] += work[:last, last, None] * work[None, last, :last]
    laws: FloatArray = np.ones(work.shape[1:])
    for j in range(1, len(work)):
        laws[j] = (laws[:j] * work[:j, j]).sum(axis=0)
    laws /= laws.sum(axis=0)
    return laws


def _farthest(rows: FloatArray, laws: FloatArray) -> FloatArray:
    """Largest L1 distance [M] of a row from the law."""
    most: FloatArray = np.abs(rows - laws).sum(axis=1).max(axis=0)
    return most


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right, rescaled so that rounding never adds up over many steps."""
    out = np.zeros_like(right)
    for middle in range(len(right)):
        look()
        out += left[:, middle, None] * right[None, middle]
    total = np.zeros((len(right), 1, right.shape[2]))
    for j in range(len(right)):
        total += out[:, j : j + 1]
    return out / total
