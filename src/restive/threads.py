"""Work on several threads whose results come in order, as if there were one."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

__all__ = ["available_threads", "in_order"]

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
