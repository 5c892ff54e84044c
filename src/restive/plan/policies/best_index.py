"""Best index: of many index tables for a system, the one that earns most on it.

No single index is best on small and unequal systems. But all of them are tables, and what a table
earns can be computed; so the best of many can be found, and runs as fast as any. The candidates:
Whittle, LP priority, myopic and best fixed; Whittle at discounts below 1, which look less far
ahead; and the advantage A(s, n; price) at ladders of prices, of which LP priority is one.

J is exact where the joint chains are small enough. Beyond, all candidates are simulated with the
same luck, and the best few are judged once more, so that the winner is not the one that was lucky:
exactly where their chains allow it, else with fresh luck. Where a table's J depends on the start,
it counts by its worst closed class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import TypeAlias

import numpy as np

from restive.arguments import checked_count
from restive.errors import RestiveError, TooLargeError
from restive.plan.joint_chain import JointStates
from restive.plan.policies.base import IndexPolicy, tabled_policy
from restive.plan.policies.best_fixed import best_fixed
from restive.plan.policies.lp_priority import lp_priority
from restive.plan.policies.myopic import myopic
from restive.plan.policies.whittle import whittle
from restive.plan.relaxation import Relaxation, require_relaxation
from restive.plan.simulated_run import (
    FEWEST_STEPS,
    FORGOTTEN,
    Runs,
    paid_arms,
    plan_of_runs,
    simulated_reward,
    slowest_arm,
)
from restive.plan.solved_run import MAX_STATES, lowest_reward
from restive.plan.subsidy import AnyPath, subsidy_path
from restive.problem.bandit import Kinds, RestlessBandit, kinds_of
from restive.problem.beliefs import initial_state, settled_lengths
from restive.problem.reduction import reduce_kinds, unit_of
from restive.threads import on_all_cores

__all__ = ["MOST_ARMS", "BestIndexPolicy", "Candidate", "best_index"]

_Maker: TypeAlias = tuple[str, Callable[[], IndexPolicy]]

# Discounts at which Whittle's index is tried, and how many prices at each.
PRICES = {1.0: 38, 0.3: 0, 0.5: 19, 0.7: 0, 0.8: 19, 0.9: 0, 0.95: 0}
MOST_ARMS = 5_000  # beyond, prices are not tried: tables would fill the memory, runs take long
FEW_STATES = 20_000  # of each joint chain; beyond, simulating them all takes less time
EQUAL = 1e-9  # rewards closer than this, in their unit, are one: the candidate named first wins

# The simulations: runs and steps over all arms and runs, of every candidate and of the finalists.
RUNS, ARM_STEPS = 16, 1_000_000
FINALISTS = 6
FINAL_RUNS, FINAL_ARM_STEPS = 64, 10_000_000
LEAST_STEPS, MOST_STEPS = 100, 20_000  # of a run
MOST_LONGER = 5  # times as long it may be where arms are slow to forget their start
MOST_ARM_STEPS, FEW_RUNS = 200_000_000, 8  # with very many arms there are fewer runs
# Apart from each other, and from the small seeds of whoever evaluates the result.
SEED, FRESH_SEED = 0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F


@dataclass(frozen=True)
class Candidate:
    """What an index table earns: J, of its worst closed class, and its standard error."""

    name: str
    average_reward: float
    stderr: float  # 0 where J is exact


@dataclass(frozen=True, eq=False, repr=False)
class BestIndexPolicy(IndexPolicy):
    """The index policy that earns most of those tried.

    `candidates` holds all that differ, the best first; `method` says how they were compared. Where
    some arm is too slow for that, the first is taken as it is, and no reward is known.
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
    bandit: RestlessBandit,
    *,
    max_states: int = MAX_STATES,
    max_elapsed: int | None = None,
    relaxation: Relaxation | None = None,
) -> BestIndexPolicy:
    """Return the index policy with the largest J among about ninety.

    Of more than 5,000 arms only whittle, lp_priority, myopic and best_fixed are compared.

    Parameters
    ----------
    bandit
        The arms and the number of pulls.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    max_states
        Compare exactly up to this many joint states of each candidate, simulate beyond. Above
        20,000 only the best six are compared exactly, once all have been simulated.
    relaxation
        The relaxed problem, where it has been solved already.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> rs.policies.best_index(bandit).chosen
    'whittle at discount 0.3'
    """
    system = _System(bandit, max_elapsed)
    require_relaxation(relaxation)
    max_states = checked_count(max_states, "max_states")
    policies = _different(_candidates(bandit, max_elapsed, relaxation))
    try:
        found = system.exactly(policies, min(max_states, FEW_STATES))
        method = "exact: joint chains"
    except TooLargeError:
        try:
            found, method = system.simulated(policies, max_states)
        except TooLargeError as error:
            found = [Candidate(next(iter(policies)), nan, nan)]
            method = f"without comparison: {error}"
    best = policies[found[0].name]
    return BestIndexPolicy(
        bandit, "best_index", best.kinds, best.tables, best.ranked, tuple(found), method
    )


def _candidates(
    bandit: RestlessBandit, max_elapsed: int | None, relaxation: Relaxation | None
) -> Iterator[_Maker]:
    """Names and makers, those first that win where they earn no less."""
    yield "whittle", lambda: whittle(bandit, max_elapsed=max_elapsed)
    yield "lp_priority", lambda: lp_priority(bandit, max_elapsed=max_elapsed, relaxation=relaxation)
    yield "myopic", lambda: myopic(bandit, max_elapsed=max_elapsed)
    yield "best_fixed", lambda: best_fixed(bandit)
    kinds = kinds_of(bandit)
    if bandit.num_arms > MOST_ARMS:
        return
    for discount, num_prices in PRICES.items():
        try:
            paths = _paths(kinds, discount, max_elapsed, relaxation)
        except RestiveError:  # an average reward that depends on the start, say
            continue
        where = "" if discount == 1 else f" at discount {discount:g}"
        tables = [path.index for path in paths]
        if discount < 1 and all(np.isfinite(table).all() for table in tables):
            yield f"whittle{where}", partial(tabled_policy, bandit, kinds, tables, "whittle")
        tops = np.concatenate([path.breakpoints()[0] for path in paths])
        for price in np.linspace(tops.min(), tops.max(), num_prices).tolist():
            tables = [path.advantage(price) for path in paths]
            name = f"price {price:.6g}{where}"
            yield name, partial(tabled_policy, bandit, kinds, tables, "price")


def _paths(
    kinds: Kinds, discount: float, max_elapsed: int | None, relaxation: Relaxation | None
) -> Sequence[AnyPath]:
    if discount == 1 and relaxation is not None:
        return relaxation.paths
    found: dict[int, AnyPath] = {}

    def solve(j: int) -> None:
        found[j] = subsidy_path(kinds.arms[j], discount, max_elapsed, kinds.labels[j])

    on_all_cores(solve, len(kinds.arms))
    return [found[j] for j in range(len(kinds.arms))]


def _different(makers: Iterator[_Maker]) -> dict[str, IndexPolicy]:
    """Candidates that can be made and rank cells differently, by name."""
    found: dict[str, IndexPolicy] = {}
    known: set[bytes] = set()
    refused: RestiveError | None = None
    for name, make in makers:
        try:
            policy = make()
        except RestiveError as error:  # an average-reward index that is not there, say
            refused = refused or error
            continue
        order = policy.ranked.ranks.tobytes() + policy.ranked.lengths.tobytes()
        if order not in known:
            known.add(order)
            found[name] = policy
    if not found and refused is not None:
        raise refused
    return found


class _System:
    """A bandit on which index policies are compared."""

    def __init__(self, bandit: RestlessBandit, max_elapsed: int | None) -> None:
        reduced = reduce_kinds(kinds_of(bandit))
        self.bandit = bandit
        self.own_reward = reduced.own_reward
        self.kinds = reduced.kinds
        self.lengths = settled_lengths(reduced.kinds, max_elapsed)
        self.start = initial_state(bandit)

    def exactly(self, policies: dict[str, IndexPolicy], max_states: int) -> list[Candidate]:
        """Return what policies earn, the best first, by their joint chains."""
        found = []
        for name, policy in policies.items():
            joint = JointStates(self.bandit, self.kinds, self.lengths)
            reward = lowest_reward(joint, self.start, policy.select_many, max_states)
            found.append(Candidate(name, reward + self.own_reward, 0.0))
        return self._best_first(found)

    def simulated(
        self, policies: dict[str, IndexPolicy], max_states: int
    ) -> tuple[list[Candidate], str]:
        """Return what policies earn, the best first, and how the best were judged.

        All are simulated with one luck, and the best are solved or simulated with another.
        """
        finalists, others = policies, []
        if len(policies) > FINALISTS:
            first = self._best_first(self._simulated(policies, RUNS, ARM_STEPS, SEED))
            finalists = {found.name: policies[found.name] for found in first[:FINALISTS]}
            others = first[FINALISTS:]
        best = f"the best {FINALISTS} of a simulation" if others else "all"
        try:
            final = self.exactly(finalists, max_states)
            method = f"exact: joint chains of {best}"
        except TooLargeError:
            runs = self._simulated(finalists, FINAL_RUNS, FINAL_ARM_STEPS, FRESH_SEED)
            final = self._best_first(runs)
            method = f"simulation: {self.affordable(FINAL_RUNS)} runs of {best}"
        return final + others, method

    def affordable(self, count: int) -> int:
        """Return how many of these runs to make."""
        return max(FEW_RUNS, min(count, MOST_ARM_STEPS // (LEAST_STEPS * self.bandit.num_arms)))

    def _runs(self, count: int, arm_steps: int) -> Runs:
        """Return the runs of each candidate, or raise if slow arms would make them too long."""
        count = self.affordable(count)
        arms = count * self.bandit.num_arms
        least = min(LEAST_STEPS, max(FEWEST_STEPS, MOST_ARM_STEPS // arms))
        steps = max(least, min(MOST_STEPS, arm_steps // arms))
        runs = plan_of_runs(self.bandit, self.kinds, self.lengths, count, steps)
        longest, slowest = slowest_arm(self.kinds)
        needed = FORGOTTEN * longest
        if needed <= runs.burn_in:
            return runs
        if needed > MOST_LONGER * (runs.burn_in + runs.steps):
            raise TooLargeError(
                f"{slowest} takes about {longest:,} steps to forget where it started: too many to "
                "compare by simulation"
            )
        return Runs(count, max(steps, needed), needed)

    def _simulated(
        self, policies: dict[str, IndexPolicy], count: int, arm_steps: int, seed: int
    ) -> list[Candidate]:
        runs = self._runs(count, arm_steps)
        paid = paid_arms(self.bandit, self.lengths)
        found = []
        for name, policy in policies.items():
            run = simulated_reward(
                self.bandit, paid, policy.ranked, policy.kinds.of, self.start, runs, seed
            )
            found.append(Candidate(name, run.mean, run.stderr))
        return found

    def _best_first(self, found: list[Candidate]) -> list[Candidate]:
        """Sort by reward; of those that earn the same the one named first comes first."""
        equal = EQUAL * unit_of(np.concatenate([arm.rewards for arm in self.kinds.arms]))
        left, ordered = list(found), []
        while left:
            most = max(candidate.average_reward for candidate in left)
            best = next(c for c in left if c.average_reward >= most - equal)
            ordered.append(best)
            left.remove(best)
        return ordered
