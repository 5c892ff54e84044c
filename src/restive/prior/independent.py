"""Priors of a whole system (Section 2.1 of the paper).

The paper's Q is any distribution over systems. `IndependentPrior` has a distribution per arm,
finite or continuous; `JointPrior` one over whole bandits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count
from restive.errors import ProblemError
from restive.evidence import Evidence
from restive.prior.continuous import DirichletArmPrior
from restive.prior.finite import ArmPrior, JointPrior, listed, require_evidence
from restive.problem import Arm, gilbert_elliott, numbers_array

__all__ = ["IndependentPrior", "Prior", "beta_prior", "grid_prior"]

FloatArray = NDArray[np.float64]

MOST_ARMS = 10**7


@dataclass(frozen=True, eq=False, init=False)
class IndependentPrior:
    """Independent distributions per arm; arms that share an arm's prior share its tables.

    Parameters
    ----------
    arms
        A prior for each arm: an `ArmPrior` or a `DirichletArmPrior`, in any mixture.
    """

    arms: tuple[ArmPrior | DirichletArmPrior, ...]

    def __init__(self, arms: Iterable[ArmPrior | DirichletArmPrior]) -> None:
        arms = listed(arms, "arms", "priors")
        if not arms:
            raise ProblemError("a prior needs at least one arm, got none")
        for k, arm in enumerate(arms):
            if not isinstance(arm, ArmPrior | DirichletArmPrior):
                raise ProblemError(
                    f"arm {k}: expected an ArmPrior or a DirichletArmPrior, got "
                    f"{type(arm).__name__}"
                )
        object.__setattr__(self, "arms", arms)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.arms)

    @property
    def finite_arms(self) -> tuple[ArmPrior, ...]:
        """The arms' priors, where all are finite: what learners take."""
        for k, arm in enumerate(self.arms):
            if isinstance(arm, DirichletArmPrior):
                raise ProblemError(
                    f"arm {k} has a continuous prior, which learners do not take; use an ArmPrior "
                    "of candidates, such as grid_prior makes"
                )
        return self.arms  # type: ignore[return-value]

    def candidates(self, k: int) -> tuple[Arm, ...]:
        """Return what arm k may be, where that can be listed."""
        arm = self.arms[k]
        if isinstance(arm, DirichletArmPrior):
            raise ProblemError(f"arm {k} has a continuous prior, which has no list of candidates")
        return arm.candidates

    def typical(self, k: int) -> Arm:
        """An arm with the states and rewards of arm k."""
        return self.arms[k].typical

    def moves_alike(self, k: int) -> bool:
        """Whether arm k, whichever it is, moves alike pulled or not."""
        return self.arms[k].moves_alike

    def given(self, evidence: Sequence[Evidence]) -> IndependentPrior:
        """Return what the arms may be once this was seen of each."""
        require_evidence(evidence, self.num_arms)
        return IndependentPrior(
            arm.given(seen) for arm, seen in zip(self.arms, evidence, strict=True)
        )


Prior: TypeAlias = IndependentPrior | JointPrior


def grid_prior(levels: Sequence[float] | FloatArray, num_arms: int) -> IndependentPrior:
    """Uniform prior of Section 6: every (p01, p11) in levels x levels, the same for each arm.

    Candidates are ordered by p01, then by p11.
    """
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    grid = numbers_array(levels, "grid_prior", "levels")
    if grid.ndim != 1 or not grid.size:
        raise ProblemError(f"levels must be a list of probabilities, got shape {grid.shape}")
    shared = ArmPrior([gilbert_elliott(float(a), float(b)) for a in grid for b in grid])
    return IndependentPrior([shared] * num_arms)


def beta_prior(
    num_arms: int,
    p01: ArrayLike = (1.0, 1.0),
    p11: ArrayLike = (1.0, 1.0),
    rewards: ArrayLike = (0.0, 1.0),
) -> IndependentPrior:
    """Continuous prior of two-state channels: p01 and p11 have Beta laws, the same for each arm.

    Parameters
    ----------
    num_arms
        Number of arms K.
    p01
        Beta parameters (a, b) of the probability to go from bad to good, of mean a / (a + b);
        uniform by default.
    p11
        Those of the probability to stay good.
    rewards
        Reward in the bad and in the good state.
    """
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    good = [_beta(p01, "p01"), _beta(p11, "p11")]
    shared = DirichletArmPrior([[b, a] for a, b in good], rewards=rewards)
    return IndependentPrior([shared] * num_arms)


def _beta(values: ArrayLike, field: str) -> tuple[float, float]:
    numbers = numbers_array(values, "beta_prior", field)
    if numbers.shape != (2,) or not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ProblemError(
            f"{field} must be two positive Beta parameters (a, b), got {values!r:.60}"
        )
    return float(numbers[0]), float(numbers[1])
