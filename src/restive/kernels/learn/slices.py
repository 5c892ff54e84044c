"""Particles of a channel's posterior, drawn slice by slice: for ridges and for several modes.

A channel, two states that move alike pulled or not, has two numbers: how fast it forgets,
rho = p11 - p01, and its long-run share of good. Sightings at long ages say much of the share and
little of rho, so that the posterior is a ridge, thin and curved in the log odds of p01 and p11.
Across it, rho being fixed, it is plain: with q = rho^n and sigma in (0, 1), every chance
b(s, n)[s'] is

    A + B sigma  or  A + B (1 - sigma),    A, B >= 0

so that the log likelihood is concave in sigma. For rho >= 0, sigma is the share, and A is 0 or q,
B = 1 - q. For r = -rho > 0, p11 = (1 - r) sigma and p00 = (1 - r) (1 - sigma); with
g = (1 - q) / (1 + r), A is r g or 1 - g, B = g (1 - r).

The law that draws particles is made so. Symbols: z the log odds of (1 + rho) / 2, y those of sigma.
At knots in z the mode c and the curvature in y are found by Newton's steps, and Laplace's mass of
the slice. Knots are put where mass is, where it may be, about every peak, and where c bends. Where
sigma may be all but 0 or 1, the prior leaves a tail that falls like e^(alpha y), too long for any
curvature to tell; its mass is read off eight widths from the mode. Between knots all is linear: z
is drawn by its quantile, then y = c + w t with Student's t of four degrees, or from a tail. What is
returned beside the particles is the logarithm of their density.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.dirichlet import DirichletRows
from restive.kernels.learn.lattice import lattice_square, t4_quantile
from restive.kernels.learn.likelihood import Counts

__all__ = ["Slices", "draw_from_slices", "fit_slices"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FAR = 36.0  # how far z reaches: 1 - |rho| down to 2e-16
NEAR = 1e-6  # how near to 0 it comes, where the mass of a slice may be infinite
FIRST, MOST = 146, 1024  # knots at first, an even number, and at most
ROUNDS = 40
SHARE = 1 / 64  # of the mass, above which an interval is halved
STEEP = 0.5  # change of the log mass above which an interval beside a peak is halved
LOW = 20.0  # how far below the highest a peak is looked at, in logarithms
BEND = 0.1  # how far a centre may be off the line between those beside it, in widths
SHORTEST = 1e-7  # interval
LONGEST = 2.0  # step in y
LEAST_CURVATURE = 0.02
ARRIVED = 0.02  # step, in widths, after which a slice is fitted
MOST_STEPS = 60
STUDENT = 0.375  # the density of the t at zero
TAIL = 8.0  # widths from the mode at which a tail is looked at
BACK = 3.0  # log of the factor by which a tail may be higher at the mode
MOST_TAIL = 20.0
LEAST = 2.0**-53


class Slices(NamedTuple):
    """What is known at the knots."""

    paces: FloatArray  # [K] z, ascending
    centres: FloatArray  # [K] c
    widths: FloatArray  # [K] w
    logs: FloatArray  # [K] log mass, up to a constant
    lower: FloatArray  # [K] mass of the tail below, relative to that of the t
    upper: FloatArray  # [K] and of that above


class _Chances(NamedTuple):
    """Counts, and A and B of the chances at one z."""

    ages: IntArray  # [A]
    cells: FloatArray  # [A, 2, 2]; the prior's are among them, at age 1
    moving: FloatArray  # [A] A of b01 and b10
    staying: FloatArray  # [A] A of b00 and b11
    slopes: FloatArray  # [A] B


@kernel
def fit_slices(alphas: FloatArray, counts: Counts) -> Slices:
    """Fit the posterior of a channel, with Dirichlet parameters [2, 2], slice by slice."""
    chances = _chances(alphas, counts)
    found = np.empty((6, MOST))
    slices = _first(found, MOST)
    halved = np.empty(MOST, dtype=np.bool_)
    count = FIRST
    guess = 0.0
    for i in range(count):
        side = i - count // 2 if 2 * i >= count else count // 2 - 1 - i
        place = NEAR + (FAR - NEAR) * side / (count // 2 - 1)
        slices.paces[i] = place if 2 * i >= count else -place
        _fit(chances, slices, i, guess)
        guess = slices.centres[i]
    for _ in range(ROUNDS):
        more = _mark(slices, count, halved)
        if more == 0 or count + more > MOST:
            break
        _halve(chances, slices, count, more, halved)
        count += more
    return _first(found, count)


@kernel
def _first(found: FloatArray, count: int) -> Slices:
    return Slices(
        found[0, :count], found[1, :count], found[2, :count], found[3, :count], found[4, :count],
        found[5, :count],
    )  # fmt: skip


@kernel
def _chances(alphas: FloatArray, counts: Counts) -> _Chances:
    used = 1
    for k in range(len(counts.ages)):
        used += counts.cells[k].sum() > 0.0
    ages, cells = np.ones(used, dtype=np.int64), np.empty((used, 2, 2))
    cells[0] = alphas - 1.0
    used = 1
    for k in range(len(counts.ages)):
        if counts.cells[k].sum() > 0.0:
            ages[used], cells[used] = counts.ages[k], counts.cells[k]
            used += 1
    return _Chances(ages, cells, np.empty(used), np.empty(used), np.empty(used))


@part
def _odds(x: float) -> tuple[float, float]:
    """1 / (1 + e^-x) and 1 / (1 + e^x), both with all their digits."""
    e = exponential(-abs(x))
    small, large = e / (1.0 + e), 1.0 / (1.0 + e)
    return (large, small) if x >= 0.0 else (small, large)


@part
def _power(r: float, rest: float, n: int) -> tuple[float, float]:
    """r^n and 1 - r^n, given 1 - r, without cancellation."""
    power, missing = 1.0, 0.0
    while n > 0:
        if n & 1:
            missing += power * rest
            power *= r
        rest += r * rest
        r *= r
        n >>= 1
    return power, missing


@part
def _set_pace(chances: _Chances, z: float) -> None:
    """Write A and B of all chances at z."""
    large, small = _odds(abs(z))
    r, narrow = large - small, 2.0 * small  # |rho| and 1 - |rho|
    for k in range(len(chances.ages)):
        n = chances.ages[k]
        if z >= 0.0:
            q, w = _power(r, narrow, n)
            chances.moving[k], chances.staying[k], chances.slopes[k] = 0.0, q, w
        else:
            q, w = _power(r, narrow, n - 1)
            if n & 1:
                left, g = r * w, 1.0 + r * q
            else:
                left, g = r * (1.0 + q), narrow + r * w
            g /= 1.0 + r
            chances.moving[k], chances.staying[k] = r * g, left / (1.0 + r)
            chances.slopes[k] = g * narrow


@part
def _add_slope(count: float, a: float, bx: float, x: float) -> tuple[float, float]:
    """First and second derivative of count log(a + b x) in the log odds of x."""
    t = bx / (a + bx)
    rest = 1.0 - x
    return count * t * rest, count * t * rest * ((1.0 - t) * rest - x)


@part
def _slopes(chances: _Chances, y: float) -> tuple[float, float]:
    """First and second derivative in y of the log posterior, z being fixed."""
    sigma, other = _odds(y)
    first, second = other - sigma, -2.0 * sigma * other  # of log sigma (1 - sigma)
    for k in range(len(chances.ages)):
        moving, staying, slope = chances.moving[k], chances.staying[k], chances.slopes[k]
        cells = chances.cells[k]
        one, two = _add_slope(cells[0, 1], moving, slope * sigma, sigma)
        first += one
        second += two
        one, two = _add_slope(cells[1, 1], staying, slope * sigma, sigma)
        first += one
        second += two
        one, two = _add_slope(cells[0, 0], staying, slope * other, other)
        first -= one
        second += two
        one, two = _add_slope(cells[1, 0], moving, slope * other, other)
        first -= one
        second += two
    return first, second


@part
def _height(chances: _Chances, z: float, y: float) -> float:
    """Log posterior in (z, y), up to a constant."""
    sigma, other = _odds(y)
    height = logarithm(sigma) + logarithm(other) + _log_slope(z)
    for k in range(len(chances.ages)):
        moving, staying, slope = chances.moving[k], chances.staying[k], chances.slopes[k]
        cells = chances.cells[k]
        height += cells[0, 1] * logarithm(moving + slope * sigma)
        height += cells[1, 1] * logarithm(staying + slope * sigma)
        height += cells[0, 0] * logarithm(staying + slope * other)
        height += cells[1, 0] * logarithm(moving + slope * other)
    return height


@part
def _log_slope(z: float) -> float:
    """Log of d(p01, p11) / d(z, sigma) = (1 - rho^2) / 2 (1 - |rho|)."""
    large, small = _odds(abs(z))
    return logarithm(2.0 * large * small) + logarithm(2.0 * small)


@part
def _fit(chances: _Chances, slices: Slices, i: int, y: float) -> None:
    """Fit the slice at knot i, from a guess of its centre on."""
    z = slices.paces[i]
    _set_pace(chances, z)
    low, high = -inf, inf  # where the slope is known to be positive, and negative
    curvature = LEAST_CURVATURE
    for _ in range(MOST_STEPS):
        first, second = _slopes(chances, y)
        curvature = max(-second, LEAST_CURVATURE)
        step = min(max(first / curvature, -LONGEST), LONGEST)
        if abs(step) * sqrt(curvature) < ARRIVED:
            break
        if first > 0.0:
            low = y
        else:
            high = y
        y = y + step if low < y + step < high else 0.5 * (low + high)
    width, height = 1.0 / sqrt(curvature), _height(chances, z, y)
    slices.centres[i], slices.widths[i] = y, width
    below, above = _decays(chances.cells[0], z)
    far = TAIL * width
    slices.lower[i] = _tail(_height(chances, z, y - far) - height, far, below)
    slices.upper[i] = _tail(_height(chances, z, y + far) - height, far, above)
    mass = width * (1.0 + slices.lower[i] + slices.upper[i])
    slices.logs[i] = height + logarithm(mass)


@part
def _decays(less_one: FloatArray, z: float) -> tuple[float, float]:
    """Rates at which the prior falls towards sigma = 0 and 1; given alphas - 1."""
    if z >= 0.0:
        return less_one[0, 1] + 1.0, less_one[1, 0] + 1.0
    return less_one[1, 1] + 1.0, less_one[0, 0] + 1.0


@part
def _tail(log_height: float, far: float, rate: float) -> float:
    """Mass of a tail of such a height eight widths from the mode, relative to that of the t.

    A tail of a small rate is followed back to the mode; a large one has not begun there.
    """
    log_height = min(log_height + min(far * rate, BACK), BACK)
    mass: float = STUDENT * TAIL * exponential(log_height) / (rate * far)
    return min(mass, MOST_TAIL)


@part
def _mark(slices: Slices, count: int, halved: BoolArray) -> int:
    """Mark the intervals to be halved, and return how many they are.

    Those with much mass, and those beside a peak that may be much higher than what is known.
    """
    paces, logs = slices.paces, slices.logs
    top, total = -inf, 0.0
    for i in range(count):
        top = max(top, logs[i])
    for i in range(count - 1):
        total += _mass(slices, i, top)
    more = 0
    for i in range(count - 1):
        mass, change = _mass(slices, i, top), abs(logs[i + 1] - logs[i])
        wanted = mass > SHARE * total
        wanted = wanted or (mass > SHARE / 32 * total and _bend(slices, count, i) > BEND)
        if not wanted and change > STEEP and paces[i + 1] - paces[i] > SHORTEST:
            peak = i if logs[i] > logs[i + 1] else i + 1
            alone = (peak == 0 or logs[peak - 1] <= logs[peak]) and (
                peak == count - 1 or logs[peak + 1] <= logs[peak]
            )
            wanted = alone and logs[peak] + change > top - LOW
            wanted = wanted or (change > 4 * STEEP and mass > SHARE / 32 * total)
        wanted = wanted and not paces[i] < 0.0 < paces[i + 1]
        halved[i] = wanted
        more += wanted
    return more


@part
def _bend(slices: Slices, count: int, i: int) -> float:
    """How far the centre is off its line in the middle of an interval, in widths: c'' h^2 / 8.

    The larger of what the intervals on either side say. A width that doubles counts as much.
    """
    paces, centres, widths = slices.paces, slices.centres, slices.widths
    length, bend = paces[i + 1] - paces[i], 0.0
    slope = (centres[i + 1] - centres[i]) / length
    for j in (i - 1, i + 1):
        if 0 <= j < count - 1:
            other = paces[j + 1] - paces[j]
            change = abs((centres[j + 1] - centres[j]) / other - slope)
            bend = max(bend, 0.25 * change * length * length / (length + other))
    narrow, wide = min(widths[i], widths[i + 1]), max(widths[i], widths[i + 1])
    found: float = max(bend / narrow, BEND * wide / narrow / 2.0)
    return found


@part
def _mass(slices: Slices, i: int, top: float) -> float:
    """Mass of an interval, relative to e^top."""
    logs, paces = slices.logs, slices.paces
    heights = exponential(logs[i] - top) + exponential(logs[i + 1] - top)
    mass: float = 0.5 * heights * (paces[i + 1] - paces[i])
    return mass


@part
def _halve(chances: _Chances, slices: Slices, count: int, more: int, halved: BoolArray) -> None:
    """Put knots into the middle of the intervals that are marked, from the last one down."""
    paces, centres = slices.paces, slices.centres
    at = count + more - 1
    for i in range(count - 1, -1, -1):
        if i < count - 1 and halved[i]:
            paces[at] = 0.5 * (paces[i] + paces[at + 1])
            _fit(chances, slices, at, 0.5 * (centres[i] + centres[at + 1]))
            at -= 1
        paces[at], centres[at] = paces[i], centres[i]
        slices.widths[at], slices.logs[at] = slices.widths[i], slices.logs[i]
        slices.lower[at], slices.upper[at] = slices.lower[i], slices.upper[i]
        at -= 1


@kernel
def draw_from_slices(
    slices: Slices, rows: DirichletRows, key: np.uint64, logits: FloatArray, log_q: FloatArray
) -> None:
    """Draw particles: logits [2, M] of the rows, and the log of their density [M]."""
    top = slices.logs.max()
    below = np.zeros(len(slices.logs))
    for i in range(len(below) - 1):
        below[i + 1] = below[i] + _mass(slices, i, top)
    lattice_square(rows.generators, key, logits)
    less_one = rows.alphas - 1.0
    for m in range(logits.shape[1]):
        wanted = logits[0, m] * below[-1]
        i = _interval(below, wanted)
        share, height = _within(slices, i, wanted - below[i], top)
        z = _between(slices.paces, i, share)
        y, log_density = _draw_across(slices, i, share, _decays(less_one, z), logits[1, m])
        log_q[m] = logarithm(height / below[-1]) + log_density + _write_logits(z, y, logits, m)


@part
def _between(values: FloatArray, i: int, share: float) -> float:
    found: float = values[i] + share * (values[i + 1] - values[i])
    return found


@part
def _draw_across(
    slices: Slices, i: int, share: float, decays: tuple[float, float], u: float
) -> tuple[float, float]:
    """Draw y from the t and its two tails by a uniform number; also the log of the density."""
    width = _between(slices.widths, i, share)
    lower, upper = _between(slices.lower, i, share), _between(slices.upper, i, share)
    below, above = decays
    total = 1.0 + lower + upper
    u *= total
    if u < lower:
        x = logarithm(u / lower) / below
    elif u > lower + 1.0:
        x = -logarithm(max(total - u, LEAST) / upper) / above
    else:
        x = width * t4_quantile(min(max(u - lower, LEAST), 1.0 - LEAST))
    t = x / width
    density = STUDENT / width * exponential(-2.5 * logarithm(1.0 + 0.25 * t * t))
    density += lower * below * exponential(below * x) if x < 0.0 else 0.0
    density += upper * above * exponential(-above * x) if x > 0.0 else 0.0
    return _between(slices.centres, i, share) + x, logarithm(density / total)


@part
def _interval(below: FloatArray, wanted: float) -> int:
    low, high = 0, len(below) - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if below[middle] <= wanted:
            low = middle
        else:
            high = middle
    return low


@part
def _within(slices: Slices, i: int, mass: float, top: float) -> tuple[float, float]:
    """Share of an interval that holds so much mass, and the height there, which is linear."""
    begin = exponential(slices.logs[i] - top)
    rise = exponential(slices.logs[i + 1] - top) - begin
    mass /= slices.paces[i + 1] - slices.paces[i]  # begin x + rise x^2 / 2
    root = begin + sqrt(max(begin * begin + 2.0 * rise * mass, 0.0))
    share = min(max(2.0 * mass / root, 0.0), 1.0) if root > 0.0 else 0.5
    height: float = begin + share * rise
    return share, height


@part
def _write_logits(z: float, y: float, logits: FloatArray, m: int) -> float:
    """Write a particle's logits; return log d(z, y) / d(logits)."""
    large, small = _odds(abs(z))
    r, narrow = large - small, 2.0 * small
    sigma, other = _odds(y)
    moving, staying = (0.0, r) if z >= 0.0 else (r, 0.0)
    p01, p11 = logarithm(moving + narrow * sigma), logarithm(staying + narrow * sigma)
    p00, p10 = logarithm(staying + narrow * other), logarithm(moving + narrow * other)
    logits[0, m], logits[1, m] = p00 - p01, p10 - p11
    return (p00 + p01) + (p10 + p11) - (_log_slope(z) + logarithm(sigma) + logarithm(other))
