"""One copy of a restless bandit as a Gymnasium environment."""

from __future__ import annotations

from math import nan
from os import PathLike
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted, shown, suggestion
from restive.errors import ProblemError
from restive.gym.forms import Observation, Pulls, made_forms
from restive.gym.problems import VALUES, played, values_of
from restive.learn.priors.independent import Prior
from restive.measure.world import World
from restive.measure.zoo import Instance
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState

__all__ = ["MOST_SEED", "RestlessEnv", "checked_start"]

MOST_SEED = 1 << 53  # of a world: whatever reads JSON reads it exactly
OPTIONS = ("start",)


class RestlessEnv(gymnasium.Env[Any, Any]):
    """A restless bandit: each step N of its K arms are pulled, and move as all others do.

    The episode that `reset` begins is that of `rs.World(env.unwrapped.bandit, seed=info["seed"])`,
    to the bit. It has no end of its own; `gymnasium.make` cuts it after `max_episode_steps`.

    Parameters
    ----------
    problem
        A name of the zoo, a problem file, a bandit, or a prior, from which each reset draws a
        system: `prior.sample(info["seed"], num_pulls)`.
    num_pulls
        How many arms are pulled each step, where the problem is a prior that does not know.
    observation
        "belief": the law of each arm's state now [K, S], given what was last seen of it, for
        somebody who knows the system. "sighting": the state in which each arm was last seen and
        the steps since then, for somebody who does not. Where actions are single arms and several
        are pulled, both also say which arms are taken in this step, "belief" by one more column.
    action
        "scores": a number for each arm, of which the N largest are pulled; the lowest arm wins
        ties, and only the order counts. "subset": the number of a set of N arms, in the order of
        `itertools.combinations`, where there are at most 10,000. "arm": one arm at a time, N
        actions a step of the world, of which the last is rewarded; an arm that is taken stands for
        the first that is free (`action_masks`).
    reward
        "expected": the reward to be expected given all that was seen, which has less noise, or
        "realised". Both are those of all arms, if others than the pulled ones pay.
    values
        Whether `info` of `reset` says what the system is worth: its bound, its optimum and what
        Whittle's index earns. By default only where the system is known, so that it is found once.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    render_mode
        None, or "ansi" for text.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (gymnasium's own)

    def __init__(
        self,
        problem: str | PathLike[str] | RestlessBandit | Prior | Instance = "paper-frequentist",
        *,
        num_pulls: int | None = None,
        observation: str = "belief",
        action: str = "scores",
        reward: str = "expected",
        values: bool | None = None,
        max_elapsed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ProblemError(f"render_mode must be None or 'ansi', got {shown(render_mode)}")
        self._played = played(problem, num_pulls)
        self.forms = made_forms(self._played.like, observation, action, reward)
        self.observation_space = self.forms.observation_space()
        self.action_space = self.forms.action_space()
        self.render_mode = render_mode
        self._with_values = self._played.prior is None if values is None else values
        self._max_elapsed = max_elapsed
        self._pulls = Pulls(self.forms, 1)
        self._world: World | None = None
        self._last = ""

    @property
    def bandit(self) -> RestlessBandit:
        """The system that is played now."""
        return self._begun().bandit

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode.

        Parameters
        ----------
        seed
            Of the environment's own random numbers, which draw the seeds of worlds.
        options
            `start`, a BeliefState: when and in which state each arm was last seen.
        """
        super().reset(seed=seed)
        start = checked_start(options)
        luck = int(self.np_random.integers(MOST_SEED))
        if self._world is None or self._played.prior is not None:
            self._world = World(
                self._played.drawn(luck),
                seed=luck,
                max_elapsed=self._max_elapsed,
                hold_slow=self._played.prior is not None,
            )
        self._world.reset(luck, start=start)
        self._pulls.begin()
        self._last = "nothing pulled yet"
        values = dict.fromkeys(VALUES, nan)
        if self._with_values:
            values = values_of(self._world.bandit, self._max_elapsed)
        return self._seen(), {"seed": luck, **values, **self._masks()}

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Pull the arms that an action names; neither of the two ends is ever True."""
        world = self._begun()
        arms = self._pulls.add([action])
        if arms is None:
            return self._seen(), 0.0, False, False, self._masks()
        _, earned, expected = world.pull(arms[0])
        reward = expected if self.forms.reward == "expected" else earned
        if self.render_mode is not None:
            self._last = f"pulled {', '.join(map(str, arms[0]))}, reward {reward:.4g}"
        states = world.belief_state.last_state[arms[0]]
        info = {"pulled": arms[0], "states": states, **self._masks()}
        return self._seen(), reward, False, False, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which of the actions are not taken in this step, for whoever masks them."""
        if self.forms.action == "scores":
            raise ProblemError("scores have no masks: every action is legal")
        if self.forms.action == "arm":
            return np.asarray(~self._pulls.taken[0])
        return np.ones(len(self.forms.subsets), dtype=bool)

    def render(self) -> str | None:
        """Return what is known of each arm as text, where the render mode is "ansi"."""
        if self.render_mode is None:
            return None
        world = self._begun()
        state, beliefs = world.belief_state, world.beliefs
        lines = [f"time {world.time:,}: {self._last}"]
        for k, arm in enumerate(world.bandit.arms):
            seen, age = arm.state_name(int(state.last_state[k])), int(state.elapsed[k])
            laws = ", ".join(f"{p:.3f}" for p in beliefs[k, : arm.num_states])
            label = world.bandit.label(k)
            lines.append(f"{label}: seen in {seen} {counted(age, 'step')} ago, now {laws}")
        return "\n".join(lines)

    def _begun(self) -> World:
        if self._world is None:
            raise ProblemError("call reset before anything else")
        return self._world

    def _seen(self) -> Any:
        world = self._begun()
        state = world.belief_state
        beliefs = world.beliefs[None] if self.forms.observation == "belief" else None
        seen = self.forms.seen(
            state.last_state[None], state.elapsed[None], beliefs, self._pulls.taken
        )
        if isinstance(seen, dict):
            return {name: values[0].copy() for name, values in seen.items()}
        return seen[0]

    def _masks(self) -> dict[str, Any]:
        return {"action_mask": self.action_masks()} if self.forms.action == "arm" else {}


def checked_start(options: dict[str, Any] | None) -> BeliefState | None:
    """Return the start among a reset's options, or say what is wrong with them."""
    if options is None:
        return None
    if not isinstance(options, dict):
        raise ProblemError(f"options must be a dictionary, got {shown(options)}")
    for option in options:
        if option not in OPTIONS:
            raise ProblemError(f"unknown option {shown(option)}; {suggestion(option, OPTIONS)}")
    start = options.get("start")
    if start is not None and not isinstance(start, BeliefState):
        raise ProblemError(f"start must be a BeliefState, got {shown(start)}")
    return start
