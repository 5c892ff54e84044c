"""Tables of several kinds of arms laid end to end, as kernels take them.

A kind is an arm without its name; however many arms are of it, its tables are there once. Kernels
get the tables and, apart, the kind of each arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["LANES", "BeliefTables", "LearnerState", "PriorTables", "RankTables", "Scratch"]

LANES = 8

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class BeliefTables(NamedTuple):
    """Beliefs and rewards by kind.

    The cell of (s, n) is s * length + n - 1; ages beyond the length are in the last. Its belief
    begins at offset + cell * size, its expected reward is at mean_offset + cell.
    """

    beliefs: FloatArray  # flat
    thresholds: FloatArray  # flat, as beliefs: u is drawn as the number of thresholds <= u
    offsets: IntArray  # [kinds]
    means: FloatArray  # flat: b(s, n).r
    mean_offsets: IntArray  # [kinds]
    rewards: FloatArray  # flat
    reward_offsets: IntArray  # [kinds]
    sizes: IntArray  # [kinds] numbers of states
    lengths: IntArray  # [kinds] numbers of ages


class RankTables(NamedTuple):
    """Ranks of the index by kind; that of (s, n) is at offset + s * length + n - 1."""

    ranks: IntArray  # flat
    offsets: IntArray  # [kinds]
    lengths: IntArray  # [kinds] numbers of ages; older arms have the last


class PriorTables(NamedTuple):
    """A finite prior: likelihoods of its candidates and groups of arms that share one draw.

    Arms whose parameters are independent are a group each; under a joint prior all arms are one
    group, whose candidates are whole systems. The likelihoods of (s, n, s') are a number for each
    candidate, b_c(s, n)[s'], and begin at offset + row * width, with row = cell * size + s'.

    Numbers by candidate are laid out in rows of LANES: candidate c stands in row c % rows of lane
    c // rows, zeros fill up. So processors add lanes side by side, and lanes follow the candidates'
    order.
    """

    groups: IntArray  # [K] group of each arm
    likelihoods: FloatArray  # flat; arms that share a prior share a table
    offsets: IntArray  # [K]
    lengths: IntArray  # [K] numbers of ages
    sizes: IntArray  # [K] numbers of states
    losses: IntArray  # [K] bits by which an observation can lower a weight
    kinds: IntArray  # flat: kind of arm of each candidate
    kind_offsets: IntArray  # [K]
    weights: FloatArray  # flat, by group: prior weights
    row_offsets: IntArray  # [groups] first row of LANES weights
    row_counts: IntArray  # [groups]


class LearnerState(NamedTuple):
    """Everything TSDE remembers; kernels change the arrays in place."""

    last_state: IntArray  # [K]
    seen: IntArray  # [K] time at which each arm was last seen
    drawn: IntArray  # [groups] candidate of the current episode, -1 once the weights have changed
    sampled: IntArray  # [K] kind of arm of the current episode
    rank_begin: IntArray  # [K] where the sampled kind's ranks begin
    rank_length: IntArray  # [K] ages in them
    rank: IntArray  # [K] room for ranks
    weights: FloatArray  # flat, by group: posterior up to a factor, without what is pending
    starts: FloatArray  # [groups * LANES] weight of the lanes before each, likewise
    totals: FloatArray  # [groups] weight of all, likewise
    sums: FloatArray  # [(rows + 1) * LANES] room for sums, for the group with most rows
    pending: IntArray  # [groups * BUFFER] likelihoods to be multiplied, by where they begin
    num_pending: IntArray  # [groups]
    lost: IntArray  # [groups] bits that weights may have lost since they were last rescaled
    visits: IntArray  # [cells * VISITS] by (arm, state, truncated age): see kernels.tsde
    size_starts: IntArray  # [K + 1] states of all arms before this one
    clock: IntArray  # the numbers named in kernels.tsde
    rules: IntArray  # likewise; they never change


class Scratch(NamedTuple):
    """Room for one replication: what hot kernels would otherwise have to make."""

    truth: IntArray  # [K] kind of each true arm
    true_arms: IntArray  # [5, K] its entries of BeliefTables, see kernels.engine
    chosen: IntArray  # [N] arms pulled
    states: IntArray  # [N] states seen
    last_state: IntArray  # [K] of the oracle
    seen: IntArray  # [K] of the oracle
    rank: IntArray  # [K] of the oracle
    everything: BoolArray  # [0] no arm is unavailable
