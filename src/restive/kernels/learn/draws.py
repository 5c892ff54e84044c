"""Drawing a slot of each group by its weight, or taking the one of the largest weight.

Counting instead of searching, so that there is no branch for the processor to guess wrong: the sums
that `weights` keeps beside a group's weights are compared with a uniform number times their total.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, kernel, part, place
from restive.kernels.jit.handles import opener
from restive.kernels.jit.vectors import LANES, load, not_above, plus
from restive.kernels.learn.weights import starts_at, sums_at
from restive.kernels.loop.tables import AT_ONCE, BLOCK, Posterior
from restive.kernels.random import uniform_at

IntArray = NDArray[np.int64]

__all__ = ["draw_all", "draw_slot", "draw_truths", "likeliest_slot", "take_modes"]

MODE_NOISE = 1e-12
LANE_BITS = 3  # LANES is 2^3
ROW_BITS = 32

_opened = opener(Posterior)


@inlined
def draw_all(posterior: Posterior, key: np.uint64, draws: int) -> None:
    """Draw slots of each group; several random numbers first, which is several at once."""
    weights = posterior.weights
    count = len(weights.homes)
    for first in range(0, len(weights.drawn), count):
        for begin in range(0, count, AT_ONCE):
            end = min(begin + AT_ONCE, count)
            for group in range(begin, end):
                weights.uniforms[place(group - begin)] = uniform_at(key, draws + first + group)
            for group in range(begin, end):
                u = weights.uniforms[place(group - begin)]
                weights.drawn[place(first + group)] = draw_slot(posterior, group, u)
                weights.changed[place(group)] = False


@inlined
def draw_slot(posterior: Posterior, group: int, u: float) -> int:
    """Slot of a group whose share of the total weight holds u: its lane, block and row.

    Counting instead of searching: there is no branch for the processor to guess wrong. For blocks
    all lanes are counted, though one matters: those before it are passed, those after it are not.
    """
    slots, weights = posterior.slots, posterior.weights
    at = place(group)
    home, count = weights.homes[at], slots.row_counts[at]
    first = starts_at(place(home), place(count))
    total = weights.numbers[first + place(LANES)]
    if total == 0.0:  # all have been ruled out, and `status` says so
        return 0
    target = u * total  # less than the total, also rounded: u is at most 1 - 2^-53
    sums = sums_at(place(home), place(count))
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
def take_modes(posterior: Posterior) -> None:
    """Take each group's likeliest slot; only what has been seen since can have changed it."""
    weights = posterior.weights
    for group in range(len(weights.homes)):
        if weights.changed[group]:
            weights.drawn[group] = likeliest_slot(posterior, group)
            weights.changed[group] = False


@part
def likeliest_slot(posterior: Posterior, group: int) -> int:
    """Slot of a group with the largest weight.

    It is the first of equals, and equal is what differs by rounding alone. Both loops are such as
    the compiler does for several weights at once: the bits of numbers that are not negative are in
    the order of the numbers, and the largest of whole numbers, unlike that of floats, does not
    depend on the order in which they are compared.
    """
    slots, weights = posterior.slots, posterior.weights
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


@kernel
def draw_truths(where: IntArray, keys: NDArray[np.uint64], kinds: IntArray) -> None:
    """Draw the kinds [R, K] of true arms from the prior, with a key for each row.

    Of the slots only the groups and kinds are looked at; the weights of the posterior, which is in
    a handle, must be as before anything was seen.
    """
    posterior = _opened(where)
    slots = posterior.slots
    for r in range(len(kinds)):
        for k in range(kinds.shape[1]):
            group = slots.groups[k]
            drawn = draw_slot(posterior, group, uniform_at(keys[r], group))
            kinds[r, k] = slots.kinds[slots.kind_offsets[k] + drawn]
