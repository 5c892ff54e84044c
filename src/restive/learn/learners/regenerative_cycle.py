"""Regenerative cycles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.kernels.learn.learners.memory import LearnerMemory
from restive.kernels.learn.learners.regenerative_cycle import (
    ARMS,
    CYCLE,
    NO_BLOCK,
    PART,
    PER_ARM,
    STATE,
)
from restive.kernels.loop import steps
from restive.learn.learners.base import checked_number, counts_only
from restive.learn.task import Facts

__all__ = ["RegenerativeCycle"]


@dataclass(frozen=True)
class RegenerativeCycle:
    """Regenerative cycle algorithm (Tekin and Liu 2012): RCA, and RCA-M for several pulls.

    An arm is pulled in blocks. A block seeks the arm's regenerative state (SB1), goes on until that
    state is seen again (SB2, a cycle, which begins with the state), and ends with that pull (SB3).
    Only cycles count: put together they are a path of the chain as if it had never been left. An
    arm's index is its mean reward in cycles plus sqrt(L ln t2 / T2), with T2 the steps of its
    cycles and t2 the steps in which any arm was in one. Whenever a block ends, the free arm of the
    largest index begins its next one, while other blocks go on; at first each arm has a block, in
    the arms' order. It learns the best fixed arms, no more: its regret against policies that look
    at states grows linearly. A phase is a block.

    Read thus: an arm's regenerative state is the first in which it is pulled (the paper allows any;
    what was seen before the first step does not count), so its first block has no SB1. The lowest
    arm wins ties. Rewards are scaled to [0, 1] by the smallest and the largest reward of any arm.
    The paper's proof needs an L that is large where chains mix slowly, from bounds on the chains
    that are not known here; far smaller ones do well in experiments. The default is UCB1's. The
    paper's chains are irreducible: a block never ends if its state does not come back. That t2
    counts a step once, however many arms are in their cycles, and that arms without a block come
    first even while others have theirs, are from memory of RCA-M, whose full text was not at hand
    to compare; with one pull both are RCA. What arms pay while not pulled is not looked at.

    Parameters
    ----------
    exploration
        L, for rewards scaled to [0, 1].
    """

    exploration: float = 2.0

    name: ClassVar[str] = "regenerative_cycle"
    title: ClassVar[str] = "regenerative cycles"
    number: ClassVar[int] = steps.REGENERATIVE_CYCLE
    narrows: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_number(self.exploration, "regenerative_cycle: exploration", 0, 1e12)

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Steps in cycles; state, part and length of each arm; their rewards and L."""
        return 1 + 3 * facts.num_arms, facts.num_arms + 1

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Nothing was pulled."""
        memory.floats[facts.num_arms] = self.exploration

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Never asked."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative, states and parts are there, as many blocks as pulls at most."""
        of_arms = memory.ints[ARMS:].reshape(-1, PER_ARM)
        parts = of_arms[:, PART]
        return (
            counts_only(memory)
            and bool((of_arms[:, STATE] <= facts.sizes).all())
            and bool((parts <= CYCLE).all())
            and int((parts != NO_BLOCK).sum()) <= facts.num_pulls
            and memory.floats[-1] == fresh.floats[-1]
        )
