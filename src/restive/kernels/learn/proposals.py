"""Laws from which particles are drawn anew: mixtures of multivariate t's.

A component has a centre [d] and a root A [d, d], its shape being A A'. Points of a randomly shifted
lattice are mapped through the components, each as often as its share says. What is returned beside
the particles is the logarithm of the mixture's density q, without the t's constant.

Where no such law fits, particles take Metropolis steps instead, many of them at once.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.cholesky import factorise, forward_solve, log_diagonal
from restive.kernels.learn.lattice import degrees_of, student_points
from restive.kernels.learn.quantiles import normal_quantile
from restive.kernels.learn.weighing import choose_ancestors, effective_sample_size
from restive.kernels.random import bits_at, uniform_at

__all__ = [
    "FittedParticles",
    "accept",
    "draw_around",
    "draw_at_particles",
    "draw_mixture",
    "fit_particles",
    "kernel_width",
    "propose",
    "resample",
    "write_draws",
    "write_proposal",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST = 2.0**-54  # the middle of the lowest number that 53 bits stand for


class FittedParticles(NamedTuple):
    """Weighted particles, and what fits them."""

    logits: FloatArray  # [d, M]
    weights: FloatArray  # [M]
    centre: FloatArray  # [d] their mean
    root: FloatArray  # [d, d] the root of their covariance


@kernel
def fit_particles(logits: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean [d] of weighted particles [d, M], and the root [d, d] of their covariance."""
    d = len(logits)
    centre, root = np.empty(d), np.empty((d, d))
    write_proposal(logits, weights, centre, root)
    return centre, root


@part
def write_proposal(
    logits: FloatArray, weights: FloatArray, centre: FloatArray, root: FloatArray
) -> None:
    """Write both into arrays of the caller's."""
    d, count = logits.shape
    centre[:] = 0.0
    root[:] = 0.0
    total = 0.0
    for m in range(count):
        total += weights[m]
    for i in range(d):
        for m in range(count):
            centre[i] += weights[m] * logits[i, m]
        centre[i] /= total
    for i in range(d):
        for j in range(i + 1):
            for m in range(count):
                root[i, j] += weights[m] * (logits[i, m] - centre[i]) * (logits[j, m] - centre[j])
            root[i, j] /= total
    factorise(root, root)


@kernel
def draw_around(
    centre: FloatArray, root: FloatArray, generators: IntArray, key: np.uint64, logits: FloatArray,
    log_q: FloatArray,
) -> None:  # fmt: skip
    """Draw particles [d, M] from one t."""
    write_draws(centre, root, generators, key, np.empty(logits.shape), logits, log_q)


@part
def write_draws(
    centre: FloatArray, root: FloatArray, generators: IntArray, key: np.uint64, points: FloatArray,
    logits: FloatArray, log_q: FloatArray,
) -> None:  # fmt: skip
    """Do so with the points of the t in an array of the caller's [d, M]."""
    d, count = logits.shape
    degrees = degrees_of(d)
    student_points(generators, key, points, log_q)
    scale = log_diagonal(root)
    log_q[:] = 0.0
    for i in range(d):
        x, own = logits[i], points[i]
        x[:] = centre[i]
        for j in range(d):
            slope, point = root[i, j], points[j]
            for m in range(count):
                x[m] += slope * point[m]
        for m in range(count):
            log_q[m] += own[m] * own[m]
    for m in range(count):
        log_q[m] = -0.5 * (degrees + d) * logarithm(1.0 + log_q[m] / degrees) - scale


@kernel
def draw_mixture(
    centres: FloatArray, roots: FloatArray, shares: FloatArray, generators: IntArray,
    key: np.uint64, logits: FloatArray, log_q: FloatArray,
) -> IntArray:  # fmt: skip
    """Draw particles [d, M] from a few t's with centres [C, d], roots [C, d, d], shares [C].

    The roots are lower triangles; the shares sum to one. Returns the t [M] of each.
    """
    d, count = logits.shape
    degrees = degrees_of(d)
    points, chosen = np.empty((d, count)), np.empty(count, dtype=np.int64)
    vector, logs = np.empty(d), np.empty(len(shares))
    student_points(generators, bits_at(key, 0), points, log_q)
    choose_ancestors(shares, bits_at(key, 1), chosen)
    for m in range(count):
        for i in range(d):
            x = centres[chosen[m], i]
            for j in range(i + 1):
                x += roots[chosen[m], i, j] * points[j, m]
            logits[i, m] = x
        top = -inf
        for c in range(len(shares)):
            for i in range(d):
                vector[i] = logits[i, m] - centres[c, i]
            forward_solve(roots[c], vector)
            square = 0.0
            for i in range(d):
                square += vector[i] * vector[i]
            logs[c] = logarithm(shares[c]) - log_diagonal(roots[c])
            logs[c] -= 0.5 * (degrees + d) * logarithm(1.0 + square / degrees)
            top = max(top, logs[c])
        total = 0.0
        for c in range(len(shares)):
            total += exponential(logs[c] - top)
        log_q[m] = top + logarithm(total)
    return chosen


@kernel
def kernel_width(weights: FloatArray, d: int) -> float:
    """Silverman's width of kernels at weighted particles, relative to their spread."""
    return exponential(logarithm(4.0 / ((d + 2.0) * effective_sample_size(weights))) / (d + 4.0))


@kernel
def draw_at_particles(
    old: FittedParticles, width: float, generators: IntArray, key: np.uint64, logits: FloatArray,
    log_q: FloatArray,
) -> None:  # fmt: skip
    """Draw particles [d, M] from t's of four degrees at weighted old ones [d, M], d <= 3.

    All have the root width A, where A is that of the fit.
    """
    weights, centre, root = old.weights, old.centre, old.root
    d, count = logits.shape
    points, chosen = np.empty((d, count)), np.empty(count, dtype=np.int64)
    places, vector = np.empty((d, count)), np.empty(d)
    for m in range(count):
        for i in range(d):
            vector[i] = old.logits[i, m] - centre[i]
        forward_solve(root, vector)
        for i in range(d):
            places[i, m] = vector[i]
    student_points(generators, bits_at(key, 0), points, log_q)
    choose_ancestors(weights, bits_at(key, 1), chosen)
    total = 0.0
    for m in range(count):
        total += weights[m]
        for i in range(d):
            points[i, m] = places[i, chosen[m]] + width * points[i, m]
        for i in range(d):
            x = centre[i]
            for j in range(i + 1):
                x += root[i, j] * points[j, m]
            logits[i, m] = x
    scale = log_diagonal(root) + d * logarithm(width) + logarithm(total)
    for m in range(count):
        log_q[m] = logarithm(_kernel_sum(places, weights, points, m, width)) - scale


@part
def _kernel_sum(
    places: FloatArray, weights: FloatArray, points: FloatArray, m: int, width: float
) -> float:
    """Sum of w_j (1 + |u_m - v_j|^2 / (4 width^2))^-((4 + d) / 2)."""
    d = len(places)
    inverse = 1.0 / (4.0 * width * width)
    total = 0.0
    for j in range(len(weights)):
        square = 0.0
        for i in range(d):
            apart = points[i, m] - places[i, j]
            square += apart * apart
        t = 1.0 + square * inverse
        power = t * t
        if d > 1:
            power *= t
        if d != 2:
            power *= sqrt(t)
        total += weights[j] / power
    return total


@kernel
def resample(logits: FloatArray, weights: FloatArray, key: np.uint64) -> FloatArray:
    """Particles [d, M] that are as many as the weights say."""
    d, count = logits.shape
    ancestors = np.empty(count, dtype=np.int64)
    choose_ancestors(weights, key, ancestors)
    chosen = np.empty((d, count))
    for m in range(count):
        for i in range(d):
            chosen[i, m] = logits[i, ancestors[m]]
    return chosen


@kernel
def propose(
    old: FloatArray, root: FloatArray, step: int, key: np.uint64, logits: FloatArray,
    trial: FloatArray,
) -> None:  # fmt: skip
    """Propose a step for each particle [d, M].

    In turn: a random walk of the width that suits a normal law of shape root root', one of a
    quarter of it, and the difference of two old particles, which leaps between modes.
    """
    d, count = logits.shape
    normals = np.empty(d)
    width = 2.38 / sqrt(d) * (1.0 if step % 3 == 0 else 0.25)
    for m in range(count):
        if step % 3 == 2:
            _leap(old, logits, m, key, trial)
        else:
            _stroll(root, logits, m, width, key, normals, trial)


@part
def _leap(old: FloatArray, logits: FloatArray, m: int, key: np.uint64, trial: FloatArray) -> None:
    d, count = old.shape
    one = int(uniform_at(key, m * (d + 2)) * count)
    other = int(uniform_at(key, m * (d + 2) + 1) * count)
    for i in range(d):
        trial[i, m] = logits[i, m] + (old[i, one] - old[i, other])


@part
def _stroll(
    root: FloatArray, logits: FloatArray, m: int, width: float, key: np.uint64,
    normals: FloatArray, trial: FloatArray,
) -> None:  # fmt: skip
    d = len(normals)
    for i in range(d):
        normals[i] = normal_quantile(max(uniform_at(key, m * (d + 2) + i), LEAST))
    for i in range(d):
        x = logits[i, m]
        for j in range(d):
            x += width * root[i, j] * normals[j]
        trial[i, m] = x


@kernel
def accept(
    key: np.uint64, trial: FloatArray, trial_logs: FloatArray, logits: FloatArray, logs: FloatArray
) -> None:
    """Take the proposed steps [d, M] that Metropolis' rule takes."""
    d, count = logits.shape
    for m in range(count):
        u = max(uniform_at(key, m * (d + 2) + d + 1), LEAST)
        if trial_logs[m] - logs[m] >= logarithm(u):
            logs[m] = trial_logs[m]
            for i in range(d):
                logits[i, m] = trial[i, m]
