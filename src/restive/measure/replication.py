"""Many replications of a learner and of the policy that knows the truth, on threads.

A world's luck is a function of (seed, replication, time, arm), so whoever acts in it, and however
the work is cut into chunks and threads, the same pull at the same time sees the same draw.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_seed, counted, require_memory
from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.learn.draws import draw_truths
from restive.kernels.loop.engine import NUMBERS, Record
from restive.kernels.loop.tables import Posterior
from restive.kernels.random import LEARNER, TRUTH, key_at, stream
from restive.learn.learner_state import LearnerState, prior_weights
from restive.learn.learners.base import Learner, Own, Relative
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.learn.task import Task
from restive.measure.changes import Phases, changing_world
from restive.measure.loop import InPython, drive
from restive.plan.actors import (
    make_record,
    make_trace,
    no_conjugates,
    no_particles,
    world_of,
)
from restive.problem.bandit import RestlessBandit
from restive.threads import available_threads, worker_pool

__all__ = [
    "NUMBERS",
    "Replications",
    "drawn_truths",
    "replicate",
    "require_room",
    "with_truths",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHUNK = 64  # replications that a thread takes at a time
MOST_TRUTHS = 1 << 22  # true arms of these, beyond those of the first


@dataclass(frozen=True, eq=False)
class Replications:
    """Sums up to each recorded time, one row per replication."""

    task: Task
    times: IntArray  # [M]
    true_kinds: IntArray  # [R, K] kinds of the true arms in step 1, among those of the task
    expected: FloatArray  # [R, M] sum of E[r | xi, A] of the learner
    realised: FloatArray  # [R, M] sum of its rewards
    episodes: IntArray  # [R, M] episodes begun
    truth_weights: FloatArray  # [R, M, K] posterior weight of each true arm; no rows if not asked
    oracle_expected: FloatArray  # [R, M] of the policy that knows the truth; no rows without one
    oracle_realised: FloatArray  # [R, M]

    def true_bandit(self, r: int) -> RestlessBandit:
        """Return the truth of a replication."""
        return self.task.bandit_of(self.true_kinds[r])


def replicate(
    task: Task,
    learner: Learner,
    times: IntArray,
    replications: int,
    seed: int = 0,
    *,
    first: int = 0,
    with_oracle: bool = True,
    with_posterior: bool = False,
    phases: Phases | None = None,
    threads: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], None] = lambda done: None,
) -> Replications:
    """Run replications first, first + 1, ... of a learner.

    The result is the same to the bit for any number of threads and any chunk. The memory is in
    proportion to replications x times. Ctrl-C ends it within a fraction of a second.

    Parameters
    ----------
    task
        What is to be done; the true bandit is in it, or is drawn from its prior each time.
    learner
        Who does it.
    times
        Ascending times to record; the last is the horizon.
    replications, seed, first
        Which replications to run.
    with_oracle
        Also run the policy of the true system in the same world.
    with_posterior
        Also record the posterior weight of each arm's truth, for learners that have a posterior.
    phases
        Of a world that changes: what its arms become, and when.
    threads
        By default as many as there are processors.
    chunk
        Replications that a thread takes at a time.
    progress
        Called with the number of replications done since the last call.
    """
    count = checked_count(replications, "replications")
    with_posterior = with_posterior and isinstance(learner, Relative)
    checked_seed(seed)
    if with_posterior and task.choices.has_particles:
        raise ProblemError(
            "under a continuous prior the truth has no weight that could be recorded"
        )
    require_room(task, count, len(times), with_posterior=with_posterior)
    task, truths = with_truths(task, count, seed, first)
    done = _empty_results(task, times, truths, with_oracle, with_posterior)
    workers = available_threads() if threads is None else checked_count(threads, "threads")
    slow = isinstance(learner, Own) or task.ranks is None
    size = 1 if slow else min(checked_count(chunk, "chunk"), 1 + MOST_TRUTHS // task.num_arms)
    starts = range(0, count, size)

    def work(begin: int) -> int:
        rows = slice(begin, min(begin + size, count))
        _run_rows(task, learner, done, rows, seed, first, phases)
        return rows.stop - rows.start

    task.make_tables(with_posterior=isinstance(learner, Relative))  # before the threads begin
    if workers == 1 or len(starts) == 1:
        for begin in starts:
            progress(work(begin))
        return done
    with worker_pool(workers) as pool:
        for finished in pool.map(work, starts):
            progress(finished)
    return done


def _run_rows(
    task: Task,
    learner: Learner,
    done: Replications,
    rows: slice,
    seed: int,
    first: int,
    phases: Phases | None,
) -> None:
    """Run some rows: the learner, then the policy that knows the truth, in the same worlds."""
    horizon = int(done.times[-1])
    truths, number = done.true_kinds[rows], first + rows.start
    if phases is None:
        world = world_of(task.choices.tables, task.num_arms)
    else:
        world = changing_world(task, phases, horizon)
    learner_state = LearnerState(task, learner, horizon)
    player: InPython | None = None
    if isinstance(learner, Own):
        player = learner.made(task, int(stream(seed, number, LEARNER)))
    record = make_record(
        task.num_pulls, task.start, done.times, truths, seed, number,
        memory=learner_state.actor.memory, with_posterior=bool(len(done.truth_weights)),
    )  # fmt: skip
    drive(learner_state, world, record, make_trace(0, 0), player)
    _copy(record, done.expected[rows], done.realised[rows])
    done.episodes[rows] = record.phases.reshape(truths.shape[0], -1)
    if len(done.truth_weights):
        done.truth_weights[rows] = record.truth_weights.reshape(done.truth_weights[rows].shape)
    if len(done.oracle_expected):
        knowing = LearnerState(task, None, knows=True)
        record = make_record(task.num_pulls, task.start, done.times, truths, seed, number)
        drive(knowing, world, record, make_trace(0, 0))
        _copy(record, done.oracle_expected[rows], done.oracle_realised[rows])


def _copy(record: Record, expected: FloatArray, realised: FloatArray) -> None:
    expected[:] = record.expected.reshape(expected.shape)
    realised[:] = record.realised.reshape(realised.shape)


def _empty_results(
    task: Task, times: IntArray, truths: IntArray, with_oracle: bool, with_posterior: bool
) -> Replications:
    """Return arrays for the results of replications with these truths."""
    replications, num_arms = truths.shape
    shape = (replications, len(times))
    oracle_shape = shape if with_oracle else (0, len(times))
    return Replications(
        task=task,
        times=times,
        true_kinds=truths,
        expected=np.empty(shape),
        realised=np.empty(shape),
        episodes=np.empty(shape, dtype=np.int64),
        truth_weights=np.empty((replications if with_posterior else 0, len(times), num_arms)),
        oracle_expected=np.empty(oracle_shape),
        oracle_realised=np.empty(oracle_shape),
    )


def require_room(
    task: Task, replications: int, num_times: int, *, with_posterior: bool = False
) -> None:
    """Raise where so many replications have more results than there is memory."""
    each = (6 + task.num_arms * with_posterior) * num_times
    if not len(task.choices.true_kinds):
        each += task.num_arms
    require_memory(
        8 * replications * each,
        f"the results of {counted(replications, 'replication')} of "
        f"{counted(task.num_arms, 'arm')}, recorded {num_times:,} times,",
        "run fewer replications or record fewer times",
    )


def with_truths(task: Task, count: int, seed: int, first: int = 0) -> tuple[Task, IntArray]:
    """Return the task with the true arms of replications first, ..., and their kinds [count, K].

    Under a continuous prior each truth is an arm of its own, which the task must know.
    """
    kinds = drawn_truths(task, count, seed, first)
    if len(task.choices.true_kinds) or not task.choices.has_particles:
        return task, kinds
    assert isinstance(task.prior, IndependentPrior)
    keys = [stream(seed, first + r, TRUTH) for r in range(count)]
    groups, first_arms = np.unique(task.prior.groups, return_index=True)
    places = [
        (r, group, prior)
        for group, prior in zip(groups, (task.prior.arms[k] for k in first_arms), strict=True)
        if isinstance(prior, DirichletArmPrior)
        for r in range(count)
    ]
    arms = [prior.draw(np.uint64(key_at(keys[r], group))) for r, group, prior in places]
    choices, drawn = task.choices.with_truths(arms)
    kinds = choices.kinds.of[kinds].astype(np.int64)  # of the candidates, as they are numbered now
    for (r, group, _), kind in zip(places, drawn.tolist(), strict=True):
        kinds[r, task.prior.groups == group] = kind
    return replace(task, choices=choices, cached=OrderedDict()), kinds


def drawn_truths(task: Task, count: int, seed: int, first: int = 0) -> IntArray:
    """Kinds [count, K] of the true arms of replications first, ..., given or drawn."""
    shape = (count, task.num_arms)
    if len(task.choices.true_kinds):
        return np.broadcast_to(task.choices.true_kinds, shape)  # of one row of memory
    truths = np.empty(shape, dtype=np.int64)
    keys = np.array([stream(seed, first + r, TRUTH) for r in range(count)], dtype=np.uint64)
    slots = task.choices.drawable
    weights = prior_weights(task, slots)
    posterior = Handle(Posterior(slots, weights, no_particles(), no_conjugates()))
    draw_truths(posterior.where, keys, truths)
    return truths
