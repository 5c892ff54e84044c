"""How long a study takes, by a short trial of each case on this machine."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter, process_time

import numpy as np

from restive.learn.learners.base import Learner, Relative
from restive.learn.task import MOST_CACHED_POLICIES, Task
from restive.measure.long_runs import learning_bytes
from restive.measure.replication import Replications, replicate, with_truths
from restive.plan.policies.base import IndexPolicy
from restive.studies.settings import CaseSettings
from restive.studies.spec import Case
from restive.studies.work import chunk_size, prepared, result_bytes

__all__ = ["CostEstimate", "estimate", "memory_bytes", "seconds_per_step"]

TRIAL_STEPS = 20_000
LEAST_SECONDS = 0.05  # of a trial that counts
MOST_PLANS = 5  # made to see how long one takes
LONG = 5.0  # seconds of a plan that are not spent twice
STAND_IN = "myopic"  # a mapping that is made at once, for about as many episodes


@dataclass(frozen=True)
class CostEstimate:
    """What a case would take."""

    seconds: float  # on one processor
    disk_bytes: int
    memory_bytes: int  # beyond what Python itself takes


def estimate(case: Case, replications: int, workers: int) -> CostEstimate:
    """Estimate what a case would take, from a short trial."""
    per_step = seconds_per_step(case.settings, with_oracle=True)
    return CostEstimate(
        per_step * case.settings.horizon * replications,
        result_bytes(case) * replications,
        memory_bytes(case, replications, workers),
    )


def memory_bytes(case: Case, replications: int, workers: int) -> int:
    """Bytes of chunks that run or wait, of two numbers per replication, and of what is learned."""
    _, task, learner = prepared(case.settings.to_json())
    chunks = 8 * chunk_size(case) * result_bytes(case)
    held = learning_bytes(task, learner, case.settings.horizon)
    return chunks + 16 * replications + workers * held


def seconds_per_step(
    case: CaseSettings, *, with_oracle: bool, most_steps: int = TRIAL_STEPS
) -> float:
    """Time a step of a case's learner, alone or with the policy that knows the truth beside it.

    A mapping that plans for whole systems, such as "best_index", is not tried out: it may take
    seconds for each system that a learner draws. What is timed is one plan, and a trial with
    another mapping counts the draws. The index tables that continuous priors need for each draw are
    made in the trial, as often as in a run.
    """
    steps = min(case.horizon, most_steps)
    trial = case.shortened(steps)
    _, task, learner = prepared(trial.to_json())
    planning = _seconds_per_plan(task, case.seed) if _plans_for_each_draw(task, learner) else None
    if planning is None:
        return _timed(task, learner, steps, case.seed, with_oracle)[0]
    quick = prepared(trial.model_copy(update={"policy_mappings": [STAND_IN]}).to_json())[1]
    seconds, done = _timed(quick, learner, steps, case.seed, with_oracle)
    plans = float(done.episodes[:, -1].mean()) + with_oracle
    return seconds + plans * planning / steps


def _timed(
    task: Task, learner: Learner, steps: int, seed: int, with_oracle: bool
) -> tuple[float, Replications]:
    """Seconds per step of a trial, and what happened in it."""

    def run(count: int) -> tuple[float, Replications]:
        task.cached_tables.clear()  # which no two replications share
        began = perf_counter()
        done = replicate(
            task, learner, np.array([steps]), count, seed, with_oracle=with_oracle, threads=1,
            chunk=count,
        )  # fmt: skip
        return perf_counter() - began, done

    run(1)  # compiles
    count = 1
    seconds, done = run(1)
    while seconds < LEAST_SECONDS:
        count *= 4
        seconds, done = run(count)
    return seconds / (steps * count), done


def _plans_for_each_draw(task: Task, learner: Learner) -> bool:
    """Whether a learner plans anew with most of its draws: there are too many to remember."""
    if task.make_policy is None or not isinstance(learner, Relative):
        return False
    choices = task.choices
    if choices.has_particles:  # of which no two draws are alike
        return True
    counts = np.array([np.count_nonzero(weights) for weights in choices.weights])
    log_systems = np.log2(counts)[choices.pool_of_group].sum()
    return bool(log_systems > np.log2(MOST_CACHED_POLICIES))


def _seconds_per_plan(task: Task, seed: int) -> float | None:
    """Seconds, of all processors together, to make the policy of a drawn system.

    None for policies that are no tables: they are asked in every step, which takes time too.
    """
    assert task.make_policy is not None
    spent: list[float] = []
    knowing, truths = with_truths(task, MOST_PLANS, seed)
    for kinds in truths:
        began = process_time()
        policy = task.make_policy(knowing.bandit_of(kinds))
        spent.append(process_time() - began)
        if not isinstance(policy, IndexPolicy):
            return None
        if spent[0] > LONG or sum(spent[1:]) > LEAST_SECONDS:
            break
    return float(np.mean(spent[1:] or spent))  # the first may have compiled
