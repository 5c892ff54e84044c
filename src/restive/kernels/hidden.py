"""The states of all arms, seen or not: for whoever wants to look behind the scenes.

The law of what is seen is the same as that of `kernels.world`; the luck is another.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.cells import cell_of
from restive.kernels.compiler import hot_kernel, part
from restive.kernels.random import uniform_at
from restive.kernels.world import World

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["HiddenArms", "draw_first", "pay_and_move"]


class HiddenArms(NamedTuple):
    """Where all arms are, and how they move: thresholds and rewards by kind."""

    states: IntArray  # [K]
    moves: FloatArray  # thresholds of the rows of the active, then of the passive matrix
    move_offsets: IntArray  # [K]
    passive_rewards: FloatArray


@hot_kernel
def draw_first(
    hidden: HiddenArms, world: World, last_state: IntArray, seen: IntArray, key: np.uint64
) -> None:
    """Draw where all arms are at time 1."""
    for k in range(len(hidden.states)):
        cell = cell_of(last_state[k], 1 - seen[k], world.lengths[k])
        begin = world.offsets[k] + cell * world.sizes[k]
        hidden.states[k] = _drawn(world.tables.thresholds, begin, world.sizes[k], key, k)


@hot_kernel
def pay_and_move(hidden: HiddenArms, world: World, seen: IntArray, t: int, key: np.uint64) -> float:
    """Move all arms on from time t; return what those paid that were not seen then."""
    paid = 0.0
    num_arms = len(hidden.states)
    for k in range(num_arms):
        row, size = hidden.states[k], world.sizes[k]
        if seen[k] < t:
            paid += hidden.passive_rewards[world.reward_offsets[k] + row]
            row += size
        begin = hidden.move_offsets[k] + row * size
        hidden.states[k] = _drawn(hidden.moves, begin, size, key, t * num_arms + k)
    return paid


@part
def _drawn(thresholds: FloatArray, begin: int, size: int, key: np.uint64, place: int) -> int:
    u = uniform_at(key, place)
    state = 0
    for s in range(size - 1):
        state += thresholds[begin + s] <= u
    return state
