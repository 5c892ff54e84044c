"""Choosing the N largest of K: the arms of a sort, whatever the values and their order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restive.kernels.jit.compiler import hot_kernel
from restive.kernels.loop.choosing import top_arms, top_of_each
from restive.plan.policies.base import highest

COUNTS = (1, 2, 3, 4, 5, 8, 31, 33, 100, 141, 200, 1000, 1999, 2000)
HALF = np.concatenate([np.arange(1000), np.arange(1000)[::-1]])
ORDERS = {
    "ascending": np.arange(2000),
    "descending": np.arange(2000)[::-1],
    "all equal": np.zeros(2000),
    "organ pipe": HALF,
    "valley": -HALF,
    "two values": np.arange(2000) % 2,
    "saw": np.arange(2000) * 7919 % 61,
    "one ahead": np.eye(1, 2000, 1999)[0],
    "drawn": np.random.default_rng(0).permutation(2000),
}
# powers of two halve no interval of numbers evenly, but one of their bits does
FLOATS = ORDERS | {
    "powers": 2.0 ** (ORDERS["drawn"] - 1000.0),
    "signs": (-1.0) ** np.arange(2000) * 2.0 ** (ORDERS["drawn"] - 1000.0),
    "zeros": np.where(np.arange(2000) % 3 == 1, -0.0, 0.0),
    "without bound": np.resize([-np.inf, 1.0, np.inf, 5e-324, -5e-324], 2000),
}
CASES = [(name, np.float64) for name in FLOATS] + [
    (name, kind) for name in ORDERS for kind in (np.int32, np.int64)
]


@hot_kernel
def chosen_within(values, chosen, count):
    top_arms(values, chosen, count)


def by_sorting(values, count):
    """Compare arm by arm: by value, then by lowest arm."""
    return sorted(sorted(range(len(values)), key=lambda k: (-values[k], k))[:count])


def arms_chosen(values, count):
    chosen = np.full(count + 1, -7)
    chosen_within(values, chosen, count)
    assert chosen[-1] == -7  # nothing is written behind them
    return chosen[:-1].tolist()


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_no_order_of_the_values_misleads(name, kind):
    values = np.ascontiguousarray(FLOATS[name], dtype=kind)
    for count in COUNTS:
        for few in (values, values[: 2 * count], values[: count + 1], values[:count]):
            assert arms_chosen(few, min(count, len(few))) == by_sorting(few.tolist(), count)


def rows(elements, kind):
    """Values of some arms, of which many are equal, and how many arms to choose."""
    lists = st.lists(elements, min_size=1, max_size=400)
    arrays = st.one_of(lists, st.lists(elements, min_size=1, max_size=9)).map(
        lambda row: np.array(row, dtype=kind)
    )
    return arrays.flatmap(lambda row: st.tuples(st.just(row), st.integers(0, len(row))))


WHOLE = st.integers(-(2**31), 2**31 - 1)
LONG = st.integers(-(2**63) + 1, 2**63 - 1)
REAL = st.floats(allow_nan=False)
SOME = st.integers(-2, 2)


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        rows(st.one_of(WHOLE, SOME), np.int32),
        rows(st.one_of(LONG, SOME), np.int64),
        rows(st.one_of(REAL, SOME.map(float)), np.float64),
    )
)
def test_the_arms_are_those_of_a_sort(case):
    values, count = case
    assert arms_chosen(values, count) == by_sorting(values.tolist(), count)


@pytest.mark.parametrize(("num_arms", "count"), [(100_000, 10_000), (1_000_000, 100_000)])
def test_a_tenth_of_very_many(num_arms, count):
    """An insertion sort would take minutes here; ranks are drawn so that many are equal."""
    ranks = np.random.default_rng(1).integers(0, 1000, num_arms)
    best = np.argsort(-ranks, kind="stable")[:count]
    for kind in (np.int32, np.float64):
        assert arms_chosen(ranks.astype(kind), count) == np.sort(best).tolist()


def test_rows_are_chosen_from_one_by_one():
    values = np.random.default_rng(2).integers(0, 4, (50, 7))
    assert highest(values, 3).tolist() == [by_sorting(row.tolist(), 3) for row in values]
    sides = np.asfortranarray(values)
    assert highest(sides, 3).tolist() == highest(values, 3).tolist()


def test_a_row_that_holds_no_number_is_named():
    values, chosen = np.ones((4, 3)), np.zeros((4, 2), dtype=np.int64)
    assert top_of_each(values, chosen) == -1
    values[2, 1] = np.nan
    assert top_of_each(values, chosen) == 2
