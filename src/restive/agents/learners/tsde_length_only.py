"""TSDE without its second rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules

__all__ = ["LengthOnly"]


@dataclass(frozen=True)
class LengthOnly:
    """TSDE whose episodes are each a step longer than the last (its first rule)."""

    name: ClassVar[str] = "tsde_length_only"
    title: ClassVar[str] = "TSDE, length rule only"

    def rules(self, facts: Facts) -> Rules:
        """Counters do not end episodes."""
        return Rules(doubling_rule=False)
