"""Waiting times of one arm: evaluating them, and switching from one to a better one.

The subsidy problem and its symbols are told in `kernels.subsidy`, whose path these functions walk.
Lines are kept as (value at zero, slope): suffix 0 and 1.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "LOWEST_SUBSIDY",
    "NOISE",
    "PROBABILITY_NOISE",
    "better_wait",
    "has_rival",
    "next_switch",
    "pull_values",
    "scale_of",
    "switch_wait",
]

NOISE = 1e-14  # relative rounding error allowed for when values are compared
PROBABILITY_NOISE = 1e-13  # smaller probabilities count as zero when classes are told apart
LOWEST_SUBSIDY = -1e12  # an index below this is reported as minus infinity


@kernel
def scale_of(x: FloatArray, subsidy: float) -> float:
    """Size of the numbers that are added up in a comparison at this subsidy."""
    largest = 1.0 + abs(subsidy)
    for s in range(x.shape[1]):
        largest = max(largest, abs(x[0, s]), abs(x[1, s] * subsidy))
    return largest


@kernel
def pull_values(
    beliefs: FloatArray, pull_rewards: FloatArray, discount: float, average: bool,
    x: FloatArray, gain: FloatArray, f: FloatArray,
) -> None:  # fmt: skip
    """Lines f(s, n) of pulling at age n, given the unknowns x and the gain."""
    size, length = pull_rewards.shape
    for s in range(size):
        for n in range(length):
            ahead0 = 0.0
            ahead1 = 0.0
            for j in range(size):
                ahead0 += beliefs[s, n, j] * x[0, j]
                ahead1 += beliefs[s, n, j] * x[1, j]
            if average:
                f[0, s, n] = pull_rewards[s, n] + ahead0 - gain[0]
                f[1, s, n] = ahead1 - gain[1]
            else:
                f[0, s, n] = pull_rewards[s, n] + discount * ahead0
                f[1, s, n] = discount * ahead1 - 1.0


@kernel
def next_switch(
    subsidy: float, average: bool, powers: FloatArray, wait: IntArray, x: FloatArray,
    gain: FloatArray, f: FloatArray,
) -> tuple[float, int, int]:  # fmt: skip
    """Return the largest subsidy from `subsidy` down at which another waiting time takes over.

    With it the state and the waiting time; (LOWEST_SUBSIDY, -1, -1) when there is none. Waiting
    times that are as good already but gain to the left take over at once, the steepest first: the
    slopes then fall strictly, so that ties cannot make the path run in circles.
    """
    size, length = f.shape[1], f.shape[2]
    c0 = -gain[0] if average else 0.0
    c1 = 1.0 - gain[1] if average else 0.0
    following, steepest, state, new_wait = LOWEST_SUBSIDY, 0.0, -1, -1
    for s in range(size):
        x0, x1 = x[0, s], x[1, s]
        slope_noise = 4 * NOISE * (1 + length + abs(x1))
        for n in range(-1 if not average else 0, length):
            if n + 1 == wait[s]:
                continue
            if n < 0:  # never pulling
                gap0, slope = -x0, -x1
            else:
                gap0 = powers[n] * f[0, s, n] + n * c0 - x0
                slope = powers[n] * f[1, s, n] + n * c1 - x1
            # compare products first: a division for each (s, n) would cost more than all the rest
            if slope >= -slope_noise or gap0 + slope * following < 0:
                continue
            root = min(subsidy, -gap0 / slope)
            if root > following or slope < steepest:
                following, steepest, state, new_wait = root, slope, s, n + 1
    return following, state, new_wait


@kernel
def better_wait(
    subsidy: float, powers: FloatArray, x: FloatArray, gain: FloatArray, f: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Return the state and the waiting time that add most value at `subsidy`, or (-1, -1).

    For the average form. There is one only after a switch has closed a new class, since other
    states then need new ways into it; elsewhere the breakpoints see to it that waiting times are
    best.
    """
    size, length = f.shape[1], f.shape[2]
    c = subsidy - gain[0] - gain[1] * subsidy
    best, state, new_wait = 20 * NOISE * scale_of(x, subsidy), -1, -1
    for s in range(size):
        value = x[0, s] + x[1, s] * subsidy
        for n in range(length):
            gap = powers[n] * (f[0, s, n] + f[1, s, n] * subsidy) + n * c - value
            if gap > best:
                best, state, new_wait = gap, s, n + 1
    return state, new_wait


@kernel
def has_rival(
    subsidy: float, low: float, beliefs: FloatArray, wait: IntArray, x: FloatArray,
    gain: FloatArray, f: FloatArray,
) -> bool:  # fmt: skip
    """Whether a second class of states could close itself and earn just as much on this piece.

    Then the bias, and with it A, depends on more than the gain: the average form does not settle
    it. The largest set outside the recurrent class in which every state has a best waiting time
    that stays in the set is found by leaving out those that have none.
    """
    size, length = f.shape[1], f.shape[2]
    recurrent = _reached_from(_recurrent_state(0, beliefs, wait), beliefs, wait)
    rival = ~recurrent
    middle = 0.5 * (subsidy + max(low, subsidy - 1.0))
    c0, c1 = -gain[0], 1.0 - gain[1]
    noise = 20 * NOISE * scale_of(x, middle)
    changed = bool(rival.any())
    while changed:
        changed = False
        for s in range(size):
            if not rival[s]:
                continue
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
    return bool(rival.any())


@kernel
def switch_wait(
    s: int, new_wait: int, average: bool, beliefs: FloatArray, pull_rewards: FloatArray,
    powers: FloatArray, wait: IntArray, x: FloatArray, gain: FloatArray, f: FloatArray,
) -> tuple[bool, bool]:  # fmt: skip
    """Let state s wait differently and evaluate that, in place; return (solved, average form?).

    With beta = 1 the first switch that closes a class of states (they go on pulling for ever) marks
    lambda*: from there on the average form holds. In the average form a switch that closes a second
    class does so because that class has the larger gain; the others are then led into it.
    """
    size, length = pull_rewards.shape
    wait[s] = new_wait
    reference = s
    if powers[1] == 1.0:
        reaches = _reaching_closed_class_of(s, beliefs, wait)
        if reaches[s]:
            average = True
            for j in range(size):
                if not reaches[j]:
                    wait[j] = length  # until every state is likely
        elif average:
            reference = _recurrent_state(s, beliefs, wait)
    solved = _evaluate(average, reference, beliefs, pull_rewards, powers, wait, x, gain)
    pull_values(beliefs, pull_rewards, powers[1], average, x, gain, f)
    return solved, average


@kernel
def _evaluate(
    average: bool, reference: int, beliefs: FloatArray, pull_rewards: FloatArray,
    powers: FloatArray, wait: IntArray, x: FloatArray, gain: FloatArray,
) -> bool:  # fmt: skip
    """Lines of x (and of the gain, with x = 0 at `reference`) for the waiting times, in place."""
    size = len(wait)
    system = np.zeros((size, size + 2))
    for s in range(size):
        w = wait[s]
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


@kernel
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


@kernel
def _reached_from(start: int, beliefs: FloatArray, wait: IntArray) -> BoolArray:
    """Return the states that pulling for ever visits from `start`; one that never pulls ends it."""
    size = len(wait)
    reached = np.zeros(size, dtype=np.bool_)
    reached[start] = True
    stack = np.empty(size, dtype=np.int64)
    stack[0] = start
    height = 1
    while height > 0:
        height -= 1
        s = stack[height]
        if wait[s] == 0:
            continue
        for j in range(size):
            if not reached[j] and beliefs[s, wait[s] - 1, j] > PROBABILITY_NOISE:
                reached[j] = True
                stack[height] = j
                height += 1
    return reached


@kernel
def _reaching_closed_class_of(s: int, beliefs: FloatArray, wait: IntArray) -> BoolArray:
    """Return the states that can reach s, if s lies in a closed class; else all False."""
    size = len(wait)
    reaches = np.zeros(size, dtype=np.bool_)
    for j in range(size):
        reaches[j] = _reached_from(j, beliefs, wait)[s]
    for j in range(size):
        if _reached_from(s, beliefs, wait)[j] and (wait[j] == 0 or not reaches[j]):
            return np.zeros(size, dtype=np.bool_)
    return reaches


@kernel
def _recurrent_state(start: int, beliefs: FloatArray, wait: IntArray) -> int:
    """Return a state of a closed class that `start` leads to."""
    size = len(wait)
    for j in range(size):
        if (
            _reached_from(start, beliefs, wait)[j]
            and _reaching_closed_class_of(j, beliefs, wait)[j]
        ):
            return j
    return start
