"""What a long run takes, told before it begins."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

import numpy as np

from restive.arguments import bytes_in_words, counted, duration
from restive.learn.learner_state import LearnerState
from restive.learn.learners import describe
from restive.learn.learners.base import Learner, Own
from restive.learn.task import Task
from restive.measure.changes import Phases
from restive.measure.replication import replicate
from restive.threads import available_threads

__all__ = ["learning_bytes", "tell_if_long"]

MANY = 20_000_000_000  # steps of an arm: minutes
TRIAL_STEPS = 20


def tell_if_long(
    task: Task,
    learner: Learner,
    horizon: int,
    replications: int,
    *,
    with_oracle: bool,
    phases: Phases | None,
    threads: int | None,
) -> None:
    """Say on standard error what very many steps of arms take in time and bytes, by a trial."""
    if replications * horizon * task.num_arms < MANY or isinstance(learner, Own):
        return
    steps = min(horizon, TRIAL_STEPS)

    def trial() -> float:
        began = perf_counter()
        times = np.array([steps])
        replicate(task, learner, times, 1, with_oracle=with_oracle, phases=phases, threads=1)
        return perf_counter() - began

    trial()  # which may compile
    workers = min(available_threads() if threads is None else threads, replications)
    seconds = trial() / steps * horizon * replications / workers
    held = workers * learning_bytes(task, learner, horizon)
    print(
        f"restive: {counted(replications, 'replication')} of {counted(horizon, 'step')} of "
        f"{counted(task.num_arms, 'arm')} with {describe(learner)} take about {duration(seconds)} "
        f"on {counted(workers, 'processor')} and {bytes_in_words(held)}; fewer replications or a "
        "shorter horizon take less",
        file=sys.stderr,
        flush=True,
    )


def learning_bytes(task: Task, learner: Learner, horizon: int) -> int:
    """Bytes of what a learner holds while it runs."""
    return _bytes(LearnerState(task, learner, horizon).actor)


def _bytes(part: Any) -> int:
    """Bytes of the arrays in a record of records."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    return sum(map(_bytes, part)) if isinstance(part, tuple) else 0
