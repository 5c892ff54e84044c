"""Operations on eight numbers: what is compiled does what the Python beside it says."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.kernels.jit import vectors
from restive.kernels.jit.vectors import LANES

ROWS = 10  # of what is written
FEW = st.sampled_from([-np.inf, -1.0, 0.0, 1.0])  # so that some are equal
NUMBERS = st.lists(
    st.one_of(st.floats(allow_nan=False, width=64), FEW), min_size=3 * LANES, max_size=3 * LANES
).map(np.array)


@numba.njit
def compiled(values, at, x, out):
    a, b = vectors.load(values, at), vectors.load(values, at + LANES)
    vectors.store(out[0], 1, vectors.plus(a, b))
    vectors.store(out[1], 1, vectors.times(a, b))
    vectors.store(out[2], 1, vectors.sums_before(a))
    out[3, 0] = vectors.last(b)
    vectors.store(out[4], 1, vectors.over(a, b))
    vectors.store(out[5], 1, vectors.lesser(a, b))
    vectors.store(out[6], 1, vectors.where_equal(a, x, b, a))
    vectors.store(out[7], 1, vectors.minus(a, b))
    vectors.store(out[8], 1, vectors.where_below(a, x, b, a))
    vectors.store(out[9], 1, vectors.everywhere(x))
    return vectors.not_above(a, x)


def in_python(values, at, x, out):
    with np.errstate(all="ignore"):
        return compiled.py_func(values, at, x, out)


@settings(max_examples=200, deadline=None)
@given(values=NUMBERS, at=st.integers(0, LANES), x=st.one_of(st.floats(allow_nan=False), FEW))
def test_compiled_is_what_the_python_says_to_the_bit(values, at, x):
    ours, expected = np.full((ROWS, LANES + 2), 7.0), np.full((ROWS, LANES + 2), 7.0)
    assert compiled(values, at, x, ours) == in_python(values, at, x, expected)
    np.testing.assert_array_equal(ours.view(np.int64), expected.view(np.int64))


def test_numbers_of_one_size_are_added_in_the_same_order():
    """Rounding shows it, which it seldom does in what Hypothesis draws."""
    for values in np.random.default_rng(1).normal(size=(50, 3 * LANES)):
        ours, expected = np.zeros((ROWS, LANES + 2)), np.zeros((ROWS, LANES + 2))
        assert compiled(values, 3, 0.1, ours) == in_python(values, 3, 0.1, expected)
        np.testing.assert_array_equal(ours, expected)


def test_the_python_is_right():
    """Otherwise both could be wrong alike; nothing beside the eight numbers is written."""
    values, out = np.arange(1.0, 18.0), np.full((ROWS, LANES + 2), 7.0)
    assert in_python(values, 1, 4.0, out) == 3  # 2, 3 and 4 of 2, ..., 9
    a, b = values[1:9], values[9:17]
    np.testing.assert_array_equal(out[0, 1:-1], a + b)
    np.testing.assert_array_equal(out[1, 1:-1], a * b)
    np.testing.assert_array_equal(out[2, 1:-1], [sum(a[:i]) for i in range(LANES)])
    assert out[3, 0] == 17
    np.testing.assert_array_equal(out[4, 1:-1], a / b)
    np.testing.assert_array_equal(out[5, 1:-1], a)
    np.testing.assert_array_equal(out[6, 1:-1], [2, 3, 12, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(out[7, 1:-1], a - b)
    np.testing.assert_array_equal(out[8, 1:-1], [10, 11, 4, 5, 6, 7, 8, 9])
    np.testing.assert_array_equal(out[9, 1:-1], [4] * LANES)
    assert (out[[0, 1, 2, 4, 5, 6, 7, 8, 9]][:, [0, -1]] == 7).all()


@pytest.mark.parametrize("x", [np.inf, -np.inf, np.nan])
def test_counts_with_what_is_not_finite(x):
    values = np.array([-np.inf, -1, 0, np.nan, 1, 2, np.inf, np.nan] * 2)
    out = np.zeros((ROWS, LANES + 2))
    expected = int(np.count_nonzero(values[:LANES] <= x))
    assert compiled(values, 0, x, out) == in_python(values, 0, x, out) == expected
