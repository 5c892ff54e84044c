"""A learner of the user's own, in Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from restive.errors import ProblemError
from restive.task import Task

__all__ = ["Own"]


@dataclass(frozen=True)
class Own:
    """Any object with `select()` and `observe(states)`, made anew for each replication.

    It runs in Python, step by step: slower than a compiled learner by a factor of 100 or so.

    Parameters
    ----------
    name
        How reports call it.
    make
        A function of a task (prior, pulls, horizon, `facts`) and of a whole number, its seed, that
        returns the learner. `select` returns the arms to pull, `observe` learns their states.
    title
        How tables call it; by default its name.
    """

    name: str
    make: Callable[[Task, int], Any]
    title: str

    def made(self, task: Task, seed: int) -> Any:
        """Return a fresh learner."""
        learner = self.make(task, seed)
        for method in ("select", "observe"):
            if not callable(getattr(learner, method, None)):
                raise ProblemError(
                    f"learner {self.name}: its function returned {learner!r:.60}, which has no "
                    f"method {method}"
                )
        return learner
