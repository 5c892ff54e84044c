"""Tables of several kinds of arms laid end to end, as kernels take them.

A kind is an arm without its name; however many arms are of it, its tables are there once. Kernels
get the tables and, apart, the kind of each arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeliefTables", "RankTables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class BeliefTables(NamedTuple):
    """Beliefs and rewards by kind.

    The cell of (s, n) is s * length + n - 1; ages beyond the length are in the last. Its belief
    begins at offset + cell * size, its expected reward is at mean_offset + cell.
    """

    beliefs: FloatArray  # flat
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
    group, whose candidates are whole systems. The likelihood row of (s, n, s') has a number for
    each candidate, b_c(s, n)[s'], and begins at offset + row * width, with row = cell * size + s'.
    """

    groups: IntArray  # [K] group of each arm
    tables: IntArray  # [K] likelihood table of each arm
    likelihoods: FloatArray  # flat
    offsets: IntArray  # [tables]
    lengths: IntArray  # [tables] numbers of ages
    sizes: IntArray  # [tables] numbers of states
    losses: IntArray  # flat, by row: bits by which the row can lower a weight
    loss_offsets: IntArray  # [tables]
    kinds: IntArray  # flat: kind of arm of each candidate
    kind_offsets: IntArray  # [tables]
    weights: FloatArray  # flat, by group: prior weights, padded with zeros to blocks of 8
    block_offsets: IntArray  # [groups] first block of 8 weights
    block_counts: IntArray  # [groups]


class LearnerState(NamedTuple):
    """Everything TSDE remembers; kernels change the arrays in place."""

    last_state: IntArray  # [K]
    seen: IntArray  # [K] time at which each arm was last seen
    drawn: IntArray  # [groups] candidate of the current episode
    sampled: IntArray  # [K] kind of arm of the current episode
    weights: FloatArray  # flat, by group: posterior up to a factor, without what is pending
    blocks: FloatArray  # [blocks, 8] the same memory
    sums: FloatArray  # [blocks] sums of the weights by blocks
    stale: BoolArray  # [groups] whether the sums are older than the weights
    lost: IntArray  # [groups] bits that the weights may have lost since they were last rescaled
    pending_arm: IntArray  # [buffer] observations that the weights do not contain yet
    pending_row: IntArray  # [buffer]
    counts: IntArray  # flat, by (arm, state, truncated age): visits in this epoch
    bases: IntArray  # ... when the episode named by the stamp began
    stamps: IntArray  # ... the episode in which the cell was last visited
    size_starts: IntArray  # [K + 1] states of all arms before this one
    rank: IntArray  # [K] room for ranks
    clock: IntArray  # the numbers named in kernels.tsde


class Scratch(NamedTuple):
    """Room for one replication: what hot kernels would otherwise have to make."""

    truth: IntArray  # [K] kind of each true arm
    drawn: IntArray  # [groups]
    chosen: IntArray  # [N] arms pulled
    states: IntArray  # [N] states seen
    last_state: IntArray  # [K] of the oracle
    seen: IntArray  # [K] of the oracle
    rank: IntArray  # [K] of the oracle
    everything: BoolArray  # [0] no arm is unavailable
