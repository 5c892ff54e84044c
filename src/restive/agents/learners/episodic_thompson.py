"""Thompson sampling with episodes of one length."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, sqrt
from typing import ClassVar

from restive.agents.learners.base import Facts, Rules
from restive.arguments import checked_count

__all__ = ["EpisodicThompson"]


@dataclass(frozen=True)
class EpisodicThompson:
    """Thompson sampling with episodes of one length (Jung and Tewari 2019), without resets.

    Their episodes are part of the problem: each begins in the same state anew. Here nothing is ever
    reset; only the draw is renewed. Their analysis leaves the length to the problem; by default it
    is sqrt(T), rounded up, so that there are as many episodes as they have steps (50 where the
    horizon is not known; the epochs of the doubling trick then cut episodes short).

    Parameters
    ----------
    length
        Steps of an episode.
    """

    length: int | None = None

    name: ClassVar[str] = "episodic_thompson"
    title: ClassVar[str] = "episodic Thompson"

    def __post_init__(self) -> None:
        if self.length is not None:
            checked_count(self.length, "episodic_thompson: length")

    def rules(self, facts: Facts) -> Rules:
        """Episodes of a fixed length."""
        default = 50 if facts.horizon is None else ceil(sqrt(facts.horizon))
        return Rules(length=self.length or default, doubling_rule=False)
