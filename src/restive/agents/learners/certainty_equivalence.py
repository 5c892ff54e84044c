"""Certainty equivalence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules

__all__ = ["CertaintyEquivalence"]


@dataclass(frozen=True)
class CertaintyEquivalence:
    """Plays the policy of the posterior's mode, in every step (Mandl 1974, Kumar 1985).

    Of equally likely candidates it takes the first, so before anything is seen under a uniform
    prior it takes each arm's first candidate. It never explores on purpose.
    """

    name: ClassVar[str] = "certainty_equivalence"
    title: ClassVar[str] = "certainty equivalence"

    def rules(self, facts: Facts) -> Rules:
        """Take the mode anew in every step."""
        return Rules(length=1, doubling_rule=False, most_likely=True)
