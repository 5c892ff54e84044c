"""Choosing arms: the N of K with the largest values, in a time that goes by K alone.

The lowest arm wins ties, and arms are written ascending. Values are whole numbers above -2^63 or
floats. Few of few arms are kept in registers; few of many are kept in order while all are scanned.
Else the least value that is chosen is searched: each pass over the values halves the numbers among
which it is. So no order of the values takes much longer than another, and there is no luck in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part, place

__all__ = ["top_arms", "top_of_each"]

IntArray = NDArray[np.int64]
Values = NDArray[Any]  # [K] int32, int64 or float64

FEW, NEAR = 4, 256  # arms to choose, and of how many, so that they are kept in registers
BATCH = 64  # arms that are passed over together where none of them is good enough
ARM_BITS = 31
LAST_ARM = (1 << ARM_BITS) - 1
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1


@hot_kernel
def top_of_each(values: Values, chosen: IntArray) -> int:
    """Write the arms [M, N] with the largest of the values [M, K] of each row.

    Returns a row that holds what is no number, or -1.
    """
    for m in range(len(values)):
        for k in range(values.shape[1]):
            if values[m, k] != values[m, k]:
                return m
    for m in range(len(values)):
        top_arms(values[m], chosen[m], chosen.shape[1])
    return -1


@inlined
def top_arms(values: Values, chosen: IntArray, count: int) -> None:
    """Write the `count` arms with the largest values, ascending; the lowest arm wins ties."""
    if count > FEW or len(values) > NEAR:
        _top_many(values, chosen, count)
    elif values.itemsize == 4:
        _few_by_key(values, chosen, count)
    else:
        _few_by_value(values, chosen, count)


@part
def _top_many(values: Values, chosen: IntArray, count: int) -> None:
    few = count * (count + 50) <= 2 * len(values) or len(values) <= 8
    if not (few and _scan(values, chosen, count)):
        _collect(values, chosen, count, _least_chosen(values, count))


@inlined
def _few_by_key(values: Values, chosen: IntArray, count: int) -> None:
    """Keep the best four in registers, without a branch that the processor could guess wrong.

    A key is the value and, below it, the arm counted backwards, so that no two are equal.
    """
    a, b, c, d = LOWEST, LOWEST, LOWEST, LOWEST
    for k in range(len(values)):
        key = (int(values[k]) << ARM_BITS) | (LAST_ARM - k)
        a, key = max(a, key), min(a, key)
        b, key = max(b, key), min(b, key)
        c, key = max(c, key), min(c, key)
        d = max(d, key)
    i, j = LAST_ARM - (a & LAST_ARM), LAST_ARM - (b & LAST_ARM)
    m, n = LAST_ARM - (c & LAST_ARM), LAST_ARM - (d & LAST_ARM)
    _write_few(i, j, m, n, chosen, count)


@inlined
def _few_by_value(values: Values, chosen: IntArray, count: int) -> None:
    """Do the same where no key has room for the arm.

    An arm takes the first place whose value it exceeds, and what stood there and behind it moves
    on, so that of equal ones the lowest stays.
    """
    floats = _are_floats(values)
    a, b, c, d = LOWEST, LOWEST, LOWEST, LOWEST
    i, j, m, n = LAST_ARM, LAST_ARM, LAST_ARM, LAST_ARM
    for k in range(len(values)):
        x = _ordered(values[place(k)], floats)
        over_a, over_b, over_c, over_d = x > a, x > b, x > c, x > d
        d, n = (c if over_c else x if over_d else d), (m if over_c else k if over_d else n)
        c, m = (b if over_b else x if over_c else c), (j if over_b else k if over_c else m)
        b, j = (a if over_a else x if over_b else b), (i if over_a else k if over_b else j)
        a, i = (x if over_a else a), (k if over_a else i)
    _write_few(i, j, m, n, chosen, count)


@inlined
def _write_few(i: int, j: int, m: int, n: int, chosen: IntArray, count: int) -> None:
    """Write the first `count` of four arms, ascending."""
    j = j if count > 1 else LAST_ARM
    m = m if count > 2 else LAST_ARM
    n = n if count > 3 else LAST_ARM
    i, j = min(i, j), max(i, j)  # a sorting network
    m, n = min(m, n), max(m, n)
    i, m = min(i, m), max(i, m)
    j, n = min(j, n), max(j, n)
    j, m = min(j, m), max(j, m)
    if count > 0:
        chosen[0] = i
    if count > 1:
        chosen[1] = j
    if count > 2:
        chosen[2] = m
    if count > 3:
        chosen[3] = n


@inlined
def _are_floats(values: Values) -> bool:
    return bool(values.dtype.type(0.5) > 0)


@inlined
def _ordered(x: float, is_float: bool) -> int:
    """Whole number that stands where x does in the order of all numbers of its type."""
    bits = np.float64(x + 0.0).view(np.int64)  # -0.0 is 0.0
    return int(bits ^ ((bits >> 63) & HIGHEST)) if is_float else int(x)


@part
def _scan(values: Values, chosen: IntArray, count: int) -> bool:
    """Scan once, the best so far in order: only a larger value displaces another.

    Few do once the first have been seen, and most batches hold none, unless the values ascend: then
    this gives up and returns false.
    """
    held, left, floor = 0, 16 * len(values), values[0]
    for begin in range(0, len(values), BATCH):
        end = min(begin + BATCH, len(values))
        if held == count:
            best = values[place(begin)]
            for k in range(begin, end):
                best = max(best, values[place(k)])
            if best <= floor:
                continue
        for k in range(begin, end):
            x = values[place(k)]
            if held < count:
                held += 1
            elif x <= floor:
                continue
            else:
                left -= count
            at = held - 1
            while at > 0 and values[place(chosen[place(at - 1)])] < x:
                chosen[place(at)] = chosen[place(at - 1)]
                at -= 1
            chosen[place(at)] = k
            floor = values[place(chosen[place(held - 1)])]
        if left < 0:
            return False
    for i in range(1, count):
        k = chosen[i]
        at = i
        while at > 0 and chosen[at - 1] > k:
            chosen[at] = chosen[at - 1]
            at -= 1
        chosen[at] = k
    return True


@part
def _least_chosen(values: Values, count: int) -> int:
    """Return a number that fewer than `count` values exceed, and that `count` reach.

    The numbers between which it is are halved; each pass ends at values that there are.
    """
    floats = _are_floats(values)
    low = high = _ordered(values[0], floats)
    for k in range(len(values)):
        low = min(low, _ordered(values[place(k)], floats))
        high = max(high, _ordered(values[place(k)], floats))
    exceed = 0
    while low < high and exceed != count:
        middle = (low & high) + ((low ^ high) >> 1)
        exceed, above, below = 0, high, low
        for k in range(len(values)):
            x = _ordered(values[place(k)], floats)
            exceed += x > middle
            above = min(above, x if x > middle else high)
            below = max(below, x if x <= middle else low)
        if exceed >= count:
            low = above
        else:
            high = below
    return low


@part
def _collect(values: Values, chosen: IntArray, count: int, least: int) -> None:
    """Write the arms whose values exceed `least`, and the first of those that have it."""
    floats, equal = _are_floats(values), count
    for k in range(len(values)):
        equal -= _ordered(values[place(k)], floats) > least
    held = 0
    for k in range(len(values)):
        if held == count:
            break
        x = _ordered(values[place(k)], floats)
        chosen[place(held)] = k  # the next arm takes its place if it is not one of the best
        held += (x > least) | ((x == least) & (equal > 0))
        equal -= x == least
