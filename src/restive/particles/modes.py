"""Modes of a posterior, by Fisher scoring with steps that are held short and always lead up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.kernels.fisher import look_around, scoring_step, squared_distance
from restive.kernels.likelihood import Counts, add_log_likelihood
from restive.kernels.weighing import weigh
from restive.particles.rows import RowsPrior

__all__ = ["Mode", "climb", "find_modes", "shares_of"]

FloatArray = NDArray[np.float64]

LONGEST = 1.5  # step of a free number
HALVINGS = 10
ARRIVED = 1e-8  # gain of log posterior below which a point is a mode
MOST_STEPS = 50
STARTS = 8  # points of the prior from which modes are sought
CLOSE = 3.0  # standard deviations within which two modes are one


@dataclass(frozen=True, eq=False)
class Mode:
    """A point at or near a mode."""

    point: FloatArray  # [d]
    height: float  # log posterior, up to a constant
    root: FloatArray  # [d, d] lower triangle B, with B B' the inverse of the information
    log_volume: float  # log |B|


def climb(prior: RowsPrior, counts: Counts, start: FloatArray, most: int) -> Mode:
    """Go from a point [d] towards a mode, in so many steps at most."""
    point, height = start, _height(prior, counts, start)
    while True:
        gradient, information = look_around(prior.tables, counts, point)
        step, gain, root, log_volume = scoring_step(gradient, information)
        longest = float(np.abs(step).max())
        if longest > LONGEST:
            step = step * (LONGEST / longest)
        arrived = gain < ARRIVED or most == 0
        higher = None if arrived else _upwards(prior, counts, point, height, step)
        if higher is None:
            return Mode(point, height, root, log_volume)
        point, height = higher
        most -= 1


def find_modes(prior: RowsPrior, counts: Counts, near: FloatArray) -> list[Mode]:
    """Climb from a point [d] and from some that stand for the prior; the highest mode first.

    Ends of climbs that are close, as the information measures it, are one mode.
    """
    stride = max(1, prior.count // STARTS)
    starts = [near, *prior.first_logits[:, stride // 2 :: stride].T]
    ends = [climb(prior, counts, start, MOST_STEPS) for start in starts]
    modes: list[Mode] = []
    for end in sorted(ends, key=lambda mode: mode.height, reverse=True):
        if all(squared_distance(mode.root, mode.point, end.point) > CLOSE**2 for mode in modes):
            modes.append(end)
    return modes


def shares_of(modes: list[Mode]) -> FloatArray:
    """Shares of particles that modes get: in proportion to the roots of their masses.

    The mass is Laplace's, height times volume. Roots, so that a small mode has particles enough to
    tell how small it is.
    """
    logs = np.array([mode.height + mode.log_volume for mode in modes])
    shares = np.empty(len(modes))
    weigh(logs / 2, shares)
    total = 0.0
    for share in shares.tolist():
        total += share
    return shares / total


def _upwards(
    prior: RowsPrior, counts: Counts, point: FloatArray, height: float, step: FloatArray
) -> tuple[FloatArray, float] | None:
    """Take the step, or the first of its halves that leads up."""
    for _ in range(HALVINGS):
        trial = point + step
        reached = _height(prior, counts, trial)
        if reached > height:
            return trial, reached
        step = step * 0.5
    return None


def _height(prior: RowsPrior, counts: Counts, point: FloatArray) -> float:
    matrices, logs = prior.placed(np.ascontiguousarray(point[:, np.newaxis]))
    add_log_likelihood(counts, matrices, logs)
    return float(logs[0])
