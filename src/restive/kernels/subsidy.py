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

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = ["advantage_on_path", "follow_subsidy"]

NOISE = 1e-14  # relative rounding error allowed for when values are compared
REVERSAL = 1e-10  # a fall of A below zero, relative, that is a reversal and no rounding error
PROBABILITY_NOISE = 1e-13  # smaller probabilities count as zero when classes are told apart
LOWEST_SUBSIDY = -1e12  # an index below this is reported as minus infinity

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
    and how it ended: DONE, STUCK (more switches than allowed) or AMBIGUOUS (see `_has_rival`).
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
    _pull_values(beliefs, pull_rewards, discount, average, x, gain, f)
    pieces = 0
    for _ in range(most_switches):
        low, state, new_wait = _next_switch(subsidy, average, powers, wait, x, gain, f)
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
            if average and has_zeros and _has_rival(subsidy, low, beliefs, wait, x, gain, f):
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
            solved, average = _switch(
                state, new_wait, average, beliefs, pull_rewards, powers, wait, x, gain, f
            )
            if not solved:
                return index, upper, indexable, path[:pieces], STUCK
            if not average:
                break  # nothing jumps, so the breakpoints see to everything
            state, new_wait = _better_wait(subsidy, powers, x, gain, f)
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
    scale = _scale(x, subsidy)
    _advantages(subsidy, True, average, gain, f, discount, scale, top_lines, top_choice)
    _advantages(low, False, average, gain, f, discount, _scale(x, low), low_lines, low_choice)
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
            elif at_top < -REVERSAL * scale or at_low < -REVERSAL * _scale(x, low):
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
    _pull_values(beliefs, pull_rewards, discount, average, x, gain, f)
    lines = np.empty((2, size, length))
    choice = np.empty((size, length), dtype=np.int64)
    _advantages(subsidy, True, average, gain, f, discount, _scale(x, subsidy), lines, choice)
    advantage: FloatArray = lines[0] + lines[1] * subsidy
    return advantage


@kernel
def _scale(x: FloatArray, subsidy: float) -> float:
    """Size of the numbers that are added up in a comparison at this subsidy."""
    largest = 1.0 + abs(subsidy)
    for s in range(x.shape[1]):
        largest = max(largest, abs(x[0, s]), abs(x[1, s] * subsidy))
    return largest


@kernel
def _pull_values(
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


@kernel
def _next_switch(
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
def _better_wait(
    subsidy: float, powers: FloatArray, x: FloatArray, gain: FloatArray, f: FloatArray,
) -> tuple[int, int]:  # fmt: skip
    """Return the state and the waiting time that add most value at `subsidy`, or (-1, -1).

    For the average form. There is one only after a switch has closed a new class, since other
    states then need new ways into it; elsewhere the breakpoints see to it that waiting times are
    best.
    """
    size, length = f.shape[1], f.shape[2]
    c = subsidy - gain[0] - gain[1] * subsidy
    best, state, new_wait = 20 * NOISE * _scale(x, subsidy), -1, -1
    for s in range(size):
        value = x[0, s] + x[1, s] * subsidy
        for n in range(length):
            gap = powers[n] * (f[0, s, n] + f[1, s, n] * subsidy) + n * c - value
            if gap > best:
                best, state, new_wait = gap, s, n + 1
    return state, new_wait


@kernel
def _has_rival(
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
    noise = 20 * NOISE * _scale(x, middle)
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
def _switch(
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
    _pull_values(beliefs, pull_rewards, powers[1], average, x, gain, f)
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
