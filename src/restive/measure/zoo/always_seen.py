"""Instances whose arms are seen in every step, and machines that stay broken till someone comes."""

from __future__ import annotations

import numpy as np

from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.independent import IndependentPrior, uniform_prior
from restive.measure.zoo.instance import Instance
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit

__all__ = ["calls", "circulant", "machines", "restart"]

# Chances to be good next: not called while bad and while good, called while bad and while good.
CALLS = (
    (0.03, 0.13, 0.5, 0.6), (0.07, 0.93, 0.13, 0.95), (0.28, 0.37, 0.51, 0.66),
    (0.51, 0.79, 0.67, 0.82), (0.2, 0.48, 0.55, 0.98), (0.24, 0.59, 0.8, 0.87),
    (0.08, 0.28, 0.47, 0.9), (0.15, 0.2, 0.67, 0.9),
)  # fmt: skip
MACHINES = ((0.1, 1.0), (0.2, 2.0), (0.05, 0.5))  # cost of a visit, and how fast it wears


def circulant(num_arms: int = 5, num_pulls: int = 2) -> Instance:
    """Return arms on a circle of four states, which pulls turn one way and rest the other."""
    active = 0.5 * (np.eye(4) + np.roll(np.eye(4), 1, axis=1))
    rewards = np.array([-1.0, 0.0, 0.0, 1.0])
    return _alike(
        Arm(active, active.T.copy(), rewards, rewards, seen="always"),
        num_arms,
        num_pulls,
        "equal arms on a circle of 4 states, always seen: pulls turn it one way, rest the other",
        "Fu, Nazarathy, Moka and Taylor 2019, circulant dynamics",
    )


def restart(num_arms: int = 5, num_pulls: int = 1) -> Instance:
    """Return arms that decay by themselves and that a pull sets back to their first state."""
    states = 5
    passive = 0.9 * np.eye(states, k=1) + 0.1 * np.eye(1, states)
    passive[-1, -1] += 0.9
    active = np.tile(np.eye(1, states), (states, 1))
    paid = np.array([0.9**k for k in range(1, states + 1)])
    return _alike(
        Arm(active, passive, np.zeros(states), paid, seen="always"),
        num_arms,
        num_pulls,
        "equal arms of 5 states, always seen: they fade, and a pull starts them again",
        "Avrachenkov and Borkar 2022 (arXiv:2004.14427), restart model",
    )


def calls() -> Instance:
    """Return eight people who are seen every week, of whom three are called."""
    arms = [
        Arm(
            [[1 - p, p] for p in (called_bad, called_good)],
            [[1 - p, p] for p in (bad, good)],
            [0, 1],
            [0, 1],
            states=["bad", "good"],
            seen="always",
        )
        for bad, good, called_bad, called_good in CALLS
    ]
    bandit = RestlessBandit(arms, 3)
    return Instance(
        name="",
        title="8 people who are always seen, 3 calls",
        source="made up for this package",
        num_pulls=3,
        prior=uniform_prior(bandit),
        bandit=bandit,
        horizon=10_000,
        truth_in_prior=True,
    )


def machines() -> Instance:
    """Return three machines that wear, break, and stay broken until someone looks at them."""
    worth = np.array([0.0, 0.7, 1.0])
    arms = [
        Arm(
            [[0, 0.05, 0.95]] * 3,
            np.array([[1, 0, 0], [0.2, 0.8, 0], [0.02 * wear, 0.1 * wear, 1 - 0.12 * wear]]),
            worth - cost,
            worth,
            states=["broken", "worn", "fine"],
        )
        for cost, wear in MACHINES
    ]
    bandit = RestlessBandit(arms, 1)
    priors = [
        DirichletArmPrior(
            (arm.active > 0).astype(np.float64),  # what cannot be is known
            (arm.passive > 0).astype(np.float64),
            arm.rewards,
            arm.passive_rewards,
            states=arm.states,
        )
        for arm in arms
    ]
    return Instance(
        name="",
        title="3 machines of 3 states, 1 visit: broken ones stay so until they are looked at",
        source="made up for this package",
        num_pulls=1,
        prior=IndependentPrior(priors),
        bandit=bandit,
        horizon=10_000,
        truth_in_prior=True,
    )


def _alike(arm: Arm, num_arms: int, num_pulls: int, title: str, source: str) -> Instance:
    bandit = RestlessBandit([arm] * num_arms, num_pulls)
    return Instance(
        name="",
        title=f"{num_arms} {title}, {num_pulls} pulled",
        source=source,
        num_pulls=num_pulls,
        prior=uniform_prior(bandit),
        bandit=bandit,
        horizon=10_000,
        truth_in_prior=True,
    )
