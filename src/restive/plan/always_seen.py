"""One arm that is always seen, and a subsidy for leaving it alone.

What `subsidy` has for arms that are seen when pulled; the method is described in
`kernels.plan.always_seen`. Tables have one column: the state is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.errors import AssumptionError, RestiveError
from restive.kernels.plan.always_seen import (
    AMBIGUOUS,
    FULL,
    INDEXABLE,
    LOWER,
    MULTICHAIN,
    NOT_FINITE,
    NUM_LINES,
    NUM_RESULTS,
    OWN,
    SINGULAR,
    TURNED_BACK,
    UNIT,
    UPPER,
    VALUES,
    solve_many_seen,
    solve_seen,
    work_rows,
)
from restive.problem.arm import Arm
from restive.problem.chains import PASSIVE, require_one_class
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = ["SeenIndex", "SeenPath", "seen_index", "seen_indices", "seen_path"]

FloatArray = NDArray[np.float64]

SWITCHES_PER_STATE = 20  # an indexable arm has one for each state


@dataclass(frozen=True, eq=False)
class SeenIndex:
    """Whittle's index of an arm that is always seen, and the verdict on indexability."""

    index: FloatArray  # [S, 1]
    upper: FloatArray  # [S, 1]
    indexable: bool


@dataclass(frozen=True, eq=False)
class SeenPath(SeenIndex):
    """The subsidy problem of an arm that is always seen, for every subsidy."""

    own_reward: float
    unit: float
    pieces: FloatArray  # [pieces, 3 + 2 S], see kernels.plan.always_seen; the first has no top

    def breakpoints(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gain as lines: tops of the pieces (falling), values at zero and slopes."""
        tops, intercepts, slopes = self.pieces[1:, :VALUES].T
        return self.unit * tops, self.unit * intercepts, slopes.copy()

    def advantage(self, subsidy: float) -> FloatArray:
        """Worth [S, 1] of pulling now over not pulling now; at a breakpoint, that from above."""
        price = subsidy / self.unit
        row = self.pieces[int((self.pieces[1:, 0] > price).sum())]
        intercepts, slopes = row[VALUES:].reshape(2, -1)
        return np.asarray(self.unit * (intercepts + slopes * price)[:, None])


def seen_index(arm: Arm, discount: float, label: str) -> SeenIndex:
    """Return the index alone, which takes less than the whole path."""
    lines, results, _ = _solved(arm, discount, label, 0)
    index, upper = results[UNIT] * lines[LOWER : UPPER + 1, :, None]
    return SeenIndex(index, upper, bool(results[INDEXABLE]))


def seen_indices(arms: Sequence[Arm], discount: float) -> list[FloatArray] | None:
    """Index tables [S, 1] of many arms of one size, at once; None where one has no index."""
    size, count = arms[0].num_states, len(arms)
    found = np.empty((count, 3, size))
    at_once = max(1, WORK_AT_ONCE // (4 * size**3))
    work, lines = np.empty((work_rows(size), size)), np.empty((NUM_LINES, size))
    results = np.empty(NUM_RESULTS)
    for first in range(0, count, at_once):
        stop_if_interrupted()
        some = arms[first : first + at_once]
        chains = np.array([(arm.passive, arm.active) for arm in some]).reshape(-1, 2 * size, size)
        rewards = np.array([(arm.rewards, arm.passive_rewards) for arm in some])
        part = found[first : first + at_once]
        scratch = work, lines, results
        if solve_many_seen(chains, rewards, discount, *scratch, part) < len(some):
            return None
    return list(found[:, 0, :, None])


def seen_path(arm: Arm, discount: float, label: str) -> SeenPath:
    """Solve the subsidy problem of an arm that is always seen, for all subsidies."""
    lines, results, pieces = _solved(arm, discount, label, arm.num_states + 2)
    unit = float(results[UNIT])
    index, upper = unit * lines[LOWER : UPPER + 1, :, None]
    return SeenPath(
        index, upper, bool(results[INDEXABLE]), float(results[OWN]), unit, pieces.copy()
    )


def _solved(
    arm: Arm, discount: float, label: str, rows: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Lines, results and the pieces, for which there is room in so many rows, or in more."""
    size = arm.num_states
    work, lines = np.empty((work_rows(size), size)), np.empty((NUM_LINES, size))
    results, path = np.empty(NUM_RESULTS), np.empty((rows, VALUES + 2 * size))
    count = TURNED_BACK
    for narrow in (True, False):
        if count == TURNED_BACK:
            work[:size], work[size : 2 * size] = arm.passive, arm.active
            lines[0], lines[1] = arm.rewards, arm.passive_rewards
            count = solve_seen(work, lines, discount, narrow, results, path)
    if count == FULL and 0 < rows < 1000 + SWITCHES_PER_STATE * size:
        return _solved(arm, discount, label, 4 * rows)
    if count < 0:
        raise _refusal(count, arm, label)
    return lines, results, path[:count]


def _refusal(why: int, arm: Arm, label: str) -> RestiveError:
    if why == SINGULAR:
        try:
            require_one_class(arm.passive, label, PASSIVE, arm.states)
        except AssumptionError as error:
            return AssumptionError(f"{error}; pass a discount below 1")
    if why in (SINGULAR, NOT_FINITE):
        return AssumptionError(
            f"{label}: not pulled, it hardly ever leaves some of its states, so that rounding "
            "hides what a pull gains; give its passive matrix larger probabilities, or pass "
            "a discount below 1"
        )
    if why == AMBIGUOUS:
        return AssumptionError(
            f"{label}: pulling and not pulling earn just as much at many subsidies, so that the "
            "average reward alone does not settle its index; pass a discount below 1"
        )
    if why == MULTICHAIN:
        return AssumptionError(
            f"{label}: under some of its policies what it earns in the long run depends on where "
            "it starts, so that it has no average-reward index; pass a discount below 1"
        )
    return RestiveError(
        f"{label}: the path of its subsidy problem did not end; the arm is too close to a "
        "degenerate one for floating point; pass another discount"
    )
