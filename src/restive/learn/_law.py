"""The law of a population over shared points: weights, what arms speak for, and random draws.

Symbols: theta[m] a point, d numbers; x[g] the traits of a group of arms; eta = (B [d, p], log
standard deviations [d], atanh of partial correlations [d (d - 1) / 2]); L[m, k] the likelihood of
what was seen of arm k at point m, relative to that arm's best point.

Sums are made in one order, by products and the package's own functions alone: the same bits
everywhere.
"""

from __future__ import annotations

from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import draw_normal, exponential, logarithm
from restive.kernels.jit.compiler import hot_kernel, kernel, part
from restive.kernels.learn.cholesky import factorise, forward_solve
from restive.kernels.learn.quantiles import normal_quantile
from restive.kernels.random import key_at, uniform_at

__all__ = [
    "draw_points",
    "log_normal",
    "moments",
    "normal_numbers",
    "root_of",
    "shared_moves",
    "write_evidence",
    "write_likelihoods",
    "write_normal_points",
    "write_weights",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST = 1e-300


@hot_kernel
def write_normal_points(steps: FloatArray, skip: int, points: FloatArray) -> None:
    """Write evenly spread points [M, d] of the standard normal law: multiples of `steps` [d]."""
    for m in range(len(points)):
        for j in range(len(steps)):
            u = 0.5 + (1 + skip + m) * steps[j]
            u -= float(int(u))
            points[m, j] = normal_quantile(min(max(u, 1e-9), 1.0 - 1e-9))


@hot_kernel
def normal_numbers(key: np.uint64, numbers: FloatArray) -> None:
    """Write standard normal numbers [n, d]; a row does not depend on how many there are."""
    for i in range(len(numbers)):
        own = np.uint64(key_at(key, i))
        place = 0
        for j in range(numbers.shape[1]):
            numbers[i, j], place = draw_normal(own, place)


@kernel
def shared_moves(
    cells: IntArray, counts: FloatArray, first: FloatArray, left: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Expected numbers of moves [R, S, S], [S, S] of arms that all had the same matrices.

    `first` [R, S] are the laws after a sighting and `left` [S, S] the matrix of arms left alone;
    cells [C, 3] of (row, age, next state) were counted so often [C].
    """
    size = len(left)
    begun, moved = np.zeros(first.shape), np.zeros(left.shape)
    longest = 1
    for c in range(len(cells)):
        longest = max(longest, cells[c, 1])
    ahead, back = np.empty((longest, size)), np.empty((longest, size))
    for c in range(len(cells)):
        row, age, state = cells[c, 0], cells[c, 1], cells[c, 2]
        for j in range(size):
            ahead[0, j] = first[row, j]
            back[age - 1, j] = 1.0 if j == state else 0.0
        for n in range(1, age):
            for j in range(size):
                ahead[n, j] = 0.0
                for i in range(size):
                    ahead[n, j] += ahead[n - 1, i] * left[i, j]
        for n in range(age - 2, -1, -1):
            for i in range(size):
                back[n, i] = 0.0
                for j in range(size):
                    back[n, i] += left[i, j] * back[n + 1, j]
        share = counts[c] / max(ahead[age - 1, state], LEAST)
        for j in range(size):
            begun[row, j] += share * ahead[0, j] * back[0, j]
        for n in range(1, age):
            for i in range(size):
                for j in range(size):
                    moved[i, j] += share * ahead[n - 1, i] * left[i, j] * back[n, j]
    return begun, moved


@hot_kernel
def write_likelihoods(
    starts: IntArray, cells: IntArray, counts: IntArray, logs: FloatArray, row: FloatArray,
    likelihoods: FloatArray, tops: FloatArray,
) -> None:  # fmt: skip
    """Write likelihoods [M, K] of arms, relative to each one's largest, whose log is in `tops` [K].

    `logs` [C, M] are of distinct cells; arm k has those in `cells` from starts[k] on. `row` [M] is
    scratch.
    """
    for k in range(len(tops)):
        row[:] = 0.0
        for i in range(starts[k], starts[k + 1]):
            own, count = logs[cells[i]], float(counts[i])
            for m in range(len(row)):
                row[m] += count * own[m]
        top = -inf
        for m in range(len(row)):
            top = max(top, row[m])
        tops[k] = top
        for m in range(len(row)):
            likelihoods[m, k] = exponential(row[m] - top)


@part
def _read(eta: FloatArray, d: int, p: int, floor: FloatArray, root: FloatArray) -> None:
    """Write the lower triangle [d, d] of the covariance that eta says."""
    at = d * p + d
    for i in range(d):
        sd = floor[i] + exponential(min(max(eta[d * p + i], -8.0), 3.0))
        left = 1.0
        for j in range(i):
            double = exponential(min(max(2.0 * eta[at], -40.0), 40.0))
            own = (double - 1.0) / (double + 1.0) * sqrt(left)
            at += 1
            left -= own * own
            root[i, j] = own * sd
            root[j, i] = 0.0
        root[i, i] = sqrt(max(left, 1e-12)) * sd


@part
def _weigh(
    eta: FloatArray, root: FloatArray, x: FloatArray, theta: FloatArray, log_base: FloatArray,
    z: FloatArray, weights: FloatArray,
) -> float:  # fmt: skip
    """Write weights [M], summing to one, of points [d, M] for arms with traits x [p].

    Returns the sum of their squares. `z` [d + 1, M] is scratch.
    """
    d, count = theta.shape
    p = len(x)
    logs = z[d]
    for m in range(count):
        logs[m] = -log_base[m]
    for i in range(d):
        centre = 0.0
        for j in range(p):
            centre += eta[i * p + j] * x[j]
        own = z[i]
        for m in range(count):
            own[m] = theta[i, m] - centre
        for j in range(i):
            factor, other = root[i, j], z[j]
            for m in range(count):
                own[m] -= factor * other[m]
        scale = 1.0 / root[i, i]
        for m in range(count):
            own[m] *= scale
            logs[m] -= 0.5 * own[m] * own[m]
    top = -inf
    for m in range(count):
        top = max(top, logs[m])
    for m in range(count):
        weights[m] = exponential(logs[m] - top)
    total, squares = 0.0, 0.0
    for m in range(count):
        total += weights[m]
        squares += weights[m] * weights[m]
    scale = 1.0 / total
    for m in range(count):
        weights[m] *= scale
    return squares * scale * scale


@hot_kernel
def write_weights(
    etas: FloatArray, floor: FloatArray, traits: FloatArray, theta: FloatArray,
    log_base: FloatArray, work: FloatArray, weights: FloatArray,
) -> None:  # fmt: skip
    """Write weights [n, G, M] under etas [n, D] for groups with traits [G, p].

    `theta` [d, M] are the points, `log_base` [M] the logarithm of their density, `floor` [d] the
    least standard deviations; `work` [2 d + 1, M] is scratch.
    """
    d, p = len(theta), traits.shape[1]
    root = work[d + 1 :, :d]
    for i in range(len(etas)):
        _read(etas[i], d, p, floor, root)
        for g in range(len(traits)):
            _weigh(etas[i], root, traits[g], theta, log_base, work[: d + 1], weights[i, g])


@hot_kernel
def write_evidence(
    etas: FloatArray, floor: FloatArray, traits: FloatArray, starts: IntArray, theta: FloatArray,
    log_base: FloatArray, likelihoods: FloatArray, work: FloatArray, evidence: FloatArray,
    crowded: FloatArray,
) -> None:  # fmt: skip
    """Write log probabilities [n, K] of what was seen of arms under etas [n, D].

    Arms of group g, with traits [G, p], are those from starts[g] on. `crowded` [n] gets the mean
    over arms of (sum of squared weights)^2. `work` [2 d + 2, M] is scratch. Other arguments as in
    `write_weights`.
    """
    d, p = len(theta), traits.shape[1]
    num_arms = likelihoods.shape[1]
    root, weights = work[d + 2 :, :d], work[d + 1]
    for i in range(len(etas)):
        _read(etas[i], d, p, floor, root)
        found = evidence[i]
        found[:] = 0.0
        crowded[i] = 0.0
        for g in range(len(traits)):
            begin, end = starts[g], starts[g + 1]
            squares = _weigh(etas[i], root, traits[g], theta, log_base, work[: d + 1], weights)
            crowded[i] += (end - begin) * squares * squares / num_arms
            _add_products(weights, likelihoods, begin, end, found)
        for k in range(num_arms):
            found[k] = logarithm(max(found[k], LEAST))


@part
def _add_products(
    weights: FloatArray, likelihoods: FloatArray, begin: int, end: int, sums: FloatArray
) -> None:
    """Add sum_m w[m] L[m, k] to sums[k] for begin <= k < end; M is a multiple of four."""
    for m in range(0, len(weights), 4):
        a, b, c, e = weights[m], weights[m + 1], weights[m + 2], weights[m + 3]
        first, second = likelihoods[m], likelihoods[m + 1]
        third, fourth = likelihoods[m + 2], likelihoods[m + 3]
        for k in range(begin, end):
            sums[k] += (a * first[k] + b * second[k]) + (c * third[k] + e * fourth[k])


@hot_kernel
def draw_points(
    weights: FloatArray, group: IntArray, likelihoods: FloatArray, key: np.uint64,
    drawn: IntArray,
) -> None:  # fmt: skip
    """Draw a point of each arm [K] from its posterior, by the numbers of `key`."""
    for k in range(len(group)):
        own = weights[group[k]]
        total = 0.0
        for m in range(len(own)):
            total += own[m] * likelihoods[m, k]
        wanted = uniform_at(key, k) * total
        below, found = 0.0, len(own) - 1
        for m in range(len(own)):
            below += own[m] * likelihoods[m, k]
            if below > wanted:
                found = m
                break
        drawn[k] = found


@kernel
def moments(values: FloatArray, shares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean [D] and covariance [D, D] of rows [n, D] with shares [n] that sum to one."""
    count, size = values.shape
    mean, covariance = np.zeros(size), np.zeros((size, size))
    for i in range(count):
        for j in range(size):
            mean[j] += shares[i] * values[i, j]
    for i in range(count):
        for j in range(size):
            left = shares[i] * (values[i, j] - mean[j])
            for k in range(j + 1):
                covariance[j, k] += left * (values[i, k] - mean[k])
    for j in range(size):
        for k in range(j):
            covariance[k, j] = covariance[j, k]
    return mean, covariance


@kernel
def root_of(matrix: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Lower triangle A [D, D] with A A' = matrix, and the rows A v of vectors [n, D]."""
    size = len(matrix)
    root = np.zeros((size, size))
    factorise(matrix, root)
    moved = np.zeros(vectors.shape)
    for i in range(len(vectors)):
        for j in range(size):
            for k in range(j + 1):
                moved[i, j] += root[j, k] * vectors[i, k]
    return root, moved


@kernel
def log_normal(points: FloatArray, centre: FloatArray, root: FloatArray) -> FloatArray:
    """Logarithms [n], up to a common constant, of normal densities at points [n, d]."""
    found = np.empty(len(points))
    scale = 0.0
    for i in range(len(root)):
        scale += logarithm(root[i, i])
    for i in range(len(points)):
        vector = points[i] - centre
        forward_solve(root, vector)
        total = 0.0
        for j in range(len(vector)):
            total += vector[j] * vector[j]
        found[i] = -0.5 * total - scale
    return found
