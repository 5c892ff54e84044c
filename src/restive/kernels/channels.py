r"""Following channels by the closed forms of their indices: no tables, and exact at any age.

A two-state arm that moves alike pulled or not has, n steps after it was last seen, an index
(A + x) / (D + E p + F x), where p = rho^n and x = min((B - E n) p, cap). B and E depend on the
state in which it was seen. `kernels.gilbert_elliott` has the formulas they come from: with omega
the settled belief, rho >= 0 has A = omega, D = 1 - p11 + omega, F = 1, and

* seen good: B = 1 - omega, E = 0;
* seen bad:  B = -omega, E = p01;

and rho < 0 has A = p01, D = 1 - rho p11, E = 0, F = -1, cap = 0 and B = 1 - p11 (good) or -p01
(bad). At age 1 the index is the belief. The myopic index is the belief at every age: A = omega,
D = 1, E = F = 0, and B as with rho >= 0.

Powers go from one step to the next by a product. What they are depends on nothing but when the
episode began, when the arm was seen and what time it is: so they can be made anew at any time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import Place, inlined, part, place
from restive.kernels.tables import (
    AGE,
    B_BAD,
    B_GOOD,
    CAP,
    E_BAD,
    GOOD,
    LOW,
    MYOPIC,
    POWER,
    RHO,
    RISE,
    SEEN_BAD,
    SPAN,
    STANDS,
    STAY,
    VALUED,
    A,
    Clouds,
    D,
    F,
    Following,
    Meta,
    Slots,
    Weights,
)
from restive.kernels.vectors import (
    LANES,
    Vector,
    lesser,
    load,
    minus,
    over,
    plus,
    store,
    times,
    where_equal,
)
from restive.kernels.world import top_lanes, top_many

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["choose_by_value", "follow_channels", "see_channel"]

TINY = 1e-200  # powers below it are 0: the smallest numbers are slow


@part
def follow_channels(slots: Slots, weights: Weights, clouds: Clouds, following: Following) -> None:
    """Let every arm, all of them channels, follow the particle that was drawn for it."""
    channels, count = following.channels, len(following.values)
    myopic = following.mode[VALUED] == MYOPIC
    for k in range(len(following.rank)):
        group = slots.groups[place(k)]
        rows, drawn = place(slots.row_counts[place(group)]), place(weights.drawn[place(group)])
        width = int(rows) * LANES
        home = clouds.chain_starts[place(clouds.homes[place(clouds.groups[place(group)])])]
        first = home + int(drawn % rows) * LANES + int(drawn // rows)
        good = int(channels[place(GOOD * count + k)])
        rise = clouds.chains[place(first + ((1 - good) * 2 + good) * width)]
        stay = clouds.chains[place(first + (good * 2 + good) * width)]
        rho = stay - rise
        settled = rise / (rise + (1.0 - stay))
        swings = rho < 0.0 and not myopic
        channels[place(RISE * count + k)] = rise
        channels[place(STAY * count + k)] = stay
        channels[place(RHO * count + k)] = rho
        channels[place(A * count + k)] = rise if swings else settled
        channels[place(B_GOOD * count + k)] = 1.0 - (stay if swings else settled)
        channels[place(B_BAD * count + k)] = -(rise if swings else settled)
        later = 1.0 - rho * stay if swings else 1.0 - stay + settled
        channels[place(D * count + k)] = 1.0 if myopic else later
        channels[place(E_BAD * count + k)] = 0.0 if swings or myopic else rise
        channels[place(F * count + k)] = 0.0 if myopic else (-1.0 if swings else 1.0)
        channels[place(CAP * count + k)] = 0.0 if swings else np.inf
    following.mode[STANDS] = -1  # so the next choice makes all that depends on what was seen


@inlined
def see_channel(following: Following, k: int, state: int) -> None:
    """Note that arm k was seen now: its age is 0."""
    channels = following.channels
    at, step = place(k), place(len(following.values))
    channels[at + place(POWER) * step] = 1.0
    channels[at + place(AGE) * step] = 0.0
    channels[at + place(SEEN_BAD) * step] = state != channels[at + place(GOOD) * step]


@inlined
def choose_by_value(
    following: Following, meta: Meta, began: int, t: int, available: BoolArray, masked: bool,
    chosen: IntArray, num_chosen: int,
) -> None:  # fmt: skip
    """Write the `num_chosen` channels of the largest indices; the lowest arm wins ties.

    `began` is the time at which the episode did.
    """
    channels, values = following.channels, following.values
    step, num_arms = place(len(values)), len(following.rank)
    _age(following, meta, began, t)
    if num_arms <= LANES and not masked:
        top_lanes(_indices(channels, place(0), step), num_arms, chosen, num_chosen)
        return
    for k in range(place(0), step, place(LANES)):
        store(values, k, _indices(channels, k, step))
    if masked:
        for k in range(num_arms):
            if not available[k]:
                values[k] = -np.inf
    top_many(values[:num_arms], chosen, num_chosen)


@inlined
def _indices(channels: FloatArray, k: Place, step: Place) -> Vector:
    """Indices of LANES channels, from number k on."""
    power, age = load(channels, place(POWER) * step + k), load(channels, place(AGE) * step + k)
    bad = load(channels, place(SEEN_BAD) * step + k)
    if_good = load(channels, place(B_GOOD) * step + k)
    b = where_equal(bad, 1.0, load(channels, place(B_BAD) * step + k), if_good)
    e = times(bad, load(channels, place(E_BAD) * step + k))
    x = times(minus(b, times(e, age)), power)
    x = lesser(x, load(channels, place(CAP) * step + k))
    below = plus(load(channels, place(D) * step + k), times(e, power))
    below = plus(below, times(load(channels, place(F) * step + k), x))
    later = over(plus(load(channels, place(A) * step + k), x), below)
    rise, stay = load(channels, place(RISE) * step + k), load(channels, place(STAY) * step + k)
    unit = where_equal(age, 1.0, where_equal(bad, 1.0, rise, stay), later)
    low, span = load(channels, place(LOW) * step + k), load(channels, place(SPAN) * step + k)
    return plus(low, times(span, unit))


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
    """Make the powers of all arms: by squaring up to the episode's beginning, then step by step.

    Bit by bit of the ages and arm by arm, so that there is nothing for the processor to guess.
    """
    channels, count, num_arms = following.channels, len(following.values), len(following.rank)
    power, age, rho, factors = POWER * count, AGE * count, RHO * count, following.values
    longest = 0
    for k in range(num_arms):
        see_channel(following, k, meta.last_state[place(k)])
        channels[place(age + k)] = t - meta.seen[place(k)]
        factors[place(k)] = channels[place(rho + k)]
        longest = max(longest, began - meta.seen[place(k)])
    bit = 0
    while longest >> bit > 0:
        for k in range(num_arms):
            steps = max(began - meta.seen[place(k)], 0)
            factor, p = factors[place(k)], channels[place(power + k)]
            channels[place(power + k)] = p * factor if (steps >> bit) & 1 else p
            factors[place(k)] = factor * factor
        bit += 1
    for k in range(num_arms):
        p = channels[place(power + k)]
        p = 0.0 if abs(p) < TINY else p
        for _ in range(max(began, meta.seen[place(k)]), t):
            p *= channels[place(rho + k)]
            p = 0.0 if abs(p) < TINY else p
        channels[place(power + k)] = p
