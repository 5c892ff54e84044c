"""Thompson sampling with Beta posteriors, see `restive.learn.learners.beta_bernoulli`.

`ints` holds the successes of each arm, then the failures of each.
"""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import draw_normal, logarithm
from restive.kernels.jit.compiler import inlined, part
from restive.kernels.learn.learners.memory import (
    DRAWS,
    OWN,
    PHASES,
    Knowledge,
    LearnerMemory,
    top_available,
)
from restive.kernels.random import uniform_at

__all__ = ["choose", "draw_beta", "draw_gamma", "learn"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Draw each arm's mean from its posterior and write the arms with the largest."""
    num_arms = len(memory.values)
    draws = memory.ints[DRAWS]
    for k in range(num_arms):
        successes, failures = memory.ints[OWN + k], memory.ints[OWN + num_arms + k]
        memory.values[k], draws = draw_beta(key, draws, successes + 1.0, failures + 1.0)
    memory.ints[DRAWS] = draws
    memory.ints[PHASES] += 1
    top_available(memory, available, chosen)


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Toss a coin with each reward as its chance, and count how it falls."""
    for i in range(len(pulled)):
        k = pulled[i]
        share = knowledge.shares[knowledge.reward_offsets[k] + states[i]]
        success = uniform_at(key, memory.ints[DRAWS]) < share
        memory.ints[DRAWS] += 1
        memory.ints[OWN + k + (0 if success else len(memory.values))] += 1


@inlined
def draw_beta(key: np.uint64, draws: int, a: float, b: float) -> tuple[float, int]:
    """Draw from Beta(a, b), a and b at least 1, with the numbers of a stream from `draws` on.

    Return the number drawn and the place of the stream's first number that was not used. It is
    X / (X + Y) with X from Gamma(a) and Y from Gamma(b), each by rejection, so the law is exact.
    """
    first, draws = draw_gamma(key, draws, a)
    second, draws = draw_gamma(key, draws, b)
    return first / (first + second), draws


@inlined
def draw_gamma(key: np.uint64, draws: int, shape: float) -> tuple[float, int]:
    """Draw from Gamma(shape), the shape at least 1 (Marsaglia and Tsang 2000).

    It is the cube of a normal number, which is rejected in a twentieth of the cases or less.
    """
    d = shape - 1 / 3
    scale = 1 / sqrt(9 * d)
    cube = 0.0
    while cube == 0.0:
        x, draws = draw_normal(key, draws)
        u = 1 - uniform_at(key, draws)  # in (0, 1], so that it has a logarithm
        draws += 1
        root = 1 + x * scale
        if root > 0:
            cube = root * root * root
            # the first condition implies the second and spares its logarithms
            if u >= 1 - 0.0331 * x * x * x * x and logarithm(u) >= x * x / 2 + d * (
                1 - cube + logarithm(cube)
            ):
                cube = 0.0
    return d * cube, draws
