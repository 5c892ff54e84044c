"""When arms change: what is believed of those that have not been seen since.

A world has phases, and in each its arms are of other kinds. A step's rewards and the moves that
follow it are those of its phase. So an arm that was seen in state s at time t0 and not since has,
when a phase begins at time c, the belief b that it had: e_s P_active P_passive^(c - t0 - 1), with
the matrices of the phase before. At time c + n it has b Q^n, with the passive matrix Q of the new
phase, until it is seen or changes again. These beliefs are written into the arm's own room, from
its age at time c on, and its offsets are moved so that (last state, age) leads there: who pulls
does not notice. Once seen, it stands in its kind's table like any other.

An arm that is always seen has no belief: it takes its new kind's tables at once.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.loop.tables import cell_of
from restive.kernels.loop.world import WorldTables, become_kind, is_always_seen

__all__ = ["enter_phase"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BEYOND = 2.0  # a threshold that no random number reaches


@part
def enter_phase(
    world: WorldTables, phase: int, last_state: IntArray, seen: IntArray, t: int, until: int
) -> None:
    """Let the arms be those of a phase that lasts from time t to before `until`.

    What arms that are not pulled have paid must be settled up to t - 1.
    """
    changes = world.changes
    num_arms = len(seen)
    for k in range(num_arms):
        kind = changes.kinds[phase * num_arms + k]
        if is_always_seen(world, k):
            become_kind(world, k, kind)
        else:
            _carry(world, k, kind, last_state[k], t - seen[k], until - t)
            changes.next_kinds[k] = kind
    changes.since[0] = t


@part
def _carry(world: WorldTables, k: int, kind: int, last_state: int, age: int, steps: int) -> None:
    """Write the beliefs of arm k from its age now on, for so many steps and the one after them."""
    tables, changes, size = world.tables, world.changes, world.sizes[k]
    count = min(changes.rooms[k], steps + 1)  # the last is for the next phase
    begin, cell = changes.room_offsets[k], changes.room_mean_offsets[k]
    now = world.offsets[k] + cell_of(last_state, age, world.lengths[k]) * size
    for s in range(size):  # which may stand further on in the same room
        tables.beliefs[begin + s] = tables.beliefs[now + s]
    if len(tables.passive_means) > 0:
        tables.passive_totals[cell - 1] = 0.0
    for n in range(count):
        if n > 0:
            _move_on(
                tables.beliefs, begin + n * size, size, changes.moves, changes.move_offsets[kind]
            )
        _finish(world, kind, begin + n * size, cell + n)
    length = age + count - 1
    before = last_state * length + age - 1  # cells, had the room begun with age 1 of state 0
    world.offsets[k] = begin - before * size
    world.mean_offsets[k] = cell - before
    world.reward_offsets[k] = tables.reward_offsets[kind]
    world.lengths[k] = length


@part
def _move_on(beliefs: FloatArray, at: int, size: int, moves: FloatArray, row: int) -> None:
    """Write the belief at a place, one step after the one before it."""
    total = 0.0
    for s in range(size):
        chance = 0.0
        for r in range(size):
            chance += beliefs[at - size + r] * moves[row + r * size + s]
        beliefs[at + s] = chance
        total += chance
    for s in range(size):  # rounding never adds up over many steps
        beliefs[at + s] /= total


@part
def _finish(world: WorldTables, kind: int, at: int, cell: int) -> None:
    """Write what follows from the belief at a place of an arm of this kind."""
    tables, size, rewards = (
        world.tables,
        world.tables.sizes[kind],
        world.tables.reward_offsets[kind],
    )
    total, mean, last = 0.0, 0.0, 0
    for s in range(size):
        total += tables.beliefs[at + s]
        tables.thresholds[at + s] = total
        mean += tables.beliefs[at + s] * tables.rewards[rewards + s]
        if tables.beliefs[at + s] > 0.0:
            last = s
    for s in range(last, size):  # despite rounding
        tables.thresholds[at + s] = BEYOND
    tables.means[cell] = mean
    if len(tables.passive_means) > 0:
        passive = 0.0
        for s in range(size):
            passive += tables.beliefs[at + s] * world.changes.passive_rewards[rewards + s]
        tables.passive_means[cell] = passive
        tables.passive_totals[cell] = tables.passive_totals[cell - 1] + passive
