"""Round robin: every arm in its turn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.plan.policies.base import highest, policy_repr
from restive.problem.bandit import RestlessBandit, always_seen
from restive.problem.beliefs import BeliefState, require_state

__all__ = ["RoundRobinPolicy", "Turns", "round_robin"]

IntArray = NDArray[np.int64]


class RoundRobinPolicy:
    """Pulls the arms that were not seen for longest; among these, those next in the round.

    The round continues after the arms seen last, so that the meta-state says it all, unless arms
    are always seen: then whose turn it is must be counted (`Turns`).
    """

    def __init__(self, bandit: RestlessBandit) -> None:
        self.bandit = bandit
        self.name = "round_robin"

    def __repr__(self) -> str:
        return policy_repr(self)

    @property
    def must_count(self) -> bool:
        """Whether a meta-state does not tell whose turn it is."""
        fewer = self.bandit.num_pulls < self.bandit.num_arms
        return fewer and bool(always_seen(self.bandit).any())

    def select(self, state: BeliefState) -> IntArray:
        """Return the arms to pull, ascending [N]."""
        require_state(state, self.bandit)
        chosen: IntArray = self.select_many(state.last_state[None], state.elapsed[None])[0]
        return chosen

    def select_many(self, last_state: IntArray, elapsed: IntArray) -> IntArray:
        """Arms to pull [M, N], ascending, for M meta-states given as [M, K] arrays."""
        num_arms = self.bandit.num_arms
        latest = elapsed == elapsed.min(axis=1, keepdims=True)
        last_of_round = latest & ~np.roll(latest, -1, axis=1)
        first = (np.argmax(last_of_round, axis=1) + 1) % num_arms
        first[~last_of_round.any(axis=1)] = 0  # all were seen at once
        turn = (np.arange(num_arms) - first[:, None]) % num_arms
        _, age = np.unique(elapsed, return_inverse=True)  # ranks: ages may be very large
        return highest(age.reshape(elapsed.shape) * num_arms - turn, self.bandit.num_pulls)


class Turns:
    """Takes turns by counting them, from arm 0 on: an agent that learns nothing."""

    def __init__(self, bandit: RestlessBandit) -> None:
        self.num_arms, self.num_pulls, self.next = bandit.num_arms, bandit.num_pulls, 0

    def select(self) -> IntArray:
        """Return the arms to pull, ascending [N]."""
        arms: IntArray = np.sort((self.next + np.arange(self.num_pulls)) % self.num_arms)
        return arms

    def observe(self, states: object) -> None:
        """Go on to the next arms."""
        self.next = (self.next + self.num_pulls) % self.num_arms


def round_robin(bandit: RestlessBandit) -> RoundRobinPolicy:
    """Return the policy that pulls every arm in its turn.

    It needs to know nothing about the arms, and pulls each of them every K / N steps. Among arms
    that are always seen it can be simulated, not evaluated: see `RoundRobinPolicy`.
    """
    return RoundRobinPolicy(bandit)
