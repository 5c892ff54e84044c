"""The posterior given much at once: a log of years, where the prior's points are of no use.

Where the prior's points still carry weight, they are weighed. Else t's are put at all modes that
are found. Where these fit badly, the likelihood is let in by and by: raised to a power that grows
to one, each time by as much as leaves half the particles' worth, and the particles are renewed in
between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.likelihood import Counts, add_log_likelihood
from restive.kernels.particles import LOST
from restive.kernels.random import RENEWAL, stream_key
from restive.kernels.weighing import logarithms, weigh
from restive.particles.drawing import MODES, POINTS, Particles, at_modes, subkey
from restive.particles.renewal import enough, least, renew
from restive.particles.rows import RowsPrior

__all__ = ["particles_given"]

FloatArray = NDArray[np.float64]

LEFT = 0.5  # share of the particles' worth that a step of tempering leaves
BISECTIONS = 50
LEAST_STEP = 1e-9


def particles_given(prior: RowsPrior, counts: Counts) -> Particles:
    """Return particles of the posterior given `counts`: a function of these and nothing else.

    Where the counts are impossible under all that the prior allows, they are worth nothing.
    """
    weights = np.empty(prior.count)
    worth, log_mean = weigh(_log_likelihood(counts, prior.first_matrices), weights)
    first = Particles(
        prior.first_logits, prior.first_matrices, weights, worth, log_mean, POINTS
    )  # fmt: skip
    if worth >= LOST * prior.count or not prior.free or not _possible(prior, counts):
        return first
    key = np.uint64(stream_key(np.uint64(0), 0, RENEWAL))
    start = prior.mean_logits[:, np.newaxis]
    drawn = at_modes(prior, counts, start, enough(prior), subkey(key, MODES))
    return drawn if drawn.worth >= least(prior) else _tempered(prior, counts, key)


def _possible(prior: RowsPrior, counts: Counts) -> bool:
    """Whether the counts are possible where all that may be positive is."""
    matrices = prior.matrices(np.ascontiguousarray(prior.mean_logits[:, np.newaxis]))
    return bool(np.isfinite(_log_likelihood(counts, matrices)).all())


def _tempered(prior: RowsPrior, counts: Counts, key: np.uint64) -> Particles:
    count = prior.count
    drawn = Particles(
        prior.first_logits, prior.first_matrices, np.ones(count), float(count), 0.0, POINTS
    )
    power, number = 0.0, 1 + MODES  # places of the key that are not used yet
    while power < 1.0:
        logs = _log_likelihood(counts, drawn.matrices)
        step, weights = _step(logs, drawn.weights, drawn.worth, 1.0 - power)
        power = min(power + step, 1.0)
        softened = Counts(counts.ages, counts.cells * power)
        drawn = renew(prior, softened, drawn.logits, weights, subkey(key, number))
        number += 1
    return drawn


def _step(
    logs: FloatArray, weights: FloatArray, worth: float, most: float
) -> tuple[float, FloatArray]:
    """Return the step of the power that leaves the wanted worth, and the weights after it."""
    before, after = np.empty_like(weights), np.empty_like(weights)
    logarithms(weights, before)
    if weigh(before + most * logs, after)[0] >= LEFT * worth:
        return most, after
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if weigh(before + middle * logs, after)[0] >= LEFT * worth:
            low = middle
        else:
            high = middle
    step = max(low, LEAST_STEP)
    weigh(before + step * logs, after)
    return step, after


def _log_likelihood(counts: Counts, matrices: FloatArray) -> FloatArray:
    logs = np.zeros(matrices.shape[2])
    add_log_likelihood(counts, matrices, logs)
    return logs
