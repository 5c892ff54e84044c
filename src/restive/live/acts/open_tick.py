"""The open tick: what was decided for it, and the results that are coming in."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Choice", "OpenTick"]


@dataclass
class Choice:
    """Arms to pull, and what is expected of them."""

    arms: list[int]  # ascending
    audit: list[int]
    expected: list[float]
    variance: list[float]
    index: list[float | None]


@dataclass
class OpenTick:
    """A decision whose results are coming in."""

    tick: int
    choice: Choice
    results: dict[int, int | str] = field(default_factory=dict)  # states, unseen or not pulled
    instead: dict[int, int] = field(default_factory=dict)  # states of arms that others pulled
    always: tuple[int, ...] = ()  # arms that are seen in every tick, pulled or not
    shown: dict[int, int | str] = field(default_factory=dict)  # of those not pulled; or unseen

    @property
    def missing(self) -> list[int]:
        """Arms without a result: of those on the list, and of those that are always seen."""
        listed = [arm for arm in self.choice.arms if arm not in self.results]
        return listed + self.unshown if self.always else listed

    @property
    def unshown(self) -> list[int]:
        """Arms that are always seen, are not on the list, and have no state yet."""
        listed = set(self.choice.arms)
        return [
            arm
            for arm in self.always
            if arm not in listed and arm not in self.shown and arm not in self.instead
        ]

    @property
    def sightings(self) -> dict[int, int]:
        """All states that were seen, by arm, ascending."""
        told = self.shown | self.instead | self.results
        return {arm: state for arm, state in sorted(told.items()) if isinstance(state, int)}
