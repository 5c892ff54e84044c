"""Myopic policy: pull the arms that promise most for this step alone (Section 6).

Where arms also pay while not pulled, a pull that pays no more now may still pay in the next step,
by where it leads; so both steps are looked at.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.plan.policies.base import IndexPolicy, index_policy
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import belief_table, expected

__all__ = ["myopic", "myopic_table"]


def myopic(bandit: RestlessBandit, *, max_elapsed: int | None = None) -> IndexPolicy:
    """Return the policy that pulls the N arms that gain most now.

    The index is b.(r_a - r_p + (P_active - P_passive) r_p): what a pull gains over no pull in this
    step and, by moving the arm, in the next one. Without passive rewards it is b.r, the expected
    reward of the step. Of an arm that is always seen, b is the state that it is in.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> rs.myopic(bandit).select(rs.BeliefState([0, 0], [1, 9]))
    array([0])
    """
    return index_policy(bandit, lambda arm: myopic_table(arm, max_elapsed), "myopic")


def myopic_table(arm: Arm, max_elapsed: int | None = None) -> NDArray[np.float64]:
    """Index table [S, L] of what a pull gains now; without passive rewards b(s, n).r."""
    gained = arm.rewards - arm.passive_rewards
    for state, reward in enumerate(arm.passive_rewards):  # plain sums, as in `expected`
        gained = gained + (arm.active - arm.passive)[:, state] * reward
    if arm.always_seen:
        return np.asarray(gained[:, None])
    return expected(gained, belief_table(arm, max_elapsed))
