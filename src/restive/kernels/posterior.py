"""The posterior of a group of arms: weights of its candidates, multiplied as things are seen.

Weights are products of likelihoods, times a power of two that never matters. They stand in rows of
LANES (see `PriorTables`), and for drawing there are sums: of a lane's weights below each block of
rows (`sums`), of the lanes before each (`starts`), of all (`totals`). Every sum is made in one
order, starts + (below + block), and none is less than a sum of fewer weights, rounding and all: so
the candidates' shares of [0, total) follow each other without a gap or an overlap.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import Place, hot_kernel, inlined, kernel, place
from restive.kernels.random import uniform_at
from restive.kernels.tables import (
    BLOCK,
    BUFFER,
    IMPOSSIBLE,
    LEAST_WEIGHT,
    OUTDATED,
    TIME,
    LearnerState,
    PriorTables,
)
from restive.kernels.vectors import (
    LANES,
    Vector,
    last,
    load,
    not_above,
    plus,
    store,
    sums_before,
    times,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "add_up",
    "draw_candidate",
    "draw_truth",
    "impossible_arm",
    "likeliest_candidate",
    "multiply_pending",
    "multiply_row",
    "rescale",
    "weigh_truth",
]

MODE_NOISE = 1e-12
LANE_BITS = 3  # LANES is 2^3
ROW_BITS = 32


@inlined
def multiply_pending(prior: PriorTables, state: LearnerState, group: int) -> None:
    """Bring the weights of a group up to date.

    Likelihoods are multiplied in the order in which things were seen, and when weights are rescaled
    does not depend on when this is called, so the result is the same to the bit whenever it is.
    Two are multiplied at a time, which halves the loads and stores of weights.
    """
    at = place(group)
    first = at * place(BUFFER)
    end = first + place(state.num_pending[at])
    if first == end:
        return
    begin = place(prior.row_offsets[at] * LANES)
    while first + place(2) < end:
        one, two = place(state.pending[first]), place(state.pending[first + place(1)])
        for row in range(place(prior.row_counts[at])):
            _weight(prior, state, begin, row, one, two, 2)
        first += place(2)
    one = place(state.pending[first])
    if first + place(1) < end:
        _multiply_and_add_up(prior, state, at, one, place(state.pending[first + place(1)]), 2)
    else:
        _multiply_and_add_up(prior, state, at, one, one, 1)
    state.num_pending[at] = 0


@inlined
def multiply_row(prior: PriorTables, state: LearnerState, group: int, source: int) -> None:
    """Multiply the weights of a group by likelihoods at once; nothing may be pending."""
    one = place(source)
    _multiply_and_add_up(prior, state, place(group), one, one, 1)


@inlined
def add_up(prior: PriorTables, state: LearnerState, group: int) -> None:
    """Make the sums of a group anew, for weights that were set from elsewhere."""
    _multiply_and_add_up(prior, state, place(group), place(0), place(0), 0)


@inlined
def _multiply_and_add_up(
    prior: PriorTables, state: LearnerState, at: np.uint64, one: Place, two: Place,
    factors: int,
) -> None:  # fmt: skip
    """Multiply the weights of a group by up to two rows of likelihoods, and make the sums.

    Blocks are added up by themselves and then to what is below them: the processor waits for few
    additions one after the other.
    """
    begin = place(prior.row_offsets[at] * LANES)
    sums = place(prior.block_offsets[at] * LANES)
    below = _block(prior, state, begin, place(0), one, two, factors)  # below the first are zeros
    for row in range(place(BLOCK), place(prior.row_counts[at]), place(BLOCK)):
        sums += place(LANES)
        store(state.sums, sums, below)
        below = plus(below, _block(prior, state, begin, row, one, two, factors))
    starts = sums_before(below)
    store(state.starts, at * place(LANES), starts)
    total = last(plus(starts, below))
    state.totals[at] = total
    if total == 0.0:
        state.clock[IMPOSSIBLE] = 1 + int(at)
    if factors > 0:
        state.drawn[at] = OUTDATED


@inlined
def _block(
    prior: PriorTables, state: LearnerState, begin: Place, row: Place, one: Place, two: Place,
    factors: int,
) -> Vector:  # fmt: skip
    """Sums of a block's weights, multiplied first."""
    block = _weight(prior, state, begin, row, one, two, factors)
    for i in range(place(1), place(BLOCK)):
        block = plus(block, _weight(prior, state, begin, row + i, one, two, factors))
    return block


@inlined
def _weight(
    prior: PriorTables, state: LearnerState, begin: Place, row: Place, one: Place,
    two: Place, factors: int,
) -> Vector:  # fmt: skip
    """Weights in a row of a group, multiplied first; `factors` is a constant to the compiler."""
    shift = row * place(LANES)
    weight = load(state.weights, begin + shift)
    if factors > 0:
        weight = times(weight, load(prior.likelihoods, one + shift))
    if factors > 1:
        weight = times(weight, load(prior.likelihoods, two + shift))
    if factors > 0:
        store(state.weights, begin + shift, weight)
    return weight


@inlined
def draw_candidate(prior: PriorTables, state: LearnerState, group: int, u: float) -> int:
    """Candidate of a group whose share of the total weight holds u: its lane, block and row.

    Counting instead of searching: there is no branch for the processor to guess wrong. For blocks
    all lanes are counted, though one matters: those before it are passed, those after it are not.
    """
    at = place(group)
    total = state.totals[at]
    if total == 0.0:  # all have been ruled out, and the clock says so
        return 0
    target = u * total  # less than the total, also rounded: u is at most 1 - 2^-53
    count = prior.row_counts[at]
    sums = place(prior.block_offsets[at] * LANES)
    starts = load(state.starts, at * place(LANES))
    lane = not_above(starts, target) - 1
    blocks = 0
    for i in range(place(1), place(count // BLOCK)):
        passed = plus(starts, load(state.sums, sums + i * place(LANES)))
        blocks += not_above(passed, target) - lane
    start = state.starts[at * place(LANES) + place(lane)]
    below = state.sums[sums + place(blocks * LANES + lane)]
    first = place((prior.row_offsets[at] + blocks * BLOCK) * LANES + lane)
    within = state.weights[first]
    row = blocks * BLOCK + (start + (below + within) <= target)
    for i in range(place(1), place(BLOCK - 1)):  # the last is left where the others are passed
        within += state.weights[first + i * place(LANES)]
        row += start + (below + within) <= target
    return int(lane * count + row)


@hot_kernel
def likeliest_candidate(prior: PriorTables, state: LearnerState, group: int) -> int:
    """Candidate of a group with the largest weight.

    It is the first of equals, and equal is what differs by rounding alone. Both loops are such as
    the compiler does for several weights at once: the bits of numbers that are not negative are in
    the order of the numbers, and the largest of whole numbers, unlike that of floats, does not
    depend on the order in which they are compared.
    """
    begin = prior.row_offsets[group] * LANES
    count = prior.row_counts[group]
    weights = state.weights[begin : begin + count * LANES]
    bits = weights.view(np.int64)
    largest = np.int64(0)
    for j in range(len(bits)):
        largest = max(largest, bits[place(j)])
    enough = np.int64(largest).view(np.float64) * (1 - MODE_NOISE)
    nowhere = LANES << ROW_BITS
    first = nowhere
    for j in range(len(weights)):
        here = ((j & (LANES - 1)) << ROW_BITS) | (j >> LANE_BITS)  # lane and, below it, row
        first = min(first, here if weights[place(j)] >= enough else nowhere)
    return int((first >> ROW_BITS) * count + (first & ((1 << ROW_BITS) - 1)))


@inlined
def rescale(prior: PriorTables, state: LearnerState, group: int) -> None:
    """Multiply by the power of two that brings the largest weight into [1/2, 1)."""
    begin = prior.row_offsets[group] * LANES
    weights = state.weights[begin : begin + prior.row_counts[group] * LANES]
    largest = 0.0
    for j in range(len(weights)):
        largest = max(largest, weights[j])
    if largest > 0.0:
        factor = ldexp(1.0, max(-frexp(largest)[1], 0))
        for j in range(len(weights)):
            if weights[j] > 0.0:
                weights[j] = max(weights[j] * factor, LEAST_WEIGHT)
        add_up(prior, state, group)


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
        length = prior.lengths[k]
        cell = state.last_state[k] * length + min(t - state.seen[k], length) - 1
        row = cell * prior.sizes[k] + states[i]
        rows[i] = prior.offsets[k] + row * prior.row_counts[prior.groups[k]] * LANES
    for i in range(len(pulled)):
        group = prior.groups[pulled[i]]
        begin = prior.row_offsets[group] * LANES
        possible = False
        for j in range(prior.row_counts[group] * LANES):
            alive = state.weights[begin + j] > 0
            for other in range(i + 1):
                if alive and prior.groups[pulled[other]] == group:
                    alive = prior.likelihoods[rows[other] + j] > 0
            if alive:
                possible = True
                break
        if not possible:
            return int(pulled[i])
    return -1


@hot_kernel
def weigh_truth(
    prior: PriorTables, state: LearnerState, truth: IntArray, weights: FloatArray
) -> None:
    """Write the posterior weight [K] of each arm's true kind; the learner is left as it was."""
    for k in range(len(truth)):
        group = prior.groups[k]
        multiply_pending(prior, state, group)
        count = prior.row_counts[group]
        begin = prior.row_offsets[group] * LANES
        total, true = 0.0, 0.0
        for row in range(count):
            for lane in range(LANES):
                weight = state.weights[place(begin + row * LANES + lane)]
                if weight > 0.0:  # fillers, which have no kind, have none
                    total += weight
                    kind = prior.kinds[place(prior.kind_offsets[k] + lane * count + row)]
                    if kind == truth[k]:
                        true += weight
        weights[k] = true / total if total > 0.0 else 0.0


@hot_kernel
def draw_truth(prior: PriorTables, state: LearnerState, key: np.uint64, truth: IntArray) -> None:
    """Draw the kinds of the true arms from the prior; `state` must be as `reset` leaves it."""
    for k in range(len(truth)):
        group = prior.groups[k]
        drawn = draw_candidate(prior, state, group, uniform_at(key, group))
        truth[k] = prior.kinds[prior.kind_offsets[k] + drawn]
