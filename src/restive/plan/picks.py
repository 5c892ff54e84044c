"""Today's list: which arms to pull, given when and in which state each was last seen, and why.

`read_sightings` reads that from a CSV file with the columns arm, state and ago (steps since), or
from the arms.csv of a fit; an arm that is not in it is taken for one that nobody has seen for very
long. `pick_arms` asks a policy
and says what speaks for each arm; `write_picks` writes the list.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from math import fsum
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST, checked_path, counted, suggestion
from restive.errors import ProblemError, RestiveError
from restive.files import read_regular, replacing, spreadsheet_text
from restive.plan.policies.base import IndexPolicy, Policy
from restive.plan.recommendation import LONG_AGO, arm_names, nothing_seen
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState, beliefs_at

__all__ = ["PICK_COLUMNS", "Pick", "pick_arms", "pick_of", "read_sightings", "write_picks"]


COLUMNS = {"arm": "arm", "state": "last_state", "ago": "elapsed"}  # and as a fit writes them
PICK_COLUMNS = (
    "place", "arm", "name", "last_state", "ago", "expected_reward", "index", "reason",
)  # fmt: skip
MOST_BYTES = 1 << 28
MOST_MISTAKES = 20  # that a message lists


@dataclass(frozen=True)
class Pick:
    """An arm to pull: where it stands (1 is the highest index), and what is known of it."""

    place: int
    arm: int
    name: str | None
    last_state: str | None  # None if it was not seen lately
    ago: int | None
    expected_reward: float  # of pulling it now
    index: float | None  # None under a policy that has none
    reason: str


def read_sightings(path: str | PathLike[str], bandit: RestlessBandit) -> BeliefState:
    """Read when and in which state arms were last seen; all mistakes are reported at once."""
    source = checked_path(path, "sightings")
    try:
        data = read_regular(source, MOST_BYTES)
    except OSError as error:
        raise RestiveError(f"{source}: cannot be read: {error.strerror or error}") from None
    if len(data) > MOST_BYTES:
        raise ProblemError(f"{source}: longer than {MOST_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ProblemError(f"{source}: not a CSV file in UTF-8") from None
    try:
        return _sightings(text, bandit)
    except ProblemError as error:
        raise ProblemError(f"{source}: {error}") from None


def pick_arms(bandit: RestlessBandit, policy: Policy, state: BeliefState) -> list[Pick]:
    """Return the arms that a policy pulls now, the highest index first, with a reason each."""
    chosen = policy.select(state)
    index = policy.index(state) if isinstance(policy, IndexPolicy) else None
    if index is not None:
        chosen = chosen[np.argsort(-index[chosen], kind="stable")]
    return [
        _pick(place, int(k), bandit.arms[k], state, None if index is None else float(index[k]))
        for place, k in enumerate(chosen.tolist(), 1)
    ]


def write_picks(picks: Sequence[Pick], path: str | PathLike[str]) -> None:
    """Write a list as CSV."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(PICK_COLUMNS)
        for pick in picks:
            cells = (getattr(pick, column) for column in PICK_COLUMNS)
            writer.writerow([_cell(value) for value in cells])


def _cell(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    return spreadsheet_text(value) if isinstance(value, str) else value


def _pick(place: int, k: int, arm: Arm, state: BeliefState, index: float | None) -> Pick:
    last, ago = state.last_state[k : k + 1], state.elapsed[k : k + 1]
    belief = beliefs_at(arm.active[None], arm.passive[None], last, ago)
    chances = np.eye(arm.num_states)[last[0]] if arm.always_seen else belief[0, 0]
    return pick_of(place, k, arm, state, index, chances, arm.name)


def pick_of(
    place: int, k: int, arm: Arm, state: BeliefState, index: float | None,
    chances: NDArray[np.float64], name: str | None,
) -> Pick:  # fmt: skip
    """Say what speaks for arm k, which is like `arm` and now in each state by `chances` [S]."""
    last, ago = int(state.last_state[k]), int(state.elapsed[k])
    expected = fsum(chances * arm.rewards)
    seen = ago < LONG_AGO
    best = int(np.argmax(arm.rewards))
    said = "not seen lately"
    if seen:
        said = f"last seen {_state(arm, last)}, {counted(ago, 'step')} ago"
    if f"{chances[best]:.0%}" == "0%":  # that would say nothing of what it is
        best = int(np.argmax(chances))
    now = f"now {_state(arm, best)} with a chance of {chances[best]:.0%}"
    if arm.always_seen:
        said, now = "seen in every step", f"now {_state(arm, last)}"
    if not arm.pays_unpulled:
        now += f", so a pull is expected to pay {expected:.3g}"
    return Pick(
        place=place,
        arm=k,
        name=name,
        last_state=_state(arm, last) if seen else None,
        ago=ago if seen else None,
        expected_reward=expected,
        index=index,
        reason=f"{said}; {now}",
    )


def _state(arm: Arm, state: int) -> str:
    return f"state {state}" if arm.states is None else arm.states[state]


def _sightings(text: str, bandit: RestlessBandit) -> BeliefState:
    rows = _rows(text)
    header = next(rows, (0, []))[1]
    columns = _columns(header)
    arms, mistakes = _Arms(bandit), list[str]()
    start = nothing_seen(bandit)
    last_state, elapsed = start.last_state.copy(), start.elapsed.copy()
    lines: dict[int, int] = {}  # where each arm was found
    for line, row in rows:
        if not any(cell.strip() for cell in row):
            continue
        try:
            cells = [row[at].strip() if at < len(row) else "" for at in columns]
            k, state, ago = arms.number(cells[0]), cells[1], cells[2]
            if k in lines:
                raise ProblemError(f"arm {cells[0]!r:.60} is in line {lines[k]} already")
            last_state[k] = _state_number(state, bandit.arms[k])
            elapsed[k] = _ago(ago, bandit.arms[k])
            lines[k] = line
        except ProblemError as error:
            mistakes.append(f"line {line}: {error}")
    left_out = [k for k, arm in enumerate(bandit.arms) if arm.always_seen and k not in lines]
    if left_out and not mistakes:
        raise ProblemError(
            f"arms that are always seen are missing: {arm_names(bandit, left_out)}; give their "
            "states now"
        )
    if mistakes:
        more = len(mistakes) - MOST_MISTAKES
        shown = mistakes[:MOST_MISTAKES] + ([f"and {more:,} more"] if more > 0 else [])
        count = [f"{len(mistakes):,} mistakes"] if len(mistakes) > 1 else []
        raise ProblemError("\n  ".join([*count, *shown]))
    return BeliefState(last_state, elapsed)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield lines by number; what separates cells is what the first line has most of."""
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    reader = csv.reader(StringIO(text, newline=""), delimiter=separator)
    try:
        for row in reader:
            yield reader.line_num, row
    except csv.Error as error:
        raise ProblemError(f"line {reader.line_num}: {error}") from None


def _columns(header: Sequence[str]) -> list[int]:
    found = [name.strip().lower() for name in header]
    names = [name if name in found else own for name, own in COLUMNS.items()]
    missing = [name for name, there in zip(COLUMNS, names, strict=True) if there not in found]
    if missing:
        there = ", ".join(name.strip() for name in header if name.strip())
        raise ProblemError(
            f"no column {' and no column '.join(missing)}; needed are arm (number or name), state "
            "(number or name) and ago (steps since then, 1 or more), or arms.csv as `restive fit` "
            f"writes it; found: {there or 'none'!s:.200}"
        )
    return [found.index(name) for name in names]


class _Arms:
    """Arms by what people write for them: a number, or a name that only one arm has."""

    def __init__(self, bandit: RestlessBandit) -> None:
        self.count = bandit.num_arms
        self.by_name: dict[str, list[int]] = {}
        for k, arm in enumerate(bandit.arms):
            if arm.name is not None:
                self.by_name.setdefault(arm.name.strip(), []).append(k)

    def number(self, text: str) -> int:
        found = self.by_name.get(text) or self.by_name.get(text.removeprefix("'"))
        if found is not None:
            if len(found) > 1:
                raise ProblemError(
                    f"{len(found):,} arms are called {text!r:.60}; give the number, such as "
                    f"{found[0]}"
                )
            return found[0]
        if text.isdecimal() and len(text) < 16 and int(text) < self.count:
            return int(text)
        known = suggestion(text, self.by_name) if self.by_name else ""
        hint = f"; {known}" if known.startswith("did") else ""
        raise ProblemError(f"no arm {text!r:.60}; they are 0 to {self.count - 1:,}, or names{hint}")


def _state_number(text: str, arm: Arm) -> int:
    names = arm.states or ()
    for name in (text, text.removeprefix("'")):
        if name in names:
            return names.index(name)
    if text.isdecimal() and len(text) < 16 and int(text) < arm.num_states:
        return int(text)
    known = ", ".join(names) if names else f"0 to {arm.num_states - 1}"
    raise ProblemError(f"state {text!r:.60} is none of {known:.200}")


def _ago(text: str, arm: Arm) -> int:
    if arm.always_seen:
        if text in ("", "0", "1"):
            return 1
        raise ProblemError(
            f"the arm is always seen: give its state now and leave ago empty, got ago {text!r:.60}"
        )
    if text.isdecimal() and len(text) < 16 and 1 <= int(text) <= MOST:
        return int(text)
    raise ProblemError(
        "ago must be steps since the arm was seen, 1 or more (1 for the last step), got "
        f"{text!r:.60}"
    )
