"""What a learner is made of.

A learner is a frozen dataclass whose fields are its options. It has `rules`, and is a relative of
TSDE that runs in TSDE's own kernels; or it is `Compiled`: it has a number in
`kernels.loop.steps` and says how much it must remember; or it is the user's own, in Python.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, sqrt
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from restive.errors import ProblemError
from restive.kernels.elementary import exponentials
from restive.kernels.jit.records import Records, new_record
from restive.kernels.learn.learners.memory import PLANNING, LearnerMemory
from restive.kernels.loop.tables import EpisodeRules
from restive.learn.task import Facts, Task

__all__ = [
    "Compiled",
    "Learner",
    "Own",
    "Relative",
    "Rules",
    "check_memory",
    "checked_number",
    "counts_only",
    "ignores_unpulled",
    "nothing_to_forget",
]

NEVER = np.iinfo(np.int64).max >> 1  # steps
FADINGS = 20  # in `forget_after` steps
LONGEST_MEMORY = 1e12  # steps


@dataclass(frozen=True)
class Rules:
    """How a relative of TSDE differs from it; the defaults are TSDE itself."""

    length: int | None = None  # of every episode; None for rule 1, one more than the last
    length_rule: bool = True  # whether the length ends episodes at all
    doubling_rule: bool = True  # whether a counter that more than doubled does (rule 2)
    most_likely: bool = False  # take the posterior's mode instead of a draw from it
    exploring: float = 0.0  # share of steps in which arms are pulled at random
    draws: int = 1  # of each arm, whose indices are averaged; 0 for the whole posterior
    learn_kinds: bool = False  # estimate laws of kinds from all their arms, now and then
    forget_after: float | None = None  # steps after which what was seen weighs 1/e

    def as_record(self, horizon_known: bool) -> Records[EpisodeRules]:
        """Return them for kernels."""
        limit = -1 if self.length is None else self.length - 1
        steps, share, longest = 0, 1.0, NEVER
        if self.forget_after is not None:
            # small losses in turn, each cheap, add up to nearly the same as one in every step
            steps = max(1, int(self.forget_after) // FADINGS)
            share = float(exponentials([-steps / self.forget_after])[0])
            if self.length is None:  # else episodes would outlast what their draws rest on
                longest = ceil(sqrt(self.forget_after) / 2) - 1
        return new_record(
            EpisodeRules,
            fixed_limit=limit if self.length_rule else NEVER,
            doubling=self.doubling_rule,
            pick_mode=self.most_likely,
            exploring=round(self.exploring * 2**53),
            draws=self.draws,
            learn_kinds=self.learn_kinds,
            fading_steps=steps,
            fading_share=round(share * 2**53),
            longest=longest,
            horizon_known=horizon_known,
        )


@runtime_checkable
class Relative(Protocol):
    """A relative of TSDE."""

    name: ClassVar[str]
    title: ClassVar[str]

    def rules(self, facts: Facts) -> Rules:
        """Return how it differs."""


@runtime_checkable
class Compiled(Protocol):
    """A learner with kernels of its own."""

    name: ClassVar[str]
    title: ClassVar[str]
    number: ClassVar[int]  # in kernels.loop.steps
    narrows: ClassVar[bool]  # whether it can pull fewer arms, or be shown only some of them
    # and `sees`, "always" if it is for arms that are always seen, where that is not "pulled"

    def memory_size(self, facts: Facts) -> tuple[int, int]:
        """Return how many whole numbers and floats it remembers, beyond what all do."""

    def begin(self, facts: Facts, memory: LearnerMemory) -> None:
        """Write what it begins with into a memory of zeros."""

    def plan(self, facts: Facts, memory: LearnerMemory) -> None:
        """Do what takes more than a step; called when the memory asks for it (PLANNING)."""

    def could_be(self, facts: Facts, memory: LearnerMemory, fresh: LearnerMemory) -> bool:
        """Whether a memory that was read from outside could be its own; `fresh` is its first."""


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


Learner = Relative | Compiled | Own


def ignores_unpulled(learner: Learner) -> bool:
    """Whether a learner does not look at what arms pay while they are not pulled."""
    return isinstance(learner, Compiled) and getattr(learner, "sees", "pulled") == "pulled"


def checked_number(value: Any, what: str, low: float, high: float) -> None:
    """Raise unless a value is a number between two others."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        raise ProblemError(f"{what} must be a number from {low:g} to {high:g}, got {value!r:.60}")


def check_memory(learner: Any) -> None:
    """Raise unless a learner's `forget_after` is None or a number of steps."""
    if learner.forget_after is not None:
        checked_number(learner.forget_after, f"{learner.name}: forget_after", 1, LONGEST_MEMORY)


def nothing_to_forget(name: str) -> ProblemError:
    """Return what is wrong with `forget_after` for a learner that has no posterior."""
    return ProblemError(
        f"learner {name} has no posterior, so it has nothing to forget: forget_after is for TSDE "
        "and its relatives"
    )


def counts_only(memory: LearnerMemory, plans: bool = False) -> bool:
    """Whether a memory holds counts, finite floats and, unless it plans, no wish to plan."""
    return (
        bool((memory.ints >= 0).all())
        and bool((memory.ints < NEVER).all())
        and bool(np.isfinite(memory.floats).all())
        and memory.ints[PLANNING] <= plans
    )
