"""What callers of a live agent hand in, checked: ticks, names of arms, and results by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from restive.arguments import checked_count, shown
from restive.errors import ProblemError

__all__ = ["checked_last_seen", "checked_names", "checked_results", "checked_tick", "plain_number"]


def checked_tick(tick: Any) -> int | None:
    """Return a tick, or None where none was given."""
    return None if tick is None else checked_count(tick, "tick", 0)


def checked_names(arms: Any, what: str) -> list[str]:
    """Return names of arms as texts, or raise."""
    if isinstance(arms, str) or not isinstance(arms, Iterable):
        raise ProblemError(f"{what} must be a list of names, got {shown(arms)}")
    return [_name(name) for name in arms]


def checked_results(results: Any, what: str = "results") -> dict[str, Any]:
    """Return results by name, with numpy's numbers as Python's; values are checked later."""
    if not isinstance(results, Mapping):
        raise ProblemError(f"{what} must be a mapping from arms to states, got {shown(results)}")
    return {_name(name): plain_number(value) for name, value in results.items()}


def checked_last_seen(last_seen: Any, names: Iterable[str]) -> dict[str, tuple[int, int]]:
    """Return state and age by name, or raise."""
    given = checked_results({} if last_seen is None else last_seen, "last_seen")
    joining = set(names)
    found = {}
    for name, pair in given.items():
        if name not in joining:
            raise ProblemError(f"last_seen: arm {shown(name)} does not join")
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise ProblemError(
                f"last_seen: arm {shown(name)} needs (state, ticks ago), got {shown(pair)}"
            )
        state, age = (plain_number(number) for number in pair)
        found[name] = (
            checked_count(state, f"arm {shown(name)}: last state", 0),
            checked_count(age, f"arm {shown(name)}: ticks since it was seen"),
        )
    return found


def _name(name: Any) -> str:
    if type(name) is str:  # the usual case, quickly
        return name
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise ProblemError(f"an arm's name must be a text, got {shown(name)}")
    return str(name)


def plain_number(value: Any) -> Any:
    """Return numpy's numbers as Python's."""
    if type(value) is int:  # the usual case, quickly
        return value
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value
