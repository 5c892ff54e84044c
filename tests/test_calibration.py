"""Simulation-based calibration: the truth's rank among particles is uniform, whatever was seen.

The truth is drawn from the prior, sightings from the truth. With 20 bins each chi-square test has
level 1e-4; 20 of them make at most 0.2% false alarms.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import restive as rs
from particle_cases import Follower, sightings, some_ages
from restive.kernels.random import TRUTH, stream_key

DRAWS = 1_000
TIMES = (5, 20, 100, 500, 2_000)
BINS = 20
LEVEL = 1e-4
QUANTITIES = {
    "p01": lambda p01, p11: p01,
    "p11": lambda p01, p11: p11,
    "rho": lambda p01, p11: p11 - p01,
    "omega": lambda p01, p11: p01 / (1 - p11 + p01),
}


def ranks_of_truths(prior, seed):
    """Ranks [times, quantities, draws]."""
    ranks = np.empty((len(TIMES), len(QUANTITIES), DRAWS))
    for draw in range(DRAWS):
        rng = np.random.default_rng([seed, draw])
        truth = prior.draw(np.uint64(stream_key(np.uint64(seed), draw, TRUTH)))
        seen = sightings(truth, some_ages(TIMES[-1], rng), rng)
        follower, before = Follower(prior, 1000 * seed + draw), 0
        for i, time in enumerate(TIMES):
            follower.see(tuple(column[before:time] for column in seen))
            before = time
            for j, quantity in enumerate(QUANTITIES.values()):
                values = quantity(follower.p01, follower.p11)
                true = quantity(truth.active[0, 1], truth.active[1, 1])
                ranks[i, j, draw] = follower.mean(values < true)
    return ranks


def test_ranks_are_uniform():
    ranks = ranks_of_truths(rs.beta_prior(1).arms[0], seed=1)
    for i, time in enumerate(TIMES):
        for j, name in enumerate(QUANTITIES):
            counts, _ = np.histogram(ranks[i, j], bins=BINS, range=(0, 1 + 1e-9))
            assert stats.chisquare(counts).pvalue > LEVEL, (time, name, counts)
            assert stats.kstest(ranks[i, j], "uniform").pvalue > LEVEL, (time, name)


@pytest.mark.parametrize("alphas", [[[1, 1], [1, 1]], [[3, 2], [1, 4]], [[0.5, 0.5], [0.5, 0.5]]])
def test_truths_are_drawn_from_the_prior(alphas):
    """Four tests of level 1e-4 on 1,000 exact draws."""
    prior = rs.DirichletArmPrior(alphas, rewards=[0, 1])
    drawn = np.array(
        [
            prior.draw(np.uint64(stream_key(np.uint64(5), r, TRUTH))).active[:, 1]
            for r in range(1_000)
        ]
    )
    for column, (b, a) in zip(drawn.T, alphas, strict=True):
        assert stats.kstest(column, stats.beta(a, b).cdf).pvalue > LEVEL
    assert abs(stats.spearmanr(*drawn.T).statistic) < 4 / np.sqrt(1_000)
    again = prior.draw(np.uint64(stream_key(np.uint64(5), 3, TRUTH)))
    np.testing.assert_array_equal(again.active[:, 1], drawn[3])
