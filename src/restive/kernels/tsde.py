"""Thompson sampling with dynamic episodes (Algorithm 1), written once.

The online agent calls these functions a step at a time, the engine calls them in a loop. One step
at time t is: `due` (must a new episode begin?), `begin_episode`, `choose`, then `take_in` what was
seen. `LearnerState.rules` turns it into its relatives: other ends of episodes, the posterior's mode
instead of a draw from it, random pulls now and then.

Readings of Section 3. Rule 1 ends episode i at t > t_i + T_(i-1), with T_0 = 0. Rule 2 ends it when
a counter has more than doubled since t_i: a first visit does, and only a counter that was visited
in the last step can. So each counter carries a stamp, the episode in which it was last visited, and
its value when that episode began. Ages of at least T^mix share a counter; beliefs, likelihoods and
policies use the true age. What was seen waits and is multiplied into the posterior
(`kernels.posterior`) when an episode begins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined, place
from restive.kernels.posterior import (
    add_up,
    draw_candidate,
    likeliest_candidate,
    multiply_pending,
    multiply_row,
    rescale,
)
from restive.kernels.random import uniform_at
from restive.kernels.tables import (
    BASE,
    BUFFER,
    CLOCK_SIZE,
    COUNT,
    DOUBLED,
    DOUBLING,
    DOUBLING_RULE,
    DRAWS,
    EPISODE,
    EPOCH_END,
    EPOCH_RULE,
    EXPLORING,
    FIXED_LIMIT,
    LAST_LENGTH,
    LENGTH_RULE,
    LIMIT,
    MIXING,
    MOST_LOSS,
    NONE,
    OUTDATED,
    PICK_MODE,
    REASON,
    STAMP,
    STARTED,
    TIME,
    VISITS,
    LearnerState,
    PriorTables,
    RankTables,
)
from restive.kernels.vectors import LANES
from restive.kernels.world import top_arms

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "begin_episode",
    "begin_epoch",
    "choose",
    "drawn_kind",
    "due",
    "explore",
    "finish",
    "follow_kind",
    "pass_time",
    "reset",
    "take_in",
    "take_in_arm",
]


@hot_kernel
def reset(
    prior: PriorTables, state: LearnerState, start_state: IntArray, start_elapsed: IntArray,
) -> None:  # fmt: skip
    """Set the learner to time 1."""
    for k in range(len(start_state)):
        state.last_state[k] = start_state[k]
        state.seen[k] = 1 - start_elapsed[k]
    for j in range(len(state.weights)):
        state.weights[j] = prior.weights[j]
    for group in range(len(state.lost)):
        state.num_pending[group] = 0
        state.lost[group] = 0
        add_up(prior, state, group)
    for i in range(CLOCK_SIZE):
        state.clock[i] = 0
    state.clock[TIME] = 1


@hot_kernel
def begin_epoch(state: LearnerState, mixing: int, end: int) -> None:
    """Start Algorithm 1 anew at the current time, with the posterior and meta-state as they are."""
    clock = state.clock
    for cell in range(state.size_starts[-1] * mixing):
        state.visits[cell * VISITS + COUNT] = 0
        state.visits[cell * VISITS + BASE] = 0
        state.visits[cell * VISITS + STAMP] = 0
    clock[MIXING] = mixing
    clock[EPOCH_END] = end
    clock[STARTED] = 0  # no episode of this epoch has begun


@inlined
def due(state: LearnerState) -> int:
    """Why a new episode must begin at this time, NONE if none must (Section 3)."""
    clock = state.clock
    if clock[STARTED] == 0:
        return EPOCH_RULE
    if clock[DOUBLED] != 0:
        return DOUBLING_RULE
    if clock[TIME] > clock[STARTED] + clock[LIMIT]:
        return LENGTH_RULE
    return NONE


@inlined
def begin_episode(prior: PriorTables, state: LearnerState, reason: int, key: np.uint64) -> None:
    """Begin an episode: bring the posterior up to date and draw a system from it."""
    clock = state.clock
    clock[LAST_LENGTH] = 0 if clock[STARTED] == 0 else clock[TIME] - clock[STARTED]
    clock[STARTED] = clock[TIME]
    clock[REASON] = reason if clock[EPISODE] > 0 else NONE
    clock[EPISODE] += 1
    clock[DOUBLED] = 0
    fixed = state.rules[FIXED_LIMIT]
    clock[LIMIT] = clock[LAST_LENGTH] if fixed < 0 else fixed
    if fixed != 0:  # otherwise nothing has waited
        for group in range(len(state.drawn)):
            multiply_pending(prior, state, group)
    if state.rules[PICK_MODE] != 0:
        _take_modes(prior, state)
    else:
        _draw(prior, state, key)


@inlined
def _draw(prior: PriorTables, state: LearnerState, key: np.uint64) -> None:
    """Draw a candidate of each group; all random numbers first, which is several at once."""
    draws = state.clock[DRAWS]
    for group in range(len(state.drawn)):
        state.uniforms[group] = uniform_at(key, draws + group)
    for group in range(len(state.drawn)):
        state.drawn[group] = draw_candidate(prior, state, group, state.uniforms[group])
    state.clock[DRAWS] = draws + len(state.drawn)


@inlined
def _take_modes(prior: PriorTables, state: LearnerState) -> None:
    """Take each group's likeliest candidate; only what has been seen since can have changed it."""
    for group in range(len(state.drawn)):
        if state.drawn[group] == OUTDATED or state.clock[EPISODE] == 1:
            state.drawn[group] = likeliest_candidate(prior, state, group)


@inlined
def explore(state: LearnerState, key: np.uint64, available: BoolArray, chosen: IntArray) -> None:
    """With the probability that the rules say, choose arms at random instead."""
    u = uniform_at(key, state.clock[DRAWS])
    state.clock[DRAWS] += 1
    if u * 2.0**53 < state.rules[EXPLORING]:
        _choose_any(state, key, available, chosen)


@hot_kernel
def _choose_any(
    state: LearnerState, key: np.uint64, available: BoolArray, chosen: IntArray
) -> None:
    """Choose arms at random; apart, since it is rare and would crowd a loop."""
    clock = state.clock
    for k in range(len(state.rank)):
        state.rank[k] = int(uniform_at(key, clock[DRAWS] + k) * 2.0**31)
    clock[DRAWS] += len(state.rank)
    for k in range(len(available)):
        if not available[k]:
            state.rank[k] = -1
    top_arms(state.rank, chosen)


@inlined
def drawn_kind(prior: PriorTables, state: LearnerState, k: int) -> int:
    """Kind of arm that was drawn for arm k."""
    candidate = state.drawn[place(prior.groups[k])]
    return int(prior.kinds[place(prior.kind_offsets[k] + candidate)])


@inlined
def follow_kind(policy: RankTables, state: LearnerState, k: int, kind: int) -> None:
    """Point arm k at the ranks of a kind."""
    state.rank_begin[k] = policy.offsets[place(kind)]
    state.rank_length[k] = policy.lengths[place(kind)]


@inlined
def choose(policy: RankTables, state: LearnerState, available: BoolArray, chosen: IntArray) -> None:
    """Write the arms that the sampled system's index policy pulls now, among the available ones.

    `available` is [K], or empty for all.
    """
    t = state.clock[TIME]
    for k in range(len(state.rank)):
        length = state.rank_length[k]
        cell = state.last_state[k] * length + min(t - state.seen[k], length) - 1
        state.rank[k] = policy.ranks[place(state.rank_begin[k] + cell)]
    for k in range(len(available)):
        if not available[k]:
            state.rank[k] = -1
    top_arms(state.rank, chosen)


@inlined
def take_in(prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray) -> None:
    """Learn that the pulled arms were seen in these states, and go to the next time."""
    doubled = False
    for i in range(len(pulled)):
        doubled |= take_in_arm(prior, state, pulled[i], states[i])
    pass_time(state, doubled)


@inlined
def pass_time(state: LearnerState, doubled: bool) -> None:
    """Go to the next time; `doubled` tells whether a counter has more than doubled."""
    clock = state.clock
    clock[TIME] += 1
    clock[DOUBLED] |= doubled & state.rules[DOUBLING]


@inlined
def take_in_arm(prior: PriorTables, state: LearnerState, k: int, seen: int) -> bool:
    """Learn that arm k was seen in state `seen`; tell whether its counter has more than doubled."""
    clock = state.clock
    t, episode, mixing = clock[TIME], clock[EPISODE], clock[MIXING]
    at = place(k)
    s = state.last_state[at]
    age = t - state.seen[at]
    length = prior.lengths[at]
    row = (s * length + min(age, length) - 1) * prior.sizes[at] + seen
    group = prior.groups[at]
    g = place(group)
    waiting = state.num_pending[g]
    lost = state.lost[g] + prior.losses[at]
    if waiting == BUFFER or lost > MOST_LOSS:
        _make_room(prior, state, group, lost > MOST_LOSS)
        waiting = 0
        if lost > MOST_LOSS:
            lost = prior.losses[at]
    state.lost[g] = lost
    source = prior.offsets[at] + row * prior.row_counts[g] * LANES
    if state.rules[FIXED_LIMIT] == 0:  # the next step begins an episode: nothing need wait
        multiply_row(prior, state, group, source)
    else:
        state.pending[place(group * BUFFER + waiting)] = source
        state.num_pending[g] = waiting + 1
    state.last_state[at] = seen
    state.seen[at] = t

    if state.rules[DOUBLING] == 0:
        return False
    # without branches, since the processor could not guess them
    cell = ((state.size_starts[at] + s) * mixing + min(age, mixing) - 1) * VISITS
    count = state.visits[place(cell + COUNT)]
    fresh = state.visits[place(cell + STAMP)] != episode
    # counts only grow, so this is the count where the cell is fresh; written as a choice between
    # the two, the compiler would jump over the load of the one that is not needed
    base = max(state.visits[place(cell + BASE)], count * fresh)
    state.visits[place(cell + STAMP)] = episode
    state.visits[place(cell + BASE)] = base
    state.visits[place(cell + COUNT)] = count + 1
    return bool(count + 1 > 2 * base)


@hot_kernel
def _make_room(prior: PriorTables, state: LearnerState, group: int, too_low: bool) -> None:
    """Multiply what waits, rescale where told; apart, since it is rare and would crowd a loop."""
    multiply_pending(prior, state, group)
    if too_low:
        rescale(prior, state, group)


@hot_kernel
def finish(prior: PriorTables, state: LearnerState) -> None:
    """Bring all weights up to date; the clock tells if every candidate of a group is ruled out."""
    for group in range(len(state.num_pending)):
        multiply_pending(prior, state, group)
