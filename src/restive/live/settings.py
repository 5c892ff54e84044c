"""What a live agent is told once, when its file is made."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from restive.arguments import (
    checked_count,
    checked_elapsed,
    checked_seed,
    shown,
    suggestion,
)
from restive.errors import ProblemError
from restive.live.clock import Clock
from restive.plan.policies.registry import policy_mapping

__all__ = ["AS_NOT_PULLED", "LEAVE", "NOT_PULLED", "REFUSE", "UNSEEN", "Settings"]

# Results that are no states.
UNSEEN = "unseen"  # pulled, and what was seen is not known
NOT_PULLED = "not-pulled"
LEAVE = "leave"  # unseen, and the arm leaves for ever

# What happens where pulls stay without a result, for arms that move differently when pulled.
REFUSE, AS_NOT_PULLED = "refuse", "as-not-pulled"


@dataclass(frozen=True)
class Settings:
    """How a live agent works; checked."""

    num_pulls: int
    policy_mapping: str = "whittle"
    clock: Clock = field(default_factory=Clock.calls)
    seed: int = 0
    audit_pulls: int = 0  # of num_pulls, drawn evenly among all arms
    missing: str | None = None
    outcomes: dict[str, int | str] = field(default_factory=dict)  # what files say -> results
    states: tuple[str, ...] = ()  # names of states that files may use too
    mixing_time: int | None = None
    max_elapsed: int | None = None

    def __post_init__(self) -> None:
        checked_count(self.num_pulls, "num_pulls")
        checked_seed(self.seed)
        checked_count(self.audit_pulls, "audit_pulls", 0, self.num_pulls)
        if not isinstance(self.policy_mapping, str):
            raise ProblemError(
                "policy_mapping must be a registered name, which the file can hold; register your "
                "own with register_mapping"
            )
        policy_mapping(self.policy_mapping)
        if not isinstance(self.clock, Clock):
            raise ProblemError(f"clock must be a Clock, got {shown(self.clock)}")
        if self.missing not in (None, REFUSE, AS_NOT_PULLED):
            raise ProblemError(
                f"missing must be {REFUSE!r} or {AS_NOT_PULLED!r}, got {shown(self.missing)}"
            )
        if self.mixing_time is not None:
            checked_count(self.mixing_time, "mixing_time")
        if self.max_elapsed is not None:
            checked_elapsed(self.max_elapsed)
        for word, meaning in self.outcomes.items():
            checked_result(meaning, f"outcome {shown(word)}")

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Settings:
        """Return settings that were written as plain data, or in a TOML file."""
        known = [one.name for one in fields(cls)]
        for key in data:
            if key not in known:
                raise ProblemError(f"settings: there is no {shown(key)}; {suggestion(key, known)}")
        if "num_pulls" not in data:
            raise ProblemError("settings: num_pulls is missing")
        given = dict(data)
        if "clock" in data:
            given["clock"] = Clock.from_data(data["clock"])
        if not isinstance(given.get("outcomes", {}), dict):
            raise ProblemError(f"settings: outcomes must be a table, got {shown(data['outcomes'])}")
        names = given.get("states", ())
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise ProblemError(f"settings: states must be a list of names, got {shown(names)}")
        return cls(**(given | {"states": tuple(names)}))

    def to_data(self) -> dict[str, Any]:
        """Return the settings as plain data."""
        return asdict(self) | {"clock": self.clock.to_data(), "states": list(self.states)}

    def result_of(self, word: str) -> int | str:
        """Return what a cell of a results file means: an outcome, a state's name or its number."""
        if word in self.outcomes:
            return self.outcomes[word]
        if word in self.states:
            return self.states.index(word)
        if word.isdecimal() and len(word) < 10:
            return int(word)
        if word in (UNSEEN, NOT_PULLED):
            return word
        known = [*self.outcomes, *self.states, UNSEEN, NOT_PULLED]
        raise ProblemError(f"unknown outcome {shown(word)}; {suggestion(word, known)}")


def checked_result(value: Any, what: str) -> int | str:
    """Return a state or one of the words that stand for none, or raise."""
    if isinstance(value, str):
        if value not in (UNSEEN, NOT_PULLED, LEAVE):
            raise ProblemError(
                f"{what}: must be a state's number, {UNSEEN!r}, {NOT_PULLED!r} or {LEAVE!r}, got "
                f"{shown(value)}"
            )
        return value
    return checked_count(value, f"{what}: the state", 0)
