"""Points that fill a cube evenly, and the laws that they are mapped to."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy import stats

from restive.kernels.learn.lattice import (
    degrees_of,
    dimensions_of,
    lattice_generators,
    student_points,
)
from restive.kernels.learn.proposals import (
    FittedParticles,
    draw_around,
    draw_at_particles,
    draw_mixture,
    fit_particles,
)


@numba.njit
def points_of(generators, key, points):
    student_points(generators, key, points, np.empty(points.shape[1]))


def lattice(count, dimensions):
    generators = lattice_generators(count, dimensions, False)
    return (np.arange(count)[:, None] * generators % count + 0.5) / count


@pytest.mark.parametrize("count", [16, 64, 100, 128, 256, 4096])
@pytest.mark.parametrize("dimensions", [1, 2, 3, 13])
def test_every_coordinate_is_even_and_centred(count, dimensions):
    points = lattice(count, dimensions)
    middles = (np.arange(count) + 0.5) / count
    for coordinate in points.T:
        np.testing.assert_array_equal(np.sort(coordinate), middles)


def test_products_are_integrated_far_better_than_by_chance():
    """The mean of x y over the square is 1/4; chance would miss it by .02 with 128 points."""
    points = lattice(128, 2)
    assert abs((points[:, 0] * points[:, 1]).mean() - 0.25) < 5e-3
    assert (
        stats.qmc.discrepancy(points)
        < stats.qmc.discrepancy(np.random.default_rng(0).random((128, 2))) / 10
    )


@pytest.mark.parametrize("free", [1, 2, 3, 5])
def test_points_are_of_students_t(free):
    """Coordinates and lengths of 64 shifted lattices, more even than chance: level below 1e-4."""
    count = 256
    generators = lattice_generators(count, dimensions_of(free), free == 2)
    drawn = np.empty((64, free, count))
    for shift in range(64):
        points_of(generators, np.uint64(77 + shift), drawn[shift])
    law = stats.t(degrees_of(free))
    squares = (drawn**2).sum(axis=1).ravel() / free
    assert stats.kstest(squares, stats.f(free, degrees_of(free)).cdf).pvalue > 1e-4
    for j in range(free):
        assert stats.kstest(drawn[:, j].ravel(), law.cdf).pvalue > 1e-4


def log_t(x, centre, root, degrees):
    d = len(centre)
    z = np.linalg.solve(root, x - centre[:, None])
    return -(degrees + d) / 2 * np.log1p((z**2).sum(axis=0) / degrees) - np.log(
        np.abs(np.linalg.det(root))
    )


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_densities_are_those_of_what_is_drawn(d):
    rng = np.random.default_rng(d)
    count, degrees = 128, degrees_of(d)
    generators = lattice_generators(count, dimensions_of(d), d == 2)
    x, log_q = np.empty((d, count)), np.empty(count)
    roots = np.array([np.tril(rng.random((d, d)) + np.eye(d)) for _ in range(3)])
    centres = rng.normal(size=(3, d))
    draw_around(centres[0], roots[0], generators, np.uint64(1), x, log_q)
    np.testing.assert_allclose(log_q, log_t(x, centres[0], roots[0], degrees), rtol=1e-10)

    shares = np.array([0.5, 0.3, 0.2])
    chosen = draw_mixture(centres, roots, shares, generators, np.uint64(2), x, log_q)
    assert np.abs(np.bincount(chosen) - count * shares).max() <= 1
    parts = [
        np.log(p) + log_t(x, c, r, degrees) for p, c, r in zip(shares, centres, roots, strict=True)
    ]
    np.testing.assert_allclose(log_q, np.logaddexp.reduce(parts), rtol=1e-10)

    if d <= 3:
        old, weights = rng.normal(size=(d, count)), rng.random(count)
        centre, root = fit_particles(old, weights)
        np.testing.assert_allclose(
            root @ root.T, np.atleast_2d(np.cov(old, aweights=weights, ddof=0))
        )
        fitted = FittedParticles(old, weights, centre, root)
        draw_at_particles(fitted, 0.3, generators, np.uint64(3), x, log_q)
        parts = [
            np.log(w / weights.sum()) + log_t(x, point, 0.3 * root, degrees)
            for w, point in zip(weights, old.T, strict=True)
        ]
        np.testing.assert_allclose(log_q, np.logaddexp.reduce(parts), rtol=1e-10)
