r"""Following channels by the closed forms of their indices: no tables, and exact at any age.

A two-state arm that moves alike pulled or not has, n steps after it was last seen, an index (A + x)
/ (D + E p + F x), where p = rho^n and x = min((B - E n) p, cap). B and E depend on the state in
which it was seen. `kernels.plan.gilbert_elliott` has the formulas they come from: with omega the
settled belief, rho >= 0 has A = omega, D = 1 - p11 + omega, F = 1, and

* seen good: B = 1 - omega, E = 0;
* seen bad:  B = -omega, E = p01;

and rho < 0 has A = p01, D = 1 - rho p11, E = 0, F = -1, cap = 0 and B = 1 - p11 (good) or -p01
(bad). At age 1 the index is the belief. The myopic index is the belief at every age: A = omega,
D = 1, E = F = 0, and B as with rho >= 0.

Powers go from one step to the next by a product. What they are depends on nothing but when the
episode began, when the arm was seen and what time it is: so they can be made anew at any time.

As soon as arms are chosen, the indices of the next step are made as if none of them were seen; an
arm that is seen gets the index of age 1, which is one of two numbers. So the processor divides
while it waits for what is seen, and not after.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import Place, inlined, part, place
from restive.kernels.jit.vectors import (
    LANES,
    Vector,
    everywhere,
    lesser,
    load,
    minus,
    over,
    plus,
    store,
    times,
    where_below,
    where_equal,
)
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.choosing import top_arms
from restive.kernels.loop.tables import (
    AGE,
    B_BAD,
    B_GOOD,
    CAP,
    E_BAD,
    FIRST_BAD,
    FIRST_GOOD,
    GOOD,
    LOW,
    MYOPIC,
    POWER,
    RHO,
    RISE,
    SEEN_BAD,
    SPAN,
    STAY,
    A,
    D,
    F,
    IndexLookup,
    Meta,
    Posterior,
)

FloatArray = NDArray[np.float64]

__all__ = ["choose_by_value", "follow_channels", "see_channel"]

TINY = 1e-200  # powers below it are 0: the smallest numbers are slow


@part
def follow_channels(posterior: Posterior, lookup: IndexLookup) -> None:
    """Let every arm, all of them channels, follow the particle that was drawn for it."""
    slots, weights, particles = posterior.slots, posterior.weights, posterior.particles
    channels, step = lookup.channels, place(len(lookup.values))
    for k in range(place(len(lookup.rank))):
        group = place(slots.groups[k])
        rows, drawn = place(slots.row_counts[group]), place(weights.drawn[group])
        width = rows * place(LANES)
        home = place(
            particles.chain_starts[place(particles.homes[place(particles.number_of[group])])]
        )
        first = home + drawn % rows * place(LANES) + drawn // rows
        good = place(channels[place(GOOD) * step + k])
        # of a matrix [2, 2], rise is at [1 - good, good] and stay at [good, good]
        channels[place(RISE) * step + k] = particles.chains[first + (place(2) - good) * width]
        channels[place(STAY) * step + k] = particles.chains[first + place(3) * good * width]
    myopic = lookup.mode[0].valued == MYOPIC
    for k in range(place(0), step, place(LANES)):
        _write_form(channels, k, step, myopic)
    lookup.mode[0].stands = -1  # so the next choice makes all that depends on what was seen


@inlined
def _write_form(channels: FloatArray, k: Place, step: Place, myopic: bool) -> None:
    """Write the forms of LANES channels' indices, from number k on."""
    none, one = everywhere(0.0), everywhere(1.0)
    below = -np.inf if myopic else 0.0  # channels swing where rho is below this
    whittle = everywhere(0.0 if myopic else 1.0)
    rise, stay = load(channels, place(RISE) * step + k), load(channels, place(STAY) * step + k)
    low, span = load(channels, place(LOW) * step + k), load(channels, place(SPAN) * step + k)
    rho = minus(stay, rise)
    leave = minus(one, stay)
    settled = over(rise, plus(rise, leave))
    later = one if myopic else plus(leave, settled)
    store(channels, place(RHO) * step + k, rho)
    store(channels, place(FIRST_BAD) * step + k, plus(low, times(span, rise)))
    store(channels, place(FIRST_GOOD) * step + k, plus(low, times(span, stay)))
    limit = where_below(rho, below, rise, settled)
    store(channels, place(A) * step + k, limit)
    store(channels, place(B_BAD) * step + k, minus(none, limit))
    store(channels, place(B_GOOD) * step + k, minus(one, where_below(rho, below, stay, settled)))
    swinging = minus(one, times(rho, stay))
    store(channels, place(D) * step + k, where_below(rho, below, swinging, later))
    steady = times(rise, whittle)
    store(channels, place(E_BAD) * step + k, where_below(rho, below, none, steady))
    signs = where_below(rho, below, everywhere(-1.0), whittle)
    store(channels, place(F) * step + k, signs)
    store(channels, place(CAP) * step + k, where_below(rho, below, none, everywhere(np.inf)))


@inlined
def see_channel(lookup: IndexLookup, k: int, state: int) -> None:
    """Note that arm k was seen now: in the next step, for which the values stand, its age is 1."""
    channels = lookup.channels
    at, step = place(k), place(len(lookup.values))
    good = state == channels[at + place(GOOD) * step]
    rho = channels[at + place(RHO) * step]
    channels[at + place(POWER) * step] = 0.0 if abs(rho) < TINY else rho
    channels[at + place(AGE) * step] = 1.0
    channels[at + place(SEEN_BAD) * step] = not good
    first = place(FIRST_GOOD if good else FIRST_BAD)
    lookup.values[at] = channels[at + first * step]


@inlined
def choose_by_value(actor: Actor, t: int, count: int) -> None:
    """Write the `count` channels of the largest indices; the lowest arm wins ties.

    Afterwards the values and powers stand for the next time, t + 1, as if nothing were seen now:
    `see_channel` does the rest.
    """
    lookup = actor.lookup
    values, num_arms = lookup.values, len(lookup.rank)
    if lookup.mode[0].stands != t:
        _age_anew(lookup, actor.meta, actor.episodes.clock[0].started, t)
        _write_indices(lookup)
    if actor.role[0].masked != 0:
        for k in range(num_arms):
            if not actor.available[k]:
                values[k] = -np.inf
    top_arms(values[:num_arms], actor.chosen, count)
    _age(lookup)
    _write_indices(lookup)
    lookup.mode[0].stands = t + 1


@inlined
def _write_indices(lookup: IndexLookup) -> None:
    step = place(len(lookup.values))
    for k in range(place(0), step, place(LANES)):
        store(lookup.values, k, _indices(lookup.channels, k, step))


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
    low, span = load(channels, place(LOW) * step + k), load(channels, place(SPAN) * step + k)
    first_good = load(channels, place(FIRST_GOOD) * step + k)
    first = where_equal(bad, 1.0, load(channels, place(FIRST_BAD) * step + k), first_good)
    return where_equal(age, 1.0, first, plus(low, times(span, later)))


@inlined
def _age(lookup: IndexLookup) -> None:
    """Let a step pass in which no arm is seen."""
    channels, count = lookup.channels, len(lookup.values)
    power, age, rho = POWER * count, AGE * count, RHO * count
    for k in range(count):
        p = channels[place(power + k)] * channels[place(rho + k)]
        channels[place(power + k)] = 0.0 if abs(p) < TINY else p
        channels[place(age + k)] += 1.0


@part
def _age_anew(lookup: IndexLookup, meta: Meta, began: int, t: int) -> None:
    """Make the powers of all arms: by squaring up to when the episode began, then step by step.

    Bit by bit of the ages and arm by arm, so that there is nothing for the processor to guess.
    """
    channels, count, num_arms = lookup.channels, len(lookup.values), len(lookup.rank)
    power, age, rho, factors = POWER * count, AGE * count, RHO * count, lookup.values
    longest = 0
    for k in range(num_arms):
        bad = meta.last_state[place(k)] != channels[place(GOOD * count + k)]
        channels[place(SEEN_BAD * count + k)] = bad
        channels[place(power + k)] = 1.0
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
