"""Random: pull arms at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_seed
from restive.plan.policies.base import highest, policy_repr
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState, require_state

__all__ = ["RandomPolicy", "random_policy"]

IntArray = NDArray[np.int64]


class RandomPolicy:
    """Pulls N arms drawn evenly; each call draws anew."""

    def __init__(self, bandit: RestlessBandit, seed: int = 0) -> None:
        self.bandit = bandit
        self.name = "random"
        self._rng = np.random.default_rng(checked_seed(seed))

    def __repr__(self) -> str:
        return policy_repr(self)

    def select(self, state: BeliefState) -> IntArray:
        """Return the arms to pull, ascending [N]."""
        require_state(state, self.bandit)
        chosen: IntArray = self.select_many(state.last_state[None], state.elapsed[None])[0]
        return chosen

    def select_many(self, last_state: IntArray, elapsed: IntArray) -> IntArray:
        """Arms to pull [M, N], ascending, for M meta-states given as [M, K] arrays."""
        lots = self._rng.random(last_state.shape)
        return highest(-lots, self.bandit.num_pulls)


def random_policy(bandit: RestlessBandit, *, seed: int = 0) -> RandomPolicy:
    """Return the policy that pulls N arms at random.

    It is no mapping: it does not always choose the same arms in the same state, so that it has no
    joint chain to be evaluated on.
    """
    return RandomPolicy(bandit, seed)
