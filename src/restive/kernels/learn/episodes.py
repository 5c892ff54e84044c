"""Dynamic episodes (Section 3): when one ends, and nothing of what is drawn or believed in it.

Readings of Section 3. Rule 1 ends episode i at t > t_i + T_(i-1), with T_0 = 0. Rule 2 ends it when
a counter has more than doubled since t_i: a first visit does, and only a counter that was visited
in the last step can. So each counter carries a stamp, the episode in which it was last visited, and
its value when that episode began. Ages of at least T^mix share a counter; beliefs, likelihoods and
policies use the true age.

Counters are never set back, not even when a run or an epoch begins: they go on from a higher floor,
and what is below it counts as the floor. So memory that was never visited is never touched.
"""

from __future__ import annotations

import numpy as np

from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.loop.tables import (
    BASE,
    COUNT,
    DOUBLING_RULE,
    EPOCH_RULE,
    FLOOR_STEP,
    LENGTH_RULE,
    NONE,
    STAMP,
    VISITS,
    Episodes,
    cell_of,
)

__all__ = [
    "begin_episode",
    "begin_epoch",
    "due",
    "epoch_fits",
    "forget_episodes",
    "note_visits",
    "visit",
]

NEVER = np.iinfo(np.int64).max
HIGHEST_FLOOR = 1 << 62
FIRST_KINDS = 4  # time at which laws of kinds are first estimated


@part
def forget_episodes(episodes: Episodes) -> None:
    """Go back to time 1."""
    clock = episodes.clock[0]
    clock.stamped += clock.episode
    clock.episode = 0
    clock.started = 0
    clock.last_length = 0
    clock.limit = 0
    clock.doubled = 0
    clock.reason = NONE
    clock.epoch = -1  # none has begun
    clock.epoch_end = 1
    clock.truncation = 0
    clock.draws = 0
    clock.kinds_due = FIRST_KINDS if episodes.rules[0].learn_kinds != 0 else NEVER
    clock.kinds_learnt = 0
    steps = episodes.rules[0].fading_steps
    clock.fading_due = 1 + steps if steps > 0 else NEVER


@inlined
def epoch_fits(episodes: Episodes) -> bool:
    """Whether there is room for the counters of the next epoch."""
    cells = episodes.size_starts[-1] * episodes.truncations[episodes.clock[0].epoch + 1]
    return bool(cells * VISITS <= len(episodes.visits))


@inlined
def begin_epoch(episodes: Episodes, t: int) -> None:
    """Start Algorithm 1 anew, with the posterior and meta-state as they are."""
    clock = episodes.clock[0]
    clock.epoch += 1
    clock.truncation = episodes.truncations[clock.epoch]
    clock.epoch_end = NEVER if episodes.rules[0].horizon_known != 0 else 2 * t
    clock.floor += FLOOR_STEP
    if clock.floor > HIGHEST_FLOOR:
        _clear(episodes)
    clock.started = 0  # no episode of this epoch has begun


@inlined
def due(episodes: Episodes, t: int) -> int:
    """Why a new episode must begin at this time, NONE if none must."""
    clock = episodes.clock[0]
    if clock.started == 0:
        return EPOCH_RULE
    if clock.doubled != 0:
        return DOUBLING_RULE
    if t > clock.started + clock.limit:
        return LENGTH_RULE
    return NONE


@inlined
def begin_episode(episodes: Episodes, t: int, reason: int) -> None:
    """Begin an episode; `reason` says why the last one ended."""
    clock = episodes.clock[0]
    clock.last_length = 0 if clock.started == 0 else t - clock.started
    clock.started = t
    clock.reason = reason if clock.episode > 0 else NONE
    clock.episode += 1
    clock.doubled = 0
    fixed = episodes.rules[0].fixed_limit
    clock.limit = min(clock.last_length if fixed < 0 else fixed, episodes.rules[0].longest)


@inlined
def visit(episodes: Episodes, k: int, last_state: int, age: int) -> bool:
    """Count a visit of arm k's cell; tell whether its counter has more than doubled."""
    if episodes.rules[0].doubling == 0:
        return False
    clock, visits = episodes.clock[0], episodes.visits
    stamp = clock.stamped + clock.episode
    truncation = clock.truncation
    row = episodes.size_starts[place(k)] + last_state
    cell = cell_of(row, age, truncation) * VISITS
    # without branches, since the processor could not guess them
    floor = clock.floor
    count = max(visits[place(cell + COUNT)], floor)
    fresh = visits[place(cell + STAMP)] != stamp
    # counts only grow, so this is the count where the cell is fresh; written as a choice between
    # the two, the compiler would jump over the load of the one that is not needed
    base = max(visits[place(cell + BASE)], count * fresh)
    visits[place(cell + STAMP)] = stamp
    visits[place(cell + BASE)] = base
    visits[place(cell + COUNT)] = count + 1
    return bool(count + 1 - floor > 2 * (base - floor))


@part
def _clear(episodes: Episodes) -> None:
    """Begin again with the lowest floor; apart, since it is very rare."""
    for i in range(len(episodes.visits)):
        episodes.visits[i] = 0
    episodes.clock[0].floor = FLOOR_STEP


@inlined
def note_visits(episodes: Episodes, doubled: bool) -> None:
    """Remember whether a counter has more than doubled in this step."""
    episodes.clock[0].doubled |= doubled & episodes.rules[0].doubling
