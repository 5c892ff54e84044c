"""Arms with continuous priors in the loop: what was seen is multiplied in and written down.

The particles themselves are renewed in Python (`restive.particles`), whenever at the beginning of
an episode those of an arm have lost too much of their worth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined, part, place
from restive.kernels.particles import LOST
from restive.kernels.tables import (
    CHANNEL,
    FAINT,
    FOLLOWED,
    GOOD,
    NUM_SIGHTINGS,
    RISE,
    RUNS,
    SIGHTING,
    STAY,
    Clouds,
    Following,
    Slots,
    Weights,
)
from restive.kernels.vectors import LANES
from restive.kernels.weights import add_up, own_home, revive, total_of

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "central_slot",
    "follow_channels",
    "forget_clouds",
    "has_cloud",
    "impossible_in_cloud",
    "is_spent",
    "must_count",
    "must_renew",
    "spent_arms",
    "take_central_slots",
    "take_in_cloud",
]


@part
def forget_clouds(clouds: Clouds) -> None:
    """Go back to the points that stand for the priors."""
    for cloud in range(len(clouds.homes)):
        clouds.homes[cloud] = clouds.first_homes[cloud]
        clouds.worths[cloud] = clouds.first_worths[cloud]
    clouds.now[NUM_SIGHTINGS] = 0
    clouds.now[RUNS] += 1


@inlined
def has_cloud(clouds: Clouds, k: int) -> bool:
    """Whether arm k has a continuous prior."""
    return len(clouds.arms) > 0 and clouds.arms[place(k)] >= 0


@inlined
def must_count(clouds: Clouds) -> bool:
    """Whether sightings must be counted so that there is room for those of another step."""
    used = (clouds.now[NUM_SIGHTINGS] + len(clouds.arms)) * SIGHTING
    return bool(used > len(clouds.sightings))


@part
def take_in_cloud(
    slots: Slots, weights: Weights, clouds: Clouds, k: int, last_state: int, age: int, seen: int
) -> None:
    """Learn that arm k, `age` steps after it was in `last_state`, was seen in `seen`."""
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    at = clouds.now[NUM_SIGHTINGS] * SIGHTING
    clouds.sightings[at] = k
    clouds.sightings[at + 1] = last_state
    clouds.sightings[at + 2] = age
    clouds.sightings[at + 3] = seen
    clouds.now[NUM_SIGHTINGS] += 1
    first = _write_chances(slots, clouds, k, width, last_state, age, seen)
    source = weights.homes[group]
    target = int(own_home(slots, weights, place(group)))
    numbers, chances = weights.numbers, clouds.room
    for j in range(width):
        numbers[place(target + j)] = numbers[place(source + j)] * chances[place(first + j)]
    add_up(slots, weights, group)
    weights.changed[group] = True
    total = total_of(slots, weights, group)
    if total < FAINT:
        revive(slots, weights, group, total)


@inlined
def _write_chances(
    slots: Slots, clouds: Clouds, k: int, width: int, last_state: int, age: int, seen: int
) -> int:
    """Write how likely each particle [width] makes a sighting; return where in `room` it begins."""
    cloud = clouds.arms[k]
    size = slots.sizes[k]
    if size == 2 and clouds.num_rows[cloud] == 2:
        _write_channel(clouds, clouds.homes[cloud], width, last_state, age, seen)
        return 0
    _write_beliefs(clouds, cloud, width, size, last_state, age)
    return seen * width


@inlined
def _write_channel(
    clouds: Clouds, home: int, width: int, last_state: int, age: int, seen: int
) -> None:
    """Two states and one matrix: the chance to be seen in the other is p (1 - rho^n) / (1 - rho).

    rho^n is made by squaring; 1 - rho is p01 + p10, and all particles do the same.
    """
    chains, room = clouds.chains, clouds.room
    up, down = home + width, home + 2 * width
    for j in range(width):
        room[place(j)] = 1.0
        room[place(width + j)] = 1.0 - (chains[place(up + j)] + chains[place(down + j)])
    steps = age
    while steps > 0:
        if steps & 1:
            for j in range(width):
                room[place(j)] *= room[place(width + j)]
        steps >>= 1
        if steps > 0:
            for j in range(width):
                room[place(width + j)] *= room[place(width + j)]
    leaving = up if last_state == 0 else down
    for j in range(width):
        both = chains[place(up + j)] + chains[place(down + j)]
        moved = chains[place(leaving + j)] * ((1.0 - room[place(j)]) / both)
        room[place(j)] = max(moved if seen != last_state else 1.0 - moved, 0.0)


@part
def _write_beliefs(
    clouds: Clouds, cloud: int, width: int, size: int, last_state: int, age: int
) -> None:
    """Write b(last_state, age) of all particles [size, width], by squaring.

    The room holds the row, a row to spare, the power of the matrix and its square.
    """
    chains, room = clouds.chains, clouds.room
    home = clouds.homes[cloud]
    passive = home + (clouds.num_rows[cloud] - size) * size * width
    row = size * width
    power, square = 2 * row, 2 * row + size * row
    for j in range(row):
        room[j] = chains[home + last_state * row + j]
    for j in range(size * row):
        room[power + j] = chains[passive + j]
    steps = age - 1
    while steps > 0:
        if steps & 1:
            for j in range(row):
                room[row + j] = room[j]
            _multiply(room, row, power, 0, width, size)
        steps >>= 1
        if steps > 0:
            for s in range(size):
                _multiply(room, power + s * row, power, square + s * row, width, size)
            for j in range(size * row):
                room[power + j] = room[square + j]


@part
def _multiply(room: FloatArray, row: int, matrix: int, result: int, width: int, size: int) -> None:
    """Write the products of rows [size, width] and matrices [size, size, width]."""
    for j in range(size):
        for m in range(width):
            room[place(result + j * width + m)] = 0.0
        for i in range(size):
            share, entry = row + i * width, matrix + (i * size + j) * width
            for m in range(width):
                room[place(result + j * width + m)] += (
                    room[place(share + m)] * room[place(entry + m)]
                )


@part
def must_renew(slots: Slots, weights: Weights, clouds: Clouds) -> bool:
    """Whether any arm's particles are worth less than a quarter of what they were."""
    for k in range(len(clouds.arms)):
        group = slots.groups[k]
        if clouds.arms[k] >= 0 and weights.changed[group] and is_spent(slots, weights, clouds, k):
            return True
    return False


@hot_kernel
def spent_arms(slots: Slots, weights: Weights, clouds: Clouds, spent: BoolArray) -> None:
    """Tell which arms' particles [K] must be renewed, for Python."""
    for k in range(len(clouds.arms)):
        group = slots.groups[k]
        spent[k] = (
            clouds.arms[k] >= 0 and weights.changed[group] and is_spent(slots, weights, clouds, k)
        )


@part
def is_spent(slots: Slots, weights: Weights, clouds: Clouds, k: int) -> bool:
    """Whether arm k's particles are worth less than a quarter of what they were."""
    group = slots.groups[k]
    home = weights.homes[group]
    total, squares = 0.0, 0.0
    for j in range(slots.row_counts[group] * LANES):
        weight = weights.numbers[place(home + j)]
        total += weight
        squares += weight * weight
    return bool(total * total < LOST * clouds.worths[clouds.arms[k]] * squares or squares == 0.0)


@part
def impossible_in_cloud(
    slots: Slots, weights: Weights, clouds: Clouds, k: int, last_state: int, age: int, seen: int
) -> bool:
    """Whether no particle that is left allows a sighting."""
    group = slots.groups[k]
    width = slots.row_counts[group] * LANES
    first = _write_chances(slots, clouds, k, width, last_state, age, seen)
    home = weights.homes[group]
    for j in range(width):
        if weights.numbers[home + j] > 0.0 and clouds.room[first + j] > 0.0:
            return False
    return True


@part
def follow_channels(
    slots: Slots, weights: Weights, clouds: Clouds, following: Following, t: int
) -> None:
    """Let every arm, all of them channels, follow the particle that was drawn for it."""
    for k in range(len(clouds.arms)):
        rows = slots.row_counts[k]
        width = rows * LANES
        drawn = weights.drawn[slots.groups[k]]
        home = clouds.homes[clouds.arms[k]] + (drawn % rows) * LANES + drawn // rows
        at = k * CHANNEL
        good = int(following.channels[at + GOOD])
        following.channels[at + RISE] = clouds.chains[home + ((1 - good) * 2 + good) * width]
        following.channels[at + STAY] = clouds.chains[home + (good * 2 + good) * width]
    following.mode[FOLLOWED] = t


@part
def take_central_slots(slots: Slots, weights: Weights, clouds: Clouds) -> None:
    """Take the central particle of every arm whose weights have changed."""
    for k in range(len(clouds.arms)):
        group = slots.groups[k]
        if clouds.arms[k] >= 0 and weights.changed[group]:
            weights.drawn[group] = central_slot(slots, weights, clouds, k)
            weights.changed[group] = False


@part
def central_slot(slots: Slots, weights: Weights, clouds: Clouds, k: int) -> int:
    """Slot of arm k's particle that is closest to their mean.

    A particle's weight says how much it stands for and not how likely it is, so the heaviest one
    means nothing.
    """
    group, cloud = slots.groups[k], clouds.arms[k]
    rows = slots.row_counts[group]
    width = rows * LANES
    home = weights.homes[group]
    for j in range(width):
        clouds.room[j] = 0.0
    for entry in range(clouds.num_rows[cloud] * slots.sizes[k]):
        first = clouds.homes[cloud] + entry * width
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
    return (best % LANES) * rows + best // LANES
