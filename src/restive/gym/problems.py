"""What may be played: a system, or a prior from which each reset draws one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import nan
from os import PathLike
from pathlib import Path
from typing import Any

from restive.arguments import shown
from restive.errors import ProblemError, RestiveError
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import IndependentPrior, Prior
from restive.measure import zoo
from restive.plan.evaluate import evaluate
from restive.plan.policies.optimal import optimal
from restive.plan.relaxation import relaxation_bound
from restive.problem.bandit import RestlessBandit, checked_num_pulls
from restive.problem.changing import ChangingBandit
from restive.problem.problem_file import load_problem

__all__ = ["VALUES", "Played", "played", "values_of"]

VALUES = ("bound", "optimum", "whittle")
MOST_STATES = 20_000  # of an optimum: it takes a second or two


@dataclass(frozen=True, eq=False)
class Played:
    """A system, or a prior over systems with what they have in common."""

    like: RestlessBandit  # the system, or one with the same states and rewards
    prior: Prior | None  # None where the system is known

    def drawn(self, seed: int) -> RestlessBandit:
        """Return the system that is played with this seed."""
        return self.like if self.prior is None else self.prior.sample(seed, self.like.num_pulls)


def played(problem: Any, num_pulls: int | None) -> Played:
    """Return what is to be played: a zoo name, a problem file, a bandit or a prior."""
    if isinstance(problem, str | PathLike):
        problem = _named(problem)
    if isinstance(problem, zoo.Instance):
        if problem.bandit is None:
            num_pulls = problem.num_pulls if num_pulls is None else num_pulls
        problem = problem.prior if problem.bandit is None else problem.bandit
    if isinstance(problem, RestlessBandit):
        if num_pulls is not None:
            raise ProblemError("num_pulls is for a prior; this problem says how many are pulled")
        return Played(problem, None)
    if isinstance(problem, ChangingBandit):
        raise ProblemError(
            f"the arms of {problem!r} change, and an environment's arms stay as they are; take "
            "those of one phase: problem.bandits[0]"
        )
    if isinstance(problem, JointPrior):
        return Played(problem.sample(0, num_pulls), problem)
    if isinstance(problem, IndependentPrior):
        if num_pulls is None:
            raise ProblemError("a prior needs num_pulls, the number of arms pulled each step")
        num_pulls = checked_num_pulls(num_pulls, problem.num_arms)
        arms = [problem.typical(k) for k in range(problem.num_arms)]
        return Played(RestlessBandit(arms, num_pulls), problem)
    raise ProblemError(
        "a problem is a name of the zoo, a problem file, a RestlessBandit or a prior, "
        f"got {shown(problem)}"
    )


def _named(name: str | PathLike[str]) -> Any:
    """Return an instance of the zoo, or the problem in a file."""
    known = isinstance(name, str) and name.replace("_", "-") in zoo.names()
    if not known and (Path(name).suffix or not isinstance(name, str) or Path(name).exists()):
        return load_problem(name)
    return zoo.load(str(name))


@lru_cache(maxsize=64)  # copies of an environment share them
def values_of(bandit: RestlessBandit, max_elapsed: int | None) -> dict[str, float]:
    """Reward per step that no policy exceeds, that of the best policy, and that of Whittle's index.

    What does not exist, or would take too long to find, is nan.
    """
    ways: tuple[Callable[[], float], ...] = (
        lambda: relaxation_bound(bandit, max_elapsed=max_elapsed),
        lambda: optimal(bandit, max_states=MOST_STATES, max_elapsed=max_elapsed).average_reward,
        lambda: evaluate(bandit, "whittle", max_elapsed=max_elapsed).average_reward,
    )
    found = {}
    for name, way in zip(VALUES, ways, strict=True):
        try:
            found[name] = float(way())
        except RestiveError:
            found[name] = nan
    return found
