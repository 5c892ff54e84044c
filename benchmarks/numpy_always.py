"""Learners of arms that are always seen as one would write them with numpy: a step at a time.

Two-state arms of which the second state pays 1, pulled or not; `chances` [K, 2, 2] are those of
that state next, by (not pulled, pulled) and state. Vectorised over arms; yardsticks of speed, and
no part of restive. All return the reward collected and the number of episodes.
"""

from __future__ import annotations

from itertools import product
from math import ceil, log

import numpy as np
from numpy.typing import NDArray

__all__ = ["run_qwi", "run_tsde", "run_ucwhittle", "run_wiql"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class World:
    """Arms that begin in their second state."""

    def __init__(self, chances: FloatArray, rng: np.random.Generator) -> None:
        self.chances, self.rng = chances, rng
        self.arms = np.arange(len(chances))
        self.state = np.ones(len(chances), dtype=int)
        self.earned = 0.0

    def pull(self, pulled: IntArray) -> tuple[IntArray, IntArray]:
        """Return who was pulled [K] and the states next; a step passes."""
        self.earned += self.state.sum()
        action = np.zeros(len(self.arms), dtype=int)
        action[pulled] = 1
        good = self.chances[self.arms, action, self.state]
        self.state = (self.rng.random(len(good)) < good).astype(int)
        return action, self.state


def top(values: FloatArray, count: int) -> IntArray:
    """Return the arms with the largest values; the lowest arm wins ties."""
    return np.argsort(-values, kind="stable")[:count]


def indices(chances: FloatArray) -> FloatArray:
    """Whittle's indices [..., 2] of chances [..., 2, 2]: state pays, for the average reward."""
    shift = chances[..., 1, :] - chances[..., 0, :]
    slow = 1 / (1 - chances[..., 0, 1] + chances[..., 0, 0])
    gained = shift * slow[..., None]
    first = gained.argmax(axis=-1)
    sign = np.where(first == 1, 1.0, -1.0) * slow
    best = gained.max(axis=-1)
    rest = np.take_along_axis(gained, 1 - first[..., None], -1)[..., 0]
    own = np.take_along_axis(shift, first[..., None], -1)[..., 0] * sign
    factor = np.take_along_axis(shift, 1 - first[..., None], -1)[..., 0] * sign / (1 - own)
    other = (rest + factor * best) / (1 + factor)
    return np.where(np.arange(2) == first[..., None], best[..., None], other[..., None])


def run_tsde(
    chances: FloatArray, num_pulls: int, horizon: int, rng: np.random.Generator
) -> tuple[float, int]:
    """TSDE with uniform rows: both rules, all rows drawn at the beginning of an episode."""
    world, arms = World(chances, rng), np.arange(len(chances))
    counts = np.zeros((len(arms), 2, 2, 2))  # arm, action, state, next
    visits = np.zeros((len(arms), 2, 2))
    longest, started, doubled, episodes = 0, 1, True, 0
    for t in range(1, horizon + 1):
        if doubled or t >= started + longest:
            longest, started, base = t - started + 1, t, visits.copy()
            table = indices(rng.beta(1 + counts[..., 1], 1 + counts[..., 0]))
            episodes += 1
        before = world.state
        action, after = world.pull(top(table[arms, before], num_pulls))
        counts[arms, action, before, after] += 1
        visits[arms, action, before] += 1
        doubled = bool((visits[arms, action, before] > 2 * base[arms, action, before]).any())
    return world.earned, episodes


def run_ucwhittle(
    chances: FloatArray, num_pulls: int, horizon: int, rng: np.random.Generator, length: int = 20
) -> tuple[float, int]:
    """Play the largest indices over the corners of a confidence box."""
    world, arms = World(chances, rng), np.arange(len(chances))
    counts = np.zeros((len(arms), 2, 2, 2))
    corners = np.array(list(product((-1.0, 1.0), repeat=4))).reshape(16, 2, 2)
    episodes = 0
    for t in range(horizon):
        if t % length == 0:
            episodes += 1
            seen = counts.sum(axis=3)
            middle = np.where(seen > 0, counts[..., 1] / np.maximum(seen, 1), 0.5)
            width = 4 * log(8 * len(arms) * episodes**4 / 1e-3)
            radius = np.sqrt(width / np.maximum(seen, 1))
            box = np.clip(middle[:, None] + corners * radius[:, None], 1e-6, 1 - 1e-6)
            table = indices(box).max(axis=1)
        before = world.state
        action, after = world.pull(top(table[arms, before], num_pulls))
        counts[arms, action, before, after] += 1
    return world.earned, episodes


def run_wiql(
    chances: FloatArray, num_pulls: int, horizon: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Play Q(s, 1) - Q(s, 0), or arms at random with chance K / (K + t)."""
    world, arms = World(chances, rng), np.arange(len(chances))
    values, counts = np.zeros((len(arms), 2, 2)), np.zeros((len(arms), 2, 2))
    for t in range(1, horizon + 1):
        before = world.state
        if rng.random() < len(arms) / (len(arms) + t):
            pulled = rng.choice(len(arms), num_pulls, replace=False)
        else:
            pulled = top(values[arms, before, 1] - values[arms, before, 0], num_pulls)
        action, after = world.pull(pulled)
        cell = (arms, before, action)
        aim = before + values[arms, after].max(axis=1)
        values[cell] += (aim - values[cell]) / (counts[cell] + 1)
        counts[cell] += 1
    return world.earned, 0


def run_qwi(
    chances: FloatArray, num_pulls: int, horizon: int, rng: np.random.Generator
) -> tuple[float, int]:
    """Learn Q under a subsidy for each reference state, and the subsidies more slowly."""
    world, arms = World(chances, rng), np.arange(len(chances))
    values, counts = np.zeros((len(arms), 2, 2, 2)), np.zeros((len(arms), 2, 2))
    rates, own = np.zeros((len(arms), 2)), np.arange(2)
    for t in range(1, horizon + 1):
        before = world.state
        if rng.random() < 0.1:
            pulled = rng.choice(len(arms), num_pulls, replace=False)
        else:
            pulled = top(rates[arms, before], num_pulls)
        action, after = world.pull(pulled)
        counts[arms, before, action] += 1
        step = 0.1 / np.ceil(counts[arms, before, action] / 500)
        paid = before[:, None] + (1 - action)[:, None] * rates
        aim = paid + values[arms, :, after].max(axis=2) - values.mean(axis=(2, 3))
        values[arms, :, before, action] += step[:, None] * (aim - values[arms, :, before, action])
        if t % len(arms) == 0:
            slow = 0.2 / (1 + ceil(t * log(t) / 500))
            rates += slow * (values[:, own, own, 1] - values[:, own, own, 0])
    return world.earned, 0
