r"""Rewards while an arm is not pulled, reduced to rewards for pulls alone, exactly.

Let r_a and r_p be the rewards of a step in which an arm is pulled and in which it is not. Left
alone the arm earns rho = pi.r_p per step in the long run, with pi the stationary law of its passive
chain. Its potential z says how much more it will have earned by being in a state now (Poisson's
equation; here pi.z = 0):

    z = r_p - rho + P_passive z.

Add z(s') - z(s) to what a step from s to s' pays. These terms telescope, so no policy's long-run
reward changes; but now each step in which the arm is left alone is worth rho on average, and a pull

    rho + r_hat,    r_hat = r_a - r_p + (P_active - P_passive) z.

Hence for every policy, J = J(arms that pay r_hat when pulled and nothing else) + sum_k rho_k, and
the bias gains sum_k b_k.z_k, with b_k the belief of arm k. Indices, priorities, the optimum and the
relaxation follow from the arms that pay r_hat.

With a discount beta < 1, z = r_p + beta P_passive z is what the arm earns if it is never pulled,
r_hat = r_a - r_p + beta (P_active - P_passive) z, rho = 0, and every policy's value gains
sum_k b_k.z_k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import frexp

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.errors import AssumptionError
from restive.problem.arm import Arm, arm_label, require_arm
from restive.problem.bandit import Kinds, computed_once
from restive.problem.chains import solved, unichain_law, weighted

__all__ = ["ReducedKinds", "Reduction", "reduce_arm", "reduce_kinds", "unit_of"]

FloatArray = NDArray[np.float64]

# Rewards of the size that the paper has them need no unit; beyond, tolerances follow their size.
SMALLEST = 2.0**-10


@dataclass(frozen=True, eq=False, repr=False)
class Reduction:
    """An arm as one that pays only when pulled.

    `pulled` is that arm: its matrices, with r_hat as rewards. `own_reward` is rho, what the arm
    earns per step by itself (0 where rewards are discounted), and `potential` [S] is z.
    """

    pulled: Arm
    own_reward: float
    potential: FloatArray  # [S]

    def __repr__(self) -> str:
        own = f"{self.own_reward:.6g} by itself"
        return f"Reduction({counted(self.pulled.num_states, 'state')}, {own})"


def reduce_arm(arm: Arm, *, discount: float = 1.0, label: str | None = None) -> Reduction:
    """Reduce an arm to one that pays only when pulled; an arm that does so already stays as it is.

    Parameters
    ----------
    arm
        Any arm. For the average reward its passive chain must have one closed class, unless all
        its states pay the same.
    discount
        1 for the average reward, below 1 for discounted reward.
    label
        How errors call the arm.
    """
    require_arm(arm)
    states = arm.num_states
    own, potential = 0.0, np.zeros(states)
    if not arm.pays_unpulled:
        return Reduction(arm, own, potential)
    paid = arm.passive_rewards
    label = arm_label(arm) if label is None else label
    if discount < 1:
        potential = solved(np.eye(states) - discount * arm.passive, paid)
    elif np.ptp(paid) == 0:  # the chain does not matter, then
        own = float(paid[0])
    else:
        law = _passive_law(arm, label)
        own = float(weighted(law[None], paid)[0])
        potential = solved(np.eye(states) - arm.passive + law, paid - own)
    gained = discount * weighted(arm.active - arm.passive, potential)
    if not np.isfinite(gained).all():
        raise AssumptionError(
            f"{label}: not pulled, it hardly ever leaves some of its states, so that "
            "rounding hides what a pull gains; give its passive matrix larger probabilities"
        )
    pulled = Arm(
        arm.active, arm.passive, arm.rewards - paid + gained, None, arm.name, arm.states, arm.seen
    )
    return Reduction(pulled, own, potential)


@dataclass(frozen=True, eq=False)
class ReducedKinds:
    """The kinds of arms of a bandit, as arms that pay only when pulled."""

    kinds: Kinds
    own_rewards: FloatArray  # [kinds] rho
    potentials: tuple[FloatArray, ...]  # [S] each: z

    @property
    def own_reward(self) -> float:
        """What all arms earn per step if none is ever pulled: the sum of rho_k."""
        return float(sum(self.kinds.counts * self.own_rewards))


@computed_once
def reduce_kinds(kinds: Kinds) -> ReducedKinds:
    """Reduce every kind of arm, for the average reward."""
    found = [
        reduce_arm(arm, label=label) for arm, label in zip(kinds.arms, kinds.labels, strict=True)
    ]
    return ReducedKinds(
        kinds=replace(kinds, arms=tuple(reduction.pulled for reduction in found)),
        own_rewards=np.array([reduction.own_reward for reduction in found]),
        potentials=tuple(reduction.potential for reduction in found),
    )


def unit_of(rewards: FloatArray) -> float:
    """Size of rewards as a power of two, by which tolerances are to be multiplied.

    Scaling all rewards by a power of two then scales every result, to the bit.
    """
    largest = float(np.abs(rewards).max())
    if SMALLEST <= largest <= 1 or largest == 0:
        return 1.0
    return float(2.0 ** frexp(largest)[1])


def _passive_law(arm: Arm, label: str) -> FloatArray:
    try:
        return unichain_law(arm.passive, label, arm.states)
    except AssumptionError as error:
        raise AssumptionError(
            f"{error} (its passive chain is reducible), and so does what its passive_rewards earn; "
            "let its passive matrix lead from each class to the others, however rarely, or pass a "
            "discount below 1 where there is one"
        ) from None
