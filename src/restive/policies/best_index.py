"""Best index: of many index tables for a system, the one that earns most on it.

No single index is best on small and unequal systems. But all of them are tables, and what a table
earns can be computed; so the best of many can be found, and runs as fast as any. The candidates:
Whittle, LP priority, myopic and best fixed; Whittle at discounts below 1, which look less far
ahead; and the advantage A(s, n; price) at a ladder of prices, of which LP priority is one.

J is exact where the joint chains are small enough. Beyond, all candidates are simulated with the
same luck, and the best few are judged once more with fresh luck, so that the winner is not the one
that was lucky. Where a table's J depends on the start, it counts by its worst closed class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.belief import BeliefState, belief_tables, initial_state, settled_lengths
from restive.errors import RestiveError, TooLargeError
from restive.joint import JointStates
from restive.kernels.tables import BeliefTables
from restive.long_run import simulated_means, solve_long_run
from restive.policies.base import IndexPolicy, tabled_policy
from restive.policies.best_fixed import best_fixed
from restive.policies.myopic import myopic
from restive.policies.whittle import whittle
from restive.problem import RestlessBandit, kinds_of
from restive.reduction import ReducedKinds, reduce_kinds, unit_of
from restive.relaxation import Relaxation, relaxed

__all__ = ["BestIndexPolicy", "Candidate", "best_index"]

FloatArray = NDArray[np.float64]

DISCOUNTS = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
NUM_PRICES = 38
MAX_STATES = 50_000  # of each joint chain; beyond, a simulation tells as much in less time
EQUAL = 1e-9  # rewards closer than this, in their unit, are one: the candidate named first wins

# The simulations: runs and steps over all arms and runs, of every candidate and of the finalists.
RUNS, ARM_STEPS = 16, 1_000_000
FINALISTS = 6
FINAL_RUNS, FINAL_ARM_STEPS = 64, 40_000_000
LEAST_STEPS, MOST_STEPS = 100, 20_000  # of a run
SEED = np.uint64(0x9E3779B97F4A7C15)  # apart from the seeds of whoever evaluates the result


@dataclass(frozen=True)
class Candidate:
    """What an index table earns: J, of its worst closed class, and its standard error."""

    name: str
    average_reward: float
    stderr: float  # 0 where J is exact


@dataclass(frozen=True, eq=False)
class BestIndexPolicy(IndexPolicy):
    """The index policy that earns most of those tried.

    `candidates` holds all that differ, the best first; `method` says how they were compared.
    """

    candidates: tuple[Candidate, ...] = ()
    method: str = ""

    @property
    def chosen(self) -> str:
        """The name of the index that was chosen."""
        return self.candidates[0].name

    @property
    def runners_up(self) -> tuple[Candidate, ...]:
        """The others, the best first."""
        return self.candidates[1:]


def best_index(
    bandit: RestlessBandit, max_elapsed: int | None = None, max_states: int = MAX_STATES
) -> BestIndexPolicy:
    """Return the index policy with the largest J among about fifty.

    Parameters
    ----------
    bandit
        The arms and the number of pulls.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    max_states
        Compare exactly up to this many joint states of each candidate (at most 50,000), simulate
        beyond.
    """
    reduced = reduce_kinds(kinds_of(bandit))
    arms = belief_tables(reduced.kinds.arms, settled_lengths(reduced.kinds, max_elapsed))
    policies = _different(_candidates(bandit, max_elapsed))
    try:
        found = _exactly(bandit, reduced, arms, policies, min(max_states, MAX_STATES))
        method = "exact: joint chains"
    except TooLargeError:
        found = _simulated(bandit, reduced, arms, policies)
        method = f"simulation: {FINAL_RUNS} runs of the best {FINALISTS}"
    best = policies[found[0].name]
    return BestIndexPolicy(
        bandit, "best_index", best.kinds, best.tables, best.ranked, tuple(found), method
    )


def _candidates(
    bandit: RestlessBandit, max_elapsed: int | None
) -> Iterator[tuple[str, Callable[[], IndexPolicy]]]:
    yield "whittle", lambda: whittle(bandit, max_elapsed=max_elapsed)
    solution: Relaxation | None = None
    try:
        solution = relaxed(bandit, max_elapsed)
    except RestiveError:
        pass
    if solution is not None:
        yield "lp_priority", lambda: _at_price(bandit, solution, solution.subsidy)
    yield "myopic", lambda: myopic(bandit, max_elapsed)
    yield "best_fixed", lambda: best_fixed(bandit)
    for discount in DISCOUNTS:
        yield (
            f"whittle at discount {discount:g}",
            lambda discount=discount: whittle(bandit, discount, max_elapsed),
        )
    if solution is not None:
        tops = np.concatenate([path.breakpoints()[0] for path in solution.paths])
        for price in np.linspace(tops.min(), tops.max(), NUM_PRICES).tolist():
            yield (
                f"advantage at price {price:.6g}",
                lambda price=price: _at_price(bandit, solution, price),
            )
