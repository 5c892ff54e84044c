"""The work of a study: a pure function (case, first replication, count) -> arrays.

Whoever calls it, wherever and how often, gets the same bytes. A case comes as text; its tables are
made once per process and kept for the next chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock
from typing import Any

from numpy.typing import NDArray

from restive.agents.learners import Compiled, Relative
from restive.agents.setup import Setup, setup_learner
from restive.experiment.settings import Settings
from restive.experiment.spec import Case
from restive.policies import policy_mapping
from restive.regret import recorded_times
from restive.replication import replicate

__all__ = ["Arrays", "Execute", "Task", "chunk_size", "prepared", "result_bytes", "run_chunk"]

Arrays = dict[str, NDArray[Any]]  # a row per replication

CHUNK_WORK = 1 << 24  # steps times arms in a chunk: some tenths of a second
CHUNK_BYTES = 1 << 24
STEPWISE_SLOWNESS = 256  # of mappings that are asked step by step in Python
KEPT_CASES = 8  # cases whose tables are kept

_preparing = Lock()


@dataclass(frozen=True)
class Task:
    """Replications of a case that are run and kept together."""

    case: Case
    first: int
    count: int


# Takes tasks and yields each with its arrays, in whatever order they end.
Execute = Callable[[Iterable[Task]], Iterator[tuple[Task, Arrays]]]


def run_chunk(case: str, first: int, count: int) -> Arrays:
    """Run replications first, ..., first + count - 1 of a case, given as `Settings.to_json`.

    The arrays are those of `Replications`, a row per replication.
    """
    with _preparing:  # so that threads that begin together do not make the same tables
        settings, setup = prepared(case)
    done = replicate(
        setup,
        recorded_times(settings.times, settings.horizon),
        count,
        settings.seed,
        first=first,
        with_posterior=settings.posterior and isinstance(setup.learner, Relative),
        threads=1,
        chunk=count,
    )
    return {
        "true_kinds": done.true_kinds,
        "expected": done.expected,
        "realised": done.realised,
        "episodes": done.episodes,
        "truth_weights": done.truth_weights,
        "oracle_expected": done.oracle_expected,
        "oracle_realised": done.oracle_realised,
    }


@lru_cache(maxsize=KEPT_CASES)
def prepared(case: str) -> tuple[Settings, Setup]:
    """Make the tables of a case."""
    settings = Settings.model_validate_json(case)
    learner = settings.learner()
    setup = _with_tables(settings.model_copy(update={"learners": ["tsde"]}).to_json())
    if isinstance(learner, Compiled):
        learner.room(setup.facts)  # a problem that is too large for it is told now
    return settings, replace(setup, learner=learner)


@lru_cache(maxsize=KEPT_CASES)
def _with_tables(case: str) -> Setup:
    """Make the tables that all learners of a point share."""
    settings = Settings.model_validate_json(case)
    bandit, prior, num_pulls = settings.systems()
    horizon = None if settings.doubling else settings.horizon
    return setup_learner(
        prior, num_pulls, settings.policy_mappings[0], horizon, settings.mixing_time, None,
        settings.max_elapsed, bandit,
    )  # fmt: skip


def result_bytes(case: Case) -> int:
    """Bytes that one replication of a case leaves behind."""
    settings = case.settings
    num_times = len(recorded_times(settings.times, settings.horizon))
    num_arms = prepared(settings.to_json())[1].num_arms
    return 8 * (num_times * (5 + num_arms * settings.posterior) + num_arms)


def chunk_size(case: Case) -> int:
    """Replications that are run and kept together: short enough to lose, long enough to pay."""
    num_arms = prepared(case.settings.to_json())[1].num_arms
    slowness = 1 if policy_mapping(case.mapping).rule else STEPWISE_SLOWNESS
    by_work = CHUNK_WORK // (case.settings.horizon * num_arms * slowness)
    return max(1, min(by_work, CHUNK_BYTES // result_bytes(case)))
