"""Widths of intervals against scipy's Student quantiles, and what they cover."""

import numpy as np
import pytest
from scipy import stats

from restive.measure.intervals import student_quantile


@pytest.mark.parametrize("replications", [*range(2, 40), 100, 101, 200, 4000, 10_001])
def test_quantiles_are_those_of_student(replications):
    for intervals in (1, 3, 66, 1000):
        known = stats.t.ppf(1 - 0.05 / 2 / intervals, replications - 1)
        assert student_quantile(replications, intervals) == pytest.approx(known, rel=1e-10)


@pytest.mark.parametrize("replications", [100_000, 10**12])
def test_many_replications_are_as_good_as_normal(replications):
    for intervals in (1, 66):
        normal = stats.norm.ppf(1 - 0.05 / 2 / intervals)
        assert normal < student_quantile(replications, intervals) < 1.0005 * normal


def test_a_single_replication_has_no_interval():
    assert np.isnan(student_quantile(1))


@pytest.mark.parametrize("replications", [2, 3, 5, 20])
def test_intervals_of_few_replications_cover_what_they_say(replications):
    """19 of 20 contain the truth; by chance this fails for one seed in 100,000 (4.4 sd)."""
    samples = np.random.default_rng(7).normal(size=(20_000, replications))
    half_widths = student_quantile(replications) * stats.sem(samples, axis=1)
    covered = (np.abs(samples.mean(axis=1)) <= half_widths).mean()
    assert covered == pytest.approx(0.95, abs=4.4 * np.sqrt(0.95 * 0.05 / 20_000))
