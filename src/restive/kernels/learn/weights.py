"""The posterior of a group of arms: weights of its slots, multiplied as things are seen.

Nothing here knows of episodes. Weights are products of likelihoods, times a power of two that never
matters. They stand in rows of LANES (see `Slots`), and for drawing there are sums: of a lane's
weights below each block of rows, of the lanes before each, of all. Every sum is made in one order,
starts + (below + block), and none is less than a sum of fewer weights, rounding and all: so the
slots' shares of [0, total) follow each other without a gap or an overlap.

A home is rows of LANES numbers: the weights, the sums below each block (those below the first are
zeros), the sums before each lane, the total (once), and the lifts: weight times 2^-lift is what is
meant. Lifts are 0 but for slots that are hopeless at the moment.
"""

from __future__ import annotations

from math import ldexp

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import Place, hot_kernel, inlined, kernel, part, place
from restive.kernels.jit.vectors import (
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
from restive.kernels.loop.tables import (
    AT_ONCE,
    BLOCK,
    BUFFER,
    FAINT,
    FREE,
    IMPOSSIBLE,
    LIFTED,
    MOST_LOSS,
    MOST_SHIFT,
    SHARED,
    TIME,
    Meta,
    Slots,
    Weights,
    cell_of,
)
from restive.kernels.random import uniform_at

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "add_up",
    "add_up_groups",
    "draw_all",
    "draw_slot",
    "draw_truths",
    "forget_all",
    "impossible_arm",
    "likeliest_slot",
    "multiply_all",
    "multiply_pending",
    "sum_of_squares",
    "take_in",
    "take_modes",
    "total_of",
    "weigh_kinds",
]

MODE_NOISE = 1e-12
LANE_BITS = 3  # LANES is 2^3
ROW_BITS = 32
FRACTION = 52  # bits of a float below its exponent
HALF = 1022  # the exponent, as it is written, of numbers in [1/2, 1)


@part
def forget_all(weights: Weights) -> None:
    """Go back to the prior."""
    for group in range(len(weights.homes)):
        weights.homes[group] = weights.first_homes[group]
        weights.num_pending[group] = 0
        weights.lost[group] = 0
        weights.drawn[group] = 0
        weights.changed[group] = True
    weights.status[FREE] = weights.status[SHARED]
    weights.status[IMPOSSIBLE] = 0


@inlined
def take_in(
    slots: Slots, weights: Weights, k: int, last_state: int, age: int, seen: int, at_once: bool
) -> None:
    """Learn that arm k, `age` steps after it was in `last_state`, was seen in `seen`.

    It waits, unless the weights are needed at once.
    """
    at = place(k)
    row = cell_of(last_state, age, slots.lengths[at]) * slots.sizes[at] + seen
    group = slots.groups[at]
    g = place(group)
    waiting = weights.num_pending[g]
    lost = weights.lost[g] + slots.losses[at]
    if waiting == BUFFER or lost > MOST_LOSS:
        _make_room(slots, weights, group, lost > MOST_LOSS)
        waiting = 0
        if lost > MOST_LOSS:
            lost = slots.losses[at]
    weights.lost[g] = lost
    source = slots.offsets[at] + row * slots.row_counts[g] * LANES
    if at_once:
        total = _multiply_and_add_up(slots, weights, g, place(source), place(source), 1)
        if total < FAINT:
            _revive(slots, weights, group, total)
    else:
        weights.pending[place(group * BUFFER + waiting)] = source
        weights.num_pending[g] = waiting + 1


@part
def _make_room(slots: Slots, weights: Weights, group: int, too_low: bool) -> None:
    """Multiply what waits, rescale where told; apart, since it is rare and would crowd a loop."""
    multiply_pending(slots, weights, group)
    if too_low:
        _rescale(slots, weights, group)


@inlined
def multiply_all(slots: Slots, weights: Weights) -> None:
    """Bring the weights of all groups up to date."""
    for group in range(len(weights.homes)):
        multiply_pending(slots, weights, group)


@inlined
def multiply_pending(slots: Slots, weights: Weights, group: int) -> None:
    """Bring the weights of a group up to date.

    Likelihoods are multiplied in the order in which things were seen, and rescaling multiplies by
    powers of two, so what the weights mean is the same to the bit whenever this is called. Four or
    two are multiplied at a time, which spares loads and stores of weights.
    """
    at = place(group)
    first = at * place(BUFFER)
    end = first + place(weights.num_pending[at])
    if first == end:
        return
    while first + place(4) < end:
        _multiply_four(slots, weights, at, first)
        first += place(4)
    if first + place(2) < end:
        one, two = place(weights.pending[first]), place(weights.pending[first + place(1)])
        source = place(weights.homes[at])
        target = _own_home(slots, weights, at)
        for row in range(place(slots.row_counts[at])):
            _weight(slots, weights, source, target, row, one, two, 2)
        first += place(2)
    one = place(weights.pending[first])
    if first + place(1) < end:
        two = place(weights.pending[first + place(1)])
        total = _multiply_and_add_up(slots, weights, at, one, two, 2)
    else:
        total = _multiply_and_add_up(slots, weights, at, one, one, 1)
    weights.num_pending[at] = 0
    if total < FAINT:
        _revive(slots, weights, group, total)


@inlined
def _multiply_four(slots: Slots, weights: Weights, at: Place, first: Place) -> None:
    """Multiply the weights of a group by what waits in places `first` to `first + 3`."""
    one, two = place(weights.pending[first]), place(weights.pending[first + place(1)])
    three, four = weights.pending[first + place(2)], weights.pending[first + place(3)]
    source = place(weights.homes[at])
    target = _own_home(slots, weights, at)
    for row in range(place(slots.row_counts[at])):
        shift = row * place(LANES)
        weight = times(load(weights.numbers, source + shift), load(slots.likelihoods, one + shift))
        weight = times(weight, load(slots.likelihoods, two + shift))
        weight = times(weight, load(slots.likelihoods, place(three) + shift))
        weight = times(weight, load(slots.likelihoods, place(four) + shift))
        store(weights.numbers, target + shift, weight)


@inlined
def _own_home(slots: Slots, weights: Weights, at: Place) -> Place:
    """Where a group's weights are to be written: not into a home that others share."""
    if weights.homes[at] < weights.status[SHARED]:
        _move(slots, weights, at)
    return place(weights.homes[at])


@part
def _move(slots: Slots, weights: Weights, at: Place) -> None:
    """Give a group a home of its own; weights are written there by whoever multiplies them."""
    old, new, rows = weights.homes[at], weights.status[FREE], slots.row_counts[at]
    lifts = _lifts(0, rows)
    for j in range(rows * LANES):
        weights.numbers[place(new + lifts + j)] = weights.numbers[place(old + lifts + j)]
    for j in range(LANES):  # sums below the first block
        weights.numbers[place(new + rows * LANES + j)] = 0.0
    weights.homes[at] = new
    weights.status[FREE] = new + lifts + rows * LANES


@inlined
def _sums(home: Place, rows: Place) -> Place:
    """Where the sums below each block stand."""
    return home + rows * place(LANES)


@inlined
def _starts(home: Place, rows: Place) -> Place:
    """Where the sums before each lane stand; the total is behind them."""
    return home + (rows + rows // place(BLOCK)) * place(LANES)


@inlined
def _lifts(home: int, rows: int) -> int:
    """Where the lifts stand."""
    return home + (rows + rows // BLOCK + 2) * LANES


@inlined
def total_of(slots: Slots, weights: Weights, group: int) -> float:
    """Sum of a group's weights, as it was last made."""
    at = place(group)
    first = _starts(place(weights.homes[at]), place(slots.row_counts[at]))
    return float(weights.numbers[first + place(LANES)])


@inlined
def sum_of_squares(slots: Slots, weights: Weights, group: int) -> float:
    """Sum of the squares of a group's weights."""
    at = place(group)
    home = place(weights.homes[at])
    weight = load(weights.numbers, home)
    squares = times(weight, weight)
    for row in range(place(1), place(slots.row_counts[at])):
        weight = load(weights.numbers, home + row * place(LANES))
        squares = plus(squares, times(weight, weight))
    return last(plus(sums_before(squares), squares))


@inlined
def add_up(slots: Slots, weights: Weights, group: int) -> None:
    """Make the sums of a group anew, for weights that were set from elsewhere."""
    _multiply_and_add_up(slots, weights, place(group), place(0), place(0), 0)


@inlined
def _multiply_and_add_up(
    slots: Slots, weights: Weights, at: Place, one: Place, two: Place, factors: int
) -> float:
    """Multiply the weights of a group by up to two rows of likelihoods, and return their total.

    Blocks are added up by themselves and then to what is below them: the processor waits for few
    additions one after the other.
    """
    source = place(weights.homes[at])
    target = _own_home(slots, weights, at) if factors > 0 else source
    rows = slots.row_counts[at]
    sums = _sums(target, place(rows))
    below = _block(slots, weights, source, target, place(0), one, two, factors)
    for row in range(place(BLOCK), place(rows), place(BLOCK)):
        sums += place(LANES)
        store(weights.numbers, sums, below)
        below = plus(below, _block(slots, weights, source, target, row, one, two, factors))
    starts = sums_before(below)
    first = _starts(target, place(rows))
    store(weights.numbers, first, starts)
    total = last(plus(starts, below))
    weights.numbers[first + place(LANES)] = total
    if factors > 0:
        weights.changed[at] = True
    return total


@inlined
def _block(
    slots: Slots, weights: Weights, source: Place, target: Place, row: Place, one: Place,
    two: Place, factors: int,
) -> Vector:  # fmt: skip
    """Sums of a block's weights, multiplied first."""
    block = _weight(slots, weights, source, target, row, one, two, factors)
    for i in range(place(1), place(BLOCK)):
        block = plus(block, _weight(slots, weights, source, target, row + i, one, two, factors))
    return block


@inlined
def _weight(
    slots: Slots, weights: Weights, source: Place, target: Place, row: Place, one: Place,
    two: Place, factors: int,
) -> Vector:  # fmt: skip
    """Weights in a row of a group, multiplied first; `factors` is a constant to the compiler."""
    shift = row * place(LANES)
    weight = load(weights.numbers, source + shift)
    if factors > 0:
        weight = times(weight, load(slots.likelihoods, one + shift))
    if factors > 1:
        weight = times(weight, load(slots.likelihoods, two + shift))
    if factors > 0:
        store(weights.numbers, target + shift, weight)
    return weight


@inlined
def draw_all(slots: Slots, weights: Weights, key: np.uint64, draws: int) -> None:
    """Draw a slot of each group; several random numbers first, which is several at once."""
    count = len(weights.drawn)
    for begin in range(0, count, AT_ONCE):
        end = min(begin + AT_ONCE, count)
        for group in range(begin, end):
            weights.uniforms[place(group - begin)] = uniform_at(key, draws + group)
        for group in range(begin, end):
            u = weights.uniforms[place(group - begin)]
            weights.drawn[place(group)] = draw_slot(slots, weights, group, u)
            weights.changed[place(group)] = False


@inlined
def draw_slot(slots: Slots, weights: Weights, group: int, u: float) -> int:
    """Slot of a group whose share of the total weight holds u: its lane, block and row.

    Counting instead of searching: there is no branch for the processor to guess wrong. For blocks
    all lanes are counted, though one matters: those before it are passed, those after it are not.
    """
    at = place(group)
    home, count = weights.homes[at], slots.row_counts[at]
    first = _starts(place(home), place(count))
    total = weights.numbers[first + place(LANES)]
    if total == 0.0:  # all have been ruled out, and `status` says so
        return 0
    target = u * total  # less than the total, also rounded: u is at most 1 - 2^-53
    sums = _sums(place(home), place(count))
    starts = load(weights.numbers, first)
    lane = not_above(starts, target) - 1
    blocks = 0
    for i in range(place(1), place(count // BLOCK)):
        passed = plus(starts, load(weights.numbers, sums + i * place(LANES)))
        blocks += not_above(passed, target) - lane
    start = weights.numbers[first + place(lane)]
    below = weights.numbers[sums + place(blocks * LANES + lane)]
    weight = place(home + blocks * BLOCK * LANES + lane)
    within = weights.numbers[weight]
    row = blocks * BLOCK + (start + (below + within) <= target)
    for i in range(place(1), place(BLOCK - 1)):  # the last is left where the others are passed
        within += weights.numbers[weight + i * place(LANES)]
        row += start + (below + within) <= target
    return int(lane * count + row)


@inlined
def take_modes(slots: Slots, weights: Weights) -> None:
    """Take each group's likeliest slot; only what has been seen since can have changed it."""
    for group in range(len(weights.drawn)):
        if weights.changed[group]:
            weights.drawn[group] = likeliest_slot(slots, weights, group)
            weights.changed[group] = False


@part
def likeliest_slot(slots: Slots, weights: Weights, group: int) -> int:
    """Slot of a group with the largest weight.

    It is the first of equals, and equal is what differs by rounding alone. Both loops are such as
    the compiler does for several weights at once: the bits of numbers that are not negative are in
    the order of the numbers, and the largest of whole numbers, unlike that of floats, does not
    depend on the order in which they are compared.
    """
    begin, count = weights.homes[group], slots.row_counts[group]
    numbers = weights.numbers[begin : begin + count * LANES]
    bits = numbers.view(np.int64)
    largest = np.int64(0)
    for j in range(len(bits)):
        largest = max(largest, bits[place(j)])
    enough = np.int64(largest).view(np.float64) * (1 - MODE_NOISE)
    nowhere = LANES << ROW_BITS
    first = nowhere
    for j in range(len(numbers)):
        here = ((j & (LANES - 1)) << ROW_BITS) | (j >> LANE_BITS)  # lane and, below it, row
        first = min(first, here if numbers[place(j)] >= enough else nowhere)
    return int((first >> ROW_BITS) * count + (first & ((1 << ROW_BITS) - 1)))


@part
def _revive(slots: Slots, weights: Weights, group: int, total: float) -> None:
    """See to weights of a faint total: those that mattered are ruled out, perhaps all of them."""
    if total > 0.0:
        _rescale(slots, weights, group)
    else:
        weights.status[IMPOSSIBLE] = 1 + group


@part
def _rescale(slots: Slots, weights: Weights, group: int) -> None:
    """Bring the largest weight into [1/2, 1); lift what is then too small to be written.

    All is multiplied by powers of two, so nothing is lost: only exponents change, which are the
    bits above FRACTION of a number that is never so small as to have none.
    """
    rows = slots.row_counts[group]
    home = weights.homes[group]
    lifts = _lifts(home, rows)
    bits = weights.numbers.view(np.int64)
    largest = -(1 << 62)
    for j in range(rows * LANES):
        held = bits[place(home + j)]
        if held > 0:
            largest = max(largest, (held >> FRACTION) - int(weights.numbers[place(lifts + j)]))
    for j in range(rows * LANES):
        held = bits[place(home + j)]
        if held > 0:
            lift = int(weights.numbers[place(lifts + j)])
            exponent = (held >> FRACTION) - lift - largest
            lowered = max(exponent, LIFTED) + HALF - (held >> FRACTION)
            bits[place(home + j)] = held + (lowered << FRACTION)
            weights.numbers[place(lifts + j)] = max(LIFTED - exponent, 0)
    add_up(slots, weights, group)


@inlined
def impossible_arm(
    slots: Slots, weights: Weights, meta: Meta, pulled: IntArray, count: int, states: IntArray,
    rows: IntArray,
) -> int:  # fmt: skip
    """Pulled arm, among the first `count`, whose state no slot that is left allows; -1 if none.

    What waits of these arms is multiplied first. Arms of one group must be possible together.
    `rows` [count] is negative for arms that do not count, and scratch for the others.
    """
    t = meta.now[TIME]
    for i in range(count):
        k = pulled[i]
        if rows[i] < 0:
            continue
        multiply_pending(slots, weights, slots.groups[k])
        cell = cell_of(meta.last_state[k], t - meta.seen[k], slots.lengths[k])
        row = cell * slots.sizes[k] + states[i]
        rows[i] = slots.offsets[k] + row * slots.row_counts[slots.groups[k]] * LANES
    for i in range(count):
        if rows[i] < 0:
            continue
        group = slots.groups[pulled[i]]
        home = weights.homes[group]
        possible = False
        for j in range(slots.row_counts[group] * LANES):
            alive = weights.numbers[place(home + j)] > 0
            for other in range(i + 1):
                if alive and slots.groups[pulled[other]] == group:
                    alive = slots.likelihoods[place(rows[other] + j)] > 0
            if alive:
                possible = True
                break
        if not possible:
            return int(pulled[i])
    return -1


@part
def weigh_kinds(
    slots: Slots, weights: Weights, kinds: IntArray, shares: FloatArray, first: int
) -> None:
    """Write the posterior weight of a kind of each arm, from place `first` on."""
    for k in range(len(kinds)):
        group = slots.groups[k]
        multiply_pending(slots, weights, group)
        count = slots.row_counts[group]
        home = weights.homes[group]
        lifts = _lifts(home, count)
        total, true = 0.0, 0.0
        for row in range(count):
            for lane in range(LANES):
                j = row * LANES + lane
                weight = weights.numbers[place(home + j)]
                if weight > 0.0:  # fillers, which have no kind, have none
                    lift = weights.numbers[place(lifts + j)]
                    if lift > 0.0:
                        weight = ldexp(weight, -int(min(lift, MOST_SHIFT)))
                    total += weight
                    if slots.kinds[place(slots.kind_offsets[k] + lane * count + row)] == kinds[k]:
                        true += weight
        shares[first + k] = true / total if total > 0.0 else 0.0


@kernel
def draw_truths(slots: Slots, weights: Weights, keys: NDArray[np.uint64], kinds: IntArray) -> None:
    """Draw the kinds [R, K] of true arms from the prior, with a key for each row.

    Of the slots only the groups and kinds are looked at; `weights` must be as before anything was
    seen.
    """
    for r in range(len(kinds)):
        for k in range(kinds.shape[1]):
            group = slots.groups[k]
            drawn = draw_slot(slots, weights, group, uniform_at(keys[r], group))
            kinds[r, k] = slots.kinds[slots.kind_offsets[k] + drawn]


@hot_kernel
def add_up_groups(slots: Slots, weights: Weights, groups: IntArray) -> None:
    """Make the sums of some groups, for Python."""
    for i in range(len(groups)):
        add_up(slots, weights, groups[i])
