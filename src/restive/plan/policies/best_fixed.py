"""Best fixed arms: always pull the arms whose pulls earn most in the long run (Section 6)."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np
from numpy.typing import NDArray

from restive.errors import AssumptionError
from restive.plan.policies.base import IndexPolicy, index_policy
from restive.problem.arm import Arm, arm_label
from restive.problem.bandit import RestlessBandit
from restive.problem.chains import unichain_law
from restive.problem.reduction import reduce_arm

__all__ = ["best_fixed", "fixed_reward", "fixed_rewards", "fixed_table"]


def best_fixed(bandit: RestlessBandit) -> IndexPolicy:
    """Return the policy that always pulls the same N arms, those that earn most by it.

    A fixed arm is pulled every step, so its long run is that of the active chain. What counts is
    how much more it earns then than by itself, if it pays while not pulled.
    """
    return index_policy(bandit, fixed_table, "best_fixed")


def fixed_reward(arm: Arm) -> float:
    """Long-run reward per step of an arm that is always pulled."""
    try:
        law = unichain_law(arm.active, arm_label(arm))
    except AssumptionError as error:
        raise AssumptionError(
            f"{error}: as a fixed arm its reward is not one number (its active chain is reducible)"
        ) from None
    return fsum(law * arm.rewards)


def fixed_gain(arm: Arm) -> float:
    """How much more an arm earns per step if it is always pulled than if it never is."""
    return fixed_reward(arm) - reduce_arm(arm).own_reward


def fixed_table(arm: Arm) -> NDArray[np.float64]:
    """Index table [S, 1]: what always pulling gains per step, whatever was seen and when."""
    return np.full((arm.num_states, 1), fixed_gain(arm))


def fixed_rewards(
    arms: Sequence[Arm], systems: NDArray[np.int64], num_pulls: int
) -> NDArray[np.float64]:
    """J [R] of the best fixed arms of many systems [R, K], by number of the arm among `arms`."""
    gains = np.array([fixed_gain(arm) for arm in arms])
    own = np.array([reduce_arm(arm).own_reward for arm in arms])
    best = np.sort(gains[systems], axis=1)[:, -num_pulls:]
    return np.asarray(best.sum(axis=1) + own[systems].sum(axis=1))
