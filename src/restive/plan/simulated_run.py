"""The average reward of an index policy by simulation: many independent runs.

A run starts somewhere and must forget that before it counts. Arms forget at the pace of their
chains, pulled or not, so the slowest arm says how many steps of a run do not count; where that is
more than can be simulated there is no number.

Arms that pay while not pulled have two estimates, with the same luck: what they pay (the plain
one), and what they pay once reduced to arms that pay for pulls alone. In the long run both have the
mean J, so with any weight w that does not depend on the run, reduced + w (plain - reduced) has it
too. How much less noise either has is up to the policy, so each run takes the w that would have
left the other runs the least variance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed
from restive.errors import TooLargeError
from restive.kernels.loop.tables import BeliefTables, RankTables
from restive.plan.actors import earned_by_policy
from restive.problem.bandit import Kinds, RestlessBandit, computed_once, kinds_of
from restive.problem.beliefs import BeliefState, belief_tables
from restive.problem.chains import forgetting_time
from restive.problem.reduction import reduce_kinds
from restive.threads import on_all_cores

__all__ = [
    "FEWEST_STEPS",
    "FORGOTTEN",
    "Runs",
    "SimulatedRun",
    "plan_of_runs",
    "simulated_reward",
    "slowest_arm",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REPLICATIONS = 64
FEW_REPLICATIONS = 8  # of bandits so large that a step averages over very many pulls
MOST_STEPS = 50_000  # that count, by default
FEW_STEPS = 200
FEWEST_STEPS = 20
ARM_STEPS = 200_000_000  # that count, over all arms and runs, by default
MOST_ARM_STEPS = 1_000_000_000  # of the default, with those that do not count: some seconds
FEWEST_FOR_WEIGHTS = 4  # runs
ROUNDING = 1e-18  # variance between the two estimates of a run, as a share of their own
FORGOTTEN = 10  # forgetting times after which the start no longer counts: to about 1e-6


class Paid(NamedTuple):
    """The kinds of arms as they are simulated."""

    of: NDArray[np.intp]  # [K] the kind of each arm
    reduced: BeliefTables  # paid for pulls alone
    plain: BeliefTables | None  # as they are; None where they are paid for pulls alone
    own_reward: float  # what all arms earn per step beside the reduced rewards


def paid_arms(bandit: RestlessBandit, lengths: IntArray) -> Paid:
    """Tables of a bandit's kinds of arms, with so many ages."""
    kinds = kinds_of(bandit)
    reduced = reduce_kinds(kinds)
    always = any(arm.pays_unpulled for arm in kinds.arms)
    return Paid(
        kinds.of,
        belief_tables(reduced.kinds.arms, lengths),
        belief_tables(kinds.arms, lengths) if always else None,
        reduced.own_reward,
    )


@dataclass(frozen=True)
class SimulatedRun:
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
    paid: Paid,
    ranked: RankTables,
    ranked_kinds: NDArray[np.intp],
    start: BeliefState,
    runs: Runs,
    seed: int,
) -> SimulatedRun:
    """Simulate an index policy, given by ranks and by which of their tables each arm has.

    Luck is a function of (seed, run, time, arm), so that policies that are compared with the same
    seed and runs meet the same.
    """
    seed = checked_seed(seed)
    count, steps, burn_in = runs
    times = np.array([burn_in, burn_in + steps])

    def per_step(arms: BeliefTables) -> FloatArray:
        earned = np.empty((count, 2))

        def run(replication: int) -> None:
            earned[replication] = earned_by_policy(
                ranked, ranked_kinds, bandit.num_pulls, arms, paid.of, start, times, seed,
                replication,
            )  # fmt: skip

        on_all_cores(run, count, at_once=1)
        return np.asarray(np.diff(earned)[:, 0] / steps)

    means = per_step(paid.reduced) + paid.own_reward
    if paid.plain is not None:
        means = with_least_noise(means, per_step(paid.plain))
    usual = burn_in == max(steps // 10, int(paid.reduced.lengths.max()))
    method = f"simulation: {count} runs of {steps:,} steps"
    return SimulatedRun(
        mean=float(means.mean()),
        stderr=float(means.std(ddof=1) / np.sqrt(count)),
        method=method if usual else f"{method} after {burn_in:,}",
    )


def with_least_noise(reduced: FloatArray, plain: FloatArray) -> FloatArray:
    """Combine two estimates [R] of each run with the weight that is best for the other runs.

    Of fewer than four runs no good weight can be found from the others: it is the plain one.
    """
    count, between = len(plain), plain - reduced
    if count < FEWEST_FOR_WEIGHTS:
        return plain
    one, other = plain - plain.mean(), between - between.mean()
    # sums over the other runs, whose mean is that of all less this run's share
    shared = (one * other).sum() - one * other * count / (count - 1)
    alone = (other**2).sum() - other**2 * count / (count - 1)
    weights = np.divide(shared, alone, out=np.zeros(count), where=alone > ROUNDING * (one**2).sum())
    return np.asarray(plain - weights * between)


@computed_once
def slowest_arm(kinds: Kinds) -> tuple[int, str]:
    """Return how long the slowest arm takes to forget where it started, and what it is called."""
    times = [forgetting_time(arm) for arm in kinds.arms]
    slowest = int(np.argmax(times))
    return times[slowest], kinds.labels[slowest]


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
    burn_in = max(counting // 10, int(lengths.max()))
    if steps is not None:
        return Runs(runs, counting, burn_in)
    longest, slowest = slowest_arm(kinds)
    if FORGOTTEN * longest > burn_in:
        burn_in = FORGOTTEN * longest
        counting = max(counting, burn_in)  # a run that never sees the arm move says little
    affordable = MOST_ARM_STEPS // num_arms
    if replications is None:
        runs = max(FEW_REPLICATIONS, min(runs, affordable // (burn_in + counting)))
    counting = max(FEWEST_STEPS, min(counting, affordable // runs - burn_in))
    if runs * (burn_in + counting) > affordable:
        raise TooLargeError(
            f"{slowest} takes about {longest:,} steps to forget where it started, so that J of "
            f"{num_arms:,} arms takes {runs} runs of {burn_in:,} steps and more, too many to "
            "simulate; pass steps to evaluate for what is earned in so many steps"
        )
    return Runs(runs, counting, burn_in)
