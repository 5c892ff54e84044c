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
from restive.logs.kind_words import GAIN, KindShape
from restive.logs.log import Log

__all__ = ["always_seen_law", "always_seen_shape", "require_moves_told"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_ARMS = 20_000  # from which a law is estimated
CLOSE = 1e-4  # relative change of parameters that ends the search
MOST_ITERATIONS = 2000
WIDTH = 1.645  # standard errors, of a 90% interval


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


def always_seen_shape(counts: LogCounts, arms: IntArray, rewards: FloatArray) -> KindShape:
    """Return what a pull adds to the next step, from moves of the same arm from the same state.

    Of each arm and state, what followed a pull is compared with what followed none; the mean has
    the weights of Mantel and Haenszel, and the 90% interval comes from the variance that their
    difference has if whichever of these moves might have been the pulled ones. No law is assumed.
    """
    size = counts.num_states
    moves = counts.moves(arms)
    scale = (rewards - rewards.min()) / max(float(np.ptp(rewards)), 1e-300)
    number = moves.sum(axis=2)
    pulled, left = number[:, :size], number[:, size:]
    both = moves[:, :size] + moves[:, size:]  # [arms, S, S]
    total = pulled + left
    with np.errstate(divide="ignore", invalid="ignore"):
        middle = (both * scale).sum(axis=2) / total
        squares = (both * (scale - middle[:, :, None]) ** 2).sum(axis=2)
        variance = pulled * left / (total * (total - 1)) * squares
        weight = pulled * left / total
        above = (moves[:, :size] * scale).sum(axis=2) - pulled * middle
    there = weight > 0
    whole = float(weight[there].sum())
    mean, half = 0.0, 1.0
    if whole > 0:
        mean = float(above[there].sum()) / whole
        half = WIDTH * float(np.sqrt(variance[there].sum())) / whole
    ends = np.clip([[mean - half, mean + half]], -1.0, 1.0)
    return KindShape((GAIN,), np.array([mean]), ends, 0, int((number.sum(axis=1) > 0).sum()))
