"""Arms that are always seen, with Dirichlet priors: counts are all there is to know.

Every step shows a move of the arm, so the posterior of a row of its matrices is a Dirichlet law
again, with the counts of that row added. There are no particles: at the beginning of an episode one
system is drawn, exactly, and the indices of its states are computed at once. Where the mean of the
posterior is taken instead, only arms of which something was seen since are done anew.

A row is drawn as gamma variables over their sum, by their logarithms, so that small parameters do
no harm; one below 1 is drawn as that of 1 more, times u^(1 / parameter).
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import inlined, part, place
from restive.kernels.learn.learners.beta_bernoulli import draw_gamma
from restive.kernels.loop.actor import Actor
from restive.kernels.loop.choosing import top_arms
from restive.kernels.loop.tables import DRAWN_MYOPIC, ConjugateGroups, Posterior
from restive.kernels.plan.always_seen import (
    LOWER,
    NUM_LINES,
    NUM_RESULTS,
    TURNED_BACK,
    UNIT,
    VALUES,
    lead_down,
)
from restive.kernels.random import uniform_at

__all__ = [
    "choose_drawn",
    "count_move",
    "draw_conjugates",
    "forget_moves",
    "has_conjugates",
    "impossible_move",
    "is_conjugate",
]

FloatArray = NDArray[np.float64]


@inlined
def has_conjugates(posterior: Posterior) -> bool:
    """Whether there are such arms."""
    return len(posterior.conjugates.number_of) > 0


@inlined
def is_conjugate(posterior: Posterior, group: int) -> bool:
    """Whether a group of arms is of this sort."""
    numbers = posterior.conjugates.number_of
    return len(numbers) > 0 and numbers[place(group)] >= 0


@part
def forget_moves(posterior: Posterior) -> None:
    """Go back to the prior."""
    counts = posterior.conjugates.counts
    for i in range(len(counts)):
        counts[i] = 0.0


@inlined
def _entry(groups: ConjugateGroups, number: int, last_state: int, age: int, state: int) -> int:
    """Where the parameter of a move stands; the age is 1 where the arm was pulled, else 2."""
    size = groups.sizes[place(number)]
    row = last_state + (size if age > 1 and groups.num_rows[place(number)] > size else 0)
    return int(groups.starts[place(number)] + row * size + state)


@inlined
def count_move(
    posterior: Posterior, group: int, last_state: int, age: int, state: int, weight: float
) -> None:
    """Count a move of an arm of this group."""
    groups = posterior.conjugates
    at = _entry(groups, groups.number_of[place(group)], last_state, age, state)
    groups.counts[place(at)] += weight
    posterior.weights.changed[place(group)] = True


@inlined
def impossible_move(
    posterior: Posterior, group: int, last_state: int, age: int, state: int
) -> bool:
    """Whether the prior rules a move out."""
    groups = posterior.conjugates
    at = _entry(groups, groups.number_of[place(group)], last_state, age, state)
    return bool(groups.alphas[place(at)] == 0.0)


@part
def draw_conjugates(actor: Actor) -> bool:
    """Draw what each such group of arms is, or take its mean, and make the indices of its states.

    False where some arm has no index, for Python to say why. Without a form of the index (`valued`)
    Python makes the tables.
    """
    posterior, rules, clock = actor.posterior, actor.episodes.rules[0], actor.episodes.clock[0]
    groups = posterior.conjugates
    averaged = max(1, groups.averaged[0] if rules.draws == 0 else rules.draws)
    form = actor.lookup.mode[0].valued
    fine = True
    for group in range(len(groups.number_of)):
        number = groups.number_of[group]
        if number < 0 or (rules.pick_mode != 0 and not posterior.weights.changed[group]):
            continue
        first, size = groups.index_starts[number], groups.sizes[number]
        for s in range(size):
            groups.indices[first + s] = 0.0
        for _ in range(averaged if rules.pick_mode == 0 else 1):
            clock.draws = _write_matrices(
                groups, number, actor.role[0].key, clock.draws, rules.pick_mode != 0
            )
            if form == DRAWN_MYOPIC:
                _add_myopic(groups, number, 1.0 / averaged)
            elif form != 0:
                fine &= _add_whittle(groups, number, 1.0 / averaged)
        if rules.draws == 0 or rules.pick_mode != 0:  # else `draw_all` notes it
            posterior.weights.changed[group] = False
    return fine


@part
def _write_matrices(
    groups: ConjugateGroups, number: int, key: np.uint64, draws: int, mean: bool
) -> int:
    """Draw the rows of a group's matrices, or write their means; return the next random place."""
    size, start = groups.sizes[number], groups.starts[number]
    for r in range(groups.num_rows[number]):
        first = start + r * size
        top = -inf
        for j in range(first, first + size):
            alpha = groups.alphas[j] + groups.counts[j] if groups.alphas[j] > 0.0 else 0.0
            if mean:
                groups.drawn[j] = alpha
            elif alpha > 0.0:
                gamma, draws = draw_gamma(key, draws, alpha if alpha >= 1.0 else alpha + 1.0)
                groups.drawn[j] = logarithm(gamma)
                if alpha < 1.0:
                    u = 1.0 - uniform_at(key, draws)
                    draws += 1
                    groups.drawn[j] += logarithm(u) / alpha
                top = max(top, groups.drawn[j])
            else:
                groups.drawn[j] = -inf
        total = 0.0
        for j in range(first, first + size):
            if not mean:
                apart = groups.drawn[j] - top
                groups.drawn[j] = exponential(apart) if apart > -700.0 else 0.0
            total += groups.drawn[j]
        for j in range(first, first + size):
            groups.drawn[j] /= total
    return draws


@inlined
def _passive_start(groups: ConjugateGroups, number: int) -> int:
    """Where the passive matrix begins in what was drawn: the only one, or the second."""
    size = groups.sizes[number]
    return int(groups.starts[number] + (groups.num_rows[number] - size) * size)


@part
def _add_myopic(groups: ConjugateGroups, number: int, share: float) -> None:
    size, first = groups.sizes[number], groups.index_starts[number]
    active, passive = groups.starts[number], _passive_start(groups, number)
    paid = 2 * first + size
    for s in range(size):
        gained = groups.rewards[2 * first + s] - groups.rewards[paid + s]
        for j in range(size):
            moved = groups.drawn[active + s * size + j] - groups.drawn[passive + s * size + j]
            gained += moved * groups.rewards[paid + j]
        groups.indices[first + s] += share * gained


@part
def _add_whittle(groups: ConjugateGroups, number: int, share: float) -> bool:
    """Add Whittle's index of what was drawn; False where there is none."""
    size, first = groups.sizes[number], groups.index_starts[number]
    rows = (2 * size + 1) * size
    end = rows + NUM_LINES * size
    work = groups.scratch[:rows].reshape((2 * size + 1, size))
    lines = groups.scratch[rows:end].reshape((NUM_LINES, size))
    results = groups.scratch[end : end + NUM_RESULTS]
    path = groups.scratch[:0].reshape((0, VALUES + 2 * size))
    count = TURNED_BACK
    for narrow in range(1, -1, -1):
        if count == TURNED_BACK:
            _write_problem(groups, number, work, lines)
            count = lead_down(work, lines, 1.0, narrow != 0, results, path)
    if count < 0:
        return False
    fine = True
    for s in range(size):
        index = results[UNIT] * lines[LOWER, s]
        fine &= index > -inf
        groups.indices[first + s] += share * index
    return fine


@part
def _write_problem(
    groups: ConjugateGroups, number: int, work: FloatArray, lines: FloatArray
) -> None:
    size, first = groups.sizes[number], groups.index_starts[number]
    active, passive = groups.starts[number], _passive_start(groups, number)
    for s in range(size):
        lines[0, s] = groups.rewards[2 * first + s]
        lines[1, s] = groups.rewards[2 * first + size + s]
        for j in range(size):
            work[s, j] = groups.drawn[passive + s * size + j]
            work[size + s, j] = groups.drawn[active + s * size + j]


@inlined
def choose_drawn(actor: Actor, count: int) -> None:
    """Write the `count` arms of the largest indices now; the lowest arm wins ties."""
    groups, slots = actor.posterior.conjugates, actor.posterior.slots
    values = actor.lookup.values
    for k in range(len(values)):
        number = groups.number_of[place(slots.groups[place(k)])]
        cell = groups.index_starts[place(number)] + actor.meta.last_state[place(k)]
        values[place(k)] = groups.indices[place(cell)]
    if actor.role[0].masked != 0:
        for k in range(len(values)):
            if not actor.available[k]:
                values[k] = -inf
    top_arms(values, actor.chosen, count)
