r"""Following channels by the closed forms of their indices: no tables, and exact at any age.

A two-state arm that moves alike pulled or not has, n steps after it was last seen, an index
(A + x) / (D + E p + F x), where p = rho^n and x = min((B + C n) p, cap); the numbers depend on the
state in which it was seen. `kernels.gilbert_elliott` has the formulas they come from: with omega
the settled belief, rho >= 0 has

* seen good: A = omega, B = 1 - omega, D = 1 - p11 + omega, F = 1;
* seen bad:  A = omega, B = -omega, C = -p01, D = 1 - p11 + omega, E = p01, F = 1;

and rho < 0 has A = p01, D = 1 - rho p11, F = -1, cap = 0 and B = 1 - p11 (good) or -p01 (bad). At
age 1 the index is the belief. The myopic index is the belief at every age: A = omega, D = 1.

Powers go from one step to the next by a product. What they are depends on nothing but when the
episode began, when the arm was seen and what time it is: so they can be made anew at any time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import Place, inlined, part, place
from restive.kernels.tables import (
    AGE,
    FIRST,
    FORM,
    GOOD,
    LOW,
    MYOPIC,
    POWER,
    RHO,
    RISE,
    SETTLED,
    SPAN,
    STANDS,
    STAY,
    VALUED,
    Clouds,
    Following,
    Meta,
    Slots,
    Weights,
)
from restive.kernels.vectors import LANES, lesser, load, over, plus, store, times, where_equal
from restive.kernels.world import top_values

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["choose_by_value", "follow_channels", "see_channel"]

TWO, THREE, FOUR, FIVE, SIX = place(2), place(3), place(4), place(5), place(6)
TINY = 1e-200  # powers below it are 0: the smallest numbers are slow


@part
def follow_channels(slots: Slots, weights: Weights, clouds: Clouds, following: Following) -> None:
    """Let every arm, all of them channels, follow the particle that was drawn for it."""
    channels, count = following.channels, len(following.values)
    for k in range(len(following.rank)):
        group = slots.groups[k]
        rows = slots.row_counts[group]
        width = rows * LANES
        drawn = weights.drawn[group]
        home = clouds.chain_starts[clouds.homes[clouds.groups[group]]]
        first = home + (drawn % rows) * LANES + drawn // rows
        good = int(channels[GOOD * count + k])
        rise = clouds.chains[first + ((1 - good) * 2 + good) * width]
        stay = clouds.chains[first + (good * 2 + good) * width]
        channels[RISE * count + k] = rise
        channels[STAY * count + k] = stay
        channels[RHO * count + k] = stay - rise
        channels[SETTLED * count + k] = rise / (rise + (1.0 - stay))
    following.mode[STANDS] = -1  # so the next choice makes all that depends on what was seen


@inlined
def see_channel(following: Following, k: int, state: int) -> None:
    """Note that arm k was seen now: its age is 0, and its index has another form."""
    channels, count = following.channels, len(following.values)
    at = place(k)
    step = place(count)
    rise, stay = channels[at + place(RISE) * step], channels[at + place(STAY) * step]
    rho, settled = channels[at + place(RHO) * step], channels[at + place(SETTLED) * step]
    good = state == channels[at + place(GOOD) * step]
    channels[at + place(POWER) * step] = 1.0
    channels[at + place(AGE) * step] = 0.0
    channels[at + place(FIRST) * step] = stay if good else rise
    first = at + place(FORM) * step
    if following.mode[VALUED] == MYOPIC:
        part_of_power = 1.0 - settled if good else -settled
        _write_form(channels, first, step, settled, part_of_power, 0.0, 1.0, 0.0, 0.0, np.inf)
    elif rho >= 0.0:
        long_run = 1.0 - stay + settled
        if good:
            _write_form(
                channels, first, step, settled, 1.0 - settled, 0.0, long_run, 0.0, 1.0, np.inf
            )
        else:
            _write_form(
                channels, first, step, settled, -settled, -rise, long_run, rise, 1.0, np.inf
            )
    else:
        below = 1.0 - stay if good else -rise
        _write_form(channels, first, step, rise, below, 0.0, 1.0 - rho * stay, 0.0, -1.0, 0.0)


@inlined
def _write_form(
    channels: FloatArray, first: Place, step: Place, a: float, b: float, c: float, d: float,
    e: float, f: float, cap: float,
) -> None:  # fmt: skip
    channels[first] = a
    channels[first + step] = b
    channels[first + place(2) * step] = c
    channels[first + place(3) * step] = d
    channels[first + place(4) * step] = e
    channels[first + place(5) * step] = f
    channels[first + place(6) * step] = cap


@inlined
def choose_by_value(
    following: Following, meta: Meta, began: int, t: int, available: BoolArray, masked: bool,
    chosen: IntArray, num_chosen: int,
) -> None:  # fmt: skip
    """Write the `num_chosen` channels of the largest indices; the lowest arm wins ties.

    `began` is the time at which the episode did.
    """
    channels, values = following.channels, following.values
    _age(following, meta, began, t)
    count = len(values)
    step = place(count)
    for k in range(place(0), step, place(LANES)):
        power, age = load(channels, place(POWER) * step + k), load(channels, place(AGE) * step + k)
        form = place(FORM) * step + k
        rise = plus(load(channels, form + step), times(load(channels, form + TWO * step), age))
        x = lesser(times(rise, power), load(channels, form + SIX * step))
        below = plus(
            load(channels, form + THREE * step), times(load(channels, form + FOUR * step), power)
        )
        below = plus(below, times(load(channels, form + FIVE * step), x))
        later = over(plus(load(channels, form), x), below)
        unit = where_equal(age, 1.0, load(channels, place(FIRST) * step + k), later)
        low, span = load(channels, place(LOW) * step + k), load(channels, place(SPAN) * step + k)
        store(values, k, plus(low, times(span, unit)))
    if masked:
        for k in range(len(available)):
            if not available[k]:
                values[k] = -np.inf
    top_values(values, len(following.rank), chosen, num_chosen)


@inlined
def _age(following: Following, meta: Meta, began: int, t: int) -> None:
    """Let the powers stand for time t."""
    channels, count = following.channels, len(following.values)
    power, age, rho = POWER * count, AGE * count, RHO * count
    if following.mode[STANDS] == t - 1:
        for k in range(count):
            p = channels[place(power + k)] * channels[place(rho + k)]
            channels[place(power + k)] = 0.0 if abs(p) < TINY else p
            channels[place(age + k)] += 1.0
    elif following.mode[STANDS] != t:
        _age_anew(following, meta, began, t)
    following.mode[STANDS] = t


@part
def _age_anew(following: Following, meta: Meta, began: int, t: int) -> None:
    channels, count = following.channels, len(following.values)
    for k in range(len(following.rank)):
        see_channel(following, k, meta.last_state[k])
        power = _power(channels[RHO * count + k], meta.seen[k], began, t)
        channels[POWER * count + k] = power
        channels[AGE * count + k] = t - meta.seen[k]


@part
def _power(rho: float, seen: int, began: int, t: int) -> float:
    """Return rho^(t - seen): by squaring up to the episode's beginning, then step by step."""
    power, factor = 1.0, rho
    steps = began - seen
    while steps > 0:
        if steps & 1:
            power *= factor
        factor *= factor
        steps >>= 1
    power = 0.0 if abs(power) < TINY else power
    for _ in range(max(began, seen), t):
        power *= rho
        power = 0.0 if abs(power) < TINY else power
    return power
