"""How well the model predicts what the logged pulls really earned, later than it was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from restive.logs.fitted import FittedLog
from restive.logs.sample import Sample
from restive.problem.beliefs import beliefs_at

__all__ = ["Calibration", "calibrate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PULLS = "pulls earned"
WIDTH = 2.576  # of the 99% interval: the law of the arms is estimated, which `stderr` leaves out


@dataclass(frozen=True)
class Calibration:
    """What the logged pulls of the later part earned, and what the model expected, per pull.

    Each pull is predicted from when and how the arm was last seen, so that it does not matter who
    chose the pulls and why.
    """

    num_pulls: int
    earned: float
    expected: float
    stderr: float  # of what is earned, by chance and by what is not known of the arms
    what: str = PULLS  # in words, what is compared

    @property
    def low(self) -> float:
        """Lower end of the 99% interval."""
        return self.expected - WIDTH * self.stderr

    @property
    def high(self) -> float:
        """Upper end of the 99% interval."""
        return self.expected + WIDTH * self.stderr

    @property
    def holds(self) -> bool:
        """Whether what was earned lies in the 99% interval."""
        return self.low <= self.earned <= self.high

    @property
    def sentence(self) -> str:
        """Return it in words."""
        verdict = "inside" if self.holds else "outside"
        return (
            f"the logged {self.what} {self.earned:.4f} each; the model, fitted before, expected "
            f"{self.expected:.4f} (99%: {self.low:.4f} to {self.high:.4f}, {verdict})"
        )


def calibrate(fitted: FittedLog, sample: Sample, split: int) -> Calibration | None:
    """Compare what pulls from step `split` on earned with what the model expected."""
    mine = sample.foretold & (sample.pulled | (fitted.seen == "always"))
    later = np.flatnonzero(mine & (sample.steps >= split))
    if not len(later):
        return None
    mean = variance = 0.0
    edges = np.searchsorted(sample.owner[later], np.arange(sample.num_arms + 1))
    place_of = {k: place for place, k in enumerate(sample.arms.tolist())}
    for k, active, passive, weights in fitted.supports(sample.arms):
        rows = later[edges[place_of[k]] : edges[place_of[k] + 1]]
        if len(rows):
            own_mean, own_variance = _total(active, passive, weights, fitted.rewards, sample, rows)
            mean += own_mean
            variance += own_variance
    earned = float(fitted.rewards[sample.states[later]].mean())
    what = "states of all arms are worth" if fitted.seen == "always" else PULLS
    return Calibration(len(later), earned, mean / len(later), sqrt(variance) / len(later), what)


def _total(
    active: FloatArray, passive: FloatArray, weights: FloatArray, rewards: FloatArray,
    sample: Sample, rows: IntArray,
) -> tuple[float, float]:  # fmt: skip
    """Mean and variance of what one arm's pulls earn together, under its posterior."""
    used = weights > 1e-12
    weights = weights[used] / weights[used].sum()
    last, ages, which = sample.pairs(rows)
    counts = np.bincount(which)
    laws = beliefs_at(active[used], passive[used], last, ages)
    first, second = (laws * rewards).sum(axis=2), (laws * rewards**2).sum(axis=2)
    by_candidate = (counts[:, None] * first).sum(axis=0)
    mean = float((weights * by_candidate).sum())
    unknown = float((weights * (by_candidate - mean) ** 2).sum())
    luck = float((weights * (counts[:, None] * (second - first**2)).sum(axis=0)).sum())
    return mean, unknown + luck
