"""How particle groups are laid out: in lanes, and how much room each takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.records import record_dtype
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.renewals import renewal_size
from restive.kernels.loop.tables import DirichletPriors, PriorStarts
from restive.learn.particles.drawing import enough
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.slots import kept_ages, lane_places, num_rows

__all__ = [
    "chains_size",
    "dirichlet_priors_of",
    "in_particle_lanes",
    "likelihoods_size",
    "room_to_renew",
    "rows_of",
    "scratch_size",
    "width_of",
]

FloatArray = NDArray[np.float64]


def in_particle_lanes(matrices: FloatArray) -> FloatArray:
    """Matrices [R, S, M] in lanes; fillers get the first particle's numbers."""
    count = matrices.shape[2]
    laid = np.repeat(matrices[:, :, :1], num_rows(count) * LANES, axis=2)
    laid[:, :, lane_places(count)] = matrices
    return laid


def width_of(prior: DirichletArmPrior) -> int:
    """Numbers of a row of lanes, one for each particle and fillers."""
    return num_rows(prior.num_particles) * LANES


def rows_of(prior: DirichletArmPrior) -> int:
    """Rows R of the matrices."""
    return len(prior.rows.tables.totals)


def chains_size(prior: DirichletArmPrior) -> int:
    """Numbers of the matrices of a home."""
    return rows_of(prior) * prior.num_states * width_of(prior)


def likelihoods_size(prior: DirichletArmPrior) -> int:
    """Likelihoods that are kept of a home."""
    return prior.num_states**2 * kept_ages(prior) * width_of(prior)


def scratch_size(prior: DirichletArmPrior) -> int:
    """A row of beliefs, one to spare, a power of the matrices and its square."""
    return 2 * prior.num_states * (1 + prior.num_states) * width_of(prior)


def room_to_renew(prior: DirichletArmPrior) -> int:
    """Scratch for a renewal in the loop, which is for few free numbers."""
    free = prior.rows.free
    if free > FEW:
        return 0
    return renewal_size(free, rows_of(prior), prior.num_states, prior.num_particles)


def dirichlet_priors_of(priors: Sequence[DirichletArmPrior]) -> DirichletPriors:
    """Return the numbers of priors, one prior after the other."""
    tables = [prior.rows.tables for prior in priors]
    lengths = [
        (law.alphas.size, len(law.totals), len(law.columns), len(law.generators)) for law in tables
    ]
    starts = np.zeros(len(priors) + 1, dtype=record_dtype(PriorStarts))
    starts[1:] = [tuple(ends) for ends in np.cumsum(lengths, axis=0).tolist()]
    return DirichletPriors(
        alphas=np.concatenate([law.alphas.ravel() for law in tables]),
        totals=np.concatenate([law.totals for law in tables]),
        references=np.concatenate([law.references for law in tables]),
        firsts=np.concatenate([law.firsts for law in tables]),
        columns=np.concatenate([law.columns for law in tables]),
        precisions=np.concatenate([law.precisions for law in tables]),
        generators=np.concatenate([law.generators for law in tables]),
        starts=starts,
        enough=np.array([enough(prior.rows) for prior in priors], dtype=np.float64),
        evident=np.array([prior.evidence.total > 0 for prior in priors], dtype=np.int64),
    )
