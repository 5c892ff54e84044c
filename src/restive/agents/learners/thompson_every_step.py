"""Thompson sampling without episodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules

__all__ = ["EveryStep"]


@dataclass(frozen=True)
class EveryStep:
    """Thompson sampling that draws a new system in every step (Thompson 1933)."""

    name: ClassVar[str] = "thompson_every_step"
    title: ClassVar[str] = "Thompson, every step"

    def rules(self, facts: Facts) -> Rules:
        """Episodes of one step."""
        return Rules(length=1, doubling_rule=False)
