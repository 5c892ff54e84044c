"""Many copies of a restless bandit as one Gymnasium environment: compiled code steps them all."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from os import PathLike
from typing import Any

import numpy as np
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, shown
from restive.errors import ProblemError
from restive.gym.environment import MOST_SEED, checked_start
from restive.gym.forms import Observation, Pulls, made_forms
from restive.gym.problems import VALUES, played, values_of
from restive.learn.priors.independent import Prior
from restive.measure.batch import BatchWorld
from restive.measure.zoo import Instance
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState

__all__ = ["RestlessVectorEnv"]


class RestlessVectorEnv(VectorEnv[Any, Any, NDArray[Any]]):
    """Copies of `RestlessEnv` that step together, each as if it were alone.

    Copy m of `reset(seed=s)` is the single environment of `reset(seed=s + m)`, to the bit, also in
    the episodes that follow. All copies are truncated at the same time, and begin anew in the step
    after that (`AutoresetMode.NEXT_STEP`), whose actions are not looked at.

    Parameters
    ----------
    problem, num_pulls, observation, action, reward, values, max_elapsed
        As in `RestlessEnv`.
    num_envs
        The number of copies M.
    max_episode_steps
        Steps after which all copies are truncated; never with None.
    render_mode
        None: copies are not drawn.
    """

    metadata = {  # noqa: RUF012 (gymnasium's own)
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(
        self,
        problem: str | PathLike[str] | RestlessBandit | Prior | Instance = "paper-frequentist",
        *,
        num_envs: int = 1,
        num_pulls: int | None = None,
        observation: str = "belief",
        action: str = "scores",
        reward: str = "expected",
        values: bool | None = None,
        max_elapsed: int | None = None,
        max_episode_steps: int | None = 1000,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None:
            raise ProblemError(
                f"copies are not drawn: render_mode must be None, got {shown(render_mode)}"
            )
        self.num_envs = checked_count(num_envs, "num_envs", most=10**7)
        if max_episode_steps is not None:
            max_episode_steps = checked_count(max_episode_steps, "max_episode_steps")
        self.max_episode_steps = max_episode_steps
        self._played = played(problem, num_pulls)
        self.forms = made_forms(self._played.like, observation, action, reward)
        self.single_observation_space = self.forms.observation_space()
        self.single_action_space = self.forms.action_space()
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._with_values = self._played.prior is None if values is None else values
        self._max_elapsed = max_elapsed
        self._pulls = Pulls(self.forms, self.num_envs)
        self._rngs: list[np.random.Generator] = []
        self._world: BatchWorld | None = None
        self._steps = 0

    @property
    def bandits(self) -> tuple[RestlessBandit, ...]:
        """The system that is played now, or that of each copy where they are drawn."""
        return self._begun().bandits

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Observation, dict[str, Any]]:
        """Begin an episode in all copies.

        Parameters
        ----------
        seed
            Copy m gets seed + m, or its own from a list.
        options
            `start`, a BeliefState: when and in which state each arm was last seen, in all copies.
        """
        start = checked_start(options)
        self._seed(seed)
        return self._restart(start)

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[Any], NDArray[Any], NDArray[Any], dict[str, Any]]:
        """Pull the arms that actions name, in all copies."""
        world, count = self._begun(), self.num_envs
        never = np.zeros(count, dtype=bool)
        if self._steps == self.max_episode_steps:
            seen, info = self._restart(None)
            return seen, np.zeros(count), never, never.copy(), info
        arms = self._pulls.add(actions)
        self._steps += 1
        truncated = np.full(count, self._steps == self.max_episode_steps)
        if arms is None:
            return self._seen(), np.zeros(count), never, truncated, self._masks()
        states, earned, expected = world.pull(arms)
        reward = expected if self.forms.reward == "expected" else earned
        info = self._noted({"pulled": arms, "states": states}) | self._masks()
        return self._seen(), reward, never, truncated, info

    def action_masks(self) -> NDArray[np.bool_]:
        """Which of the actions [M, A] are not taken in this step, for whoever masks them."""
        if self.forms.action == "scores":
            raise ProblemError("scores have no masks: every action is legal")
        if self.forms.action == "arm":
            return ~self._pulls.taken
        return np.ones((self.num_envs, len(self.forms.subsets)), dtype=bool)

    def _seed(self, seed: int | Sequence[int | None] | None) -> None:
        """Give each copy random numbers of its own, as single environments have."""
        count = self.num_envs
        if isinstance(seed, int | np.integer):
            seeds: list[int | None] = [int(seed) + m for m in range(count)]
        elif seed is None:
            seeds = [None] * count
        else:
            seeds = list(seed)
        if len(seeds) != count:
            raise ProblemError(f"{len(seeds)} seeds were given for {count} copies")
        super().reset(seed=seeds[0])
        if not self._rngs:
            self._rngs = [seeding.np_random(each)[0] for each in seeds]
            return
        for m, each in enumerate(seeds):
            if each is not None:
                self._rngs[m] = seeding.np_random(each)[0]

    def _restart(self, start: BeliefState | None) -> tuple[Any, dict[str, Any]]:
        lucks = [int(rng.integers(MOST_SEED)) for rng in self._rngs]
        prior = self._played.prior
        if self._world is None or prior is not None:
            drawn = self._played.like if prior is None else [self._played.drawn(s) for s in lucks]
            self._world = BatchWorld(
                drawn, lucks, max_elapsed=self._max_elapsed, hold_slow=prior is not None
            )
        self._world.reset(lucks, start=start)
        self._pulls.begin()
        self._steps = 0
        info = {"seed": np.array(lucks, dtype=np.int64)} | self._values()
        return self._seen(), self._noted(info) | self._masks()

    def _values(self) -> dict[str, NDArray[Any]]:
        """Return what the systems are worth, a number for each copy."""
        found = {name: np.full(self.num_envs, nan) for name in VALUES}
        if self._with_values:
            rows = [values_of(bandit, self._max_elapsed) for bandit in self.bandits]
            for name in VALUES:
                found[name][:] = [row[name] for row in rows]
        return found

    def _seen(self) -> Any:
        world, forms = self._begun(), self.forms
        if forms.observation == "belief":
            none = np.zeros((0, 0), dtype=np.int64)
            return forms.seen(none, none, world.beliefs, self._pulls.taken)
        return forms.seen(world.last_state, world.elapsed, None, self._pulls.taken)

    def _noted(self, info: dict[str, NDArray[Any]]) -> dict[str, Any]:
        """Say of each entry which copies have it, as Gymnasium's own copies do: all of them."""
        return info | {f"_{name}": np.ones(self.num_envs, dtype=bool) for name in info}

    def _masks(self) -> dict[str, Any]:
        if self.forms.action != "arm":
            return {}
        return self._noted({"action_mask": self.action_masks()})

    def _begun(self) -> BatchWorld:
        if self._world is None:
            raise ProblemError("call reset before anything else")
        return self._world
