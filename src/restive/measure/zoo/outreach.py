"""Instances in which every arm counts in every step: people to call, patients to visit.

The reward is the state, pulled or not; a pull moves an arm to better states. Whom to pull is then a
question of where a pull changes most, not of who is best off.
"""

from __future__ import annotations

import numpy as np

from restive.arguments import checked_count, checked_seed
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.measure.zoo.instance import Instance, drawn_instance, spread
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit, checked_num_pulls

__all__ = ["cohort", "collapsing", "qian_pair", "two_types"]


MATE = "Mate, Killian, Xu, Perrault and Tambe 2020 (collapsing bandits, arXiv:2007.04432)"
QIAN = "Qian, Zhang, Krishnamachari and Tambe 2016 (Restless Poachers)"
KILLIAN = "Killian, Xu, Biswas and Tambe 2022 (robust restless bandits, arXiv:2107.01689)"

RESPONSIVE = 0.4  # share of arms that calls mend at once
BAD = ([[0.96, 0.04], [0.01, 0.99]], [[0.97, 0.03], [0.03, 0.97]])  # pulled, not pulled
SELF_HEALING = ([[0.23, 0.77], [0.01, 0.99]], [[0.25, 0.75], [0.03, 0.97]])

# Shares of the cohort's types, the row of "self-motivated" and the ranges of u and v.
SHARES = (0.2, 0.2, 0.6)
FROM_SELF_MOTIVATED = ((0.0, 0.9, 0.1), (0.0, 0.1, 0.9), (0.0, 0.9, 0.1))
FROM_LOST = (0.6, 0.4, 0.0)
LOSING = ((0.5, 1.0), (0.35, 0.85), (0.35, 0.85))
WINNING = ((0.5, 1.0), (0.15, 0.65), (0.0, 0.5))
COHORT_SPREAD = 0.01


def collapsing(num_arms: int = 50, num_pulls: int = 5, *, seed: int = 0) -> Instance:
    """Arms that fall into a bad state and that a pull may mend, paid in every step.

    Not pulled, an arm stays bad with probability U(0.8, 1) and good with U(0.6, 0.9). Pulled, it
    stays good with U(0.9, 1) and bad with U(0, 0.2) if it is responsive, as 40% are, and with
    U(0.6, 0.8) if it is not. What a learner holds possible are 32 such arms for each, one of which
    is the truth.

    Parameters
    ----------
    num_arms, num_pulls
        Numbers K of arms and N of pulls; in the source 50 and 5, for 180 steps.
    seed
        Of the draws, from 0 to 2^64 - 1.
    """
    num_arms, num_pulls = _sizes(num_arms, num_pulls)
    rng = np.random.default_rng(checked_seed(seed))

    def arm() -> Arm:
        u = rng.random(5).tolist()
        passive = _two_states(0.8 + 0.2 * u[0], 0.6 + 0.3 * u[1])
        stays_bad = 0.2 * u[3] if u[2] < RESPONSIVE else 0.6 + 0.2 * u[3]
        return Arm(_two_states(stays_bad, 0.9 + 0.1 * u[4]), passive, [0, 1], [0, 1])

    title = f"{num_arms} patients, {num_pulls} calls a step: some respond, all count always"
    source = f"{MATE}, their simulated arms, drawn with seed {seed}"
    return drawn_instance("collapsing", title, source, rng, arm, num_arms, num_pulls, 180)


def two_types(num_arms: int = 50, num_pulls: int = 5) -> Instance:
    """Half of the arms stay as they are for long, half heal by themselves; paid in every step.

    Pulls do more for the first, so calling those who seem worst off is wrong: they may be about to
    heal. The types alternate. A learner knows both, and of no arm which it is.
    """
    num_arms, num_pulls = _sizes(num_arms, num_pulls)
    kinds = [Arm(*matrices, [0, 1], [0, 1]) for matrices in (BAD, SELF_HEALING)]
    return Instance(
        name="collapsing-two-types",
        title=f"{num_arms} patients, {num_pulls} calls a step: half of them heal by themselves",
        source=f"{MATE}, their two types of patients",
        num_pulls=num_pulls,
        prior=IndependentPrior([ArmPrior(kinds)] * num_arms),
        bandit=RestlessBandit([kinds[k % 2] for k in range(num_arms)], num_pulls),
        horizon=180,
        truth_in_prior=True,
    )


def qian_pair() -> Instance:
    """Two arms, one pull, paid in every step; in the long run always the second is best, 73/77.

    The source shows a myopic policy fail on it, one that looks at the present state's reward. The
    one of this package also looks at the next state, and does not.
    """
    arms = [
        Arm([[0.95, 0.05], [0.05, 0.95]], [[0.99, 0.01], [0.1, 0.9]], [0, 1], [0, 1]),
        Arm([[0.4, 0.6], [0.1, 0.9]], [[0.7, 0.3], [0.4, 0.6]], [0, 1], [0, 1]),
    ]
    priors = [ArmPrior([_blurred(arm, tenths / 10) for tenths in range(8)]) for arm in arms]
    return Instance(
        name="qian-pair",
        title="2 arms, 1 pull: pulls hardly move the first, and all are paid always",
        source=f"{QIAN}, their example where a myopic policy fails",
        num_pulls=1,
        prior=IndependentPrior(priors),
        bandit=RestlessBandit(arms, 1),
        horizon=10_000,
        truth_in_prior=True,
    )


def cohort(num_arms: int = 50, num_pulls: int = 5, *, seed: int = 0) -> Instance:
    """Three states, lost (0), persuadable (1/2) and self-motivated (1), paid in every step.

    A call wins a persuadable arm over with probability v; without one it is lost with u. All else
    moves by itself: a self-motivated arm becomes persuadable again, a lost one comes back with 0.4.
    The source gives these probabilities only; what is left of each row stays where it is. Three
    types, 20%, 20% and 60% of the arms, differ in u, v and how long motivation lasts. Every row is
    mixed with 1% of the uniform law, since nobody becomes self-motivated unpulled otherwise and
    Assumption 1 fails.

    Parameters
    ----------
    num_arms, num_pulls
        Numbers K of arms and N of pulls.
    seed
        Of the draws, from 0 to 2^64 - 1.
    """
    num_arms, num_pulls = _sizes(num_arms, num_pulls)
    rng = np.random.default_rng(checked_seed(seed))
    rewards = [0, 0.5, 1]

    def arm() -> Arm:
        place, u, v = rng.random(3).tolist()
        kind = int(place >= SHARES[0]) + int(place >= SHARES[0] + SHARES[1])
        u, v = (
            low + (high - low) * share
            for (low, high), share in ((LOSING[kind], u), (WINNING[kind], v))
        )
        pulled, alone = (
            spread(np.array([FROM_LOST, persuadable, FROM_SELF_MOTIVATED[kind]]), COHORT_SPREAD)
            for persuadable in ((0, 1 - v, v), (u, 1 - u, 0))
        )
        return Arm(pulled, alone, rewards, rewards)

    title = f"{num_arms} mothers, {num_pulls} calls a step: lost, persuadable or self-motivated"
    source = f"{KILLIAN}, after their synthetic ARMMAN domain, drawn with seed {seed}"
    return drawn_instance("outreach-cohort", title, source, rng, arm, num_arms, num_pulls, 180)


def _blurred(arm: Arm, weight: float) -> Arm:
    """Mix the uniform law into both matrices; with weight 0 it is the arm, to the bit."""
    matrices = (spread(arm.active, weight), spread(arm.passive, weight))
    return Arm(*matrices, arm.rewards, arm.passive_rewards)


def _sizes(num_arms: int, num_pulls: int) -> tuple[int, int]:
    num_arms = checked_count(num_arms, "num_arms", most=10**5)
    return num_arms, checked_num_pulls(num_pulls, num_arms)


def _two_states(stays_bad: float, stays_good: float) -> list[list[float]]:
    return [[stays_bad, 1 - stays_bad], [1 - stays_good, stays_good]]
