"""What arms of a kind are like where all is seen and pulls change how they move: log odds.

An arm of two states is four chances of the better one next: pulled and not, from either state.
Dirichlet rows (`always_seen`) take these for unrelated, so that how an arm does without pulls says
nothing of how it does with them. Among many arms some then seem to gain a lot, where pulls change
nothing. Here an arm's log odds are m + Z u, with u normal, zero on average, of any covariance; and

* either each chance has its own u, so that effects of a pull differ between arms,
* or an arm has one u for each state, and all arms have the effect in common, which is in m.

Both are fitted to the kind's arms by EM, where the posterior of an arm's u is taken for normal at
its mode (Laplace). Bayes' information criterion chooses. An arm's posterior is points drawn from
its normal law, with their exact weights.
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
from restive.logs.kind_laws import evenly_spread

__all__ = ["LogitLaw", "logit_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

APART = np.eye(4)  # Z: each chance by itself
TOGETHER = np.tile(np.eye(2), (2, 1))  # pulled and not alike, but for m
POINTS = 256
BLOCK = 2_000  # arms whose points are held at once
MOST_ARMS = 2_000  # from which a law is estimated
UNKNOWN_ARMS = 0.2  # arms of unit variance that are added, so that a few arms are not all there is
CLOSE = 1e-3  # change of means and covariances that ends the search
MOST_ROUNDS = 300
NEWTON_STEPS, LONGEST_STEP = 4, 2.0


class LogitLaw(NamedTuple):
    """Log odds m + Z u of an arm's four chances; u is normal."""

    mean: FloatArray  # [4] m: pulled from 0 and from 1, not pulled from 0 and from 1
    loads: FloatArray  # [4, d] Z
    covariance: FloatArray  # [d, d] of u

    def chains(
        self, counts: LogCounts, arms: IntArray
    ) -> Iterator[tuple[int, FloatArray, FloatArray]]:
        """Yield arms, the chances [POINTS, 4] that each may have, and their weights [POINTS]."""
        normals, precision = _normal_points(self.loads.shape[1]), _inverse(self.covariance)
        for begin in range(0, len(arms), BLOCK):
            own = arms[begin : begin + BLOCK]
            moves = counts.moves(own)
            start = np.zeros((len(own), self.loads.shape[1]))
            modes = _modes(self, moves, precision, start, 5 * NEWTON_STEPS)
            spread = _cholesky(_inverse(modes.curvature))
            u = modes.u[:, None] + np.einsum("kij,mj->kmi", spread, normals)
            odds = self.mean + np.einsum("rd,kmd->kmr", self.loads, u)
            logs = _log_likelihood(moves[:, None], odds)
            logs -= 0.5 * np.einsum("kmi,ij,kmj->km", u, precision, u)
            logs += 0.5 * (normals**2).sum(axis=1)  # by the density of the points
            weights = exponentials(logs - logs.max(axis=1, keepdims=True))
            weights /= weights.sum(axis=1, keepdims=True)
            yield from zip(own.tolist(), _chances(odds), weights, strict=True)


class _Modes(NamedTuple):
    u: FloatArray  # [arms, d] most likely
    curvature: FloatArray  # [arms, d, d] of minus the log posterior there


def logit_law(counts: LogCounts, arms: IntArray) -> LogitLaw:
    """Return the law that the moves of these arms speak for: two states, always seen."""
    moves = counts.moves(evenly_spread(arms, MOST_ARMS))
    fits = [_fit(moves, loads) for loads in (TOGETHER, APART)]
    penalty = 0.5 * float(logarithms([max(len(moves), 1)])[0])
    scores = []
    for law, score in fits:
        free = law.loads.shape[1]
        scores.append(score - penalty * (len(law.mean) + free * (free + 1) / 2))
    return fits[int(np.argmax(scores))][0]


def _fit(moves: FloatArray, loads: FloatArray) -> tuple[LogitLaw, float]:
    """Fit a law to moves [arms, 4, 2]; return it with its log likelihood."""
    free, num_arms = loads.shape[1], len(moves)
    seen = moves.sum(axis=0) + 0.5
    law = LogitLaw(logarithms(seen[:, 1] / seen[:, 0]), loads, np.eye(free))
    u = np.zeros((num_arms, free))
    for _ in range(MOST_ROUNDS):
        modes = _modes(law, moves, _inverse(law.covariance), u, NEWTON_STEPS)
        u = modes.u
        shift = u.sum(axis=0) / max(num_arms, 1)
        u = u - shift
        mean = law.mean + np.einsum("rd,d->r", loads, shift)
        if free < len(mean):  # what a pull adds, by one step of Newton
            chances = _chances(mean + np.einsum("rd,kd->kr", loads, u))[:, :2]
            number = moves[:, :2].sum(axis=2)
            missed = (moves[:, :2, 1] - number * chances).sum(axis=0)
            known = (number * chances * (1 - chances)).sum(axis=0) + 1e-3
            mean[:2] += np.clip(missed / known, -1.0, 1.0)
        squares = np.einsum("ki,kj->ij", u, u) + _inverse(modes.curvature).sum(axis=0)
        covariance = (squares + UNKNOWN_ARMS * np.eye(free)) / (num_arms + UNKNOWN_ARMS)
        changed = max(np.abs(covariance - law.covariance).max(), np.abs(mean - law.mean).max())
        law = LogitLaw(mean, loads, covariance)
        if changed < CLOSE:
            break
    precision = _inverse(law.covariance)
    modes = _modes(law, moves, precision, u, NEWTON_STEPS)
    odds = law.mean + np.einsum("rd,kd->kr", loads, modes.u)
    logs = _log_likelihood(moves, odds)
    logs -= 0.5 * np.einsum("ki,ij,kj->k", modes.u, precision, modes.u)
    logs += 0.5 * (_log_determinant(precision) - _log_determinant(modes.curvature))
    return law, float(logs.sum())


def _modes(
    law: LogitLaw, moves: FloatArray, precision: FloatArray, u: FloatArray, steps: int
) -> _Modes:
    """Find the most likely u of each arm by Newton's method, from `u` on."""
    number, good = moves.sum(axis=2), moves[:, :, 1]
    for left in range(steps, -1, -1):
        chances = _chances(law.mean + np.einsum("rd,kd->kr", law.loads, u))
        weights = number * chances * (1 - chances)
        curvature = precision + np.einsum("kr,ri,rj->kij", weights, law.loads, law.loads)
        if not left:
            break
        slope = np.einsum("kr,rd->kd", good - number * chances, law.loads)
        slope -= np.einsum("ij,kj->ki", precision, u)
        step = np.einsum("kij,kj->ki", _inverse(curvature), slope)
        u = u + np.clip(step, -LONGEST_STEP, LONGEST_STEP)
    return _Modes(u, curvature)


def _chances(odds: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + exponentials(-odds)))


def _log_likelihood(moves: FloatArray, odds: FloatArray) -> FloatArray:
    """Log likelihood of moves [..., 4, 2] at log odds [..., 4], summed over the four."""
    sure = np.maximum(odds, 0) + logarithms(1 + exponentials(-np.abs(odds)))
    return np.asarray((moves[..., 1] * odds - moves.sum(axis=-1) * sure).sum(axis=-1))


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
