"""Points that fill a cube evenly, and what is made of them: laws, and points of Student's t.

A lattice of M points has the coordinates (i g_j + c_j mod M + 1/2) / M, i = 0 ... M - 1, with
generators g_j = a^j mod M and a chosen by how evenly the points fill the cube. Each coordinate
takes every (k + 1/2) / M once. The c_j are such that with a point x there is 1 - x: as many points
are on one side of a diagonal as on the other. Shifted modulo 1 by uniform numbers instead they are
still as even, and each point is uniform: averages over them are unbiased.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm, unit_circle
from restive.kernels.jit.compiler import hot_kernel, kernel, part
from restive.kernels.learn.quantiles import chi_square_quantile, normal_quantile
from restive.kernels.random import uniform_at

__all__ = [
    "FEW",
    "centred_place",
    "degrees_of",
    "dimensions_of",
    "lattice_generators",
    "lattice_square",
    "student_points",
    "t4_quantile",
    "write_laws",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW = 3  # free numbers up to which a t's points need no more coordinates than it has
MOST_TRIED = 256  # generators that are compared
LEAST = 2.0**-54


@kernel
def degrees_of(free: int) -> int:
    """Degrees of freedom of the t in so many dimensions: tails that cover a Dirichlet's."""
    return 4 if free <= FEW else 10


@kernel
def dimensions_of(free: int) -> int:
    """Coordinates that a point of the t in so many dimensions is made of."""
    return free if free <= FEW else free + 1


@kernel
def lattice_generators(count: int, dimensions: int, diagonal: bool) -> IntArray:
    """Generators [dimensions] of the lattice with so many points.

    The a with the least sum over points of prod_j (1 + 2 pi^2 B(x_j) / d), B(x) = x^2 - x + 1/6:
    the squared error of integrating smooth functions (d = dimensions). With `diagonal`, the sum and
    the difference of the first two coordinates, modulo 1, count as further coordinates.
    """
    best, least = 1, np.inf
    stride = max(1, count // 2 // MOST_TRIED)
    for a in range(1, count // 2 + 1, stride):
        if _common_divisor(a, count) > 1:
            continue
        uneven = _unevenness(count, dimensions, a, diagonal)
        if uneven < least * (1 - 1e-9):
            best, least = a, uneven
    generators = np.ones(dimensions, dtype=np.int64)
    for j in range(1, dimensions):
        generators[j] = generators[j - 1] * best % count
    return generators


@part
def _common_divisor(a: int, b: int) -> int:
    while b:
        a, b = b, a % b
    return a


@part
def _unevenness(count: int, dimensions: int, a: int, diagonal: bool) -> float:
    total = 0.0
    for i in range(count):
        product = 1.0
        place = i
        for _ in range(dimensions):
            product *= _factor(place / count, dimensions)
            place = place * a % count
        if diagonal:
            product *= _factor(i * (1 + a) % count / count, dimensions)
            product *= _factor(i * (count + 1 - a) % count / count, dimensions)
        total += product
    return total


@part
def _factor(x: float, dimensions: int) -> float:
    return 1.0 + 19.739208802178716 / dimensions * (x * x - x + 1 / 6)


@part
def centred_place(i: int, generator: int, count: int) -> int:
    """Return i g + c mod M, where M - 1 - i has the place M - 1 - that."""
    twice = generator - 1  # 2 c, modulo M
    if twice % 2 != 0:
        twice += count  # M is odd then, as M and g have no common divisor
    return (i * generator + twice // 2) % count


@hot_kernel
def write_laws(cube: FloatArray, laws: FloatArray) -> None:
    """Write laws [count, S], uniform over all of them, from uniform coordinates [count, S - 1].

    From the last state down, each takes the share 1 - (1 - u)^(1/s) of what is left for s others.
    """
    for i in range(len(laws)):
        left = 1.0
        for state in range(laws.shape[1] - 1, 0, -1):
            kept = 1.0 - cube[i, state - 1]
            if state > 1:
                kept = exponential(logarithm(kept) / state)
            laws[i, state] = left * (1.0 - kept)
            left *= kept
        laws[i, 0] = left


@part
def _write_coordinates(generator: int, shift: float, us: FloatArray) -> None:
    """Write a coordinate [M] of all points of the shifted lattice."""
    count, place = len(us), 0
    for m in range(count):
        u = place / count + shift
        us[m] = min(max(u - 1.0 if u >= 1.0 else u, LEAST), 1.0 - 2 * LEAST)
        place += generator
        place -= count if place >= count else 0


@part
def student_points(
    generators: IntArray, key: np.uint64, points: FloatArray, scales: FloatArray
) -> None:
    """Write points [d, M] of a standard t: a lattice, shifted by the numbers of `key`.

    Up to three dimensions |z|^2 = 4 x / (1 - x), where x has the distribution function
    x^(d/2) (1 + (1 - x) d/2), and a direction from the other coordinates. Beyond, normal numbers
    over the root of a chi-square's share. `scales` [M] is scratch.
    """
    free, count = points.shape
    for j in range(free):
        _write_coordinates(generators[j], uniform_at(key, j), points[j])
    if free == 1:
        for m in range(count):
            points[0, m] = t4_quantile(points[0, m])
    elif free == 2:
        _place_in_plane(points[0], points[1])
    elif free == FEW:
        for m in range(count):
            radius, height = _radius(free, points[0, m]), 2.0 * points[2, m] - 1.0
            cosine, sine = unit_circle(points[1, m])
            points[2, m] = radius * height
            radius *= sqrt(1.0 - height * height)
            points[0, m] = radius * cosine
            points[1, m] = radius * sine
    else:
        degrees = degrees_of(free)
        _write_coordinates(int(generators[free]), uniform_at(key, free), scales)
        for m in range(count):
            scales[m] = sqrt(degrees / chi_square_quantile(degrees, scales[m]))
        for j in range(free):
            for m in range(count):
                points[j, m] = scales[m] * normal_quantile(points[j, m])


@part
def lattice_square(generators: IntArray, key: np.uint64, points: FloatArray) -> None:
    """Write points [2, M] of a lattice, shifted by the numbers of `key`."""
    for j in range(2):
        _write_coordinates(generators[j], uniform_at(key, j), points[j])


@part
def t4_quantile(u: float) -> float:
    """Quantile of a t of four degrees in one dimension."""
    return _radius(1, abs(2.0 * u - 1.0)) * (1.0 if u > 0.5 else -1.0)


@part
def _place_in_plane(first: FloatArray, second: FloatArray) -> None:
    """Turn uniform numbers [M], [M] into the coordinates of a t of four degrees in the plane."""
    for m in range(len(first)):
        radius = 2.0 * sqrt(1.0 / sqrt(1.0 - first[m]) - 1.0)
        cosine, sine = unit_circle(second[m])
        first[m] = radius * cosine
        second[m] = radius * sine


@part
def _radius(free: int, u: float) -> float:
    """Length of a t of four degrees in one or three dimensions, at its quantile u."""
    low, high = 0.0, 1.0
    while True:
        y = 0.5 * (low + high)  # the root of x
        if y <= low or y >= high or high - low < 1e-15:
            return 2.0 * y / sqrt((1.0 - y) * (1.0 + y))
        power = y if free == 1 else y * y * y
        if power * (1.0 + (1.0 - y * y) * free / 2) < u:
            low = y
        else:
            high = y
