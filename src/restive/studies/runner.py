"""Running a study: whatever its ledger lacks, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike

from restive.arguments import checked_count, checked_path, silent
from restive.errors import RestiveError
from restive.learn.learners.base import Relative
from restive.measure.replication import with_truths
from restive.studies.exact_rewards import require_exact_baseline
from restive.studies.executors import TLS, checked_options
from restive.studies.executors import executor as open_executor
from restive.studies.ledger import Ledger
from restive.studies.spec import Study, load_study
from restive.studies.work import KEPT_CASES, Chunk, prepared

__all__ = ["Progress", "require_sound", "run_study"]


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
    progress: Callable[[Progress], None] = silent,
    tell: Callable[[str], None] = silent,
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
