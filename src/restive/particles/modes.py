"""Modes of a posterior, by Fisher scoring with steps that are held short and always lead up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.kernels.fisher import look_around, scoring_step
from restive.kernels.likelihood import Counts, add_log_likelihood
from restive.particles.rows import RowsPrior

__all__ = ["Mode", "climb"]

FloatArray = NDArray[np.float64]

LONGEST = 1.5  # step of a free number
HALVINGS = 10
ARRIVED = 1e-8  # gain of log posterior below which a point is a mode


@dataclass(frozen=True, eq=False)
class Mode:
    """A point at or near a mode."""

    point: FloatArray  # [d]
    height: float  # log posterior, up to a constant
    root: FloatArray  # [d, d] lower triangle B, with B B' the inverse of the information


def climb(prior: RowsPrior, counts: Counts, start: FloatArray, most: int) -> Mode:
    """Go from a point [d] towards a mode, in so many steps at most."""
    point, height = start, _height(prior, counts, start)
    while True:
        gradient, information = look_around(prior.tables, counts, point)
        step, root, gain = scoring_step(gradient, information)
        longest = float(np.abs(step).max())
        if longest > LONGEST:
            step = step * (LONGEST / longest)
        higher = None if gain < ARRIVED or not most else _upwards(prior, counts, point, height, step)
        if higher is None:
            return Mode(point, height, root)
        point, height = higher
        most -= 1


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
