"""Thompson sampling with Beta posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.kernels.learn.learners.memory import LearnerMemory
from restive.kernels.loop import steps
from restive.learn.learners.base import counts_only
from restive.learn.task import Facts

__all__ = ["BetaBernoulli"]


@dataclass(frozen=True)
class BetaBernoulli:
    """Thompson sampling of independent coins (Agrawal and Goyal 2012), which ignores the states.

    Each arm's mean reward has the prior Beta(1, 1). In every step a mean is drawn from each arm's
    posterior and the N largest are pulled. A reward between 0 and 1 becomes one of the two by the
    toss of a coin with that chance, which is the paper's way with rewards that are not binary; then
    Beta(a, b) becomes Beta(a + 1, b) or Beta(a, b + 1). A phase is a step.

    Read thus: rewards are scaled to [0, 1] by the smallest and the largest reward of any arm. The
    paper has one pull a step; here the N pulls of a step are all learnt from. The lowest arm wins
    ties. What was seen before the first step does not count, nor what arms pay while not pulled.
    """

    name: ClassVar[str] = "beta_bernoulli"
    title: ClassVar[str] = "Beta-Bernoulli Thompson"
    number: ClassVar[int] = steps.BETA_BERNOULLI
    narrows: ClassVar[bool] = True

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Successes and failures of each arm."""
        return 2 * facts.num_arms, 0

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Nothing was pulled."""

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Never asked."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative."""
        return counts_only(memory)
