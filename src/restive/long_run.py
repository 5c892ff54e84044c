"""The average reward of an index policy by simulation: many independent runs.

A run starts somewhere and must forget that before it counts. Arms forget at the pace of their
chains, pulled or not, so the slowest arm says how many steps of a run do not count; where that is
more than can be simulated there is no number.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed
from restive.belief import BeliefState, forgetting_time
from restive.errors import TooLargeError
from restive.kernels.long_run import run_index_policy
from restive.kernels.tables import BeliefTables, RankTables
from restive.pace import WORK_AT_ONCE, look, on_all_cores
from restive.problem import Kinds, RestlessBandit

__all__ = ["LongRun", "Runs", "plan_of_runs", "simulated_reward"]

IntArray = NDArray[np.int64]

REPLICATIONS = 64
FEW_REPLICATIONS = 8  # of bandits so large that a step averages over very many pulls
MOST_STEPS = 50_000  # that count, by default
FEW_STEPS = 200
FEWEST_STEPS = 20
ARM_STEPS = 200_000_000  # that count, over all arms and runs, by default
MOST_ARM_STEPS = 1_000_000_000  # of the default, with those that do not count: some seconds
FORGOTTEN = 10  # forgetting times after which the start no longer counts: to about 1e-6
ARM_STEP_WORK = 4  # products that take as long as one arm in one step


@dataclass(frozen=True)
class LongRun:
    """A simulated average reward, its standard error and how it was found."""

    mean: float
    stderr: float
    method: str


class Runs(NamedTuple):
    """How many runs, how many steps of each count, and how many before them do not."""

    replications: int
    steps: int
    burn_in: int


def simulated_reward(
    bandit: RestlessBandit,
    kinds: Kinds,
    arms: BeliefTables,
    ranked: RankTables,
    ranked_kinds: NDArray[np.intp],
    start: BeliefState,
    runs: Runs,
    seed: int,
) -> LongRun:
    """Simulate an index policy, given by ranks and by which of their tables each arm has.

    `arms` are the tables of `kinds`. Luck is a function of (seed, run, time, arm), so that policies
    that are compared with the same seed and runs meet the same.
    """
    seed = checked_seed(seed)
    count, steps, burn_in = runs
    totals = np.zeros((count, 1))
    at_once = max(1, WORK_AT_ONCE // (ARM_STEP_WORK * bandit.num_arms))

    def run(replication: int) -> None:
        last_state, seen = start.last_state.copy(), 1 - start.elapsed
        rank = np.empty(bandit.num_arms, dtype=np.int64)
        chosen = np.empty(bandit.num_pulls, dtype=np.int64)
        for first in range(1, burn_in + steps + 1, at_once):
            look()
            run_index_policy(
                ranked, ranked_kinds, arms, kinds.of, last_state, seen, rank, chosen,
                first, min(first + at_once, burn_in + steps + 1), burn_in, np.uint64(seed),
                replication, totals[replication],
            )  # fmt: skip

    on_all_cores(run, count)
    means = totals[:, 0] / steps
    usual = burn_in <= max(steps // 10, int(arms.lengths.max()))
    method = f"simulation: {count} runs of {steps:,} steps"
    return LongRun(
        mean=float(means.mean()),
        stderr=float(means.std(ddof=1) / np.sqrt(count)),
        method=method if usual else f"{method} after {burn_in:,}",
    )


def plan_of_runs(
    bandit: RestlessBandit,
    kinds: Kinds,
    lengths: IntArray,
    replications: int | None,
    steps: int | None,
) -> Runs:
    """Return the runs to simulate; raise a `TooLargeError` where no start is forgotten in time."""
    runs = REPLICATIONS if replications is None else checked_count(replications, "replications", 2)
    num_arms = bandit.num_arms
    counting = (
        max(FEW_STEPS, min(MOST_STEPS, ARM_STEPS // (runs * num_arms)))
        if steps is None
        else checked_count(steps, "steps")
    )
    times = [forgetting_time(arm) for arm in kinds.arms]
    slowest = int(np.argmax(times))
    burn_in = max(counting // 10, int(lengths.max()), ceil(FORGOTTEN * times[slowest]))
    affordable = MOST_ARM_STEPS // num_arms
    if replications is not None or steps is not None:
        return Runs(runs, counting, burn_in)
    runs = max(FEW_REPLICATIONS, min(runs, affordable // (burn_in + counting)))
    counting = max(FEWEST_STEPS, min(counting, affordable // runs - burn_in))
    if runs * (burn_in + counting) > affordable:
        raise TooLargeError(
            f"{kinds.labels[slowest]} takes about {times[slowest]:,} steps to forget where it "
            f"started, so that J of {num_arms:,} arms would take {runs} runs of {burn_in:,} steps: "
            "too many to simulate. Pass steps to evaluate to run them all the same"
        )
    return Runs(runs, counting, burn_in)
