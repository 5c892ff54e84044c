"""Myopic policy: pull the arms that promise most for this step alone (Section 6)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.belief import belief_table, expected_rewards
from restive.policies.base import IndexPolicy, index_policy
from restive.problem import Arm, RestlessBandit

__all__ = ["myopic", "myopic_table"]


def myopic(bandit: RestlessBandit, max_elapsed: int | None = None) -> IndexPolicy:
    """Return the policy that pulls the N arms with the largest expected reward now."""
    return index_policy(bandit, lambda arm: myopic_table(arm, max_elapsed), "myopic")


def myopic_table(arm: Arm, max_elapsed: int | None = None) -> NDArray[np.float64]:
    """Index table [S, L]: the expected reward b(s, n).r."""
    return expected_rewards(arm, belief_table(arm, max_elapsed))
