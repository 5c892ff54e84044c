"""The law of a kind whose arms are always seen: Dirichlet rows, from counts of moves alone.

All that was seen are moves from one step to the next, so that an arm's posterior is alpha + counts
and its moments are known without a draw. The law's means and variance are those of the arms'
posteriors under it, on average, as everywhere else (`kind_laws`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.learn.priors.continuous import DirichletArmPrior
from restive.logs.counts import LogCounts
from restive.logs.kind_laws import evenly_spread, matched_parameters
from restive.logs.log import Log

__all__ = ["always_seen_law", "require_moves_told"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_ARMS = 20_000  # from which a law is estimated
CLOSE = 1e-4  # relative change of parameters that ends the search
MOST_ITERATIONS = 2000


def require_moves_told(log: Log, controlled: bool) -> None:
    """Raise where pulls change how arms move and the log does not say who was pulled."""
    if controlled and not log.has_pulled:
        raise ProblemError(
            "arms that are always seen move by one chain when pulled and by another when not, and "
            "the log does not say who was pulled: name its column with --pulled COLUMN (pulled=)"
        )


def always_seen_law(
    counts: LogCounts, arms: IntArray, pays: Mapping[str, Any]
) -> DirichletArmPrior:
    """Return the Dirichlet law that the moves of these arms speak for.

    Parameters
    ----------
    counts, arms
        What followed what in the next step, and which arms are of the kind.
    pays
        Rewards, those of arms that are not pulled, and the names of states.
    """
    size = counts.num_states
    moves = counts.moves(evenly_spread(arms, MOST_ARMS))
    parameters = np.ones((counts.num_rows, size))
    for _ in range(MOST_ITERATIONS if len(moves) else 0):
        alphas = parameters + moves
        totals = alphas.sum(axis=2, keepdims=True)
        first = (alphas / totals).mean(axis=0)
        second = (alphas * (alphas + 1) / (totals * (totals + 1))).mean(axis=0)
        found = matched_parameters(first, second, len(moves))
        change = np.abs(found / parameters - 1).max()
        parameters = found
        if change < CLOSE:
            break
    passive = parameters[size:] if counts.by_mode else None
    return DirichletArmPrior(parameters[:size], passive, seen="always", **pays)
