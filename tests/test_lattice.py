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
from restive.kernels.learn.proposals import fit_particles, write_draws


@numba.njit
def points_of(generators, key, points):
    student_points(generators, key, points, np.empty(points.shape[1]))


@numba.njit
def draws_of(centre, root, generators, key, logits, log_q):
    write_draws(centre, root, generators, key, np.empty_like(logits), logits, log_q)


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
    count = 128
    generators = lattice_generators(count, dimensions_of(d), d == 2)
    x, log_q = np.empty((d, count)), np.empty(count)
    root, centre = np.tril(rng.random((d, d)) + np.eye(d)), rng.normal(size=d)
    draws_of(centre, root, generators, np.uint64(1), x, log_q)
    np.testing.assert_allclose(log_q, log_t(x, centre, root, degrees_of(d)), rtol=1e-10)


@pytest.mark.parametrize("d", [1, 2, 3, 5])
def test_what_fits_particles_has_their_mean_and_covariance(d):
    rng = np.random.default_rng(d)
    old, weights = rng.normal(size=(d, 128)), rng.random(128)
    centre, root = fit_particles(old, weights)
    np.testing.assert_allclose(centre, np.average(old, axis=1, weights=weights))
    np.testing.assert_allclose(root @ root.T, np.atleast_2d(np.cov(old, aweights=weights, ddof=0)))
