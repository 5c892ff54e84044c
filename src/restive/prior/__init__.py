"""What is held possible of the arms before any of them is seen (Section 2.1 of the paper)."""

from restive.prior.finite import ArmPrior, IndependentPrior, JointPrior, Prior, grid_prior

__all__ = ["ArmPrior", "IndependentPrior", "JointPrior", "Prior", "grid_prior"]
