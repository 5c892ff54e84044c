"""Posteriors of many arms that share a finite prior, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.log_fit import add_log_likelihoods
from restive.logs.counts import LogCounts
from restive.prior import ArmPrior
from restive.problem import Arm

__all__ = ["SharedCandidates", "log_chances", "stacked", "times"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

BLOCK = 1 << 22  # posterior weights held at once
DISTINCT = 4096  # cells whose chances are tabulated at once


def stacked(arms: Sequence[Arm]) -> tuple[FloatArray, FloatArray]:
    """Active and passive matrices [M, S, S]."""
    return np.array([arm.active for arm in arms]), np.array([arm.passive for arm in arms])


def log_chances(
    active: FloatArray, passive: FloatArray, last: IntArray, ages: IntArray, following: IntArray
) -> FloatArray:
    """Logarithms [C, M] of b(s, n)[s'] for M arms and C cells."""
    chances = np.empty((len(ages), len(active)))
    power, reached = active, 1  # P_active P_passive^(n - 1)
    order = np.argsort(ages, kind="stable")
    for at in order.tolist():
        ahead = int(ages[at]) - reached
        if ahead:
            power = times(power, _power(passive, ahead))
            reached += ahead
        chances[at] = power[:, last[at], following[at]]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(chances))


def times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products [M, S, S] of matrices, with rows that sum to one."""
    product = np.einsum("mij,mjk->mik", left, right)
    # rounding never adds up over many steps
    return np.asarray(product / product.sum(axis=2, keepdims=True))


def _power(matrix: FloatArray, exponent: int) -> FloatArray:
    power: FloatArray | None = None
    while exponent:
        if exponent & 1:
            power = matrix if power is None else times(power, matrix)
        exponent >>= 1
        matrix = times(matrix, matrix) if exponent else matrix
    assert power is not None
    return power


class SharedCandidates:
    """A finite prior shared by several arms, and their posteriors under it."""

    def __init__(self, prior: ArmPrior, names: Sequence[str]) -> None:
        self.prior = prior
        self.names = names  # of all arms, for messages

    @cached_property
    def matrices(self) -> tuple[FloatArray, FloatArray]:
        """Active and passive matrices [M, S, S]."""
        return stacked(self.prior.candidates)

    def log_likelihoods(self, counts: LogCounts, arms: IntArray) -> FloatArray:
        """Log likelihoods [arms, M] of what was seen of these arms."""
        out = np.zeros((len(arms), len(self.prior.candidates)))
        sizes = np.diff(counts.starts)[arms]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(counts.starts[arms] - starts[:-1], sizes) + np.arange(starts[-1])
        distinct, which = np.unique(counts.cells[places], return_inverse=True)
        for begin in range(0, len(distinct), DISTINCT):
            part = distinct[begin : begin + DISTINCT]
            chances = log_chances(*self.matrices, *counts.unpacked(part))
            mine = (which >= begin) & (which < begin + DISTINCT)
            own = np.concatenate([[0], np.cumsum(mine)])[starts]
            add_log_likelihoods(own, which[mine] - begin, counts.counts[places][mine], chances, out)
        return out

    def blocks(
        self, counts: LogCounts, arms: IntArray, progress: Callable[[float], None]
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield arms and their posterior weights [arms, M], some at a time."""
        size = max(BLOCK // len(self.prior.candidates), 1)
        for begin in range(0, len(arms), size):
            some = arms[begin : begin + size]
            yield some, self.weights(counts, some)
            progress((begin + len(some)) / len(arms))

    def weights(self, counts: LogCounts, arms: IntArray) -> FloatArray:
        """Posterior weights [arms, M]."""
        logs = self.log_likelihoods(counts, arms)
        with np.errstate(divide="ignore"):
            logs += np.log(self.prior.weights)
        largest = logs.max(axis=1)
        if not np.isfinite(largest).all():
            name = self.names[int(arms[np.flatnonzero(~np.isfinite(largest))[0]])]
            raise ProblemError(
                f"arm {name!r}: what the log shows has probability zero under every candidate of "
                "the prior"
            )
        logs -= largest[:, None]
        weights = np.exp(logs, out=logs)
        weights /= weights.sum(axis=1)[:, None]
        return weights
