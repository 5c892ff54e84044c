"""Numbers as a reader wants them."""

from __future__ import annotations

from math import floor, log10

from restive.measure.intervals import student_quantile
from restive.studies.summary import Curve

__all__ = ["at_end", "with_error", "with_half_width"]

MOST_PLACES = 5  # decimals


def at_end(curve: Curve | None) -> str:
    """Return the last point of a curve with its 95% half-width, "-" where there is no curve."""
    if curve is None:
        return "-"
    return with_error(curve.mean[-1], curve.stderr[-1], curve.replications)


def with_error(value: float, stderr: float, replications: int) -> str:
    """Return a mean over replications with its 95% half-width, to two digits of the latter.

    An exact number (stderr 0) has six decimals; one whose error is not known (nan) has no error.
    """
    if stderr == 0:
        return f"{value:.6f}"
    return with_half_width(value, student_quantile(replications) * stderr)


def with_half_width(value: float, half: float) -> str:
    """Return a number with the half-width of its interval, both to two digits of the latter."""
    if not half > 0:
        return f"{value:.4g}"
    places = min(MOST_PLACES, max(0, 1 - floor(log10(half))))
    shown = round(value, places) + 0.0  # not -0
    return f"{shown:,.{places}f} ± {half:,.{places}f}"
