"""UCWhittle."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import log
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count
from restive.errors import TooLargeError
from restive.kernels.learn.learners.memory import PHASES, PLANNING, LearnerMemory
from restive.kernels.learn.learners.ucwhittle import COUNTS, LENGTH, NEXT
from restive.kernels.loop import steps
from restive.learn.learners.base import checked_number, counts_only
from restive.learn.task import Facts

__all__ = ["UCWhittle"]

FloatArray = NDArray[np.float64]

MOST_SURE = 1 - 1e-6  # corners of the box stay this far from chains that never move
CORNERS = np.array(list(product((-1.0, 1.0), repeat=4)))  # [16, 4]


@dataclass(frozen=True)
class UCWhittle:
    """UCWhittle (Wang, Xu, Fang, Taneja and Tambe 2023), for two-state arms that are always seen.

    At the beginning of episode e each transition probability lies in p_hat -+ c sqrt(2 S ln(2 S A K
    e^4 / delta) / max(1, n)), n the moves counted and delta = 1e-3. An arm's optimistic index of a
    state is the largest over that box, which lies at one of its 16 corners; the paper maximises the
    value of a policy instead, by a program for which it leaves the solver open. Its episodes are
    part of the problem, of 20 steps; here nothing is reset, and they end after `length` steps.
    p_hat is 1/2 where nothing was counted.

    Parameters
    ----------
    length
        Steps of an episode.
    scale
        The factor c of the radius; 1 is the paper's.
    """

    length: int = 20
    scale: float = 1.0

    name: ClassVar[str] = "ucwhittle"
    title: ClassVar[str] = "UCWhittle"
    number: ClassVar[int] = steps.UCWHITTLE
    narrows: ClassVar[bool] = True
    sees: ClassVar[str] = "always"

    def __post_init__(self) -> None:
        checked_count(self.length, "ucwhittle: length")
        checked_number(self.scale, "ucwhittle: scale", 0, 1e6)

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """When the next episode begins, their length, and counts; indices of the states."""
        if (facts.sizes != 2).any():
            k = int(np.argmax(facts.sizes != 2))
            raise TooLargeError(
                f"learner ucwhittle looks at the corners of a box, for arms of two states, and arm "
                f"{k} has {facts.sizes[k]}"
            )
        return COUNTS - NEXT + 8 * facts.num_arms, 2 * facts.num_arms

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """The first episode begins at once."""
        memory.ints[NEXT], memory.ints[LENGTH] = 1 + self.length, self.length
        memory.ints[PLANNING], memory.ints[PHASES] = 1, 1

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Write the optimistic indices."""
        num_arms = facts.num_arms
        counts = memory.ints[COUNTS:].reshape(num_arms, 4, 2).astype(np.float64)
        seen = counts.sum(axis=2)  # [K, (not pulled, pulled) x state]
        chances = np.where(seen > 0, counts[:, :, 1] / np.maximum(seen, 1), 0.5)
        episode = int(memory.ints[PHASES])
        width = log(2 * 2 * 2 * num_arms * float(episode) ** 4 / 1e-3)
        radius = self.scale * np.sqrt(2 * 2 * width / np.maximum(seen, 1))
        corners = chances[:, None] + CORNERS * radius[:, None]  # [K, 16, 4]
        rewards, unpulled = (np.array(pay) for pay in (facts.rewards, facts.passive_rewards))
        values = two_state_indices(
            np.clip(corners, 1 - MOST_SURE, MOST_SURE), rewards[:, None], unpulled[:, None]
        )
        memory.floats[:] = values.max(axis=1).ravel()
        memory.ints[PLANNING] = 0

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Counts are not negative; all episodes but the last have ended, each after its length."""
        return (
            counts_only(memory, plans=True)
            and memory.ints[LENGTH] == self.length
            and memory.ints[PHASES] >= 1
            and memory.ints[NEXT] > self.length * memory.ints[PHASES]
        )


def two_state_indices(chances: FloatArray, rewards: FloatArray, unpulled: FloatArray) -> FloatArray:
    """Whittle's indices [..., 2] of two-state arms that are always seen, for the average reward.

    The state that gains most by a pull has that as its index; the other one (r + c r') / (1 + c).

    Parameters
    ----------
    chances
        Probabilities [..., 4] of state 1 next: not pulled from 0 and 1, pulled from 0 and 1.
    rewards, unpulled
        Rewards [..., 2] of steps in which the arm is pulled and in which it is not.
    """
    passive, active = chances[..., :2], chances[..., 2:]
    shift = active - passive
    slow = 1 / (1 - passive[..., 1] + passive[..., 0])  # steps until a difference is forgotten
    gained = rewards - unpulled + shift * (slow * (unpulled[..., 1] - unpulled[..., 0]))[..., None]
    first = np.argmax(gained, axis=-1)[..., None]  # the state that is pulled first
    other = 1 - first
    sign = np.where(first[..., 0] == 1, 1.0, -1.0)
    best, rest = (np.take_along_axis(gained, which, -1)[..., 0] for which in (first, other))
    own, across = (
        np.take_along_axis(shift, which, -1)[..., 0] * sign * slow for which in (first, other)
    )
    factor = across / (1 - own)
    index = np.empty(gained.shape)
    np.put_along_axis(index, first, best[..., None], -1)
    np.put_along_axis(index, other, ((rest + factor * best) / (1 + factor))[..., None], -1)
    return index
