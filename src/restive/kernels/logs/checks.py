"""Logs that fitted chains would have left, and what checks compare in them with the real one.

Symbols: R sightings, sorted by arm, then step; Q items of a check, each a sighting whose state is
the item's y, with an x that is another sighting's state or a number given; strata are groups of
items within which x and y would not go together if the chain were right.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, kernel, place
from restive.kernels.random import stream_key, uniform_at

__all__ = ["Items", "covariances", "shuffle_states", "simulate_states", "step_covariances"]

IntArray = NDArray[np.int64]
Places = NDArray[np.int32]
States = NDArray[np.int16]
FloatArray = NDArray[np.float64]

LOG_STREAM = 100  # a stream that nothing else draws from
SETTLED = 1e-13


class Items(NamedTuple):
    """The items of a check, sorted by stratum."""

    target: Places  # [Q] the sighting that is y
    source: Places  # [Q] the one that is x; or none
    given: FloatArray  # [Q] x itself, where there is no source
    refined_by: Places  # [Q] the sighting whose state splits its stratum further; or none
    starts: IntArray  # [G + 1] where the items of each stratum begin
    arm_of_stratum: IntArray  # [G]


@kernel
def simulate_states(
    starts: IntArray, ages: IntArray, active: FloatArray, passive: FloatArray, seed: np.uint64,
    replicate: int, states: States,
) -> None:  # fmt: skip
    """Draw the states of all sightings anew; each arm's first one is kept.

    Parameters
    ----------
    starts
        Where each arm's sightings begin [K + 1].
    ages
        Steps since the sighting before [R] (of an arm's first one: anything).
    active, passive
        The arms' matrices [K, S, S].
    seed, replicate
        Name the luck.
    states
        The real states [R]; overwritten.
    """
    key = stream_key(seed, replicate, LOG_STREAM)
    size = active.shape[1]
    law, other = np.empty(size), np.empty(size)
    for k in range(len(starts) - 1):
        for i in range(starts[k] + 1, starts[k + 1]):
            state = states[i - 1]
            if ages[i] == 1:
                states[i] = _drawn(active[k, state], uniform_at(key, i))
                continue
            for s in range(size):
                law[s] = active[k, state, s]
            for _ in range(ages[i] - 1):
                change = 0.0
                for s in range(size):
                    other[s] = 0.0
                    for t in range(size):
                        other[s] += law[t] * passive[k, t, s]
                    change += abs(other[s] - law[s])
                law[:] = other
                if change < SETTLED:
                    break
            states[i] = _drawn(law, uniform_at(key, i))


@inlined
def _drawn(law: FloatArray, uniform: float) -> int:
    last = len(law) - 1
    for s in range(last):
        uniform -= law[s]
        if uniform < 0:
            return s
    return last


@kernel
def shuffle_states(starts: IntArray, seed: np.uint64, replicate: int, states: States) -> None:
    """Shuffle each arm's states: what a coin per arm would have left."""
    key = stream_key(seed, replicate, LOG_STREAM)
    for k in range(len(starts) - 1):
        for i in range(starts[k + 1] - 1, starts[k], -1):
            j = starts[k] + int(uniform_at(key, i) * (i - starts[k] + 1))
            states[i], states[j] = states[j], states[i]


@hot_kernel
def covariances(
    states: States, scores: FloatArray, items: Items, sums: FloatArray, out: FloatArray
) -> None:
    """Add up, for each arm, how x and y go together within strata.

    Parameters
    ----------
    states, scores
        States [R], and the number that each state counts as [S].
    items
        What is compared.
    sums
        Scratch [S, 6].
    out
        By arm [K, 3]: sums over strata of the covariance of x and y, and of their variances, each
        times the number of items.
    """
    out[:] = 0.0
    for stratum in range(len(items.arm_of_stratum)):
        own = out[items.arm_of_stratum[stratum]]
        if len(items.refined_by):
            sums[:] = 0.0
            _add_refined(states, scores, items, stratum, sums)
            for state in range(len(sums)):
                _add_covariance(sums[state], own)
        else:
            _add_plain(states, scores, items, stratum, sums[0])
            _add_covariance(sums[0], own)


@inlined
def _add_refined(
    states: States, scores: FloatArray, items: Items, stratum: int, sums: FloatArray
) -> None:
    """Add up a stratum's items by the state that refines it."""
    target, source, given, refined_by = items.target, items.source, items.given, items.refined_by
    for q in range(items.starts[stratum], items.starts[stratum + 1]):
        x = scores[place(states[place(source[q])])] if len(source) else given[q]
        y = scores[place(states[place(target[q])])]
        own = sums[place(states[place(refined_by[q])])]
        own[0] += 1
        own[1] += x
        own[2] += y
        own[3] += x * y
        own[4] += x * x
        own[5] += y * y


@inlined
def _add_plain(
    states: States, scores: FloatArray, items: Items, stratum: int, sums: FloatArray
) -> None:
    """Add up a stratum's items, without memory in between."""
    target, source, given = items.target, items.source, items.given
    first, last = items.starts[stratum], items.starts[stratum + 1]
    xs = ys = products = x_squares = y_squares = 0.0
    for q in range(first, last):
        x = scores[place(states[place(source[q])])] if len(source) else given[q]
        y = scores[place(states[place(target[q])])]
        xs += x
        ys += y
        products += x * y
        x_squares += x * x
        y_squares += y * y
    sums[0], sums[1], sums[2] = last - first, xs, ys
    sums[3], sums[4], sums[5] = products, x_squares, y_squares


@inlined
def _add_covariance(sums: FloatArray, out: FloatArray) -> None:
    count = sums[0]
    if count > 1:
        out[0] += sums[3] - sums[1] * sums[2] / count
        out[1] += sums[4] - sums[1] * sums[1] / count
        out[2] += sums[5] - sums[2] * sums[2] / count


@hot_kernel
def step_covariances(
    states: States, scores: FloatArray, starts: IntArray, step: Places, sums: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Add up how arms go together with the others that were seen in the same step.

    Parameters
    ----------
    states, scores, starts
        As above.
    step
        Number [R] of each sighting's step among those [T] that occur.
    sums
        Scratch [T, 2].
    out
        By arm [K, 3]: sum over its sightings of its deviation from its own mean times that of the
        others seen in that step; the same of squared deviations, times how many others; zero.
    """
    sums[:] = 0.0
    out[:] = 0.0
    for k in range(len(starts) - 1):
        mean = 0.0
        for i in range(starts[k], starts[k + 1]):
            mean += scores[states[i]]
        mean /= max(starts[k + 1] - starts[k], 1)
        out[k, 2] = mean
        for i in range(starts[k], starts[k + 1]):
            of_step = sums[place(step[i])]
            of_step[0] += scores[states[i]] - mean
            of_step[1] += 1
    for k in range(len(starts) - 1):
        products = squares = 0.0
        for i in range(starts[k], starts[k + 1]):
            of_step = sums[place(step[i])]
            own = scores[states[i]] - out[k, 2]
            products += own * (of_step[0] - own)
            squares += own * own * (of_step[1] - 1)
        out[k, 0], out[k, 1], out[k, 2] = products, squares, 0.0
