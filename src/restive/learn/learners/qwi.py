"""QWI."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.kernels.learn.learners.memory import LearnerMemory
from restive.kernels.loop import steps
from restive.learn.learners.base import counts_only
from restive.learn.task import Facts

__all__ = ["QWI"]


@dataclass(frozen=True)
class QWI:
    """Q-learning for Whittle indices (Avrachenkov and Borkar 2022), for arms that are always seen.

    Each state h of an arm has an index lambda_h and values Q_h(s, a) of its own, learned on two
    time scales. After a step from s to s', by relative value iteration,

        Q_h(s, a) += .1 / ceil(n / 500) (r + (1 - a) lambda_h
                                         + max Q_h(s', .) - mean Q_h - Q_h(s, a)),

    with n the visits to (s, a); and in every K-th step

        lambda_h += .2 / (1 + ceil(t ln t / 500)) (Q_h(h, 1) - Q_h(h, 0)).

    The N largest lambda of the arms' states are pulled, in a tenth of the steps arms at random.
    Every arm is learned by itself, also where several are alike.
    """

    name: ClassVar[str] = "qwi"
    title: ClassVar[str] = "QWI"
    number: ClassVar[int] = steps.QWI
    narrows: ClassVar[bool] = True
    sees: ClassVar[str] = "always"

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Visits of each (s, a); Q_h(s, a) and lambda_h."""
        sizes = facts.sizes
        return 2 * int(sizes.sum()), int((2 * sizes * sizes).sum() + sizes.sum())

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """All values are 0."""

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Never asked."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative."""
        return counts_only(memory)
