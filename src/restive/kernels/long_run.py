"""An index policy in the world for many steps: what it earns in the long run."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel
from restive.kernels.random import WORLD, stream_key
from restive.kernels.tables import BeliefTables, RankTables
from restive.kernels.world import pull, select_by_rank

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["run_index_policy"]


@hot_kernel
def run_index_policy(
    policy: RankTables, policy_kinds: IntArray, arms: BeliefTables, kinds: IntArray,
    last_state: IntArray, seen: IntArray, rank: IntArray, chosen: IntArray, first: int, last: int,
    burn_in: int, seed: np.uint64, replication: int, total: FloatArray,
) -> None:  # fmt: skip
    """Play the steps from `first` to before `last`; add E[r | xi, A] of those after `burn_in`.

    `last_state` and `seen` [K] say what is known of the arms, and are led on; `rank` [K] and
    `chosen` [N] are room.
    """
    num_arms = len(kinds)
    key = stream_key(seed, replication, WORLD)
    for t in range(first, last):
        select_by_rank(policy, policy_kinds, t, last_state, seen, rank, chosen)
        for i in range(len(chosen)):
            k = chosen[i]
            state, expected = pull(arms, kinds[k], k, num_arms, t, last_state, seen, key)
            if t > burn_in:
                total[0] += expected
            last_state[k] = state
            seen[k] = t
