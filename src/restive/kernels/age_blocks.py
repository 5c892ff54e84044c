"""Beliefs of neighbouring ages taken together: bounds that spare looking at each of them.

Beliefs of an arm that mixes slowly change little and smoothly from age to age. So ages are taken
in blocks, blocks in pairs, pairs in fours and so on: the *nodes* of a tree, those of a level laid
end to end. Within a node the belief b(s, n) is a straight line in n, middle + tilt (n - a), up to a
small rest; so what is linear in the belief, or in its steps, is bounded for a whole node at the
cost of one age.

Both sides of a comparison with these bounds are rounded, so callers leave a margin; a block that
the bounds do not settle is looked at age by age. Laws sum to one, so that any constant may be taken
off the vector y that they are multiplied with.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined, part

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = [
    "NUM_ROWS",
    "coarsest_ending_at",
    "coarsest_starting_at",
    "least_fall",
    "line_in_node",
    "summarise_nodes",
]

# Rows of an array [NUM_ROWS, S, nodes, S] by last state, node and state now: the line, the largest
# distance from it, and that of a step from one age to the next from its tilt.
MIDDLE, TILT, REST, STEP_REST = 0, 1, 2, 3
NUM_ROWS = 4


@part
def summarise_nodes(
    beliefs: FloatArray, s: int, levels: IntArray, width: int, nodes: FloatArray
) -> None:
    """Fill in the nodes of state s; those of level l begin at levels[l]."""
    length = beliefs.shape[1]
    for level in range(len(levels) - 1):
        ages = width << level
        for node in range(levels[level], levels[level + 1]):
            first = (node - levels[level]) * ages
            last = min(first + ages, length) - 1
            steps = float(max(1, last - first))
            centre = 0.5 * (first + last)
            for j in range(beliefs.shape[2]):
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


@inlined
def coarsest_ending_at(block: int, levels: IntArray) -> int:
    """Return the highest level with a node whose last block is this one; -1 without nodes."""
    level = -1
    while level + 2 < len(levels) and (block + 1) & ((1 << (level + 1)) - 1) == 0:
        level += 1
    return level


@inlined
def coarsest_starting_at(block: int, levels: IntArray) -> int:
    """Return the highest level with a node whose first block is this one; -1 without nodes."""
    level = -1
    while (
        level + 2 < len(levels)
        and block & ((1 << (level + 1)) - 1) == 0
        and block >> (level + 1) < levels[level + 2] - levels[level + 1]
    ):
        level += 1
    return level


@inlined
def line_in_node(nodes: FloatArray, s: int, node: int, y: FloatArray) -> tuple[float, float, float]:
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
def least_fall(nodes: FloatArray, s: int, node: int, y: FloatArray) -> float:
    """Return a lower bound of (b(s, n) - b(s, n + 1)).y within a node."""
    fall = 0.0
    for j in range(len(y)):
        fall -= nodes[TILT, s, node, j] * y[j]
        fall -= nodes[STEP_REST, s, node, j] * abs(y[j] - y[s])
    return fall
