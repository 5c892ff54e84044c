"""WIQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.kernels.learn.learners.memory import LearnerMemory
from restive.kernels.loop import steps
from restive.learn.learners.base import counts_only
from restive.learn.task import Facts

__all__ = ["WIQL"]


@dataclass(frozen=True)
class WIQL:
    """Whittle index Q-learning (Biswas, Aggarwal, Varakantham and Tambe 2021), arms always seen.

    Each arm has Q(s, a) of its own, and its index is Q(s, 1) - Q(s, 0). In step t all arms are
    pulled at random with probability K / (K + t); every arm's Q(s, a) moves towards
    r + max Q(s', .) by a share 1 / (n + 1), with n the updates that it has had before: the first
    one replaces it. Values are not discounted, as in the paper, so they grow with time, and so does
    what separates arms that are rarely pulled.
    """

    name: ClassVar[str] = "wiql"
    title: ClassVar[str] = "WIQL"
    number: ClassVar[int] = steps.WIQL
    narrows: ClassVar[bool] = True
    sees: ClassVar[str] = "always"

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Updates and values of each (s, a)."""
        cells = 2 * int(facts.sizes.sum())
        return cells, cells

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """All values are 0."""

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Never asked."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative."""
        return counts_only(memory)
