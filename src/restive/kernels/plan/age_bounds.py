"""Ages passed over together: bounds that spare looking at each age of an arm that mixes slowly.

`kernels.plan.subsidy` tells the subsidy problem and its symbols. Beliefs of such an arm change
little and smoothly from age to age. So ages are taken in blocks, blocks in pairs, pairs in fours
and so on: the *nodes* of a tree, those of a level laid end to end. Within a node the belief b(s, n)
is a straight line in n, middle + tilt (n - a), up to a small rest; so what is linear in the belief,
or in its steps, is bounded for a whole node at the cost of one age.

Both sides of a comparison with these bounds are rounded, so they leave a margin; a block that the
bounds do not settle is looked at age by age. Laws sum to one, so that any constant may be taken off
the vector y that they are multiplied with.

Arms of few ages have no bounds: kernels are then given None, and compiled without them.
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
    waiting_line,
)

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "NUM_ROWS",
    "AgeBounds",
    "aim_bounds",
    "count_sign_change",
    "passed_later",
    "passed_of_one_sign",
    "passed_waits",
    "summarise_ages",
]

# Rows of `AgeBounds.nodes`: the line, the largest distance from it, and that of a step from one age
# to the next from its tilt.
MIDDLE, TILT, REST, STEP_REST = 0, 1, 2, 3
NUM_ROWS = 4

# Subsidies at which nodes are bounded: both ends of the piece (0 and 1), and one in between.
BETWEEN = 2


class Node(NamedTuple):
    """Ages that are bounded together."""

    number: int
    first: int  # age
    last: int


class AgeBounds(NamedTuple):
    """Nodes of ages, and the values with which they are bounded."""

    nodes: FloatArray  # [NUM_ROWS, S, nodes, S] by last state, node and state now
    levels: IntArray  # [levels + 1] where the nodes of each level begin
    num_active: IntArray  # [S, nodes] at how many ages pulling is best
    y: FloatArray  # [3, S] f(s, n) is b(s, n).y less the gain (average form) or the subsidy
    subsidy: FloatArray  # [3]
    margin: FloatArray  # [3] how far bounds must be from zero to say what rounded numbers would


@part
def summarise_ages(beliefs: FloatArray, bounds: AgeBounds, width: int) -> None:
    """Fill in the nodes of blocks of `width` ages."""
    nodes, levels = bounds.nodes, bounds.levels
    size, length = beliefs.shape[0], beliefs.shape[1]
    for level in range(len(levels) - 1):
        ages = width << level
        for node in range(levels[level], levels[level + 1]):
            first = (node - levels[level]) * ages
            last = min(first + ages, length) - 1
            steps = float(max(1, last - first))
            centre = 0.5 * (first + last)
            for s in range(size):
                bounds.num_active[s, node] = 0
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
def aim_bounds(
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, at: int, subsidy: float
) -> None:
    """Let nodes be bounded at a subsidy."""
    for j in range(len(problem.rewards)):
        ahead = walk.x[0, j] + walk.x[1, j] * subsidy
        bounds.y[at, j] = problem.rewards[j] + problem.powers[1] * ahead
    bounds.subsidy[at] = subsidy
    scale = scale_of(walk.x, subsidy)
    bounds.margin[at] = NOISE * (2 * scale + walk.f.shape[2] * (1 + abs(subsidy)))


@part
def count_sign_change(bounds: AgeBounds, s: int, m: int, index: float) -> None:
    """Count an age of block m that turns active, or passive if -inf, in every node with it."""
    levels = bounds.levels
    change = -1 if index == -np.inf else 1
    for level in range(len(levels) - 1):
        node = levels[level] + (m >> level)
        if node < levels[level + 1]:
            bounds.num_active[s, node] += change


@part
def passed_waits(
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, m: int
) -> int:
    """Return how many blocks from m on hold no wait that adds to the value of state s."""
    levels = bounds.levels
    level = -1
    while (
        level + 2 < len(levels)
        and m & ((1 << (level + 1)) - 1) == 0
        and m >> (level + 1) < levels[level + 2] - levels[level + 1]
    ):
        level += 1
    while level >= 0:
        if _most_gained(problem, bounds, walk, s, m, level) < -bounds.margin[BETWEEN]:
            return 1 << level
        level -= 1
    return 0


@part
def passed_of_one_sign(
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, m: int
) -> int:
    """Return how many blocks up to m, all active or all passive, stay so throughout the piece.

    `walk.later`, at both ends the line of the best that can be done beyond m, is led past them.
    Passive ages are compared with one line of waiting, that of the top: so A < 0 in between, too.
    """
    later, later_aim = walk.later, walk.later_aim
    for level in range(_coarsest_ending_at(m, bounds.levels), -1, -1):
        node = _node_ending_at(bounds, walk, m, level)
        ages = node.last + 1 - node.first
        active = bounds.num_active[s, node.number]
        stays = active * (ages - active) == 0  # all or none
        for end in range(2):
            line = end if active else 0
            value = later[line, 0] + later[line, 1] * bounds.subsidy[end]
            other = later[line, 0] + later[line, 1] * bounds.subsidy[1 - end]
            if stays and active:
                stays = _surely_active(problem, bounds, walk, s, node, end, value)
            elif stays:
                if not walk.marks[AVERAGE_FORM] and min(value, other) <= 0:
                    value = 0.0  # of never pulling
                stays = _surely_passive(problem, bounds, walk, s, node, end, value)
        if stays:
            for end in range(2):
                later[end, 0], later[end, 1] = _led_past(
                    problem, walk, s, node, active > 0, later[end, 0], later[end, 1]
                )
                later_aim[end] = node.first if active else later_aim[end]
            return 1 << level
    return 0


@part
def passed_later(
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, m: int, least: int,
    later: tuple[float, float],
) -> tuple[int, float, float]:  # fmt: skip
    """Return how many blocks up to m, but not below `least`, are active or passive as a whole.

    With them the line of the best that can be done, led past them, at the subsidy BETWEEN.
    """
    later0, later1 = later
    value = later0 + later1 * bounds.subsidy[BETWEEN]
    for level in range(_coarsest_ending_at(m, bounds.levels), -1, -1):
        node = _node_ending_at(bounds, walk, m, level)
        if m + 1 - (1 << level) < least:
            continue
        active = _surely_active(problem, bounds, walk, s, node, BETWEEN, value)
        waited = value if walk.marks[AVERAGE_FORM] or value > 0 else 0.0
        if active or _surely_passive(problem, bounds, walk, s, node, BETWEEN, waited):
            later0, later1 = _led_past(problem, walk, s, node, active, later0, later1)
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
def _node_ending_at(bounds: AgeBounds, walk: SubsidyWalk, m: int, level: int) -> Node:
    """Return the node of a level whose last block is m."""
    width, length = walk.aims.shape[1], walk.f.shape[2]
    first = ((m >> level) << level) * width
    return Node(bounds.levels[level] + (m >> level), first, min((m + 1) * width, length) - 1)


@inlined
def _led_past(
    problem: SubsidyProblem, walk: SubsidyWalk, s: int, node: Node, active: bool, later0: float,
    later1: float,
) -> tuple[float, float]:  # fmt: skip
    """Lead the line of the best that can be done back past a node."""
    if active:
        return pull_line(problem, walk, s, node.first)
    ages = node.last + 1 - node.first
    power = problem.powers[ages]
    c0, c1 = waiting_line(walk)
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
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, m: int, level: int
) -> float:
    """Return a bound on what any wait in a node adds to the value of state s."""
    width, length = walk.aims.shape[1], walk.f.shape[2]
    first = m * width
    last = min(first + (width << level), length) - 1
    node = bounds.levels[level] + (m >> level)
    subsidy = bounds.subsidy[BETWEEN]
    middle, tilt, rest = _line_in_node(bounds.nodes, s, node, bounds.y[BETWEEN])
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
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, node: Node, at: int,
    later: float,
) -> bool:  # fmt: skip
    """Whether A > 0 at all ages of a node for sure, given the value of waiting beyond it."""
    nodes, y, subsidy = bounds.nodes, bounds.y[at], bounds.subsidy[at]
    discount = problem.powers[1]
    c0, c1 = waiting_line(walk)
    wait = c0 + c1 * subsidy
    least = -wait
    for j in range(len(y)):  # (b(s, n) - b(s, n + 1)).y
        least -= nodes[TILT, s, node.number, j] * y[j]
        least -= nodes[STEP_REST, s, node.number, j] * abs(y[j] - y[s])
    if discount < 1:
        middle, tilt, rest = _line_in_node(nodes, s, node.number, y)
        half = 0.5 * (node.last - node.first)
        least += (1 - discount) * (middle - half * abs(tilt) - rest - subsidy)
    if least <= bounds.margin[at]:
        return False
    f0, f1 = pull_line(problem, walk, s, node.last)
    return bool(f0 + f1 * subsidy - wait - discount * later > bounds.margin[at])


@part
def _surely_passive(
    problem: SubsidyProblem, bounds: AgeBounds, walk: SubsidyWalk, s: int, node: Node, at: int,
    later: float,
) -> bool:  # fmt: skip
    """Whether A < 0 at all ages of a node for sure, given the value of one way of waiting.

    In the stopping form that is at least 0, that of never pulling.
    """
    subsidy = bounds.subsidy[at]
    ages = node.last + 1 - node.first
    half = 0.5 * (ages - 1)
    middle, tilt, rest = _line_in_node(bounds.nodes, s, node.number, bounds.y[at])
    if walk.marks[AVERAGE_FORM]:
        gain = walk.gain[0] + walk.gain[1] * subsidy
        wait = subsidy - gain
        most = middle + half * abs(tilt + wait) + rest - gain - (half + 1) * wait - later
    else:
        most = middle + half * abs(tilt) + rest - subsidy - problem.powers[ages] * later
    return bool(most < -bounds.margin[at])
