"""What is seen of a bandit, and how the arms to pull are named.

Everything here is about many copies at once, M rows; a single environment has one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np
from gymnasium import spaces
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST, shown, suggestion
from restive.errors import ProblemError
from restive.kernels.loop.choosing import top_of_each
from restive.problem.bandit import RestlessBandit, kinds_of

__all__ = ["Forms", "Observation", "Pulls", "made_forms"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Observation: TypeAlias = NDArray[np.float32] | dict[str, NDArray[Any]]

OBSERVATIONS = ("belief", "sighting")
ACTIONS = ("scores", "subset", "arm")
REWARDS = ("expected", "realised")
MOST_SUBSETS = 10_000


@dataclass(frozen=True, eq=False)
class Forms:
    """The spaces of an environment, and what their elements mean."""

    num_arms: int
    num_pulls: int
    sizes: IntArray  # [K] numbers of states
    observation: str
    action: str
    reward: str
    subsets: IntArray  # [C, N] arms of each action, where actions are subsets; else [0, N]

    @property
    def shows_taken(self) -> bool:
        """Whether observations say which arms are already chosen for this step."""
        return self.action == "arm" and self.num_pulls > 1

    def observation_space(self) -> spaces.Space[Any]:
        """Return the space of what is seen."""
        if self.observation == "belief":
            width = int(self.sizes.max()) + self.shows_taken
            return spaces.Box(0.0, 1.0, (self.num_arms, width), np.float32)
        seen: dict[str, spaces.Space[Any]] = {
            "last_state": spaces.MultiDiscrete(self.sizes),
            "elapsed": spaces.Box(1, MOST, (self.num_arms,), np.int64),
        }
        if self.shows_taken:
            seen["taken"] = spaces.MultiBinary(self.num_arms)
        return spaces.Dict(seen)

    def action_space(self) -> spaces.Space[Any]:
        """Return the space of actions, each of which is legal."""
        if self.action == "scores":
            return spaces.Box(-1.0, 1.0, (self.num_arms,), np.float32)
        return spaces.Discrete(len(self.subsets) if self.action == "subset" else self.num_arms)

    def seen(
        self, last_state: IntArray, elapsed: IntArray, beliefs: FloatArray | None, taken: BoolArray
    ) -> Observation:
        """Return what is seen, from [M, K] arrays and beliefs [M, K, S], where these are shown."""
        if self.observation == "belief":
            assert beliefs is not None
            shown_beliefs = beliefs.astype(np.float32)
            if not self.shows_taken:
                return shown_beliefs
            return np.concatenate([shown_beliefs, taken[:, :, None].astype(np.float32)], axis=2)
        found: dict[str, NDArray[Any]] = {"last_state": last_state, "elapsed": elapsed}
        if self.shows_taken:
            found["taken"] = taken.astype(np.int8)
        return found

    def _numbers(self, actions: ArrayLike, rows: int) -> NDArray[Any]:
        """Return actions as an array of the right shape, or say what they should be."""
        shape = (rows, self.num_arms) if self.action == "scores" else (rows,)
        try:
            found = np.asarray(actions)
        except ValueError:  # lists of different lengths
            found = np.zeros(0)
        kinds = "fiu" if self.action == "scores" else "iu"
        if found.shape == shape and found.dtype.kind in kinds:
            return found
        what = {
            "scores": f"{self.num_arms} scores, one for each arm",
            "subset": f"the number of a subset, 0 to {len(self.subsets) - 1}",
            "arm": f"an arm, 0 to {self.num_arms - 1}",
        }[self.action]
        copies = "" if rows == 1 else f" for each of {rows} copies"
        raise ProblemError(f"an action is {what}{copies}; got {shown(actions)}")

    def _in_range(self, actions: NDArray[Any], what: str, end: int) -> IntArray:
        """Return actions as whole numbers from 0 on below `end`, or raise."""
        if len(actions) and not 0 <= actions.min() <= actions.max() < end:
            wrong = actions[(actions < 0) | (actions >= end)][0]
            raise ProblemError(f"an action is {what}, 0 to {end - 1}; got {wrong}")
        return actions.astype(np.int64)

    def arms_of(self, actions: ArrayLike, rows: int) -> IntArray:
        """Return the arms [M, N] that are meant by actions, which are scores or subsets."""
        found = self._numbers(actions, rows)
        if self.action == "subset":
            numbers = self._in_range(found, "the number of a subset", len(self.subsets))
            chosen: IntArray = self.subsets[numbers]
            return chosen
        chosen = np.empty((rows, self.num_pulls), dtype=np.int64)
        wrong = top_of_each(np.ascontiguousarray(found, dtype=np.float64), chosen)
        if wrong >= 0:
            raise ProblemError(f"an action's scores must be numbers; got {shown(found[wrong])}")
        return chosen

    def arm_of(self, actions: ArrayLike, taken: BoolArray) -> IntArray:
        """Return the arm [M] that is meant: a taken one stands for the first that is free."""
        named = self._in_range(self._numbers(actions, len(taken)), "an arm", self.num_arms)
        return np.where(taken[np.arange(len(named)), named], (~taken).argmax(axis=1), named)


class Pulls:
    """The arms of a step as actions name them: at once, or one after the other."""

    def __init__(self, forms: Forms, rows: int) -> None:
        self.forms = forms
        self.taken = np.zeros((rows, forms.num_arms), dtype=bool)  # [M, K]
        self._chosen: list[IntArray] = []

    def begin(self) -> None:
        """Begin with no arm chosen."""
        self.taken[:] = False
        self._chosen.clear()

    def add(self, actions: ArrayLike) -> IntArray | None:
        """Return the arms [M, N] to pull, or None while more of them are to be named."""
        if self.forms.action != "arm":
            return self.forms.arms_of(actions, len(self.taken))
        named = self.forms.arm_of(actions, self.taken)
        self.taken[np.arange(len(named)), named] = True
        self._chosen.append(named)
        if len(self._chosen) < self.forms.num_pulls:
            return None
        arms = np.sort(np.stack(self._chosen, axis=1), axis=1)
        self.begin()
        return arms


def made_forms(bandit: RestlessBandit, observation: str, action: str, reward: str) -> Forms:
    """Return the forms that words name, or say what is wrong with the words."""
    _require_known("observation", observation, OBSERVATIONS)
    _require_known("action", action, ACTIONS)
    _require_known("reward", reward, REWARDS)
    num_arms, num_pulls = bandit.num_arms, bandit.num_pulls
    subsets = np.zeros((0, num_pulls), dtype=np.int64)
    if action == "subset":
        count = comb(num_arms, num_pulls)
        if count > MOST_SUBSETS:
            raise ProblemError(
                f"there are {count:,} subsets of {num_pulls} of {num_arms} arms, more than "
                f"{MOST_SUBSETS:,}; use action='scores' or action='arm'"
            )
        subsets = np.array(list(combinations(range(num_arms), num_pulls)), dtype=np.int64)
    sizes = kinds_of(bandit).sizes
    return Forms(num_arms, num_pulls, sizes, observation, action, reward, subsets)


def _require_known(what: str, word: Any, known: Sequence[str]) -> None:
    if not isinstance(word, str):
        raise ProblemError(f"{what} must be one of {', '.join(known)}, got {shown(word)}")
    if word not in known:
        raise ProblemError(f"unknown {what} {shown(word)}; {suggestion(word, known)}")
