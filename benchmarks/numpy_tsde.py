"""TSDE as one would write it with numpy: vectorised over arms and candidates, a step at a time.

Two-state arms with equal matrices and a grid prior, as in the paper's experiment; no part of
restive. It is the yardstick of the engine's speed.
"""

from __future__ import annotations

from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

__all__ = ["grid_tables", "run_tsde"]

FloatArray = NDArray[np.float64]


def grid_tables(levels: FloatArray, length: int) -> tuple[FloatArray, FloatArray]:
    """Belief to be good [C, 2, length] of every (p01, p11), and p01, p11 as [C, 2]."""
    pairs = np.array([(a, b) for a in levels for b in levels])
    beliefs = np.empty((len(pairs), 2, length))
    beliefs[:, 0, 0], beliefs[:, 1, 0] = pairs.T
    for n in range(1, length):
        previous = beliefs[:, :, n - 1]
        beliefs[:, :, n] = pairs[:, :1] * (1 - previous) + pairs[:, 1:] * previous
    return beliefs, pairs


def run_tsde(
    index: FloatArray,
    beliefs: FloatArray,
    num_arms: int,
    num_pulls: int,
    horizon: int,
    mixing_quarter: int,
    rng: np.random.Generator,
) -> tuple[float, int]:
    """One replication; returns the expected reward collected and the number of episodes."""
    num_candidates, _, length = beliefs.shape
    truth = rng.integers(num_candidates, size=num_arms)
    likelihood = np.stack([1 - beliefs, beliefs], axis=-1)  # [C, 2, L, 2]
    mixing = ceil(log2(horizon) * mixing_quarter)
    weights = np.full((num_arms, num_candidates), 1 / num_candidates)
    last_state = np.ones(num_arms, dtype=int)
    elapsed = np.ones(num_arms, dtype=int)
    counts = np.zeros((num_arms, 2, mixing), dtype=int)
    expected = 0.0
    episodes, last_length, started, doubled = 0, 0, 1, False
    for t in range(1, horizon + 1):
        if t == 1 or doubled or t > started + last_length:
            last_length, started = t - started, t
            base = counts.copy()
            cumulative = weights.cumsum(axis=1)
            draws = rng.random(num_arms) * cumulative[:, -1]
            sampled = (cumulative <= draws[:, None]).sum(axis=1)
            episodes += 1
        age = np.minimum(elapsed, length) - 1
        now = index[sampled, last_state, age]
        pulled = np.sort(np.argsort(-now, kind="stable")[:num_pulls])
        s, n = last_state[pulled], age[pulled]
        good = beliefs[truth[pulled], s, n]
        expected += good.sum()
        seen = (rng.random(num_pulls) < good).astype(int)
        weights[pulled] *= likelihood[:, s, n, seen].T
        weights[pulled] /= weights[pulled].sum(axis=1, keepdims=True)
        cell = (pulled, s, np.minimum(elapsed[pulled], mixing) - 1)
        counts[cell] += 1
        doubled = bool((counts[cell] > 2 * base[cell]).any())
        elapsed += 1
        elapsed[pulled] = 1
        last_state[pulled] = seen
    return expected, episodes
