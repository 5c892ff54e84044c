r"""Whittle index of two-state arms whose chain does not care whether it is pulled, in closed form.

Rewards 0 (bad) and 1 (good); average-reward criterion. With rho = p11 - p01, omega = p01/(1 - rho)
the stationary belief, T(w) = p01 + rho w one passive step, and w = b(s, n) the belief to be good:

* rho >= 0: from the bad state beliefs rise to omega. Being patient is right, and at age n
      [(n+1) (w - T(w)) + T(w)] / [1 - p11 + n (w - T(w)) + T(w)];
  from the good state they fall to omega and the index is w / (1 - p11 + w).
* rho < 0: beliefs swing around omega. The extremes p01 (last seen bad, n = 1) and p11 (last seen
  good, n = 1) have their own value as index; others above omega all share the plateau
  p01 / (1 + p01 - T(p11)); those below have (p01 + w - T(w)) / (1 + p01 - T(p11) + T(w) - w).

Derived from the renewal cycles of the best waiting times; the general method agrees to 1e-10.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel

FloatArray = NDArray[np.float64]

__all__ = ["channel_indices"]


@kernel
def channel_indices(p01: FloatArray, p11: FloatArray, length: int) -> FloatArray:
    """Indices [M, 2, length] of M channels, at [m, last state, elapsed - 1]."""
    out = np.empty((len(p01), 2, length))
    for m in range(len(p01)):
        rise, stay = p01[m], p11[m]
        rho = stay - rise
        if rho >= 0:
            _patient(rise, stay, rho, out[m])
        else:
            _swinging(rise, stay, rho, out[m])
    return out


@kernel
def _patient(p01: float, p11: float, rho: float, out: FloatArray) -> None:
    bad, good = p01, p11  # beliefs after n steps
    step = -p01 * rho  # T^n: bad - T(bad) without cancellation
    for n in range(out.shape[1]):
        following = bad - step
        if n == 0:
            out[0, n] = p01
        else:
            drop = (n + 1) * step
            out[0, n] = (drop + step + following) / (1 - p11 + drop + following)
        out[1, n] = good / (1 - p11 + good)
        bad = following
        good = p01 + rho * good
        step *= rho


@kernel
def _swinging(p01: float, p11: float, rho: float, out: FloatArray) -> None:
    after_good = p01 + rho * p11
    plateau = p01 / (1 + p01 - after_good)
    from_bad = -p01 * rho  # w - T(w) at age n for either last state
    from_good = (1 - p11) * rho
    for n in range(out.shape[1]):
        if n % 2 == 0:
            out[0, n] = plateau
            out[1, n] = (p01 + from_good) / (1 + p01 - after_good - from_good)
        else:
            out[0, n] = (p01 + from_bad) / (1 + p01 - after_good - from_bad)
            out[1, n] = plateau
        from_bad *= rho
        from_good *= rho
    if out.shape[1] > 0:
        out[0, 0] = p01
        out[1, 0] = p11
