"""What kernels take: tables of several kinds of arms laid end to end, and what TSDE remembers.

A kind is an arm without its name; however many arms are of it, its tables are there once. Kernels
get the tables and, apart, the kind of each arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeliefTables", "LearnerState", "PriorTables", "RankTables", "Scratch"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

# What `LearnerState.clock` holds.
TIME = 0  # t, from 1
EPISODE = 1  # number of the current episode, from 1; 0 before the first
STARTED = 2  # t_i
LAST_LENGTH = 3  # T_(i-1)
DOUBLED = 4  # whether a counter has more than doubled in this episode
MIXING = 5  # T^mix
DRAWS = 6  # random numbers used
IMPOSSIBLE = 7  # 1 + group all of whose candidates have been ruled out, 0 if none
EPOCH = 8  # number of the epoch, from 0
EPOCH_END = 9  # time at which the next epoch begins
REASON = 10  # why the episode before the current one ended
LIMIT = 11  # steps after t_i at which rule 1 ends the episode
CLOCK_SIZE = 12

# What `LearnerState.rules` holds; TSDE itself is (-1, 1, 0, 0).
FIXED_LIMIT = 0  # LIMIT of every episode, -1 for the length of the one before (rule 1)
DOUBLING = 1  # whether rule 2 is on
PICK_MODE = 2  # whether the most likely system is taken instead of a draw
EXPLORING = 3  # steps in 2^53, on average, in which arms are pulled at random

# Why an episode ended.
NONE, LENGTH_RULE, DOUBLING_RULE, EPOCH_RULE = 0, 1, 2, 3

# A cell's numbers in `visits`: N_t, its value when the episode named by the stamp began, and the
# stamp, the episode in which the cell was last visited.
COUNT, BASE, STAMP = 0, 1, 2
VISITS = 3

# Weights are rescaled by a power of two before they can fall below 2^-1022, and relative weights
# are held at 2^-600 then: no candidate is lost by rounding, only by an impossible observation.
# What is held forgets how much less likely it was; that matters only if all above it are ruled out.
# Likelihoods are held at 2^-300 for the same reason.
MOST_LOSS = 300
LEAST_LIKELIHOOD = 2.0**-MOST_LOSS
LEAST_WEIGHT = 2.0**-600

BLOCK = 4  # rows of weights that make a block
BUFFER = 16  # observations of a group that may wait; most episodes bring fewer
OUTDATED = -1  # in `drawn`, once the weights have changed


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
    c // rows, zeros fill up whole blocks of rows. So processors add lanes side by side, and lanes
    follow the candidates' order.
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
    row_counts: IntArray  # [groups] multiples of BLOCK
    block_offsets: IntArray  # [groups] first row of LANES sums


class LearnerState(NamedTuple):
    """Everything TSDE remembers; kernels change the arrays in place.

    What is said of weights holds for what has been multiplied, without what is pending.
    """

    last_state: IntArray  # [K]
    seen: IntArray  # [K] time at which each arm was last seen
    drawn: IntArray  # [groups] candidate of the current episode, -1 once the weights have changed
    sampled: IntArray  # [K] kind of arm of the current episode
    rank_begin: IntArray  # [K] where the sampled kind's ranks begin
    rank_length: IntArray  # [K] ages in them
    rank: IntArray  # [K] room for ranks
    weights: FloatArray  # flat, by group: posterior up to a factor
    sums: FloatArray  # flat, by group: weight of each lane below each block
    starts: FloatArray  # [groups * LANES] weight of the lanes before each
    totals: FloatArray  # [groups] weight of all
    uniforms: FloatArray  # [groups] room for random numbers
    pending: IntArray  # [groups * BUFFER] likelihoods to be multiplied, by where they begin
    num_pending: IntArray  # [groups]
    lost: IntArray  # [groups] bits that weights may have lost since they were last rescaled
    visits: IntArray  # [cells * VISITS] by (arm, state, truncated age)
    size_starts: IntArray  # [K + 1] states of all arms before this one
    clock: IntArray  # [CLOCK_SIZE]
    rules: IntArray  # they never change


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
