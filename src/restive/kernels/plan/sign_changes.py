"""Where on a piece of the path the advantage of pulling changes its sign.

`kernels.plan.subsidy` tells the subsidy problem and its symbols. The advantage A(s, n) compares
pulling at age n with waiting for the best later age, so it is found from the oldest age backwards,
at both ends of the piece.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.plan.waiting_times import (
    AVERAGE_FORM,
    INDEXABLE,
    NOISE,
    SIGN_STATE,
    WORK,
    SubsidyProblem,
    SubsidyWalk,
    pull_values,
    scale_of,
    waiting_line,
)

FloatArray = NDArray[np.float64]

__all__ = ["mark_sign_changes", "write_advantages"]

REVERSAL = 1e-10  # a fall of A below zero, relative, that is a reversal and no rounding error
# Where a class is left so rarely that it pays for many pulls, rounding errors are this large and
# larger. They are no sign of A then: what does not clearly rise above them waits for the next
# piece, which tells. (Taken for one, they would look like a reversal there.)
DOUBT = 1e-9


@part
def mark_sign_changes(problem: SubsidyProblem, walk: SubsidyWalk, most_work: int) -> bool:
    """Note every (s, n) whose A changes sign on the piece; False where it has to be called again.

    It goes from state to state.
    """
    marks = walk.marks
    for end in range(2):
        walk.scale[end] = scale_of(walk.x, walk.piece[end])
    while marks[SIGN_STATE] < len(walk.made):
        if marks[WORK] > most_work:
            return False
        for end in range(2):
            _write_lines(problem, walk, marks[SIGN_STATE], end)
        _mark_state(problem, walk, marks[SIGN_STATE])
        marks[SIGN_STATE] += 1
    return True


@part
def write_advantages(
    problem: SubsidyProblem, walk: SubsidyWalk, subsidy: float, advantage: FloatArray
) -> None:
    """Write A(s, n) [S, L] at one subsidy; at a breakpoint as it is to its left."""
    walk.piece[0] = subsidy
    walk.scale[0] = scale_of(walk.x, subsidy)
    for s in range(len(walk.made)):
        _write_lines(problem, walk, s, 0)
        for n in range(advantage.shape[1]):
            advantage[s, n] = walk.ends[0, n] + walk.ends[1, n] * subsidy


@part
def _write_lines(problem: SubsidyProblem, walk: SubsidyWalk, s: int, end: int) -> None:
    """Lines of A(s, n) at all ages that hold at an end of the piece and towards its middle.

    `aims` says what waiting at (s, n) aims at: the age (counted from 0) at which to pull, L for any
    after the last, -1 for never. Where it is the same at both ends of a piece, so is the line.
    """
    pull_values(problem, walk, s)
    f, ends, aims = walk.f, walk.ends, walk.aims
    length = f.shape[2]
    discount = problem.powers[1]
    c0, c1 = waiting_line(walk)
    subsidy = walk.piece[end]
    leftward = end == 0
    noise = NOISE * walk.scale[end]
    later0, later1, aim = f[0, s, length - 1], f[1, s, length - 1], length
    if not walk.marks[AVERAGE_FORM]:
        value = later0 + later1 * subsidy
        if value < -noise or (value <= noise and (later1 > 0) == leftward):
            later0, later1, aim = 0.0, 0.0, -1
    for n in range(length - 1, -1, -1):
        wait0 = c0 + discount * later0
        wait1 = c1 + discount * later1
        a0, a1 = f[0, s, n] - wait0, f[1, s, n] - wait1
        ends[2 * end, n], ends[2 * end + 1, n] = a0, a1
        aims[end, n] = aim
        value = a0 + a1 * subsidy
        if value > noise or (value >= -noise and (a1 < 0) == leftward):
            later0, later1, aim = f[0, s, n], f[1, s, n], n
        else:
            later0, later1 = wait0, wait1


@part
def _mark_state(problem: SubsidyProblem, walk: SubsidyWalk, s: int) -> None:
    """Note the changes of sign of a state, from the lines at both ends of the piece."""
    ends, lower, upper = walk.ends, walk.lower, walk.upper
    top, low = walk.piece[0], walk.piece[1]
    fall_at_top = -REVERSAL * walk.scale[0]
    fall_at_low = -REVERSAL * walk.scale[1]
    for n in range(walk.f.shape[2]):
        at_top = ends[0, n] + ends[1, n] * top
        at_low = ends[2, n] + ends[3, n] * low
        is_passive = lower[s, n] == -np.inf
        if not is_passive and (at_top < fall_at_top or at_low < fall_at_low):
            walk.marks[INDEXABLE] = 0
            lower[s, n] = -np.inf
            is_passive = at_low >= 0  # at the top only: it changes again within the piece
        if not is_passive:
            continue
        zero = _zero_of_advantage(problem, walk, s, n)
        if zero == -np.inf:
            continue
        lower[s, n] = zero
        if upper[s, n] == -np.inf:
            upper[s, n] = zero


@part
def _zero_of_advantage(problem: SubsidyProblem, walk: SubsidyWalk, s: int, n: int) -> float:
    """Where A, negative above the piece, first stops being negative in it; else -inf.

    The lines of A are written. It is concave on the piece, so Newton's steps from the right never
    overshoot the root.
    """
    top: float = walk.piece[0]
    low: float = walk.piece[1]
    ends, aims = walk.ends, walk.aims
    at_top = ends[0, n] + ends[1, n] * top
    at_low = ends[2, n] + ends[3, n] * low
    steady = aims[0, n] == aims[1, n]
    noise = NOISE * walk.scale[0]
    if at_top > noise:
        return top  # it jumps at the breakpoint: a plateau
    a0, a1 = ends[0, n], ends[1, n]
    hump = not steady and ends[3, n] > 0 and a1 < 0  # in between, rising from both ends
    if noise > DOUBT and at_low <= NOISE * walk.scale[1]:
        if not hump or _newton(problem, walk, s, n, 2 * noise) == -np.inf:
            return -np.inf
    elif at_top >= -noise and a1 <= 0:
        return top
    elif at_low >= 0:
        if steady:
            return float(min(top, max(low, -a0 / a1)))
    elif not hump:
        return -np.inf
    return _newton(problem, walk, s, n, 0.0)


@part
def _newton(problem: SubsidyProblem, walk: SubsidyWalk, s: int, n: int, level: float) -> float:
    """Where A, below a level at the top of the piece, first reaches it; -inf where it does not."""
    top: float = walk.piece[0]
    low: float = walk.piece[1]
    ends = walk.ends
    noise = NOISE * walk.scale[0]
    beyond = low if ends[2, n] + ends[3, n] * low >= level else -np.inf
    a0, a1 = ends[0, n], ends[1, n]
    x: float = top
    for _ in range(200):
        if a1 >= 0:  # beyond the top of the hump, and still below
            return beyond
        following = (level - a0) / a1
        if following < low:
            return beyond
        if following >= x - NOISE * (1 + abs(x)):
            break
        x = following
        a0, a1 = _advantage_line(problem, walk, s, n, x)
        if a0 + a1 * x - level >= -noise:
            break
    return x


@part
def _advantage_line(
    problem: SubsidyProblem, walk: SubsidyWalk, s: int, n: int, subsidy: float
) -> tuple[float, float]:
    """Return the line of A(s, n) that holds at `subsidy`, for one (s, n)."""
    f = walk.f
    length = f.shape[2]
    discount = problem.powers[1]
    c0, c1 = waiting_line(walk)
    walk.marks[WORK] += length - n
    later0, later1 = f[0, s, length - 1], f[1, s, length - 1]
    if not walk.marks[AVERAGE_FORM] and later0 + later1 * subsidy < 0:
        later0, later1 = 0.0, 0.0
    for k in range(length - 1, n, -1):
        later0 = c0 + discount * later0
        later1 = c1 + discount * later1
        if f[0, s, k] + f[1, s, k] * subsidy >= later0 + later1 * subsidy:
            later0, later1 = f[0, s, k], f[1, s, k]
    return f[0, s, n] - c0 - discount * later0, f[1, s, n] - c1 - discount * later1
