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
    CLOCK_SIZE,
    COUNT,
    DOUBLED,
    DOUBLING,
    DOUBLING_RULE,
    EPISODE,
    EPOCH,
    EPOCH_END,
    EPOCH_RULE,
    FIXED_LIMIT,
    FLOOR,
    FLOOR_STEP,
    HORIZON_KNOWN,
    LAST_LENGTH,
    LENGTH_RULE,
    LIMIT,
    NONE,
    REASON,
    STAMP,
    STAMPED,
    STARTED,
    TRUNCATION,
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


@part
def forget_episodes(episodes: Episodes) -> None:
    """Go back to time 1."""
    clock = episodes.clock
    stamped, floor = clock[STAMPED] + clock[EPISODE], clock[FLOOR]
    for i in range(CLOCK_SIZE):
        clock[i] = 0
    clock[STAMPED] = stamped
    clock[FLOOR] = floor
    clock[EPOCH] = -1  # none has begun
    clock[EPOCH_END] = 1


@inlined
def epoch_fits(episodes: Episodes) -> bool:
    """Whether there is room for the counters of the next epoch."""
    cells = episodes.size_starts[-1] * episodes.truncations[episodes.clock[EPOCH] + 1]
    return bool(cells * VISITS <= len(episodes.visits))


@inlined
def begin_epoch(episodes: Episodes, t: int) -> None:
    """Start Algorithm 1 anew, with the posterior and meta-state as they are."""
    clock = episodes.clock
    clock[EPOCH] += 1
    clock[TRUNCATION] = episodes.truncations[clock[EPOCH]]
    clock[EPOCH_END] = NEVER if episodes.rules[HORIZON_KNOWN] != 0 else 2 * t
    clock[FLOOR] += FLOOR_STEP
    if clock[FLOOR] > HIGHEST_FLOOR:
        _clear(episodes)
    clock[STARTED] = 0  # no episode of this epoch has begun


@inlined
def due(episodes: Episodes, t: int) -> int:
    """Why a new episode must begin at this time, NONE if none must."""
    clock = episodes.clock
    if clock[STARTED] == 0:
        return EPOCH_RULE
    if clock[DOUBLED] != 0:
        return DOUBLING_RULE
    if t > clock[STARTED] + clock[LIMIT]:
        return LENGTH_RULE
    return NONE


@inlined
def begin_episode(episodes: Episodes, t: int, reason: int) -> None:
    """Begin an episode; `reason` says why the last one ended."""
    clock = episodes.clock
    clock[LAST_LENGTH] = 0 if clock[STARTED] == 0 else t - clock[STARTED]
    clock[STARTED] = t
    clock[REASON] = reason if clock[EPISODE] > 0 else NONE
    clock[EPISODE] += 1
    clock[DOUBLED] = 0
    fixed = episodes.rules[FIXED_LIMIT]
    clock[LIMIT] = clock[LAST_LENGTH] if fixed < 0 else fixed


@inlined
def visit(episodes: Episodes, k: int, last_state: int, age: int) -> bool:
    """Count a visit of arm k's cell; tell whether its counter has more than doubled."""
    if episodes.rules[DOUBLING] == 0:
        return False
    clock, visits = episodes.clock, episodes.visits
    stamp = clock[STAMPED] + clock[EPISODE]
    truncation = clock[TRUNCATION]
    row = episodes.size_starts[place(k)] + last_state
    cell = cell_of(row, age, truncation) * VISITS
    # without branches, since the processor could not guess them
    floor = clock[FLOOR]
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
    episodes.clock[FLOOR] = FLOOR_STEP


@inlined
def note_visits(episodes: Episodes, doubled: bool) -> None:
    """Remember whether a counter has more than doubled in this step."""
    episodes.clock[DOUBLED] |= doubled & episodes.rules[DOUBLING]
