"""Acting in the world: what is seen of the arms pulled, and what others pay.

Only what is seen is drawn: the meta-state (sigma, n) is Markov by itself, so the state of a pulled
arm is drawn from its belief b(sigma, n), and the others are left alone. The law of everything seen
is that of K chains that move every step. For whoever wants to look behind the scenes, `HiddenArms`
are these K chains; the law of what is seen is the same, the luck is another.

Times: an arm last seen at time `seen` has age t - seen at time t; the first step is t = 1, so an
arm of age n at the start was seen at 1 - n.

An arm that is always seen is drawn in every step, pulled or not, from where its state now leads,
and is paid for that state; its `seen` is always the last step, so nothing is left to settle.

An arm is left alone from one pull to the next, so what it pays meanwhile, in the mean, depends only
on the state it was seen in and on the ages it goes through. A table has the sums over ages, so that
a pull settles all steps since the last one at once, and a look at the totals settles the rest.

Where arms change, an arm that has not been seen since then has beliefs of its own
(`kernels.loop.changes`) and what it paid before is settled already.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part, place
from restive.kernels.loop.tables import NOT_PULLED, BeliefTables, cell_of
from restive.kernels.random import uniform_at

__all__ = [
    "OF_ARMS",
    "Changes",
    "HiddenArms",
    "WorldTables",
    "become",
    "become_kind",
    "draw_first",
    "is_always_seen",
    "paid_by_all",
    "paid_by_others",
    "paid_until_pulled",
    "pay_and_move",
    "pull",
    "pull_arms",
    "see_changed",
    "see_others",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class Changes(NamedTuple):
    """How the arms of a world change: empty, but for `since`, where they do not.

    The first phase is not among the P that are told here. The tables of beliefs have room for each
    arm behind those of all kinds.
    """

    begins: IntArray  # [P] the first step of each phase
    kinds: IntArray  # [P * K] of its arms
    moves: FloatArray  # passive matrices by kind
    move_offsets: IntArray  # [kinds]
    passive_rewards: FloatArray  # by kind, as the rewards are; empty if nobody pays
    rooms: IntArray  # [K] beliefs for which an arm has room
    room_offsets: IntArray  # [K] where it begins
    room_mean_offsets: IntArray  # [K]
    next_kinds: IntArray  # [K] what the arm is once it is seen, -1 if it is that already
    since: IntArray  # [1] first step that is not settled of arms that were seen before it


class WorldTables(NamedTuple):
    """The true arms: tables by kind, and for each arm where it stands in them."""

    tables: BeliefTables
    offsets: IntArray  # [K] of its beliefs
    mean_offsets: IntArray  # [K]
    reward_offsets: IntArray  # [K]
    sizes: IntArray  # [K] numbers of states
    lengths: IntArray  # [K] numbers of ages
    always: IntArray  # [K] whether it is always seen; empty if none is
    hidden: IntArray  # [K] states that the arms are in, where these are simulated, else empty
    changes: Changes


OF_ARMS = ("offsets", "mean_offsets", "reward_offsets", "sizes", "lengths")  # where they stand


@part
def become(world: WorldTables, kinds: IntArray, first: int) -> None:
    """Let the arms be of the kinds that stand from place `first` on."""
    for k in range(len(world.sizes)):
        become_kind(world, k, kinds[first + k])
    for k in range(len(world.changes.next_kinds)):
        world.changes.next_kinds[k] = -1
    world.changes.since[0] = 1


@inlined
def become_kind(world: WorldTables, k: int, kind: int) -> None:
    """Let arm k be of a kind."""
    tables = world.tables
    world.offsets[k] = tables.offsets[kind]
    world.mean_offsets[k] = tables.mean_offsets[kind]
    world.reward_offsets[k] = tables.reward_offsets[kind]
    world.sizes[k] = tables.sizes[kind]
    world.lengths[k] = tables.lengths[kind]
    if len(world.always) > 0:
        world.always[k] = tables.always[kind]


@part
def see_changed(world: WorldTables, k: int) -> None:
    """Let arm k, which was just seen, have the beliefs of its kind from now on."""
    kind = world.changes.next_kinds[k]
    if kind >= 0:
        become_kind(world, k, kind)
        world.changes.next_kinds[k] = -1


@inlined
def _state_at(thresholds: FloatArray, begin: int, size: int, u: float) -> int:
    """State that u draws: the number of thresholds, of those from place `begin` on, at most u."""
    state = 0
    for s in range(size - 1):
        state += thresholds[place(begin + s)] <= u
    return state


@inlined
def pull(
    world: WorldTables, k: int, t: int, last_state: int, age: int, key: np.uint64
) -> tuple[int, float]:
    """State in which arm k is seen at time t, and the reward that was to be expected."""
    at = place(k)
    cell = cell_of(last_state, age, world.lengths[at])
    size = world.sizes[at]
    u = uniform_at(key, t * len(world.sizes) + k)
    state = _state_at(world.tables.thresholds, world.offsets[at] + cell * size, size, u)
    return state, world.tables.means[place(world.mean_offsets[at] + cell)]


@inlined
def is_always_seen(world: WorldTables, k: int) -> bool:
    """Whether arm k is seen even if it is not pulled."""
    return len(world.always) > 0 and world.always[place(k)] != 0


@hot_kernel
def pull_arms(
    world: WorldTables, t: int, last_state: IntArray, seen: IntArray, key: np.uint64,
    pulled: IntArray, states: IntArray,
) -> tuple[float, float]:  # fmt: skip
    """Pull arms at time t: write their states, return the rewards earned and expected.

    The states are those of the world where all arms' states are simulated, else drawn.
    """
    earned, expected = 0.0, 0.0
    for i in range(len(pulled)):
        k = pulled[i]
        state, mean = pull(world, k, t, last_state[k], t - seen[k], key)
        if is_always_seen(world, k):
            earned += mean
        else:
            if len(world.hidden) > 0:
                state = world.hidden[k]
            earned += world.tables.rewards[world.reward_offsets[k] + state]
        expected += mean
        states[i] = state
    for i in range(len(pulled)):
        last_state[pulled[i]] = states[i]
        seen[pulled[i]] = t
    return earned, expected


@hot_kernel
def see_others(
    world: WorldTables, t: int, last_state: IntArray, seen: IntArray, key: np.uint64
) -> float:
    """Move the arms that are always seen and were not pulled at time t; return what they paid."""
    paid = 0.0
    for k in range(len(world.always)):
        if world.always[k] != 0 and seen[k] < t:
            state, mean = pull(world, k, t, last_state[k], NOT_PULLED, key)
            last_state[k] = state
            seen[k] = t
            paid += mean
    return paid


@inlined
def _paid(world: WorldTables, k: int, last_state: int, seen: int, until: int) -> float:
    """What arm k pays in the steps after time `seen` that are not settled, `until` the last."""
    first, last = max(1, world.changes.since[0] - seen), until - seen  # ages
    if last < first:
        return 0.0
    length = world.lengths[k]
    settled = world.mean_offsets[k] + cell_of(last_state, length, length)
    beyond = last - max(first - 1, length)  # steps in which the belief has settled
    total: float = max(0, beyond) * world.tables.passive_means[settled]
    if first <= length:
        begin = world.mean_offsets[k] + cell_of(last_state, 1, length)
        total += world.tables.passive_totals[begin + min(last, length) - 1]
        if first > 1:
            total -= world.tables.passive_totals[begin + first - 2]
    return total


@part
def paid_until_pulled(
    world: WorldTables, last_state: IntArray, seen: IntArray, pulled: IntArray, t: int
) -> float:
    """What the arms that are pulled at time t have paid since each was last seen."""
    total = 0.0
    for i in range(len(pulled)):
        k = pulled[i]
        total += _paid(world, k, last_state[k], seen[k], t - 1)
    return total


@part
def paid_by_all(world: WorldTables, last_state: IntArray, seen: IntArray, t: int) -> float:
    """What all arms have paid since each was last seen, up to time t."""
    total = 0.0
    for k in range(len(seen)):
        total += _paid(world, k, last_state[k], seen[k], t)
    return total


@hot_kernel
def paid_by_others(world: WorldTables, last_state: IntArray, seen: IntArray, t: int) -> float:
    """What the arms that were not seen at time t pay in this step."""
    total = 0.0
    for k in range(len(seen)):
        if seen[k] < t:
            cell = cell_of(last_state[k], t - seen[k], world.lengths[k])
            total += world.tables.passive_means[world.mean_offsets[k] + cell]
    return total


class HiddenArms(NamedTuple):
    """Where all arms are, and how they move: thresholds and rewards by kind."""

    states: IntArray  # [K]
    moves: FloatArray  # thresholds of the rows of the active, then of the passive matrix
    move_offsets: IntArray  # [K]
    passive_rewards: FloatArray


@hot_kernel
def draw_first(
    hidden: HiddenArms, world: WorldTables, last_state: IntArray, seen: IntArray, key: np.uint64
) -> None:
    """Draw where all arms are at time 1."""
    for k in range(len(hidden.states)):
        cell = cell_of(last_state[k], 1 - seen[k], world.lengths[k])
        begin = world.offsets[k] + cell * world.sizes[k]
        u = uniform_at(key, k)
        hidden.states[k] = _state_at(world.tables.thresholds, begin, world.sizes[k], u)
        if is_always_seen(world, k):
            hidden.states[k] = last_state[k]


@hot_kernel
def pay_and_move(
    hidden: HiddenArms, world: WorldTables, last_state: IntArray, seen: IntArray, t: int,
    key: np.uint64,
) -> float:  # fmt: skip
    """Move all arms on from time t; return what those paid that were not seen then.

    Those that are always seen have moved already.
    """
    paid = 0.0
    num_arms = len(hidden.states)
    for k in range(num_arms):
        if is_always_seen(world, k):
            hidden.states[k] = last_state[k]
            continue
        row, size = hidden.states[k], world.sizes[k]
        if seen[k] < t:
            paid += hidden.passive_rewards[world.reward_offsets[k] + row]
            row += size
        begin = hidden.move_offsets[k] + row * size
        u = uniform_at(key, t * num_arms + k)
        hidden.states[k] = _state_at(hidden.moves, begin, size, u)
    return paid
