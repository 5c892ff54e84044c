"""What arms pay while they are not pulled: their expected reward, given what was last seen of them.

An arm is left alone from one pull to the next, so what it pays meanwhile depends only on the state
it was seen in and on the ages it goes through. A table has the sums over ages, so that a pull
settles all steps since the last one at once, and a look at the totals settles the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.cells import cell_of
from restive.kernels.compiler import hot_kernel, inlined, part
from restive.kernels.world import World

IntArray = NDArray[np.int64]

__all__ = ["paid_by_all", "paid_by_others", "paid_until_pulled"]


@inlined
def _paid(world: World, k: int, last_state: int, seen: int, until: int) -> float:
    """What arm k pays in the steps after time `seen`, from time 1 on, up to and with `until`."""
    first, last = max(1, 1 - seen), until - seen  # ages
    if last < first:
        return 0.0
    length = world.lengths[k]
    settled = world.mean_offsets[k] + cell_of(last_state, length, length)
    beyond = last - max(first - 1, length)  # steps in which the belief has settled
    total: float = max(0, beyond) * world.tables.passive_means[settled]
    if first <= length:
        begin = world.mean_offsets[k] + cell_of(last_state, 1, length)
        total += world.tables.passive_totals[begin + min(last, length) - 1]
        if first > 1:
            total -= world.tables.passive_totals[begin + first - 2]
    return total


@part
def paid_until_pulled(
    world: World, last_state: IntArray, seen: IntArray, pulled: IntArray, t: int
) -> float:
    """What the arms that are pulled at time t have paid since each was last seen."""
    total = 0.0
    for i in range(len(pulled)):
        k = pulled[i]
        total += _paid(world, k, last_state[k], seen[k], t - 1)
    return total


@part
def paid_by_all(world: World, last_state: IntArray, seen: IntArray, t: int) -> float:
    """What all arms have paid since each was last seen, up to time t."""
    total = 0.0
    for k in range(len(seen)):
        total += _paid(world, k, last_state[k], seen[k], t)
    return total


@hot_kernel
def paid_by_others(world: World, last_state: IntArray, seen: IntArray, t: int) -> float:
    """What the arms that were not seen at time t pay in this step."""
    total = 0.0
    for k in range(len(seen)):
        if seen[k] < t:
            cell = cell_of(last_state[k], t - seen[k], world.lengths[k])
            total += world.tables.passive_means[world.mean_offsets[k] + cell]
    return total
