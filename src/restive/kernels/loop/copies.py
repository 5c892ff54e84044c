"""Many copies of a world that are pulled together: a step of all of them is one call.

Each copy has luck of its own, and its arms are seen as in `kernels.loop.world`, to the bit: the
same functions draw what is seen. Copies have the same numbers of arms and states. Where they are
copies of different systems, the tables of one world become those of each copy in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, place
from restive.kernels.jit.handles import opener
from restive.kernels.loop.tables import cell_of
from restive.kernels.loop.world import (
    WorldTables,
    become,
    is_always_seen,
    paid_by_others,
    pull,
    see_others,
)
from restive.kernels.random import stream_key

__all__ = ["FINE", "Copies", "begin_copies", "pull_copies", "write_beliefs"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
KeyArray = NDArray[np.uint64]

FINE = -1  # no copy has anything wrong


class Copies(NamedTuple):
    """Where all copies stand."""

    world: WorldTables  # of all copies, or of the copy whose turn it is
    kinds: IntArray  # [K] of the arms of all copies, or [M * K] where each has its own
    last_state: IntArray  # [M * K]
    seen: IntArray  # [M * K] time at which each arm was seen last
    keys: KeyArray  # [M] luck of each copy
    marks: IntArray  # [K] scratch


_opened = opener(Copies)


@inlined
def _take_turn(copies: Copies, m: int) -> None:
    """Let the tables be those of copy m; where all copies are alike they are already."""
    if m == 0 or len(copies.kinds) > len(copies.marks):
        become(copies.world, copies.kinds, m * len(copies.marks))


@hot_kernel
def begin_copies(where: IntArray, seeds: KeyArray, stream: int) -> None:
    """Give each copy the luck that its seed names."""
    copies = _opened(where)
    for m in range(len(seeds)):
        copies.keys[m] = stream_key(seeds[m], 0, stream)


@hot_kernel
def pull_copies(
    where: IntArray, t: int, pulled: IntArray, states: IntArray, earned: FloatArray,
    expected: FloatArray,
) -> int:  # fmt: skip
    """Pull arms [M, N] of all copies at time t: write their states and the rewards [M] of all arms.

    Returns a copy of which arms were pulled that do not exist, or one of them twice: then nothing
    has happened; else FINE.
    """
    copies = _opened(where)
    world, num_arms = copies.world, len(copies.marks)
    for k in range(num_arms):
        copies.marks[k] = FINE
    for m in range(len(pulled)):
        for i in range(pulled.shape[1]):
            k = pulled[m, i]
            if k < 0 or k >= num_arms or copies.marks[k] == m:
                return m
            copies.marks[k] = m
    for m in range(len(pulled)):
        _take_turn(copies, m)
        begin = m * num_arms
        last_state = copies.last_state[begin : begin + num_arms]
        seen = copies.seen[begin : begin + num_arms]
        total, mean_total = 0.0, 0.0
        for i in range(pulled.shape[1]):
            at = place(pulled[m, i])
            state, mean = pull(world, pulled[m, i], t, last_state[at], t - seen[at], copies.keys[m])
            paid = world.tables.rewards[place(world.reward_offsets[at] + state)]
            if is_always_seen(world, pulled[m, i]):
                paid = mean  # of the state that it was in
            total += paid
            mean_total += mean
            states[m, i] = state
            last_state[at] = state
            seen[at] = t
        if len(world.always) > 0:
            shown = see_others(world, t, last_state, seen, copies.keys[m])
            total += shown
            mean_total += shown
        if len(world.tables.passive_means) > 0:
            others = paid_by_others(world, last_state, seen, t)
            total += others
            mean_total += others
        earned[m] = total
        expected[m] = mean_total
    return FINE


@hot_kernel
def write_beliefs(where: IntArray, t: int, beliefs: FloatArray) -> None:
    """Write the belief [M, K, S] of each arm at time t; zeros fill up what has fewer states."""
    copies = _opened(where)
    world, num_arms = copies.world, len(copies.marks)
    for m in range(len(beliefs)):
        _take_turn(copies, m)
        for k in range(num_arms):
            arm = place(m * num_arms + k)
            age = t - copies.seen[arm]
            size = world.sizes[k]
            cell = cell_of(copies.last_state[arm], age, world.lengths[k])
            begin = world.offsets[k] + cell * size
            for s in range(size):
                beliefs[m, k, s] = world.tables.beliefs[place(begin + s)]
            for s in range(size, beliefs.shape[2]):
                beliefs[m, k, s] = 0.0
            if is_always_seen(world, k):  # the table holds where it goes from here
                for s in range(size):
                    beliefs[m, k, s] = 1.0 if s == copies.last_state[arm] else 0.0
