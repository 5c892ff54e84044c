"""Looking up an index policy: where each arm stands in its ranks, and which are the largest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.loop.tables import FOLLOWED, IndexLookup, Meta, cell_of
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
def follow_kind(lookup: IndexLookup, k: int, kind: int) -> None:
    """Let arm k follow the ranks of a kind."""
    lookup.begin[place(k)] = lookup.offsets[place(kind)]
    lookup.length[place(k)] = lookup.lengths[place(kind)]


@inlined
def follow_all(lookup: IndexLookup, meta: Meta, t: int) -> None:
    """Place every arm in its ranks."""
    lookup.mode[FOLLOWED] = t
    for k in range(len(lookup.first)):
        begin, length = lookup.begin[k], lookup.length[k]
        state = meta.last_state[k]
        lookup.first[k] = begin + cell_of(state, t - meta.seen[k], int(length))
        lookup.last[k] = begin + (state + 1) * length - 1


@inlined
def follow_pulled(lookup: IndexLookup, k: int, state: int, t: int) -> None:
    """Place an arm that was seen in `state` at time t: in the next step its age is 1."""
    at = place(k)
    length = lookup.length[at]
    row = lookup.begin[at] + state * length
    lookup.first[at] = row + min(lookup.mode[FOLLOWED] - t - 1, int(length))
    lookup.last[at] = row + length - 1


@inlined
def choose_by_rank(
    lookup: IndexLookup, t: int, available: BoolArray, masked: bool, chosen: IntArray, count: int
) -> None:
    """Write the `count` arms of the largest ranks now; `available` [K] counts if `masked`."""
    steps = np.int32(t - lookup.mode[FOLLOWED])
    for k in range(len(lookup.rank)):
        cell = min(lookup.first[place(k)] + steps, lookup.last[place(k)])
        lookup.rank[place(k)] = lookup.ranks[place(cell)]
    if masked:
        hide_unavailable(lookup, available)
    top_arms(lookup.rank, chosen, count)


@part
def hide_unavailable(lookup: IndexLookup, available: BoolArray) -> None:
    """Rank the arms that cannot be pulled below all others."""
    for k in range(len(available)):
        if not available[k]:
            lookup.rank[k] = -1
