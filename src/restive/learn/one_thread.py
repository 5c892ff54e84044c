"""An agent is used by one thread at a time."""

from __future__ import annotations

from threading import Lock

from restive.errors import RestiveError

__all__ = ["OneThread"]


class OneThread:
    """Refuses a second thread, which would spoil the step of the first."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RestiveError(
                "another thread is using this agent: give each thread an agent of its own, or a "
                "lock"
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()
