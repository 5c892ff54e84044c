"""Normal random numbers by the ziggurat (Marsaglia and Tsang 2000), whose law is exact.

The area under exp(-x^2 / 2), x >= 0, is covered by 256 layers of equal area. Layer i >= 1 is a
rectangle from 0 to EDGES[i], between HEIGHTS[i] and HEIGHTS[i + 1]; layer 0 lies below them and
holds the tail beyond EDGES[1]. A layer is picked and a point across it: most points are left of the
next layer's edge, so below the curve, and cost one random number and no logarithm.
"""

from __future__ import annotations

from math import erfc, exp, log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined
from restive.kernels.random import bits_at, uniform_at

__all__ = ["draw_normal"]

LAYERS = 256
TAIL = 3.6541528853610088  # where the tail begins: with it, the top layer ends at height 1


def _ziggurat() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Edges [LAYERS + 1] and heights [LAYERS + 1]."""
    height = exp(-TAIL * TAIL / 2)
    area = TAIL * height + sqrt(pi / 2) * erfc(TAIL / sqrt(2))
    edges = [area / height, TAIL]  # layer 0 as wide as if it were a rectangle
    for _ in range(LAYERS - 2):
        height += area / edges[-1]
        edges.append(sqrt(-2 * log(height)))
    edges.append(0.0)
    return np.array(edges), np.array([exp(-x * x / 2) for x in edges])


EDGES, HEIGHTS = _ziggurat()


@inlined
def draw_normal(key: np.uint64, draws: int) -> tuple[float, int]:
    """Draw a normal number, and the place of the stream's first number that was not used."""
    layer, x = _across(key, draws)
    draws += 1
    if abs(x) >= EDGES[layer + np.uint64(1)]:
        x, draws = _draw_outside(key, draws, layer, x)
    return x, draws


@inlined
def _across(key: np.uint64, draws: int) -> tuple[np.uint64, float]:
    """Pick a layer by the lowest bits of a number, and a point across it by the highest."""
    bits = bits_at(key, draws)
    layer = bits & np.uint64(LAYERS - 1)
    return layer, (float(bits >> np.uint64(11)) * 2.0**-52 - 1) * EDGES[layer]


@hot_kernel
def _draw_outside(key: np.uint64, draws: int, layer: np.uint64, x: float) -> tuple[float, int]:
    """Go on where the point is not left of the next layer's edge; one in a hundred is not."""
    while abs(x) >= EDGES[layer + np.uint64(1)]:
        if layer == 0:
            beyond, draws = _draw_tail(key, draws)
            return (TAIL + beyond if x > 0 else -TAIL - beyond), draws
        low, high = HEIGHTS[layer], HEIGHTS[layer + np.uint64(1)]
        height = low + (high - low) * uniform_at(key, draws)
        draws += 1
        if height < exp(-x * x / 2):
            break
        layer, x = _across(key, draws)
        draws += 1
    return x, draws


@hot_kernel
def _draw_tail(key: np.uint64, draws: int) -> tuple[float, int]:
    """Draw how far beyond TAIL a normal number is that is beyond it (Marsaglia 1964)."""
    beyond, other = 1.0, 0.0
    while 2 * other <= beyond * beyond:
        beyond = -log(1 - uniform_at(key, draws)) / TAIL
        other = -log(1 - uniform_at(key, draws + 1))
        draws += 2
    return beyond, draws
