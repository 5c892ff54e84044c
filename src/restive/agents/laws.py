"""What is fixed of a learner's continuous priors, as the compiled loop takes it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from restive.kernels.tables import Laws
from restive.particles.renewal import enough
from restive.prior import DirichletArmPrior

__all__ = ["laws_of"]


def laws_of(priors: Sequence[DirichletArmPrior]) -> Laws:
    """Return the numbers of priors, one prior after the other."""
    tables = [prior.rows.tables for prior in priors]
    lengths = [
        (law.alphas.size, len(law.totals), len(law.columns), len(law.generators)) for law in tables
    ]
    starts = np.concatenate([[(0, 0, 0, 0)], np.cumsum(lengths, axis=0)])
    return Laws(
        alphas=np.concatenate([law.alphas.ravel() for law in tables]),
        totals=np.concatenate([law.totals for law in tables]),
        references=np.concatenate([law.references for law in tables]),
        firsts=np.concatenate([law.firsts for law in tables]),
        columns=np.concatenate([law.columns for law in tables]),
        precisions=np.concatenate([law.precisions for law in tables]),
        generators=np.concatenate([law.generators for law in tables]),
        starts=starts.astype(np.int64).ravel(),
        enough=np.array([enough(prior.rows) for prior in priors], dtype=np.float64),
        evident=np.array([prior.evidence.total > 0 for prior in priors], dtype=np.int64),
    )
