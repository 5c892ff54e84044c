"""Thompson sampling with dynamic episodes (Algorithm 1), written once.

The online agent calls these functions a step at a time, the engine calls them in a loop. One step
at time t is: `due` (must a new episode begin?), `begin_episode`, `choose`, then `take_in` what was
seen. `LearnerState.rules` turns it into its relatives: other ends of episodes, the posterior's mode
instead of a draw from it, random pulls now and then.

Readings of Section 3. Rule 1 ends episode i at t > t_i + T_(i-1), with T_0 = 0. Rule 2 ends it when
a counter has more than doubled since t_i: a first visit does, and only a counter that was visited
in the last step can. So each counter carries a stamp, the episode in which it was last visited, and
its value when that episode began. Ages of at least T^mix share a counter; beliefs, likelihoods and
policies use the true age. The posterior is kept as products of likelihoods, times a power of two
that never matters: observations wait and are multiplied when an episode begins.
"""

from __future__ import annotations

from math import frexp, ldexp

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined, kernel, place
from restive.kernels.random import uniform_at
from restive.kernels.tables import LANES, LearnerState, PriorTables, RankTables
from restive.kernels.world import top_arms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "CLOCK_SIZE",
    "add_lanes",
    "begin_episode",
    "begin_epoch",
    "choose",
    "draw_candidate",
    "draw_truth",
    "due",
    "explore",
    "finish",
    "follow_ranks",
    "impossible_arm",
    "multiply_pending",
    "pass_time",
    "reset",
    "take_in",
    "take_in_arm",
    "weigh_truth",
]

# The clock.
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
RULES_SIZE = 4

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
BUFFER = 16  # observations of a group that may wait; most episodes bring fewer
LEAST_WEIGHT = 2.0**-600
OUTDATED = -1  # in `drawn`, once the weights have changed
MODE_NOISE = 1e-12
LANE_BITS = 3  # LANES is 2^3
ROW_BITS = 32


@hot_kernel
def reset(
    prior: PriorTables, state: LearnerState, start_state: IntArray, start_elapsed: IntArray,
) -> None:  # fmt: skip
    """Set the learner to time 1."""
    for k in range(len(start_state)):
        state.last_state[k] = start_state[k]
        state.seen[k] = 1 - start_elapsed[k]
    for j in range(len(state.weights)):
        state.weights[j] = prior.weights[j]
    for group in range(len(state.lost)):
        state.num_pending[group] = 0
        state.lost[group] = 0
        add_lanes(prior, state, group)
    for i in range(CLOCK_SIZE):
        state.clock[i] = 0
    state.clock[TIME] = 1


@hot_kernel
def begin_epoch(state: LearnerState, mixing: int, end: int) -> None:
    """Start Algorithm 1 anew at the current time, with the posterior and meta-state as they are."""
    clock = state.clock
    for cell in range(state.size_starts[-1] * mixing):
        state.visits[cell * VISITS + COUNT] = 0
        state.visits[cell * VISITS + BASE] = 0
        state.visits[cell * VISITS + STAMP] = 0
    clock[MIXING] = mixing
    clock[EPOCH_END] = end
    clock[STARTED] = 0  # no episode of this epoch has begun


@inlined
def due(state: LearnerState) -> int:
    """Why a new episode must begin at this time, NONE if none must (Section 3)."""
    clock = state.clock
    if clock[STARTED] == 0:
        return EPOCH_RULE
    if clock[DOUBLED] != 0:
        return DOUBLING_RULE
    if clock[TIME] > clock[STARTED] + clock[LIMIT]:
        return LENGTH_RULE
    return NONE


@inlined
def begin_episode(prior: PriorTables, state: LearnerState, reason: int, key: np.uint64) -> None:
    """Begin an episode: bring the posterior up to date and draw a system from it."""
    clock = state.clock
    clock[LAST_LENGTH] = 0 if clock[STARTED] == 0 else clock[TIME] - clock[STARTED]
    clock[STARTED] = clock[TIME]
    clock[REASON] = reason if clock[EPISODE] > 0 else NONE
    clock[EPISODE] += 1
    clock[DOUBLED] = 0
    fixed = state.rules[FIXED_LIMIT]
    clock[LIMIT] = clock[LAST_LENGTH] if fixed < 0 else fixed
    for group in range(len(state.drawn)):
        multiply_pending(prior, state, group)
    if state.rules[PICK_MODE] != 0:
        _follow_modes(prior, state)
    else:
        for group in range(len(state.drawn)):
            u = uniform_at(key, clock[DRAWS] + group)
            state.drawn[group] = draw_candidate(prior, state, group, u)
        clock[DRAWS] += len(state.drawn)
    for k in range(len(state.sampled)):
        candidate = state.drawn[place(prior.groups[k])]
        state.sampled[k] = prior.kinds[place(prior.kind_offsets[k] + candidate)]


@inlined
def _follow_modes(prior: PriorTables, state: LearnerState) -> None:
    """Take each group's likeliest candidate; only what has been seen since can have changed it."""
    for group in range(len(state.drawn)):
        if state.drawn[group] == OUTDATED or state.clock[EPISODE] == 1:
            if state.totals[group] == 0.0:
                state.clock[IMPOSSIBLE] = 1 + group
            begin = prior.row_offsets[group] * LANES
            count = prior.row_counts[group]
            state.drawn[group] = _likeliest(state.weights[begin : begin + count * LANES], count)


@hot_kernel
def _likeliest(weights: FloatArray, count: int) -> int:
    """Candidate with the largest weight, of `count` rows.

    It is the first of equals, and equal is what differs by rounding alone. Both loops are such as
    the compiler does for several weights at once: the bits of numbers that are not negative are in
    the order of the numbers, and the largest of whole numbers, unlike that of floats, does not
    depend on the order in which they are compared.
    """
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
    return (first >> ROW_BITS) * count + (first & ((1 << ROW_BITS) - 1))


@inlined
def explore(state: LearnerState, key: np.uint64, available: BoolArray, chosen: IntArray) -> None:
    """With the probability that the rules say, choose arms at random instead."""
    u = uniform_at(key, state.clock[DRAWS])
    state.clock[DRAWS] += 1
    if u * 2.0**53 < state.rules[EXPLORING]:
        _choose_any(state, key, available, chosen)


@hot_kernel
def _choose_any(
    state: LearnerState, key: np.uint64, available: BoolArray, chosen: IntArray
) -> None:
    """Choose arms at random; apart, since it is rare and would crowd a loop."""
    clock = state.clock
    for k in range(len(state.rank)):
        state.rank[k] = int(uniform_at(key, clock[DRAWS] + k) * 2.0**31)
    clock[DRAWS] += len(state.rank)
    for k in range(len(available)):
        if not available[k]:
            state.rank[k] = -1
    top_arms(state.rank, chosen)


@inlined
def follow_ranks(policy: RankTables, state: LearnerState) -> None:
    """Point each arm at the ranks of the kind that was drawn for it."""
    for k in range(len(state.sampled)):
        kind = place(state.sampled[k])
        state.rank_begin[k] = policy.offsets[kind]
        state.rank_length[k] = policy.lengths[kind]


@inlined
def choose(policy: RankTables, state: LearnerState, available: BoolArray, chosen: IntArray) -> None:
    """Write the arms that the sampled system's index policy pulls now, among the available ones.

    `available` is [K], or empty for all.
    """
    t = state.clock[TIME]
    for k in range(len(state.rank)):
        length = state.rank_length[k]
        cell = state.last_state[k] * length + min(t - state.seen[k], length) - 1
        state.rank[k] = policy.ranks[place(state.rank_begin[k] + cell)]
    for k in range(len(available)):
        if not available[k]:
            state.rank[k] = -1
    top_arms(state.rank, chosen)


@inlined
def take_in(prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray) -> None:
    """Learn that the pulled arms were seen in these states, and go to the next time."""
    doubled = False
    for i in range(len(pulled)):
        doubled |= take_in_arm(prior, state, pulled[i], states[i])
    pass_time(state, doubled)


@inlined
def pass_time(state: LearnerState, doubled: bool) -> None:
    """Go to the next time; `doubled` tells whether a counter has more than doubled."""
    clock = state.clock
    clock[TIME] += 1
    clock[DOUBLED] |= doubled & state.rules[DOUBLING]


@inlined
def take_in_arm(prior: PriorTables, state: LearnerState, k: int, seen: int) -> bool:
    """Learn that arm k was seen in state `seen`; tell whether its counter has more than doubled."""
    clock = state.clock
    t, episode, mixing = clock[TIME], clock[EPISODE], clock[MIXING]
    at = place(k)
    s = state.last_state[at]
    age = t - state.seen[at]
    length = prior.lengths[at]
    row = (s * length + min(age, length) - 1) * prior.sizes[at] + seen
    group = prior.groups[at]
    g = place(group)
    waiting = state.num_pending[g]
    lost = state.lost[g] + prior.losses[at]
    if waiting == BUFFER or lost > MOST_LOSS:
        _make_room(prior, state, group, lost > MOST_LOSS)
        waiting = 0
        if lost > MOST_LOSS:
            lost = prior.losses[at]
    state.lost[g] = lost
    source = prior.offsets[at] + row * prior.row_counts[g] * LANES
    state.pending[place(group * BUFFER + waiting)] = source
    state.num_pending[g] = waiting + 1
    state.last_state[at] = seen
    state.seen[at] = t

    # without branches, since the processor could not guess them
    cell = ((state.size_starts[at] + s) * mixing + min(age, mixing) - 1) * VISITS
    count = state.visits[place(cell + COUNT)]
    fresh = state.visits[place(cell + STAMP)] != episode
    # counts only grow, so this is the count where the cell is fresh; written as a choice between
    # the two, the compiler would jump over the load of the one that is not needed
    base = max(state.visits[place(cell + BASE)], count * fresh)
    state.visits[place(cell + STAMP)] = episode
    state.visits[place(cell + BASE)] = base
    state.visits[place(cell + COUNT)] = count + 1
    return bool(count + 1 > 2 * base)


@hot_kernel
def _make_room(prior: PriorTables, state: LearnerState, group: int, rescale: bool) -> None:
    """Multiply what waits, rescale where told; apart, since it is rare and would crowd a loop."""
    multiply_pending(prior, state, group)
    if rescale:
        _rescale(prior, state, group)


@inlined
def multiply_pending(prior: PriorTables, state: LearnerState, group: int) -> None:
    """Bring the weights of a group up to date.

    Likelihoods are multiplied in the order in which things were seen, and when weights are rescaled
    does not depend on when this is called, so the result is the same to the bit whenever it is.

    Two are multiplied at a time, which halves the loads and stores of weights, and the last along
    with adding up the lanes (see `add_lanes`).
    """
    at = place(group)
    first = at * place(BUFFER)
    last = first + place(state.num_pending[at])
    if first == last:
        return
    weights, likelihoods, sums = state.weights, prior.likelihoods, state.sums
    begin = place(prior.row_offsets[at] * LANES)
    width = place(prior.row_counts[at] * LANES)
    while first + place(2) < last:
        one, two = place(state.pending[first]), place(state.pending[first + place(1)])
        for j in range(width):
            weights[begin + j] = weights[begin + j] * likelihoods[one + j] * likelihoods[two + j]
        first += place(2)
    one = place(state.pending[first])
    if first + place(1) < last:
        two = place(state.pending[first + place(1)])
        for j in range(width):
            weight = weights[begin + j] * likelihoods[one + j] * likelihoods[two + j]
            weights[begin + j] = weight
            sums[j + place(LANES)] = sums[j] + weight
    else:
        for j in range(width):
            weight = weights[begin + j] * likelihoods[one + j]
            weights[begin + j] = weight
            sums[j + place(LANES)] = sums[j] + weight
    state.num_pending[at] = 0
    state.drawn[at] = OUTDATED
    _add_lanes_before(state, at, width)


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


@inlined
def draw_candidate(prior: PriorTables, state: LearnerState, group: int, u: float) -> int:
    """Candidate of a group whose share of the total weight holds u: its lane, then its row.

    Counting instead of searching: there is no branch for the processor to guess wrong. Where the
    total is zero every candidate has been ruled out, and the clock says so.
    """
    at = place(group)
    weights, starts, total = state.weights, state.starts, state.totals[at]
    if total == 0.0:
        state.clock[IMPOSSIBLE] = 1 + group
    target = u * total
    # Both `while` loops are for draws that rounding carried past the last weight, or where there is
    # none. They ask first what is rare: whether lane > 0 the processor could not guess.
    first = at * place(LANES)
    lane = 0
    for j in range(place(1), place(LANES)):
        lane += starts[first + j] <= target
    while starts[first + place(lane)] == total and lane > 0:
        lane -= 1
    passed = starts[first + place(lane)]
    first = place(prior.row_offsets[at] * LANES + lane)
    count = prior.row_counts[at]
    row = 0
    for i in range(count - 1):
        passed += weights[first + place(i * LANES)]
        row += passed <= target
    while weights[first + place(row * LANES)] == 0.0 and row > 0:
        row -= 1
    return int(lane * count + row)


@hot_kernel
def finish(prior: PriorTables, state: LearnerState) -> None:
    """Bring all weights up to date; the clock tells if every candidate of a group is ruled out."""
    for group in range(len(state.num_pending)):
        multiply_pending(prior, state, group)
        if state.totals[group] == 0.0:
            state.clock[IMPOSSIBLE] = 1 + group


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


@inlined
def add_lanes(prior: PriorTables, state: LearnerState, group: int) -> None:
    """Add up the weights of each lane, and of the lanes before it.

    The sums of a row and those above it go into the next row of `sums`, whose first is zero: so the
    compiler adds all lanes of a row at once. Eight sums in variables it would add one by one.
    """
    at = place(group)
    weights, sums = state.weights, state.sums
    begin = place(prior.row_offsets[at] * LANES)
    width = place(prior.row_counts[at] * LANES)
    for j in range(width):
        sums[j + place(LANES)] = sums[j] + weights[begin + j]
    _add_lanes_before(state, at, width)


@inlined
def _add_lanes_before(state: LearnerState, at: np.uint64, width: np.uint64) -> None:
    """Add up the lanes of a group, whose sums stand in the row of `sums` that begins at `width`."""
    before = 0.0
    for lane in range(place(LANES)):
        state.starts[at * place(LANES) + lane] = before
        before += state.sums[width + lane]
    state.totals[at] = before


@inlined
def _rescale(prior: PriorTables, state: LearnerState, group: int) -> None:
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
        add_lanes(prior, state, group)
