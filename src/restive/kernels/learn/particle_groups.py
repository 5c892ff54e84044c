"""Arms with continuous priors in the loop: their likelihoods are made as they are needed.

Weights of particles are multiplied and drawn from as those of candidates are (`kernels.weights`).
What is different: likelihoods are filled in age by age; what was seen is written down, to be
counted; and where particles have lost too much of their worth at the beginning of an episode, they
are renewed (`renewals`), or the loop returns, for Python to do it (`restive.learn.particles`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.calls import call_at
from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.jit.vectors import LANES, load, plus, store, times
from restive.kernels.learn.particles import DENSE, LOST
from restive.kernels.learn.weights import sum_of_squares, total_of
from restive.kernels.loop.tables import (
    NUM_SIGHTINGS,
    RUNS,
    SIGHTING,
    Clouds,
    Slots,
    Weights,
    cell_of,
)

FloatArray = NDArray[np.float64]

__all__ = [
    "central_slot",
    "forget_clouds",
    "has_cloud",
    "impossible_in_cloud",
    "is_spent",
    "must_count",
    "must_renew",
    "prepare_sighting",
    "require_likelihoods",
    "take_central_slots",
]


@part
def forget_clouds(slots: Slots, clouds: Clouds) -> None:
    """Go back to the points that stand for the priors."""
    for cloud in range(len(clouds.homes)):
        clouds.homes[cloud] = clouds.first_homes[cloud]
        clouds.worths[cloud] = clouds.first_worths[cloud]
        clouds.firsts[cloud] = -1
        clouds.ready[cloud] = 0
    for k in range(len(slots.groups)):
        if has_cloud(clouds, slots.groups[k]):
            cloud = clouds.groups[slots.groups[k]]
            slots.offsets[k] = clouds.row_starts[clouds.homes[cloud]]
    clouds.now[NUM_SIGHTINGS] = 0
    clouds.now[RUNS] += 1


@inlined
def has_cloud(clouds: Clouds, group: int) -> bool:
    """Whether a group has a continuous prior."""
    return len(clouds.groups) > 0 and clouds.groups[place(group)] >= 0


@inlined
def must_count(slots: Slots, clouds: Clouds) -> bool:
    """Whether sightings must be counted so that there is room for those of another step."""
    used = (clouds.now[NUM_SIGHTINGS] + len(slots.groups)) * SIGHTING
    return len(clouds.groups) > 0 and bool(used > len(clouds.sightings))


@inlined
def prepare_sighting(
    slots: Slots, clouds: Clouds, k: int, last_state: int, age: int, seen: int
) -> bool:
    """Count that arm k was seen `age` steps after it was, and see to the likelihoods of that age.

    Tells whether they are not kept: the sighting must then be multiplied as soon as it is taken in.
    """
    cloud = clouds.groups[place(slots.groups[place(k)])]
    if age <= clouds.ready[place(cloud)]:
        _count(clouds, cloud, last_state, age, seen)
        return False
    return _prepare_unready(slots, clouds, k, cloud, last_state, age, seen)


@inlined
def _count(clouds: Clouds, cloud: int, last_state: int, age: int, seen: int) -> None:
    own = place(cloud)
    size = clouds.sizes[own]
    cell = ((age - 1) * size + last_state) * size + seen
    clouds.cells[place(clouds.cell_starts[own] + cell)] += 1.0


@part
def _prepare_unready(
    slots: Slots, clouds: Clouds, k: int, cloud: int, last_state: int, age: int, seen: int
) -> bool:
    """Do so where something may be missing; what cannot be counted yet is written down."""
    begun = clouds.begun[cloud] == clouds.now[RUNS]
    if begun and age <= DENSE:
        _count(clouds, cloud, last_state, age, seen)
    else:
        _write_down(clouds, cloud, last_state, age, seen)
    filled, home = clouds.filled, clouds.homes[cloud]
    if age > filled[home]:
        require_likelihoods(slots, clouds, k, last_state, age)
    clouds.ready[cloud] = min(filled[home], DENSE) if begun else 0
    return bool(age >= slots.lengths[k])


@inlined
def _write_down(clouds: Clouds, cloud: int, last_state: int, age: int, seen: int) -> None:
    number, own = clouds.now[NUM_SIGHTINGS], place(cloud)
    at = place(number * SIGHTING)
    clouds.sightings[at] = -1
    clouds.sightings[at + place(1)] = last_state
    clouds.sightings[at + place(2)] = age
    clouds.sightings[at + place(3)] = seen
    clouds.now[NUM_SIGHTINGS] = number + 1
    if clouds.firsts[own] < 0:
        clouds.firsts[own] = number
    else:
        clouds.sightings[place(clouds.lasts[own] * SIGHTING)] = number
    clouds.lasts[own] = number


@part
def require_likelihoods(slots: Slots, clouds: Clouds, k: int, last_state: int, age: int) -> None:
    """See to it that the likelihoods of arm k at an age are there.

    Those of ages that are not kept take turns on the last place, on which nothing waits
    (`prepare_sighting`).
    """
    home = clouds.homes[clouds.groups[slots.groups[k]]]
    if age >= slots.lengths[k]:
        _write_old(slots, clouds, k, home, last_state, age)
    else:
        while clouds.filled[home] < age:
            _fill_next(slots, clouds, k, home)


@part
def _fill_next(slots: Slots, clouds: Clouds, k: int, home: int) -> None:
    """Write the likelihoods of arm k's particles at the next age: b(s, n) = b(s, n - 1) P."""
    size, length = slots.sizes[k], slots.lengths[k]
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    row = size * width
    chains, likelihoods = clouds.chain_starts[home], slots.likelihoods
    n = clouds.filled[home]
    passive = chains + (clouds.num_rows[clouds.groups[group]] - size) * row
    for s in range(size):
        target = clouds.row_starts[home] + (s * length + n) * row
        if n == 0:
            for j in range(row):
                likelihoods[place(target + j)] = clouds.chains[place(chains + s * row + j)]
        else:
            _multiply(
                likelihoods, target - row, clouds.chains, passive, likelihoods, target, size, width
            )
    clouds.filled[home] = n + 1


@inlined
def _multiply(
    rows: FloatArray, row: int, matrices: FloatArray, matrix: int, results: FloatArray, result: int,
    size: int, width: int,
) -> None:  # fmt: skip
    """Write the products of rows [size, width] and matrices [size, size, width]."""
    for j in range(size):
        for m in range(0, width, LANES):
            product = times(
                load(rows, place(row + m)), load(matrices, place(matrix + j * width + m))
            )
            for i in range(1, size):
                entry = matrix + (i * size + j) * width + m
                share = load(rows, place(row + i * width + m))
                product = plus(product, times(share, load(matrices, place(entry))))
            store(results, place(result + j * width + m), product)


@part
def _write_old(slots: Slots, clouds: Clouds, k: int, home: int, last_state: int, age: int) -> None:
    """Write the likelihoods of arm k's particles at an age that is not kept."""
    group = slots.groups[k]
    cloud, size = clouds.groups[group], slots.sizes[k]
    width = slots.row_counts[group] * LANES
    target = clouds.row_starts[home] + ((last_state + 1) * slots.lengths[k] - 1) * size * width
    chains = clouds.chain_starts[home]
    if size == 2 and clouds.num_rows[cloud] == 2:
        _write_channel(slots, clouds, chains, target, width, last_state, age)
    else:
        passive = chains + (clouds.num_rows[cloud] - size) * size * width
        _write_beliefs(clouds, chains, passive, width, size, last_state, age)
        for j in range(size * width):
            slots.likelihoods[target + j] = clouds.room[j]


@inlined
def _write_channel(
    slots: Slots, clouds: Clouds, chains: int, target: int, width: int, last_state: int, age: int
) -> None:
    """Two states and one matrix: the chance to be in the other is p (1 - rho^n) / (1 - rho).

    rho^n is made by squaring; 1 - rho is p01 + p10, and all particles do the same.
    """
    numbers, power = clouds.chains, clouds.room
    up, down = chains + width, chains + 2 * width
    for j in range(width):
        power[place(j)] = 1.0
        power[place(width + j)] = 1.0 - (numbers[place(up + j)] + numbers[place(down + j)])
    steps = age
    while steps > 0:
        if steps & 1:
            for j in range(width):
                power[place(j)] *= power[place(width + j)]
        steps >>= 1
        for j in range(width):
            power[place(width + j)] *= power[place(width + j)]
    leaving = up if last_state == 0 else down
    stayed, left = target + last_state * width, target + (1 - last_state) * width
    for j in range(width):
        both = numbers[place(up + j)] + numbers[place(down + j)]
        moved = min(numbers[place(leaving + j)] * ((1.0 - power[place(j)]) / both), 1.0)
        slots.likelihoods[place(left + j)] = moved
        slots.likelihoods[place(stayed + j)] = 1.0 - moved


@part
def _write_beliefs(
    clouds: Clouds, chains: int, passive: int, width: int, size: int, last_state: int, age: int
) -> None:
    """Write b(last_state, age) of all particles [size, width] to `room`, by squaring.

    The room holds the row, a row to spare, the power of the matrix and its square.
    """
    room = clouds.room
    row = size * width
    power, square = 2 * row, 2 * row + size * row
    for j in range(row):
        room[j] = clouds.chains[chains + last_state * row + j]
    for j in range(size * row):
        room[power + j] = clouds.chains[passive + j]
    steps = age - 1
    while steps > 0:
        if steps & 1:
            for j in range(row):
                room[row + j] = room[j]
            _multiply(room, row, room, power, room, 0, size, width)
        steps >>= 1
        if steps > 0:
            for s in range(size):
                _multiply(room, power + s * row, room, power, room, square + s * row, size, width)
            for j in range(size * row):
                room[power + j] = room[square + j]


@part
def must_renew(slots: Slots, weights: Weights, clouds: Clouds) -> bool:
    """Renew particles that are worth less than a quarter of what they were; whether Python must."""
    spent = False
    for group in range(len(clouds.groups)):
        spent |= is_spent(slots, weights, clouds, group)
    if spent and clouds.renewer[0] != 0:
        return bool(call_at(clouds.renewer[0], clouds.where))
    return spent


@inlined
def is_spent(slots: Slots, weights: Weights, clouds: Clouds, group: int) -> bool:
    """Whether a group's particles are worth less than a quarter of what they were."""
    if not (has_cloud(clouds, group) and weights.changed[group]):
        return False
    total = total_of(slots, weights, group)
    squares = sum_of_squares(slots, weights, group)
    return bool(total * total < LOST * clouds.worths[clouds.groups[group]] * squares)


@part
def impossible_in_cloud(
    slots: Slots, weights: Weights, clouds: Clouds, k: int, last_state: int, age: int, seen: int
) -> bool:
    """Whether no particle that is left allows a sighting."""
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    require_likelihoods(slots, clouds, k, last_state, age)
    cell = cell_of(last_state, age, slots.lengths[k])
    first = slots.offsets[k] + (cell * slots.sizes[k] + seen) * width
    home = weights.homes[group]
    for j in range(width):
        if weights.numbers[home + j] > 0.0 and slots.likelihoods[first + j] > 0.0:
            return False
    return True


@part
def take_central_slots(slots: Slots, weights: Weights, clouds: Clouds) -> None:
    """Take the central particle of every group whose weights have changed."""
    for group in range(len(clouds.groups)):
        if has_cloud(clouds, group) and weights.changed[group]:
            weights.drawn[group] = central_slot(slots, weights, clouds, group)
            weights.changed[group] = False


@part
def central_slot(slots: Slots, weights: Weights, clouds: Clouds, group: int) -> int:
    """Slot of a group's particle that is closest to their mean.

    A particle's weight says how much it stands for and not how likely it is, so the heaviest one
    means nothing.
    """
    cloud = clouds.groups[group]
    rows = slots.row_counts[group]
    width = rows * LANES
    home = weights.homes[group]
    chains = clouds.chain_starts[clouds.homes[cloud]]
    for j in range(width):
        clouds.room[j] = 0.0
    for entry in range(clouds.num_rows[cloud] * clouds.sizes[cloud]):
        first = chains + entry * width
        total, mean = 0.0, 0.0
        for j in range(width):
            total += weights.numbers[home + j]
            mean += weights.numbers[home + j] * clouds.chains[first + j]
        for j in range(width):
            apart = clouds.chains[first + j] - mean / total
            clouds.room[j] += apart * apart
    best, least = 0, np.inf
    for j in range(width):
        if weights.numbers[home + j] > 0.0 and clouds.room[j] < least:
            best, least = j, clouds.room[j]
    return int((best % LANES) * rows + best // LANES)
