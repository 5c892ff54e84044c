"""Posteriors of many arms that share a finite prior, in blocks that fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.elementary import logarithms
from restive.kernels.logs.fit import (
    add_log_likelihoods,
    normalise_posteriors,
    summarise_posteriors,
)
from restive.learn.priors.finite import ArmPrior
from restive.logs.counts import LogCounts
from restive.problem.arm import Arm
from restive.problem.beliefs import log_chances
from restive.threads import in_order

__all__ = ["SharedCandidates", "Summary", "cells_of", "stacked"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Result = TypeVar("Result")

FEW_WEIGHTS, MANY_WEIGHTS = 1 << 18, 1 << 22  # held at once, if chances are known and if not
DISTINCT = 4096  # cells whose chances are tabulated at once
INTERVAL = np.array([0.05, 0.95])  # ends of a 90% interval


def stacked(arms: Sequence[Arm]) -> tuple[FloatArray, FloatArray]:
    """Active and passive matrices [M, S, S]."""
    return np.array([arm.active for arm in arms]), np.array([arm.passive for arm in arms])


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

    @cached_property
    def ways(self) -> tuple[FloatArray, FloatArray]:
        """The same, with an active row [M, R, S] for each way to begin: `LogCounts.num_rows`."""
        active, passive = self.matrices
        always = self.prior.candidates[0].always_seen
        return np.concatenate([active, passive], axis=1) if always else active, passive

    def log_likelihoods(
        self, counts: LogCounts, arms: IntArray, known: _Chances | None = None
    ) -> FloatArray:
        """Log likelihoods [arms, M] of what was seen of these arms.

        `known` are chances of at least all their cells, where that is not too many.
        """
        out = np.zeros((len(arms), len(self.prior.candidates)))
        starts, places = cells_of(counts, arms)
        cells, number = counts.cells[places], counts.counts[places]
        if known is not None:
            add_log_likelihoods(
                starts, np.searchsorted(known.cells, cells), number, known.logs, out
            )
            return out
        distinct, which = np.unique(cells, return_inverse=True)
        for begin in range(0, len(distinct), DISTINCT):
            part = distinct[begin : begin + DISTINCT]
            mine = (which >= begin) & (which < begin + DISTINCT)
            own = np.concatenate([[0], np.cumsum(mine)])[starts]
            logs = log_chances(*self.ways, *counts.unpacked(part))
            add_log_likelihoods(own, which[mine] - begin, number[mine], logs, out)
        return out

    def _chances(self, counts: LogCounts, arms: IntArray) -> _Chances | None:
        """Chances of all cells of these arms; None where they are too many."""
        distinct = np.unique(counts.cells[cells_of(counts, arms)[1]])
        if len(distinct) > DISTINCT:
            return None
        return _Chances(distinct, log_chances(*self.ways, *counts.unpacked(distinct)))

    def blocks(self, counts: LogCounts, arms: IntArray) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield arms and their posterior weights [arms, M], some at a time."""

        def weights(some: IntArray, logs: FloatArray) -> FloatArray:
            self._require_some(normalise_posteriors(logs), some)
            return logs

        yield from self._in_blocks(weights, counts, arms, lambda share: None)

    def weights(self, counts: LogCounts, arms: IntArray) -> FloatArray:
        """Posterior weights [arms, M]."""
        return np.concatenate([weights for _, weights in self.blocks(counts, arms)])

    def summary(
        self, counts: LogCounts, arms: IntArray, progress: Callable[[float], None] = lambda s: None
    ) -> Summary:
        """Return what the posteriors of these arms say."""
        active, passive = self.matrices
        size = active.shape[1]
        left_out = int(size == 2)  # one of two chances is what the other leaves
        flat = [part[:, :, left_out:].reshape(len(part), -1).T for part in (active, passive)]
        same = np.array_equal(active, passive)
        stretches = _stretches(flat[0] if same else np.concatenate(flat))
        entries = len(stretches.levels)
        means, ends = np.empty((len(arms), entries)), np.empty((len(arms), entries, 2))

        def summarise(some: IntArray, logs: FloatArray) -> tuple[FloatArray, FloatArray]:
            own = np.empty((len(some), entries)), np.empty((len(some), entries, 2))
            self._require_some(summarise_posteriors(logs, *stretches, INTERVAL, *own), some)
            return own

        done = 0
        for some, found in self._in_blocks(summarise, counts, arms, progress):
            own = slice(done, done + len(some))
            means[own], ends[own] = found
            done += len(some)
        shape = (len(arms), -1, size, size - left_out)
        rows, low, high = (found.reshape(shape) for found in (means, ends[..., 0], ends[..., 1]))
        if left_out:
            rows, low, high = (
                np.concatenate([1 - other, own], axis=3)
                for own, other in ((rows, rows), (low, high), (high, low))
            )
        return Summary(rows[:, 0], rows[:, -1], low[:, 0], high[:, 0])

    def _in_blocks(
        self, work: Callable[[IntArray, FloatArray], Result], counts: LogCounts, arms: IntArray,
        progress: Callable[[float], None],
    ) -> Iterator[tuple[IntArray, Result]]:  # fmt: skip
        """Yield arms and what `work` makes of their log posteriors, some at a time, on threads."""
        known = self._chances(counts, arms)
        size = max((FEW_WEIGHTS if known else MANY_WEIGHTS) // len(self.prior.candidates), 1)
        log_prior = logarithms(self.prior.weights)

        def one(begin: int) -> tuple[IntArray, Result]:
            some = arms[begin : begin + size]
            logs = self.log_likelihoods(counts, some, known)
            logs += log_prior
            return some, work(some, logs)

        done = 0
        for some, found in in_order(one, range(0, len(arms), size)):
            yield some, found
            done += len(some)
            progress(done / len(arms))

    def _require_some(self, bad: int, arms: IntArray) -> None:
        """Raise if an arm, -1 for none, has no candidate that could be right."""
        if bad >= 0:
            raise ProblemError(
                f"arm {self.names[int(arms[bad])]!r}: what the log shows has probability zero "
                "under every candidate of the prior"
            )


class _Chances(NamedTuple):
    """Log chances of cells under all candidates."""

    cells: IntArray  # [C], ascending
    logs: FloatArray  # [C, M]


def cells_of(counts: LogCounts, arms: IntArray) -> tuple[IntArray, IntArray]:
    """Return where these arms' cells begin once they are end to end, and where they are now."""
    sizes = np.diff(counts.starts)[arms]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return starts, np.repeat(counts.starts[arms] - starts[:-1], sizes) + np.arange(starts[-1])


class _Stretches(NamedTuple):
    """Distinct values of several probabilities, and the stretches that they stand for."""

    level_of: IntArray  # [E, M]
    levels: FloatArray  # [E, L], filled up with zeros
    edges: FloatArray  # [E, L + 2], filled up with nan


def _stretches(values: FloatArray) -> _Stretches:
    """Find the distinct values of probabilities [E, M].

    A value stands for what is nearer to it than to others, and the outermost ones for as much on
    the far side as on the near one.
    """
    level_of = np.zeros(values.shape, dtype=np.int64)
    found, edges = [], []
    for e, row in enumerate(values):
        distinct, first_of, which = np.unique(
            np.round(row, 12), return_index=True, return_inverse=True
        )
        level_of[e] = which
        found.append(row[first_of])
        middle = (distinct[1:] + distinct[:-1]) / 2
        first = 2 * distinct[0] - middle[0] if len(middle) else distinct[0]
        last = 2 * distinct[-1] - middle[-1] if len(middle) else distinct[0]
        edges.append(np.concatenate([[max(first, 0.0)], middle, [min(last, 1.0)]]))
    most = max(map(len, found))
    levels = [np.pad(own, (0, most - len(own))) for own in found]
    padded = [np.pad(own, (0, most + 2 - len(own)), constant_values=np.nan) for own in edges]
    return _Stretches(level_of, np.array(levels), np.array(padded))
