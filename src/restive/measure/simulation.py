"""Simulation: one visible trajectory of an agent or a policy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, counted, drawn_seed, require_memory
from restive.errors import ProblemError
from restive.learn.agent import Agent
from restive.learn.learners.base import Relative
from restive.learn.requests import checked_arms
from restive.measure.loop import InPython, checked_pulls
from restive.measure.world import World
from restive.pages.figures import Track, plot_tracks
from restive.pages.frames import data_frame
from restive.plan.policies.base import Policy
from restive.plan.policies.registry import as_policy
from restive.plan.policies.round_robin import RoundRobinPolicy, Turns
from restive.problem.bandit import RestlessBandit, require_bandit
from restive.problem.beliefs import BeliefState, laws_now

__all__ = ["Trajectory", "simulate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


MOST_TRACKS = 8  # arms that are drawn
SHOWN_STEPS = 100  # that are drawn


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What happened, step by step."""

    arms: IntArray  # [T, N] arms pulled
    states: IntArray  # [T, N] states seen; of arms that are always seen, the next ones
    rewards: FloatArray  # [T] rewards earned
    expected_rewards: FloatArray  # [T] E[r | xi_t, A_t]
    last_state: IntArray  # [T, K] sigma_t, before the step
    elapsed: IntArray  # [T, K] n_t, before the step
    episode: IntArray  # [T] number of the episode; 0 for a policy
    hidden_states: IntArray  # [T, K] states of all arms, seen or not; no rows if not simulated
    bandit: RestlessBandit  # the true arms
    seed: int  # of the world's luck

    def __len__(self) -> int:
        return len(self.rewards)

    def __repr__(self) -> str:
        return (
            f"Trajectory({counted(len(self), 'step')}, {counted(self.bandit.num_pulls, 'pull')} of "
            f"{counted(self.bandit.num_arms, 'arm')}, {self.rewards.mean():.4g} per step, "
            f"seed {self.seed})"
        )

    def to_pandas(self) -> Any:
        """Return a data frame, a row per pull (needs pandas).

        `last_state` and `elapsed` are those before the pull, `reward` what this arm paid.
        """
        steps = np.repeat(np.arange(len(self)), self.arms.shape[1])
        arms, states = self.arms.ravel(), self.states.ravel()
        last_state = self.last_state[steps, arms]
        known = self.bandit.arms
        named = {
            key: [known[k].state_name(s) for k, s in zip(arms, codes, strict=True)]
            for key, codes in (("state_name", states), ("last_state_name", last_state))
        }
        return data_frame(
            {
                "time": steps + 1,
                "arm": arms,
                "name": [known[k].name or "" for k in arms],
                "state": states,
                "state_name": named["state_name"],
                "reward": [
                    known[k].rewards[before if known[k].always_seen else s]
                    for k, s, before in zip(arms, states, last_state, strict=True)
                ],
                "last_state": last_state,
                "last_state_name": named["last_state_name"],
                "elapsed": self.elapsed[steps, arms],
                "episode": self.episode[steps],
            }
        )

    def plot(self, arms: Sequence[int] | None = None, steps: int = SHOWN_STEPS) -> Any:
        """Draw pulls, states seen and beliefs of some arms over the last steps.

        Parameters
        ----------
        arms
            Which arms; by default the first 8.
        steps
            How many steps, up to the last.

        Returns
        -------
        The matplotlib Axes, an array with one for each arm.
        """
        num_arms = self.bandit.num_arms
        if arms is None:
            arms = range(min(num_arms, MOST_TRACKS))
        chosen = checked_arms(np.array(list(arms), dtype=np.int64), num_arms, "arms to draw")
        if not len(chosen):
            raise ProblemError("arms to draw: none were given")
        first = max(0, len(self) - checked_count(steps, "steps"))
        times = np.arange(first, len(self)) + 1
        return plot_tracks(times, [self._track(k, first) for k in chosen.tolist()])

    def _track(self, k: int, first: int) -> Track:
        arm, ages = self.bandit.arms[k], self.elapsed[first:, k]
        means = np.einsum("snt,t->sn", laws_now(arm, int(ages.max())), arm.rewards)
        at, place = np.nonzero(self.arms[first:] == k)
        return Track(
            self.bandit.label(k),
            arm.rewards,
            arm.states,
            means[self.last_state[first:, k], ages - 1],
            at + first + 1,
            self.states[first:][at, place],
        )


def simulate(
    bandit: RestlessBandit,
    agent_or_policy: InPython | Policy | str,
    horizon: int,
    *,
    seed: int | None = 0,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    hidden: bool = False,
) -> Trajectory:
    """Run an agent, or a policy that knows the bandit, and keep everything that happens.

    Parameters
    ----------
    bandit
        The true arms.
    agent_or_policy
        A fresh agent with `select()` and `observe(states)`, a policy with `select(state)`, or the
        name of a policy, as in `evaluate`, or "random".
    horizon
        Number of steps.
    seed
        Of the world's luck; with None one is drawn, which the trajectory shows.
    start
        As in `World`; an agent must have been made with the same.
    max_elapsed
        As in `World`.
    hidden
        Simulate the states of all arms, with luck of their own, and pay what they pay; as in
        `World`.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> rs.simulate(bandit, "whittle", horizon=100, seed=1)
    Trajectory(100 steps, 1 pull of 2 arms, 0.53 per step, seed 1)
    """
    horizon = checked_count(horizon, "horizon")
    seed = drawn_seed(seed)
    require_bandit(bandit)
    player = _Player(agent_or_policy, bandit, max_elapsed)
    num_arms, num_pulls = bandit.num_arms, bandit.num_pulls
    numbers = horizon * (2 * num_pulls + (3 if hidden else 2) * num_arms)
    require_memory(8 * numbers, "the trajectory", "use a smaller horizon")
    world = World(bandit, start=start, seed=seed, max_elapsed=max_elapsed, hidden=hidden)
    arms, states = (np.empty((horizon, num_pulls), dtype=np.int64) for _ in range(2))
    last_state, elapsed = (np.empty((horizon, num_arms), dtype=np.int64) for _ in range(2))
    earned, expected = np.empty(horizon), np.empty(horizon)
    episode = np.zeros(horizon, dtype=np.int64)
    all_states = np.empty((horizon if hidden else 0, num_arms), dtype=np.int64)
    for t in range(horizon):
        now = world.belief_state
        last_state[t], elapsed[t] = now.last_state, now.elapsed
        if hidden:
            all_states[t] = world.hidden_states
        arms[t] = checked_pulls(player.select(now), num_arms, num_pulls)
        episode[t] = player.num_phases
        shown, earned[t], expected[t] = world.pull(arms[t])
        states[t] = world.belief_state.last_state[arms[t]]
        player.observe(shown)
    return Trajectory(
        arms, states, earned, expected, last_state, elapsed, episode, all_states, bandit, seed
    )


def _require_fresh(agent: Agent, bandit: RestlessBandit) -> None:
    """Raise for an agent that has learnt elsewhere, or that takes rewards for other ones."""
    if agent.time > 1 or agent.selected is not None:
        raise ProblemError(
            f"this agent has acted before (it is at time {agent.time:,}), and what it knows is of "
            "another world; give a new one, or go on by hand: world.pull(agent.select())"
        )
    if agent.prior.num_arms != bandit.num_arms:
        return  # said where arms are pulled
    for k, arm in enumerate(bandit.arms):
        believed = agent.prior.typical(k)
        for name in ("rewards", "passive_rewards"):
            paid, taken = getattr(arm, name), getattr(believed, name)
            if not np.array_equal(paid, taken):
                raise ProblemError(
                    f"{bandit.label(k)}: pays {name} {paid.tolist()}, and the agent's prior has "
                    f"{taken.tolist()}: it would learn for other rewards; make the prior like the "
                    "bandit, as in beta_prior(like=bandit)"
                )


class _Player:
    """An agent, or a policy that is shown the meta-state."""

    def __init__(self, given: Any, bandit: RestlessBandit, max_elapsed: int | None) -> None:
        acting: Any = as_policy(given, bandit, max_elapsed=max_elapsed)
        if not callable(getattr(acting, "select", None)):
            raise ProblemError(f"expected an agent or a policy, got {given!r:.60}")
        if isinstance(acting, Agent):
            _require_fresh(acting, bandit)
        if isinstance(acting, RoundRobinPolicy) and acting.must_count:
            acting = Turns(bandit)
        self._acting = acting
        self._learns = callable(getattr(acting, "observe", None))
        self._counts = isinstance(acting, Agent) and isinstance(acting.learner, Relative)

    def select(self, state: BeliefState) -> ArrayLike:
        arms: ArrayLike = self._acting.select(*(() if self._learns else (state,)))
        return arms

    @property
    def num_phases(self) -> int:
        return int(self._acting.num_phases) if self._counts else 0

    def observe(self, states: IntArray) -> None:
        if self._learns:
            self._acting.observe(states)
