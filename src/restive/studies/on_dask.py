"""Work on a Dask cluster: chunks travel as text and numbers, results come back as small arrays.

Dask moves the chunks of a worker that died to others and takes in workers that join late. A chunk
whose workers died again and again is given back by Dask as failed; it is handed in anew a few
times, since a cluster whose workers are killed for other reasons is not the chunk's fault.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from logging import CRITICAL, getLogger, root
from multiprocessing import resource_tracker
from pkgutil import resolve_name
from threading import Thread
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any

from restive.errors import RestiveError
from restive.measure.replication import NUMBERS
from restive.studies.work import Arrays, Chunk, Execute, run_chunk
from restive.threads import available_threads

if TYPE_CHECKING:
    from restive.studies.executors import TLS

__all__ = ["on_dask"]

WAITING_PER_THREAD = 3  # chunks handed in ahead: enough to hide the way to and fro
MOST_RETURNS = 5  # times that a chunk is handed in anew after its workers died
CONNECT_SECONDS = 20
GRACE_SECONDS = 5  # beyond that, for Dask to notice by itself
LOOK_SECONDS = 5  # between two looks for workers while nothing comes back
START_SECONDS = 0.2  # between two looks for the first of them
POLL_SECONDS = 0.005  # between two looks for results

Tell = Callable[[str], None]


@contextmanager
def on_dask(
    workers: int | None, scheduler: str | None, tell: Tell, tls: TLS | None = None
) -> Iterator[Execute]:
    """Open an executor on the cluster at an address, or on one of local processes."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise RestiveError(
            "the executor 'dask' needs dask.distributed: pip install 'restive[cluster]'"
        ) from None
    opened = _local_client(workers) if scheduler is None else _client_at(scheduler, tls)
    with _quiet(), opened as client:
        tell(f"dashboard: {client.dashboard_link}")
        yield lambda chunks: _execute(client, chunks, tell)


@contextmanager
def _local_client(workers: int | None) -> Iterator[Any]:
    from distributed import Client

    hear_interrupts = _held_interrupts()
    try:
        with _local_cluster(workers) as cluster:
            hear_interrupts()
            # Results come from the workers themselves: by way of the scheduler, which is in this
            # process too, each would be packed and unpacked twice.
            with Client(cluster, direct_to_workers=True) as client:
                yield client
    finally:
        hear_interrupts()


def _local_cluster(workers: int | None) -> Any:
    import dask
    from distributed import LocalCluster

    try:
        # Workers are not interrupted a hundred times a second to see which line they are at: they
        # are in compiled code.
        with dask.config.set({"distributed.worker.profile.enabled": False}):
            return LocalCluster(
                n_workers=workers or available_threads(),
                threads_per_worker=1,
                processes=True,
                dashboard_address="127.0.0.1:0",
                silence_logs=CRITICAL,
            )
    except RuntimeError as error:
        raise RestiveError(
            f"no local Dask cluster could be started: {error} (a script that starts one must do so "
            "under if __name__ == '__main__')"
        ) from None


def _held_interrupts() -> Callable[[], None]:
    """Hold Ctrl-C back until the function returned is called, and for ever in processes begun now.

    A terminal sends it to all, but it is the driver's to hear, who ends the workers.
    """
    if not hasattr(signal, "pthread_sigmask"):  # a system without
        return lambda: None
    resource_tracker.ensure_running()  # which lets them through again where it is started later
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})

    def hear() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    return hear


@contextmanager
def _client_at(scheduler: str, tls: TLS | None) -> Iterator[Any]:
    from distributed import Client
    from distributed.security import Security

    # without files of ours, those that Dask's own settings name
    security = None
    if tls is not None:
        security = Security(
            tls_ca_file=str(tls.ca_file),
            tls_client_cert=str(tls.cert),
            tls_client_key=str(tls.key),
            require_encryption=True,
        )
    found: list[Any] = []

    def connect() -> None:
        try:
            found.append(Client(scheduler, timeout=CONNECT_SECONDS, security=security))
        except Exception as error:  # whatever Dask makes of what it is answered
            found.append(RestiveError(f"{scheduler}: no Dask scheduler answers: {error!s:.300}"))

    # Dask waits for ever on a port where somebody else listens.
    connecting = Thread(target=connect, daemon=True)
    connecting.start()
    connecting.join(CONNECT_SECONDS + GRACE_SECONDS)
    if not found:
        raise RestiveError(f"{scheduler}: something listens there, but it is not a Dask scheduler")
    if isinstance(found[0], RestiveError):
        raise found[0]
    with found[0] as client:
        yield client


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Dask's tracebacks from the terminal: what matters is said in a sentence."""
    names = [name for name in root.manager.loggerDict if name.split(".")[0] == "distributed"]
    levels = {name: getLogger(name).level for name in names}  # several have one of their own
    for name in names:
        getLogger(name).setLevel(CRITICAL)
    try:
        yield
    finally:
        for name, level in levels.items():
            getLogger(name).setLevel(level)


def _execute(
    client: Any, chunks: Iterable[Chunk], tell: Tell = lambda line: None
) -> Iterator[tuple[Chunk, Arrays]]:
    from distributed import CancelledError, KilledWorker, as_completed
    from distributed.comm.core import CommClosedError

    left = iter(chunks)
    waiting: dict[Any, tuple[Chunk, int]] = {}  # what was handed in, and how often
    results = as_completed(with_results=False)
    crew = _Crew(client, tell)

    def submit(chunk: Chunk, returns: int = 0) -> None:
        future = client.submit(
            run_chunk, chunk.case.settings.to_json(), chunk.first, chunk.count, pure=False
        )
        waiting[future] = chunk, returns
        results.add(future)

    def fill() -> None:
        free = max(1, WAITING_PER_THREAD * crew.threads()) - len(waiting)
        for chunk in islice(left, max(0, free)):  # less than none where a worker has gone
            submit(chunk)

    try:
        # Nothing is handed in before somebody is there and has been asked: a worker that lacks
        # restive ends itself on being handed a chunk, and nobody would be told.
        crew.watch_until(crew.is_there, START_SECONDS)
        fill()
        while waiting:
            crew.watch_until(results.has_ready, POLL_SECONDS)
            future = next(results)
            chunk, returns = waiting.pop(future)
            try:
                arrays = future.result()
            except KilledWorker:
                if returns == MOST_RETURNS:
                    raise RestiveError(
                        f"the workers that ran replications {chunk.first} to "
                        f"{chunk.first + chunk.count - 1} of {chunk.case.title} died, "
                        f"{returns + 1} times over; see their logs, then run the same command again"
                    ) from None
                submit(chunk, returns + 1)
                continue
            finally:
                future.release()
            fill()  # before this one is written: nobody waits for that
            yield chunk, arrays
    except RestiveError:
        raise
    except Exception as error:
        lost = client.status != "running" or isinstance(error, (CommClosedError, CancelledError))
        what = "the scheduler has gone" if lost else f"{error!r:.300}"
        raise RestiveError(
            f"the Dask cluster failed: {what}; what is done is kept: run the same command again"
        ) from error
    finally:
        with suppress(Exception):  # it may be gone
            client.cancel(list(waiting))


class _Crew:
    """The workers of a cluster, who come and go; each is asked once what it would compute with."""

    def __init__(self, client: Any, tell: Tell) -> None:
        self._client, self._tell = client, tell
        self._asked: set[str] = set()
        self._told = False  # that nobody is there

    def threads(self) -> int:
        """How many threads there are now."""
        threads: dict[str, int] = self._client.nthreads()
        new = sorted(threads.keys() - self._asked)
        if new:
            self._require_same_numbers(new)
            self._asked |= set(new)
        if not threads and not self._told:
            address = self._client.scheduler.address
            self._tell(f"{address}: no worker is there; waiting for one: dask worker {address}")
        self._told = not threads
        return sum(threads.values())

    def is_there(self) -> bool:
        """Whether there is anybody."""
        return self.threads() > 0

    def watch_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Wait, and look now and then whether somebody has come, or nobody is left."""
        look = monotonic() + LOOK_SECONDS
        while not ready():
            if monotonic() > look:
                self.threads()
                look = monotonic() + LOOK_SECONDS
            sleep(seconds)

    def _require_same_numbers(self, workers: list[str]) -> None:
        """Raise unless these workers have a restive that gives the same numbers as ours."""
        answers = self._client.run(
            resolve_name, "restive.measure.replication:NUMBERS", workers=workers, on_error="return"
        )
        for worker, answer in answers.items():
            if isinstance(answer, Exception):
                raise RestiveError(
                    f"the Dask worker at {worker} has no restive of this version ({answer}): "
                    "install the same there, then run the same command again"
                )
            if answer != NUMBERS:
                raise RestiveError(
                    f"the Dask worker at {worker} has a restive with other random numbers (version "
                    f"{answer}, here {NUMBERS}): install the same there, then run the same command "
                    "again"
                )
