"""What the arms of a kind say about its law by themselves: intervals by profile likelihood.

Of a mean over the law, f = sum_m w[m] f[m] (a chance, or a share of the arms), all values belong to
the 90% interval for which some law w has a log likelihood within 1.353 of the best (half of the 90%
quantile of a chi-square with one degree of freedom). Nothing is assumed of the law: what arms that
were seen once or twice cannot tell stays open, and the interval is wide. The few unknown arms that
`estimate_kind` adds have no part in it, so that its law may lie outside where arms are few.

The upper end is the least of (max_w [log L(w) + t f(w)] - max_w log L(w) + 1.353) / t over t > 0:
whatever t is, no law that is likely enough has a larger mean. The inner maximum is found by EM; its
step is w[m] = N[m] / (v - t f[m]) with v such that the weights sum to one; N[m] is the number of
arms that are candidate m, by their posteriors. Where the search ends early, by how much the sum may
be larger at most is added, which is known since it is concave: an interval is never too narrow.
"""

from __future__ import annotations

from math import fsum, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.learn.kinds import add_posteriors, extrapolate, improve_tilted
from restive.threads import stop_if_interrupted

__all__ = ["profile_intervals"]

FloatArray = NDArray[np.float64]

DROP = 1.3527717  # half of the 90% quantile of a chi-square with one degree of freedom
TRACE = 0.2  # unknown arms that keep all weights above zero
CLOSE = 0.2  # by how much a search may miss the largest log likelihood and tilt when it ends
MOST_CYCLES = 60
MOST_TILTS = 6  # values of t that are tried
NEAR = 0.15  # share of DROP by which the likelihood of a tilted law may miss it


def profile_intervals(
    likelihoods: FloatArray, numbers: FloatArray, base: FloatArray, values: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Means over the likeliest law [Q] of values [Q, M], and their 90% intervals [Q, 2].

    `likelihoods` [rows, M] are those of `numbers` [rows] of arms; `base` [M] is where to begin.
    """
    search = _Tilted(likelihoods, numbers, base)
    law, best, _ = search.run(base, np.zeros(len(base)))
    ends = [
        [sign * search.upper_end(sign * row, law, best) for sign in (-1.0, 1.0)] for row in values
    ]
    return np.array([fsum(law * row) for row in values]), np.array(ends).reshape(-1, 2)


class _Step(NamedTuple):
    """A law, and what a step of EM makes of it."""

    law: FloatArray  # [M]
    better: FloatArray  # [M]
    evidence: float  # log likelihood of `law`
    value: float  # with its tilt and the density of the unknown arms
    left: float  # by how much log likelihood and tilt may be larger elsewhere, at most


class _Tilted:
    """Laws that are likely and have a large mean."""

    def __init__(self, likelihoods: FloatArray, numbers: FloatArray, base: FloatArray) -> None:
        self.likelihoods, self.numbers = likelihoods, numbers
        self.flat = TRACE * base
        self.num_arms = fsum(numbers)
        self.least = 1e-3 * self.flat / (self.num_arms + TRACE)

    def upper_end(self, values: FloatArray, law: FloatArray, best: float) -> float:
        """Upper end of the interval of a mean; `law` is the likeliest, with `best`."""
        tilt = sqrt(2 * DROP * self.num_arms)  # about right for chances
        end = most = float(values.max())
        for _ in range(MOST_TILTS):
            law, evidence, left = self.run(law, tilt * values)
            drop = best - evidence
            end = min(end, fsum(law * values) + (DROP - drop + left) / tilt)
            if abs(drop - DROP) < NEAR * DROP:
                break
            tilt *= min(max(sqrt(DROP / max(drop, 1e-6)), 0.25), 4.0)
        return min(end, most)

    def run(self, law: FloatArray, tilt: FloatArray) -> tuple[FloatArray, float, float]:
        """Search for the law with the largest log likelihood plus `tilt`.

        Returns
        -------
        The law, its log likelihood, and by how much the sum may be larger at most.
        """
        for _ in range(MOST_CYCLES):
            stop_if_interrupted()
            here = self._step(law, tilt)
            first = self._step(here.better, tilt)
            far = np.empty(len(law))
            extrapolate(law, here.better, first.better, self.least, far)
            beyond = self._step(far, tilt)
            found = beyond if beyond.value >= first.value else first
            law = found.better
            if found.left < CLOSE:
                break
        return found.law, found.evidence, found.left

    def _step(self, law: FloatArray, tilt: FloatArray) -> _Step:
        """Take a step of EM from `law`."""
        sums, better = np.zeros(len(law)), np.empty(len(law))
        evidence = add_posteriors(self.likelihoods, self.numbers, law, sums)
        more = improve_tilted(law, sums, self.flat, tilt, better)
        # the sum is concave in the law, so that no law is above the tangent plane of this one
        slopes = (sums + tilt)[law > 0]
        left = float(slopes.max()) - self.num_arms - fsum(tilt * law)
        return _Step(law, better, evidence, evidence + more, left)
