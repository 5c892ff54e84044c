"""What a learner is made of.

A learner is a frozen dataclass whose fields are its options. It either has `rules`, and is a
relative of TSDE that runs in TSDE's own kernels, or it is `Compiled`: it has a number in
`kernels.learners.play` and says how much it must remember.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.learners.memory import Knowledge, Memory

__all__ = ["Compiled", "Facts", "Learner", "Relative", "Rules", "checked_number"]

NEVER = np.iinfo(np.int64).max >> 1  # steps


@dataclass(frozen=True)
class Facts:
    """What a learner is told beforehand: nothing of the transition probabilities."""

    rewards: tuple[NDArray[np.float64], ...]  # [K][S] of each arm's states
    num_pulls: int
    horizon: int | None

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.rewards)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of states of each arm."""
        return self.knowledge.sizes

    @cached_property
    def knowledge(self) -> Knowledge:
        """What kernels are told of the arms."""
        sizes = np.array([len(rewards) for rewards in self.rewards], dtype=np.int64)
        flat = np.concatenate(self.rewards)
        low, high = float(flat.min()), float(flat.max())
        shares = (flat - low) / (high - low) if high > low else np.zeros_like(flat)
        return Knowledge(sizes, np.cumsum(sizes) - sizes, flat, shares)

    def known_horizon(self, learner: str) -> int:
        """Return the horizon, for a learner that needs one."""
        if self.horizon is None:
            raise ProblemError(f"the learner {learner} needs a horizon")
        return self.horizon


@dataclass(frozen=True)
class Rules:
    """How a relative of TSDE differs from it; the defaults are TSDE itself."""

    length: int | None = None  # of every episode; None for rule 1, one more than the last
    length_rule: bool = True  # whether the length ends episodes at all
    doubling_rule: bool = True  # whether a counter that more than doubled does (rule 2)
    most_likely: bool = False  # take the posterior's mode instead of a draw from it
    exploring: float = 0.0  # share of steps in which arms are pulled at random

    def as_numbers(self) -> NDArray[np.int64]:
        """Return them as `LearnerState.rules` holds them."""
        limit = -1 if self.length is None else self.length - 1
        if not self.length_rule:
            limit = NEVER
        exploring = round(self.exploring * 2**53)
        return np.array([limit, self.doubling_rule, self.most_likely, exploring], dtype=np.int64)


@runtime_checkable
class Relative(Protocol):
    """A relative of TSDE."""

    name: ClassVar[str]
    title: ClassVar[str]

    def rules(self, facts: Facts) -> Rules:
        """Return how it differs."""


@runtime_checkable
class Compiled(Protocol):
    """A learner with kernels of its own."""

    name: ClassVar[str]
    title: ClassVar[str]
    number: ClassVar[int]  # in kernels.learners.play

    def room(self, facts: Facts) -> tuple[int, int]:
        """Return how many whole numbers and floats it remembers, beyond what all do."""

    def begin(self, facts: Facts, memory: Memory) -> None:
        """Write what it begins with into a memory of zeros."""

    def plan(self, facts: Facts, memory: Memory) -> None:
        """Do what takes more than a step; called when the memory asks for it (PLANNING)."""


Learner = Relative | Compiled


def checked_number(value: Any, what: str, low: float, high: float) -> None:
    """Raise unless a value is a number between two others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ProblemError(f"{what} must be a number from {low:g} to {high:g}, got {value!r:.60}")
