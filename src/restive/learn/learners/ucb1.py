"""UCB1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.kernels.learn.learners.memory import LearnerMemory
from restive.kernels.loop import steps
from restive.learn.learners.base import counts_only
from restive.learn.task import Facts

__all__ = ["UCB1"]


@dataclass(frozen=True)
class UCB1:
    """UCB1 (Auer, Cesa-Bianchi and Fischer 2002), which ignores the arms' states.

    An arm's index is the mean of its rewards plus sqrt(2 ln t / pulls); the N largest are pulled,
    the lowest arm wins ties, arms that were never pulled come first. Rewards are scaled to [0, 1]
    by the smallest and the largest reward of any arm. The paper has one pull a step; N pulls are
    the N largest indices (Anantharam, Varaiya and Walrand 1987), t counts steps, not pulls. It sees
    only what pulled arms pay.
    """

    name: ClassVar[str] = "ucb1"
    title: ClassVar[str] = "UCB1"
    number: ClassVar[int] = steps.UCB1
    narrows: ClassVar[bool] = True

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Pulls and rewards of each arm."""
        return facts.num_arms, facts.num_arms

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Nothing was pulled."""

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Never asked."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative."""
        return counts_only(memory)
