"""Quantiles from arithmetic alone: the same bits on every machine.

A Beta law is handled by the log odds y of its variable, p = 1 / (1 + e^-y): small probabilities
keep all their digits at either end. The logarithm of its distribution function is concave in y, so
Newton's method from the left of a quantile climbs to it without ever passing it.
"""

from __future__ import annotations

from math import sqrt

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import kernel, part

__all__ = [
    "beta_log_odds",
    "chi_square_quantile",
    "log_gamma",
    "log_share",
    "normal_quantile",
    "trigamma",
]

HALF_LOG_TURN = 0.9189385332046728  # log(2 pi) / 2
TINY = 1e-300
CLOSE = 1e-15


@kernel
def log_gamma(x: float) -> float:
    """Logarithm of the gamma function of x > 0, by Stirling's series at x + 10 or beyond."""
    product = 1.0
    while x < 10.0:
        product *= x
        x += 1.0
    inverse = 1.0 / x
    s = inverse * inverse
    p = s * (1 / 156) - 691 / 360360
    p = s * p + 1 / 1188
    p = s * p - 1 / 1680
    p = s * p + 1 / 1260
    p = s * p - 1 / 360
    p = s * p + 1 / 12
    return (x - 0.5) * logarithm(x) - x + HALF_LOG_TURN + inverse * p - logarithm(product)


@kernel
def trigamma(x: float) -> float:
    """Second derivative of log_gamma: the variance of the log of a Gamma(x) variable."""
    total = 0.0
    while x < 10.0:
        total += 1.0 / (x * x)
        x += 1.0
    inverse = 1.0 / x
    s = inverse * inverse
    p = s * (5 / 66) - 1 / 30
    p = s * p + 1 / 42
    p = s * p - 1 / 30
    p = s * p + 1 / 6
    return total + inverse * (1.0 + 0.5 * inverse + s * p)


@part
def log_share(y: float) -> float:
    """Return log(1 / (1 + e^-y))."""
    if y > 0.0:
        return -logarithm(1.0 + exponential(-y))
    return y - logarithm(1.0 + exponential(y))


@part
def _fraction(a: float, b: float, p: float) -> float:
    """Continued fraction of the incomplete Beta function (Lentz's method)."""
    c = 1.0
    d = 1.0 - (a + b) * p / (a + 1.0)
    d = 1.0 / (d if abs(d) > TINY else TINY)
    value = d
    for m in range(1, 100_000):
        even = m * (b - m) * p / ((a + 2 * m - 1.0) * (a + 2 * m))
        d = 1.0 + even * d
        d = 1.0 / (d if abs(d) > TINY else TINY)
        c = 1.0 + even / c
        c = c if abs(c) > TINY else TINY
        value *= d * c
        odd = -(a + m) * (a + b + m) * p / ((a + 2 * m) * (a + 2 * m + 1.0))
        d = 1.0 + odd * d
        d = 1.0 / (d if abs(d) > TINY else TINY)
        c = 1.0 + odd / c
        c = c if abs(c) > TINY else TINY
        value *= d * c
        if abs(d * c - 1.0) < CLOSE:
            break
    return value


@part
def _log_below(a: float, b: float, log_beta: float, y: float) -> tuple[float, float]:
    """Log of the chance that the log odds of a Beta(a, b) are at most y, and its slope in y."""
    log_p, log_rest = log_share(y), log_share(-y)
    log_density = a * log_p + b * log_rest - log_beta  # in y
    p, rest = exponential(log_p), exponential(log_rest)
    if p * (a + b + 2.0) < a + 1.0:
        log_below = log_density - logarithm(a) + logarithm(_fraction(a, b, p))
    else:
        above = exponential(log_density) / b * _fraction(b, a, rest)
        log_below = logarithm(max(1.0 - above, TINY))
    return log_below, exponential(log_density - log_below)


@kernel
def beta_log_odds(a: float, b: float, u: float) -> float:
    """Log odds at which a Beta(a, b) variable's distribution function is u, 0 < u < 1."""
    flipped = u > 0.5
    if flipped:  # so that the smaller of the two chances is met
        a, b, u = b, a, 1.0 - u
    log_beta = log_gamma(a) + log_gamma(b) - log_gamma(a + b)
    log_u = logarithm(u)
    y = (log_u + logarithm(a) + log_beta) / a  # the chance of less is at most u
    for _ in range(200):
        log_below, slope = _log_below(a, b, log_beta, y)
        step = (log_u - log_below) / slope
        y += step
        if abs(step) <= 1e-13 * (1.0 + abs(y)):
            break
    return -y if flipped else y


@part
def normal_quantile(u: float) -> float:
    """Quantile of the standard normal law, 0 < u < 1 (Wichura 1988, AS 241)."""
    q = u - 0.5
    if abs(q) <= 0.425:
        r = 0.180625 - q * q
        above = r * 2509.0809287301226727 + 33430.575583588128105
        above = r * above + 67265.770927008700853
        above = r * above + 45921.953931549871457
        above = r * above + 13731.693765509461125
        above = r * above + 1971.5909503065514427
        above = r * above + 133.14166789178437745
        above = r * above + 3.387132872796366608
        below = r * 5226.495278852545925 + 28729.085735721942674
        below = r * below + 39307.89580009271061
        below = r * below + 21213.794301586595867
        below = r * below + 5394.1960214247511077
        below = r * below + 687.1870074920579083
        below = r * below + 42.313330701600911252
        below = r * below + 1.0
        return q * above / below
    r = sqrt(-logarithm(u if q < 0.0 else 1.0 - u))
    if r <= 5.0:
        r -= 1.6
        above = r * 7.7454501427834140764e-4 + 0.0227238449892691845833
        above = r * above + 0.24178072517745061177
        above = r * above + 1.27045825245236838258
        above = r * above + 3.64784832476320460504
        above = r * above + 5.7694972214606914055
        above = r * above + 4.6303378461565452959
        above = r * above + 1.42343711074968357734
        below = r * 1.05075007164441684324e-9 + 5.475938084995344946e-4
        below = r * below + 0.0151986665636164571966
        below = r * below + 0.14810397642748007459
        below = r * below + 0.68976733498510000455
        below = r * below + 1.6763848301838038494
        below = r * below + 2.05319162663775882187
        below = r * below + 1.0
    else:
        r -= 5.0
        above = r * 2.01033439929228813265e-7 + 2.71155556874348757815e-5
        above = r * above + 0.0012426609473880784386
        above = r * above + 0.026532189526576123093
        above = r * above + 0.29656057182850489123
        above = r * above + 1.7848265399172913358
        above = r * above + 5.4637849111641143699
        above = r * above + 6.6579046435011037772
        below = r * 2.04426310338993978564e-15 + 1.4215117583164458887e-7
        below = r * below + 1.8463183175100546818e-5
        below = r * below + 7.868691311456132591e-4
        below = r * below + 0.0148753612908506148525
        below = r * below + 0.13692988092273580531
        below = r * below + 0.59983220655588793769
        below = r * below + 1.0
    return -above / below if q < 0.0 else above / below


@part
def chi_square_quantile(degrees: int, u: float) -> float:
    """Quantile of the chi-square law with an even number of degrees of freedom, 0 < u < 1.

    Beyond x its chance is e^-h (1 + h + ... + h^(k-1) / (k-1)!), with h = x / 2, k = degrees / 2.
    """
    low, high = 0.0, 2.0 * degrees + 160.0
    while True:
        x = 0.5 * (low + high)
        if x <= low or x >= high or high - low < 1e-13 * high:
            return x
        h = 0.5 * x
        term = exponential(-h)
        above = term
        for k in range(1, degrees // 2):
            term *= h / k
            above += term
        if 1.0 - above < u:
            low = x
        else:
            high = x
