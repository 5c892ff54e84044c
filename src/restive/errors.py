"""The errors that restive raises on purpose.

Each message says what was expected, what came and where, in words a person can act on. The command
line prints the message alone, without a traceback.
"""

from collections.abc import Iterable

__all__ = [
    "AssumptionError",
    "BusyError",
    "ConflictError",
    "DiskFullError",
    "JumpError",
    "LogError",
    "MovedOnError",
    "ProblemError",
    "RestiveError",
    "StoreError",
    "TooLargeError",
    "UnreachableError",
]


class RestiveError(Exception):
    """Anything restive refuses to do; the message says why and what to do instead."""


class ProblemError(RestiveError, ValueError):
    """An arm, a bandit, a state or an option that is not what it must be."""


class AssumptionError(RestiveError, ValueError):
    """The input is well formed, but the quantity asked for does not exist for it."""


class TooLargeError(RestiveError):
    """The computation would be larger than the limit; the message names the size."""


class ConflictError(RestiveError):
    """What was asked for contradicts what is journaled already."""


class MovedOnError(ConflictError):
    """Somebody was faster: the last decision is not the one that the caller expects."""


class JumpError(ConflictError):
    """More ticks would pass than a caller is likely to mean; `jump` says how many, as a sentence.

    Whoever does mean it says so: `skip=True`, "skip" over HTTP, or --yes.
    """

    def __init__(self, jump: str) -> None:
        super().__init__(
            f"{jump}; nothing was decided. If that is meant, say --yes (in Python, skip=True)"
        )
        self.jump = jump


class StoreError(RestiveError):
    """The file of a live agent cannot be used: damaged, of another version, or out of reach."""


class BusyError(StoreError):
    """Somebody else has been writing to the file for too long."""


class UnreachableError(StoreError):
    """The server of an agent's database cannot be reached, or the connection broke.

    Where it broke in the midst of a call, the call may have been done: ask again with the same
    request id.
    """


class DiskFullError(StoreError):
    """There is no room on the disk; nothing was changed."""


class LogError(ProblemError):
    """Rows of a log that cannot be used; `mistakes` names each as (line, reason)."""

    def __init__(self, message: str, mistakes: Iterable[tuple[int, str]] = ()) -> None:
        super().__init__(message)
        self.mistakes = tuple(mistakes)
