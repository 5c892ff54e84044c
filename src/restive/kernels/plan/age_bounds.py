"""Ages passed over together: bounds that spare looking at each age of an arm that mixes slowly.

The subsidy problem and its symbols are told in `kernels.subsidy`. Beliefs of such an arm change
little and smoothly from age to age. So ages are taken in blocks, blocks in pairs, pairs in fours
and so on: the *nodes* of a tree, those of a level laid end to end. Within a node the belief b(s, n)
is a straight line in n, middle + tilt (n - a), up to a small rest; so what is linear in the belief,
or in its steps, is bounded for a whole node at the cost of one age.

Both sides of a comparison with these bounds are rounded, so they leave a margin; a block that the
bounds do not settle is looked at age by age. Laws sum to one, so that any constant may be taken off
the vector y that they are multiplied with.

Arms of few ages have no shortcuts: kernels are then given None, and compiled without them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, part
from restive.kernels.plan.waiting_times import (
    AVERAGE_FORM,
    NOISE,
    SubsidyProblem,
    SubsidyWalk,
    pull_line,
    scale_of,
    worth_of_waiting,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "NUM_ROWS",
    "Shortcuts",
    "aim_shortcuts",
    "count_turn",
    "passed_later",
    "passed_turns",
    "passed_waits",
    "summarise_ages",
]

# Rows of `Shortcuts.nodes`: the line, the largest distance from it, and that of a step from one age
# to the next from its tilt.
MIDDLE, TILT, REST, STEP_REST = 0, 1, 2, 3
NUM_ROWS = 4

# Subsidies at which nodes are bounded: both ends of the piece (0 and 1), and one in between.
BETWEEN = 2


class Shortcuts(NamedTuple):
    """Nodes of ages, and the values with which they are bounded."""

    nodes: FloatArray  # [NUM_ROWS, S, nodes, S] by last state, node and state now
    levels: IntArray  # [levels + 1] where the nodes of each level begin
    num_active: IntArray  # [S, nodes] at how many ages pulling is best
    y: FloatArray  # [3, S] f(s, n) is b(s, n).y less the gain (average form) or the subsidy
    subsidy: FloatArray  # [3]
    margin: FloatArray  # [3] how far bounds must be from zero to say what rounded numbers would


@part
def summarise_ages(beliefs: FloatArray, shortcuts: Shortcuts, width: int) -> None:
    """Fill in the nodes of blocks of `width` ages."""
    nodes, levels = shortcuts.nodes, shortcuts.levels
    size, length = beliefs.shape[0], beliefs.shape[1]
    for level in range(len(levels) - 1):
        ages = width << level
        for node in range(levels[level], levels[level + 1]):
            first = (node - levels[level]) * ages
            last = min(first + ages, length) - 1
            steps = float(max(1, last - first))
            centre = 0.5 * (first + last)
            for s in range(size):
                shortcuts.num_active[s, node] = 0
                for j in range(size):
                    start, end = beliefs[s, first, j], beliefs[s, last, j]
                    middle, tilt = 0.5 * (start + end), (end - start) / steps
                    rest = 0.0
                    step_rest = 0.0
                    for n in range(first, last + 1):
                        rest = max(rest, abs(beliefs[s, n, j] - middle - tilt * (n - centre)))
                    for n in range(first, last):
                        step = beliefs[s, n + 1, j] - beliefs[s, n, j]
                        step_rest = max(step_rest, abs(step - tilt))
                    nodes[MIDDLE, s, node, j] = middle
                    nodes[TILT, s, node, j] = tilt
                    nodes[REST, s, node, j] = rest
                    nodes[STEP_REST, s, node, j] = step_rest


@part
def aim_shortcuts(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, at: int, subsidy: float
) -> None:
    """Let nodes be bounded at a subsidy."""
    for j in range(len(problem.rewards)):
        ahead = walk.x[0, j] + walk.x[1, j] * subsidy
        shortcuts.y[at, j] = problem.rewards[j] + problem.powers[1] * ahead
    shortcuts.subsidy[at] = subsidy
    scale = scale_of(walk.x, subsidy)
    shortcuts.margin[at] = NOISE * (2 * scale + walk.f.shape[2] * (1 + abs(subsidy)))


@part
def count_turn(shortcuts: Shortcuts, s: int, m: int, index: float) -> None:
    """Count an age of block m that has turned on, or off if -inf, in every node that holds it."""
    levels = shortcuts.levels
    change = -1 if index == -np.inf else 1
    for level in range(len(levels) - 1):
        node = levels[level] + (m >> level)
        if node < levels[level + 1]:
            shortcuts.num_active[s, node] += change


@part
def passed_waits(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, m: int
) -> int:
    """Return how many blocks from m on hold no wait that adds to the value of state s."""
    levels = shortcuts.levels
    level = -1
    while (
        level + 2 < len(levels)
        and m & ((1 << (level + 1)) - 1) == 0
        and m >> (level + 1) < levels[level + 2] - levels[level + 1]
    ):
        level += 1
    while level >= 0:
        if _most_gained(problem, shortcuts, walk, s, m, level) < -shortcuts.margin[BETWEEN]:
            return 1 << level
        level -= 1
    return 0


@part
def passed_turns(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, m: int
) -> int:
    """Return how many blocks up to m, all active or all passive, stay so throughout the piece.

    `walk.later`, at both ends the line of the best that can be done beyond m, is led past them.
    Passive ages are compared with one line of waiting, that of the top: so A < 0 in between, too.
    """
    later, later_aim = walk.later, walk.later_aim
    for level in range(_coarsest_ending_at(m, shortcuts.levels), -1, -1):
        node, first, last = _node_ending_at(shortcuts, walk, m, level)
        ages = last + 1 - first
        active = shortcuts.num_active[s, node]
        stays = active * (ages - active) == 0  # all or none
        for end in range(2):
            line = end if active else 0
            value = later[line, 0] + later[line, 1] * shortcuts.subsidy[end]
            other = later[line, 0] + later[line, 1] * shortcuts.subsidy[1 - end]
            if stays and active:
                stays = _surely_active(problem, shortcuts, walk, s, node, first, last, end, value)
            elif stays:
                pulls_later = value > 0 and other > 0
                stays = _surely_passive(
                    problem, shortcuts, walk, s, node, ages, end, pulls_later, value
                )
        if stays:
            for end in range(2):
                later[end, 0], later[end, 1] = _led_past(
                    problem, walk, s, first, ages, active > 0, later[end, 0], later[end, 1]
                )
                later_aim[end] = first if active else later_aim[end]
            return 1 << level
    return 0


@part
def passed_later(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, m: int, least: int,
    later0: float, later1: float,
) -> tuple[int, float, float]:  # fmt: skip
    """Return how many blocks up to m, but not below `least`, are active or passive as a whole.

    With them the line of the best that can be done, led past them, at the subsidy BETWEEN.
    """
    value = later0 + later1 * shortcuts.subsidy[BETWEEN]
    for level in range(_coarsest_ending_at(m, shortcuts.levels), -1, -1):
        node, first, last = _node_ending_at(shortcuts, walk, m, level)
        if m + 1 - (1 << level) < least:
            continue
        ages = last + 1 - first
        active = _surely_active(problem, shortcuts, walk, s, node, first, last, BETWEEN, value)
        if active or _surely_passive(
            problem, shortcuts, walk, s, node, ages, BETWEEN, value > 0, value
        ):
            later0, later1 = _led_past(problem, walk, s, first, ages, active, later0, later1)
            return 1 << level, later0, later1
    return 0, later0, later1


@inlined
def _coarsest_ending_at(m: int, levels: IntArray) -> int:
    """Return the highest level with a node whose last block is m."""
    level = 0
    while level + 2 < len(levels) and (m + 1) & ((2 << level) - 1) == 0:
        level += 1
    return level


@inlined
def _node_ending_at(
    shortcuts: Shortcuts, walk: SubsidyWalk, m: int, level: int
) -> tuple[int, int, int]:
    """Return the node of a level whose last block is m, its first age and its last."""
    width, length = walk.aims.shape[1], walk.f.shape[2]
    first = ((m >> level) << level) * width
    return shortcuts.levels[level] + (m >> level), first, min((m + 1) * width, length) - 1


@inlined
def _led_past(
    problem: SubsidyProblem, walk: SubsidyWalk, s: int, first: int, ages: int, active: bool,
    later0: float, later1: float,
) -> tuple[float, float]:  # fmt: skip
    """Lead the line of the best that can be done past a node from `first` on."""
    if active:
        return pull_line(problem, walk, s, first)
    power = problem.powers[ages]
    c0, c1 = worth_of_waiting(walk)
    return power * later0 + ages * c0, power * later1 + ages * c1


@inlined
def _line_in_node(
    nodes: FloatArray, s: int, node: int, y: FloatArray
) -> tuple[float, float, float]:
    """Return b(s, n).y in the middle of a node, its slope in n, and how far it can lie off."""
    middle = 0.0
    tilt = 0.0
    rest = 0.0
    for j in range(len(y)):
        middle += nodes[MIDDLE, s, node, j] * y[j]
        tilt += nodes[TILT, s, node, j] * y[j]
        rest += nodes[REST, s, node, j] * abs(y[j] - y[s])
    return middle, tilt, rest


@inlined
def _most_gained(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, m: int, level: int
) -> float:
    """Return a bound on what any wait in a node adds to the value of state s."""
    width, length = walk.aims.shape[1], walk.f.shape[2]
    first = m * width
    last = min(first + (width << level), length) - 1
    node = shortcuts.levels[level] + (m >> level)
    subsidy = shortcuts.subsidy[BETWEEN]
    middle, tilt, rest = _line_in_node(shortcuts.nodes, s, node, shortcuts.y[BETWEEN])
    half = 0.5 * (last - first)
    value = walk.x[0, s] + walk.x[1, s] * subsidy
    if walk.marks[AVERAGE_FORM]:
        gain = walk.gain[0] + walk.gain[1] * subsidy
        wait = subsidy - gain
        most = middle + half * abs(tilt + wait) + rest - gain + 0.5 * (first + last) * wait
        return float(most - value)
    most = middle + half * abs(tilt) + rest - subsidy
    return float(most * problem.powers[first if most > 0 else last] - value)


@part
def _surely_active(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, node: int,
    first: int, last: int, at: int, later: float,
) -> bool:  # fmt: skip
    """Whether A > 0 at all ages of a node for sure, given the value of waiting beyond it."""
    nodes, y, subsidy = shortcuts.nodes, shortcuts.y[at], shortcuts.subsidy[at]
    discount = problem.powers[1]
    c0, c1 = worth_of_waiting(walk)
    wait = c0 + c1 * subsidy
    least = -wait
    for j in range(len(y)):  # (b(s, n) - b(s, n + 1)).y
        least -= nodes[TILT, s, node, j] * y[j]
        least -= nodes[STEP_REST, s, node, j] * abs(y[j] - y[s])
    if discount < 1:
        middle, tilt, rest = _line_in_node(nodes, s, node, y)
        least += (1 - discount) * (middle - 0.5 * (last - first) * abs(tilt) - rest - subsidy)
    if least <= shortcuts.margin[at]:
        return False
    f0, f1 = pull_line(problem, walk, s, last)
    return bool(f0 + f1 * subsidy - wait - discount * later > shortcuts.margin[at])


@part
def _surely_passive(
    problem: SubsidyProblem, shortcuts: Shortcuts, walk: SubsidyWalk, s: int, node: int,
    ages: int, at: int, pulls_later: bool, later: float,
) -> bool:  # fmt: skip
    """Whether A < 0 at all ages of a node for sure, given the worth of one way of waiting."""
    subsidy = shortcuts.subsidy[at]
    half = 0.5 * (ages - 1)
    middle, tilt, rest = _line_in_node(shortcuts.nodes, s, node, shortcuts.y[at])
    if walk.marks[AVERAGE_FORM]:
        gain = walk.gain[0] + walk.gain[1] * subsidy
        wait = subsidy - gain
        most = middle + half * abs(tilt + wait) + rest - gain - (half + 1) * wait - later
    else:
        most = middle + half * abs(tilt) + rest - subsidy
        if pulls_later:  # else compare with never pulling
            most -= problem.powers[ages] * later
    return bool(most < -shortcuts.margin[at])
