"""Index policies: a table per arm, and "pull the N largest, the lowest arm wins ties".

An arm's belief depends only on when and in which state it was last seen, so any index rule is a
function `Arm -> table [S, L]` with the index of (last state s, elapsed n) at [s, n - 1]; ages
beyond L keep the last column. Ties decide real money (arms with equal and opposite correlation have
equal beliefs at every age), so decisions never compare floats: all values of a bandit are ranked
once, values that differ by rounding only share a rank, and the N largest ranks are pulled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, counted
from restive.errors import ProblemError
from restive.kernels.loop.choosing import top_of_each
from restive.kernels.loop.tables import RankTables
from restive.pages.figures import IndexPanel, plot_panels
from restive.pages.frames import data_frame
from restive.problem.arm import Arm
from restive.problem.bandit import Kinds, RestlessBandit, kinds_of, starts_of
from restive.problem.beliefs import BeliefState, require_state

__all__ = ["IndexPolicy", "IndexRule", "Policy", "index_policy", "tied_ranks"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

IndexRule: TypeAlias = Callable[[Arm], ArrayLike]

# Relative to the largest index of the bandit. Wide enough for rounding, and narrower than what is
# left between an old belief and its limit: a belief never reaches its limit, and an arm that is
# just below another for ever must not be taken for its equal (on the paper's K=4 instance the
# myopic policy's J would change in the fifth digit).
TIE_TOLERANCE = 1e-14


class Policy(Protocol):
    """What everything that acts offers: a choice of arms for a meta-state."""

    def select(self, state: BeliefState) -> IntArray:
        """Return the arms to pull, ascending [N]."""


@dataclass(frozen=True, eq=False, repr=False)
class IndexPolicy:
    """Pull the arms with the largest indices; the lowest arm wins ties.

    Tables are kept once per kind of arm and laid end to end, row after row.
    """

    bandit: RestlessBandit
    name: str
    kinds: Kinds
    tables: tuple[FloatArray, ...]  # one per kind, [S, L]
    ranked: RankTables = field(repr=False)

    def table(self, k: int) -> FloatArray:
        """Index table [S, L] of arm k."""
        arm = checked_count(k, "k", 0, self.bandit.num_arms - 1)
        table: FloatArray = self.tables[self.kinds.of[arm]]
        return table

    def index(self, state: BeliefState) -> FloatArray:
        """Return the index [K] of each arm now."""
        require_state(state, self.bandit)
        return self.index_many(state.last_state, state.elapsed)

    def index_many(self, last_state: IntArray, elapsed: IntArray) -> FloatArray:
        """Indices [M, K] of all arms for M meta-states given as [M, K] arrays."""
        many: FloatArray = self._values[self._cells(last_state, elapsed)]
        return many

    def select(self, state: BeliefState) -> IntArray:
        """Return the arms to pull, ascending [N]."""
        require_state(state, self.bandit)
        chosen: IntArray = self.select_many(state.last_state[None], state.elapsed[None])[0]
        return chosen

    def select_many(self, last_state: IntArray, elapsed: IntArray) -> IntArray:
        """Arms to pull [M, N], ascending, for M meta-states given as [M, K] arrays."""
        ranks = self.ranked.ranks[self._cells(last_state, elapsed)]
        return highest(ranks, self.bandit.num_pulls)

    def rank(self, state: BeliefState) -> IntArray:
        """Return the rank [K] of each arm's index now among all indices of the bandit."""
        require_state(state, self.bandit)
        rank: IntArray = self.ranked.ranks[self._cells(state.last_state, state.elapsed)]
        return rank

    def to_pandas(self) -> Any:
        """Return the tables as a data frame, a row per arm, last state and age (needs pandas)."""
        parts = []
        for k, arm in enumerate(self.bandit.arms):
            columns = index_columns(arm, index=self.table(k))
            count = len(columns["index"])
            head = {"arm": np.full(count, k), "name": np.full(count, arm.name or "")}
            parts.append(head | columns)
        return data_frame({key: np.concatenate([p[key] for p in parts]) for key in parts[0]})

    def plot(self) -> Any:
        """Draw the index of each kind of arm against elapsed steps.

        Returns
        -------
        The matplotlib Axes, an array with one for each kind that is drawn, the first 12.
        """
        panels = [
            IndexPanel(label, arm.states, table)
            for label, arm, table in zip(
                self.kinds.labels, self.kinds.arms, self.tables, strict=True
            )
        ]
        title = f"{self.name}: {self.bandit.num_arms:,} arms ({len(panels):,} kinds)"
        return plot_panels(panels, "index", title)

    def __repr__(self) -> str:
        return policy_repr(self)

    @cached_property
    def _values(self) -> FloatArray:
        """All tables, end to end as the ranks are."""
        return np.concatenate([table.ravel() for table in self.tables])

    def _cells(self, last_state: IntArray, elapsed: IntArray) -> IntArray:
        offsets, lengths = (part[self.kinds.of] for part in self.ranked[1:])
        cells: IntArray = offsets + last_state * lengths + np.minimum(elapsed, lengths) - 1
        return cells


def policy_repr(policy: Any) -> str:
    """How a policy shows itself: its kind and name, and what it is for."""
    bandit: RestlessBandit = policy.bandit
    own = type(policy).__name__
    arms, pulls = counted(bandit.num_arms, "arm"), counted(bandit.num_pulls, "pull")
    return f"{own}({policy.name}, {arms}, {pulls})"


def index_columns(arm: Arm, **tables: FloatArray) -> dict[str, NDArray[Any]]:
    """Return index tables [S, L] as columns: last state, its name, elapsed, and their values."""
    size, length = arm.num_states, max(table.shape[1] for table in tables.values())
    states = np.repeat(np.arange(size), length)
    ages = np.tile(np.arange(length), size)
    columns: dict[str, NDArray[Any]] = {
        "last_state": states,
        "last_state_name": np.array([arm.state_name(s) for s in range(size)])[states],
        "elapsed": ages + 1,
    }
    for name, table in tables.items():
        columns[name] = table[states, np.minimum(ages, table.shape[1] - 1)]
    return columns


def highest(values: NDArray[Any], num_pulls: int) -> IntArray:
    """Arms [M, N], ascending, with the largest of the values [M, K]; the lowest arm wins ties."""
    chosen = np.empty((len(values), num_pulls), dtype=np.int64)
    top_of_each(np.ascontiguousarray(values), chosen)
    return chosen


def checked_choice(policy: Policy, bandit: RestlessBandit, state: BeliefState) -> IntArray:
    """Return what a policy of the user's selects, ascending, or say what is wrong with it."""
    chosen = np.asarray(policy.select(state))
    right = (
        chosen.shape == (bandit.num_pulls,)
        and np.issubdtype(chosen.dtype, np.integer)
        and len(np.unique(chosen)) == len(chosen)
        and 0 <= chosen.min() <= chosen.max() < bandit.num_arms
    )
    if not right:
        raise ProblemError(
            f"the policy selected {chosen.tolist()!s:.60}, expected {bandit.num_pulls} different "
            f"arms of 0 to {bandit.num_arms - 1}"
        )
    return np.sort(chosen).astype(np.int64)


def index_policy(bandit: RestlessBandit, rule: IndexRule, name: str | None = None) -> IndexPolicy:
    """Make a policy of an index rule.

    Parameters
    ----------
    bandit
        The arms and the number of pulls.
    rule
        A function of an arm that returns its index table [S, L], for any L >= 1: the index of last
        state s and elapsed n at [s, n - 1]. Ages beyond L keep the last column. It is called once
        per kind of arm and never while acting.
    name
        How reports call the policy; by default the rule's own name.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> policy = rs.policies.index_policy(bandit, lambda arm: [[0.0], [1.0]], name="last state")
    >>> policy.select(rs.BeliefState([0, 1], [1, 1]))
    array([1])
    """
    if not callable(rule):
        raise ProblemError(f"an index rule is a function of an arm, got {rule!r:.60}")
    kinds = kinds_of(bandit)
    tables = rule_tables(kinds, rule)
    return tabled_policy(bandit, kinds, tables, name or str(getattr(rule, "__name__", "own rule")))


def tabled_policy(
    bandit: RestlessBandit, kinds: Kinds, tables: Sequence[FloatArray], name: str
) -> IndexPolicy:
    """Index policy from a table per kind of arm."""
    return IndexPolicy(
        bandit=bandit,
        name=name,
        kinds=kinds,
        tables=tuple(tables),
        ranked=rank_tables(tables),
    )


def rank_tables(tables: Sequence[FloatArray]) -> RankTables:
    """Rank all values of several index tables [S, L] against each other."""
    return RankTables(
        ranks=tied_ranks(np.concatenate([table.ravel() for table in tables])),
        offsets=starts_of([table.size for table in tables]),
        lengths=np.array([table.shape[1] for table in tables], dtype=np.int64),
    )


def rule_tables(kinds: Kinds, rule: IndexRule) -> list[FloatArray]:
    """Index tables of each kind of arm under a rule, checked."""
    return [
        checked_table(rule(arm), arm, label)
        for arm, label in zip(kinds.arms, kinds.labels, strict=True)
    ]


def tied_ranks(values: FloatArray) -> IntArray:
    """Integer ranks of values, smallest first; values equal up to rounding share a rank."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    apart = TIE_TOLERANCE * max(abs(ordered[0]), abs(ordered[-1]))
    ranks = np.empty(len(values), dtype=np.int64)
    ranks[order] = np.concatenate([[0], np.cumsum(np.diff(ordered) > apart)])
    return ranks


def checked_table(values: ArrayLike, arm: Arm, label: str) -> FloatArray:
    """Return an index table as a frozen array [S, L], or say what is wrong with it."""
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ProblemError(
            f"{label}: the index rule returned {values!r:.60}, not a table"
        ) from None
    if table.ndim != 2 or len(table) != arm.num_states or table.shape[1] < 1:
        raise ProblemError(
            f"{label}: the index rule returned shape {table.shape}, expected "
            f"({arm.num_states}, number of ages)"
        )
    if not np.abs(table).max() < np.inf:  # nor nan
        s, n = np.argwhere(~np.isfinite(table))[0]
        raise ProblemError(
            f"{label}: the index rule returned {table[s, n]} for last state {s}, elapsed {n + 1}"
        )
    table.setflags(write=False)
    return table
