"""TSDE itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules

__all__ = ["DynamicEpisodes"]


@dataclass(frozen=True)
class DynamicEpisodes:
    """Thompson sampling with dynamic episodes (Jung, Abeille and Tewari 2019, Algorithm 1)."""

    name: ClassVar[str] = "tsde"
    title: ClassVar[str] = "TSDE"

    def rules(self, facts: Facts) -> Rules:
        """Both rules end episodes."""
        return Rules()
