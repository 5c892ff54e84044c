"""Simulation: one visible trajectory of an agent or a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.tsde import TSDE
from restive.arguments import checked_count, require_memory
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.policies.base import Policy
from restive.problem import RestlessBandit
from restive.world import World

__all__ = ["Trajectory", "simulate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Agent(Protocol):
    """What `simulate` needs of a learner."""

    def select(self) -> IntArray:
        """Return the arms to pull."""

    def observe(self, states: ArrayLike) -> None:
        """Tell what was seen of them."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What happened, step by step."""

    arms: IntArray  # [T, N] arms pulled
    states: IntArray  # [T, N] states seen
    rewards: FloatArray  # [T] rewards earned
    expected_rewards: FloatArray  # [T] E[r | xi_t, A_t]
    last_state: IntArray  # [T, K] sigma_t, before the step
    elapsed: IntArray  # [T, K] n_t, before the step
    episode: IntArray  # [T] number of the episode; 0 for a policy


def simulate(
    bandit: RestlessBandit,
    agent_or_policy: Agent | Policy,
    horizon: int,
    seed: int = 0,
    *,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
) -> Trajectory:
    """Run an agent, or a policy that knows the bandit, and keep everything that happens.

    Parameters
    ----------
    bandit
        The true arms.
    agent_or_policy
        A fresh agent with `select()` and `observe(states)`, or a policy with `select(state)`.
    horizon
        Number of steps.
    seed
        Of the world's luck.
    start
        As in `World`; an agent must have been made with the same.
    max_elapsed
        As in `World`.
    """
    horizon = checked_count(horizon, "horizon")
    world = World(bandit, start, seed, max_elapsed=max_elapsed)
    if not callable(getattr(agent_or_policy, "select", None)):
        raise ProblemError(f"expected an agent or a policy, got {agent_or_policy!r:.60}")
    num_arms, num_pulls = bandit.num_arms, bandit.num_pulls
    require_memory(16 * horizon * (num_arms + num_pulls), "the trajectory", "use a smaller horizon")
    shape = (horizon, num_pulls)
    kept = Trajectory(
        arms=np.empty(shape, dtype=np.int64),
        states=np.empty(shape, dtype=np.int64),
        rewards=np.empty(horizon),
        expected_rewards=np.empty(horizon),
        last_state=np.empty((horizon, num_arms), dtype=np.int64),
        elapsed=np.empty((horizon, num_arms), dtype=np.int64),
        episode=np.zeros(horizon, dtype=np.int64),
    )
    observe = getattr(agent_or_policy, "observe", None)
    for t in range(horizon):
        before = world.belief_state
        known = () if observe is not None else (before,)
        arms = agent_or_policy.select(*known)
        if len(arms) != num_pulls:
            raise ProblemError(f"{num_pulls} arms are pulled each step, {len(arms)} were selected")
        states, kept.rewards[t], kept.expected_rewards[t] = world.pull(arms)
        kept.arms[t], kept.states[t] = arms, states
        kept.last_state[t], kept.elapsed[t] = before.last_state, before.elapsed
        if isinstance(agent_or_policy, TSDE):
            kept.episode[t] = agent_or_policy.episode.number
        if observe is not None:
            observe(states)
    return kept
