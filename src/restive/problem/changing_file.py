"""[[change]] tables of problem files: the arms that differ from some step on.

Behind the arms of the problem, in the order of time::

    [[change]]
    at = 5_001                # the first step of the new arms
    [[change.arm]]
    arms = [0, 3]             # which arms, by number from 0; the others stay as they are
    p01 = 0.2                 # how they move, as in [[arm]]: p01 and p11, or active and passive
    p11 = 0.6

What they pay, their names and when they are seen stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from os import PathLike
from typing import Any

from restive.errors import ProblemError
from restive.problem.arm import Arm
from restive.problem.arm_tables import MATRIX_KEYS, SHORT_KEYS, ArmReader, unknown_keys
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit, checked_step
from restive.problem.problem_file import problem_from_data, problem_to_toml
from restive.problem.toml_text import line_of, parse_toml, read_text, toml_of

__all__ = [
    "ChangeReader",
    "changing_from_toml",
    "changing_to_toml",
    "load_any_problem",
    "load_changing",
    "tables_of_changes",
]

CHANGE_KEYS = ("at", "arm")
MOVES = (*SHORT_KEYS, *MATRIX_KEYS)
NO_CHANGE = "there is no [[change]]: read it with load_problem"
Place = tuple[str | int, ...]


def load_changing(path: str | PathLike[str]) -> ChangingBandit:
    """Read a problem with [[change]] tables; mistakes in them are reported with their lines."""
    found = load_any_problem(path)
    if not isinstance(found, ChangingBandit):
        raise ProblemError(f"{path}: {NO_CHANGE}")
    return found


def load_any_problem(path: str | PathLike[str]) -> RestlessBandit | ChangingBandit:
    """Read a problem that may have [[change]] tables."""
    text = read_text(path)
    try:
        if "change" in parse_toml(text):
            return changing_from_toml(text)
        return RestlessBandit.from_toml(text)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def changing_from_toml(text: str) -> ChangingBandit:
    """Read it from TOML text; see the module's docstring for the format."""
    data = parse_toml(text)
    if "change" not in data:
        raise ProblemError(NO_CHANGE)
    first = problem_from_data({key: data[key] for key in data if key != "change"}, text)
    found = ChangeReader(first, data["change"])
    if found.mistakes:
        count = [f"{len(found.mistakes)} mistakes"] if len(found.mistakes) > 1 else []
        placed = (_placed(text, place, words) for place, words in found.mistakes)
        raise ProblemError("\n  ".join([*count, *placed]))
    return ChangingBandit(first, found.changes)


def _placed(text: str, place: Place, words: str) -> str:
    numbers = [part + 1 for part in place if isinstance(part, int)]
    table = "[[change.arm]]" if len(numbers) > 1 else "[[change]]"
    line = line_of(text, place)
    number = " of change ".join(map(str, reversed(numbers)))
    where = [f"{table} number {number}"] if numbers else []
    return f"{', '.join([*where, *([f'line {line}'] if line else [])])}: {words}"


class ChangeReader:
    """The changes in [[change]] tables, or all that is wrong with them, each with its place."""

    def __init__(self, first: RestlessBandit, tables: Any) -> None:
        self.changes: list[tuple[int, RestlessBandit]] = []
        self.mistakes: list[tuple[Place, str]] = []
        if not isinstance(tables, list) or not tables or not _are_tables(tables):
            self._add("change must be written as [[change]], with two brackets, once per change")
            return
        arms, before = list(first.arms), 1
        for i, table in enumerate(tables):
            for key, words in unknown_keys(table, CHANGE_KEYS):
                self._add(words, i, key)
            try:
                if "at" not in table:
                    raise ProblemError("at is missing: the first step of the new arms")
                before = checked_step(table["at"], before)
            except ProblemError as error:
                self._add(str(error), i, "at")
            rows = table.get("arm")
            if not isinstance(rows, list) or not rows or not _are_tables(rows):
                self._add("needs [[change.arm]], once for arms that change alike", i)
                continue
            changed: set[int] = set()
            for j, row in enumerate(rows):
                self._read_row(arms, changed, row, i, j)
            self.changes.append((before, RestlessBandit(arms, first.num_pulls)))

    def _read_row(
        self, arms: list[Arm], changed: set[int], row: dict[str, Any], i: int, j: int
    ) -> None:
        """Change some arms."""
        at = (i, "arm", j)
        for key, words in unknown_keys(row, ("arms", *MOVES)):
            self._add(words, *at, key)
        numbers = row.get("arms")
        if not isinstance(numbers, list) or not numbers:
            self._add(f"arms must be a list of numbers of arms, got {numbers!r:.60}", *at, "arms")
            return
        made: dict[int, Arm] = {}  # arms that were alike are alike afterwards
        for k in numbers:
            if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < len(arms):
                words = f"arms must be numbers from 0 to {len(arms) - 1}, got {k!r:.60}"
                self._add(words, *at, "arms")
                return
            if k in changed:
                self._add(f"arm {k} is named twice in this change", *at, "arms")
                return
            changed.add(k)
            was = arms[k]
            if id(was) not in made:
                reader = ArmReader({key: row[key] for key in MOVES if key in row} | _kept(was))
                for name, said in reader.mistakes:
                    words = said.replace("active and rewards", "active")  # rewards stay
                    self._add(words, *at, *([] if name is None else [name]))
                if reader.arm is None:
                    return
                made[id(was)] = reader.arm
            arms[k] = made[id(was)]

    def _add(self, words: str, *place: str | int) -> None:
        self.mistakes.append((("change", *place), words))


def _are_tables(values: list[Any]) -> bool:
    return all(isinstance(value, dict) for value in values)


def _kept(arm: Arm) -> dict[str, Any]:
    """What stays of an arm, as its table has it."""
    kept: dict[str, Any] = {"rewards": arm.rewards.tolist(), "seen": arm.seen}
    if arm.pays_unpulled:
        kept["passive_rewards"] = arm.passive_rewards.tolist()
    if arm.states is not None:
        kept["states"] = list(arm.states)
    if arm.name is not None:
        kept["name"] = arm.name
    return kept


def changing_to_toml(changing: ChangingBandit) -> str:
    """Write it as TOML that reads back equal."""
    return problem_to_toml(changing.first) + "\n" + toml_of({"change": tables_of_changes(changing)})


def tables_of_changes(changing: ChangingBandit) -> list[dict[str, Any]]:
    """Return the changes as plain data: [[change]] tables."""
    phases = zip(changing.bandits, changing.bandits[1:], changing.begins[1:], strict=False)
    return [{"at": at, "arm": list(_rows_of_change(before, after))} for before, after, at in phases]


def _rows_of_change(before: RestlessBandit, after: RestlessBandit) -> Iterator[dict[str, Any]]:
    """Yield a table for each run of arms that change alike, at least one."""
    different = [k for k in range(len(after)) if after.arms[k] != before.arms[k]] or [0]
    for arm, run in groupby(different, key=after.arms.__getitem__):
        row = {"arms": list(run), "active": arm.active.tolist()}
        if not arm.is_uncontrolled:
            row["passive"] = arm.passive.tolist()
        yield row
