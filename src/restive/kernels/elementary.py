"""Logarithm, exponential and turn of a circle from sums, products and divisions alone.

The functions of the C library differ in their last bits from machine to machine, and a particle's
weight decides what a learner draws. These are the same everywhere, and simple enough for the
compiler to do several at once. They are within a few units in the last place.
"""

from __future__ import annotations

from math import inf

import numpy as np

from restive.kernels.compiler import inlined

__all__ = ["LOG2", "exponential", "logarithm", "split", "unit_circle"]

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
