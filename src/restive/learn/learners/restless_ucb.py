"""Restless-UCB."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST_ELAPSED, checked_count, require_memory
from restive.errors import RestiveError
from restive.kernels.learn.learners.memory import PHASES, PLANNING, LearnerMemory
from restive.kernels.learn.learners.restless_ucb import AGES, LACKING, UNFINISHED, WANTED, WIDTH
from restive.kernels.loop import steps
from restive.learn.learners.base import checked_number, counts_only
from restive.learn.task import Facts
from restive.plan.policies.base import tied_ranks
from restive.plan.policies.whittle import channel_indices, whittle_table
from restive.problem.arm import Arm
from restive.problem.chains import communicating_classes, period

__all__ = ["RestlessUCB", "optimistic_matrix", "planned_channels", "planned_table"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Shares of the uniform law that are tried, in this order, until the index exists.
BLENDS = (0.0, 1e-6, 1e-3, 0.1, 1.0)


@dataclass(frozen=True)
class RestlessUCB:
    """Restless-UCB (Wang, Huang and Lui 2020): explore, then commit to an optimistic system.

    Each arm in turn is pulled until m transitions out of each of its states were seen, a transition
    being two pulls in successive steps. From the counts an optimistic chain is made of each arm,
    and for the rest of the horizon T an offline policy of these chains is played: here the
    Whittle index policy, which the paper allows as an oracle though it is not optimal.

    The paper proves a regret of order T^(2/3), up to logarithms, for ergodic birth-death chains
    that move alike pulled or not and whose rewards grow with the state. By default m is T^(2/3),
    rounded up, and the radius sqrt(ln T / (2 m)), beyond which by Hoeffding's inequality an
    estimate errs with probability 2 / T at most. Only the paper's abstract and introduction were
    at hand: m and the exact form of the optimism are from memory of the rest.

    *Optimism.* Order an arm's states by reward, equal ones by number. From each state, a
    probability of `radius` is taken from the worst states that may follow, as far as there is
    any, and given to the best that may. This is the next better state than the present one, or
    the best that was seen to follow if that is better still. On birth-death chains this is the
    paper's way: the step up gains the radius and the step down loses it; of two states p01 and p11
    gain it, up to 1. The guarantee covers birth-death chains only.

    Choices that the paper leaves open:

    * N pulls a step explore N arms side by side; an arm that is done makes room for the next.
      Where fewer than N are left, the other pulls go to the first arms, and count as well.
    * Rewards are known here: they are neither estimated nor raised.
    * Arms are taken to move alike pulled or not. Successive pulls show how an arm moves when it is
      pulled; where it moves otherwise when not, the learner is simply wrong.
    * What arms pay while not pulled is not looked at: it would be all that counts where arms move
      alike, and the paper has no such rewards.
    * The state in which an arm was seen before the first step is no observation.
    * Where the optimistic chain is reducible (by a clipped probability), is periodic or has no
      index, it is blended with as much of the uniform law as it takes, of 1e-6, 1e-3, 0.1 and 1.
    * Ties, also of values equal up to rounding, go to the lowest arm, as in every index policy.
    * Nothing is learnt after the exploration. Exploration of a state that is hardly ever
      reached may well last until the end of the horizon.

    The horizon must be known.

    Parameters
    ----------
    exploration
        Transitions out of each state, m.
    scale
        Multiplies the radius; 0 plays the estimated chains as they are.
    max_age
        Ages told apart by the index; an arm that was not seen for longer is treated as one of this
        age.
    """

    exploration: int | None = None
    scale: float = 1.0
    max_age: int = 100

    name: ClassVar[str] = "restless_ucb"
    title: ClassVar[str] = "Restless-UCB"
    number: ClassVar[int] = steps.RESTLESS_UCB
    narrows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.exploration is not None:
            checked_count(self.exploration, "restless_ucb: exploration")
        checked_number(self.scale, "restless_ucb: scale", 0, 1000)
        checked_count(self.max_age, "restless_ucb: max_age", most=MOST_ELAPSED)

    def wanted(self, facts: Facts) -> int:
        """Transitions out of each state that the exploration must see, m."""
        horizon = facts.known_horizon(self.name)
        return self.exploration or _two_thirds_power(horizon)

    def radius(self, facts: Facts) -> float:
        """How much probability is moved to better states."""
        return self.scale * sqrt(log(facts.known_horizon(self.name)) / (2 * self.wanted(facts)))

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Counts of transitions, and later ranks of indices."""
        sizes = facts.sizes
        rows, width = int(sizes.sum()), int(sizes.max())
        require_memory(
            8 * rows * (self.max_age + width), "restless_ucb: its tables", "use a smaller max_age"
        )
        first_numbers = 4
        return first_numbers + facts.num_arms + rows + rows * width, rows * self.max_age

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Begin to explore."""
        sizes = facts.sizes
        memory.ints[PHASES] = 1
        memory.ints[WANTED] = self.wanted(facts)
        memory.ints[UNFINISHED] = facts.num_arms
        memory.ints[WIDTH] = sizes.max()
        memory.ints[AGES] = self.max_age
        memory.ints[LACKING : LACKING + facts.num_arms] = sizes

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Rank the indices of the optimistic arms: the exploitation begins."""
        if (facts.sizes == 2).all():
            counts = self.counts(facts, memory).reshape(-1, 2, 2)
            rewards = facts.knowledge.rewards.reshape(-1, 2)
            values = planned_channels(counts, rewards, self.radius(facts), self.max_age).ravel()
        else:
            arms = self.optimistic_arms(facts, memory)
            values = np.concatenate([planned_table(arm, self.max_age).ravel() for arm in arms])
        memory.floats[:] = tied_ranks(values)
        memory.ints[PLANNING] = 0
        memory.ints[PHASES] += 1

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Sizes are as they were, and what is lacking follows from the counts."""
        fixed = [WANTED, WIDTH, AGES]
        same = bool((memory.ints[fixed] == fresh.ints[fixed]).all())
        if not (same and counts_only(memory, plans=True)):
            return False
        first, rows = LACKING + facts.num_arms, len(facts.knowledge.rewards)
        totals = memory.ints[first : first + rows]
        lacking = np.add.reduceat(totals < memory.ints[WANTED], facts.knowledge.reward_offsets)
        return (
            bool((self.counts(facts, memory).sum(axis=1) == totals).all())
            and bool((memory.ints[LACKING:first] == lacking).all())
            and memory.ints[UNFINISHED] == (lacking > 0).sum()
            and memory.ints[PLANNING] <= (memory.ints[UNFINISHED] == 0)
        )

    def optimistic_arms(self, facts: Facts, memory: LearnerMemory) -> list[Arm]:
        """Return the arms as they are planned for, from the counts in a memory."""
        radius = self.radius(facts)
        counts = np.split(self.counts(facts, memory), facts.knowledge.reward_offsets[1:])
        return [
            Arm(optimistic_matrix(rows[:, : len(rows)], rewards, radius), rewards=rewards)
            for rows, rewards in zip(counts, facts.rewards, strict=True)
        ]

    def counts(self, facts: Facts, memory: LearnerMemory) -> IntArray:
        """Return how often each state of all arms, end to end, was followed by each of its arm."""
        begin = LACKING + facts.num_arms + len(facts.knowledge.rewards)
        return memory.ints[begin:].reshape(-1, int(memory.ints[WIDTH]))


def optimistic_matrix(counts: IntArray, rewards: FloatArray, radius: float) -> FloatArray:
    """Chain [S, S] that moves `radius` more probability to better states than was counted.

    Parameters
    ----------
    counts
        Transitions [S, S] seen from each state to each; from every state some.
    rewards
        Reward [S] of each state: what "better" means.
    radius
        Probability to move.
    """
    order = np.argsort(rewards, kind="stable")
    size = len(order)
    matrix = np.zeros((size, size))
    for rank, state in enumerate(order):
        seen = counts[state, order]
        best = max(min(rank + 1, size - 1), int(np.flatnonzero(seen)[-1]))
        # chance that the next state is at least as good as each of those that may follow
        at_least = np.cumsum(seen[::-1])[::-1][: best + 1] / seen.sum()
        raised = np.minimum(1.0, at_least + radius)
        matrix[state, order[: best + 1]] = raised - np.append(raised[1:], 0.0)
    return matrix


def planned_table(arm: Arm, max_age: int) -> FloatArray:
    """Index table [S, max_age] of an arm, blended with the uniform law where it needs that."""
    for blend in BLENDS:
        matrix = (1 - blend) * arm.active + blend / arm.num_states
        if len(communicating_classes(matrix)) > 1 or period(matrix) > 1:
            continue
        try:
            return whittle_table(Arm(matrix, rewards=arm.rewards), max_age)
        except RestiveError:
            continue
    raise AssertionError("an arm without memory has an index")


def planned_channels(
    counts: IntArray, rewards: FloatArray, radius: float, max_age: int
) -> FloatArray:
    """Index tables [K, 2, max_age] of two-state arms, all at once.

    They are those of `planned_table` for the `optimistic_matrix` of each arm, to the bit.

    Parameters
    ----------
    counts
        Transitions [K, 2, 2] of each arm from each state to each.
    rewards
        Rewards [K, 2].
    radius
        Probability to move.
    max_age
        Number of ages.
    """
    order = np.argsort(rewards, axis=1, kind="stable")  # the bad state, then the good one
    arms = np.arange(len(order))[:, None]
    ordered = counts[arms[:, None], order[:, :, None], order[:, None, :]]
    p01, p11 = np.minimum(1.0, ordered[:, :, 1] / ordered.sum(axis=2) + radius).T
    no_index = (p01 == 0) | (p11 == 1) | ((p01 == 1) & (p11 == 0))  # reducible or periodic
    blend = np.where(no_index, BLENDS[1], 0.0)
    p01, p11 = ((1 - blend) * chance + blend / 2 for chance in (p01, p11))
    low, high = (rewards[arms, order].T)[:, :, None, None]
    tables: FloatArray = low + (high - low) * channel_indices(p01, p11, max_age)
    return tables[arms, order]


def _two_thirds_power(horizon: int) -> int:
    """Return T^(2/3) rounded up, exactly."""
    root: int = round(horizon ** (2 / 3))
    while root**3 < horizon**2:
        root += 1
    while (root - 1) ** 3 >= horizon**2:
        root -= 1
    return root
