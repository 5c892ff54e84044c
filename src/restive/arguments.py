"""Arguments that many functions take, checked in one place."""

from __future__ import annotations

from typing import Any

import numpy as np

from restive.errors import ProblemError

__all__ = ["checked_count", "checked_elapsed", "checked_seed"]


def checked_count(value: Any, what: str, least: int = 1) -> int:
    """Return a whole number of at least `least`, or raise."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ProblemError(f"{what} must be a whole number, got {value!r:.60}")
    if value < least:
        raise ProblemError(f"{what} must be at least {least}, got {value}")
    return int(value)


def checked_elapsed(max_elapsed: Any) -> int:
    """Return a number of ages."""
    return checked_count(max_elapsed, "max_elapsed")


def checked_seed(seed: Any) -> int:
    """Return a seed in [0, 2^64), or raise."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**64:
        raise ProblemError(f"seed must be a whole number from 0 to 2^64 - 1, got {seed!r:.60}")
    return int(seed)
