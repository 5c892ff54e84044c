"""Colored-UCRL2."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, lgamma, log, prod, sqrt
from typing import ClassVar

import numpy as np
from numpy import log10
from numpy.typing import NDArray

from restive.arguments import checked_count
from restive.errors import TooLargeError
from restive.kernels.learn.learners import colored_ucrl2 as kernels
from restive.kernels.learn.learners.memory import PLANNING, LearnerMemory
from restive.kernels.loop import steps
from restive.learn.learners.base import checked_number, counts_only
from restive.learn.task import Facts

__all__ = ["ColoredUCRL2", "Tables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OUTCOMES = 64  # of all sets of arms, per joint state of `most_states`
MOST_SWEEPS = 10_000
DIGITS = 12  # of numbers that are written in full


@dataclass(frozen=True)
class Tables:
    """Views of a memory: what was counted, and the policy. Changing them changes the memory."""

    before: IntArray  # [C] visits of each colour before the episode
    during: IntArray  # [C] in it
    outcomes: IntArray  # [C, B] how often each state was seen next
    sets: IntArray  # [A, N] sets of arms
    policy: IntArray  # [joint states] which set to pull


@dataclass(frozen=True)
class ColoredUCRL2:
    """Colored-UCRL2 (Ortner, Ryabko, Auer and Munos 2014), optimistic in all arms at once.

    The bandit is a decision process on (last state, age) of all arms, ages from L on being one.
    Pulling an arm of a state and an age has a colour, whatever the other arms are; all arms of age
    L or more share one, whatever their state. What is seen after a colour estimates the law of the
    arm's next state; plausible are the laws within epsilon + sqrt(56 B ln(4 C t / delta) / n) of it
    in L1, for n visits before the episode, which began at t, of C colours, with B the largest
    number of states of an arm. Extended value iteration finds a policy that is best for the best
    plausible laws, to 1 / sqrt(t) (on rewards scaled to [0, 1]). It is played until it would visit
    a colour once more than before the episode. Only small bandits can be played: the joint states
    are a product over the arms.

    Chosen where the paper has no answer or another one:

    * It must know how long arms take to mix (its L is the time to come within epsilon of the
      stationary law, with epsilon = 1 / sqrt(T)). Here nothing is known: L is an option.
    * It plans on the process of all ages up to T, which is far too large; here ages from L on are
      one also where it plans.
    * Its rewards are random and learned. Here they are known functions of the state, so only the
      laws are optimistic, and a reward and the state that pays it hang together.
    * Only pulled arms pay, as in the paper: what they pay while not pulled is not looked at.
    * It pulls one arm. N arms have N colours, and an episode ends with any of them. Of several arms
      the law of each may depend on what was seen of those before it: the best such laws are found
      exactly, and independent laws are among them, so optimism is never lost.
    * A colour that was never seen may have any law, also where a small `scale` would forbid it.
    * Laws are optimistic in each joint state anew, as the paper's constraints are.
    * Value iteration begins at 0 and goes half a step in each sweep, since optimistic chains can be
      periodic. After 10,000 sweeps it ends anyhow. Sets of arms whose values differ by 1e-9 or less
      are equally good; the first in lexicographic order is pulled.

    The radius is wide: with two states, a law is not narrowed at all before some 400 visits.

    Parameters
    ----------
    ages
        L, ages told apart.
    delta
        The chance that the truth is not plausible.
    epsilon
        How far laws of one colour may differ; by default 1 / sqrt(T), or 1 / sqrt(t) where the
        horizon is not known.
    scale
        What the square root is multiplied by. The paper's is 1; less is not backed by its theorem.
    most_states
        Refuse, with a `TooLargeError`, when there are more joint states.
    """

    ages: int = 8
    delta: float = 0.05
    epsilon: float | None = None
    scale: float = 1.0
    most_states: int = 4096

    name: ClassVar[str] = "colored_ucrl2"
    title: ClassVar[str] = "Colored-UCRL2"
    number: ClassVar[int] = steps.COLORED_UCRL2
    narrows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_count(self.ages, "colored_ucrl2: ages", most=10**6)
        checked_number(self.delta, "colored_ucrl2: delta", 1e-12, 1)
        if self.epsilon is not None:
            checked_number(self.epsilon, "colored_ucrl2: epsilon", 0, 2)
        checked_number(self.scale, "colored_ucrl2: scale", 0, 1e6)
        checked_count(self.most_states, "colored_ucrl2: most_states", most=2**22)

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Counts of each colour, sets of arms, a set for each joint state; the hoped-for gain."""
        states = self._num_states(facts)
        num_sets = comb(facts.num_arms, facts.num_pulls)
        tables = self._num_colours(facts) * (2 + _width(facts)) + num_sets * facts.num_pulls
        return kernels.TABLES - kernels.AGES + tables + states, 1

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Nothing was counted; the first episode has to be planned."""
        ints = memory.ints
        ints[kernels.AGES] = self.ages
        ints[kernels.STEP] = 1
        ints[kernels.WIDTH] = _width(facts)
        ints[kernels.COLOURS] = self._num_colours(facts)
        ints[kernels.SETS] = comb(facts.num_arms, facts.num_pulls)
        ints[kernels.STATE] = kernels.joint_state(facts.knowledge, memory, 1)
        ints[PLANNING] = 1
        self.tables(facts, memory).sets[:] = list(
            combinations(range(facts.num_arms), facts.num_pulls)
        )

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Begin an episode: laws and radii from all that was seen, then the best policy."""
        kernels.plan_episode(
            facts.knowledge, memory, facts.num_pulls, self._epsilon(facts, memory), self.delta,
            self.scale, MOST_SWEEPS,
        )  # fmt: skip

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Sizes and sets are as they were, choices are there, the rest hangs together."""
        fixed = [kernels.AGES, kernels.WIDTH, kernels.COLOURS, kernels.SETS]
        tables, first = self.tables(facts, memory), self.tables(facts, fresh)
        return (
            counts_only(memory, plans=True)
            and bool((memory.ints[fixed] == fresh.ints[fixed]).all())
            and bool((tables.sets == first.sets).all())
            and bool((tables.policy < len(tables.sets)).all())
            and bool((tables.outcomes.sum(axis=1) == tables.before + tables.during).all())
            and bool((tables.outcomes[~self._possible(facts)] == 0).all())
            and memory.ints[kernels.STEP] == max(1, 1 + int(memory.seen.max()))
            and memory.ints[kernels.STATE]
            == kernels.joint_state(facts.knowledge, memory, int(memory.ints[kernels.STEP]))
        )

    def _possible(self, facts: Facts) -> NDArray[np.bool_]:
        """Whether [C, B] a colour's arm has a state."""
        sizes = np.repeat(facts.sizes, self._cells(facts))
        return np.asarray(np.arange(_width(facts)) < sizes[:, None])

    def plausible(self, facts: Facts, memory: LearnerMemory) -> tuple[FloatArray, FloatArray]:
        """Return the estimated laws [C, B] and how far others may be from them [C]."""
        return kernels.plausible(
            facts.knowledge, memory, self._epsilon(facts, memory), self.delta, self.scale
        )

    def _epsilon(self, facts: Facts, memory: LearnerMemory) -> float:
        if self.epsilon is not None:
            return float(self.epsilon)
        return 1 / sqrt(facts.horizon or memory.ints[kernels.STEP])

    def tables(self, facts: Facts, memory: LearnerMemory) -> Tables:
        """Return the memory's tables."""
        colours, width = self._num_colours(facts), _width(facts)
        num_sets = comb(facts.num_arms, facts.num_pulls)
        lengths = [colours, colours, colours * width, num_sets * facts.num_pulls]
        before, during, outcomes, sets, policy = np.split(
            memory.ints[kernels.TABLES :], np.cumsum(lengths)
        )
        return Tables(
            before, during, outcomes.reshape(colours, width), sets.reshape(num_sets, -1), policy
        )

    def _cells(self, facts: Facts) -> IntArray:
        """Cells of each arm."""
        return (self.ages - 1) * facts.sizes + 1

    def _num_colours(self, facts: Facts) -> int:
        return int(self._cells(facts).sum())

    def _num_states(self, facts: Facts) -> int:
        """Count the joint states; refuse too many, or too many outcomes in all of them."""
        cells, sizes = self._cells(facts), np.sort(facts.sizes)[-facts.num_pulls :]
        states, outcomes = log10(cells).sum(), log10(sizes).sum()
        choices = _log_choices(facts.num_arms, facts.num_pulls)
        most = OUTCOMES * self.most_states
        within = states <= DIGITS and prod(cells.tolist()) <= self.most_states
        if not within or states + choices + outcomes > log10(most) + 1e-9:
            what = f"{_about(states)} joint states, of at most {self.most_states:,}"
            if within:
                what = f"{_about(states + choices + outcomes)} outcomes, of at most {most:,}"
            raise TooLargeError(
                f"colored_ucrl2 needs {what}: see its options ages ({self.ages}) and most_states"
            )
        return prod(cells.tolist())


def _log_choices(num_arms: int, num_pulls: int) -> float:
    """Decimal logarithm of the number of sets of arms."""
    rest = num_arms - num_pulls
    return (lgamma(num_arms + 1) - lgamma(num_pulls + 1) - lgamma(rest + 1)) / log(10)


def _about(digits: float) -> str:
    """Write the whole number with this decimal logarithm, or its power of ten if it is huge."""
    return f"{round(10**digits):,}" if digits < DIGITS else f"10^{digits:.0f}"


def _width(facts: Facts) -> int:
    """The largest number of states of an arm."""
    return int(facts.sizes.max())
