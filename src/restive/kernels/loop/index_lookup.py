"""Looking up an index policy: where each arm stands in its ranks, and which are the largest."""

from __future__ import annotations

import numpy as np

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.choosing import top_arms
from restive.kernels.loop.tables import IndexLookup, Meta, cell_of

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
    lookup.mode[0].since = t
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
    lookup.first[at] = row + min(lookup.mode[0].since - t - 1, int(length))
    lookup.last[at] = row + length - 1


@inlined
def choose_by_rank(actor: Actor, t: int, count: int) -> None:
    """Write the `count` arms of the largest ranks now, among those that are available."""
    lookup = actor.lookup
    steps = np.int32(t - lookup.mode[0].since)
    for k in range(len(lookup.rank)):
        cell = min(lookup.first[place(k)] + steps, lookup.last[place(k)])
        lookup.rank[place(k)] = lookup.ranks[place(cell)]
    if actor.role[0].masked != 0:
        hide_unavailable(actor)
    top_arms(lookup.rank, actor.chosen, count)


@part
def hide_unavailable(actor: Actor) -> None:
    """Rank the arms that cannot be pulled below all others."""
    available, rank = actor.available, actor.lookup.rank
    for k in range(len(available)):
        if not available[k]:
            rank[k] = -1
