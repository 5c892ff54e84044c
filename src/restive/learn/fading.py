"""Particles of an arm where what was seen loses weight (`kernels.learn.forgetting`).

What was seen beforehand is part of the prior, which is never forgotten: so it is not among the
counts, which fade, but is added to them when particles are drawn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithms
from restive.kernels.learn.likelihood import Counts, add_log_likelihood
from restive.kernels.learn.particles import ArmParticles
from restive.learn.evidence import Evidence
from restive.learn.particles.arm import count_evidence, counts_of, fresh_arm
from restive.learn.particles.rows import RowsPrior

__all__ = ["bases_of", "counts_and", "with_evidence"]

FloatArray = NDArray[np.float64]

NOTHING = 1e-9  # what rounding leaves of a count


def with_evidence(arm: ArmParticles, evidence: Evidence) -> ArmParticles:
    """Return an arm of which this was seen too; counts are its own, all else is the other's."""
    if not evidence.total:
        return arm
    own = arm._replace(ages=arm.ages.copy(), cells=arm.cells.copy(), num_ages=arm.num_ages.copy())
    return count_evidence(own, evidence)


def bases_of(arm: ArmParticles) -> FloatArray:
    """Logarithms [M] of what the weights of particles would be, had none of the counts been seen.

    0 where a weight is 0, which it stays.
    """
    found = np.zeros(len(arm.weights))
    add_log_likelihood(counts_of(arm), arm.matrices, found)
    held = (arm.weights > 0) & np.isfinite(found)
    bases = np.zeros(len(found))
    bases[held] = logarithms(arm.weights[held]) - found[held]
    return bases


def counts_and(counts: Counts, prior: RowsPrior, evidence: Evidence, sign: int) -> Counts:
    """Return counts with evidence added to them, or taken out (sign -1)."""
    other = counts_of(count_evidence(fresh_arm(prior), evidence))
    ages = np.union1d(counts.ages, other.ages)
    cells = np.zeros((len(ages), *other.cells.shape[1:]))
    cells[np.searchsorted(ages, counts.ages)] += counts.cells
    cells[np.searchsorted(ages, other.ages)] += sign * other.cells
    cells[cells < NOTHING] = 0.0
    return Counts(ages, cells)
