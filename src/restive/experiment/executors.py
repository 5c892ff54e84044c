"""Where the work runs: here, on threads, or on Dask.

An executor takes tasks and yields each with its arrays, in whatever order they end. It keeps only a
few results waiting, so the driver's memory does not grow with the study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from itertools import islice

from restive.arguments import checked_count, suggestion
from restive.errors import ProblemError
from restive.experiment.work import Arrays, Execute, Task, run_chunk
from restive.replication import available_threads

__all__ = ["EXECUTORS", "checked_options", "executor"]

EXECUTORS = ("serial", "threads", "dask")


@contextmanager
def executor(
    name: str,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Callable[[str], None] = lambda line: None,
) -> Iterator[Execute]:
    """Open an executor; `workers` is how many it may have, by default one per processor.

    `scheduler` is the address of a Dask cluster that is there already; `tell` is told the address
    of its dashboard.
    """
    checked_options(name, workers, scheduler)
    if name == "serial":
        yield _serial
    elif name == "threads":
        with ThreadPoolExecutor(workers or available_threads()) as pool:
            yield lambda tasks: _on_threads(pool, workers or available_threads(), tasks)
    else:
        from restive.experiment.on_dask import on_dask

        with on_dask(workers, scheduler, tell) as execute:
            yield execute


def checked_options(name: str, workers: int | None, scheduler: str | None) -> None:
    """Raise unless there is such an executor."""
    if name not in EXECUTORS:
        raise ProblemError(f"unknown executor {name!r}; {suggestion(name, EXECUTORS)}")
    if scheduler is not None and name != "dask":
        raise ProblemError(f"a scheduler goes with the executor 'dask', not with {name!r}")
    if scheduler is not None and workers is not None:
        raise ProblemError(f"give workers or a scheduler: {scheduler} has workers of its own")
    if workers is not None:
        checked_count(workers, "workers")


def _serial(tasks: Iterable[Task]) -> Iterator[tuple[Task, Arrays]]:
    for task in tasks:
        yield task, run_chunk(task.case.settings.to_json(), task.first, task.count)


def _on_threads(
    pool: ThreadPoolExecutor, workers: int, tasks: Iterable[Task]
) -> Iterator[tuple[Task, Arrays]]:
    """Keep every thread busy, with one more task waiting for each."""
    waiting: dict[Future[Arrays], Task] = {}
    left = iter(tasks)

    def submit(count: int) -> None:
        for task in islice(left, count):
            future = pool.submit(run_chunk, task.case.settings.to_json(), task.first, task.count)
            waiting[future] = task

    try:
        submit(2 * workers)
        while waiting:
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                task = waiting.pop(future)
                submit(1)
                yield task, future.result()
    finally:  # also when the reader stops early: what has not begun never does
        for future in waiting:
            future.cancel()
