"""What arms of two states may be, for the empirical prior: a grid, finer where more was seen.

Levels of a probability are sin^2 of equally spaced angles, since the standard error of an estimated
probability is the same everywhere on that scale. Each has the weight of its stretch of [0, 1], so
that the grid stands for the uniform distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.prior import ArmPrior
from restive.problem import gilbert_elliott

__all__ = ["grid_candidates", "grid_levels", "num_levels"]

FloatArray = NDArray[np.float64]

LEAST_LEVELS, MOST_LEVELS = 16, 64
MOST_CELLS = 20_000_000  # arms times candidates
SLOWEST = 0.997  # the second eigenvalue up to which an agent's tables take in an arm


def num_levels(seen_again: float, num_arms: int) -> int:
    """Levels of each probability, for arms that were seen again so often (the median)."""
    wanted = np.pi * np.sqrt(max(seen_again, 1) / 2)  # a spacing of one standard error
    room = np.sqrt(MOST_CELLS / num_arms)
    return int(np.clip(min(wanted, room), LEAST_LEVELS, MOST_LEVELS))


def grid_levels(count: int) -> tuple[FloatArray, FloatArray]:
    """Levels [L] in (0, 1) and the widths [L] of their stretches."""
    edges = np.sin(np.arange(count + 1) * np.pi / (2 * count)) ** 2
    return np.sin((np.arange(count) + 0.5) * np.pi / (2 * count)) ** 2, np.diff(edges)


def grid_candidates(
    rewards: ArrayLike,
    levels: int,
    states: Sequence[str] | None = None,
    passive_rewards: ArrayLike | None = None,
) -> ArmPrior:
    """Return the uniform distribution over chains of two states, on a grid.

    Parameters
    ----------
    rewards
        Reward of the bad and of the good state.
    levels
        Levels of p01 and of p11.
    states
        Names of the two states.
    passive_rewards
        What each pays while the arm is not pulled; nothing by default.
    """
    passive = None if passive_rewards is None else _row(passive_rewards)
    return _grid(_row(rewards), levels, None if states is None else tuple(states), passive)


def _row(values: ArrayLike) -> tuple[float, ...]:
    return tuple(np.asarray(values, dtype=np.float64).tolist())


@lru_cache(maxsize=4)  # a log is fitted twice: the whole and its earlier part
def _grid(
    rewards: tuple[float, ...],
    levels: int,
    states: tuple[str, ...] | None,
    passive_rewards: tuple[float, ...] | None,
) -> ArmPrior:
    good, widths = grid_levels(levels)
    candidates, masses = [], []
    for i, j in product(range(levels), repeat=2):
        if abs(good[j] - good[i]) <= SLOWEST:
            candidates.append(
                gilbert_elliott(good[i], good[j], rewards, passive_rewards, states=states)
            )
            masses.append(widths[i] * widths[j])
    return ArmPrior(candidates, masses)
