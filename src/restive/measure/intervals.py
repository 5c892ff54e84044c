"""How wide a 95% interval is: the one place that says so.

Intervals are those of Student's t: mean ± quantile times standard error, with one degree of freedom
less than there are replications. For many replications the quantile is the normal 1.96; for few it
is larger, since the spread is then little known itself.
"""

from __future__ import annotations

from functools import lru_cache
from math import atan, cos, inf, nan, pi, sin, sqrt

import numpy as np
from numpy.typing import NDArray

__all__ = ["paired_interval", "student_quantile"]

CONFIDENCE = 0.95
MOST_DEGREES = 10_000  # beyond, the quantile changes by less than 0.03%


@lru_cache(maxsize=1024)
def student_quantile(replications: int, intervals: int = 1) -> float:
    """Return the half-width of a 95% interval in standard errors; nan for a single replication.

    Parameters
    ----------
    replications
        Over which the mean and its standard error were taken.
    intervals
        How many are to be right at once with 95% (Bonferroni).
    """
    if replications < 2:
        return nan
    degrees = min(replications - 1, MOST_DEGREES)
    wanted = 1 - (1 - CONFIDENCE) / intervals
    low, high = 0.0, 1.0
    while _within(high, degrees) < wanted:
        low, high = high, 2 * high
    middle, last = (low + high) / 2, inf
    while middle != last:  # halves until there is no number in between
        low, high = (middle, high) if _within(middle, degrees) < wanted else (low, middle)
        middle, last = (low + high) / 2, middle
    return middle


def paired_interval(
    first: NDArray[np.float64], second: NDArray[np.float64], intervals: int = 1
) -> tuple[float, float]:
    """Mean of second - first, replication by replication, and the half-width of its 95% interval.

    Parameters
    ----------
    first, second
        A number [R] for each replication of both; the same luck in each.
    intervals
        How many are to be right at once with 95% (Bonferroni).
    """
    gaps = second - first
    spread = float(gaps.std(ddof=1)) if len(gaps) > 1 else nan
    half_width = student_quantile(len(gaps), intervals) * spread / sqrt(len(gaps))
    return float(np.mean(gaps)), half_width


def _within(t: float, degrees: int) -> float:
    """Return the probability of [-t, t] under Student's t (Abramowitz and Stegun, 26.7.3-4)."""
    angle = atan(t / sqrt(degrees))
    odd = degrees % 2
    k = np.arange(1, (degrees - odd) // 2)
    ratios = (2 * k / (2 * k + 1) if odd else (2 * k - 1) / (2 * k)) * cos(angle) ** 2
    series = 1 + float(np.cumprod(ratios).sum())
    if not odd:
        return sin(angle) * series
    rest = sin(angle) * cos(angle) * series if degrees > 1 else 0.0
    return 2 / pi * (angle + rest)
