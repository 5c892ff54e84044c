"""A bandit that can be pulled, and the names of its luck.

Luck is a function of (seed, replication, time, arm), so whoever acts in a world, the same pull at
the same time sees the same draw.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed
from restive.belief import BeliefState, belief_tables, settled_lengths, start_or_initial
from restive.errors import ProblemError
from restive.kernels.random import WORLD, stream_key
from restive.kernels.world import World as Tables
from restive.kernels.world import pull_arms
from restive.problem import RestlessBandit, kinds_of, require_paid_when_pulled

__all__ = ["World", "stream"]

IntArray = NDArray[np.int64]


class World:
    """A bandit that can be pulled: what is seen, and nothing else.

    Parameters
    ----------
    bandit
        The true arms.
    start
        When and in which state each arm was last seen before the first step; by default in its
        last (good) state one step ago.
    seed, replication
        Name the world's luck.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    """

    def __init__(
        self,
        bandit: RestlessBandit,
        start: BeliefState | None = None,
        seed: int = 0,
        replication: int = 0,
        max_elapsed: int | None = None,
    ) -> None:
        if not isinstance(bandit, RestlessBandit):
            raise ProblemError(f"a world needs a RestlessBandit, got {bandit!r:.60}")
        require_paid_when_pulled(bandit.arms)
        replication = checked_count(replication, "replication", 0)
        start = start_or_initial(start, bandit.arms)
        start.require_fits(bandit)
        self.bandit = bandit
        self.time = 1
        kinds = kinds_of(bandit)
        tables = belief_tables(kinds.arms, settled_lengths(kinds, max_elapsed))
        fields = ("offsets", "mean_offsets", "reward_offsets", "sizes", "lengths")
        self._tables = Tables(tables, *(getattr(tables, field)[kinds.of] for field in fields))
        self._key = stream(seed, replication, WORLD)
        self._last_state = start.last_state.copy()
        self._seen = 1 - start.elapsed

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return BeliefState(self._last_state, self.time - self._seen)

    def pull(self, arms: IntArray) -> tuple[IntArray, float, float]:
        """Pull arms: their states, the reward earned and the reward that was to be expected."""
        arms = self._checked(arms)
        states = np.empty(len(arms), dtype=np.int64)
        earned, expected = pull_arms(
            self._tables, self.time, self._last_state, self._seen, self._key, arms, states
        )
        self.time += 1
        return states, earned, expected

    def _checked(self, arms: IntArray) -> IntArray:
        pulled = np.asarray(arms)
        if pulled.ndim != 1 or not np.issubdtype(pulled.dtype, np.integer):
            raise ProblemError(f"arms to pull must be a list of whole numbers, got {arms!r:.60}")
        if len(pulled) and not 0 <= pulled.min() <= pulled.max() < self.bandit.num_arms:
            raise ProblemError(
                f"the arms are 0 to {self.bandit.num_arms - 1}, {pulled.tolist()!s:.60} were pulled"
            )
        if len(np.unique(pulled)) != len(pulled):
            raise ProblemError(f"an arm was pulled twice: {pulled.tolist()!s:.60}")
        return pulled.astype(np.int64)


def stream(seed: int, replication: int, name: int) -> np.uint64:
    """Key of a stream of random numbers."""
    # compiled code hands numbers back as Python's, which have no fixed type
    return np.uint64(stream_key(np.uint64(checked_seed(seed)), replication, name))
