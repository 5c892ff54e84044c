"""What the arms may be, before any of them is seen (Section 2.1 of the paper)."""

from restive.prior.continuous import DirichletArmPrior
from restive.prior.finite import ArmPrior, JointPrior
from restive.prior.independent import (
    IndependentPrior,
    Prior,
    beta_prior,
    grid_prior,
    is_continuous,
)

__all__ = [
    "ArmPrior",
    "DirichletArmPrior",
    "IndependentPrior",
    "JointPrior",
    "Prior",
    "beta_prior",
    "grid_prior",
    "is_continuous",
]
