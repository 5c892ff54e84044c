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
3. Up to three free numbers: t's at all modes that are found. Sightings at even ages only leave
   two.
4. Up to three: small t's at the old particles, for curved ridges. Never at those of a failed round,
   which may all sit on one mode.
5. If it never is: the old particles, resampled and moved by Metropolis steps.

All random numbers are those of a key, at fixed places.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import Counts
from restive.kernels.learn.proposals import (
    FittedParticles,
    accept,
    draw_around,
    draw_at_particles,
    draw_mixture,
    fit_particles,
    kernel_width,
    propose,
    resample,
)
from restive.kernels.learn.renewals import ONE_T
from restive.kernels.learn.slices import draw_from_slices, fit_slices
from restive.kernels.learn.weighing import effective_sample_size, weigh
from restive.kernels.random import key_at
from restive.learn.particles.modes import Mode, climb, extremes, find_modes, outlook, shares_of
from restive.learn.particles.rows import RowsPrior

__all__ = [
    "KERNELS",
    "MODES",
    "ONE_T",
    "POINTS",
    "SLICES",
    "Particles",
    "at_modes",
    "by_slices",
    "enough",
    "least",
    "moved",
    "renew",
    "subkey",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

POINTS, MODES, KERNELS, MOVES, SLICES = 0, 2, 3, 4, 5  # ways; ONE_T is 1
NARROWINGS = 4
PER_FITTED_NUMBER = 3  # particles per number of a mean and a row of its covariance
STEPS_TO_MODE = 3
NUM_MOVES = 24


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
        mode = climb(prior, counts, centre, STEPS_TO_MODE)
        centre, root = mode.point, mode.root
    drawn, log_q = _empty_particles(prior)
    draw_around(centre, root, prior.tables.generators, key, drawn, log_q)
    return _weighed(prior, counts, drawn, log_q, ONE_T)


def by_slices(prior: RowsPrior, counts: Counts, key: np.uint64) -> Particles:
    """Draw a channel's particles slice by slice."""
    drawn, log_q = _empty_particles(prior)
    slices = fit_slices(prior.tables.alphas, counts)
    draw_from_slices(slices, prior.tables, key, drawn, log_q)
    return _weighed(prior, counts, drawn, log_q - prior.log_student, SLICES)


def at_modes(
    prior: RowsPrior, counts: Counts, starts: FloatArray, enough: float, key: np.uint64
) -> Particles:
    """Draw from t's at all modes that are found, from where it looks high and from some starts.

    The particles that lie farthest out are further starts. Where the effective size is too small
    and up to three numbers are free, each t is fitted to those about its mode, and all are drawn
    again. No mode is given up.
    """
    modes = find_modes(prior, counts, np.concatenate([starts, outlook(prior, counts)], axis=1))
    particles, sources = _from_mixture(prior, counts, modes, subkey(key, 0))
    if prior.free > FEW:
        return particles
    more = find_modes(prior, counts, extremes(particles.logits, particles.weights), modes)
    if len(more) > len(modes):
        modes = more
        particles, sources = _from_mixture(prior, counts, modes, subkey(key, 2))
    if particles.effective_size >= enough:
        return particles
    fitted = [
        _fitted(prior, mode, particles, sources == number) for number, mode in enumerate(modes)
    ]
    return particles.or_better(_from_mixture(prior, counts, fitted, subkey(key, 1))[0])


def _from_mixture(
    prior: RowsPrior, counts: Counts, modes: list[Mode], key: np.uint64
) -> tuple[Particles, IntArray]:
    """Draw from t's at modes; also tells the mode [M] of each particle."""
    centres = np.array([mode.point for mode in modes])
    roots = np.array([mode.root for mode in modes])
    drawn, log_q = _empty_particles(prior)
    generators = prior.tables.generators
    sources = draw_mixture(centres, roots, shares_of(modes), generators, key, drawn, log_q)
    return _weighed(prior, counts, drawn, log_q, MODES), sources


def _fitted(prior: RowsPrior, mode: Mode, particles: Particles, own: NDArray[np.bool_]) -> Mode:
    """Return the t that fits a mode's own particles, where these are enough for a fit."""
    logits = np.ascontiguousarray(particles.logits[:, own])
    weights = particles.weights[own]
    if effective_sample_size(weights) < PER_FITTED_NUMBER * (prior.free + 1):
        return mode
    centre, root = fit_particles(logits, weights)
    return replace(mode, point=centre, root=root)


def _at_particles(
    prior: RowsPrior, counts: Counts, logits: FloatArray, weights: FloatArray, enough: float,
    key: np.uint64,
) -> Particles:  # fmt: skip
    """Draw from small t's at weighted particles [d, M], ever narrower ones until it is enough."""
    old = FittedParticles(logits, weights, *fit_particles(logits, weights))
    width = kernel_width(weights, prior.free)
    best = None
    for trial in range(NARROWINGS):
        drawn, log_q = _empty_particles(prior)
        draw_at_particles(old, width, prior.tables.generators, subkey(key, trial), drawn, log_q)
        particles = _weighed(prior, counts, drawn, log_q, KERNELS)
        best = particles if best is None else best.or_better(particles)
        if best.effective_size >= enough:
            break
        width *= 0.5
    assert best is not None
    return best


def moved(
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


def _empty_particles(prior: RowsPrior) -> tuple[FloatArray, FloatArray]:
    return np.empty((prior.free, prior.count)), np.empty(prior.count)


def _weighed(
    prior: RowsPrior, counts: Counts, logits: FloatArray, log_q: FloatArray, way: int
) -> Particles:
    """Give particles [d, M] drawn from a density q, known up to the t's constant, their weights."""
    matrices, logs = prior.log_posterior(counts, logits)
    weights = np.empty(prior.count)
    effective_size, log_mean = weigh(logs - log_q, weights)
    constant = prior.log_constant - prior.log_student
    return Particles(logits, matrices, weights, effective_size, log_mean + constant, way)


def enough(prior: RowsPrior) -> float:
    """Return the effective size from which on no other way is tried."""
    if prior.is_channel:
        return 0.65 * prior.count  # what one t leaves there, slices do better
    return (0.5 if prior.free <= FEW else 0.3) * prior.count


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
        if drawn.effective_size >= least(prior):
            return drawn
    if drawn.effective_size < enough(prior) and prior.free <= FEW:
        starts = extremes(logits, weights)
        drawn = drawn.or_better(at_modes(prior, counts, starts, enough(prior), subkey(key, MODES)))
        if drawn.effective_size < enough(prior):
            kernels = _at_particles(
                prior, counts, logits, weights, enough(prior), subkey(key, KERNELS)
            )
            drawn = drawn.or_better(kernels)
    if drawn.effective_size < least(prior):
        others = moved(prior, counts, logits, weights, subkey(key, MOVES))
        drawn = replace(others, log_evidence=drawn.log_evidence)
    return drawn
