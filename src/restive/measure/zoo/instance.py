"""What an instance of the zoo is, and how one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior, Prior
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit

__all__ = ["Instance", "drawn_instance", "spread"]

FloatArray = NDArray[np.float64]

NUM_CANDIDATES = 32  # of each arm of a random instance


@dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """A named problem with what a learner may start from.

    `source` says where the numbers come from. `bandit` is the truth, whose arms may change, None
    where it is drawn from the prior in every replication (the paper's Bayesian setting). `horizon`
    is a sensible one for experiments. `truth_in_prior` says whether the prior holds every arm of
    the truth possible.
    """

    name: str
    title: str
    source: str
    num_pulls: int
    prior: Prior
    bandit: RestlessBandit | ChangingBandit | None
    horizon: int
    truth_in_prior: bool

    def __repr__(self) -> str:
        arms, pulls = counted(self.prior.num_arms, "arm"), counted(self.num_pulls, "pull")
        return f"Instance({self.name}: {arms}, {pulls})"


def drawn_instance(
    name: str,
    title: str,
    source: str,
    rng: np.random.Generator,
    draw: Callable[[], Arm],
    num_arms: int,
    num_pulls: int,
    horizon: int,
) -> Instance:
    """Draw candidates for every arm; one of them, at a place that is drawn too, is the truth."""
    priors = [ArmPrior([draw() for _ in range(NUM_CANDIDATES)]) for _ in range(num_arms)]
    places = rng.integers(NUM_CANDIDATES, size=num_arms).tolist()
    truth = [prior.candidates[place] for prior, place in zip(priors, places, strict=True)]
    return Instance(
        name=name,
        title=title,
        source=source,
        num_pulls=num_pulls,
        prior=IndependentPrior(priors),
        bandit=RestlessBandit(truth, num_pulls),
        horizon=horizon,
        truth_in_prior=True,
    )


def spread(matrix: FloatArray, weight: float) -> FloatArray:
    """Mix the uniform law into every row."""
    return (1 - weight) * matrix + weight / len(matrix)
