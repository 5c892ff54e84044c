"""TSDE without its first rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules

__all__ = ["DoublingOnly"]


@dataclass(frozen=True)
class DoublingOnly:
    """TSDE whose episodes end only when a counter has more than doubled (its second rule)."""

    name: ClassVar[str] = "tsde_doubling_only"
    title: ClassVar[str] = "TSDE, doubling rule only"

    def rules(self, facts: Facts) -> Rules:
        """Episodes have no longest length."""
        return Rules(length_rule=False)
