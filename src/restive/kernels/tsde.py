"""Thompson sampling with dynamic episodes (Algorithm 1), written once.

The online agent calls these functions a step at a time, the engine calls them in a loop. One step
at time t is: `due` (must a new episode begin?), `begin_episode`, `choose`, then `take_in` what was seen.

Readings of Section 3. Rule 1 ends episode i at t > t_i + T_(i-1), with T_0 = 0. Rule 2 ends it when
a counter has more than doubled since t_i: a first visit does, and only a counter that was visited in
the last step can. So each counter carries a stamp, the episode in which it was last visited, and
its value when that episode began. Ages of at least T^mix share a counter; beliefs, likelihoods and
policies use the true age. The posterior is kept as products of likelihoods, times a power of two
that never matters: observations wait as row numbers and are multiplied when an episode begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, kernel
from restive.kernels.random import uniform_at
from restive.kernels.tables import LearnerState, PriorTables, RankTables
from restive.kernels.world import top_arms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "CLOCK_SIZE",
    "begin_episode",
    "begin_epoch",
    "choose",
    "draw_candidate",
    "due",
    "impossible_arm",
    "multiply_pending",
    "reset",
    "take_in",
]

# The clock.
TIME = 0  # t, from 1
EPISODE = 1  # number of the current episode, from 1; 0 before the first
STARTED = 2  # t_i
LAST_LENGTH = 3  # T_(i-1)
DOUBLED = 4  # whether a counter has more than doubled in this episode
MIXING = 5  # T^mix
PENDING = 6  # observations that wait
DRAWS = 7  # random numbers used
IMPOSSIBLE = 8  # 1 + group all of whose candidates have been ruled out, 0 if none
EPOCH = 9  # number of the epoch, from 0
EPOCH_END = 10  # time at which the next epoch begins
REASON = 11  # why the episode before the current one ended
CLOCK_SIZE = 12

NONE, LENGTH_RULE, DOUBLING_RULE, EPOCH_RULE = 0, 1, 2, 3

BLOCK = 8
# Weights are rescaled by a power of two before they can fall below 2^-1022, and relative weights
# are held at 2^-600 then: no candidate is lost by rounding, only by an impossible observation.
MOST_LOSS = 300
LEAST_WEIGHT = 2.0**-600


@inlined
def reset(
    prior: PriorTables, state: LearnerState, start_state: IntArray, start_elapsed: IntArray,
) -> None:  # fmt: skip
    """Set the learner to time 1."""
    for k in range(len(start_state)):
        state.last_state[k] = start_state[k]
        state.seen[k] = 1 - start_elapsed[k]
    for j in range(len(state.weights)):
        state.weights[j] = prior.weights[j]
    for group in range(len(state.stale)):
        state.stale[group] = True
        state.lost[group] = 0
    for i in range(CLOCK_SIZE):
        state.clock[i] = 0
    state.clock[TIME] = 1


@inlined
def begin_epoch(state: LearnerState, mixing: int, end: int) -> None:
    """Start Algorithm 1 anew at the current time, with the posterior and meta-state as they are."""
    clock = state.clock
    cells = (state.size_starts[-1]) * mixing
    for cell in range(cells):
        state.counts[cell] = 0
        state.bases[cell] = 0
        state.stamps[cell] = 0
    clock[MIXING] = mixing
    clock[EPOCH_END] = end
    clock[STARTED] = 0  # no episode of this epoch has begun


@inlined
def due(state: LearnerState) -> int:
    """Why a new episode must begin at this time, NONE if none must (Eq. 6)."""
    clock = state.clock
    if clock[STARTED] == 0:
        return EPOCH_RULE
    if clock[DOUBLED] != 0:
        return DOUBLING_RULE
    if clock[TIME] > clock[STARTED] + clock[LAST_LENGTH]:
        return LENGTH_RULE
    return NONE


@inlined
def begin_episode(prior: PriorTables, state: LearnerState, reason: int, key: np.uint64) -> None:
    """Begin an episode: bring the posterior up to date and draw a system from it."""
    clock = state.clock
    multiply_pending(prior, state)
    clock[LAST_LENGTH] = 0 if clock[STARTED] == 0 else clock[TIME] - clock[STARTED]
    clock[STARTED] = clock[TIME]
    clock[EPISODE] += 1
    clock[DOUBLED] = 0
    clock[REASON] = reason
    for group in range(len(state.drawn)):
        u = uniform_at(key, clock[DRAWS] + group)
        state.drawn[group] = draw_candidate(prior, state, group, u)
    clock[DRAWS] += len(state.drawn)
    for k in range(len(state.sampled)):
        candidate = state.drawn[prior.groups[k]]
        state.sampled[k] = prior.kinds[prior.kind_offsets[prior.tables[k]] + candidate]


@inlined
def choose(
    policy: RankTables, state: LearnerState, available: BoolArray, chosen: IntArray
) -> None:
    """Write the arms that the sampled system's index policy pulls now, among the available ones.

    `available` is [K], or empty for all.
    """
    t = state.clock[TIME]
    for k in range(len(state.sampled)):
        kind = state.sampled[k]
        length = policy.lengths[kind]
        age = min(t - state.seen[k], length) - 1
        state.rank[k] = policy.ranks[policy.offsets[kind] + state.last_state[k] * length + age]
    for k in range(len(available)):
        if not available[k]:
            state.rank[k] = -1
    top_arms(state.rank, chosen)


@inlined
def take_in(prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray) -> None:
    """Learn that the pulled arms were seen in these states, and go to the next time."""
    clock = state.clock
    t = clock[TIME]
    episode = clock[EPISODE]
    mixing = clock[MIXING]
    for i in range(len(pulled)):
        k = pulled[i]
        s = state.last_state[k]
        age = t - state.seen[k]
        table = prior.tables[k]
        length = prior.lengths[table]
        row = (s * length + min(age, length) - 1) * prior.sizes[table] + states[i]
        if clock[PENDING] == len(state.pending_arm):
            multiply_pending(prior, state)
        state.pending_arm[clock[PENDING]] = k
        state.pending_row[clock[PENDING]] = row
        clock[PENDING] += 1

        cell = (state.size_starts[k] + s) * mixing + min(age, mixing) - 1
        if state.stamps[cell] != episode:
            state.stamps[cell] = episode
            state.bases[cell] = state.counts[cell]
        state.counts[cell] += 1
        if state.counts[cell] > 2 * state.bases[cell]:
            clock[DOUBLED] = 1
        state.last_state[k] = states[i]
        state.seen[k] = t
    clock[TIME] = t + 1


@inlined
def multiply_pending(prior: PriorTables, state: LearnerState) -> None:
    """Bring the weights up to date.

    Observations are multiplied in the order in which they were made and weights are rescaled by
    powers of two, so the result is the same to the bit whenever this is called.
    """
    clock = state.clock
    for i in range(clock[PENDING]):
        k = state.pending_arm[i]
        row = state.pending_row[i]
        group, table = prior.groups[k], prior.tables[k]
        width = prior.block_counts[group] * BLOCK
        begin = prior.block_offsets[group] * BLOCK
        source = prior.offsets[table] + row * width
        # slices, not sums of indices: only then does the compiler multiply several at once
        weights = state.weights[begin : begin + width]
        likelihoods = prior.likelihoods[source : source + width]
        loss = prior.losses[prior.loss_offsets[table] + row]
        if state.lost[group] + loss > MOST_LOSS:
            _rescale(weights)
            state.lost[group] = 0
        state.lost[group] += loss
        for j in range(width):
            weights[j] *= likelihoods[j]
        state.stale[group] = True
    clock[PENDING] = 0


@kernel
def impossible_arm(
    prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray
) -> int:
    """Pulled arm whose state no candidate that is left allows, -1 if there is none.

    Nothing may be pending. Arms of one group must be possible together.
    """
    t = state.clock[TIME]
    rows = np.empty(len(pulled), dtype=np.int64)
    for i in range(len(pulled)):
        k = pulled[i]
        table = prior.tables[k]
        length = prior.lengths[table]
        cell = state.last_state[k] * length + min(t - state.seen[k], length) - 1
        rows[i] = prior.offsets[table] + (cell * prior.sizes[table] + states[i]) * (
            prior.block_counts[prior.groups[k]] * BLOCK
        )
    for i in range(len(pulled)):
        group = prior.groups[pulled[i]]
        begin = prior.block_offsets[group] * BLOCK
        possible = False
        for j in range(prior.block_counts[group] * BLOCK):
            alive = state.weights[begin + j] > 0
            for other in range(i + 1):
                if alive and prior.groups[pulled[other]] == group:
                    alive = prior.likelihoods[rows[other] + j] > 0
            if alive:
                possible = True
                break
        if not possible:
            return pulled[i]
    return -1


@inlined
def draw_candidate(prior: PriorTables, state: LearnerState, group: int, u: float) -> int:
    """Candidate of a group whose share of the total weight holds u, found by blocks of 8.

    Where the total is zero every candidate has been ruled out: 0, and the clock says so.
    """
    first, count = prior.block_offsets[group], prior.block_counts[group]
    blocks = state.blocks[first : first + count]
    sums = state.sums[first : first + count]
    if state.stale[group]:
        for b in range(count):
            # by pairs, which lets the processor add side by side
            left = (blocks[b, 0] + blocks[b, 1]) + (blocks[b, 2] + blocks[b, 3])
            right = (blocks[b, 4] + blocks[b, 5]) + (blocks[b, 6] + blocks[b, 7])
            sums[b] = left + right
        state.stale[group] = False
    total = 0.0
    for b in range(count):
        total += sums[b]
    if total == 0.0:
        state.clock[IMPOSSIBLE] = 1 + group
        return 0
    target = u * total
    passed = 0.0
    last = 0
    for b in range(count):
        part = sums[b]
        if part > 0.0:
            last = b
            if passed + part > target:
                break
        passed += part
    # within the block; where rounding has passed its end, its last candidate with any weight
    chosen = 0
    if passed + sums[last] <= target:
        passed -= sums[last]
    for j in range(BLOCK):
        weight = blocks[last, j]
        if weight > 0.0:
            chosen = j
            passed += weight
            if passed > target:
                break
    return last * BLOCK + chosen


@inlined
def _rescale(weights: FloatArray) -> None:
    """Multiply by the power of two that brings the largest weight into [1/2, 1)."""
    largest = 0.0
    for j in range(len(weights)):
        largest = max(largest, weights[j])
    if largest == 0.0:
        return
    factor = 1.0
    while largest * factor < 0.5:
        factor *= 2.0
    for j in range(len(weights)):
        if weights[j] > 0:
            weights[j] = max(weights[j] * factor, LEAST_WEIGHT)
