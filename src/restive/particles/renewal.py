"""Renewal: particles that have lost their weight are drawn anew.

All particles are thrown away and M others drawn from a law that fits the old ones, each with its
exact weight, prior times likelihood of the count table over that law's density. So errors never add
up: every renewal weighs against the exact posterior. There are three rungs:

1. One multivariate t at the mean of the old particles, with their covariance; beyond three free
   numbers near the mode, with the inverse information there. Its tails cover a Dirichlet's, which a
   normal law's would not.
2. Where that fits badly (separate modes, a curved ridge), up to three free numbers: small t's at
   the old particles, narrower each time. Never at those of a failed round, which may all sit on one
   mode.
3. Where that fits badly too: the old particles, resampled and moved by Metropolis steps.

All random numbers are those of a key, at fixed places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.kernels.lattice import FEW
from restive.kernels.likelihood import Counts, add_log_likelihood
from restive.kernels.moves import accept, propose, resample
from restive.kernels.proposals import (
    draw_around,
    draw_at_particles,
    draw_mixture,
    fit_particles,
    kernel_width,
)
from restive.kernels.random import key_at
from restive.kernels.weighing import weigh
from restive.particles.modes import climb, find_modes, shares_of
from restive.particles.rows import RowsPrior

__all__ = [
    "MANY_T",
    "MODES",
    "MOVED",
    "ONE_T",
    "Particles",
    "from_modes",
    "good_share",
    "renew",
    "weighed",
]

FloatArray = NDArray[np.float64]

ONE_T, MODES, MANY_T, MOVED = 1, 2, 3, 4  # rungs
NARROWINGS = 4
STEPS_TO_MODE = 3
MOVES = 24


@dataclass(frozen=True, eq=False)
class Particles:
    """Weighted points of a posterior."""

    logits: FloatArray  # [d, M]
    matrices: FloatArray  # [R, S, M]
    weights: FloatArray  # [M], in any scale
    worth: float  # effective number
    log_evidence: float
    rung: int  # that drew them, 0 for the points that stand for the prior


def good_share(prior: RowsPrior) -> float:
    """Return the share of M that new particles should be worth."""
    return 0.5 if prior.free <= FEW else 0.3


def least_share(prior: RowsPrior) -> float:
    """Return the share of M below which particles are moved rather than weighed."""
    return 0.15 if prior.free <= FEW else 0.08


def renew(
    prior: RowsPrior, counts: Counts, logits: FloatArray, weights: FloatArray, key: np.uint64
) -> Particles:
    """Draw particles of the posterior given `counts`, from old ones [d, M] of it and weights [M].

    Parameters
    ----------
    prior
        Prior of the rows.
    counts
        What was seen.
    logits, weights
        Old particles, weighed by the same posterior.
    key
        Names the random numbers.
    """
    centre, root = fit_particles(logits, weights)
    if prior.free > FEW:
        mode = climb(prior, counts, centre, STEPS_TO_MODE)
        centre, root = mode.point, mode.root
    drawn = _from_one(prior, counts, centre, root, _subkey(key, ONE_T))
    if drawn.worth < good_share(prior) * prior.count and prior.free <= FEW:
        drawn = _better(drawn, from_modes(prior, counts, centre, _subkey(key, MODES)))
        width = kernel_width(weights, prior.free)
        for trial in range(NARROWINGS):
            if drawn.worth >= good_share(prior) * prior.count:
                break
            subkey = _subkey(_subkey(key, MANY_T), trial)
            other = _from_many(prior, counts, logits, weights, centre, root, width, subkey)
            drawn = _better(drawn, other)
            width *= 0.5
    if drawn.worth < least_share(prior) * prior.count:
        moved = _moved(prior, counts, logits, weights, root, _subkey(key, MOVED))
        drawn = replace(moved, log_evidence=drawn.log_evidence)
    return drawn


def _better(one: Particles, other: Particles) -> Particles:
    return other if other.worth > one.worth else one


def from_modes(prior: RowsPrior, counts: Counts, near: FloatArray, key: np.uint64) -> Particles:
    """Draw particles from t's at all modes that are found."""
    modes = find_modes(prior, counts, near)
    logits, log_q = np.empty((prior.free, prior.count)), np.empty(prior.count)
    centres = np.array([mode.point for mode in modes])
    roots = np.array([mode.root for mode in modes])
    generators = prior.tables.generators
    draw_mixture(centres, roots, shares_of(modes), generators, key, logits, log_q)
    return weighed(prior, counts, logits, log_q, MODES)


def weighed(
    prior: RowsPrior, counts: Counts, logits: FloatArray, log_q: FloatArray, rung: int
) -> Particles:
    """Give particles [d, M] drawn from a density q, up to the t's constant, their weights."""
    matrices, logs = prior.placed(logits)
    add_log_likelihood(counts, matrices, logs)
    weights = np.empty(prior.count)
    worth, log_mean = weigh(logs - log_q, weights)
    return Particles(logits, matrices, weights, worth, log_mean + prior.log_constant, rung)


def _from_one(
    prior: RowsPrior, counts: Counts, centre: FloatArray, root: FloatArray, key: np.uint64
) -> Particles:
    logits, log_q = np.empty((prior.free, prior.count)), np.empty(prior.count)
    draw_around(centre, root, prior.tables.generators, key, logits, log_q)
    return weighed(prior, counts, logits, log_q, ONE_T)


def _from_many(
    prior: RowsPrior, counts: Counts, old: FloatArray, weights: FloatArray, centre: FloatArray,
    root: FloatArray, width: float, key: np.uint64,
) -> Particles:  # fmt: skip
    logits, log_q = np.empty((prior.free, prior.count)), np.empty(prior.count)
    generators = prior.tables.generators
    draw_at_particles(old, weights, centre, root, width, generators, key, logits, log_q)
    return weighed(prior, counts, logits, log_q, MANY_T)


def _moved(
    prior: RowsPrior, counts: Counts, old: FloatArray, weights: FloatArray, root: FloatArray,
    key: np.uint64,
) -> Particles:  # fmt: skip
    old = resample(old, weights, _subkey(key, 0))
    logits, trial = old.copy(), np.empty_like(old)
    matrices, logs = prior.placed(logits)
    add_log_likelihood(counts, matrices, logs)
    for step in range(MOVES):
        subkey = _subkey(key, 1 + step)
        propose(old, root, step, subkey, logits, trial)
        matrices, trial_logs = prior.placed(trial)
        add_log_likelihood(counts, matrices, trial_logs)
        accept(subkey, trial, trial_logs, logits, logs)
    count = prior.count
    return Particles(logits, prior.matrices(logits), np.ones(count), float(count), np.nan, MOVED)


def _subkey(key: np.uint64, place: int) -> np.uint64:
    return np.uint64(key_at(key, place))
