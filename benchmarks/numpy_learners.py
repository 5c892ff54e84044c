"""The learners as one would write them with numpy: vectorised over arms, a step at a time.

Two-state arms with equal matrices, of which the good state pays 1, drawn from a grid as in the
paper's experiment. They are the yardsticks of the learners' speed and no part of restive; only the
Whittle index that Restless-UCB plans with is restive's. TSDE itself is in `numpy_tsde.py`.

`beliefs` are those of `numpy_tsde.grid_tables`. All return the expected reward collected and the
number of episodes or phases begun.
"""

from __future__ import annotations

from math import ceil, log, log2, sqrt

import numpy as np
from numpy.typing import NDArray

import restive as rs

__all__ = [
    "run_beta_bernoulli",
    "run_regenerative_cycle",
    "run_relative",
    "run_restless_ucb",
    "run_ucb1",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class World:
    """Arms drawn from the grid, each seen good one step ago; only pulled ones are looked at."""

    def __init__(self, beliefs: FloatArray, num_arms: int, rng: np.random.Generator) -> None:
        self.beliefs = beliefs
        self.rng = rng
        self.truth = rng.integers(len(beliefs), size=num_arms)
        self.last_state = np.ones(num_arms, dtype=int)
        self.elapsed = np.ones(num_arms, dtype=int)
        self.expected = 0.0

    def pull(self, arms: IntArray) -> IntArray:
        """Return the states in which the arms are seen; a step passes."""
        age = np.minimum(self.elapsed[arms], self.beliefs.shape[2]) - 1
        good = self.beliefs[self.truth[arms], self.last_state[arms], age]
        self.expected += good.sum()
        seen = (self.rng.random(len(arms)) < good).astype(int)
        self.elapsed += 1
        self.elapsed[arms] = 1
        self.last_state[arms] = seen
        return seen


def top(values: FloatArray, count: int) -> IntArray:
    """Return the arms with the largest values; the lowest arm wins ties."""
    return np.argsort(-values, kind="stable")[:count]


def run_relative(
    index: FloatArray,
    beliefs: FloatArray,
    num_arms: int,
    num_pulls: int,
    horizon: int,
    mixing_quarter: int,
    rng: np.random.Generator,
    length: float | None = None,
    doubling_rule: bool = True,
    most_likely: bool = False,
    epsilon: float = 0.0,
    averaged: bool = False,
) -> tuple[float, int]:
    """TSDE and its relatives, after `numpy_tsde.run_tsde`; the defaults are TSDE.

    `length` is that of every episode, None for one step more than the last had; with `averaged`
    the index is its mean over the posterior.
    """
    num_candidates, _, num_ages = beliefs.shape
    truth = rng.integers(num_candidates, size=num_arms)
    likelihood = np.stack([1 - beliefs, beliefs], axis=-1)  # [C, 2, L, 2]
    mixing = ceil(log2(horizon) * mixing_quarter)
    weights = np.full((num_arms, num_candidates), 1 / num_candidates)
    last_state = np.ones(num_arms, dtype=int)
    elapsed = np.ones(num_arms, dtype=int)
    counts = np.zeros((num_arms, 2, mixing), dtype=int)
    expected = 0.0
    episodes, longest, started, doubled = 0, 0.0, 1, False
    for t in range(1, horizon + 1):
        if t == 1 or doubled or t >= started + longest:
            longest = t - started + 1 if length is None else length
            started = t
            if doubling_rule:
                base = counts.copy()
            if most_likely:
                sampled = weights.argmax(axis=1)
            else:
                cumulative = weights.cumsum(axis=1)
                draws = rng.random(num_arms) * cumulative[:, -1]
                sampled = (cumulative <= draws[:, None]).sum(axis=1)
            episodes += 1
        age = np.minimum(elapsed, num_ages) - 1
        if epsilon > 0 and rng.random() < epsilon:
            pulled = rng.choice(num_arms, num_pulls, replace=False)
        elif averaged:
            means = (weights * index[:, last_state, age].T).sum(axis=1) / weights.sum(axis=1)
            pulled = top(means, num_pulls)
        else:
            pulled = top(index[sampled, last_state, age], num_pulls)
        s, n = last_state[pulled], age[pulled]
        good = beliefs[truth[pulled], s, n]
        expected += good.sum()
        seen = (rng.random(num_pulls) < good).astype(int)
        weights[pulled] *= likelihood[:, s, n, seen].T
        weights[pulled] /= weights[pulled].sum(axis=1, keepdims=True)
        if doubling_rule:
            cell = (pulled, s, np.minimum(elapsed[pulled], mixing) - 1)
            counts[cell] += 1
            doubled = bool((counts[cell] > 2 * base[cell]).any())
        elapsed += 1
        elapsed[pulled] = 1
        last_state[pulled] = seen
    return expected, episodes


def run_ucb1(
    beliefs: FloatArray, num_arms: int, num_pulls: int, horizon: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Pull the arms with the largest upper confidence bounds of the mean reward."""
    world = World(beliefs, num_arms, rng)
    pulls = np.zeros(num_arms)
    rewards = np.zeros(num_arms)
    for t in range(1, horizon + 1):
        tried = np.maximum(pulls, 1)
        bound = rewards / tried + np.sqrt(2 * log(t) / tried)
        pulled = top(np.where(pulls > 0, bound, np.inf), num_pulls)
        seen = world.pull(pulled)
        pulls[pulled] += 1
        rewards[pulled] += seen
    return world.expected, 0


def run_beta_bernoulli(
    beliefs: FloatArray, num_arms: int, num_pulls: int, horizon: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Draw means from Beta posteriors; rewards are 0 or 1, so no coin has to be tossed."""
    world = World(beliefs, num_arms, rng)
    successes = np.ones(num_arms)
    failures = np.ones(num_arms)
    for _ in range(horizon):
        pulled = top(rng.beta(successes, failures), num_pulls)
        seen = world.pull(pulled)
        successes[pulled] += seen
        failures[pulled] += 1 - seen
    return world.expected, horizon


def run_regenerative_cycle(
    beliefs: FloatArray,
    num_arms: int,
    num_pulls: int,
    horizon: int,
    rng: np.random.Generator,
    exploration: float = 2.0,
) -> tuple[float, int]:
    """Pull arms in blocks: seek the arm's state, go through a cycle, end when it is back."""
    free, seeking, in_cycle = 0, 1, 2
    world = World(beliefs, num_arms, rng)
    home = np.full(num_arms, -1)  # the regenerative state
    part = np.full(num_arms, free)
    length = np.zeros(num_arms)  # of all cycles of an arm
    rewards = np.zeros(num_arms)
    cycle_steps, blocks = 0, 0
    for _ in range(horizon):
        pulled = np.flatnonzero(part != free)
        wanted = num_pulls - len(pulled)
        if wanted > 0:
            tried = np.maximum(length, 1)
            bound = rewards / tried + np.sqrt(exploration * log(max(1, cycle_steps)) / tried)
            bound[length == 0] = np.inf
            bound[pulled] = -np.inf
            beginning = top(bound, wanted)
            part[beginning] = seeking
            pulled = np.concatenate([pulled, beginning])
            blocks += wanted
        seen = world.pull(pulled)
        home[pulled] = np.where(home[pulled] < 0, seen, home[pulled])
        came = pulled[seen == home[pulled]]
        part[came] = np.where(part[came] == seeking, in_cycle, free)
        counting = part[pulled] == in_cycle
        length[pulled[counting]] += 1
        rewards[pulled[counting]] += seen[counting]
        cycle_steps += bool(counting.any())
    return world.expected, blocks


def run_restless_ucb(
    beliefs: FloatArray,
    num_arms: int,
    num_pulls: int,
    horizon: int,
    rng: np.random.Generator,
    max_age: int = 100,
) -> tuple[float, int]:
    """Explore arm after arm, then play the Whittle indices of optimistic arms."""
    world = World(beliefs, num_arms, rng)
    wanted = ceil(horizon ** (2 / 3))
    radius = sqrt(log(horizon) / (2 * wanted))
    counts = np.zeros((num_arms, 2, 2), dtype=int)  # arm, from, to
    arms = np.arange(num_arms)
    index = None
    for t in range(1, horizon + 1):
        if index is None:
            totals = counts.sum(axis=2)
            lacking = (totals < wanted).any(axis=1)
            if not lacking.any():
                # an absorbing arm has no index
                raised = np.minimum(counts[:, :, 1] / totals + radius, 1 - 1e-6)
                index = rs.theory.channel_whittle_index(raised[:, 0], raised[:, 1], max_age)
        if index is None:
            pulled = top(lacking.astype(int), num_pulls)
            moving = pulled[(world.elapsed[pulled] == 1) & (t > 1)]
            before = world.last_state[moving]
            world.pull(pulled)
            counts[moving, before, world.last_state[moving]] += 1
        else:
            age = np.minimum(world.elapsed, max_age) - 1
            world.pull(top(index[arms, world.last_state, age], num_pulls))
    return world.expected, 1 if index is None else 2
