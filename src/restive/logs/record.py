"""The later part of a log, step by step: what was pulled, and all states where all were seen."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from restive.sightings import Log

__all__ = ["MOST_STATES", "full_record", "logged_pulls", "sightings_by_step"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MOST_STATES = 50_000_000  # of arms and steps, or arms and worlds, held at once


def logged_pulls(log: Log, split: int, rewards: FloatArray) -> tuple[float, float]:
    """What the logged pulls earned per step from `split` on, and how many there were."""
    total, pulls = 0.0, 0
    for block in log.blocks():
        mine = block.pulled & (block.steps >= split)
        total += float(rewards[block.states[mine]].sum())
        pulls += int(mine.sum())
    steps = log.num_steps - split
    return total / steps, pulls / steps


def full_record(log: Log, split: int) -> IntArray | None:
    """States [T, K] from `split` on, if every arm was seen in every one of these steps."""
    steps = log.num_steps - split
    if log.num_sightings < steps * log.num_arms or steps * log.num_arms > MOST_STATES:
        return None
    record = np.full((steps, log.num_arms), -1, dtype=np.int64)
    for block in log.blocks():
        mine = block.steps >= split
        record[block.steps[mine] - split, block.arms[mine]] = block.states[mine]
    return None if (record < 0).any() else record


def sightings_by_step(log: Log, split: int) -> list[tuple[IntArray, IntArray, NDArray[np.bool_]]]:
    """Arms, states and pulls of each step from `split` on."""
    parts = [
        (block.steps[mine], block.arms[mine], block.states[mine], block.pulled[mine])
        for block in log.blocks()
        for mine in [block.steps >= split]
    ]
    steps, arms, states, pulled = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((arms, steps))
    edges = np.searchsorted(steps[order], np.arange(split, log.num_steps + 1))
    return [
        (arms[own], states[own], pulled[own])
        for begin, end in pairwise(edges)
        for own in [order[begin:end]]
    ]
