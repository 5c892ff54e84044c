"""Epsilon-greedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules, checked_number

__all__ = ["EpsilonGreedy"]


@dataclass(frozen=True)
class EpsilonGreedy:
    """Certainty equivalence that pulls arms at random in a share of the steps (Watkins 1989).

    In such a step all N arms are random, each set of N equally likely.

    Parameters
    ----------
    epsilon
        The share of random steps.
    """

    epsilon: float = 0.05

    name: ClassVar[str] = "epsilon_greedy"
    title: ClassVar[str] = "epsilon-greedy"

    def __post_init__(self) -> None:
        checked_number(self.epsilon, "epsilon_greedy: epsilon", 0, 1)

    def rules(self, facts: Facts) -> Rules:
        """Take the mode anew in every step, but for some."""
        return Rules(length=1, doubling_rule=False, most_likely=True, exploring=self.epsilon)
