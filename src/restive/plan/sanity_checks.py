"""Sanity checks of a problem: do arms count while not pulled, are states in order?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from restive.errors import AssumptionError, TooLargeError
from restive.plan.evaluate import exact_value
from restive.plan.policies.best_fixed import best_fixed
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit, kinds_of

__all__ = ["best_first_hint", "blind_learners_hint", "fixed_arms_hint"]

NO_MORE = 1e-6  # relative: a policy that earns this much more than fixed arms is no better


def fixed_arms_hint(bandit: RestlessBandit, rewards: Mapping[str, tuple[float, float]]) -> str:
    """Say so where always pulling the same arms is best only because the others do not count.

    Parameters
    ----------
    bandit
        The true arms.
    rewards
        J of policies and its standard error, by name; "best_fixed" is solved if it is missing.
    """
    others = {name: reward for name, reward in rewards.items() if name != "best_fixed"}
    if not others or bandit.num_pulls == bandit.num_arms:
        return ""
    kinds = kinds_of(bandit).arms
    if any(arm.pays_unpulled for arm in kinds) or all(arm.is_uncontrolled for arm in kinds):
        return ""
    if "best_fixed" in rewards:
        fixed = rewards["best_fixed"][0]
    else:
        try:
            fixed = exact_value(bandit, best_fixed(bandit)).average_reward
        except (AssumptionError, TooLargeError):
            return ""
    if any(reward > fixed + NO_MORE * abs(fixed) + 2 * error for reward, error in others.values()):
        return ""
    return (
        "a fixed set of arms is best, since only pulled arms pay; if arms also count while not "
        'pulled, set passive_rewards, or pay = "always"'
    )


def best_first_hint(bandit: RestlessBandit) -> str:
    """Say so where the states of an arm seem to be listed best first."""
    for arm in kinds_of(bandit).arms:
        less = arm.rewards[-1] < arm.rewards[0]
        if less and arm.passive_rewards[-1] <= arm.passive_rewards[0]:
            first, last = arm.state_name(0), arm.state_name(arm.num_states - 1)
            return (
                f"state {last!r} pays less than {first!r}, but is taken for the best, in which "
                "arms begin: list states worst first"
            )
    return ""


def blind_learners_hint(arms: Iterable[Arm], learners: Sequence[str]) -> str:
    """Say which learners, by name, do not know what these arms pay while they are not pulled."""
    if not learners or not any(arm.pays_unpulled for arm in arms):
        return ""
    whose = "it solves" if len(learners) == 1 else "they solve"
    verb = "plans" if len(learners) == 1 else "plan"
    return (
        f"arms also pay while not pulled: {', '.join(learners)} {verb} for what pulled arms pay, "
        f"so {whose} another problem"
    )
