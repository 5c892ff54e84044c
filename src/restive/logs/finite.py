"""Posteriors of many arms that share a finite prior, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.log_fit import add_log_likelihoods, summarise_posteriors
from restive.logs.counts import LogCounts
from restive.prior import ArmPrior
from restive.problem import Arm

__all__ = ["SharedCandidates", "Summary", "log_chances", "stacked", "times"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

BLOCK = 1 << 22  # posterior weights held at once
DISTINCT = 4096  # cells whose chances are tabulated at once
INTERVAL = np.array([0.05, 0.95])  # ends of a 90% interval


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


@dataclass(frozen=True, eq=False)
class Summary:
    """Means of the entries of some arms' matrices, and 90% intervals of those of the active one."""

    active: FloatArray  # [K, S, S]
    passive: FloatArray  # [K, S, S]
    low: FloatArray  # [K, S, S]
    high: FloatArray  # [K, S, S]


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
        self, counts: LogCounts, arms: IntArray, progress: Callable[[float], None] = lambda s: None
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield arms and their posterior weights [arms, M], some at a time."""
        for some, logs in self._log_posteriors(counts, arms, progress):
            self._summarised(logs, some, np.zeros((0, logs.shape[1])))
            yield some, logs

    def weights(self, counts: LogCounts, arms: IntArray) -> FloatArray:
        """Posterior weights [arms, M]."""
        return np.concatenate([weights for _, weights in self.blocks(counts, arms)])

    def summary(
        self, counts: LogCounts, arms: IntArray, progress: Callable[[float], None] = lambda s: None
    ) -> Summary:
        """Return what the posteriors of these arms say."""
        active, passive = self.matrices
        size = active.shape[1]
        flat = [part.reshape(len(part), -1).T for part in (active, passive)]
        same = np.array_equal(active, passive)
        values = flat[0] if same else np.concatenate(flat)
        means = np.empty((len(arms), len(values)))
        ends = np.empty((len(arms), len(values), 2))
        done = 0
        for some, logs in self._log_posteriors(counts, arms, progress):
            own = slice(done, done + len(some))
            means[own], ends[own] = self._summarised(logs, some, values)
            done += len(some)
        shape = (len(arms), size, size)
        entries = size * size
        return Summary(
            means[:, :entries].reshape(shape),
            means[:, -entries:].reshape(shape),
            ends[:, :entries, 0].reshape(shape),
            ends[:, :entries, 1].reshape(shape),
        )

    def _log_posteriors(
        self, counts: LogCounts, arms: IntArray, progress: Callable[[float], None]
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        size = max(BLOCK // len(self.prior.candidates), 1)
        with np.errstate(divide="ignore"):
            log_prior = np.log(self.prior.weights)
        for begin in range(0, len(arms), size):
            some = arms[begin : begin + size]
            logs = self.log_likelihoods(counts, some)
            logs += log_prior
            yield some, logs
            progress((begin + len(some)) / len(arms))

    def _summarised(
        self, logs: FloatArray, arms: IntArray, values: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Means [arms, E] and interval ends [arms, E, 2] of values [E, M]; logs become weights."""
        level_of, edges = _stretches(values)
        means = np.empty((len(arms), len(values)))
        ends = np.empty((len(arms), len(values), 2))
        bad = summarise_posteriors(
            logs, np.ascontiguousarray(values), level_of, edges, INTERVAL, means, ends
        )
        if bad >= 0:
            raise ProblemError(
                f"arm {self.names[int(arms[bad])]!r}: what the log shows has probability zero "
                "under every candidate of the prior"
            )
        return means, ends


def _stretches(values: FloatArray) -> tuple[IntArray, FloatArray]:
    """Distinct values of several probabilities [E, M] and the stretches that they stand for.

    A value stands for what is nearer to it than to others, and the outermost ones for as much on
    the far side as on the near one. Returns which distinct value each is [E, M], and the edges
    [E, L + 2] of stretches, filled up with nan.
    """
    level_of = np.zeros(values.shape, dtype=np.int64)
    found = []
    for e, row in enumerate(values):
        distinct, which = np.unique(np.round(row, 12), return_inverse=True)
        level_of[e] = which
        middle = (distinct[1:] + distinct[:-1]) / 2
        first = 2 * distinct[0] - middle[0] if len(middle) else distinct[0]
        last = 2 * distinct[-1] - middle[-1] if len(middle) else distinct[0]
        found.append(np.concatenate([[max(first, 0.0)], middle, [min(last, 1.0)]]))
    edges = np.full((len(values), max(map(len, found), default=1) + 1), np.nan)
    for e, own in enumerate(found):
        edges[e, : len(own)] = own
    return level_of, edges
