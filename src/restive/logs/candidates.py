"""What arms may be, for the empirical prior: a grid of chains, finer where more was seen.

Levels of a probability are sin^2 of equally spaced angles, since the standard error of an estimated
probability is the same everywhere on that scale. Each has the weight of its stretch of [0, 1], so
that the grid stands for the uniform distribution.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import ProblemError
from restive.prior import ArmPrior
from restive.problem import Arm

__all__ = ["grid_candidates", "grid_levels", "num_levels"]

FloatArray = NDArray[np.float64]

LEAST_LEVELS, MOST_LEVELS = 16, 64
MOST_CELLS = 20_000_000  # arms times candidates
SLOWEST = 0.997  # the second eigenvalue up to which an agent's tables take in an arm
CONTROLLED_LEVELS = 7
THIRDS = 4  # levels of a row of three probabilities are quarters


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
    num_states: int, rewards: ArrayLike, levels: int, controlled: bool = False
) -> ArmPrior:
    """Return the uniform distribution over arms of this many states, on a grid.

    Parameters
    ----------
    num_states
        Two, or three where pulling changes nothing.
    rewards
        Reward [S] of each state.
    levels
        Levels of each probability (two states, pulling changes nothing).
    controlled
        Whether an arm that is pulled moves by another chain than one that is not.
    """
    if num_states == 2:
        rows, weights = _two_state_rows(CONTROLLED_LEVELS if controlled else levels)
    elif num_states == 3 and not controlled:
        rows, weights = _three_state_rows()
    else:
        what = "in which pulling changes how arms move" if controlled else ""
        raise ProblemError(
            f"a log of {num_states} states {what} needs a prior of your own: the grid of the "
            "empirical one would be too large. Pass prior = a DirichletArmPrior or an ArmPrior"
        )
    parts = num_states * (2 if controlled else 1)
    candidates, masses = [], []
    for chosen in product(range(len(rows)), repeat=parts):
        matrix = rows[list(chosen)]
        active, passive = matrix[:num_states], matrix[-num_states:]
        if _mixes(passive):
            candidates.append(Arm(active, passive if controlled else None, rewards))
            masses.append(np.prod(weights[list(chosen)]))
    return ArmPrior(candidates, masses)


def _two_state_rows(levels: int) -> tuple[FloatArray, FloatArray]:
    good, widths = grid_levels(levels)
    return np.stack([1 - good, good], axis=1), widths


def _three_state_rows() -> tuple[FloatArray, FloatArray]:
    """Rows of three probabilities on a triangular lattice, away from its border."""
    found = [(i, j, THIRDS - i - j) for i in range(THIRDS + 1) for j in range(THIRDS + 1 - i)]
    rows = (np.array(found, dtype=np.float64) + 1 / 3) / (THIRDS + 1)
    return rows, np.full(len(rows), 1 / len(rows))


def _mixes(matrix: FloatArray) -> bool:
    if len(matrix) == 2:
        return bool(abs(matrix[1, 1] - matrix[0, 1]) <= SLOWEST)
    return True
