"""What a learner keeps of an arm with a continuous prior; kernels.particles says how it uses it."""

from __future__ import annotations

import numpy as np

from restive.evidence import Evidence
from restive.kernels.ages import DENSE
from restive.kernels.likelihood import Counts
from restive.kernels.particles import ArmParticles, add_sighting
from restive.particles.drawing import Particles, subkey
from restive.particles.renewal import renew
from restive.particles.rows import RowsPrior

__all__ = ["AGES", "begin_anew", "count_evidence", "counts_of", "fresh_arm", "grown", "renew_arm"]

AGES = 2 * DENSE  # for which there is room at first


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
        worth=np.array([float(count) if particles is None else particles.worth]),
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
    arm.worth[0] = drawn.worth
    arm.renewals[0] += 1
    return drawn.way
