"""Running a study: whatever its ledger lacks, and nothing else.

How long a step takes, by a short trial on this machine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from time import perf_counter, process_time

import numpy as np

from restive.arguments import checked_count, checked_path
from restive.errors import RestiveError
from restive.learn.learners.base import Learner, Relative
from restive.learn.task import MOST_CACHED_POLICIES, Task
from restive.measure.replication import Replications, replicate, with_truths
from restive.plan.policies.base import IndexPolicy
from restive.studies.executors import TLS, checked_options
from restive.studies.executors import executor as open_executor
from restive.studies.ledger import Ledger
from restive.studies.settings import Settings
from restive.studies.spec import Case, Study, load_study
from restive.studies.work import (
    KEPT_CASES,
    Chunk,
    chunk_size,
    prepared,
    require_exact_baseline,
    result_bytes,
)

__all__ = ["Estimate", "Progress", "estimate", "run_study", "seconds_per_step"]


@dataclass(frozen=True)
class Progress:
    """How far a run is; counts are of replications."""

    done: int  # in this run
    to_do: int  # at the beginning of this run
    cases: dict[str, int]  # there by now, by title of the case
    replications: int  # wanted of each case

    @property
    def total(self) -> int:
        """Wanted over all cases."""
        return self.replications * len(self.cases)


def run_study(
    study: Study | str | PathLike[str],
    folder: str | PathLike[str],
    *,
    replications: int | None = None,
    executor: str = "threads",
    workers: int | None = None,
    scheduler: str | None = None,
    tls: TLS | None = None,
    progress: Callable[[Progress], None] = lambda progress: None,
    tell: Callable[[str], None] = lambda line: None,
) -> Ledger:
    """Run what a results folder lacks of a study; return the folder's ledger.

    The same call again continues where the last one stopped, however it ended. The results are the
    same to the byte for any executor, number of workers and restarts.

    Parameters
    ----------
    study
        From `load_study`, or the path of its file.
    folder
        A new or empty folder, or one in which this study was begun.
    replications
        More of them than the study says; those that are there are kept.
    executor
        "serial", "threads" or "dask".
    workers
        Threads or local Dask workers; by default one per processor.
    scheduler
        Address of a Dask cluster that is there already.
    tls
        What to speak to it with, where its address is tls://...; by default Dask's own settings.
    progress
        Called at the start and after each chunk.
    tell
        Called with a line for a person: a damaged chunk, other code than before, the address of
        a dashboard.
    """
    folder = checked_path(folder, "folder")
    if not isinstance(study, Study):
        study = load_study(checked_path(study, "study"))
    if replications is not None:
        study = replace(study, replications=checked_count(replications, "replications"))
    checked_options(executor, workers, scheduler, tls)
    checked_count(study.replications, "replications")
    require_sound(study)
    with Ledger.writing(folder, study, tell) as ledger:
        ledger.remove_damaged(tell)
        wanted = ledger.study.replications
        there = {case.title: wanted - ledger.num_missing(case) for case in ledger.study.cases}
        to_do = wanted * len(there) - sum(there.values())
        progress(Progress(0, to_do, there, wanted))
        if not to_do:
            return ledger
        done = 0
        with (
            ledger.noted(executor, tell),
            open_executor(executor, workers, scheduler, tell, tls) as execute,
        ):
            for chunk, arrays in execute(_interleaved(ledger)):
                ledger.write(chunk, arrays)
                done += chunk.count
                there[chunk.case.title] += chunk.count
                progress(Progress(done, to_do, there, wanted))
            ledger.require_complete()
    return ledger


def require_sound(study: Study) -> None:
    """Make the tables of every case, and J where it must be exact, so that errors come before
    anything runs.
    """
    source = f"{study.source}: " if study.source else ""
    for case in study.cases:
        try:
            settings, task, learner = prepared(case.settings.to_json())
            task.make_tables(with_posterior=isinstance(learner, Relative))
            if task.make_policy is not None:  # asked step by step: too large a system fails now
                task, truths = with_truths(task, 1, settings.seed)
                task.policy_of(truths[0])
            if case.settings.baseline == "exact":
                require_exact_baseline(case, study.replications)
        except RestiveError as error:
            error.args = (f"{source}{case.title}: {error}",)
            raise


def _interleaved(ledger: Ledger) -> Iterator[Chunk]:
    """Missing chunks, each case's next one in turn: curves grow together.

    A few cases at a time, so that their tables are made but once.
    """
    cases = ledger.study.cases
    for begin in range(0, len(cases), KEPT_CASES):
        left = [ledger.missing(case) for case in cases[begin : begin + KEPT_CASES]]
        while left:
            for chunks in list(left):
                if (chunk := next(chunks, None)) is None:
                    left.remove(chunks)
                else:
                    yield chunk


@dataclass(frozen=True)
class Estimate:
    """What a case would take."""

    seconds: float  # on one processor
    disk_bytes: int
    memory_bytes: int  # of the driver, beyond what Python itself takes


def estimate(case: Case, replications: int) -> Estimate:
    """Estimate what a case would take, from a short trial."""
    per_step = seconds_per_step(case.settings, with_oracle=True)
    return Estimate(
        per_step * case.settings.horizon * replications,
        result_bytes(case) * replications,
        # chunks that run or wait, and two numbers per replication in a summary
        8 * chunk_size(case) * result_bytes(case) + 16 * replications,
    )


TRIAL_STEPS = 20_000
LEAST_SECONDS = 0.05  # of a trial that counts
MOST_PLANS = 5  # made to see how long one takes
LONG = 5.0  # seconds of a plan that are not spent twice
STAND_IN = "myopic"  # a mapping that is made at once, for about as many episodes


def seconds_per_step(case: Settings, *, with_oracle: bool) -> float:
    """Time a step of a case's learner, alone or with the policy that knows the truth beside it.

    A mapping that plans for whole systems, such as "best_index", is not tried out: it may take
    seconds for each system that a learner draws. What is timed is one plan, and a trial with
    another mapping counts the draws. The index tables that continuous priors need for each draw are
    made in the trial, as often as in a run.
    """
    steps = min(case.horizon, TRIAL_STEPS)
    trial = case.model_copy(update={"horizon": steps, "times": [steps], "posterior": False})
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
