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

from restive.kernels.jit.compiler import Place, hot_kernel, inlined, part, place
from restive.kernels.jit.handles import opener
from restive.kernels.jit.vectors import (
    LANES,
    Vector,
    last,
    load,
    plus,
    store,
    sums_before,
    times,
)
from restive.kernels.loop.tables import (
    BLOCK,
    BUFFER,
    FAINT,
    LIFTED,
    MOST_LOSS,
    MOST_SHIFT,
    NOT_PULLED,
    Meta,
    Posterior,
    cell_of,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "add_up",
    "add_up_groups",
    "forget_all",
    "impossible_arm",
    "lifts_at",
    "multiply_all",
    "multiply_groups",
    "multiply_pending",
    "own_home",
    "rescale",
    "rescale_groups",
    "starts_at",
    "sum_of_squares",
    "sums_at",
    "take_in",
    "total_of",
    "weigh_kinds",
]

FRACTION = 52  # bits of a float below its exponent
HALF = 1022  # the exponent, as it is written, of numbers in [1/2, 1)

_opened = opener(Posterior)


@part
def forget_all(posterior: Posterior) -> None:
    """Go back to the prior."""
    weights = posterior.weights
    for group in range(len(weights.homes)):
        weights.homes[group] = weights.first_homes[group]
        weights.num_pending[group] = 0
        weights.lost[group] = 0
        weights.drawn[group] = 0
        weights.changed[group] = True
    weights.status[0].free = weights.status[0].shared
    weights.status[0].impossible = 0


@inlined
def take_in(
    posterior: Posterior, k: int, last_state: int, age: int, seen: int, at_once: bool
) -> None:
    """Learn that arm k, `age` steps after it was in `last_state`, was seen in `seen`.

    It waits, unless the weights are needed at once.
    """
    slots, weights = posterior.slots, posterior.weights
    at = place(k)
    row = cell_of(last_state, age, slots.lengths[at]) * slots.sizes[at] + seen
    group = slots.groups[at]
    g = place(group)
    waiting = weights.num_pending[g]
    lost = weights.lost[g] + slots.losses[at]
    if waiting == BUFFER or lost > MOST_LOSS:
        _make_room(posterior, group, lost > MOST_LOSS)
        waiting = 0
        if lost > MOST_LOSS:
            lost = slots.losses[at]
    weights.lost[g] = lost
    source = slots.offsets[at] + row * slots.row_counts[g] * LANES
    if at_once:
        total = _multiply_and_add_up(posterior, g, place(source), place(source), 1)
        if total < FAINT:
            _revive(posterior, group, total)
    else:
        weights.pending[place(group * BUFFER + waiting)] = source
        weights.num_pending[g] = waiting + 1


@part
def _make_room(posterior: Posterior, group: int, too_low: bool) -> None:
    """Multiply what waits, rescale where told; apart, since it is rare and would crowd a loop."""
    multiply_pending(posterior, group)
    if too_low:
        rescale(posterior, group)


@inlined
def multiply_all(posterior: Posterior) -> None:
    """Bring the weights of all groups up to date."""
    weights = posterior.weights
    for group in range(len(weights.homes)):
        multiply_pending(posterior, group)


@inlined
def multiply_pending(posterior: Posterior, group: int) -> None:
    """Bring the weights of a group up to date.

    Likelihoods are multiplied in the order in which things were seen, and rescaling multiplies by
    powers of two, so what the weights mean is the same to the bit whenever this is called. Four or
    two are multiplied at a time, which spares loads and stores of weights.
    """
    slots, weights = posterior.slots, posterior.weights
    at = place(group)
    first = at * place(BUFFER)
    end = first + place(weights.num_pending[at])
    if first == end:
        return
    while first + place(4) < end:
        _multiply_four(posterior, at, first)
        first += place(4)
    if first + place(2) < end:
        one, two = place(weights.pending[first]), place(weights.pending[first + place(1)])
        source = place(weights.homes[at])
        target = own_home(posterior, at)
        for row in range(place(slots.row_counts[at])):
            _weight(posterior, source, target, row, one, two, 2)
        first += place(2)
    one = place(weights.pending[first])
    if first + place(1) < end:
        two = place(weights.pending[first + place(1)])
        total = _multiply_and_add_up(posterior, at, one, two, 2)
    else:
        total = _multiply_and_add_up(posterior, at, one, one, 1)
    weights.num_pending[at] = 0
    if total < FAINT:
        _revive(posterior, group, total)


@inlined
def _multiply_four(posterior: Posterior, at: Place, first: Place) -> None:
    """Multiply the weights of a group by what waits in places `first` to `first + 3`."""
    slots, weights = posterior.slots, posterior.weights
    one, two = place(weights.pending[first]), place(weights.pending[first + place(1)])
    three, four = weights.pending[first + place(2)], weights.pending[first + place(3)]
    source = place(weights.homes[at])
    target = own_home(posterior, at)
    for row in range(place(slots.row_counts[at])):
        shift = row * place(LANES)
        weight = times(load(weights.numbers, source + shift), load(slots.likelihoods, one + shift))
        weight = times(weight, load(slots.likelihoods, two + shift))
        weight = times(weight, load(slots.likelihoods, place(three) + shift))
        weight = times(weight, load(slots.likelihoods, place(four) + shift))
        store(weights.numbers, target + shift, weight)


@inlined
def own_home(posterior: Posterior, at: Place) -> Place:
    """Where a group's weights are to be written: not into a home that others share."""
    weights = posterior.weights
    if weights.homes[at] < weights.status[0].shared:
        _move(posterior, at)
    return place(weights.homes[at])


@part
def _move(posterior: Posterior, at: Place) -> None:
    """Give a group a home of its own; weights are written there by whoever multiplies them."""
    slots, weights = posterior.slots, posterior.weights
    old, new, rows = weights.homes[at], weights.status[0].free, slots.row_counts[at]
    lifts = lifts_at(0, rows)
    for j in range(rows * LANES):
        weights.numbers[place(new + lifts + j)] = weights.numbers[place(old + lifts + j)]
    for j in range(LANES):  # sums below the first block
        weights.numbers[place(new + rows * LANES + j)] = 0.0
    weights.homes[at] = new
    weights.status[0].free = new + lifts + rows * LANES


@inlined
def sums_at(home: Place, rows: Place) -> Place:
    """Where the sums below each block stand."""
    return home + rows * place(LANES)


@inlined
def starts_at(home: Place, rows: Place) -> Place:
    """Where the sums before each lane stand; the total is behind them."""
    return home + (rows + rows // place(BLOCK)) * place(LANES)


@inlined
def lifts_at(home: int, rows: int) -> int:
    """Where the lifts stand."""
    return home + (rows + rows // BLOCK + 2) * LANES


@inlined
def total_of(posterior: Posterior, group: int) -> float:
    """Sum of a group's weights, as it was last made."""
    slots, weights = posterior.slots, posterior.weights
    at = place(group)
    first = starts_at(place(weights.homes[at]), place(slots.row_counts[at]))
    return float(weights.numbers[first + place(LANES)])


@inlined
def sum_of_squares(posterior: Posterior, group: int) -> float:
    """Sum of the squares of a group's weights."""
    slots, weights = posterior.slots, posterior.weights
    at = place(group)
    home = place(weights.homes[at])
    weight = load(weights.numbers, home)
    squares = times(weight, weight)
    for row in range(place(1), place(slots.row_counts[at])):
        weight = load(weights.numbers, home + row * place(LANES))
        squares = plus(squares, times(weight, weight))
    return last(plus(sums_before(squares), squares))


@inlined
def add_up(posterior: Posterior, group: int) -> None:
    """Make the sums of a group anew, for weights that were set from elsewhere."""
    _multiply_and_add_up(posterior, place(group), place(0), place(0), 0)


@inlined
def _multiply_and_add_up(
    posterior: Posterior, at: Place, one: Place, two: Place, factors: int
) -> float:
    """Multiply the weights of a group by up to two rows of likelihoods, and return their total.

    Blocks are added up by themselves and then to what is below them: the processor waits for few
    additions one after the other.
    """
    slots, weights = posterior.slots, posterior.weights
    source = place(weights.homes[at])
    target = own_home(posterior, at) if factors > 0 else source
    rows = slots.row_counts[at]
    sums = sums_at(target, place(rows))
    below = _block(posterior, source, target, place(0), one, two, factors)
    for row in range(place(BLOCK), place(rows), place(BLOCK)):
        sums += place(LANES)
        store(weights.numbers, sums, below)
        below = plus(below, _block(posterior, source, target, row, one, two, factors))
    starts = sums_before(below)
    first = starts_at(target, place(rows))
    store(weights.numbers, first, starts)
    total = last(plus(starts, below))
    weights.numbers[first + place(LANES)] = total
    if factors > 0:
        weights.changed[at] = True
    return total


@inlined
def _block(
    posterior: Posterior, source: Place, target: Place, row: Place, one: Place, two: Place,
    factors: int,
) -> Vector:  # fmt: skip
    """Sums of a block's weights, multiplied first."""
    block = _weight(posterior, source, target, row, one, two, factors)
    for i in range(place(1), place(BLOCK)):
        block = plus(block, _weight(posterior, source, target, row + i, one, two, factors))
    return block


@inlined
def _weight(
    posterior: Posterior, source: Place, target: Place, row: Place, one: Place, two: Place,
    factors: int,
) -> Vector:  # fmt: skip
    """Weights in a row of a group, multiplied first; `factors` is a constant to the compiler."""
    slots, weights = posterior.slots, posterior.weights
    shift = row * place(LANES)
    weight = load(weights.numbers, source + shift)
    if factors > 0:
        weight = times(weight, load(slots.likelihoods, one + shift))
    if factors > 1:
        weight = times(weight, load(slots.likelihoods, two + shift))
    if factors > 0:
        store(weights.numbers, target + shift, weight)
    return weight


@part
def _revive(posterior: Posterior, group: int, total: float) -> None:
    """See to weights of a faint total: those that mattered are ruled out, perhaps all of them."""
    weights = posterior.weights
    if total > 0.0:
        rescale(posterior, group)
    else:
        weights.status[0].impossible = 1 + group


@part
def rescale(posterior: Posterior, group: int) -> None:
    """Bring the largest weight into [1/2, 1); lift what is then too small to be written.

    All is multiplied by powers of two, so nothing is lost: only exponents change, which are the
    bits above FRACTION of a number that is never so small as to have none.
    """
    slots, weights = posterior.slots, posterior.weights
    rows = slots.row_counts[group]
    home = weights.homes[group]
    lifts = lifts_at(home, rows)
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
    add_up(posterior, group)


@inlined
def impossible_arm(
    posterior: Posterior, meta: Meta, pulled: IntArray, states: IntArray, count: int,
    shown: int, rows: IntArray,
) -> int:  # fmt: skip
    """Arm that is shown whose state no slot that is left allows; -1 if there is none.

    The first `count` were pulled; others, up to `shown`, are always seen.

    What waits of these arms is multiplied first. Arms of one group must be possible together.
    `rows` [shown] is negative for arms that do not count, and scratch for the others.
    """
    slots, weights = posterior.slots, posterior.weights
    t = meta.now[0].time
    for i in range(shown):
        k = pulled[i]
        if rows[i] < 0:
            continue
        multiply_pending(posterior, slots.groups[k])
        age = t - meta.seen[k] if i < count else NOT_PULLED
        cell = cell_of(meta.last_state[k], age, slots.lengths[k])
        row = cell * slots.sizes[k] + states[i]
        rows[i] = slots.offsets[k] + row * slots.row_counts[slots.groups[k]] * LANES
    for i in range(shown):
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
def weigh_kinds(posterior: Posterior, kinds: IntArray, shares: FloatArray, first: int) -> None:
    """Write the posterior weight of a kind of each arm, from place `first` on."""
    slots, weights = posterior.slots, posterior.weights
    for k in range(len(kinds)):
        group = slots.groups[k]
        multiply_pending(posterior, group)
        count = slots.row_counts[group]
        home = weights.homes[group]
        lifts = lifts_at(home, count)
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


@hot_kernel
def add_up_groups(where: IntArray, groups: IntArray) -> None:
    """Make the sums of some groups of the posterior in a handle, for Python."""
    posterior = _opened(where)
    for i in range(len(groups)):
        add_up(posterior, groups[i])


@hot_kernel
def rescale_groups(where: IntArray, groups: IntArray) -> None:
    """See to the weights of some groups that were multiplied elsewhere, for Python."""
    posterior = _opened(where)
    for i in range(len(groups)):
        rescale(posterior, groups[i])
        posterior.weights.lost[groups[i]] = 0
        posterior.weights.changed[groups[i]] = True


@hot_kernel
def multiply_groups(where: IntArray) -> None:
    """Bring the weights of all groups up to date, for Python."""
    multiply_all(_opened(where))
