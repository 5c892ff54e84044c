"""Long-run values of a joint chain: closed classes, gain and bias, absorption, the optimum.

A chain is given by its outcomes, see `joint.Outcomes`. Kernels are called for a moment at a time,
so that Ctrl-C is heard in between.
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from restive.joint import Outcomes
from restive.kernels import joint_values as kernels
from restive.pace import WORK_AT_ONCE, look

__all__ = ["absorbed_values", "closed_components", "gain_and_bias", "optimal_bias"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]

STAGE = 10_000  # sweeps


def closed_components(successor: Int32Array) -> tuple[Int32Array, int]:
    """Label each state by its closed communicating class, -1 for transient states."""
    found = np.zeros((kernels.NUM_ROWS, len(successor)), dtype=np.int32)
    found[[kernels.ORDER, kernels.COMPONENT]] = -1
    progress = np.zeros(kernels.NUM_PLACES, dtype=np.int64)
    while not kernels.label_components(successor, found, progress, WORK_AT_ONCE):
        look()
    component = found[kernels.COMPONENT]
    leaving = (component[successor] != component[:, None]) & (successor >= 0)
    closed = np.ones(progress[kernels.COMPONENTS], dtype=np.bool_)
    closed[component[leaving.any(axis=1)]] = False
    number = np.where(closed, np.cumsum(closed) - 1, -1).astype(np.int32)
    return number[component], int(closed.sum())


def gain_and_bias(
    members: IntArray,
    chain: Outcomes,
    bias: FloatArray,
    damping: float,
    tolerance: float,
    most_sweeps: int,
) -> tuple[float, float]:
    """Gain of a closed set of states with one recurrent class, and its bias (in place).

    Returns the gain and the gap that is left between its bounds.
    """
    following, bounds = np.empty(len(members)), np.empty(2)
    progress = np.zeros(2, dtype=np.int64)
    gaps: list[float] = []
    for sweeps in _stages(most_sweeps):
        while not kernels.improve_bias(
            members, chain.successor, chain.probability, chain.reward, bias, following, bounds,
            progress, damping, tolerance, sweeps, WORK_AT_ONCE,
        ):  # fmt: skip
            look()
        gaps.append(float(bounds[1] - bounds[0]))
        if gaps[-1] <= tolerance or _is_hopeless(gaps, tolerance, most_sweeps):
            break
    lowest, highest = bounds.tolist()
    return 0.5 * (lowest + highest), highest - lowest


def _stages(most_sweeps: int) -> range:
    """Numbers of sweeps after which one looks how they get on."""
    return range(STAGE, most_sweeps + STAGE, STAGE)


def _is_hopeless(gaps: list[float], tolerance: float, most_sweeps: int) -> bool:
    """Whether the gap falls so slowly that ten times the sweeps would not close it.

    It may stay as it is for as many sweeps as there are ages, so the first stages do not count.
    """
    if len(gaps) < 3 or gaps[-1] <= 0:
        return False
    rate = log(gaps[-2] / gaps[-1]) / STAGE
    return rate * 10 * most_sweeps < log(gaps[-1] / tolerance)


def absorbed_values(
    values: FloatArray,
    component: Int32Array,
    chain: Outcomes,
    earned: FloatArray,
    tolerance: float,
    most_sweeps: int,
) -> float:
    """What transient states earn until they reach a closed class, plus its value there, in place.

    Returns the last sweep's largest change.
    """
    change = np.zeros(1)
    progress = np.zeros(2, dtype=np.int64)
    while not kernels.absorb(
        values, component, chain.successor, chain.probability, earned, change, progress, tolerance,
        most_sweeps, WORK_AT_ONCE,
    ):  # fmt: skip
        look()
    return float(change[0])


def optimal_bias(
    choices: Outcomes, num_actions: int, damping: float, tolerance: float, most_sweeps: int
) -> tuple[FloatArray, float, float]:
    """Optimal bias, gain and the gap of its bounds; row m * num_actions + a is action a in m."""
    count = len(choices.reward) // num_actions
    bias, following, bounds = np.zeros(count), np.empty(count), np.empty(2)
    best_row, progress = np.zeros(count, dtype=np.int64), np.zeros(2, dtype=np.int64)
    while not kernels.improve_optimal_bias(
        choices.successor, choices.probability, choices.reward, num_actions, bias, following,
        best_row, bounds, progress, damping, tolerance, most_sweeps, WORK_AT_ONCE,
    ):  # fmt: skip
        look()
    lowest, highest = bounds.tolist()
    return bias, 0.5 * (lowest + highest), highest - lowest
