"""Speed of the Gymnasium environment, in millions of environment steps per CPU second."""

from __future__ import annotations

from time import process_time
from typing import Any

import gymnasium
import numpy as np

import restive as rs
import restive.gym  # registers it
from benchmarks.harness import Result, best_time

__all__ = ["run"]

ID = "restive/Restless-v0"
COPIES = 1024
STEPS = 1000  # of all copies: an episode, with the reset that follows
SMALL = rs.zoo.load("paper-frequentist").bandit
LARGE = rs.grid_prior([i / 10 for i in range(1, 10)], 8).sample(0, 3)


def run() -> list[Result]:
    assert SMALL is not None
    small, large = _copies(SMALL, COPIES), _copies(LARGE, COPIES)
    others = ", ".join(f"{count:,}: {_copies(SMALL, count):.2g}" for count in (1, 16, 256, 4096))
    published = [_published(bandit) for bandit in (SMALL, LARGE)]
    return [
        Result(
            "gym: million steps a CPU second, K=4 N=2, 1,024 copies",
            small,
            4,
            True,
            f"by number of copies {others}; one environment by itself {_single(SMALL):.2g}",
        ),
        Result("the same, K=8 N=3", large, 4, True),
        Result(
            "the same, times faster than the loop that papers publish, K=4 N=2",
            small / published[0],
            100,
            True,
            f"the loop: {published[0]:.2g} million, with K=8 N=3 {published[1]:.2g}",
        ),
    ]


def _rate(steps: int, work: Any) -> float:
    return steps / best_time(work, 5, process_time) / 1e6


def _copies(bandit: rs.RestlessBandit, count: int) -> float:
    env = gymnasium.make_vec(ID, num_envs=count, problem=bandit, values=False)
    actions = np.random.default_rng(0).uniform(-1, 1, (100, count, bandit.num_arms))
    rows = list(actions.astype(np.float32))
    env.reset(seed=0)

    def episode() -> None:
        for step in range(STEPS):
            env.step(rows[step % len(rows)])

    return _rate(STEPS * count, episode)


def _single(bandit: rs.RestlessBandit) -> float:
    env = gymnasium.make(ID, problem=bandit, values=False).unwrapped
    action = env.action_space.sample()
    env.reset(seed=0)
    return _rate(STEPS, lambda: [env.step(action) for _ in range(STEPS)])


class _Published:
    """An environment as papers write it: a loop over arms, and a draw from a row for each."""

    def __init__(self, bandit: rs.RestlessBandit, seed: int) -> None:
        self.bandit, self.rng = bandit, np.random.default_rng(seed)
        self.states = [arm.num_states - 1 for arm in bandit.arms]
        self.beliefs = [arm.active[-1] for arm in bandit.arms]

    def step(self, scores: np.ndarray) -> tuple[np.ndarray, float]:
        """Pull the arms with the largest scores; return beliefs and the reward."""
        reward, pulled = 0.0, np.argsort(-scores)[: self.bandit.num_pulls]
        for k, arm in enumerate(self.bandit.arms):
            if k in pulled:
                reward += arm.rewards[self.states[k]]
                self.beliefs[k] = np.eye(arm.num_states)[self.states[k]]
            matrix = arm.active if k in pulled else arm.passive
            self.states[k] = self.rng.choice(arm.num_states, p=matrix[self.states[k]])
            self.beliefs[k] = self.beliefs[k] @ matrix
        return np.array(self.beliefs), reward


def _published(bandit: rs.RestlessBandit) -> float:
    env = _Published(bandit, 0)
    scores = np.random.default_rng(0).uniform(-1, 1, (STEPS, bandit.num_arms))
    return _rate(STEPS, lambda: [env.step(row) for row in scores])
