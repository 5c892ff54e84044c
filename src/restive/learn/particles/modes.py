"""Modes of a posterior, by Fisher scoring with steps that are held short and always lead up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.kernels.learn.fisher import SLIGHTLY, look_around, scoring_step, squared_distance
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import Counts
from restive.kernels.learn.weighing import weigh
from restive.learn.particles.rows import RowsPrior

__all__ = ["Mode", "climb", "extremes", "find_modes", "outlook", "shares_of"]

FloatArray = NDArray[np.float64]

LONGEST = 1.5  # step of a free number
HALVINGS = 10
ARRIVED = 1e-8  # gain of log posterior below which a point is a mode
MOST_STEPS = 50
STARTS = 8  # points from which modes are sought
FAR = 12.0  # how far the grid of log odds reaches
GRID = {1: 97, 2: 49, 3: 25}  # points along an axis, by free numbers
HEAVY = 1e-2  # weight, relative to the largest, from which a particle is looked at
CLOSE = 0.5  # standard deviations within which two modes are one


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
        gradient, information = look_around(prior.tables, counts, _near(prior, point))
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


def find_modes(
    prior: RowsPrior, counts: Counts, starts: FloatArray, known: Sequence[Mode] = ()
) -> list[Mode]:
    """Climb from points [d, any number]; return the modes found and known, the highest first.

    Ends of climbs that are close, as the information measures it, are one mode.
    """
    ends = [climb(prior, counts, np.ascontiguousarray(start), MOST_STEPS) for start in starts.T]
    modes: list[Mode] = []
    for end in sorted([*known, *ends], key=lambda mode: mode.height, reverse=True):
        if all(squared_distance(mode.root, mode.point, end.point) > CLOSE**2 for mode in modes):
            modes.append(end)
    return modes


def outlook(prior: RowsPrior, counts: Counts) -> FloatArray:
    """Points [d, STARTS or fewer] where the posterior looks high, the highest first.

    Up to three free numbers: the peaks of a coarse grid, which reaches far out, where chains hardly
    ever move or nearly always do. Beyond: the highest of the points that stand for the prior.
    """
    if prior.free > FEW:
        logits = prior.first_logits
        _, logs = prior.log_posterior(counts, logits)
    else:
        axis = np.linspace(-FAR, FAR, GRID[prior.free])
        logits = np.array(np.meshgrid(*[axis] * prior.free)).reshape(prior.free, -1)
        _, logs = prior.log_posterior(counts, logits)
        logs = np.where(_peaks(logs, prior.free), logs, -np.inf)
    best = np.argsort(-logs, kind="stable")[:STARTS]
    return logits[:, best[np.isfinite(logs[best])]]


def extremes(logits: FloatArray, weights: FloatArray) -> FloatArray:
    """Those of weighted particles [d, M] that lie farthest out, either way in each number."""
    heavy = np.flatnonzero(weights >= HEAVY * weights.max())
    ends = [pick(row) for row in logits[:, heavy] for pick in (np.argmin, np.argmax)]
    return logits[:, heavy[np.unique(ends)]]


def _peaks(values: FloatArray, free: int) -> NDArray[np.bool_]:
    """Which points of a grid, flat, are not below any of their neighbours."""
    grid = values.reshape((GRID[free],) * free)
    padded = np.pad(grid, 1, constant_values=-np.inf)
    around = np.lib.stride_tricks.sliding_window_view(padded, (3,) * free)
    peaks: NDArray[np.bool_] = grid >= around.max(axis=tuple(range(free, 2 * free)))
    return peaks.ravel()


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


def _near(prior: RowsPrior, point: FloatArray) -> FloatArray:
    """Matrices [R, S, d + 1] at a point and slightly beside it."""
    beside = np.concatenate([np.zeros((prior.free, 1)), SLIGHTLY * np.eye(prior.free)], axis=1)
    return prior.matrices(point[:, np.newaxis] + beside)


def _height(prior: RowsPrior, counts: Counts, point: FloatArray) -> float:
    _, logs = prior.log_posterior(counts, np.ascontiguousarray(point[:, np.newaxis]))
    return float(logs[0])
