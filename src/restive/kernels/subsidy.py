r"""One arm with a subsidy for every step in which it is not pulled: the whole path in the subsidy.

Model. An arm last seen in s and pulled n steps later pays b(s,n).r and is seen in s' with
probability b(s,n)[s']; each passive step pays the subsidy lambda. From (s,1) a stationary policy is
a waiting time w_s in {1..L} or "never" (0 here): a semi-Markov problem with S unknowns only,
whatever L is.

Two forms of its optimality equation are followed, with x the unknowns [S] and lambda falling:

* *stopping*: x = u, the gain over never pulling. Pulling at age n is worth
      f(s,n) = b(s,n).(r + beta u) - lambda,   waiting is worth nothing, never pulling 0;
  valid for every lambda when beta < 1, and for lambda > lambda* when beta = 1, where lambda* is
  the largest reward per pull that any policy can sustain.
* *average* (beta = 1, lambda < lambda*): x = h, the bias, with the gain g > lambda. Then
      f(s,n) = b(s,n).(r + h) - g,        each step of waiting is worth c = lambda - g < 0,
  and never pulling is never best.

In both, V(s,n) = max(f(s,n), c + beta V(s,n+1)) with V(s,L+1) = max(f(s,L), "never"), and
      A(s,n) = f(s,n) - c - beta V(s,n+1)
is the advantage of pulling now. For fixed waiting times everything is affine in lambda, so lambda
is led down from its largest sensible value from breakpoint to breakpoint (parametric policy
iteration, ordered by value and then by slope). Between two breakpoints every A(s,n) is concave and
piecewise linear, so its sign changes are found from both ends. The Whittle index of (s,n) is where
A turns from negative to positive; where it turns back further down, the arm is not indexable.

Lines are kept as (value at zero, slope): suffix 0 and 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel
from restive.kernels.waiting_times import (
    NOISE,
    PROBABILITY_NOISE,
    better_wait,
    has_rival,
    next_switch,
    pull_values,
    scale_of,
    switch_wait,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["advantage_on_path", "follow_subsidy"]

REVERSAL = 1e-10  # a fall of A below zero, relative, that is a reversal and no rounding error

DONE, STUCK, AMBIGUOUS = 0, 1, 2

# Columns of a path's rows: where the piece begins (its largest subsidy), then the lines.
TOP, AVERAGE, GAIN0, GAIN1, VALUES = 0, 1, 2, 3, 4


@kernel
def follow_subsidy(
    beliefs: FloatArray, rewards: FloatArray, discount: float, most_switches: int
) -> tuple[FloatArray, FloatArray, bool, FloatArray, int]:
    """Lead the subsidy down from the largest reward and note where each (s, n) turns active.

    Returns
    -------
    index [S, L]: the least subsidy below which pulling is best at every subsidy (-inf if none);
    upper [S, L]: the largest subsidy at which pulling is best; whether they agree (indexable);
    the path, a row per piece: (top subsidy, average form?, g0, g1, x0 [S], x1 [S]);
    and how it ended: DONE, STUCK (more switches than allowed) or AMBIGUOUS (see `has_rival`).
    """
    size, length = beliefs.shape[0], beliefs.shape[1]
    powers = discount ** np.arange(length + 1)
    pull_rewards = np.zeros((size, length))
    for s in range(size):
        for n in range(length):
            for j in range(size):
                pull_rewards[s, n] += beliefs[s, n, j] * rewards[j]

    index = np.full((size, length), -np.inf)
    upper = np.full((size, length), -np.inf)
    active = np.zeros((size, length), dtype=np.bool_)
    indexable = True
    path = np.empty((32, VALUES + 2 * size))

    wait = np.zeros(size, dtype=np.int64)
    x = np.zeros((2, size))
    gain = np.zeros(2)
    f = np.empty((2, size, length))
    top_lines = np.empty((2, size, length))
    low_lines = np.empty((2, size, length))
    top_choice = np.empty((size, length), dtype=np.int64)
    low_choice = np.empty((size, length), dtype=np.int64)

    subsidy = rewards.max()
    average = False
    has_zeros = beliefs.min() <= PROBABILITY_NOISE
    pull_values(beliefs, pull_rewards, discount, average, x, gain, f)
    pieces = 0
    for _ in range(most_switches):
        low, state, new_wait = next_switch(subsidy, average, powers, wait, x, gain, f)
        if low < subsidy:
            if pieces == len(path):
                path = _longer(path)
            path[pieces, TOP] = subsidy
            path[pieces, AVERAGE] = average
            path[pieces, GAIN0] = gain[0]
            path[pieces, GAIN1] = gain[1]
            path[pieces, VALUES : VALUES + size] = x[0]
            path[pieces, VALUES + size :] = x[1]
            pieces += 1
            if average and has_zeros and has_rival(subsidy, low, beliefs, wait, x, gain, f):
                return index, upper, indexable, path[:pieces], AMBIGUOUS
            if not _mark_turns(
                subsidy, low, average, x, gain, f, discount, active, index, upper,
                top_lines, low_lines, top_choice, low_choice,
            ):  # fmt: skip
                indexable = False
        if state < 0:
            return index, upper, indexable, path[:pieces], DONE
        subsidy = low
        for _ in range(most_switches):
            solved, average = switch_wait(
                state, new_wait, average, beliefs, pull_rewards, powers, wait, x, gain, f
            )
            if not solved:
                return index, upper, indexable, path[:pieces], STUCK
            if not average:
                break  # nothing jumps, so the breakpoints see to everything
            state, new_wait = better_wait(subsidy, powers, x, gain, f)
            if state < 0:
                break
    return index, upper, indexable, path[:pieces], STUCK


@kernel
def _longer(path: FloatArray) -> FloatArray:
    longer = np.empty((2 * len(path), path.shape[1]))
    longer[: len(path)] = path
    return longer


@kernel
def _mark_turns(
    subsidy: float, low: float, average: bool, x: FloatArray, gain: FloatArray, f: FloatArray,
    discount: float, active: BoolArray, index: FloatArray, upper: FloatArray,
    top_lines: FloatArray, low_lines: FloatArray, top_choice: IntArray, low_choice: IntArray,
) -> bool:  # fmt: skip
    """Note every (s, n) whose A changes sign on the piece [low, subsidy]; False for a reversal."""
    size, length = active.shape
    forward = True
    scale = scale_of(x, subsidy)
    _advantages(subsidy, True, average, gain, f, discount, scale, top_lines, top_choice)
    _advantages(low, False, average, gain, f, discount, scale_of(x, low), low_lines, low_choice)
    for s in range(size):
        for n in range(length):
            steady = top_choice[s, n] == low_choice[s, n]
            at_top = top_lines[0, s, n] + top_lines[1, s, n] * subsidy
            at_low = low_lines[0, s, n] + low_lines[1, s, n] * low
            if not active[s, n]:
                turn = _turn_on(
                    subsidy, low, at_top, at_low, steady, top_lines[:, s, n],
                    low_lines[:, s, n], average, gain, f[:, s], n, discount, scale,
                )  # fmt: skip
                if turn == -np.inf:
                    continue
                active[s, n] = True
                index[s, n] = turn
                if upper[s, n] == -np.inf:
                    upper[s, n] = turn
            elif at_top < -REVERSAL * scale or at_low < -REVERSAL * scale_of(x, low):
                forward = False
                active[s, n] = False
                index[s, n] = -np.inf
                if at_low >= 0:  # passive at the top only: it turns on again within the piece
                    turn = _turn_on(
                        subsidy, low, at_top, at_low, steady, top_lines[:, s, n],
                        low_lines[:, s, n], average, gain, f[:, s], n, discount, scale,
                    )  # fmt: skip
                    active[s, n] = True
                    index[s, n] = turn
    return forward


@kernel
def advantage_on_path(
    beliefs: FloatArray, rewards: FloatArray, discount: float, path: FloatArray, subsidy: float
) -> FloatArray:
    """A(s, n) [S, L] at one subsidy, read off a path; at a breakpoint, from the piece above it."""
    size, length = beliefs.shape[0], beliefs.shape[1]
    piece = 0
    while piece + 1 < len(path) and path[piece + 1, TOP] > subsidy:
        piece += 1
    row = path[piece]
    x = np.empty((2, size))
    x[0] = row[VALUES : VALUES + size]
    x[1] = row[VALUES + size :]
    gain = np.array([row[GAIN0], row[GAIN1]])
    average = row[AVERAGE] != 0
    if subsidy > path[0, TOP]:  # above every reward nothing is worth pulling
        x[:] = 0.0
    f = np.empty((2, size, length))
    pull_rewards = np.zeros((size, length))
    for s in range(size):
        for n in range(length):
            for j in range(size):
                pull_rewards[s, n] += beliefs[s, n, j] * rewards[j]
    pull_values(beliefs, pull_rewards, discount, average, x, gain, f)
    lines = np.empty((2, size, length))
    choice = np.empty((size, length), dtype=np.int64)
    _advantages(subsidy, True, average, gain, f, discount, scale_of(x, subsidy), lines, choice)
    advantage: FloatArray = lines[0] + lines[1] * subsidy
    return advantage


@kernel
def _advantages(
    subsidy: float, leftward: bool, average: bool, gain: FloatArray, f: FloatArray,
    discount: float, scale: float, lines: FloatArray, choice: IntArray,
) -> None:  # fmt: skip
    """Lines of A(s, n) that hold at `subsidy` and just to its left (or right).

    `choice` says what waiting at (s, n) aims at: the age (counted from 0) at which to pull, L for
    any later age, -1 for never. Where it is the same at both ends of a piece, so is the line.
    """
    size, length = f.shape[1], f.shape[2]
    c0 = -gain[0] if average else 0.0
    c1 = 1.0 - gain[1] if average else 0.0
    noise = NOISE * scale
    for s in range(size):
        later0, later1 = f[0, s, length - 1], f[1, s, length - 1]
        aim = length
        if not average:
            value = later0 + later1 * subsidy
            if value < -noise or (value <= noise and (later1 > 0) == leftward):
                later0, later1, aim = 0.0, 0.0, -1
        for n in range(length - 1, -1, -1):
            wait0 = c0 + discount * later0
            wait1 = c1 + discount * later1
            a0, a1 = f[0, s, n] - wait0, f[1, s, n] - wait1
            lines[0, s, n], lines[1, s, n] = a0, a1
            choice[s, n] = aim
            value = a0 + a1 * subsidy
            if value > noise or (value >= -noise and (a1 < 0) == leftward):
                later0, later1, aim = f[0, s, n], f[1, s, n], n
            else:
                later0, later1 = wait0, wait1


@kernel
def _advantage_line(
    subsidy: float, average: bool, gain: FloatArray, f: FloatArray, n: int, discount: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the line of A(s, n) that holds at `subsidy`, for one (s, n); f is [2, L] of that s."""
    length = f.shape[1]
    c0 = -gain[0] if average else 0.0
    c1 = 1.0 - gain[1] if average else 0.0
    later0, later1 = f[0, length - 1], f[1, length - 1]
    if not average and later0 + later1 * subsidy < 0:
        later0, later1 = 0.0, 0.0
    for m in range(length - 1, n, -1):
        later0 = c0 + discount * later0
        later1 = c1 + discount * later1
        if f[0, m] + f[1, m] * subsidy >= later0 + later1 * subsidy:
            later0, later1 = f[0, m], f[1, m]
    return f[0, n] - c0 - discount * later0, f[1, n] - c1 - discount * later1


@kernel
def _turn_on(
    top: float, low: float, at_top: float, at_low: float, steady: bool, top_line: FloatArray,
    low_line: FloatArray, average: bool, gain: FloatArray, f: FloatArray, n: int, discount: float,
    scale: float,
) -> float:  # fmt: skip
    """Where A(s, n), negative above `top`, first stops being negative in [low, top]; else -inf.

    A is concave on the piece, so Newton's steps from the right never overshoot the root.
    """
    noise = NOISE * scale
    if at_top > noise:
        return top  # it jumps at the breakpoint: a plateau
    a0, a1 = float(top_line[0]), float(top_line[1])
    if at_top >= -noise and a1 <= 0:
        return top
    if at_low >= 0:
        if steady:
            return min(top, max(low, -a0 / a1))
    elif steady or low_line[1] <= 0 or a1 >= 0:
        # negative at both ends: only a hump in between, rising from both, could reach zero
        return -np.inf
    x = float(top)
    for _ in range(200):
        if a1 >= 0:  # beyond the top of the hump, and still negative
            return -np.inf if at_low < 0 else low
        following = float(-a0 / a1)
        if following < low:
            return -np.inf if at_low < 0 else low
        if following >= x - NOISE * (1 + abs(x)):
            break
        x = following
        a0, a1 = _advantage_line(x, average, gain, f, n, discount)
        if a0 + a1 * x >= -noise:
            break
    return x
