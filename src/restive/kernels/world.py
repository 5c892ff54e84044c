"""Acting in the world: the N largest ranks, and what is seen of the arms that are pulled.

Only what is seen is drawn: the meta-state (sigma, n) is Markov by itself, so the state of a pulled
arm is drawn from its belief b(sigma, n), and the others are left alone. The law of everything seen
is that of K chains that move every step.

Times: an arm last seen at time `seen` has age t - seen at time t; the first step is t = 1, so an
arm of age n at the start was seen at 1 - n.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, place
from restive.kernels.random import uniform_at
from restive.kernels.tables import BeliefTables, RankTables

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["copy_into", "pull", "select_by_rank", "top_arms", "top_many"]


FEW_PULLS = 4
ARM_BITS = 31
LAST_ARM = (1 << ARM_BITS) - 1


@inlined
def copy_into(target: IntArray, source: IntArray) -> None:
    """Copy element by element; hot kernels cannot assign arrays."""
    for i in range(len(source)):
        target[i] = source[i]


@inlined
def top_arms(rank: IntArray, chosen: IntArray) -> None:
    """Write the arms with the largest ranks, ascending; the lowest arm wins ties."""
    if len(chosen) <= FEW_PULLS:
        _top_few(rank, chosen)
    else:
        top_many(rank, chosen)


@inlined
def _top_few(rank: IntArray, chosen: IntArray) -> None:
    """Keep the best four in registers, without a branch that the processor could guess wrong.

    A key is the rank and, below it, the arm counted backwards, so that no two are equal.
    """
    a, b, c, d = -1, -1, -1, -1
    for k in range(len(rank)):
        key = (rank[k] << ARM_BITS) | (LAST_ARM - k)
        a, key = max(a, key), min(a, key)
        b, key = max(b, key), min(b, key)
        c, key = max(c, key), min(c, key)
        d = max(d, key)
    count = len(chosen)
    a = LAST_ARM - (a & LAST_ARM)
    b = LAST_ARM - (b & LAST_ARM) if count > 1 else LAST_ARM
    c = LAST_ARM - (c & LAST_ARM) if count > 2 else LAST_ARM
    d = LAST_ARM - (d & LAST_ARM) if count > 3 else LAST_ARM
    a, b = min(a, b), max(a, b)  # a sorting network
    c, d = min(c, d), max(c, d)
    a, c = min(a, c), max(a, c)
    b, d = min(b, d), max(b, d)
    b, c = min(b, c), max(b, c)
    chosen[0] = a
    if count > 1:
        chosen[1] = b
    if count > 2:
        chosen[2] = c
    if count > 3:
        chosen[3] = d


@inlined
def top_many(rank: NDArray[Any], chosen: IntArray) -> None:
    """Scan once: arms come in ascending order and only a larger rank displaces another.

    That is the tie rule, and few arms displace another once the first have been seen.
    """
    num_pulls = len(chosen)
    held = 0
    for k in range(len(rank)):
        if held == num_pulls:
            if rank[k] <= rank[chosen[held - 1]]:
                continue
        else:
            held += 1
        at = held - 1
        while at > 0 and rank[chosen[at - 1]] < rank[k]:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = k
    for i in range(1, num_pulls):
        k = chosen[i]
        at = i
        while at > 0 and chosen[at - 1] > k:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = k


@inlined
def select_by_rank(
    policy: RankTables, kinds: IntArray, t: int, last_state: IntArray, seen: IntArray,
    rank: IntArray, chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms that an index policy pulls at time t."""
    for k in range(len(kinds)):
        kind = place(kinds[k])
        length = policy.lengths[kind]
        age = min(t - seen[k], length) - 1
        rank[k] = policy.ranks[place(policy.offsets[kind] + last_state[k] * length + age)]
    top_arms(rank, chosen)


@inlined
def pull(
    arms: BeliefTables, kind: int, k: int, num_arms: int, t: int, last_state: IntArray,
    seen: IntArray, key: np.uint64,
) -> tuple[int, float]:  # fmt: skip
    """State in which arm k is seen at time t, and the reward that was to be expected."""
    j, at = place(kind), place(k)
    length = arms.lengths[j]
    cell = last_state[at] * length + min(t - seen[at], length) - 1
    size = arms.sizes[j]
    u = uniform_at(key, t * num_arms + k)
    begin = arms.offsets[j] + cell * size
    state = 0
    for s in range(size - 1):
        state += arms.thresholds[place(begin + s)] <= u
    return state, arms.means[place(arms.mean_offsets[j] + cell)]
