"""J of a case's true systems, solved exactly: looked at before a run, and used after it."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from restive.errors import RestiveError, TooLargeError
from restive.measure.regret import MOST_SYSTEMS_FOR_J, exact_rewards, truth_reward
from restive.measure.replication import drawn_truths
from restive.studies.spec import Case
from restive.studies.work import prepared

__all__ = ["drawn_rewards", "fixed_truth_reward", "require_exact_baseline"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

KEPT_REWARDS = 4096  # systems whose J is remembered
AT_ONCE = 1024  # truths that are drawn together


def fixed_truth_reward(case: Case) -> float | None:
    """J of a fixed truth, None where it is drawn, changes, or has no J that can be had exactly."""
    if case.settings.kind == "bayesian" or case.changes:
        return None
    return _solved_or_none(_of_all_learners(case))


def drawn_rewards(case: Case, true_kinds: IntArray) -> FloatArray:
    """J of the mapping on each replication's truth, by kinds of arms [R, K]."""
    num_kinds = len(prepared(case.settings.to_json())[1].choices.kinds.arms)
    if true_kinds.size and not 0 <= true_kinds.min() <= true_kinds.max() < num_kinds:
        raise RestiveError(f"{case.title}: its results hold arms that do not exist; start again")
    if case.mapping == "best_fixed":  # at once, however many systems there are
        return exact_rewards(prepared(case.settings.to_json())[1], true_kinds)
    text = _of_all_learners(case)
    systems, places = np.unique(true_kinds, axis=0, return_inverse=True)
    values = np.array([_solved(text, tuple(system)) for system in systems.tolist()])
    return values[places.ravel()]


def require_exact_baseline(case: Case, replications: int) -> None:
    """Raise where J of a truth, fixed or drawn in these replications, cannot be had exactly.

    What is solved here is remembered for the summary.
    """
    if case.settings.kind == "frequentist":
        fixed_truth_reward(case)
    elif case.mapping != "best_fixed":
        drawn_rewards(case, _drawn_systems(case, replications))


def _drawn_systems(case: Case, replications: int) -> IntArray:
    """Return the different truths of the first replications, or raise if they are too many."""
    settings, task, _ = prepared(case.settings.to_json())
    found = np.empty((0, task.num_arms), dtype=np.int64)
    for first in range(0, replications, AT_ONCE):
        count = min(AT_ONCE, replications - first)
        truths = drawn_truths(task, count, settings.seed, first)
        found = np.unique(np.concatenate([found, truths]), axis=0)
        if len(found) > MOST_SYSTEMS_FOR_J:
            raise TooLargeError(
                f"its replications draw more than {MOST_SYSTEMS_FOR_J:,} different systems, and J "
                "of each would have to be solved; use baseline = 'coupled'"
            )
    return found


def _of_all_learners(case: Case) -> str:
    """Return a case's text without its learner, on whom J does not depend."""
    return case.settings.model_copy(update={"learners": ["tsde"]}).to_json()


@lru_cache(maxsize=KEPT_REWARDS)
def _solved_or_none(case: str) -> float | None:
    settings, task, _ = prepared(case)
    return truth_reward(task, required=settings.baseline == "exact")


@lru_cache(maxsize=KEPT_REWARDS)
def _solved(case: str, kinds: tuple[int, ...]) -> float:
    _, task, _ = prepared(case)
    return float(exact_rewards(task, np.array([kinds]))[0])
