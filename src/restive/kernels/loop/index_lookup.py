"""Following an index policy: where each arm stands in its ranks, and which arms are the largest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.loop.tables import FOLLOWED, Following, Meta, cell_of
from restive.kernels.loop.world import top_arms

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "REBASED",
    "choose_by_rank",
    "follow_all",
    "follow_kind",
    "follow_pulled",
    "hide_unavailable",
]

REBASED = 1 << 29  # steps after which all arms are placed anew, so that small numbers do


@inlined
def follow_kind(following: Following, k: int, kind: int) -> None:
    """Let arm k follow the ranks of a kind."""
    following.begin[place(k)] = following.offsets[place(kind)]
    following.length[place(k)] = following.lengths[place(kind)]


@inlined
def follow_all(following: Following, meta: Meta, t: int) -> None:
    """Place every arm in its ranks."""
    following.mode[FOLLOWED] = t
    for k in range(len(following.first)):
        begin, length = following.begin[k], following.length[k]
        state = meta.last_state[k]
        following.first[k] = begin + cell_of(state, t - meta.seen[k], int(length))
        following.last[k] = begin + (state + 1) * length - 1


@inlined
def follow_pulled(following: Following, k: int, state: int, t: int) -> None:
    """Place an arm that was seen in `state` at time t: in the next step its age is 1."""
    at = place(k)
    length = following.length[at]
    row = following.begin[at] + state * length
    following.first[at] = row + min(following.mode[FOLLOWED] - t - 1, int(length))
    following.last[at] = row + length - 1


@inlined
def choose_by_rank(
    following: Following, t: int, available: BoolArray, masked: bool, chosen: IntArray, count: int
) -> None:
    """Write the `count` arms of the largest ranks now; `available` [K] counts if `masked`."""
    steps = np.int32(t - following.mode[FOLLOWED])
    for k in range(len(following.rank)):
        cell = min(following.first[place(k)] + steps, following.last[place(k)])
        following.rank[place(k)] = following.ranks[place(cell)]
    if masked:
        hide_unavailable(following, available)
    top_arms(following.rank, chosen, count)


@part
def hide_unavailable(following: Following, available: BoolArray) -> None:
    """Rank the arms that cannot be pulled below all others."""
    for k in range(len(available)):
        if not available[k]:
            following.rank[k] = -1
