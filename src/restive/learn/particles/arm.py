"""What is known of one arm with a continuous prior: its counts, and particles of its posterior.

A learner keeps an `ArmParticles` (see `kernels.learn.particles`), counts as things are seen, and
renews the particles now and then (`renew_arm`).

Where much was seen at once, a log of years, the prior's points are of no use (`particles_given`).
Those of channels are drawn slice by slice. Others are weighed where they still carry weight. Else
a t is put at the mode. Where it fits badly, the likelihood is let in by and by: raised to a power
that grows to one, each time by as much as halves their effective size, and the particles are
renewed in between.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithms
from restive.kernels.learn.likelihood import Counts, add_log_likelihood
from restive.kernels.learn.particles import DENSE, LOST, ArmParticles, add_sighting
from restive.kernels.learn.weighing import weigh
from restive.kernels.random import RENEWAL, stream_key
from restive.learn.evidence import Evidence
from restive.learn.particles.drawing import (
    ONE_T,
    POINTS,
    SLICES,
    Particles,
    at_mode,
    by_slices,
    enough,
    least,
    renew,
    subkey,
)
from restive.learn.particles.rows import RowsPrior

__all__ = [
    "AGES",
    "begin_anew",
    "count_evidence",
    "counts_of",
    "fresh_arm",
    "grown",
    "particles_given",
    "possible",
    "renew_arm",
]

FloatArray = NDArray[np.float64]

AGES = 2 * DENSE  # for which there is room at first
LEFT = 0.5  # share of the effective size that a step of tempering leaves
BISECTIONS = 50
LEAST_STEP = 1e-9


def fresh_arm(prior: RowsPrior, particles: Particles | None = None) -> ArmParticles:
    """Return an arm of which nothing was seen, with the prior's points or other particles."""
    size, count = prior.num_states, prior.count
    logits = prior.first_logits if particles is None else particles.logits
    matrices = prior.first_matrices if particles is None else particles.matrices
    arm = ArmParticles(
        ages=np.zeros(AGES, dtype=np.int64),
        cells=np.zeros((AGES, size, size)),
        logits=logits.copy(),
        matrices=matrices.copy(),
        weights=np.ones(count) if particles is None else particles.weights.copy(),
        effective_size=np.array([float(count) if particles is None else particles.effective_size]),
        num_ages=np.zeros(1, dtype=np.int64),
        renewals=np.zeros(1, dtype=np.int64),
    )
    begin_anew(arm)
    return arm


def begin_anew(arm: ArmParticles) -> None:
    """Forget all that was counted of an arm."""
    arm.ages[:DENSE] = np.arange(1, DENSE + 1)
    arm.cells[:DENSE] = 0.0
    arm.num_ages[0], arm.renewals[0] = DENSE, 0


def counts_of(arm: ArmParticles) -> Counts:
    """Return the ages at which something was counted, and the counts."""
    used = np.flatnonzero(arm.cells[: arm.num_ages[0]].any(axis=(1, 2)))
    return Counts(arm.ages[used], arm.cells[used])


def grown(arm: ArmParticles) -> ArmParticles:
    """Return the same arm with room for twice as many ages."""
    return arm._replace(
        ages=np.concatenate([arm.ages, np.zeros_like(arm.ages)]),
        cells=np.concatenate([arm.cells, np.zeros_like(arm.cells)]),
    )


def count_evidence(arm: ArmParticles, evidence: Evidence) -> ArmParticles:
    """Count all that was seen, without weighing it; return the arm, grown where it must."""
    if not evidence.total:
        return arm
    for state, age, seen, number in zip(
        *(column.tolist() for column in evidence.cells()), strict=True
    ):
        while not add_sighting(arm, state, age, seen, float(number)):
            arm = grown(arm)
    return arm


def renew_arm(prior: RowsPrior, arm: ArmParticles, key: np.uint64) -> int:
    """Draw the arm's particles anew; return the way in which they were drawn.

    Parameters
    ----------
    prior
        Prior of the arm.
    arm
        Changed in place.
    key
        Names the arm's renewals; the number of earlier ones picks the key of this one. So nothing
        else matters to what is drawn: not when other arms are renewed, nor threads, nor a restore.
    """
    renewal_key = subkey(key, int(arm.renewals[0]))
    drawn = renew(prior, counts_of(arm), arm.logits, arm.weights, renewal_key)
    arm.logits[:], arm.matrices[:], arm.weights[:] = drawn.logits, drawn.matrices, drawn.weights
    arm.effective_size[0] = drawn.effective_size
    arm.renewals[0] += 1
    return drawn.way


def particles_given(prior: RowsPrior, counts: Counts) -> Particles:
    """Return particles of the posterior given `counts`: a function of these and nothing else.

    Where the counts are impossible under all that the prior allows, their effective size is 0.
    """
    key = np.uint64(stream_key(np.uint64(0), 0, RENEWAL))
    first = _points_weighed(prior, counts)
    if prior.is_channel and counts.cells.any():
        drawn = by_slices(prior, counts, subkey(key, SLICES))
        if drawn.effective_size >= least(prior):
            # prior's points reach everything, too; they win where the prior has spikes
            return drawn if drawn.effective_size >= enough(prior) else drawn.or_better(first)
    lasting = first.effective_size >= LOST * prior.count
    if lasting or not prior.free or not possible(prior, counts):
        return first
    drawn = at_mode(prior, counts, subkey(key, ONE_T))
    return drawn if drawn.effective_size >= least(prior) else _tempered(prior, counts, key)


def _points_weighed(prior: RowsPrior, counts: Counts) -> Particles:
    """Return the points that stand for the prior, with weights."""
    weights = np.empty(prior.count)
    effective_size, log_mean = weigh(_log_likelihood(counts, prior.first_matrices), weights)
    return Particles(
        prior.first_logits, prior.first_matrices, weights, effective_size, log_mean, POINTS
    )  # fmt: skip


def possible(prior: RowsPrior, counts: Counts) -> bool:
    """Whether the counts are possible where all that may be positive is."""
    matrices = prior.matrices(np.ascontiguousarray(prior.mean_logits[:, np.newaxis]))
    return bool(np.isfinite(_log_likelihood(counts, matrices)).all())


def _tempered(prior: RowsPrior, counts: Counts, key: np.uint64) -> Particles:
    count = prior.count
    drawn = Particles(
        prior.first_logits, prior.first_matrices, np.ones(count), float(count), 0.0, POINTS
    )
    power, number = 0.0, 1 + SLICES  # places of the key that are not used yet
    while power < 1.0:
        logs = _log_likelihood(counts, drawn.matrices)
        step, weights = _step(logs, drawn.weights, drawn.effective_size, 1.0 - power)
        power = min(power + step, 1.0)
        softened = Counts(counts.ages, counts.cells * power)
        drawn = renew(prior, softened, drawn.logits, weights, subkey(key, number))
        number += 1
    return drawn


def _step(
    logs: FloatArray, weights: FloatArray, effective_size: float, most: float
) -> tuple[float, FloatArray]:
    """Return the step of the power that halves the effective size, and the weights after it."""
    before, after = logarithms(weights), np.empty_like(weights)
    if weigh(before + most * logs, after)[0] >= LEFT * effective_size:
        return most, after
    low, high = 0.0, most
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        if weigh(before + middle * logs, after)[0] >= LEFT * effective_size:
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
