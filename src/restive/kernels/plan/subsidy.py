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

from restive.kernels.jit.compiler import hot_kernel, part
from restive.kernels.jit.handles import by_address
from restive.kernels.plan.sign_changes import mark_sign_changes, write_advantages
from restive.kernels.plan.waiting_times import (
    AVERAGE_FORM,
    BEGUN,
    HAS_ZEROS,
    INDEXABLE,
    LOW,
    LOWEST_SUBSIDY,
    NOISE,
    PIECES,
    PROBABILITY_NOISE,
    SIGN_STATE,
    STEEPEST,
    SWITCH_STATE,
    SWITCH_WAIT,
    SWITCHES,
    TOP,
    VERSION,
    WORK,
    SubsidyProblem,
    SubsidyWalk,
    has_rival,
    pull_values,
    switch_wait,
    waiting_line,
)

FloatArray = NDArray[np.float64]

__all__ = ["advantage_on_path", "follow_subsidy"]

# How a call of `follow_subsidy` ends: the path is whole; it needs more calls; it needs more room;
# it takes more switches than any path should; or the average reward does not settle it.
DONE, WORKING, FULL, STUCK, AMBIGUOUS = 0, 1, 2, 3, 4

# Columns of a path's rows: where the piece begins (its largest subsidy), then the lines.
BEGIN, AVERAGE, GAIN0, GAIN1, VALUES = 0, 1, 2, 3, 4


@hot_kernel
def follow_subsidy(
    problem: SubsidyProblem, walk: SubsidyWalk, most_switches: int, most_work: int
) -> int:
    """Lead the subsidy down from the largest reward and note where each (s, n) turns active.

    The index of (s, n) is the least subsidy below which pulling is best at every subsidy, -inf if
    there is none, `upper` the largest at which it is best. Rows of the path are pieces:
    (top subsidy, average form?, g0, g1, x0 [S], x1 [S]). Returns after about `most_work` products;
    called again, it continues where it left off.
    """
    problem, walk = by_address(problem), by_address(walk)
    marks, piece = walk.marks, walk.piece
    marks[WORK] = 0
    if marks[BEGUN] == 0:
        _begin(problem, walk)
    while marks[WORK] <= most_work:
        if marks[SIGN_STATE] < 0:
            if marks[PIECES] == len(walk.path):
                return FULL
            _find_next_switch(problem, walk)
            marks[SIGN_STATE] = 0
            if piece[LOW] == piece[TOP]:  # several waiting times take over at one breakpoint
                marks[SIGN_STATE] = len(walk.wait)
            else:
                _write_piece(walk)
                if marks[AVERAGE_FORM] and marks[HAS_ZEROS] and has_rival(problem, walk):
                    return AMBIGUOUS
        if not mark_sign_changes(problem, walk, most_work):
            return WORKING
        if marks[SWITCH_STATE] < 0:
            return DONE
        piece[TOP] = piece[LOW]
        marks[SIGN_STATE] = -1
        while marks[SWITCH_STATE] >= 0:
            marks[SWITCHES] += 1
            if marks[SWITCHES] > most_switches or not switch_wait(problem, walk):
                return STUCK
    return WORKING


@part
def _begin(problem: SubsidyProblem, walk: SubsidyWalk) -> None:
    """Fill in the tables of the problem, and begin where nothing is worth pulling."""
    beliefs, rewards, marks = problem.beliefs, problem.rewards, walk.marks
    size, length = problem.pull_rewards.shape
    discount = problem.powers[1]
    largest = rewards[0]
    least = beliefs[0, 0, 0]
    for s in range(size):
        largest = max(largest, rewards[s])
        for n in range(length):
            total = 0.0
            for j in range(size):
                total += beliefs[s, n, j] * rewards[j]
                least = min(least, beliefs[s, n, j])
            problem.pull_rewards[s, n] = total
            walk.lower[s, n] = -np.inf
            walk.upper[s, n] = -np.inf
        walk.made[s] = 0
        walk.wait[s] = 0
        walk.x[0, s] = 0.0
        walk.x[1, s] = 0.0
    for n in range(length + 1):
        problem.powers[n] = discount**n
    walk.gain[0] = 0.0
    walk.gain[1] = 0.0
    walk.piece[TOP] = largest
    for i in range(len(marks)):
        marks[i] = 0
    marks[BEGUN] = 1
    marks[INDEXABLE] = 1
    marks[HAS_ZEROS] = least <= PROBABILITY_NOISE
    marks[VERSION] = 1
    marks[SIGN_STATE] = -1


@part
def _write_piece(walk: SubsidyWalk) -> None:
    marks, path, gain, x = walk.marks, walk.path, walk.gain, walk.x
    row, size = marks[PIECES], x.shape[1]
    path[row, BEGIN] = walk.piece[TOP]
    path[row, AVERAGE] = marks[AVERAGE_FORM]
    path[row, GAIN0] = gain[0]
    path[row, GAIN1] = gain[1]
    for s in range(size):
        path[row, VALUES + s] = x[0, s]
        path[row, VALUES + size + s] = x[1, s]
    marks[PIECES] += 1


@part
def _find_next_switch(problem: SubsidyProblem, walk: SubsidyWalk) -> None:
    """Find the largest subsidy from the top of the piece down at which another wait takes over.

    It is the piece's low end; the state and its wait go to `marks` (-1 when there is none, and the
    piece goes down to LOWEST_SUBSIDY). Waits that are as good already but gain to the left take
    over at once, the steepest first: the slopes then fall strictly, so that ties cannot make the
    path run in circles.
    """
    walk.piece[LOW] = LOWEST_SUBSIDY
    walk.piece[STEEPEST] = 0.0
    walk.marks[SWITCH_STATE] = -1
    for s in range(len(walk.made)):
        _compare_waits(problem, walk, s)


@part
def _compare_waits(problem: SubsidyProblem, walk: SubsidyWalk, s: int) -> None:
    """Compare all waits of a state with the best switch so far."""
    pull_values(problem, walk, s)
    f, piece, marks, powers = walk.f, walk.piece, walk.marks, problem.powers
    c0, c1 = waiting_line(walk)
    x0, x1 = walk.x[0, s], walk.x[1, s]
    noise = 4 * NOISE * (1 + f.shape[2] + abs(x1))
    first = 0 if marks[AVERAGE_FORM] else -1  # never pulling
    for n in range(first, f.shape[2]):
        if n + 1 == walk.wait[s]:
            continue
        if n < 0:
            gap0, slope = -x0, -x1
        else:
            gap0 = powers[n] * f[0, s, n] + n * c0 - x0
            slope = powers[n] * f[1, s, n] + n * c1 - x1
        # compare products first: a division for each (s, n) would cost more than all the rest
        if slope >= -noise or gap0 + slope * piece[LOW] < 0:
            continue
        root = min(piece[TOP], -gap0 / slope)
        if root > piece[LOW] or slope < piece[STEEPEST]:
            piece[LOW], piece[STEEPEST] = root, slope
            marks[SWITCH_STATE], marks[SWITCH_WAIT] = s, n + 1


@hot_kernel
def advantage_on_path(
    problem: SubsidyProblem, walk: SubsidyWalk, pieces: FloatArray, subsidy: float,
    advantage: FloatArray,
) -> None:  # fmt: skip
    """Write A(s, n) [S, L] at one subsidy, read off a path; at a breakpoint, from the piece above.

    What `walk` holds is overwritten.
    """
    problem, walk = by_address(problem), by_address(walk)
    _begin(problem, walk)
    size = problem.pull_rewards.shape[0]
    piece = 0
    while piece + 1 < len(pieces) and pieces[piece + 1, BEGIN] > subsidy:
        piece += 1
    worthless = subsidy > pieces[0, BEGIN]  # above every reward nothing is worth pulling
    for s in range(size):
        walk.x[0, s] = 0.0 if worthless else pieces[piece, VALUES + s]
        walk.x[1, s] = 0.0 if worthless else pieces[piece, VALUES + size + s]
    walk.gain[0] = pieces[piece, GAIN0]
    walk.gain[1] = pieces[piece, GAIN1]
    walk.marks[AVERAGE_FORM] = pieces[piece, AVERAGE] != 0
    walk.marks[VERSION] += 1
    write_advantages(problem, walk, subsidy, advantage)
