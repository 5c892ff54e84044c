"""Round robin: always pull the arms that were not seen for longest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.policies.base import IndexPolicy, index_policy
from restive.problem import Arm, RestlessBandit

__all__ = ["round_robin"]


def round_robin(bandit: RestlessBandit) -> IndexPolicy:
    """Return the policy that pulls the arms not seen for longest; the lowest arm wins ties.

    It needs to know nothing about the arms, and sees each of them every K / N steps.
    """
    ages = -(-bandit.num_arms // bandit.num_pulls) + 1  # no arm waits longer, once each was seen

    def waiting(arm: Arm) -> NDArray[np.float64]:
        return np.tile(np.arange(1.0, ages + 1), (arm.num_states, 1))

    return index_policy(bandit, waiting, "round_robin")
