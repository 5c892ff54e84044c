"""Elementary functions and normal random numbers, the same bits on every machine.

Logarithm, exponential and turn of a circle are made of sums, products and divisions alone. The
functions of the C library differ in their last bits from machine to machine, and a particle's
weight decides what a learner draws. These are the same everywhere, and simple enough for the
compiler to do several at once. They are within a few units in the last place.

`exponentials`, `logarithms` and `sines` do so for whole arrays, for Python: numpy's functions, too,
differ in their last bits, by the instructions that the processor has.

Normal random numbers come from the ziggurat (Marsaglia and Tsang 2000), whose law is exact. The
area under exp(-x^2 / 2), x >= 0, is covered by 256 layers of equal area. Layer i >= 1 is a
rectangle from 0 to EDGES[i], between HEIGHTS[i] and HEIGHTS[i + 1]; layer 0 lies below them and
holds the tail beyond EDGES[1]. A layer is picked and a point across it: most points are left of the
next layer's edge, so below the curve, and cost one random number and no logarithm.
"""

from __future__ import annotations

from math import erfc, exp, inf, log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined
from restive.kernels.random import bits_at, uniform_at

__all__ = [
    "LOG2",
    "draw_normal",
    "exponential",
    "exponentials",
    "logarithm",
    "logarithms",
    "sines",
    "split",
    "unit_circle",
]

FloatArray = NDArray[np.float64]

LEAST_NORMAL = 2.2250738585072014e-308
ROOT_HALF = np.int64(0x3FE6A09E667F3BCD)  # the bits of sqrt(1/2)
EXPONENT = np.int64(52)  # bits below the exponent
LOG2_HIGH = 6.93147180369123816490e-01  # log 2 in two parts, the first with zeros at its end
LOG2_LOW = 1.90821492927058770002e-10
LOG2 = 0.6931471805599453
LOG2_E = 1.4426950408889634
ROUND = 6755399441055744.0  # 1.5 * 2^52: adding it leaves the nearest whole number in the last bits
BIAS = np.int64(1023)
TURN = 6.283185307179586


@inlined
def split(x: float) -> tuple[float, float]:
    """Return m in [sqrt(1/2), sqrt(2)) and a whole e with x = 2^e m, for normal x > 0.

    For zero and what is smaller than any normal number, e is -inf.
    """
    bits = np.float64(x).view(np.int64)
    e = (bits - ROOT_HALF) >> EXPONENT
    m = np.int64(bits - (e << EXPONENT)).view(np.float64)
    return m, float(np.int32(e)) if x >= LEAST_NORMAL else -inf


@inlined
def logarithm(x: float) -> float:
    """Return log x; -inf for zero and for what is smaller than any normal number.

    x = 2^e m with m in [sqrt(1/2), sqrt(2)), f = (m - 1) / (m + 1), log m = 2 (f + f^3/3 + ...).
    """
    m, whole = split(x)
    f = (m - 1.0) / (m + 1.0)
    s = f * f
    p = s * (1 / 19) + 1 / 17
    p = s * p + 1 / 15
    p = s * p + 1 / 13
    p = s * p + 1 / 11
    p = s * p + 1 / 9
    p = s * p + 1 / 7
    p = s * p + 1 / 5
    p = s * p + 1 / 3
    twice = f + f
    return whole * LOG2_HIGH + (whole * LOG2_LOW + (twice + twice * (s * p)))


@inlined
def exponential(x: float) -> float:
    """Return e^x for x up to 709; 0 below -708.

    x = k log 2 + r with |r| <= log(2)/2, and e^r by its series.
    """
    held = min(max(x, -708.0), 709.0)
    shifted = held * LOG2_E + ROUND
    k = shifted - ROUND
    r = (held - k * LOG2_HIGH) - k * LOG2_LOW
    p = r * (1 / 6227020800) + 1 / 479001600
    p = r * p + 1 / 39916800
    p = r * p + 1 / 3628800
    p = r * p + 1 / 362880
    p = r * p + 1 / 40320
    p = r * p + 1 / 5040
    p = r * p + 1 / 720
    p = r * p + 1 / 120
    p = r * p + 1 / 24
    p = r * p + 1 / 6
    p = r * p + 0.5
    p = (r * p) * r + r
    power = np.int64((np.int64(np.int32(k)) + BIAS) << EXPONENT).view(np.float64)
    return (1.0 + p) * power if x >= -708.0 else 0.0


@inlined
def unit_circle(u: float) -> tuple[float, float]:
    """Cosine and sine of the angle 2 pi u, for u in [0, 1]."""
    quarter = float(np.int32(4.0 * u + 0.5))
    angle = (u - 0.25 * quarter) * TURN  # within an eighth of a turn, and the difference is exact
    s = angle * angle
    c = s * (1 / 20922789888000) - 1 / 87178291200
    c = s * c + 1 / 479001600
    c = s * c - 1 / 3628800
    c = s * c + 1 / 40320
    c = s * c - 1 / 720
    c = s * c + 1 / 24
    c = s * c - 0.5
    cosine = s * c + 1.0
    p = s * (1 / 355687428096000) - 1 / 1307674368000
    p = s * p + 1 / 6227020800
    p = s * p - 1 / 39916800
    p = s * p + 1 / 362880
    p = s * p - 1 / 5040
    p = s * p + 1 / 120
    p = s * p - 1 / 6
    sine = angle + angle * (s * p)
    place = np.int32(quarter)
    turned = (place & 1) != 0
    first, second = sine if turned else cosine, cosine if turned else sine
    return (
        -first if (place + 1) & 2 else first,  # in the second and third quarter
        -second if place & 2 else second,  # in the third and fourth
    )


def exponentials(x: ArrayLike) -> FloatArray:
    """Return e^x of an array of any shape, for numbers up to 709; 0 below -708."""
    values = np.asarray(x, dtype=np.float64, order="C")
    out = np.empty(values.shape)
    _write_exponentials(values.reshape(-1), out.reshape(-1))
    return out


def logarithms(x: ArrayLike) -> FloatArray:
    """Return log x of an array of any shape, for finite numbers; -inf below normal ones."""
    values = np.asarray(x, dtype=np.float64, order="C")
    out = np.empty(values.shape)
    _write_logarithms(values.reshape(-1), out.reshape(-1))
    return out


def sines(turns: ArrayLike) -> FloatArray:
    """Return sines of the angles 2 pi u, of an array of any shape, for u in [0, 1]."""
    values = np.asarray(turns, dtype=np.float64, order="C")
    out = np.empty(values.shape)
    _write_sines(values.reshape(-1), out.reshape(-1))
    return out


@hot_kernel
def _write_exponentials(x: FloatArray, out: FloatArray) -> None:
    for i in range(len(x)):
        out[i] = exponential(x[i])


@hot_kernel
def _write_logarithms(x: FloatArray, out: FloatArray) -> None:
    for i in range(len(x)):
        out[i] = logarithm(x[i])


@hot_kernel
def _write_sines(turns: FloatArray, out: FloatArray) -> None:
    for i in range(len(turns)):
        out[i] = unit_circle(turns[i])[1]


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
        if height < exponential(-x * x / 2):
            break
        layer, x = _across(key, draws)
        draws += 1
    return x, draws


@hot_kernel
def _draw_tail(key: np.uint64, draws: int) -> tuple[float, int]:
    """Draw how far beyond TAIL a normal number is that is beyond it (Marsaglia 1964)."""
    beyond, other = 1.0, 0.0
    while 2 * other <= beyond * beyond:
        beyond = -logarithm(1 - uniform_at(key, draws)) / TAIL
        other = -logarithm(1 - uniform_at(key, draws + 1))
        draws += 2
    return beyond, draws
