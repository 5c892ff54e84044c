"""Whittle's index: the subsidy for leaving an arm alone at which pulling it is worth just as much.

The average-reward index (discount = 1) is the paper's. Two-state arms whose chain does not care
whether it is pulled have a closed form (`kernels.plan.gilbert_elliott`); every other arm goes the
general way (`subsidy`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_elapsed
from restive.errors import AssumptionError, ProblemError
from restive.kernels.plan import gilbert_elliott
from restive.pages.figures import IndexPanel, plot_index
from restive.pages.frames import data_frame
from restive.plan.always_seen import SeenIndex, seen_index, seen_indices
from restive.plan.policies.base import (
    IndexPolicy,
    index_columns,
    index_policy,
    tabled_policy,
)
from restive.plan.subsidy import (
    SubsidyPath,
    checked_discount,
    require_average,
    subsidy_path,
)
from restive.problem.arm import Arm, arm_label, numbers_array, require_arm
from restive.problem.bandit import RestlessBandit, kinds_of
from restive.problem.beliefs import settled_elapsed
from restive.problem.reduction import reduce_arm
from restive.threads import WORK_AT_ONCE

__all__ = [
    "WhittleIndex",
    "channel_indices",
    "channel_whittle_index",
    "whittle",
    "whittle_index",
    "whittle_table",
]

FloatArray = NDArray[np.float64]
MANY = 16  # kinds of arms from which on their tables are made together


@dataclass(frozen=True, eq=False, repr=False)
class WhittleIndex:
    """Whittle index of one arm.

    For an indexable arm pulling is best exactly at the subsidies up to `index`, and `upper` equals
    it. Otherwise pulling is best at every subsidy up to `index` and at none above `upper`, and in
    between it is best here and there.
    """

    index: FloatArray  # [S, L] by last state and elapsed - 1
    upper: FloatArray  # [S, L]
    indexable: bool
    discount: float
    method: str
    arm: Arm

    @property
    def limit(self) -> float:
        """Index of an arm that has not been seen for very long, from the last column."""
        return float(self.index[0, -1])

    def panel(self, title: str = "") -> IndexPanel:
        """Return what a figure shows of it."""
        return IndexPanel(
            title, self.arm.states, self.index, None if self.indexable else self.upper
        )

    def plot(self, ax: Any = None) -> Any:
        """Draw index against elapsed steps, a line per last state; returns the axes."""
        return plot_index(self.panel(), "Whittle index", ax)

    def to_pandas(self) -> Any:
        """Return a data frame, a row per last state and age (needs pandas)."""
        return data_frame(index_columns(self.arm, index=self.index, upper=self.upper))

    def __repr__(self) -> str:
        states, ages = self.index.shape
        verdict = "indexable" if self.indexable else "not indexable"
        return f"WhittleIndex({states} states, {ages:,} ages, {verdict}, limit {self.limit:.6g})"


def whittle(
    bandit: RestlessBandit, *, discount: float = 1.0, max_elapsed: int | None = None
) -> IndexPolicy:
    """Return the Whittle index policy: pull the N arms with the largest index.

    For an arm that is not indexable the lower end of the ambiguity is used.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> policy = rs.whittle(bandit)
    >>> policy.select(rs.BeliefState([0, 1], [1, 1]))
    array([1])
    """
    made = _tables_at_once(bandit, checked_discount(discount))
    if made is None:
        return index_policy(
            bandit, lambda arm: whittle_table(arm, max_elapsed, discount), "whittle"
        )
    return tabled_policy(bandit, kinds_of(bandit), made, "whittle")


def _tables_at_once(bandit: RestlessBandit, discount: float) -> list[FloatArray] | None:
    """Tables of many kinds of arms that are always seen; None where they must be made one by one.

    They are the same; but where there are very many, calls would take longer than indices.
    """
    arms = kinds_of(bandit).arms
    if len(arms) < MANY or not all(arm.always_seen for arm in arms):
        return None
    tables: dict[int, FloatArray] = {}
    sizes = np.array([arm.num_states for arm in arms])
    for size in np.unique(sizes):
        places = np.flatnonzero(sizes == size).tolist()
        found = seen_indices([arms[j] for j in places], discount)
        if found is None:
            return None  # whose turn it is says why
        tables.update(zip(places, found, strict=True))
    return [tables[j] for j in range(len(arms))]


def whittle_table(
    arm: Arm, max_elapsed: int | None = None, discount: float = 1.0
) -> NDArray[np.float64]:
    """Index table [S, L] of the Whittle index."""
    return whittle_index(arm, discount=discount, max_elapsed=max_elapsed).index


def whittle_index(
    arm: Arm, *, discount: float = 1.0, max_elapsed: int | None = None
) -> WhittleIndex:
    """Whittle index of any arm, with the verdict on indexability.

    Parameters
    ----------
    arm
        Any arm; for the average reward its passive chain must have one closed class, which must
        be aperiodic unless the arm is always seen.
    discount
        1 for the average reward (the paper's), below 1 for discounted reward.
    max_elapsed
        Number of ages in the result; by default as many as the belief needs to settle. A longer
        result extends a shorter one. The index of an arm that is always seen has one.

    Examples
    --------
    >>> import restive as rs
    >>> rs.policies.whittle_index(rs.gilbert_elliott(0.3, 0.7)).index[:, :3].round(4)
    array([[0.3   , 0.4821, 0.5625],
           [0.7   , 0.6591, 0.6394]])
    """
    require_arm(arm)
    discount = checked_discount(discount)
    if arm.always_seen:
        found = seen_index(arm, discount, arm_label(arm))
        _require_index(found, arm)
        return WhittleIndex(
            found.index, found.upper, found.indexable, discount, "subsidy path", arm
        )
    if discount == 1 and arm.num_states == 2 and arm.is_uncontrolled and _leaves_both(arm):
        length = _channel_length(arm, max_elapsed)
        index = _channel_table(reduce_arm(arm).pulled, length)
        return WhittleIndex(index, index, True, discount, "closed form", arm)
    path = subsidy_path(arm, discount, max_elapsed)
    _require_index(path, arm)
    index, upper = (_with_length(table, max_elapsed) for table in (path.index, path.upper))
    return WhittleIndex(index, upper, path.indexable, discount, "subsidy path", arm)


def _require_index(path: SubsidyPath | SeenIndex, arm: Arm) -> None:
    """Raise where pulling is not best at any subsidy: there is a path, but no index."""
    if path.index.min() == -np.inf:
        s, n = np.argwhere(np.isneginf(path.index))[0]
        seen = f"it was last seen in {arm.state_label(s)}, {n + 1} step(s) ago"
        if arm.always_seen:
            seen = f"it is in {arm.state_label(s)}"
        raise AssumptionError(
            f"{arm_label(arm)}: no subsidy, however low, makes pulling best when {seen}: pulling "
            "holds the chain back (its "
            "active chain is reducible or nearly so), and the average reward only counts the long "
            "run; "
            "pass a discount below 1, such as 0.99"
        )


def channel_whittle_index(p01: ArrayLike, p11: ArrayLike, max_elapsed: int) -> FloatArray:
    """Average-reward Whittle indices of many Gilbert-Elliott channels at once.

    Parameters
    ----------
    p01, p11
        Probabilities [M] to become good and to stay good.
    max_elapsed
        Number of ages L.

    Returns
    -------
    Array [M, 2, L] by channel, last state and elapsed - 1.
    """
    rise, stay = (
        np.atleast_1d(numbers_array(values, "channels", name))
        for name, values in (("p01", p01), ("p11", p11))
    )
    if rise.ndim != 1 or stay.ndim != 1 or 1 < len(rise) != len(stay) > 1:
        raise ProblemError(
            f"p01 and p11 must be lists of equal length, got shape {rise.shape} and {stay.shape}"
        )
    rise, stay = np.broadcast_arrays(rise, stay)
    ergodic = (rise > 0) & (rise <= 1) & (stay >= 0) & (stay < 1) & ((rise < 1) | (stay > 0))
    if not ergodic.all():
        m = int(np.argmin(ergodic))
        raise AssumptionError(
            f"channel {m}: p01 = {rise[m]:g}, p11 = {stay[m]:g} is no irreducible and aperiodic "
            "chain: p01 must be in (0, 1], p11 in [0, 1), and not 1 and 0"
        )
    return channel_indices(rise, stay, checked_elapsed(max_elapsed))


def channel_indices(p01: FloatArray, p11: FloatArray, length: int) -> FloatArray:
    """Indices [M, 2, L] of M channels, some of them at once, so that Ctrl-C is heard in between."""
    out = np.empty((len(p01), 2, length))
    rise, stay = np.array(p01, order="C"), np.array(p11, order="C")
    scratch = np.empty((2, length))
    at_once = max(1, WORK_AT_ONCE // (10 * length))  # an index takes two divisions
    for first in range(0, len(out), at_once):
        part = slice(first, first + at_once)
        gilbert_elliott.channel_indices(rise[part], stay[part], scratch[0], scratch[1], out[part])
    return out


def _leaves_both(arm: Arm) -> bool:
    """Whether neither of two states is for ever, as the closed form asks."""
    return bool(arm.passive[0, 1] > 0 and arm.passive[1, 0] > 0)


def _channel_length(arm: Arm, max_elapsed: int | None) -> int:
    # the closed form holds for ergodic chains, however slow
    require_average(arm, arm_label(arm))
    return settled_elapsed(arm) if max_elapsed is None else checked_elapsed(max_elapsed)


def _channel_table(arm: Arm, length: int) -> FloatArray:
    """Closed form for any rewards: the index moves with them, and the better state is "good"."""
    low, high = sorted((float(arm.rewards[0]), float(arm.rewards[1])))
    good = int(arm.rewards[1] >= arm.rewards[0])
    bad = 1 - good
    unit = channel_indices(arm.active[[bad], good], arm.active[[good], good], length)[0]
    table: FloatArray = low + (high - low) * unit[[0, 1] if good else [1, 0]]
    return table


def _with_length(table: FloatArray, max_elapsed: int | None) -> FloatArray:
    """Cut or extend by the last column: indices of settled beliefs do not change any more."""
    if max_elapsed is None:
        return table
    length = checked_elapsed(max_elapsed)
    columns = np.minimum(np.arange(length), table.shape[1] - 1)
    return np.ascontiguousarray(table[:, columns])
