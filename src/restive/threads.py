"""Work on several threads whose results come in order, as if there were one.

Long work done in short calls of kernels, on one core or all, so that Ctrl-C is heard in between.

Python hears an interrupt only between two of its own instructions. So a kernel that could run for
long counts its work, notes in the arrays that it was given how far it has come, and returns; Python
looks (`look`) and calls it again. Kernels make no arrays for Python either: numba runs Python code
to hand one over, and an interrupt that strikes there crashes the process.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event, Lock, Thread, current_thread, local, main_thread
from typing import TypeVar

__all__ = ["WORK_AT_ONCE", "available_threads", "in_order", "look", "on_all_cores"]

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # items that each thread may be ahead of who takes the results
MOST = 8  # threads; more would only wait for who takes the results, and hold memory


def available_threads() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def in_order(
    work: Callable[[Item], Result], items: Iterable[Item], ahead: int | None = None
) -> Iterator[Result]:
    """Yield `work(item)` for each item in turn, while threads work on those that follow.

    An error, of `work` or of the items themselves, is raised in its turn, so it is the same error
    for any number of threads.

    Parameters
    ----------
    work
        What threads do with an item.
    items
        They are asked for one by one, in the caller's thread.
    ahead
        How many items may be worked on, or wait, beyond the one whose result is due; by default a
        few for each thread.
    """
    count = min(available_threads(), MOST)
    room = AHEAD * count if ahead is None else ahead
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(count, "restive-worker") as pool:
        try:
            for coming in _submitted(pool, work, items):
                waiting.append(coming)
                if len(waiting) > room:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:  # also when the reader stops early: what has not begun never does
            pool.shutdown(wait=False, cancel_futures=True)


def _submitted(
    pool: ThreadPoolExecutor, work: Callable[[Item], Result], items: Iterable[Item]
) -> Iterator[Future[Result]]:
    """Yield what was begun; an error of the items is the last."""
    left = iter(items)
    while True:
        try:
            item = next(left)
        except StopIteration:
            return
        except Exception as error:
            failed: Future[Result] = Future()
            failed.set_exception(error)
            yield failed
            return
        yield pool.submit(work, item)


WORK_AT_ONCE = 20_000_000  # products of a kernel's call, about a twentieth of a second
AT_ONCE = 8  # tasks that a worker takes from the list
PATIENCE = 0.05  # seconds between two looks of the thread that waits

_worker = local()


class _StoppedError(Exception):
    """The work of other threads has failed or was interrupted."""


def look() -> None:
    """Stop here if the work that this thread is part of has been stopped."""
    stop: Event | None = getattr(_worker, "stop", None)
    if stop is not None and stop.is_set():
        raise _StoppedError


def on_all_cores(
    task: Callable[[int], None],
    count: int,
    progress: Callable[[int], None] = lambda done: None,
) -> None:
    """Call task(0) ... task(count - 1), in that order but several at a time.

    Raises what the first task that fails has raised. `progress` is called with the number of tasks
    done since its last call, in this thread.
    """
    workers = min(available_threads(), -(-count // AT_ONCE))
    if workers < 2 or current_thread() is not main_thread():
        for number in range(count):
            task(number)
            progress(1)
        return
    _Crew(task, count).work(workers, progress)


class _Crew:
    """Threads that share a list of tasks."""

    def __init__(self, task: Callable[[int], None], count: int) -> None:
        self.task, self.count = task, count
        self.taken = 0
        self.done = 0
        self.errors: dict[int, BaseException] = {}
        self.stop = Event()
        self.lock = Lock()

    def work(self, workers: int, progress: Callable[[int], None]) -> None:
        # Not by joining the threads: a join that Ctrl-C interrupts takes them for ended.
        ended = [Event() for _ in range(workers)]
        threads = [Thread(target=self._run, args=(event,), daemon=True) for event in ended]
        told = 0
        try:
            for thread in threads:
                thread.start()
            for event in ended:
                while not event.wait(PATIENCE):
                    told = self._tell(progress, told)
            self._tell(progress, told)
        finally:
            self.stop.set()
            for thread, event in zip(threads, ended, strict=True):
                if thread.ident is not None:  # it was started
                    event.wait()
                    thread.join()
        if self.errors:
            raise self.errors[min(self.errors)]

    def _tell(self, progress: Callable[[int], None], told: int) -> int:
        """Report what was done since the last time; return what is done."""
        done = self.done
        progress(done - told)
        return done

    def _run(self, ended: Event) -> None:
        try:
            self._work_on()
        finally:
            ended.set()

    def _work_on(self) -> None:
        _worker.stop = self.stop
        while not self.stop.is_set():
            with self.lock:
                first = self.taken
                self.taken = last = min(first + AT_ONCE, self.count)
            if first == last:
                return
            for number in range(first, last):
                try:
                    self.task(number)
                except _StoppedError:
                    return
                except BaseException as error:
                    self.errors[number] = error
                    self._stop_later_tasks()
                    return
            with self.lock:
                self.done += last - first

    def _stop_later_tasks(self) -> None:
        """Let others end what they have begun: an error of an earlier task comes first."""
        with self.lock:
            self.taken = self.count
