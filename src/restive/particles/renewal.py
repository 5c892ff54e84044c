"""Renewal: particles that have lost their weight are drawn anew.

All are thrown away and M others drawn from a law that fits the old ones, each with its exact
weight. So errors never add up. The law is, in this order, until the new particles are worth enough:

1. One t that fits the old particles. Its tails cover a Dirichlet's, which a normal law's would not.
   It nearly always suffices.
2. Up to three free numbers: t's at all modes that are found. Sightings at even ages only leave
   two.
3. Up to three: small t's at the old particles, for curved ridges. Never at those of a failed round,
   which may all sit on one mode.
4. If none is worth much: the old particles, resampled and moved by Metropolis steps.

All random numbers are those of a key, at fixed places.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from restive.kernels.lattice import FEW
from restive.kernels.likelihood import Counts
from restive.particles.drawing import (
    KERNELS,
    MODES,
    MOVES,
    ONE_T,
    Particles,
    around_fit,
    at_modes,
    at_particles,
    moved,
    subkey,
)
from restive.particles.modes import extremes
from restive.particles.rows import RowsPrior

__all__ = ["enough", "least", "renew"]

FloatArray = NDArray[np.float64]


def enough(prior: RowsPrior) -> float:
    """Return what new particles should be worth, or other ways are tried."""
    return (0.5 if prior.free <= FEW else 0.3) * prior.count


def least(prior: RowsPrior) -> float:
    """Return what weighed particles must be worth, or they are moved."""
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
    drawn = around_fit(prior, counts, logits, weights, subkey(key, ONE_T))
    if drawn.worth < enough(prior) and prior.free <= FEW:
        starts = extremes(logits, weights)
        drawn = drawn.or_better(at_modes(prior, counts, starts, enough(prior), subkey(key, MODES)))
        if drawn.worth < enough(prior):
            kernels = at_particles(
                prior, counts, logits, weights, enough(prior), subkey(key, KERNELS)
            )
            drawn = drawn.or_better(kernels)
    if drawn.worth < least(prior):
        others = moved(prior, counts, logits, weights, subkey(key, MOVES))
        drawn = replace(others, log_evidence=drawn.log_evidence)
    return drawn
