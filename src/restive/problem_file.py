"""Problems as TOML files: read with every mistake named, written so that they read back equal.

The format is small::

    num_pulls = 2
    pay = "always"        # optional: arms pay their rewards also while not pulled

    [[arm]]
    name = "downlink"     # optional
    p01 = 0.3             # bad -> good
    p11 = 0.7             # good -> good
    count = 3             # optional: this many arms of the kind

    [[arm]]
    active = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
    passive = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]   # optional: as active
    rewards = [0.0, 0.4, 1.0]   # with p01 and p11 optional: 0 and 1
    passive_rewards = [0.0, 0.1, 0.2]  # optional: paid while not pulled, whatever `pay` says
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from itertools import groupby
from os import PathLike
from typing import Any

import numpy as np

from restive.arguments import checked_path, suggestion
from restive.errors import ProblemError
from restive.files import read_regular
from restive.problem import Arm, RestlessBandit, gilbert_elliott

__all__ = [
    "basic_string",
    "load_problem",
    "parse_toml",
    "problem_from_toml",
    "problem_to_toml",
    "read_arm",
    "read_arms",
    "read_text",
    "require_shallow",
]

PROBLEM_KEYS = ("num_pulls", "pay", "arm")
NEEDED = {"num_pulls": "num_pulls = ...", "arm": "at least one [[arm]]"}
ARM_KEYS = ("name", "count", "p01", "p11", "active", "passive", "rewards", "passive_rewards")
PAY = ("pulled", "always")  # when arms pay their rewards, unless they say otherwise
MOST_ARMS = 10_000_000  # `count` is one typing slip away from filling the memory
LARGEST_FILE = 1 << 28  # bytes
DEEPEST = 50  # tables and lists in one another; nothing sound has ten
TOO_DEEP = f"brackets or tables are nested too deeply (more than {DEEPEST} in one another)"
BYTE_ORDER_MARK = "\ufeff"  # with which some editors on Windows begin a file


def load_problem(path: str | PathLike[str]) -> RestlessBandit:
    """Read a problem from a TOML file; every mistake is told with the file and its place."""
    text = read_text(path)
    try:
        return problem_from_toml(text)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def read_text(path: str | PathLike[str]) -> str:
    """Read a text file of sane size, or say what is wrong with it."""
    path = checked_path(path, "path")
    try:
        contents = read_regular(path, LARGEST_FILE)
        if len(contents) > LARGEST_FILE:
            raise ProblemError(f"{path}: larger than {LARGEST_FILE >> 20} MiB; use `count`")
        return contents.decode().replace("\r\n", "\n").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise ProblemError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}") from None


def problem_from_toml(text: str) -> RestlessBandit:
    """Read a problem from TOML text; see the module's docstring for the format."""
    data = parse_toml(text)
    refuse_unknown_keys(data, PROBLEM_KEYS, "the top level")
    for key, wanted in NEEDED.items():
        if key not in data:
            raise ProblemError(f"{key} is missing: the file needs {wanted}")
    tables = data["arm"]
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise ProblemError("arm must be written as [[arm]], with two brackets, once per kind")
    return RestlessBandit(read_arms(tables, pays_always(data)), data["num_pulls"])


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML, or say what is wrong with it."""
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ProblemError(TOO_DEEP) from None
    except ValueError as error:  # also numbers with thousands of digits
        raise ProblemError(f"not valid TOML: {error}") from None
    require_shallow(data)
    return data


def require_shallow(data: Any) -> None:
    """Raise for tables and lists in one another so deep that whatever walks them would fail."""
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise ProblemError(TOO_DEEP)


def pays_always(data: Mapping[str, Any]) -> bool:
    """Whether a table of the problem says `pay = "always"`."""
    pay = data.get("pay", PAY[0])
    if pay not in PAY:
        raise ProblemError(f'pay must be "pulled" or "always", got {pay!r:.60}')
    return bool(pay == "always")


def read_arms(tables: Iterable[dict[str, Any]], always: bool = False) -> list[Arm]:
    """Read [[arm]] tables; a table with a `count` is as many arms."""
    arms: list[Arm] = []
    for place, table in enumerate(tables):
        arm, count = read_arm(table, f"[[arm]] number {place + 1}", always)
        if len(arms) + count > MOST_ARMS:
            raise ProblemError(f"more than {MOST_ARMS:,} arms in all; check count")
        arms.extend([arm] * count)
    return arms


def problem_to_toml(bandit: RestlessBandit) -> str:
    """Write a bandit as TOML that reads back equal; runs of equal arms become one `count`."""
    lines = [f"num_pulls = {bandit.num_pulls}"]
    kinds = set(bandit.arms)  # very many may be alike
    always = any(arm.pays_unpulled for arm in kinds) and all(map(_pays_the_same, kinds))
    if always:
        lines.append('pay = "always"')
    for arm, run in groupby(bandit.arms):
        lines += ["", "[[arm]]", *_write_arm(arm, always)]
        count = sum(1 for _ in run)
        if count > 1:
            lines.append(f"count = {count}")
    return "\n".join(lines) + "\n"


def refuse_unknown_keys(data: Mapping[str, Any], known: Iterable[str], place: str) -> None:
    """Raise for the first key that is not `known`, suggesting the nearest one that is."""
    known = tuple(known)
    for key in data:
        if key not in known:
            raise ProblemError(f"{place}: unknown key {key!r}; {suggestion(key, known)}")


def read_arm(table: dict[str, Any], place: str, always: bool = False) -> tuple[Arm, int]:
    """Read one [[arm]] table: the arm and its count; `place` is how errors name it.

    With `always` an arm pays its rewards also while not pulled, unless it has `passive_rewards`.
    """
    refuse_unknown_keys(table, ARM_KEYS, place)
    name = table.get("name")
    if name is not None and not isinstance(name, str):
        raise ProblemError(f"{place}: name must be text, got {name!r}")
    label = place if name is None else f"{place} ({name!r})"
    count = table.get("count", 1)
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ProblemError(f"{label}: count must be a whole number from 1 on, got {count!r}")
    short = [key for key in ("p01", "p11") if key in table]
    full = [key for key in ("active", "passive") if key in table]
    if short and full:
        raise ProblemError(f"{label}: give {short[0]} or {full[0]}, not both")
    if len(short) == 1:
        missing = "p11" if short == ["p01"] else "p01"
        raise ProblemError(f"{label}: {missing} is missing beside {short[0]}")
    if not short and "active" not in table:
        raise ProblemError(f"{label}: needs p01 and p11, or active and rewards")
    for key in ARM_KEYS[2:]:
        wrong = _first_that_is_no_number(table.get(key, []))
        if wrong is not None:
            what = "a number" if key in short else "numbers in a regular array"
            raise ProblemError(f"{label}: {key} must be {what}, got {wrong!r:.60}")
    fields = {key: table[key] for key in ARM_KEYS if key in table and key != "count"}
    if always:
        fields.setdefault("passive_rewards", fields.get("rewards", (0.0, 1.0) if short else None))
    try:
        return (gilbert_elliott(**fields) if short else Arm(**fields)), count
    except ProblemError as error:
        # the constructor names the arm; here its place is known too
        named = "arm: " if name is None else f"arm {name!r}: "
        raise ProblemError(f"{label}: {str(error).removeprefix(named)}") from None


def _first_that_is_no_number(value: Any) -> Any:
    if isinstance(value, list):
        found = (_first_that_is_no_number(item) for item in value)
        return next((item for item in found if item is not None), None)
    return None if isinstance(value, int | float) and not isinstance(value, bool) else value


def _pays_the_same(arm: Arm) -> bool:
    return bool(np.array_equal(arm.rewards, arm.passive_rewards))


def _write_arm(arm: Arm, always: bool) -> list[str]:
    lines = [] if arm.name is None else [f"name = {basic_string(arm.name)}"]
    passive_rewards = []
    if arm.pays_unpulled and not always:
        passive_rewards.append(f"passive_rewards = {arm.passive_rewards.tolist()}")
    if arm.num_states == 2:
        p01, p11 = float(arm.active[0, 1]), float(arm.active[1, 1])
        if arm == gilbert_elliott(p01, p11, (0, 1), arm.passive_rewards, arm.name):
            return [*lines, f"p01 = {p01!r}", f"p11 = {p11!r}", *passive_rewards]
    lines.append(f"active = {arm.active.tolist()}")
    if not arm.is_uncontrolled:
        lines.append(f"passive = {arm.passive.tolist()}")
    lines.append(f"rewards = {arm.rewards.tolist()}")
    return lines + passive_rewards


def basic_string(text: str) -> str:
    """Write text as a TOML string."""
    # TOML's basic strings are JSON's, except that JSON leaves the control character U+007F bare
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
