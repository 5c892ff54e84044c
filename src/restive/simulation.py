"""Simulation: one visible trajectory of an agent or a policy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.actors import make_record, make_trace, world_of
from restive.agents import Agent
from restive.agents.learners import Relative
from restive.agents.mind import Mind
from restive.arguments import checked_count, require_memory
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.loop import InPython, drive
from restive.policies.base import Policy
from restive.prior import ArmPrior, IndependentPrior
from restive.problem import RestlessBandit
from restive.task import make_task

__all__ = ["Trajectory", "simulate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
    agent_or_policy: InPython | Policy,
    horizon: int,
    *,
    seed: int = 0,
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
    if not isinstance(bandit, RestlessBandit):
        raise ProblemError(f"a simulation needs a RestlessBandit, got {bandit!r:.60}")
    if not callable(getattr(agent_or_policy, "select", None)):
        raise ProblemError(f"expected an agent or a policy, got {agent_or_policy!r:.60}")
    num_arms, num_pulls = bandit.num_arms, bandit.num_pulls
    require_memory(16 * horizon * (num_arms + num_pulls), "the trajectory", "use a smaller horizon")
    known = IndependentPrior([ArmPrior([arm]) for arm in bandit.arms])
    task = make_task(known, num_pulls, "best_fixed", start=start, max_elapsed=max_elapsed)
    mind = Mind(task, None)
    player = _Player(mind, agent_or_policy)
    truth = task.choices.kinds.of.astype(np.int64)[task.choices.pool_of_arm][None]
    record = make_record(num_pulls, task.start, np.array([horizon]), truth, seed)
    trace = make_trace(horizon, num_pulls)
    drive(mind, world_of(task.choices.tables, num_arms), record, trace, player)
    arms = trace.arms.reshape(horizon, num_pulls)
    states = trace.states.reshape(horizon, num_pulls)
    last_state, elapsed = _meta_states(task.start, arms, states)
    episode = np.array(player.phases, dtype=np.int64)
    return Trajectory(arms, states, trace.earned, trace.expected, last_state, elapsed, episode)


class _Player:
    """An agent, or a policy that is shown the meta-state."""

    def __init__(self, mind: Mind, acting: Any) -> None:
        self._mind = mind
        self._acting = acting
        self._learns = callable(getattr(acting, "observe", None))
        self._counts = isinstance(acting, Agent) and isinstance(acting.learner, Relative)
        self.phases: list[int] = []

    def select(self) -> ArrayLike:
        arms = self._acting.select(*(() if self._learns else (self._mind.belief_state,)))
        self.phases.append(self._acting.num_phases if self._counts else 0)
        return arms  # type: ignore[no-any-return]

    def observe(self, states: IntArray) -> None:
        if self._learns:
            self._acting.observe(states)


def _meta_states(start: BeliefState, arms: IntArray, states: IntArray) -> tuple[IntArray, IntArray]:
    """Last states and elapsed steps [T, K] before each step."""
    horizon, num_arms = len(arms), start.num_arms
    last_state = np.empty((horizon, num_arms), dtype=np.int64)
    seen = np.empty_like(last_state)
    last_state[0], seen[0] = start.last_state, 1 - start.elapsed
    for t in range(1, horizon):
        last_state[t], seen[t] = last_state[t - 1], seen[t - 1]
        last_state[t, arms[t - 1]] = states[t - 1]
        seen[t, arms[t - 1]] = t
    return last_state, np.arange(1, horizon + 1)[:, None] - seen
