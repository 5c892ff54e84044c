"""[[arm]] tables of problems and studies: read with every mistake named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from restive.arguments import MOST_ARMS, checked_count, suggestion
from restive.errors import ProblemError
from restive.problem.arm import (
    SEEN,
    Arm,
    arm_rewards,
    checked_seen,
    gilbert_elliott,
    probability,
    state_names,
    stochastic_matrix,
)

__all__ = [
    "ARM_KEYS",
    "MATRIX_KEYS",
    "SHORT_KEYS",
    "ArmReader",
    "checked_num_arms",
    "read_arm",
    "read_arms",
    "refuse_unknown_keys",
    "unknown_keys",
]

SHORT_KEYS, MATRIX_KEYS = ("p01", "p11"), ("active", "passive")
REWARD_KEYS = ("rewards", "passive_rewards")
NUMBER_KEYS = (*SHORT_KEYS, *MATRIX_KEYS, *REWARD_KEYS)
ARM_KEYS = ("name", "count", *NUMBER_KEYS, "states", "seen")
NAMED = "arm"  # how the checks of an arm begin their messages


def read_arms(
    tables: Iterable[dict[str, Any]],
    always: bool = False,
    states: Sequence[str] | None = None,
    seen: str | None = None,
) -> list[Arm]:
    """Read [[arm]] tables; a table with a `count` is as many arms."""
    arms: list[Arm] = []
    for place, table in enumerate(tables):
        arm, count = read_arm(table, f"[[arm]] number {place + 1}", always, states, seen)
        checked_num_arms(len(arms) + count)
        arms.extend([arm] * count)
    return arms


def checked_num_arms(count: int) -> None:
    """Raise for more arms than anybody has."""
    checked_count(count, "the number of arms in all", most=MOST_ARMS)


def read_arm(
    table: dict[str, Any],
    place: str,
    always: bool = False,
    states: Sequence[str] | None = None,
    seen: str | None = None,
) -> tuple[Arm, int]:
    """Read one [[arm]] table: the arm and its count; `place` is how errors name it.

    With `always` an arm pays its rewards also while not pulled, unless it has `passive_rewards`.
    `states` are the names of its states and `seen` is when it is seen, unless it has its own.
    """
    reader = ArmReader(table, always, states, seen)
    if reader.arm is None:
        words = "; ".join(words for _, words in reader.mistakes)
        raise ProblemError(f"{place}{reader.named}: {words}")
    return reader.arm, reader.count


def refuse_unknown_keys(data: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Raise for the first key that is not `known`, suggesting the nearest one that is."""
    for _, words in unknown_keys(data, known):
        raise ProblemError(f"{place}: {words}")


def unknown_keys(data: Mapping[str, Any], known: Iterable[str]) -> list[tuple[str, str]]:
    """Return the keys that are not `known`, each with the nearest one that is."""
    known = tuple(known)
    return [
        (key, f"unknown key {key!r}; {suggestion(key, known)}") for key in data if key not in known
    ]


class ArmReader:
    """An [[arm]] table: its arm, or all that is wrong with it by key (None: the whole table)."""

    def __init__(
        self,
        table: dict[str, Any],
        always: bool = False,
        states: Sequence[str] | None = None,
        seen: str | None = None,
    ) -> None:
        self.mistakes: list[tuple[str | None, str]] = [*unknown_keys(table, ARM_KEYS)]
        self.count: int = table.get("count", 1)
        self.arm: Arm | None = None
        self._table = table
        self._short = [key for key in SHORT_KEYS if key in table]
        self._check_keys()
        size = self._check_numbers()
        names = self._check_names(size, states)
        own = table.get("seen", SEEN[0] if seen is None else seen)
        self._try("seen", checked_seen, own, NAMED)
        if not self.mistakes:
            self._try("active", self._make, always, names, own)

    @property
    def named(self) -> str:
        """The arm's name, to be put behind its place."""
        name = self._table.get("name")
        return f" ({name!r})" if isinstance(name, str) else ""

    def _check_keys(self) -> None:
        name, count = self._table.get("name"), self.count
        if name is not None and not isinstance(name, str):
            self.mistakes.append(("name", f"name must be text, got {name!r:.60}"))
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            words = f"count must be a whole number of at least 1, got {count!r:.60}"
            self.mistakes.append(("count", words))
        full = [key for key in MATRIX_KEYS if key in self._table]
        if self._short and full:
            words = f"give {self._short[0]} or {full[0]}, not both"
            self.mistakes.append((full[0], words))
        elif len(self._short) == 1:
            missing = "p11" if self._short == ["p01"] else "p01"
            self.mistakes.append((None, f"{self._short[0]} is given without {missing}"))
        elif not self._short and "active" not in self._table:
            self.mistakes.append((None, "needs p01 and p11, or active and rewards"))

    def _check_numbers(self) -> int | None:
        """Check all numbers; return how many states there are, where that can be said."""
        sizes = [2] if self._short else []
        for key in NUMBER_KEYS:
            value = self._table.get(key)
            if value is None:
                continue
            wrong = _first_that_is_no_number(value)
            if wrong is not None:
                what = "a number" if key in SHORT_KEYS else "numbers in a regular array"
                self.mistakes.append((key, f"{key} must be {what}, got {wrong!r:.60}"))
            elif key in SHORT_KEYS:
                self._try(key, probability, value, NAMED, key)
            elif key in MATRIX_KEYS:
                matrix = self._try(key, stochastic_matrix, value, NAMED, key)
                sizes += [] if matrix is None else [len(matrix)]
            elif sizes:
                self._try(key, arm_rewards, value, sizes[0], NAMED, key)
        return sizes[0] if sizes else None

    def _check_names(self, size: int | None, shared: Sequence[str] | None) -> Any:
        """Return the names of the states."""
        own = self._table.get("states")
        if own is not None:
            return self._try("states", state_names, own, size, NAMED)
        if shared is not None and size not in (None, len(shared)):
            words = (
                f"has {size} states, the problem names {len(shared)} ({', '.join(shared)}); give "
                "this arm states = [...] of its own"
            )
            self.mistakes.append((None, words))
        return shared

    def _make(self, always: bool, names: Sequence[str] | None, seen: str) -> None:
        fields = {key: self._table[key] for key in ("name", *NUMBER_KEYS) if key in self._table}
        if always:
            rewards = fields.get("rewards", (0.0, 1.0) if self._short else None)
            fields.setdefault("passive_rewards", rewards)
        make = gilbert_elliott if self._short else Arm
        self.arm = make(**fields, states=names, seen=seen)

    def _try(self, key: str, check: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a check returns; what it refuses is a mistake at this key."""
        try:
            return check(*arguments)
        except ProblemError as error:
            name = self._table.get("name")
            own = f"{NAMED} {name!r}: "  # how the constructor calls an arm that has a name
            self.mistakes.append((key, str(error).removeprefix(own).removeprefix(f"{NAMED}: ")))
            return None


def _first_that_is_no_number(value: Any) -> Any:
    if isinstance(value, list):
        found = (_first_that_is_no_number(item) for item in value)
        return next((item for item in found if item is not None), None)
    return None if isinstance(value, int | float) and not isinstance(value, bool) else value
