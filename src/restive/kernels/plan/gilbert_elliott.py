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

from restive.kernels.jit.compiler import hot_kernel, inlined

FloatArray = NDArray[np.float64]

__all__ = ["channel_indices"]


@hot_kernel
def channel_indices(
    p01: FloatArray, p11: FloatArray, powers: FloatArray, bad: FloatArray, out: FloatArray
) -> None:
    """Write indices [M, 2, L] of M channels, at [m, last state, elapsed - 1].

    `powers` [L] is room for rho^n and `bad` [L] for b(0, n); b(1, n) is their sum.
    """
    length = len(powers)
    for m in range(len(p01)):
        rise, stay = p01[m], p11[m]
        rho = stay - rise
        power, belief = 1.0, 0.0
        for n in range(length):  # sums and products only: the divisions follow several at once
            belief += rise * power
            power *= rho
            bad[n] = belief
            powers[n] = power
        if rho >= 0:
            _patient(rise, stay, bad, powers, out[m, 0], out[m, 1])
        else:
            _swinging(rise, stay, powers, out[m, 0], out[m, 1])


@inlined
def _patient(
    p01: float, p11: float, bad: FloatArray, powers: FloatArray, from_bad: FloatArray,
    from_good: FloatArray,
) -> None:  # fmt: skip
    leave = 1.0 - p11
    for n in range(len(bad)):
        good = bad[n] + powers[n]
        from_good[n] = good / (leave + good)
        step = -p01 * powers[n]  # w - T(w), without cancellation
        following = bad[n] - step
        waited = (n + 1) * step
        from_bad[n] = (waited + step + following) / (leave + waited + following)
    from_bad[0] = p01


@inlined
def _swinging(
    p01: float, p11: float, powers: FloatArray, from_bad: FloatArray, from_good: FloatArray
) -> None:
    after_good = p01 + (p11 - p01) * p11
    cycle = 1.0 + p01 - after_good
    plateau = p01 / cycle
    for n in range(len(powers)):
        below_bad = -p01 * powers[n]  # w - T(w) at age n + 1
        below_good = (1.0 - p11) * powers[n]
        swung_bad = (p01 + below_bad) / (cycle - below_bad)
        swung_good = (p01 + below_good) / (cycle - below_good)
        from_bad[n] = plateau if n % 2 == 0 else swung_bad
        from_good[n] = swung_good if n % 2 == 0 else plateau
    from_bad[0] = p01
    from_good[0] = p11
