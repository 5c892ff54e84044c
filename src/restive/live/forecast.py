"""Forecasts: rewards of the ticks to come, if the model is right."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed
from restive.learn.snapshots import learned_data, load_snapshot
from restive.live.memory import Memory

__all__ = ["Forecast", "forecast"]

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Forecast:
    """Rewards of the ticks to come: mean and 95% band of each, and of their sum."""

    ticks: tuple[int, ...]
    mean: FloatArray  # [ticks]
    low: FloatArray  # [ticks]
    high: FloatArray  # [ticks]
    total: tuple[float, float, float]  # mean, low and high of the sum


def forecast(memory: Memory, ticks: int, paths: int, seed: int) -> Forecast:
    """Draw futures: what is seen comes from the belief, is learned from, and so on.

    Each future is one of the joint predictive law of all that will be seen: no chain needs to be
    drawn, and learning on the way is part of it.
    """
    ticks, paths = checked_count(ticks, "ticks"), checked_count(paths, "paths", 2)
    snapshot = learned_data(memory.agent)
    rng = np.random.default_rng(checked_seed(seed))
    rewards = np.array([_path(memory, snapshot, ticks, rng) for _ in range(paths)])
    low, high = np.quantile(rewards, [0.025, 0.975], axis=0)
    sums = rewards.sum(axis=1)
    ends = np.quantile(sums, [0.025, 0.975])
    return Forecast(
        ticks=tuple(range(memory.tick + 1, memory.tick + 1 + ticks)),
        mean=rewards.mean(axis=0),
        low=low,
        high=high,
        total=(float(sums.mean()), float(ends[0]), float(ends[1])),
    )


def _path(
    memory: Memory, snapshot: dict[str, Any], ticks: int, rng: np.random.Generator
) -> FloatArray:
    agent = load_snapshot(snapshot, None, memory.agent.prior)
    now = memory.open
    if now is not None:
        known = now.sightings
        arms = sorted({*now.choice.arms, *now.instead})
        agent.pull(arms)
        drop = {arm for arm, result in now.results.items() if isinstance(result, str)}
        seen = [arm for arm in arms if arm not in drop]
        states = [known[k] if k in known else _drawn(agent.belief(k), rng) for k in seen]
        agent.observe(np.array(states, dtype=np.int64), seen, missing="not pulled")
    count = min(memory.settings.num_pulls, agent.task.num_arms - len(memory.gone))
    mask = np.ones(agent.task.num_arms, dtype=bool)
    mask[[slot for slot in memory.gone if slot < len(mask)]] = False
    earned = np.zeros(ticks)
    for i in range(ticks):
        chosen = agent.select(count, mask) if memory.gone else agent.select()
        states = [_drawn(agent.belief(k), rng) for k in chosen.tolist()]
        facts = agent.task.facts.rewards
        earned[i] = sum(facts[k][s] for k, s in zip(chosen.tolist(), states, strict=True))
        agent.observe(np.array(states, dtype=np.int64))
    return earned


def _drawn(law: FloatArray, rng: np.random.Generator) -> int:
    return min(int(np.searchsorted(np.cumsum(law), rng.random(), side="right")), len(law) - 1)
