"""What arms of a kind are like where pulls change how they move: their log odds go together.

An arm of two states is four chances of the better one next: pulled and not, from either state.
Dirichlet rows (`always_seen`) take these for unrelated, and points spread over all chains
(`kind_laws`) give some arms any law: among many arms some then seem to gain a lot from pulls that
change nothing. Here an arm's log odds are m + Z u, with u normal, zero on average, of any
covariance; and

* either each chance has its own u, so that effects of a pull differ between arms,
* or an arm has one u for each state, and all arms have the effect in common, which is in m.

Both are fitted to the kind's arms by EM, where the posterior of an arm's u is taken for normal at
its mode (Laplace). Bayes' information criterion chooses. An arm's posterior is points drawn from
its normal law, with their exact weights.

What is not known of m is normal, too (its variance is what is known of m once the u are integrated
out): `redrawn` gives another law that may be the true one.

A sighting n steps after a pull in state s is good with chance c a^k + q (1 - a^k) / (1 - a), where
k = n - 1, c is the chance of a pull from s, q that of no pull from 0, and q + a that from 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponentials, logarithms
from restive.kernels.learn.lattice import lattice_generators
from restive.logs.counts import LogCounts
from restive.logs.finite import cells_of
from restive.logs.kind_laws import evenly_spread

__all__ = ["LogitLaw", "logit_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

APART = np.eye(4)  # Z: each chance by itself
TOGETHER = np.tile(np.eye(2), (2, 1))  # pulled and not alike, but for m
POINTS = 256
BLOCK = 200  # arms whose points are held at once
MOST_ARMS = 2_000  # from which a law is estimated
UNKNOWN_ARMS = 0.2  # arms of unit variance that are added, so that a few arms are not all there is
CLOSE = 1e-3  # change of means and covariances that ends the search
MOST_ROUNDS = 300
NEWTON_STEPS, LONGEST_STEP = 4, 2.0
FARTHEST = 12.0  # log odds
LEAST_KNOWN = 0.25  # of m, before anything was seen: a standard deviation of 2
SURE = 1e-9  # chances stay this far from 0 and 1


class Transitions(NamedTuple):
    """What followed what of some arms, arm by arm."""

    starts: IntArray  # [K + 1] of each arm
    arm: IntArray  # [C] place
    row: IntArray  # [C] pulled in 0 or 1, not pulled in 0 or 1
    waited: IntArray  # [C] steps without a pull in between, n - 1
    good: FloatArray  # [C] 1 or 0
    number: FloatArray  # [C] how often

    @classmethod
    def of(cls, counts: LogCounts, arms: IntArray) -> Transitions:
        """Return what was counted of these arms."""
        starts, places = cells_of(counts, arms)
        row, elapsed, good = counts.unpacked(counts.cells[places])
        arm = np.repeat(np.arange(len(arms)), np.diff(starts))
        number = counts.counts[places].astype(np.float64)
        return cls(starts, arm, row, elapsed - 1, good.astype(np.float64), number)

    def sums(self, values: FloatArray) -> FloatArray:
        """Sum values [C, ...] over each arm's cells [K, ...]."""
        total = np.zeros((len(self.starts) - 1, *values.shape[1:]))
        some = np.flatnonzero(np.diff(self.starts))
        if len(some):
            total[some] = np.add.reduceat(values, self.starts[some], axis=0)
        return total


class LogitLaw(NamedTuple):
    """Log odds m + Z u of an arm's four chances; u is normal."""

    mean: FloatArray  # [4] m: pulled from 0 and from 1, not pulled from 0 and from 1
    loads: FloatArray  # [4, d] Z
    covariance: FloatArray  # [d, d] of u
    unknown: FloatArray  # [4, 4] lower triangle: m is m + this times standard normal numbers

    def redrawn(self, normals: FloatArray) -> LogitLaw:
        """Return the law with another mean, by standard normal numbers [4]."""
        return self._replace(mean=self.mean + np.einsum("ij,j->i", self.unknown, normals))

    def chains(
        self, counts: LogCounts, arms: IntArray
    ) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Yield arms, the chances [POINTS, 4] that each may have, and their weights [POINTS]."""
        normals, precision = _normal_points(self.loads.shape[1]), _inverse(self.covariance)
        for begin in range(0, len(arms), BLOCK):
            own = arms[begin : begin + BLOCK]
            seen = Transitions.of(counts, own)
            start = np.zeros((len(own), self.loads.shape[1]))
            modes = _modes(self, seen, precision, start, 5 * NEWTON_STEPS)
            spread = _cholesky(_inverse(modes.curvature))
            u = modes.u[:, None] + np.einsum("kij,mj->kmi", spread, normals)
            chances = _chances(self.mean + np.einsum("rd,kmd->kmr", self.loads, u))
            logs = seen.sums(_log_chances(seen, chances))
            logs -= 0.5 * np.einsum("kmi,ij,kmj->km", u, precision, u)
            logs += 0.5 * (normals**2).sum(axis=1)  # by the density of the points
            weights = exponentials(logs - logs.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            yield from zip(own.tolist(), chances, weights, strict=True)


class _Modes(NamedTuple):
    u: FloatArray  # [K, d] most likely
    curvature: FloatArray  # [K, d, d] of minus the log posterior there, as expected (Fisher)
    slope: FloatArray  # [K, 4] of the log likelihood in log odds, there
    information: FloatArray  # [K, 4, 4] on them


def logit_law(counts: LogCounts, arms: IntArray) -> LogitLaw:
    """Return the law that what was seen of these arms of two states speaks for."""
    seen = Transitions.of(counts, evenly_spread(arms, MOST_ARMS))
    num_arms = len(seen.starts) - 1
    fits = [_fit(seen, loads) for loads in (TOGETHER, APART)]
    penalty = 0.5 * float(logarithms([max(num_arms, 1)])[0])
    scores = []
    for law, score in fits:
        free = law.loads.shape[1]
        scores.append(score - penalty * (len(law.mean) + free * (free + 1) / 2))
    return fits[int(np.argmax(scores))][0]


def _fit(seen: Transitions, loads: FloatArray) -> tuple[LogitLaw, float]:
    """Fit a law; return it with its log likelihood."""
    free, num_arms = loads.shape[1], len(seen.starts) - 1
    law = LogitLaw(_first_guess(seen), loads, np.eye(free), np.zeros((4, 4)))
    u = np.zeros((num_arms, free))
    for _ in range(MOST_ROUNDS):
        modes = _modes(law, seen, _inverse(law.covariance), u, NEWTON_STEPS)
        shift = modes.u.sum(axis=0) / max(num_arms, 1)
        u = modes.u - shift
        mean = law.mean + np.einsum("rd,d->r", loads, shift)
        if free < len(mean):  # what a pull adds, by a step of Newton's method
            slope, known = modes.slope.sum(axis=0), np.einsum("krr->r", modes.information)
            mean[:2] += np.clip(slope / (known + 1e-3), -1.0, 1.0)[:2]
        mean = np.clip(mean, -FARTHEST, FARTHEST)
        squares = np.einsum("ki,kj->ij", u, u) + _inverse(modes.curvature).sum(axis=0)
        covariance = (squares + UNKNOWN_ARMS * np.eye(free)) / (num_arms + UNKNOWN_ARMS)
        changed = max(np.abs(covariance - law.covariance).max(), np.abs(mean - law.mean).max())
        law = law._replace(mean=mean, covariance=covariance)
        if changed < CLOSE:
            break
    precision = _inverse(law.covariance)
    modes = _modes(law, seen, precision, u, NEWTON_STEPS)
    chances = _chances(law.mean + np.einsum("rd,kd->kr", loads, modes.u))
    logs = seen.sums(_log_chances(seen, chances[:, None]))[:, 0]
    logs -= 0.5 * np.einsum("ki,ij,kj->k", modes.u, precision, modes.u)
    logs += 0.5 * (_log_determinant(precision) - _log_determinant(modes.curvature))
    across = np.einsum("krs,si->kri", modes.information, loads)
    own = np.einsum("kri,kij,ksj->krs", across, _inverse(modes.curvature), across)
    known = (modes.information - own).sum(axis=0) + LEAST_KNOWN * np.eye(4)
    return law._replace(unknown=_cholesky(_inverse(known))), float(logs.sum())


def _first_guess(seen: Transitions) -> FloatArray:
    """Log odds [4] of what followed soonest, all arms together; of what never did, as pulled."""
    odds = np.zeros(4)
    for row in range(4):
        own = seen.row == row
        own &= seen.waited == (seen.waited[own].min() if own.any() else 0)
        good, number = (seen.good * seen.number)[own].sum(), seen.number[own].sum()
        odds[row] = logarithms([(good + 0.5) / (number - good + 0.5)])[0]
        if row >= 2 and not own.any():
            odds[row] = odds[row - 2]
    return odds


def _modes(
    law: LogitLaw, seen: Transitions, precision: FloatArray, u: FloatArray, steps: int
) -> _Modes:
    """Find the most likely u of each arm by Fisher's scoring, from `u` on."""
    for left in range(steps, -1, -1):
        chances = _chances(law.mean + np.einsum("rd,kd->kr", law.loads, u))
        p, gradient = _chance_of_good(seen, chances)
        slope = seen.sums((seen.number * (seen.good - p) / (p * (1 - p)))[:, None] * gradient)
        known = np.einsum("ci,cj->cij", gradient, gradient)
        information = seen.sums((seen.number / (p * (1 - p)))[:, None, None] * known)
        curvature = precision + np.einsum("krs,ri,sj->kij", information, law.loads, law.loads)
        if not left:
            break
        rise = np.einsum("kr,rd->kd", slope, law.loads) - np.einsum("ij,kj->ki", precision, u)
        step = np.einsum("kij,kj->ki", _inverse(curvature), rise)
        u = np.clip(u + np.clip(step, -LONGEST_STEP, LONGEST_STEP), -FARTHEST, FARTHEST)
    return _Modes(u, curvature, slope, information)


def _chances(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + exponentials(-odds)))


def _log_chances(seen: Transitions, chances: FloatArray) -> FloatArray:
    """Log likelihoods [C, M] of what was seen, under chances [K, M, 4] of each arm."""
    own = chances[seen.arm]
    first = np.take_along_axis(own, seen.row[:, None, None], axis=2)[:, :, 0]
    from_bad, ahead = own[:, :, 2], own[:, :, 3] - own[:, :, 2]
    power = _power(ahead, seen.waited[:, None])
    p = first * power + from_bad * (1 - power) / (1 - ahead)
    good = np.clip(p, SURE, 1 - SURE)
    return np.asarray(
        seen.number[:, None] * logarithms(np.where(seen.good[:, None] > 0, good, 1 - good))
    )


def _chance_of_good(seen: Transitions, chances: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Chances [C] of the good state, and their gradients [C, 4] in log odds, at chances [K, 4]."""
    own = chances[seen.arm]
    cells, k = np.arange(len(seen.arm)), seen.waited
    first, from_bad, ahead = own[cells, seen.row], own[:, 2], own[:, 3] - own[:, 2]
    rest = 1 - ahead
    power = _power(ahead, k)
    before = _power(ahead, np.maximum(k - 1, 0)) * k  # the power's derivative
    p = first * power + from_bad * (1 - power) / rest
    slower = first * before + from_bad * ((1 - power) / rest - before) / rest  # in `ahead`
    gradient = np.zeros_like(own)
    gradient[:, 2] = (1 - power) / rest - slower
    gradient[:, 3] = slower
    gradient[cells, seen.row] += power
    return np.clip(p, SURE, 1 - SURE), gradient * own * (1 - own)


def _power(base: FloatArray, exponent: IntArray) -> FloatArray:
    """Whole powers by products: numpy's own depend on the processor."""
    found, base, left = np.ones(np.broadcast(base, exponent).shape), base + 0.0, exponent
    while (left > 0).any():
        found = np.where(left & 1, found * base, found)
        base, left = base * base, left >> 1
    return found


@cache
def _normal_points(dimensions: int) -> FloatArray:
    """Evenly spread points [POINTS, d] of the standard normal law."""
    generators = lattice_generators(POINTS, dimensions, False)
    places = (np.arange(POINTS)[:, None] * generators % POINTS + 0.5) / POINTS
    quantile = NormalDist().inv_cdf
    return np.array([[quantile(u) for u in row] for row in places.tolist()])


# Small matrices [..., d, d], by hand: LAPACK's last bits depend on the processor.


def _cholesky(matrix: FloatArray) -> FloatArray:
    lower = np.zeros_like(matrix)
    for i in range(matrix.shape[-1]):
        for j in range(i + 1):
            rest = matrix[..., i, j] - (lower[..., i, :j] * lower[..., j, :j]).sum(axis=-1)
            lower[..., i, j] = np.sqrt(rest) if i == j else rest / lower[..., j, j]
    return lower


def _inverse(matrix: FloatArray) -> FloatArray:
    lower = _cholesky(matrix)
    size = matrix.shape[-1]
    inverse = np.zeros_like(matrix)  # of the lower triangle
    for i in range(size):
        inverse[..., i, i] = 1 / lower[..., i, i]
        for j in range(i):
            known = (lower[..., i, j:i] * inverse[..., j:i, j]).sum(axis=-1)
            inverse[..., i, j] = -known / lower[..., i, i]
    return np.asarray(np.einsum("...ki,...kj->...ij", inverse, inverse))


def _log_determinant(matrix: FloatArray) -> FloatArray:
    diagonal = np.einsum("...ii->...i", _cholesky(matrix))
    return np.asarray(2 * logarithms(diagonal).sum(axis=-1))
