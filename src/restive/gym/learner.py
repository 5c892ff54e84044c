"""A trained policy as a learner that `compare` and the regrets take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.gym.forms import Forms, Pulls, made_forms
from restive.learn.task import Task
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState, beliefs

__all__ = ["learner"]

IntArray = NDArray[np.int64]


def learner(
    policy: Callable[..., Any],
    *,
    observation: str = "belief",
    action: str = "scores",
    bandit: RestlessBandit | None = None,
    name: str | None = None,
) -> Callable[[Task, int], Any]:
    """Make of a trained policy what `compare`, `frequentist_regret` and `register_learner` take.

    Parameters
    ----------
    policy
        A function of an observation that returns an action, as the environment has them; with
        `action="arm"` it is also given the mask of arms that are not taken. It is called from
        several threads and keeps nothing from one call to the next: a policy with a memory is best
        written as a learner of your own.
    observation, action
        The environment's, in which it was trained.
    bandit
        The system whose beliefs it sees, where it sees beliefs; by default the truth, as in the
        environment.
    name
        How tables call it; by default the function's own name.
    """
    if not callable(policy):
        raise ProblemError(f"a policy is a function of an observation, got {policy!r:.60}")
    if bandit is not None and not isinstance(bandit, RestlessBandit):
        raise ProblemError(f"bandit must be a RestlessBandit, got {bandit!r:.60}")

    def made(task: Task, seed: int) -> _Player:
        believed = bandit
        if observation == "belief" and believed is None:
            if not len(task.choices.true_kinds):
                raise ProblemError(
                    "the truth is drawn anew in each replication, so beliefs are those of nobody: "
                    "train with observation='sighting', or pass bandit"
                )
            believed = task.bandit_of(task.choices.true_kinds)
        arms = [task.prior.typical(k) for k in range(task.num_arms)]
        like = RestlessBandit(arms, task.num_pulls)
        return _Player(policy, made_forms(like, observation, action, "expected"), believed, task)

    made.__name__ = name or str(getattr(policy, "__name__", "policy"))
    return made


class _Player:
    """Somebody who asks the policy in every step."""

    def __init__(
        self,
        policy: Callable[..., Any],
        forms: Forms,
        believed: RestlessBandit | None,
        task: Task,
    ) -> None:
        self._policy, self._forms, self._believed = policy, forms, believed
        self._max_elapsed = task.max_elapsed
        like = [task.prior.typical(k) for k in range(task.num_arms)]
        self._always = np.flatnonzero([arm.always_seen for arm in like])
        self._state: BeliefState = task.start
        self._pulls = Pulls(forms, 1)

    def select(self) -> IntArray:
        """Return the arms to pull."""
        arms = None
        while arms is None:
            seen = self._seen()
            if self._forms.action == "arm":
                answer = self._policy(seen, ~self._pulls.taken[0])
            else:
                answer = self._policy(seen)
            arms = self._pulls.add([answer])
        pulled: IntArray = arms[0]
        self._pulled = pulled
        return pulled

    def observe(self, states: IntArray) -> None:
        """Learn the states of the arms that are shown: those pulled, and those always seen."""
        shown = np.union1d(self._pulled, self._always)
        self._state = self._state.updated(shown, states)

    def _seen(self) -> Any:
        state, laws = self._state, None
        if self._believed is not None and self._forms.observation == "belief":
            laws = beliefs(self._believed, state, max_elapsed=self._max_elapsed)[None]
        seen = self._forms.seen(
            state.last_state[None], state.elapsed[None], laws, self._pulls.taken
        )
        if isinstance(seen, dict):
            return {name: values[0].copy() for name, values in seen.items()}
        return seen[0]
