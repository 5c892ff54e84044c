"""The law from which particles are drawn anew: a multivariate t.

It has a centre [d] and a root A [d, d], its shape being A A'. Points of a randomly shifted lattice
are mapped through it, and weighed by the posterior over its density q, without the t's constant.

Where it does not fit, particles take Metropolis steps instead, many of them at once.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.cholesky import factorise, log_diagonal
from restive.kernels.learn.dirichlet import DirichletRows, place_each_row
from restive.kernels.learn.lattice import degrees_of, student_points
from restive.kernels.learn.likelihood import AgedBeliefs, Counts, add_logs, empty_beliefs
from restive.kernels.learn.quantiles import normal_quantile
from restive.kernels.learn.weighing import choose_ancestors, write_weights
from restive.kernels.random import uniform_at

__all__ = [
    "Student",
    "accept",
    "draw_around",
    "draw_weighed",
    "fit_particles",
    "propose",
    "resample",
    "write_draws",
    "write_proposal",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST = 2.0**-54  # the middle of the lowest number that 53 bits stand for


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


class Student(NamedTuple):
    """A t: its centre and a root of its matrix."""

    centre: FloatArray  # [d]
    root: FloatArray  # [d, d]


@kernel
def draw_around(
    rows: DirichletRows, counts: Counts, centre: FloatArray, root: FloatArray, key: np.uint64,
    count: int,
) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:  # fmt: skip
    """Draw `count` particles of a posterior from one t, with their exact weights.

    Returns
    -------
    Logits [d, M], matrices [R, S, M] and weights [M], their effective sample size, and the
    logarithm of their mean.
    """
    d = len(centre)
    logits, matrices = np.empty((d, count)), np.empty((*rows.alphas.shape, count))
    scratch, aged = np.empty((7 + d, count)), empty_beliefs(counts, matrices)
    student = Student(centre, root)
    size, log_mean = draw_weighed(rows, counts, aged, student, key, logits, scratch)
    return logits, matrices, scratch[0].copy(), size, log_mean


@part
def draw_weighed(
    rows: DirichletRows, counts: Counts, aged: AgedBeliefs, student: Student, key: np.uint64,
    logits: FloatArray, scratch: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Do so in arrays of the caller's: `logits`, the matrices of `aged`, and `scratch` [7 + d, M].

    The first row of the scratch gets the weights, the second the logarithms of what they are where
    nothing is counted.
    """
    weights, bases, logs, log_q = scratch[0], scratch[1], scratch[2], scratch[3]
    three = scratch[4:7]
    write_draws(student.centre, student.root, rows.generators, key, scratch[7:], logits, log_q)
    place_each_row(rows, logits, aged.matrices, logs, three[:2])
    for m in range(len(logs)):
        bases[m] = logs[m] - log_q[m]
    add_logs(counts, aged, logs, three)
    for m in range(len(logs)):
        logs[m] -= log_q[m]
    return write_weights(logs, weights)


@part
def write_draws(
    centre: FloatArray, root: FloatArray, generators: IntArray, key: np.uint64, points: FloatArray,
    logits: FloatArray, log_q: FloatArray,
) -> None:  # fmt: skip
    """Write particles [d, M] of a t and the log of its density; `points` [d, M] are scratch."""
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
