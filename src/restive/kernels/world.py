"""Acting in the world: the N largest ranks, and what is seen of the arms that are pulled.

Only what is seen is drawn: the meta-state (sigma, n) is Markov by itself, so the state of a pulled
arm is drawn from its belief b(sigma, n), and the others are left alone. The law of everything seen
is that of K chains that move every step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel
from restive.kernels.random import fill_stream, uniform
from restive.kernels.tables import BeliefTables, RankTables

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
UIntArray = NDArray[np.uint64]

__all__ = ["draw_state", "run_index_policy", "top_arms"]


@kernel
def top_arms(rank: IntArray, chosen: IntArray) -> None:
    """Write the arms with the largest ranks, ascending; the lowest arm wins ties.

    Arms are looked at in ascending order and only a strictly larger rank displaces another, which
    is the tie rule. Few do once the first have been seen, so this is one scan.
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


@kernel
def draw_state(belief: FloatArray, begin: int, size: int, u: float) -> int:
    """State whose share of [0, 1) holds u; the last possible one where rounding leaves a gap."""
    total = 0.0
    possible = 0
    for s in range(size):
        probability = belief[begin + s]
        if probability > 0:
            possible = s
            total += probability
            if u < total:
                return s
    return possible


@kernel
def run_index_policy(
    policy: RankTables, arms: BeliefTables, num_pulls: int, start_state: IntArray,
    start_elapsed: IntArray, burn_in: int, steps: int, seed: np.uint64, replication: np.uint64,
) -> float:  # fmt: skip
    """Mean of the expected reward E[r | xi, A] per step of one run, after `burn_in` steps."""
    num_arms = len(start_state)
    last_state = start_state.copy()
    elapsed = start_elapsed.copy()
    rank = np.empty(num_arms, dtype=np.int64)
    chosen = np.empty(num_pulls, dtype=np.int64)
    words = np.empty(4, dtype=np.uint64)
    fill_stream(words, seed, replication, np.uint64(0))
    total = 0.0
    for t in range(burn_in + steps):
        for arm in range(num_arms):
            length = policy.lengths[arm]
            age = min(elapsed[arm], length) - 1
            rank[arm] = policy.ranks[policy.offsets[arm] + last_state[arm] * length + age]
            elapsed[arm] += 1
        top_arms(rank, chosen)
        for place in range(num_pulls):
            k = chosen[place]
            size = arms.sizes[k]
            age = min(elapsed[k] - 1, arms.lengths[k]) - 1
            begin = arms.offsets[k] + (last_state[k] * arms.lengths[k] + age) * size
            if t >= burn_in:
                for s in range(size):
                    total += arms.beliefs[begin + s] * arms.rewards[arms.reward_offsets[k] + s]
            last_state[k] = draw_state(arms.beliefs, begin, size, uniform(words))
            elapsed[k] = 1
    return total / steps
