"""Where the work runs: here, on threads, or on Dask.

An executor takes chunks and yields each with its arrays, in whatever order they end. It keeps only
a few results waiting, so the driver's memory does not grow with the study.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from os import PathLike

from restive.arguments import checked_count, checked_path, suggestion
from restive.errors import ProblemError
from restive.files import read_regular
from restive.studies.work import Arrays, Chunk, Execute, run_chunk
from restive.threads import available_threads, worker_pool

__all__ = ["TLS", "checked_options", "executor"]

EXECUTORS = ("serial", "threads", "dask")


@dataclass(frozen=True)
class TLS:
    """Files (PEM) with which a Dask cluster is spoken to: `ca_file` says whom to trust, `cert` and
    `key` who we are.
    """

    ca_file: str | PathLike[str]
    cert: str | PathLike[str]
    key: str | PathLike[str]


@contextmanager
def executor(
    name: str,
    workers: int | None = None,
    scheduler: str | None = None,
    tell: Callable[[str], None] = lambda line: None,
    tls: TLS | None = None,
) -> Iterator[Execute]:
    """Open an executor; `workers` is how many it may have, by default one per processor.

    `scheduler` is the address of a Dask cluster that is there already, `tls` what it is spoken to
    with; `tell` gets the address of its dashboard.
    """
    checked_options(name, workers, scheduler, tls)
    if name == "serial":
        yield _serial
    elif name == "threads":
        count = workers or available_threads()
        with worker_pool(count) as pool:
            yield lambda chunks: _on_threads(pool, count, chunks)
    else:
        from restive.studies.on_dask import on_dask

        with on_dask(workers, scheduler, tell, tls) as execute:
            yield execute


def checked_options(
    name: str, workers: int | None, scheduler: str | None, tls: TLS | None = None
) -> None:
    """Raise unless there is such an executor."""
    if name not in EXECUTORS:
        raise ProblemError(f"unknown executor {name!r}; {suggestion(name, EXECUTORS)}")
    if scheduler is not None and name != "dask":
        raise ProblemError(f"a scheduler goes with the executor 'dask', not with {name!r}")
    if scheduler is not None and workers is not None:
        raise ProblemError(f"give workers or a scheduler: {scheduler} has workers of its own")
    if workers is not None:
        checked_count(workers, "workers")
    if tls is not None and not str(scheduler).startswith("tls://"):
        raise ProblemError(f"TLS goes with a scheduler at tls://..., got {scheduler!r:.60}")
    for path in () if tls is None else (tls.ca_file, tls.cert, tls.key):
        try:
            read_regular(checked_path(path, "a file for TLS"))
        except OSError as error:
            raise ProblemError(f"{path}: cannot be read: {error.strerror}") from None


def _serial(chunks: Iterable[Chunk]) -> Iterator[tuple[Chunk, Arrays]]:
    for chunk in chunks:
        yield chunk, run_chunk(chunk.case.settings.to_json(), chunk.first, chunk.count)


def _on_threads(
    pool: ThreadPoolExecutor, workers: int, chunks: Iterable[Chunk]
) -> Iterator[tuple[Chunk, Arrays]]:
    """Keep every thread busy, with one more chunk waiting for each."""
    waiting: dict[Future[Arrays], Chunk] = {}
    left = iter(chunks)

    def submit(count: int) -> None:
        for chunk in islice(left, count):
            future = pool.submit(run_chunk, chunk.case.settings.to_json(), chunk.first, chunk.count)
            waiting[future] = chunk

    submit(2 * workers)
    while waiting:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            chunk = waiting.pop(future)
            submit(1)
            yield chunk, future.result()
