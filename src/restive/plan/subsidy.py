"""One arm and a subsidy for leaving it alone: indices, gains and advantages along the subsidy.

A `SubsidyPath` holds the optimal gain g(lambda) of one arm that earns lambda for every step in
which it is not pulled, for all lambda at once, and what follows from it: the Whittle index (where
pulling stops being worth it), the verdict on indexability, and the advantage of pulling at one
subsidy, from which the relaxation bound and the LP priority are made. The method is described in
`kernels.plan.subsidy`. An arm that pays while not pulled is first reduced to one that does not
(`reduction`); g is then without what the arm earns by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_elapsed
from restive.errors import AssumptionError, ProblemError, RestiveError, TooLargeError
from restive.kernels.plan.subsidy import (
    AMBIGUOUS,
    AVERAGE,
    BEGIN,
    FULL,
    GAIN0,
    GAIN1,
    STUCK,
    WORKING,
    advantage_on_path,
    follow_subsidy,
)
from restive.kernels.plan.waiting_times import (
    INDEXABLE,
    NUM_MARKS,
    PIECES,
    SubsidyProblem,
    SubsidyWalk,
)
from restive.plan.always_seen import SeenPath, seen_path
from restive.problem.arm import Arm, arm_label
from restive.problem.beliefs import MOST_ELAPSED, belief_table, settled_elapsed
from restive.problem.chains import require_limit
from restive.problem.reduction import reduce_arm, unit_of
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = [
    "AnyPath",
    "SubsidyPath",
    "checked_discount",
    "require_average",
    "subsidy_path",
    "walk_down",
]

FloatArray = NDArray[np.float64]

MOST_DISCOUNT = 1 - 1e-7
SWITCHES_PER_CELL = 20  # paths have about L switches; this many per (s, n) means something is wrong
FEW_PIECES = 32


@dataclass(frozen=True, eq=False)
class SubsidyPath:
    """The subsidy problem of one arm for every subsidy.

    Rewards and subsidies on the path are in its `unit`, a power of two, so that the kernels need
    not care how large rewards are.
    """

    rewards: FloatArray  # [S] of a pull, in units: r_hat where the arm pays while not pulled
    own_reward: float
    unit: float
    discount: float
    beliefs: FloatArray  # [S, L, S]
    index: FloatArray  # [S, L]
    upper: FloatArray  # [S, L]
    indexable: bool
    pieces: FloatArray  # [pieces, 4 + 2 S], see kernels.plan.subsidy

    def breakpoints(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the gain as lines: tops of the pieces (falling), values at zero and slopes.

        Above lambda* the arm is left alone for ever, so that the gain is the subsidy itself.
        """
        stopping = self.pieces[:, AVERAGE] == 0
        intercepts = np.where(stopping, 0.0, self.pieces[:, GAIN0])
        slopes = np.where(stopping, 1.0, self.pieces[:, GAIN1])
        return self.unit * self.pieces[:, BEGIN], self.unit * intercepts, slopes

    def advantage(self, subsidy: float) -> FloatArray:
        """Worth [S, L] of pulling now over the best way of not pulling now, at one subsidy."""
        advantage = np.empty(self.index.shape)
        problem, walk = _arrays_for(self.beliefs, self.rewards, self.discount)
        advantage_on_path(problem, walk, self.pieces, subsidy / self.unit, advantage)
        return self.unit * advantage


AnyPath: TypeAlias = SubsidyPath | SeenPath


def subsidy_path(
    arm: Arm, discount: float = 1.0, max_elapsed: int | None = None, label: str | None = None
) -> AnyPath:
    """Solve the subsidy problem of one arm for all subsidies.

    The table of beliefs is as long as they need to settle, so that the result does not depend on
    `max_elapsed`; only where they settle too slowly or never does `max_elapsed` cut the table.
    """
    label = arm_label(arm) if label is None else label
    discount = checked_discount(discount)
    if arm.always_seen:
        return seen_path(arm, discount, label)
    reduction = reduce_arm(arm, discount=discount, label=label)
    unit = unit_of(reduction.pulled.rewards)
    rewards = reduction.pulled.rewards / unit
    beliefs = belief_table(arm, _planning_length(arm, discount, max_elapsed, label))
    walk = walk_down(beliefs, rewards, discount, label)
    pieces = walk.path[: walk.marks[PIECES]].copy()
    indexable = bool(walk.marks[INDEXABLE])
    index, upper = unit * walk.lower, unit * walk.upper
    return SubsidyPath(
        rewards, reduction.own_reward, unit, discount, beliefs, index, upper, indexable, pieces
    )


def walk_down(beliefs: FloatArray, rewards: FloatArray, discount: float, label: str) -> SubsidyWalk:
    """Follow the subsidy from the largest reward down, for beliefs [S, L, S].

    Rewards are best about 1; `label` is how errors call the arm.
    """
    problem, walk = _arrays_for(beliefs, rewards, discount)
    limit = 1000 + SWITCHES_PER_CELL * beliefs.shape[0] * beliefs.shape[1]
    while (end := follow_subsidy(problem, walk, limit, WORK_AT_ONCE)) in (WORKING, FULL):
        stop_if_interrupted()
        if end == FULL:
            walk = walk._replace(path=np.concatenate([walk.path, np.empty_like(walk.path)]))
    if end == AMBIGUOUS:
        raise AssumptionError(
            f"{label}: if always pulled, several classes of its states earn just as much, so that "
            "the average reward alone does not settle its index (its active chain is reducible); "
            "pass a discount below 1"
        )
    if end == STUCK:
        raise RestiveError(
            f"{label}: the path of its subsidy problem did not end within {limit:,} switches; the "
            "arm is too close to a degenerate one for floating point; pass another discount"
        )
    return walk


def checked_discount(discount: float) -> float:
    """Return the discount as a float in (0, 1], or raise."""
    try:
        value = float(discount)
    except (TypeError, ValueError):
        raise ProblemError(f"discount must be a number, got {discount!r}") from None
    if not 0 < value <= 1:
        raise ProblemError(f"discount must be in (0, 1], got {value:g}; 1 is the average reward")
    if MOST_DISCOUNT < value < 1:
        raise ProblemError(
            f"discount must be 1 or at most 1 - 1e-7, got {value!r}: closer to 1, rounding "
            "hides the rewards; 1 is the average reward"
        )
    return value


def require_average(arm: Arm, label: str) -> None:
    """Raise unless the passive chain has one long run, as the average reward asks."""
    try:
        require_limit(arm.passive, label, states=arm.states)
    except AssumptionError as error:
        raise AssumptionError(f"{error}; pass a discount below 1, and max_elapsed") from None


def _planning_length(arm: Arm, discount: float, max_elapsed: int | None, label: str) -> int:
    if discount == 1:
        require_average(arm, label)
    if max_elapsed is None:
        return settled_elapsed(arm, label)
    wanted = checked_elapsed(max_elapsed)
    if discount < 1:
        # far enough beyond the last age asked for that what happens later is discounted away
        unseen = ceil(log(1e-13 * (1 - discount)) / log(discount))
        wanted = min(wanted + unseen, max(wanted, MOST_ELAPSED))
    try:
        return settled_elapsed(arm, label)
    except (AssumptionError, TooLargeError):
        return wanted


def _arrays_for(
    beliefs: FloatArray, rewards: FloatArray, discount: float
) -> tuple[SubsidyProblem, SubsidyWalk]:
    """Make the arrays in which kernels work."""
    size, length = beliefs.shape[:2]
    powers = np.empty(length + 1)
    powers[1] = discount  # the kernel fills in the others
    problem = SubsidyProblem(
        beliefs=beliefs,
        rewards=rewards.copy(),
        pull_rewards=np.empty((size, length)),
        powers=powers,
    )
    walk = SubsidyWalk(
        marks=np.zeros(NUM_MARKS, dtype=np.int64),
        piece=np.empty(3),
        path=np.empty((FEW_PIECES, 4 + 2 * size)),
        lower=np.empty((size, length)),
        upper=np.empty((size, length)),
        wait=np.empty(size, dtype=np.int64),
        x=np.empty((2, size)),
        gain=np.empty(2),
        f=np.empty((2, size, length)),
        made=np.empty(size, dtype=np.int64),
        system=np.empty((size, size + 2)),
        reached=np.empty((size, size), dtype=np.bool_),
        rival=np.empty(size, dtype=np.bool_),
        stack=np.empty(size, dtype=np.int64),
        ends=np.empty((4, length)),
        aims=np.empty((2, length), dtype=np.int64),
        scale=np.empty(2),
    )
    return problem, walk
