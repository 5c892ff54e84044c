"""Drawing a candidate is the inverse of the posterior's distribution function, rounding and all."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numba
import numpy as np
import pytest
from scipy import stats

import restive as rs
from learning_cases import posed
from restive.kernels.jit.handles import Handle, opener
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.draws import draw_slot
from restive.kernels.learn.weights import add_up, take_in
from restive.kernels.loop.tables import Posterior
from restive.learn.learner_state import LearnerState
from restive.learn.slots import home_size, lane_places

COUNTS = [1, 2, 7, 8, 9, 31, 32, 33, 63, 64, 65, 81, 100, 300]
LARGEST = 1 - 2.0**-53  # of the random numbers

_opened = opener(Posterior)


@numba.njit  # not kept on disk, where a change in what it calls would not be seen
def draw_many(where, group, us, drawn):
    posterior = _opened(where)
    add_up(posterior, group)
    for i in range(len(us)):
        drawn[i] = draw_slot(posterior, group, us[i])


@numba.njit
def see_good(where, arm):
    take_in(_opened(where), arm, 1, 1, 1, True)


@cache
def two_groups(count):
    """Return a learner on one arm with 50 candidates and one with as many as are asked for."""
    arms = rs.ArmPrior([rs.gilbert_elliott(p, 0.5) for p in np.linspace(0.2, 0.8, count)])
    other = rs.ArmPrior([rs.gilbert_elliott(0.3, p) for p in np.linspace(0.1, 0.9, 50)])
    return posed(rs.IndependentPrior([other, arms]), 1, "myopic", 10)


class Group:
    """The second of two groups of candidates, with weights set from outside."""

    def __init__(self, weights):
        posterior = LearnerState(*two_groups(len(weights))).actor.posterior
        self.slots, self.weights = posterior.slots, posterior.weights
        self.handle = Handle(posterior)
        begin = int(self.weights.homes[1])
        self.rows = int(self.slots.row_counts[1])
        self.home = self.weights.numbers[begin : begin + home_size(self.rows)]
        self.home[: self.rows * LANES] = 0.0
        self.home[lane_places(len(weights))] = weights

    def draw(self, us):
        drawn = np.empty(len(us), dtype=np.int64)
        draw_many(self.handle.where, 1, us, drawn)
        return drawn

    @property
    def total(self):
        self.draw(np.zeros(0))
        return float(self.home[-(self.rows + 1) * LANES])


def some_weights(count, rng, kind):
    if kind == "even":
        return np.full(count, 1 / 3)
    weights = rng.dirichlet(np.full(count, 0.3))
    if kind == "ruled out":
        weights[rng.random(count) < 0.6] = 0.0
        weights[rng.integers(count)] = 0.25
    if kind == "spread":
        weights = 2.0 ** rng.integers(-600, 0, count).astype(float)
    return weights


@pytest.mark.parametrize("kind", ["even", "uneven", "ruled out", "spread"])
@pytest.mark.parametrize("count", COUNTS)
def test_draws_invert_the_distribution_function(count, kind):
    """Away from the ends of shares by more than rounding, exactly; near them, a neighbour."""
    rng = np.random.default_rng([count, len(kind)])
    weights = some_weights(count, rng, kind)
    group = Group(weights)
    sums = np.cumsum([Fraction(w) for w in weights.tolist()])
    assert group.total == pytest.approx(float(sums[-1]), rel=1e-13)
    ends = np.array([float(s / sums[-1]) for s in sums])
    near = np.concatenate([np.nextafter(ends, 0), ends, np.nextafter(ends, 2)])
    us = np.concatenate([rng.random(2000), near, [0.0, LARGEST]]).clip(0, LARGEST)
    us.sort()
    drawn = group.draw(us)
    assert (weights[drawn] > 0).all()
    assert (np.diff(drawn) >= 0).all()
    lower, upper = (ends[drawn] - weights[drawn] / float(sums[-1])), ends[drawn]
    assert (us >= lower - 1e-13).all()
    assert (us <= upper + 1e-13).all()


@pytest.mark.parametrize("count", COUNTS)
def test_the_largest_random_number_takes_the_last_that_is_possible(count):
    """Times a total it rounds to less than that, whatever the total's digits."""
    rng = np.random.default_rng(count)
    for total in (1.0, np.nextafter(1, 2), np.nextafter(2, 0), 3.0, 2.0**-900, *rng.random(20)):
        assert LARGEST * total < total
        weights = np.zeros(count)
        weights[count // 2] = total
        assert Group(weights).draw(np.array([0.0, 0.5, LARGEST])).tolist() == [count // 2] * 3


def test_where_all_are_ruled_out_the_weights_say_so():
    group = Group(np.ones(20))
    see_good(group.handle.where, 1)
    assert group.weights.status[0].impossible == 0
    group.slots.likelihoods[:] = 0.0
    see_good(group.handle.where, 1)
    assert group.weights.status[0].impossible == 2
    two_groups.cache_clear()  # its table of likelihoods is spoilt
    assert Group(np.zeros(20)).draw(np.array([0.0, LARGEST])).tolist() == [0, 0]


def test_shares_are_hit_as_often_as_they_should_be():
    """A chi-square test of 100,000 draws, which fails once in a million; the seed is fixed."""
    rng = np.random.default_rng(5)
    weights = some_weights(81, rng, "uneven") + 0.002
    drawn = Group(weights).draw(rng.random(100_000))
    expected = weights / weights.sum() * 100_000
    found = np.bincount(drawn, minlength=81)
    assert stats.chisquare(found, expected).pvalue > 1e-6
