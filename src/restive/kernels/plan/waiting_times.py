"""Waiting times of one arm: evaluating them, and switching from one to a better one.

`kernels.plan.subsidy` tells the subsidy problem and its symbols; these functions walk its path.
Lines are kept as (value at zero, slope): suffix 0 and 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "LOWEST_SUBSIDY",
    "NOISE",
    "PROBABILITY_NOISE",
    "SubsidyProblem",
    "SubsidyWalk",
    "has_rival",
    "pull_line",
    "pull_values",
    "scale_of",
    "switch_wait",
    "waiting_line",
]

NOISE = 1e-14  # relative rounding error allowed for when values are compared
PROBABILITY_NOISE = 1e-13  # smaller probabilities count as zero when classes are told apart
LOWEST_SUBSIDY = -1e12  # an index below this is reported as minus infinity

# What `SubsidyWalk.marks` holds.
BEGUN = 0  # whether the tables of the problem have been filled in
AVERAGE_FORM = 1  # which of the two forms of the equation holds
PIECES = 2  # rows of the path
SWITCHES = 3
INDEXABLE = 4
HAS_ZEROS = 5  # whether some belief is zero or as good as
VERSION = 6  # number of times that x has changed
WORK = 7  # products since Python called
SWITCH_STATE = 8  # the state that waits differently below this piece, -1 for none
SWITCH_WAIT = 9  # and how long
SIGN_STATE = 10  # where the search for sign changes stands, -1 before the piece is known
IMPROVING = 11  # whether waits may have become worse than others, since a class has closed
NUM_MARKS = 12

# What `SubsidyWalk.piece` holds: the largest and the least subsidy of the present piece, and the
# slope of what takes over there.
TOP, LOW, STEEPEST = 0, 1, 2


class SubsidyProblem(NamedTuple):
    """One arm, and what is tabled of it once."""

    beliefs: FloatArray  # [S, L, S]
    rewards: FloatArray  # [S]
    pull_rewards: FloatArray  # [S, L]: b(s, n).r
    powers: FloatArray  # [L + 1] of the discount


class SubsidyWalk(NamedTuple):
    """How far the path has come; kernels change the arrays in place."""

    marks: IntArray  # [NUM_MARKS]
    piece: FloatArray  # [3]
    path: FloatArray  # [room, 4 + 2 S], see kernels.plan.subsidy
    lower: FloatArray  # [S, L] the index; -inf where pulling is not best at this subsidy
    upper: FloatArray  # [S, L] the largest subsidy at which pulling is best
    wait: IntArray  # [S] waiting times, 0 for never
    x: FloatArray  # [2, S]
    gain: FloatArray  # [2]
    f: FloatArray  # [2, S, L] of the states whose `made` is the current version
    made: IntArray  # [S]
    system: FloatArray  # [S, S + 2] room for linear equations
    reached: BoolArray  # [S, S] which states are visited from which
    rival: BoolArray  # [S]
    stack: IntArray  # [S]
    ends: FloatArray  # [4, L]: lines of A at both ends of a piece, of one state
    aims: IntArray  # [2, L], see kernels.plan.sign_changes
    scale: FloatArray  # [2] size of the numbers that are added up at both ends of a piece


@part
def scale_of(x: FloatArray, subsidy: float) -> float:
    """Size of the numbers that are added up in a comparison at this subsidy."""
    largest = 1.0 + abs(subsidy)
    for s in range(x.shape[1]):
        largest = max(largest, abs(x[0, s]), abs(x[1, s] * subsidy))
    return largest


@inlined
def waiting_line(walk: SubsidyWalk) -> tuple[float, float]:
    """Line c of one step of waiting."""
    if walk.marks[AVERAGE_FORM]:
        return -walk.gain[0], 1.0 - walk.gain[1]
    return 0.0, 0.0


@inlined
def pull_line(problem: SubsidyProblem, walk: SubsidyWalk, s: int, n: int) -> tuple[float, float]:
    """Line f(s, n) of pulling at an age (counted from 0)."""
    beliefs, x = problem.beliefs, walk.x
    ahead0 = 0.0
    ahead1 = 0.0
    for j in range(x.shape[1]):
        ahead0 += beliefs[s, n, j] * x[0, j]
        ahead1 += beliefs[s, n, j] * x[1, j]
    reward = problem.pull_rewards[s, n]
    if walk.marks[AVERAGE_FORM]:
        return reward + ahead0 - walk.gain[0], ahead1 - walk.gain[1]
    discount = problem.powers[1]
    return reward + discount * ahead0, discount * ahead1 - 1.0


@part
def pull_values(problem: SubsidyProblem, walk: SubsidyWalk, s: int) -> None:
    """See to it that the lines f(s, n) of all ages are those of the present x."""
    marks, f = walk.marks, walk.f
    if walk.made[s] == marks[VERSION]:
        return
    walk.made[s] = marks[VERSION]
    marks[WORK] += f.shape[1] * f.shape[2]
    for n in range(f.shape[2]):
        f[0, s, n], f[1, s, n] = pull_line(problem, walk, s, n)


@part
def has_rival(problem: SubsidyProblem, walk: SubsidyWalk) -> bool:
    """Whether a second class of states could close itself and earn just as much on this piece.

    Then the bias, and with it A, depends on more than the gain: the average form does not settle
    it. The largest set outside the recurrent class in which every state has a best waiting time
    that stays in the set is found by leaving out those that have none.
    """
    beliefs, x, gain, f = problem.beliefs, walk.x, walk.gain, walk.f
    size, length = f.shape[1], f.shape[2]
    rival = walk.rival
    _find_reached(problem, walk)
    recurrent = _recurrent_state(size - 1, walk)
    changed = False
    for s in range(size):
        rival[s] = not walk.reached[recurrent, s]
        changed |= rival[s]
    middle = 0.5 * (walk.piece[TOP] + max(walk.piece[LOW], walk.piece[TOP] - 1.0))
    c0, c1 = -gain[0], 1.0 - gain[1]
    noise = 20 * NOISE * scale_of(x, middle)
    while changed:
        changed = False
        for s in range(size):
            if not rival[s]:
                continue
            pull_values(problem, walk, s)
            stays = False
            for n in range(length):
                slope = f[1, s, n] + n * c1 - x[1, s]
                gap = f[0, s, n] + n * c0 - x[0, s] + slope * middle
                if abs(gap) > noise or abs(slope) > 4 * NOISE * (1 + length + abs(x[1, s])):
                    continue
                stays = True
                for j in range(size):
                    if not rival[j] and beliefs[s, n, j] > PROBABILITY_NOISE:
                        stays = False
                        break
                if stays:
                    break
            if not stays:
                rival[s] = False
                changed = True
    found = False
    for s in range(size):
        found |= rival[s]
    return found


@part
def switch_wait(problem: SubsidyProblem, walk: SubsidyWalk) -> bool:
    """Let a state wait as `marks` say and evaluate that; False where it cannot be solved.

    With beta = 1 the first switch that closes a class of states (they go on pulling for ever) marks
    lambda*: from there on the average form holds. In the average form a switch that closes a second
    class does so because that class has the larger gain; the others are then led into it, and
    `marks` get the next switch.
    """
    wait, marks = walk.wait, walk.marks
    size, length = problem.pull_rewards.shape
    s = marks[SWITCH_STATE]
    wait[s] = marks[SWITCH_WAIT]
    marks[SWITCH_STATE] = -1
    reference = s
    if problem.powers[1] == 1.0:
        _find_reached(problem, walk)
        if _is_recurrent(s, walk):
            if marks[AVERAGE_FORM] == 0:
                marks[IMPROVING] = 1
            marks[AVERAGE_FORM] = 1
            for j in range(size):
                if not walk.reached[j, s]:
                    wait[j] = length  # until every state is likely
                    marks[IMPROVING] = 1
        elif marks[AVERAGE_FORM] != 0:
            reference = _recurrent_state(s, walk)
    marks[VERSION] += 1
    solved = _evaluate(problem, walk, reference)
    if solved and marks[IMPROVING]:
        _find_better_wait(problem, walk)
        marks[IMPROVING] = marks[SWITCH_STATE] >= 0
    return solved


@part
def _find_better_wait(problem: SubsidyProblem, walk: SubsidyWalk) -> None:
    """Write down the state and the wait that add most value at the top of the piece, if any do.

    For the average form. There are some only after a switch has closed a new class, since other
    states then need new ways into it; elsewhere the breakpoints see to it that waits are best.
    """
    x, gain, f, powers = walk.x, walk.gain, walk.f, problem.powers
    size, length = f.shape[1], f.shape[2]
    subsidy = walk.piece[TOP]
    c = subsidy - gain[0] - gain[1] * subsidy
    noise = NOISE * scale_of(x, subsidy)
    best = 0.0
    for s in range(size):
        value = x[0, s] + x[1, s] * subsidy
        pull_values(problem, walk, s)
        for n in range(length):
            gap = powers[n] * (f[0, s, n] + f[1, s, n] * subsidy) + n * c - value
            if gap > best and gap > (20 + n) * noise:  # c is rounded, and counts n times
                best = gap
                walk.marks[SWITCH_STATE], walk.marks[SWITCH_WAIT] = s, n + 1


@part
def _evaluate(problem: SubsidyProblem, walk: SubsidyWalk, reference: int) -> bool:
    """Lines of x (and of the gain, with x = 0 at `reference`) for the waiting times, in place."""
    beliefs, pull_rewards, powers = problem.beliefs, problem.pull_rewards, problem.powers
    wait, x, gain, system = walk.wait, walk.x, walk.gain, walk.system
    average = walk.marks[AVERAGE_FORM] != 0
    size = len(wait)
    for s in range(size):
        w = wait[s]
        for j in range(size + 2):
            system[s, j] = 0.0
        system[s, s] = 1.0
        if w == 0:
            continue
        factor = powers[w]
        for j in range(size):
            system[s, j] -= factor * beliefs[s, w - 1, j]
        if average:
            system[s, size] = pull_rewards[s, w - 1]
            system[s, size + 1] = w - 1.0
        else:
            system[s, size] = powers[w - 1] * pull_rewards[s, w - 1]
            system[s, size + 1] = -powers[w - 1]
    if average:
        for s in range(size):
            system[s, reference] = wait[s]
    if not _solve(system):
        return False
    for line in range(2):
        for s in range(size):
            x[line, s] = system[s, size + line]
        gain[line] = 0.0
        if average:
            gain[line] = x[line, reference]
            x[line, reference] = 0.0
    return True


@part
def _solve(system: FloatArray) -> bool:
    """Gauss-Jordan elimination with row pivots; the last two columns become the solutions."""
    size, width = system.shape
    for column in range(size):
        pivot = column
        for row in range(column + 1, size):
            if abs(system[row, column]) > abs(system[pivot, column]):
                pivot = row
        if abs(system[pivot, column]) < 1e-300:
            return False
        if pivot != column:
            for j in range(width):
                system[column, j], system[pivot, j] = system[pivot, j], system[column, j]
        inverse = 1.0 / system[column, column]
        for j in range(column, width):
            system[column, j] *= inverse
        for row in range(size):
            factor = system[row, column]
            if row != column and factor != 0.0:
                for j in range(column, width):
                    system[row, j] -= factor * system[column, j]
    return True


@part
def _find_reached(problem: SubsidyProblem, walk: SubsidyWalk) -> None:
    """Mark which states pulling for ever visits from which; one that never pulls ends it."""
    wait, stack, reached = walk.wait, walk.stack, walk.reached
    size = len(wait)
    for start in range(size):
        for j in range(size):
            reached[start, j] = start == j
        stack[0] = start
        height = 1
        while height > 0:
            height -= 1
            s = stack[height]
            if wait[s] == 0:
                continue
            for j in range(size):
                if not reached[start, j] and problem.beliefs[s, wait[s] - 1, j] > PROBABILITY_NOISE:
                    reached[start, j] = True
                    stack[height] = j
                    height += 1


@inlined
def _is_recurrent(s: int, walk: SubsidyWalk) -> bool:
    """Whether s lies in a closed class, given who is reached from where."""
    closed = True
    for j in range(len(walk.wait)):
        if walk.reached[s, j] and (walk.wait[j] == 0 or not walk.reached[j, s]):
            closed = False
    return closed


@inlined
def _recurrent_state(start: int, walk: SubsidyWalk) -> int:
    """Return the first state of a closed class that `start` leads to."""
    for j in range(len(walk.wait)):
        if walk.reached[start, j] and _is_recurrent(j, walk):
            return j
    return start
