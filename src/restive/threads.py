"""Interruptible work, on one thread or several, with the results of one.

Python hears Ctrl-C only between two of its own instructions, and only in its main thread. So a
kernel that could run for long counts its work (`WORK_AT_ONCE`), notes in the arrays that it was
given how far it has come, and returns; Python calls `stop_if_interrupted` and then the kernel
again. Kernels make no arrays for Python either: numba runs Python code to hand one over, and an
interrupt that strikes there crashes the process.

All threads that compute are those of a `worker_pool`: they stop there as soon as whoever waits for
their results no longer does. `in_order` and `on_all_cores` share work out among them; results and
errors come in the order of the work, so that they are the same for any number of threads.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event, current_thread, local, main_thread
from typing import TypeVar

__all__ = [
    "WORK_AT_ONCE",
    "available_threads",
    "in_order",
    "on_all_cores",
    "stop_if_interrupted",
    "worker_pool",
]

Item = TypeVar("Item")
Result = TypeVar("Result")

WORK_AT_ONCE = 20_000_000  # products of a kernel's call, about a twentieth of a second
AHEAD = 2  # items that each thread may be ahead of who takes the results
MOST = 8  # threads; more would only wait for who takes the results, and hold memory
AT_ONCE = 8  # small tasks that a thread takes at a time

_of_this_thread = local()  # `stop`, in a thread of a pool: set when nobody waits for it any more


class _StoppedError(BaseException):  # not an Exception, which the work itself might catch
    """Nobody waits for the result of this work any more."""


def available_threads() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def stop_if_interrupted() -> None:
    """End the work of this thread here if nobody waits for its result any more."""
    stop: Event | None = getattr(_of_this_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise _StoppedError


@contextmanager
def worker_pool(workers: int) -> Iterator[ThreadPoolExecutor]:
    """Open a pool whose work ends with the block, however that ends.

    What has not begun by then never does; what has ends where it calls `stop_if_interrupted`.
    """
    stop = Event()
    with ThreadPoolExecutor(workers, "restive-worker", _belong_to, (stop,)) as pool:
        try:
            yield pool
        finally:
            stop.set()
            pool.shutdown(wait=False, cancel_futures=True)


def _belong_to(stop: Event) -> None:
    _of_this_thread.stop = stop


def on_all_cores(
    task: Callable[[int], None],
    count: int,
    progress: Callable[[int], None] = lambda done: None,
    at_once: int = AT_ONCE,
) -> None:
    """Call task(0) ... task(count - 1), in that order but several at a time.

    Raises what the first task that fails has raised. `progress` is called with the number of tasks
    done since its last call, in this thread. Each thread takes `at_once` of them at a time. Off the
    main thread, where others may be at work already, the tasks are done one by one.
    """
    workers = min(available_threads(), -(-count // at_once))
    if workers < 2 or current_thread() is not main_thread():
        for number in range(count):
            task(number)
            progress(1)
        return

    def some(first: int) -> int:
        last = min(first + at_once, count)
        for number in range(first, last):
            task(number)
        return last - first

    with worker_pool(workers) as pool:
        for done in pool.map(some, range(0, count, at_once)):
            progress(done)


def in_order(work: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """Yield `work(item)` for each item in turn, while threads work on those that follow.

    An error, of `work` or of the items themselves, is raised in its turn. Items are asked for one
    by one, in the caller's thread, a few for each thread ahead of the one whose result is due.
    """
    count = min(available_threads(), MOST)
    waiting: deque[Future[Result]] = deque()
    with worker_pool(count) as pool:
        for coming in _submitted(pool, work, items):
            waiting.append(coming)
            if len(waiting) > AHEAD * count:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


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
