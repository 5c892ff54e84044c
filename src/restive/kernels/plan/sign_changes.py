"""Where on a piece of the path the advantage of pulling changes its sign.

`kernels.plan.subsidy` tells the subsidy problem and its symbols. The advantage A(s, n) compares
pulling at age n with waiting for the best later age, so it is found from the oldest age backwards,
at both ends of the piece. Where there are `age_bounds`, blocks of ages of which all stay
active or passive are passed over.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import part
from restive.kernels.plan.age_bounds import (
    BETWEEN,
    AgeBounds,
    aim_bounds,
    count_sign_change,
    passed_later,
    passed_of_one_sign,
)
from restive.kernels.plan.waiting_times import (
    AVERAGE_FORM,
    INDEXABLE,
    NOISE,
    SIGN_BLOCK,
    SIGN_STATE,
    WORK,
    SubsidyProblem,
    SubsidyWalk,
    pull_line,
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
def mark_sign_changes(
    problem: SubsidyProblem, bounds: AgeBounds | None, walk: SubsidyWalk, most_work: int
) -> bool:
    """Note every (s, n) whose A changes sign on the piece; False where it has to be called again.

    It goes from state to state and from the oldest block back. `later` and `later_aim` hold, for
    both ends, the line of the best that can be done beyond the present block, and its age.
    """
    size, blocks = walk.made.shape
    marks = walk.marks
    for end in range(2):
        walk.scale[end] = scale_of(walk.x, walk.piece[end])
        if bounds is not None:
            aim_bounds(problem, bounds, walk, end, walk.piece[end])
    while marks[SIGN_STATE] < size:
        s = marks[SIGN_STATE]
        m = marks[SIGN_BLOCK]
        if m == blocks - 1:
            for end in range(2):
                _look_beyond_the_last_age(problem, walk, s, end)
        while m >= 0:
            if marks[WORK] > most_work:
                marks[SIGN_BLOCK] = m
                return False
            passed = 0
            if bounds is not None:
                passed = passed_of_one_sign(problem, bounds, walk, s, m)
            if passed == 0:
                pull_values(problem, walk, s, m)
                for end in range(2):
                    _write_lines(problem, walk, s, m, end)
                _mark_block(problem, bounds, walk, s, m)
                passed = 1
            m -= passed
        marks[SIGN_STATE] += 1
        marks[SIGN_BLOCK] = blocks - 1
    return True


@part
def write_advantages(
    problem: SubsidyProblem, walk: SubsidyWalk, subsidy: float, advantage: FloatArray
) -> None:
    """Write A(s, n) [S, L] at one subsidy; at a breakpoint as it is to its left."""
    size, blocks = walk.made.shape
    width = walk.aims.shape[1]
    walk.piece[0] = subsidy
    walk.scale[0] = scale_of(walk.x, subsidy)
    for s in range(size):
        for end in range(1):
            _look_beyond_the_last_age(problem, walk, s, end)
            for m in range(blocks - 1, -1, -1):
                pull_values(problem, walk, s, m)
                _write_lines(problem, walk, s, m, end)
                first = m * width
                for n in range(first, min(first + width, advantage.shape[1])):
                    advantage[s, n] = walk.ends[0, n - first] + walk.ends[1, n - first] * subsidy


@part
def _look_beyond_the_last_age(problem: SubsidyProblem, walk: SubsidyWalk, s: int, end: int) -> None:
    """Begin with the best that can be done after the last age: pull, or never do (aim -1)."""
    length = walk.f.shape[2]
    later0, later1 = pull_line(problem, walk, s, length - 1)
    aim = length
    if not walk.marks[AVERAGE_FORM]:
        subsidy = walk.piece[end]
        noise = NOISE * walk.scale[end]
        value = later0 + later1 * subsidy
        if value < -noise or (value <= noise and (later1 > 0) == (end == 0)):
            later0, later1, aim = 0.0, 0.0, -1
    walk.later[end, 0], walk.later[end, 1] = later0, later1
    walk.later_aim[end] = aim


@part
def _write_lines(problem: SubsidyProblem, walk: SubsidyWalk, s: int, m: int, end: int) -> None:
    """Lines of A(s, n) in a block that hold at an end of the piece and towards its middle.

    `aims` says what waiting at (s, n) aims at: the age (counted from 0) at which to pull, L for any
    later age, -1 for never. Where it is the same at both ends of a piece, so is the line.
    """
    f, ends, aims = walk.f, walk.ends, walk.aims
    width = aims.shape[1]
    first = m * width
    discount = problem.powers[1]
    c0, c1 = waiting_line(walk)
    subsidy = walk.piece[end]
    leftward = end == 0
    noise = NOISE * walk.scale[end]
    later0, later1, aim = walk.later[end, 0], walk.later[end, 1], walk.later_aim[end]
    for n in range(min(first + width, f.shape[2]) - 1, first - 1, -1):
        wait0 = c0 + discount * later0
        wait1 = c1 + discount * later1
        a0, a1 = f[0, s, n] - wait0, f[1, s, n] - wait1
        ends[2 * end, n - first], ends[2 * end + 1, n - first] = a0, a1
        aims[end, n - first] = aim
        value = a0 + a1 * subsidy
        if value > noise or (value >= -noise and (a1 < 0) == leftward):
            later0, later1, aim = f[0, s, n], f[1, s, n], n
        else:
            later0, later1 = wait0, wait1
    walk.later[end, 0], walk.later[end, 1] = later0, later1
    walk.later_aim[end] = aim


@part
def _mark_block(
    problem: SubsidyProblem, bounds: AgeBounds | None, walk: SubsidyWalk, s: int, m: int
) -> None:
    """Note the changes of sign in a block, from the lines at both ends of the piece."""
    ends, aims, lower, upper = walk.ends, walk.aims, walk.lower, walk.upper
    width = aims.shape[1]
    first = m * width
    top, low = walk.piece[0], walk.piece[1]
    fall_at_top = -REVERSAL * walk.scale[0]
    fall_at_low = -REVERSAL * walk.scale[1]
    for n in range(first, min(first + width, walk.f.shape[2])):
        i = n - first
        at_top = ends[0, i] + ends[1, i] * top
        at_low = ends[2, i] + ends[3, i] * low
        is_passive = lower[s, n] == -np.inf
        if not is_passive and (at_top < fall_at_top or at_low < fall_at_low):
            walk.marks[INDEXABLE] = 0
            lower[s, n] = -np.inf
            if bounds is not None:
                count_sign_change(bounds, s, m, lower[s, n])
            is_passive = at_low >= 0  # at the top only: it changes again within the piece
        if not is_passive:
            continue
        zero = _zero_of_advantage(problem, bounds, walk, s, m, i)
        if zero == -np.inf:
            continue
        lower[s, n] = zero
        if bounds is not None:
            count_sign_change(bounds, s, m, zero)
        if upper[s, n] == -np.inf:
            upper[s, n] = zero


@part
def _zero_of_advantage(
    problem: SubsidyProblem, bounds: AgeBounds | None, walk: SubsidyWalk, s: int, m: int, i: int
) -> float:
    """Where A, negative above the piece, first stops being negative in it; else -inf.

    It is that of age i of block m, whose lines are written. A is concave on the piece, so Newton's
    steps from the right never overshoot the root.
    """
    top: float = walk.piece[0]
    low: float = walk.piece[1]
    ends, aims = walk.ends, walk.aims
    at_top = ends[0, i] + ends[1, i] * top
    at_low = ends[2, i] + ends[3, i] * low
    steady = aims[0, i] == aims[1, i]
    noise = NOISE * walk.scale[0]
    if at_top > noise:
        return top  # it jumps at the breakpoint: a plateau
    a0, a1 = ends[0, i], ends[1, i]
    hump = not steady and ends[3, i] > 0 and a1 < 0  # in between, rising from both ends
    if noise > DOUBT and at_low <= NOISE * walk.scale[1]:
        if not hump or _newton(problem, bounds, walk, s, m, i, 2 * noise) == -np.inf:
            return -np.inf
    elif at_top >= -noise and a1 <= 0:
        return top
    elif at_low >= 0:
        if steady:
            return float(min(top, max(low, -a0 / a1)))
    elif not hump:
        return -np.inf
    return _newton(problem, bounds, walk, s, m, i, 0.0)


@part
def _newton(
    problem: SubsidyProblem, bounds: AgeBounds | None, walk: SubsidyWalk, s: int, m: int, i: int,
    level: float,
) -> float:  # fmt: skip
    """Where A, below a level at the top of the piece, first reaches it; -inf where it does not.

    The age is as in `_zero_of_advantage`.
    """
    top: float = walk.piece[0]
    low: float = walk.piece[1]
    ends, aims = walk.ends, walk.aims
    noise = NOISE * walk.scale[0]
    beyond = low if ends[2, i] + ends[3, i] * low >= level else -np.inf
    a0, a1 = ends[0, i], ends[1, i]
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
        a0, a1 = _advantage_line(problem, bounds, walk, s, m * aims.shape[1] + i, x)
        if a0 + a1 * x - level >= -noise:
            break
    return x


@part
def _advantage_line(
    problem: SubsidyProblem, bounds: AgeBounds | None, walk: SubsidyWalk, s: int, n: int,
    subsidy: float,
) -> tuple[float, float]:  # fmt: skip
    """Return the line of A(s, n) that holds at `subsidy`, for one (s, n)."""
    f = walk.f
    width, length = walk.aims.shape[1], f.shape[2]
    discount = problem.powers[1]
    c0, c1 = waiting_line(walk)
    if bounds is not None:
        aim_bounds(problem, bounds, walk, BETWEEN, subsidy)
    later0, later1 = pull_line(problem, walk, s, length - 1)
    if not walk.marks[AVERAGE_FORM] and later0 + later1 * subsidy < 0:
        later0, later1 = 0.0, 0.0
    own = n // width
    m = walk.made.shape[1] - 1
    while m >= own:
        passed = 0
        if bounds is not None:
            passed, later0, later1 = passed_later(
                problem, bounds, walk, s, m, own + 1, (later0, later1)
            )
        if passed == 0:
            pull_values(problem, walk, s, m)
            walk.marks[WORK] += width
            for k in range(min((m + 1) * width, length) - 1, max(n, m * width - 1), -1):
                later0 = c0 + discount * later0
                later1 = c1 + discount * later1
                if f[0, s, k] + f[1, s, k] * subsidy >= later0 + later1 * subsidy:
                    later0, later1 = f[0, s, k], f[1, s, k]
            passed = 1
        m -= passed
    return f[0, s, n] - c0 - discount * later0, f[1, s, n] - c1 - discount * later1
