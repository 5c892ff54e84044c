"""Work on a Dask cluster: tasks travel as text and numbers, results come back as small arrays.

Dask moves the tasks of a worker that died to others and takes in workers that join late. A task
whose workers died again and again is given back by Dask as failed; it is handed in anew a few
times, since a cluster whose workers are killed for other reasons is not the task's fault.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from logging import CRITICAL
from typing import Any

from restive.errors import RestiveError
from restive.experiment.work import Arrays, Execute, Task, run_chunk
from restive.replication import available_threads

__all__ = ["on_dask"]

WAITING_PER_THREAD = 3  # tasks handed in ahead: enough to hide the way to and fro
MOST_RETURNS = 5  # times that a task is handed in anew after its workers died
CONNECT_SECONDS = 20


@contextmanager
def on_dask(
    workers: int | None, scheduler: str | None, tell: Callable[[str], None]
) -> Iterator[Execute]:
    """Open an executor on the cluster at an address, or on one of local processes."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise RestiveError(
            "the executor 'dask' needs dask.distributed: pip install 'restive[cluster]'"
        ) from None
    if scheduler is not None:
        try:
            client = Client(scheduler, timeout=CONNECT_SECONDS)
        except (OSError, ValueError, TimeoutError) as error:
            raise RestiveError(f"{scheduler}: no Dask scheduler answers: {error}") from None
        with client:
            tell(f"dashboard: {client.dashboard_link}")
            yield lambda tasks: _execute(client, tasks)
        return
    try:
        cluster = LocalCluster(
            n_workers=workers or available_threads(),
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            silence_logs=CRITICAL,
            preload=[__name__],
        )
    except RuntimeError as error:
        raise RestiveError(
            f"no local Dask cluster could be started: {error} (a script that starts one must do so "
            "under if __name__ == '__main__')"
        ) from None
    with cluster, Client(cluster) as client:
        tell(f"dashboard: {client.dashboard_link}")
        yield lambda tasks: _execute(client, tasks)


def dask_setup(worker: Any) -> None:
    """Let a local worker ignore Ctrl-C, which a terminal sends to all: its driver ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _execute(client: Any, tasks: Iterable[Task]) -> Iterator[tuple[Task, Arrays]]:
    from distributed import KilledWorker, as_completed

    left = iter(tasks)
    waiting: dict[Any, tuple[Task, int]] = {}  # what was handed in, and how often
    results = as_completed(with_results=False)

    def submit(task: Task, returns: int = 0) -> None:
        future = client.submit(
            run_chunk, task.case.settings.to_json(), task.first, task.count, pure=False
        )
        waiting[future] = task, returns
        results.add(future)

    def fill() -> None:
        threads = sum(client.nthreads().values())  # asked anew: workers come and go
        room = max(1, WAITING_PER_THREAD * threads) - len(waiting)
        for task in islice(left, max(0, room)):  # less than none where a worker has gone
            submit(task)

    try:
        fill()
        for future in results:
            task, returns = waiting.pop(future)
            try:
                arrays = future.result()
            except KilledWorker:
                if returns == MOST_RETURNS:
                    raise RestiveError(
                        f"the workers that ran replications {task.first} to "
                        f"{task.first + task.count - 1} of {task.case.title} died, "
                        f"{returns + 1} times over; see their logs, then run the same command again"
                    ) from None
                submit(task, returns + 1)
                continue
            finally:
                future.release()
            yield task, arrays
            fill()
    except RestiveError:
        raise
    except Exception as error:  # the scheduler has gone, a worker lacks restive, ...
        raise RestiveError(
            f"the Dask cluster failed: {error!r:.300}; what is done is kept: run the same command "
            "again"
        ) from error
    finally:
        with suppress(Exception):  # it may be gone
            client.cancel(list(waiting))
