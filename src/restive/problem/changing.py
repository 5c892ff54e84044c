"""A bandit whose arms change: phases, each with arms of its own, from a first step on.

What changes is how arms move; how many there are, what their states are called and pay, and when
they are seen stays. A step's rewards and the moves that follow it are those of its phase. Slow
drift is many phases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from restive.arguments import MOST, counted, one_line, shown
from restive.errors import ProblemError
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit, require_bandit

__all__ = ["ChangingBandit", "first_phase"]

STAYS = ("rewards", "passive_rewards", "states", "seen")  # of every arm


@dataclass(frozen=True, repr=False, init=False)
class ChangingBandit:
    """A bandit whose arms change at known steps, which no learner is told.

    Parameters
    ----------
    first
        The bandit from step 1 on.
    changes
        Pairs of a step and of the bandit from that step on, in the order of time. All bandits have
        as many arms and pulls; arm k has the same states and rewards in all of them.

    Examples
    --------
    >>> import restive as rs
    >>> before = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.9), rs.gilbert_elliott(0.1, 0.8)], 1)
    >>> after = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.4), rs.gilbert_elliott(0.1, 0.8)], 1)
    >>> rs.types.ChangingBandit(before, [(501, after)])
    ChangingBandit(2 arms, num_pulls=1, changes at step 501)
    """

    bandits: tuple[RestlessBandit, ...]  # of each phase
    begins: tuple[int, ...]  # the first step of each phase; of the first, 1

    def __init__(
        self, first: RestlessBandit, changes: Iterable[tuple[int, RestlessBandit]]
    ) -> None:
        require_bandit(first, "first")
        bandits, begins = [first], [1]
        for at, bandit in _pairs(changes):
            require_bandit(bandit, f"the bandit from step {at!r:.60} on")
            begins.append(checked_step(at, begins[-1]))
            bandits.append(bandit)
            _require_alike(first, bandit, begins[-1])
        if len(bandits) == 1:
            raise ProblemError(
                "changes: none were given; a world that stays as it is is a RestlessBandit"
            )
        object.__setattr__(self, "bandits", tuple(bandits))
        object.__setattr__(self, "begins", tuple(begins))

    @classmethod
    def load(cls, path: str | PathLike[str]) -> ChangingBandit:
        """Read it from a problem file with [[change]] tables; mistakes have their lines."""
        from restive.problem.changing_file import load_changing  # which needs this class

        return load_changing(path)

    @classmethod
    def from_toml(cls, text: str) -> ChangingBandit:
        """Read it from the text of a problem file with [[change]] tables."""
        from restive.problem.changing_file import changing_from_toml

        return changing_from_toml(text)

    def to_toml(self) -> str:
        """Write it as the text of a problem file, which reads back equal."""
        from restive.problem.changing_file import changing_to_toml

        return changing_to_toml(self)

    @property
    def first(self) -> RestlessBandit:
        """The bandit from step 1 on."""
        return self.bandits[0]

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms of the first phase, whose states and rewards are those of all phases."""
        return self.first.arms

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return self.first.num_arms

    @property
    def num_pulls(self) -> int:
        """How many arms are pulled each step."""
        return self.first.num_pulls

    @property
    def changes(self) -> tuple[tuple[int, RestlessBandit], ...]:
        """The step and the bandit of each later phase."""
        return tuple(zip(self.begins[1:], self.bandits[1:], strict=True))

    def label(self, k: int) -> str:
        """How messages call arm k."""
        return self.first.label(k)

    def with_pulls(self, num_pulls: int) -> ChangingBandit:
        """Return the same arms with another number of pulls."""
        later = [(at, RestlessBandit(bandit.arms, num_pulls)) for at, bandit in self.changes]
        return ChangingBandit(RestlessBandit(self.arms, num_pulls), later)

    def __repr__(self) -> str:
        when = f"changes at step {self.begins[1]:,}"
        if len(self.begins) > 2:
            when = f"{len(self.begins) - 1:,} changes from step {self.begins[1]:,} on"
        arms = counted(self.num_arms, "arm")
        return one_line(
            f"ChangingBandit({arms}, num_pulls={self.num_pulls}, {when})", f"ChangingBandit({arms})"
        )


def first_phase(bandit: RestlessBandit | ChangingBandit) -> RestlessBandit:
    """Return the bandit with which a world begins."""
    return bandit.first if isinstance(bandit, ChangingBandit) else bandit


def checked_step(at: Any, before: int) -> int:
    """Return the first step of a phase, or say why it cannot be."""
    if isinstance(at, bool) or not hasattr(at, "__index__") or not 2 <= int(at) <= MOST:
        raise ProblemError(
            f"at must be a whole number from 2 to {MOST:,}, the first step of the new arms, "
            f"got {shown(at)}"
        )
    if int(at) <= before:
        raise ProblemError(f"at must rise from change to change, got {int(at):,} after {before:,}")
    return int(at)


def _pairs(changes: Any) -> Sequence[tuple[Any, Any]]:
    if isinstance(changes, Iterable) and not isinstance(changes, str):
        pairs = list(changes)
        if all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in pairs):
            return pairs
    raise ProblemError(
        f"changes must be a list of pairs of a step and a RestlessBandit, got {shown(changes)}"
    )


def _require_alike(first: RestlessBandit, later: RestlessBandit, at: int) -> None:
    """Raise unless only how arms move has changed."""
    for name in ("num_arms", "num_pulls"):
        was, now = getattr(first, name), getattr(later, name)
        if was != now:
            raise ProblemError(f"from step {at:,} on {name} is {now}, before it is {was}")
    for k, (arm, changed) in enumerate(zip(first.arms, later.arms, strict=True)):
        if arm is changed:
            continue
        for name in STAYS:
            was, now = (_written(getattr(one, name)) for one in (arm, changed))
            if was != now:
                raise ProblemError(
                    f"{first.label(k)}: from step {at:,} on {name} is {now!s:.60}, before it is "
                    f"{was!s:.60}; only how arms move may change"
                )


def _written(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value
