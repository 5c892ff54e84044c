"""Problems as TOML files: read with every mistake named, written so that they read back equal.

The format is small::

    num_pulls = 2
    pay = "always"        # optional: arms pay their rewards also while not pulled
    seen = "always"       # optional: arms are seen in every step, here or in each [[arm]]
    states = ["bad", "good"]  # optional: names of the states, here or in each [[arm]]

    [[arm]]
    name = "downlink"     # optional
    p01 = 0.3             # bad -> good
    p11 = 0.7             # good -> good
    count = 3             # optional: this many arms of the kind

    [[arm]]
    active = [[0.9, 0.1, 0.0], [0.2, 0.7, 0.1], [0.1, 0.3, 0.6]]
    passive = [[0.8, 0.2, 0.0], [0.3, 0.6, 0.1], [0.2, 0.3, 0.5]]   # optional: as active
    rewards = [0.0, 0.4, 1.0]   # with p01 and p11 optional: 0 and 1
    states = ["dry", "damp", "wet"]
    passive_rewards = [0.0, 0.1, 0.2]  # optional: paid while not pulled, whatever `pay` says

Files with [[change]] tables, of arms that change, are read by `changing_file`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from restive.arguments import MOST_ARMS
from restive.errors import ProblemError
from restive.problem.arm import Arm, checked_seen, gilbert_elliott, state_names
from restive.problem.arm_tables import ArmReader, checked_num_arms, unknown_keys
from restive.problem.bandit import RestlessBandit, checked_num_pulls
from restive.problem.toml_text import basic_string, line_of, parse_toml, read_text

__all__ = [
    "PAY",
    "PROBLEM_KEYS",
    "load_problem",
    "pays_always",
    "problem_from_data",
    "problem_from_toml",
    "problem_to_toml",
]

PROBLEM_KEYS = ("num_pulls", "pay", "seen", "states", "arm")
STUDY_KEYS = ("problem", "prior", "sweep", "instance", "learners")  # some that no problem has
NEEDED = {"num_pulls": "num_pulls = ...", "arm": "at least one [[arm]]"}
PAY = ("pulled", "always")  # when arms pay their rewards, unless they say otherwise
NAME = re.compile(r"[A-Za-z][\w-]*")  # no path of a file, more likely an instance of the zoo
FILE = "the problem"  # how checks begin their messages that are about no arm


def load_problem(path: str | PathLike[str]) -> RestlessBandit:
    """Read a problem from a TOML file; all mistakes are reported at once, each with its line."""
    try:
        text = read_text(path)
    except ProblemError as error:
        if isinstance(path, str) and NAME.fullmatch(path) and not Path(path).exists():
            hint = f"; an instance of the zoo is zoo.load({path!r}).bandit"
            raise ProblemError(f"{error}{hint}") from None
        raise
    try:
        return problem_from_toml(text)
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def problem_from_toml(text: str) -> RestlessBandit:
    """Read a problem from TOML text; see the module's docstring for the format."""
    data = parse_toml(text)
    if "change" in data:
        raise ProblemError(
            "the arms change ([[change]]), and this is for arms that stay as they are: `restive "
            "compare`, studies and ChangingBandit.load take the file; or leave out [[change]]"
        )
    if "arm" not in data and any(key in data for key in STUDY_KEYS):
        raise ProblemError(
            "this is a study, not a problem: `restive run` takes it, in Python load_study"
        )
    return problem_from_data(data, text)


def problem_from_data(data: dict[str, Any], text: str) -> RestlessBandit:
    """Read a problem that was parsed; `text` is where mistakes are found."""
    found = _Reader(data, text)
    if found.mistakes:
        count = [f"{len(found.mistakes)} mistakes"] if len(found.mistakes) > 1 else []
        raise ProblemError("\n  ".join([*count, *found.mistakes]))
    return RestlessBandit(found.arms, data["num_pulls"])


class _Reader:
    """The arms of a problem, and all that is wrong with it, in the order of its lines."""

    def __init__(self, data: dict[str, Any], text: str) -> None:
        self.arms: list[Arm] = []
        self._found: list[tuple[int, str]] = []  # line, and words
        self._text = text
        for key, words in unknown_keys(data, PROBLEM_KEYS):
            self._add((key,), words)
        for key, wanted in NEEDED.items():
            if key not in data:
                self._add((), f"{key} is missing: the file needs {wanted}")
        always = self._try("pay", pays_always, data) or False
        seen = None
        if "seen" in data:
            seen = self._try("seen", checked_seen, data["seen"], FILE)
        states = None
        if "states" in data:
            states = self._try("states", state_names, data["states"], None, FILE)
        self._read_arms(data.get("arm", []), always, states, seen)
        if "num_pulls" in data:
            most = MOST_ARMS if self._found else len(self.arms)
            self._try("num_pulls", checked_num_pulls, data["num_pulls"], most)

    @property
    def mistakes(self) -> list[str]:
        """What is wrong, each with its line."""
        return [words for _, words in sorted(self._found, key=lambda found: found[0])]

    def _read_arms(
        self, tables: Any, always: bool, states: Sequence[str] | None, seen: str | None
    ) -> None:
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._add(("arm",), "arm must be written as [[arm]], with two brackets, once per kind")
            return
        for place, table in enumerate(tables):
            reader = ArmReader(table, always, states, seen)
            for key, words in reader.mistakes:
                at = ("arm", place) if key is None else ("arm", place, key)
                self._add(at, words, f"[[arm]] number {place + 1}{reader.named}")
            if reader.arm is not None:
                try:
                    checked_num_arms(len(self.arms) + reader.count)
                except ProblemError as error:
                    self._add(("arm", place, "count"), str(error))
                    return
                self.arms.extend([reader.arm] * reader.count)

    def _try(self, key: str, check: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return check(*arguments)
        except ProblemError as error:
            self._add((key,), str(error).removeprefix(f"{FILE}: "))
            return None

    def _add(self, place: tuple[str | int, ...], words: str, what: str = "") -> None:
        line = line_of(self._text, place)
        where = ", ".join([*([what] if what else []), *([f"line {line}"] if line else [])])
        self._found.append((line or 0, f"{where}: {words}" if where else words))


def pays_always(data: Mapping[str, Any]) -> bool:
    """Whether a table of the problem says `pay = "always"`."""
    pay = data.get("pay", PAY[0])
    if pay not in PAY:
        raise ProblemError(f'pay must be "pulled" or "always", got {pay!r:.60}')
    return bool(pay == "always")


def problem_to_toml(bandit: RestlessBandit) -> str:
    """Write a bandit as TOML that reads back equal; runs of equal arms become one `count`."""
    lines = [f"num_pulls = {bandit.num_pulls}"]
    kinds = set(bandit.arms)  # very many may be alike
    always = any(arm.pays_unpulled for arm in kinds) and all(map(_pays_the_same, kinds))
    if always:
        lines.append('pay = "always"')
    all_seen = all(arm.always_seen for arm in kinds)
    if all_seen:
        lines.append('seen = "always"')
    named = {arm.states for arm in kinds}
    shared = next(iter(named)) if len(named) == 1 else None
    if shared is not None:
        lines.append(_write_states(shared))
    for arm, run in groupby(bandit.arms):
        own = [] if arm.states is None or shared is not None else [_write_states(arm.states)]
        own += ['seen = "always"'] if arm.always_seen and not all_seen else []
        lines += ["", "[[arm]]", *_write_arm(arm, always), *own]
        count = sum(1 for _ in run)
        if count > 1:
            lines.append(f"count = {count}")
    return "\n".join(lines) + "\n"


def _pays_the_same(arm: Arm) -> bool:
    return bool(np.array_equal(arm.rewards, arm.passive_rewards))


def _write_states(states: Sequence[str]) -> str:
    return f"states = [{', '.join(map(basic_string, states))}]"


def _write_arm(arm: Arm, always: bool) -> list[str]:
    lines = [] if arm.name is None else [f"name = {basic_string(arm.name)}"]
    passive_rewards = []
    if arm.pays_unpulled and not always:
        passive_rewards.append(f"passive_rewards = {arm.passive_rewards.tolist()}")
    if arm.num_states == 2:
        p01, p11 = float(arm.active[0, 1]), float(arm.active[1, 1])
        own = (arm.passive_rewards, arm.name, arm.states, arm.seen)
        if arm == gilbert_elliott(p01, p11, (0, 1), *own):
            return [*lines, f"p01 = {p01!r}", f"p11 = {p11!r}", *passive_rewards]
    lines.append(f"active = {arm.active.tolist()}")
    if not arm.is_uncontrolled:
        lines.append(f"passive = {arm.passive.tolist()}")
    lines.append(f"rewards = {arm.rewards.tolist()}")
    return lines + passive_rewards
