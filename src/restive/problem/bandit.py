"""A bandit: K arms of which N are pulled each step, and arms that are alike (Section 2.1).

It is validated once, here, and frozen: everything else in the package may rely on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import wraps
from os import PathLike
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST_ARMS, checked_count, counted, one_line, shown
from restive.errors import ProblemError
from restive.pages.frames import html_table
from restive.problem.arm import Arm, arm_cells

__all__ = [
    "Kinds",
    "RestlessBandit",
    "always_seen",
    "checked_num_pulls",
    "computed_once",
    "first_places",
    "kinds_among",
    "kinds_of",
    "require_bandit",
    "starts_of",
]

Frozen = TypeVar("Frozen")
Found = TypeVar("Found")
MOST_SHOWN_ARMS = 2  # of a bandit, when it is written as code
MOST_SHOWN_KINDS = 20  # of a bandit, in a notebook


@dataclass(frozen=True, repr=False, init=False)
class RestlessBandit:
    """K arms, of which `num_pulls` are pulled each step; these are seen, or all that are always.

    Parameters
    ----------
    arms
        The arms, in the order in which ties are decided: the lowest arm wins.
    num_pulls
        How many distinct arms are pulled each step, 1 <= num_pulls <= K.

    Examples
    --------
    >>> import restive as rs
    >>> rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 4, num_pulls=2)
    RestlessBandit(4 arms, num_pulls=2)
    """

    arms: tuple[Arm, ...]
    num_pulls: int

    def __init__(self, arms: Iterable[Arm], num_pulls: int) -> None:
        if isinstance(arms, Arm) or not isinstance(arms, Iterable):
            raise ProblemError(f"arms must be a list of arms, got {shown(arms)}")
        if isinstance(arms, Sized):
            checked_count(len(arms), "the number of arms", 0, MOST_ARMS)
        arms = tuple(arms)
        for k, arm in enumerate(arms):
            if not isinstance(arm, Arm):
                pair = isinstance(arm, tuple | list) and len(arm) == 2
                pair = pair and all(isinstance(chance, int | float) for chance in arm)
                hint = "; a channel is gilbert_elliott(p01, p11)" if pair else ""
                raise ProblemError(f"arm {k}: expected an Arm, got {type(arm).__name__}{hint}")
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "num_pulls", checked_num_pulls(num_pulls, len(arms)))

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.arms)

    @classmethod
    def from_toml(cls, text: str) -> RestlessBandit:
        """Read a bandit from the text of a problem file; all mistakes are reported at once."""
        from restive.problem.problem_file import problem_from_toml  # which needs this class

        return problem_from_toml(text)

    def to_toml(self) -> str:
        """Write the bandit as the text of a problem file, which reads back equal."""
        from restive.problem.problem_file import problem_to_toml

        return problem_to_toml(self)

    def label(self, k: int) -> str:
        """How messages call arm k: its number and, where it has one, its name."""
        name = self.arms[k].name
        return f"arm {k}" if name is None else f"arm {k} ({name!r})"

    def __len__(self) -> int:
        return len(self.arms)

    @overload
    def __getitem__(self, k: int) -> Arm: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[Arm, ...]: ...
    def __getitem__(self, k: int | slice) -> Arm | tuple[Arm, ...]:
        return self.arms[k]

    def __iter__(self) -> Iterator[Arm]:
        return iter(self.arms)

    def __repr__(self) -> str:
        arms = ", ".join(map(repr, self.arms[:MOST_SHOWN_ARMS]))
        short = f"RestlessBandit({counted(self.num_arms, 'arm')}, num_pulls={self.num_pulls})"
        if self.num_arms > MOST_SHOWN_ARMS:
            return short
        return one_line(f"RestlessBandit([{arms}], num_pulls={self.num_pulls})", short)

    def _repr_html_(self) -> str:
        kinds = kinds_of(self)
        shown = range(min(len(kinds.arms), MOST_SHOWN_KINDS))
        rows = [(kinds.labels[j], kinds.counts[j], *arm_cells(kinds.arms[j])) for j in shown]
        return html_table(
            f"{counted(self.num_arms, 'arm')}, {self.num_pulls:,} pulled each step",
            ("kind of", "arms", "states", "rewards", "moves when pulled", "and when not"),
            rows,
            len(kinds.arms) - len(rows),
        )


@dataclass(frozen=True, eq=False)
class Kinds:
    """The arms of a bandit without repeats (names aside): tables are made once per kind."""

    arms: tuple[Arm, ...]  # one of each kind
    labels: tuple[str, ...]  # how messages call the first arm of each kind
    of: NDArray[np.intp]  # [K] the kind of each arm

    @property
    def counts(self) -> NDArray[np.intp]:
        """How many arms there are of each kind."""
        return np.bincount(self.of, minlength=len(self.arms))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of states of each arm [K]."""
        return np.array([arm.num_states for arm in self.arms], dtype=np.int64)[self.of]


def computed_once(function: Callable[[Frozen], Found]) -> Callable[[Frozen], Found]:
    """Keep what is found about a frozen object with it, since there may be very many arms."""
    name = f"_{function.__name__}"

    @wraps(function)
    def remembered(given: Frozen) -> Found:
        if name not in given.__dict__:
            given.__dict__[name] = function(given)
        found: Found = given.__dict__[name]
        return found

    return remembered


def require_bandit(bandit: Any, what: str = "") -> None:
    """Raise unless this is a bandit; say how to make one of what was given."""
    if isinstance(bandit, RestlessBandit):
        return
    from restive.problem.changing import ChangingBandit  # which needs this class

    hint = ""
    if isinstance(bandit, ChangingBandit):
        hint = "; its arms change: take those of one phase, bandits[0] for the first"
    elif isinstance(bandit, Arm):
        hint = "; make one of it: RestlessBandit([arm], num_pulls=1)"
    elif isinstance(bandit, PathLike) or (isinstance(bandit, str) and bandit.endswith(".toml")):
        hint = "; read it from its file: load_problem(path)"
    elif isinstance(bandit, str):
        hint = (
            f"; of the zoo that is zoo.load({shown(bandit)}).bandit, of a file load_problem(path)"
        )
    elif isinstance(bandit, list | tuple) and bandit and isinstance(bandit[0], Arm):
        hint = "; make one of them: RestlessBandit(arms, num_pulls=1)"
    begin = f"{what} must be a RestlessBandit" if what else "expected a RestlessBandit"
    raise ProblemError(f"{begin}, got {shown(bandit)}{hint}")


def kinds_of(bandit: RestlessBandit) -> Kinds:
    """Return the kinds of arms in a bandit."""
    require_bandit(bandit)
    return _kinds_of(bandit)


@computed_once
def _kinds_of(bandit: RestlessBandit) -> Kinds:
    return kinds_among(bandit.arms, bandit.label)


@computed_once
def always_seen(bandit: RestlessBandit) -> NDArray[np.bool_]:
    """Which arms [K] are seen in every step, pulled or not."""
    kinds = kinds_of(bandit)
    return np.array([arm.always_seen for arm in kinds.arms], dtype=bool)[kinds.of]


def kinds_among(arms: Sequence[Arm], label: Callable[[int], str]) -> Kinds:
    """Return the kinds among any arms; `label` says how messages call the arm at a place."""
    places, which = first_places(arms)  # first, since one object may stand for very many arms
    by_numbers: dict[bytes, int] = {}
    first: list[int] = []
    kind_of_place = np.empty(len(places), dtype=np.intp)
    for place, k in enumerate(places.tolist()):
        kind = by_numbers.setdefault(arms[k].numbers, len(first))
        kind_of_place[place] = kind
        if kind == len(first):
            first.append(k)
    return Kinds(
        tuple(arms[k] for k in first), tuple(label(k) for k in first), kind_of_place[which]
    )


def first_places(objects: Sequence[object]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Where each object comes first, ascending, and [K] which of these each one is."""
    numbers = np.fromiter(map(id, objects), dtype=np.int64, count=len(objects))
    _, places, which = np.unique(numbers, return_index=True, return_inverse=True)
    order = np.argsort(places)
    return places[order], np.argsort(order)[which]


def starts_of(sizes: ArrayLike) -> NDArray[np.int64]:
    """Where each table begins when tables of these sizes are laid end to end."""
    ends = np.cumsum(np.asarray(sizes, dtype=np.int64))
    return np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]])


def checked_num_pulls(num_pulls: Any, num_arms: int) -> int:
    """Return `num_pulls` as an int, or say why it cannot be."""
    if num_arms == 0:
        raise ProblemError("a bandit needs at least one arm, got none")
    if isinstance(num_pulls, bool) or not isinstance(num_pulls, int | np.integer):
        raise ProblemError(f"num_pulls must be a whole number, got {shown(num_pulls)}")
    if not 1 <= num_pulls <= num_arms:
        raise ProblemError(
            f"num_pulls must be between 1 and the number of arms, {num_arms}, got "
            f"{shown(int(num_pulls))}"
        )
    return int(num_pulls)
