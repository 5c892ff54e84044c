"""Acting in the world: the N largest ranks, and what is seen of the arms that are pulled.

Only what is seen is drawn: the meta-state (sigma, n) is Markov by itself, so the state of a pulled
arm is drawn from its belief b(sigma, n), and the others are left alone. The law of everything seen
is that of K chains that move every step.

Times: an arm last seen at time `seen` has age t - seen at time t; the first step is t = 1, so an
arm of age n at the start was seen at 1 - n.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, kernel
from restive.kernels.random import WORLD, stream_key, uniform_at
from restive.kernels.tables import BeliefTables, RankTables

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["copy_into", "pull", "run_index_policy", "select_by_rank", "top_arms"]


@inlined
def copy_into(target: IntArray, source: IntArray) -> None:
    """Copy element by element; hot kernels cannot assign arrays."""
    for i in range(len(source)):
        target[i] = source[i]


@inlined
def top_arms(rank: IntArray, chosen: IntArray) -> None:
    """Write the arms with the largest ranks, ascending; the lowest arm wins ties.

    Arms are looked at in ascending order and only a strictly larger rank displaces another, which
    is the tie rule. Few do once the first have been seen, so this is about one scan.
    """
    num_pulls = len(chosen)
    held = 0
    for k in range(len(rank)):
        if held == num_pulls:
            if rank[k] <= rank[chosen[held - 1]]:
                continue
        else:
            held += 1
        place = held - 1
        while place > 0 and rank[chosen[place - 1]] < rank[k]:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = k
    for i in range(1, num_pulls):
        k = chosen[i]
        place = i
        while place > 0 and chosen[place - 1] > k:
            chosen[place] = chosen[place - 1]
            place -= 1
        chosen[place] = k


@inlined
def select_by_rank(
    policy: RankTables, kinds: IntArray, t: int, last_state: IntArray, seen: IntArray,
    rank: IntArray, chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms that an index policy pulls at time t."""
    for k in range(len(kinds)):
        kind = kinds[k]
        length = policy.lengths[kind]
        age = min(t - seen[k], length) - 1
        rank[k] = policy.ranks[policy.offsets[kind] + last_state[k] * length + age]
    top_arms(rank, chosen)


@inlined
def pull(
    arms: BeliefTables, kind: int, k: int, num_arms: int, t: int, last_state: IntArray,
    seen: IntArray, key: np.uint64,
) -> tuple[int, float]:  # fmt: skip
    """State in which arm k is seen at time t, and the reward that was to be expected."""
    length = arms.lengths[kind]
    cell = last_state[k] * length + min(t - seen[k], length) - 1
    size = arms.sizes[kind]
    u = uniform_at(key, t * num_arms + k)
    begin = arms.offsets[kind] + cell * size
    state = 0
    for s in range(size - 1):
        state += arms.thresholds[begin + s] <= u
    return state, arms.means[arms.mean_offsets[kind] + cell]


@kernel
def run_index_policy(
    policy: RankTables, policy_kinds: IntArray, arms: BeliefTables, kinds: IntArray,
    num_pulls: int, start_state: IntArray, start_elapsed: IntArray, burn_in: int, steps: int,
    seed: np.uint64, replication: int,
) -> float:  # fmt: skip
    """Mean of the expected reward E[r | xi, A] per step of one run, after `burn_in` steps."""
    num_arms = len(kinds)
    last_state = start_state.copy()
    seen = 1 - start_elapsed
    rank = np.empty(num_arms, dtype=np.int64)
    chosen = np.empty(num_pulls, dtype=np.int64)
    key = stream_key(seed, replication, WORLD)
    total = 0.0
    for t in range(1, burn_in + steps + 1):
        select_by_rank(policy, policy_kinds, t, last_state, seen, rank, chosen)
        for place in range(num_pulls):
            k = chosen[place]
            state, expected = pull(arms, kinds[k], k, num_arms, t, last_state, seen, key)
            if t > burn_in:
                total += expected
            last_state[k] = state
            seen[k] = t
    return total / steps
