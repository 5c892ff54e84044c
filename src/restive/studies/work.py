"""The work of a study: a pure function (case, first replication, count) -> arrays.

Whoever calls it, wherever and how often, gets the same bytes. A case comes as text; its tables are
made once per process and kept for the next chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.learn.learner_state import require_sees
from restive.learn.learners.base import Compiled, Learner, Relative
from restive.learn.task import Task, make_task
from restive.measure.changes import Phases, with_phases
from restive.measure.regret import recorded_times
from restive.measure.replication import replicate
from restive.plan.policies.registry import policy_mapping
from restive.problem.changing import ChangingBandit, first_phase
from restive.studies.settings import CaseSettings
from restive.studies.spec import Case

__all__ = [
    "Arrays",
    "Chunk",
    "Execute",
    "chunk_size",
    "fits",
    "prepared",
    "result_bytes",
    "run_chunk",
]

Arrays = dict[str, NDArray[Any]]  # a row per replication

CHUNK_WORK = 1 << 24  # steps times arms in a chunk: some tenths of a second
CHUNK_BYTES = 1 << 24
STEPWISE_SLOWNESS = 256  # of mappings that are asked step by step in Python
KEPT_CASES = 8  # cases whose tables are kept
NO_KIND = -1  # of a truth that a continuous prior drew: none that another chunk could know

# what a chunk holds: its type, and its axes after the replications: M times, K arms
CONTENTS = {
    "true_kinds": ("<i8", "K"),
    "expected": ("<f8", "M"),
    "realised": ("<f8", "M"),
    "episodes": ("<i8", "M"),
    "truth_weights": ("<f8", "MK"),
    "oracle_expected": ("<f8", "M"),
    "oracle_realised": ("<f8", "M"),
}

_preparing = Lock()


@dataclass(frozen=True)
class Chunk:
    """Replications of a case that are run and kept together."""

    case: Case
    first: int
    count: int


# Takes chunks and yields each with its arrays, in whatever order they end.
Execute = Callable[[Iterable[Chunk]], Iterator[tuple[Chunk, Arrays]]]


def run_chunk(case: str, first: int, count: int) -> Arrays:
    """Run replications first, ..., first + count - 1 of a case, given as `CaseSettings.to_json`.

    The arrays are those of `Replications`, a row per replication.
    """
    with _preparing:  # so that threads that begin together do not make the same tables
        settings, task, learner = prepared(case)
        _, phases = _task(_of_all_learners(settings))
        task.make_tables(with_posterior=isinstance(learner, Relative))
    done = replicate(
        task,
        learner,
        recorded_times(settings.times, settings.horizon),
        count,
        settings.seed,
        first=first,
        with_posterior=_with_posterior(settings),
        phases=phases,
        threads=1,
        chunk=count,
    )
    arrays: Arrays = {name: getattr(done, name) for name in CONTENTS}
    if task.choices.has_particles and settings.kind == "bayesian":
        arrays["true_kinds"] = np.full_like(done.true_kinds, NO_KIND)
    return arrays


def fits(arrays: Arrays, case: Case, count: int) -> bool:
    """Whether arrays are such as `run_chunk` gives for so many replications of a case."""
    settings = case.settings
    sizes = {"K": settings.num_arms, "M": len(recorded_times(settings.times, settings.horizon))}
    rows = dict.fromkeys(CONTENTS, count)
    rows["truth_weights"] *= _with_posterior(settings)
    return arrays.keys() == CONTENTS.keys() and all(
        array.dtype.str == CONTENTS[name][0]
        and array.shape == (rows[name], *(sizes[axis] for axis in CONTENTS[name][1]))
        and bool(np.isfinite(array).all())
        for name, array in arrays.items()
    )


def _with_posterior(settings: CaseSettings) -> bool:
    return settings.posterior and isinstance(settings.learner(), Relative)


@lru_cache(maxsize=KEPT_CASES)
def prepared(case: str) -> tuple[CaseSettings, Task, Learner]:
    """Return the task of a case and the learner on it."""
    settings = CaseSettings.model_validate_json(case)
    learner = settings.learner()
    task, _ = _task(_of_all_learners(settings))
    require_sees(learner, task)
    if isinstance(learner, Compiled):
        learner.memory_size(task.facts)  # so that a problem too large for it is refused now
    return settings, task, learner


def _of_all_learners(settings: CaseSettings) -> str:
    return settings.model_copy(update={"learners": ["tsde"]}).to_json()


@lru_cache(maxsize=KEPT_CASES)
def _task(case: str) -> tuple[Task, Phases | None]:
    """Make the task that all learners of a point share, and the phases of a truth that changes."""
    settings = CaseSettings.model_validate_json(case)
    bandit, prior, num_pulls = settings.systems()
    horizon = None if settings.doubling else settings.horizon
    first = None if bandit is None else first_phase(bandit)
    task = make_task(
        prior, num_pulls, settings.policy_mappings[0], horizon, mixing_time=settings.mixing_time,
        max_elapsed=settings.max_elapsed, true_bandit=first,
    )  # fmt: skip
    return with_phases(task, bandit) if isinstance(bandit, ChangingBandit) else (task, None)


def result_bytes(case: Case) -> int:
    """Bytes that one replication of a case leaves behind."""
    settings = case.settings
    num_times = len(recorded_times(settings.times, settings.horizon))
    num_arms = settings.num_arms
    return 8 * (num_times * (5 + num_arms * settings.posterior) + num_arms)


def chunk_size(case: Case) -> int:
    """Replications that are run and kept together: short enough to lose, long enough to pay."""
    num_arms = case.settings.num_arms
    slowness = 1 if policy_mapping(case.mapping).rule else STEPWISE_SLOWNESS
    by_work = CHUNK_WORK // (case.settings.horizon * num_arms * slowness)
    return max(1, min(by_work, CHUNK_BYTES // result_bytes(case)))
