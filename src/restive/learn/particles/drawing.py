"""Ways to draw particles of a posterior, each with its exact weight.

The weight of a particle is prior times likelihood of the count table over the density of the law
that drew it. So whatever the law, and however badly it fits, averages are those of the posterior;
how well it fits is told by the effective sample size: how many equal particles are worth as much.

In a renewal (`renew`) all particles are thrown away and M others drawn from a law that fits the old
ones, each with its exact weight. So errors never add up. The law is, in this order, until the
effective size is large enough:

1. One t that fits the old particles. Its tails cover a Dirichlet's, which a normal law's would not.
   It nearly always suffices.
2. Channels: slice by slice (`kernels.learn.slices`). Whatever the shape, it nearly always suffices.
3. If it is far from enough: the old particles, resampled and moved by Metropolis steps.

All random numbers are those of a key, at fixed places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.kernels.learn.fisher import SLIGHTLY, look_around, scoring_step
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import Counts
from restive.kernels.learn.proposals import accept, draw_around, fit_particles, propose, resample
from restive.kernels.learn.renewals import ONE_T
from restive.kernels.learn.slices import draw_from_slices, fit_slices
from restive.kernels.learn.weighing import weigh
from restive.kernels.random import key_at
from restive.learn.particles.rows import RowsPrior

__all__ = [
    "ONE_T",
    "POINTS",
    "SLICES",
    "Particles",
    "at_mode",
    "by_slices",
    "enough",
    "least",
    "renew",
    "subkey",
]

FloatArray = NDArray[np.float64]

POINTS, MOVES, SLICES = 0, 4, 5  # ways, and places of their keys; ONE_T is 1
NUM_MOVES = 24
STEPS_TO_MODE, MOST_STEPS = 3, 50  # from old particles, and from the prior's mean
LONGEST = 1.5  # step of a free number
HALVINGS = 10
ARRIVED = 1e-8  # gain of log posterior below which a point is a mode


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted points of a posterior."""

    logits: FloatArray  # [d, M]
    matrices: FloatArray  # [R, S, M]
    weights: FloatArray  # [M], in any scale
    effective_size: float  # how many equal ones are worth as much
    log_evidence: float
    way: int  # in which they were drawn

    def or_better(self, other: Particles) -> Particles:
        """Return those of the larger effective size."""
        return other if other.effective_size > self.effective_size else self


def _around_fit(
    prior: RowsPrior, counts: Counts, logits: FloatArray, weights: FloatArray, key: np.uint64
) -> Particles:
    """Draw from one t that fits weighted particles [d, M].

    It has their mean and covariance; beyond three free numbers it is near the mode, with the
    inverse information there, since few particles cannot tell the covariance of many numbers.
    """
    centre, root = fit_particles(logits, weights)
    if prior.free > FEW:
        centre, root = _climb(prior, counts, centre, STEPS_TO_MODE)
    return _from_t(prior, counts, centre, root, key)


def at_mode(prior: RowsPrior, counts: Counts, key: np.uint64) -> Particles:
    """Draw from one t at the mode above the prior's mean."""
    centre, root = _climb(prior, counts, prior.mean_logits, MOST_STEPS)
    return _from_t(prior, counts, centre, root, key)


def _from_t(
    prior: RowsPrior, counts: Counts, centre: FloatArray, root: FloatArray, key: np.uint64
) -> Particles:
    logits, matrices, weights, effective_size, log_mean = draw_around(
        prior.tables, counts, centre, root, key, prior.count
    )
    log_evidence = log_mean + (prior.log_constant - prior.log_student)
    return Particles(logits, matrices, weights, effective_size, log_evidence, ONE_T)


def _climb(
    prior: RowsPrior, counts: Counts, point: FloatArray, most: int
) -> tuple[FloatArray, FloatArray]:
    """Go from a point [d] towards a mode, in so many steps at most.

    By Fisher scoring, with steps that are held short and always lead up. Returns where it ends and
    a lower triangle B [d, d] with B B' the inverse of the information there.
    """
    height = _height(prior, counts, point)
    while True:
        gradient, information = look_around(prior.tables, counts, _near(prior, point))
        step, gain, root = scoring_step(gradient, information)
        longest = float(np.abs(step).max())
        if longest > LONGEST:
            step = step * (LONGEST / longest)
        arrived = gain < ARRIVED or most == 0
        higher = None if arrived else _upwards(prior, counts, point, height, step)
        if higher is None:
            return point, root
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


def _near(prior: RowsPrior, point: FloatArray) -> FloatArray:
    """Matrices [R, S, d + 1] at a point and slightly beside it."""
    beside = np.concatenate([np.zeros((prior.free, 1)), SLIGHTLY * np.eye(prior.free)], axis=1)
    return prior.matrices(point[:, np.newaxis] + beside)


def _height(prior: RowsPrior, counts: Counts, point: FloatArray) -> float:
    _, logs = prior.log_posterior(counts, np.ascontiguousarray(point[:, np.newaxis]))
    return float(logs[0])


def by_slices(prior: RowsPrior, counts: Counts, key: np.uint64) -> Particles:
    """Draw a channel's particles slice by slice."""
    logits, log_q = np.empty((prior.free, prior.count)), np.empty(prior.count)
    slices = fit_slices(prior.tables.alphas, counts)
    draw_from_slices(slices, prior.tables, key, logits, log_q)
    matrices, logs = prior.log_posterior(counts, logits)
    weights = np.empty(prior.count)
    effective_size, log_mean = weigh(logs - (log_q - prior.log_student), weights)
    log_evidence = log_mean + (prior.log_constant - prior.log_student)
    return Particles(logits, matrices, weights, effective_size, log_evidence, SLICES)


def _moved(
    prior: RowsPrior, counts: Counts, logits: FloatArray, weights: FloatArray, key: np.uint64
) -> Particles:
    """Resample weighted particles [d, M] and move each by Metropolis steps."""
    _, root = fit_particles(logits, weights)
    old = resample(logits, weights, subkey(key, 0))
    place, trial = old.copy(), np.empty_like(old)
    _, logs = prior.log_posterior(counts, place)
    for step in range(NUM_MOVES):
        step_key = subkey(key, 1 + step)
        propose(old, root, step, step_key, place, trial)
        _, trial_logs = prior.log_posterior(counts, trial)
        accept(step_key, trial, trial_logs, place, logs)
    count = prior.count
    return Particles(place, prior.matrices(place), np.ones(count), float(count), np.nan, MOVES)


def subkey(key: np.uint64, place: int) -> np.uint64:
    """Key of a stream within another."""
    return np.uint64(key_at(key, place))


def enough(prior: RowsPrior) -> float:
    """Return the effective size from which on no other way is tried."""
    # what one t leaves there, slices do better
    return 0.65 * prior.count if prior.is_channel else least(prior)


def least(prior: RowsPrior) -> float:
    """Return the effective size below which particles are moved instead."""
    return (0.15 if prior.free <= FEW else 0.08) * prior.count


def renew(
    prior: RowsPrior, counts: Counts, logits: FloatArray, weights: FloatArray, key: np.uint64
) -> Particles:
    """Draw particles of the posterior given `counts`.

    Parameters
    ----------
    prior
        Prior of the rows.
    counts
        What was seen.
    logits, weights
        Old particles [d, M] and their weights [M] under the same posterior.
    key
        Names the random numbers.
    """
    drawn = _around_fit(prior, counts, logits, weights, subkey(key, ONE_T))
    if drawn.effective_size < enough(prior) and prior.is_channel:
        # not whichever has the larger effective size, which does not tell what is not reached
        drawn = by_slices(prior, counts, subkey(key, SLICES))
    if drawn.effective_size < least(prior):
        others = _moved(prior, counts, logits, weights, subkey(key, MOVES))
        drawn = replace(others, log_evidence=drawn.log_evidence)
    return drawn
