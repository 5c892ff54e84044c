"""Functions made of arithmetic alone agree with the libraries' to a few units in the last place."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy import special, stats

from restive.kernels.elementary import (
    exponential,
    exponentials,
    logarithm,
    logarithms,
    sines,
    unit_circle,
)
from restive.kernels.learn.quantiles import (
    beta_log_odds,
    chi_square_quantile,
    log_gamma,
    normal_quantile,
    trigamma,
)

UNIT = 2.0**-52
RNG = np.random.default_rng(1)
CHANCES = np.concatenate([RNG.random(2000), 10.0 ** -RNG.uniform(0, 12, 500)])


@numba.njit(error_model="numpy")  # not kept on disk, where a change in what it calls is not seen
def apply(function, xs, out):
    for i in range(len(xs)):
        out[i] = function(xs[i])


def applied(function, xs):
    out = np.empty(len(xs))
    apply(function, xs, out)
    return out


def test_logarithm():
    xs = 10.0 ** RNG.uniform(-307, 308, 100_000)
    near_one = 1 + RNG.uniform(-1e-3, 1e-3, 10_000)
    for values in (xs, near_one):
        np.testing.assert_allclose(applied(logarithm, values), np.log(values), rtol=3 * UNIT)
    edges = applied(logarithm, np.array([1.0, 0.0, 1e-310]))
    assert edges.tolist() == [0.0, -np.inf, -np.inf]


def test_exponential():
    xs = RNG.uniform(-700, 700, 100_000)
    np.testing.assert_allclose(applied(exponential, xs), np.exp(xs), rtol=3 * UNIT)
    assert applied(exponential, np.array([0.0, -709.0, -np.inf])).tolist() == [1.0, 0.0, 0.0]


def test_arrays_of_any_shape_and_order():
    values = RNG.random((4, 5, 6))
    for function, one in ((exponentials, exponential), (logarithms, logarithm)):
        wanted = applied(one, values.ravel()).reshape(values.shape)
        assert (function(values) == wanted).all()
        assert (function(values.T) == wanted.T).all()
        assert (function(values[:, ::2]) == wanted[:, ::2]).all()
    assert logarithms(8).shape == ()
    assert logarithms([1, 0]).tolist() == [0.0, -np.inf]
    np.testing.assert_allclose(sines(values), np.sin(2 * np.pi * values), atol=1e-15)


def test_circle():
    @numba.njit(error_model="numpy")
    def both(us, out):
        for i in range(len(us)):
            out[0, i], out[1, i] = unit_circle(us[i])

    us = np.concatenate([RNG.random(10_000), np.arange(9) / 8])
    out = np.empty((2, len(us)))
    both(us, out)
    np.testing.assert_allclose(out[0], np.cos(2 * np.pi * us), atol=1e-15)
    np.testing.assert_allclose(out[1], np.sin(2 * np.pi * us), atol=1e-15)


def test_gamma_functions():
    for x in (0.05, 0.5, 1.0, 2.5, 9.99, 10.0, 123.0, 1e6):
        assert log_gamma(x) == pytest.approx(special.gammaln(x), rel=1e-14, abs=5e-15)
        assert trigamma(x) == pytest.approx(special.polygamma(1, x), rel=1e-12)


def test_normal_quantile():
    found = applied(normal_quantile, CHANCES)
    np.testing.assert_allclose(found, stats.norm.ppf(CHANCES), rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("degrees", [2, 4, 10])
def test_chi_square_quantile(degrees):
    @numba.njit(error_model="numpy")
    def quantile(u):
        return chi_square_quantile(degrees, u)

    us = CHANCES[CHANCES > 1e-6]
    np.testing.assert_allclose(applied(quantile, us), stats.chi2.ppf(us, degrees), rtol=1e-7)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (1, 1),
        (0.5, 0.5),
        (0.05, 0.05),
        (0.05, 3),
        (2, 3),
        (4, 1),
        (300, 2),
        (1e4, 1e3),
        (1e6, 0.05),
    ],
)
def test_beta_quantile(a, b):
    """The chance on the nearer side of the quantile is what was asked for."""
    us = CHANCES[:: 1 if a < 1e3 else 25]
    odds = np.array([beta_log_odds(float(a), float(b), u) for u in us])
    sane = np.abs(odds) < 700
    below = special.betainc(a, b, special.expit(odds))
    above = special.betainc(b, a, special.expit(-odds))
    wanted, found = np.where(us < 0.5, [us, below], [1 - us, above])
    np.testing.assert_allclose(found[sane], wanted[sane], rtol=5e-6 if a > 1e5 else 1e-10)
    assert sane.mean() > 0.9
