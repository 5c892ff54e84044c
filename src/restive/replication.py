"""Many replications of a learner and of the policy that knows the truth, on threads.

A world's luck is a function of (seed, replication, time, arm), so whoever acts in it, and however
the work is cut into chunks and threads, the same pull at the same time sees the same draw.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.agents.learners import Compiled
from restive.agents.player import fresh_memory
from restive.agents.setup import Setup
from restive.agents.tsde import TSDE
from restive.arguments import checked_count, checked_seed, require_memory
from restive.errors import ProblemError
from restive.kernels.engine import run_oracle, run_replications
from restive.kernels.learners.memory import PLANNING, Memory
from restive.kernels.learners.play import play
from restive.kernels.online import draw_truth, reset
from restive.kernels.random import LEARNER, TRUTH, WORLD
from restive.kernels.tables import Scratch
from restive.world import World, stream

__all__ = ["NUMBERS", "Replications", "available_threads", "drawn_truths", "replicate", "trace"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Traces = tuple[IntArray, IntArray]  # arms and states [T, N] of the one replication that is run

NUMBERS = 1  # to be raised with any change that gives a replication other numbers than before
CHUNK = 64  # replications that a thread takes at a time


@dataclass(frozen=True, eq=False)
class Replications:
    """Sums up to each recorded time, one row per replication."""

    times: IntArray  # [M]
    true_kinds: IntArray  # [R, K] kinds of the true arms, in the setup's tables
    expected: FloatArray  # [R, M] sum of E[r | xi, A] of the learner
    realised: FloatArray  # [R, M] sum of its rewards
    episodes: IntArray  # [R, M] episodes begun
    truth_weights: FloatArray  # [R, M, K] posterior weight of each true arm; no rows if not asked
    oracle_expected: FloatArray  # [R, M] of the policy that knows the truth; no rows without one
    oracle_realised: FloatArray  # [R, M]


def replicate(
    setup: Setup,
    times: IntArray,
    replications: int,
    seed: int = 0,
    *,
    first: int = 0,
    with_oracle: bool = True,
    with_posterior: bool = False,
    threads: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], None] = lambda done: None,
) -> Replications:
    """Run replications first, first + 1, ... of a learner.

    The result is the same to the bit for any number of threads and any chunk. The memory is in
    proportion to replications x times. Ctrl-C is heard when the chunks that are running end.

    Parameters
    ----------
    setup
        The learner; its tables hold the true bandit, or it is drawn from the prior each time.
    times
        Ascending times to record; the last is the horizon.
    replications, seed, first
        Which replications to run.
    with_oracle
        Also run the policy of the true system in the same world.
    with_posterior
        Also record the posterior weight of each arm's truth.
    threads
        By default as many as there are processors.
    chunk
        Replications that a thread takes at a time.
    progress
        Called with the number of replications done since the last call.
    """
    count = checked_count(replications, "replications")
    done = _room(setup, times, count, with_oracle, with_posterior)
    run_rows = _run_rows_of(setup)
    workers = available_threads() if threads is None else checked_count(threads, "threads")
    size = 1 if run_rows is _run_stepwise else checked_count(chunk, "chunk")
    starts = range(0, count, size)

    def run(begin: int) -> int:
        end = min(begin + size, count)
        run_rows(setup, done, begin, end, seed, first)
        return end - begin

    if workers == 1 or len(starts) == 1:
        for begin in starts:
            progress(run(begin))
        return done
    with ThreadPoolExecutor(workers) as pool:
        try:
            for finished in pool.map(run, starts):
                progress(finished)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return done


def _run_rows_of(setup: Setup) -> Callable[[Setup, Replications, int, int, int, int], None]:
    """How the learner runs: in TSDE's engine, in kernels of its own, or asked step by step."""
    if isinstance(setup.learner, Compiled):
        return _run_playing
    return _run_stepwise if setup.ranks is None else _run_engine


def trace(setup: Setup, horizon: int, seed: int, replication: int = 0) -> tuple[IntArray, IntArray]:
    """Arms and states [T, N] of one compiled replication."""
    done = _room(setup, np.array([horizon]), 1, with_oracle=False, with_posterior=False)
    arms = np.empty((horizon, setup.num_pulls), dtype=np.int64)
    states = np.empty_like(arms)
    run = _run_playing if isinstance(setup.learner, Compiled) else _run_engine
    run(setup, done, 0, 1, seed, replication, (arms, states))
    return arms, states


def _room(
    setup: Setup, times: IntArray, replications: int, with_oracle: bool, with_posterior: bool
) -> Replications:
    """Room for the results of so many replications."""
    num_arms = setup.num_arms
    per_time = 6 + num_arms * with_posterior
    size = 8 * replications * (per_time * len(times) + num_arms)
    require_memory(size, "the results", "record fewer times")
    shape = (replications, len(times))
    oracle_shape = shape if with_oracle else (0, len(times))
    return Replications(
        times=times,
        true_kinds=np.empty((replications, num_arms), dtype=np.int64),
        expected=np.empty(shape),
        realised=np.empty(shape),
        episodes=np.empty(shape, dtype=np.int64),
        truth_weights=np.empty((replications if with_posterior else 0, len(times), num_arms)),
        oracle_expected=np.empty(oracle_shape),
        oracle_realised=np.empty(oracle_shape),
    )


def available_threads() -> int:
    """Processors that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def _no_traces(setup: Setup) -> Traces:
    nothing = np.empty((0, setup.num_pulls), dtype=np.int64)
    return nothing, nothing


def drawn_truths(setup: Setup, count: int, seed: int, first: int = 0) -> IntArray:
    """Kinds [count, K] of the true arms of replications first, ..., as the engine draws them."""
    truths = np.empty((count, setup.num_arms), dtype=np.int64)
    if len(setup.tables.true_kinds):
        truths[:] = setup.tables.true_kinds
        return truths
    state = setup.fresh_state(1)
    reset(setup.tables.prior, state, setup.start.last_state, setup.start.elapsed)
    for r in range(count):
        draw_truth(setup.tables.prior, state, stream(seed, first + r, TRUTH), truths[r])
    return truths


def _run_engine(
    setup: Setup,
    done: Replications,
    begin: int,
    end: int,
    seed: int,
    first: int,
    traces: Traces | None = None,
) -> None:
    """Run TSDE and its relatives, many replications in one call."""
    tables = setup.tables
    epochs = 1 if setup.horizon is not None else int(done.times[-1]).bit_length()
    mixings = np.array([setup.truncation(epoch) for epoch in range(epochs)], dtype=np.int64)
    assert setup.ranks is not None
    ruled_out = run_replications(
        tables.prior,
        setup.ranks,
        tables.arms,
        setup.fresh_state(int(mixings.max())),
        _scratch(setup),
        tables.true_kinds,
        setup.start.last_state,
        setup.start.elapsed,
        mixings,
        setup.horizon is None,
        done.times,
        np.uint64(checked_seed(seed)),
        first + begin,
        done.true_kinds[begin:end],
        done.expected[begin:end],
        done.realised[begin:end],
        done.episodes[begin:end],
        done.truth_weights[begin:end],
        done.oracle_expected[begin:end],
        done.oracle_realised[begin:end],
        *(traces or _no_traces(setup)),
    )
    if ruled_out:
        raise _ruled_out(setup, ruled_out - 1)


def _ruled_out(setup: Setup, group: int) -> ProblemError:
    arms = np.flatnonzero(setup.tables.prior.groups == group).tolist()
    who = f"arm {arms[0]}" if len(arms) == 1 else "the arms"
    return ProblemError(
        f"what was seen of {who} has probability zero under every candidate: the prior rules out "
        "the true bandit"
    )


def _scratch(setup: Setup) -> Scratch:
    def room(*shape: int) -> IntArray:
        return np.zeros(shape, dtype=np.int64)

    num_arms, num_pulls = setup.num_arms, setup.num_pulls
    return Scratch(
        truth=room(num_arms),
        true_arms=room(5, num_arms),
        chosen=room(num_pulls),
        states=room(num_pulls),
        last_state=room(num_arms),
        seen=room(num_arms),
        rank=room(num_arms),
        everything=np.zeros(0, dtype=bool),
    )


def _run_playing(
    setup: Setup,
    done: Replications,
    begin: int,
    end: int,
    seed: int,
    first: int,
    traces: Traces | None = None,
) -> None:
    """Run learners that have kernels of their own; they come back whenever they must plan."""
    spec, facts = setup.learner, setup.facts
    assert isinstance(spec, Compiled)
    fresh = fresh_memory(spec, facts, setup.start)
    trace_arms, trace_states = traces or _no_traces(setup)
    chosen, states = np.empty((2, setup.num_pulls), dtype=np.int64)
    done.true_kinds[begin:end] = drawn_truths(setup, end - begin, seed, first + begin)
    for r in range(begin, end):
        replication = first + r
        truth = done.true_kinds[r]
        memory = Memory._make(part.copy() for part in fresh)
        world, key = (stream(seed, replication, name) for name in (WORLD, LEARNER))
        recorded = done.expected[r], done.realised[r], done.episodes[r]
        sums = np.zeros(2)
        t = 1
        while t <= done.times[-1]:
            if memory.ints[PLANNING]:
                spec.plan(facts, memory)
            t = play(
                spec.number, facts.knowledge, memory, setup.tables.arms, truth, t, done.times,
                world, key, chosen, states, sums, *recorded, trace_arms, trace_states,
            )  # fmt: skip
        if len(done.oracle_expected):
            _run_oracle(setup, done, r, seed, replication)


def _run_oracle(setup: Setup, done: Replications, r: int, seed: int, replication: int) -> None:
    """Run the policy that knows the truth."""
    truth = done.true_kinds[r]
    if setup.ranks is not None:
        scratch = _scratch(setup)
        scratch.truth[:] = truth
        run_oracle(
            setup.ranks, setup.tables.arms, scratch, setup.start.last_state, setup.start.elapsed,
            done.times, stream(seed, replication, WORLD), done.oracle_expected[r],
            done.oracle_realised[r],
        )  # fmt: skip
        return
    world = World(setup.bandit_of(truth), setup.start, seed, replication, setup.max_elapsed)
    policy = setup.policy_of(truth)
    sums = np.zeros(2)
    for t in range(1, int(done.times[-1]) + 1):
        _, earned, expected = world.pull(policy.select(world.belief_state))
        sums += expected, earned
        for mark in np.flatnonzero(done.times == t):
            done.oracle_expected[r, mark], done.oracle_realised[r, mark] = sums


def _run_stepwise(
    setup: Setup, done: Replications, begin: int, end: int, seed: int, first: int
) -> None:
    """Run mappings that are no index rules through the online agent, in Python."""
    done.true_kinds[begin:end] = drawn_truths(setup, end - begin, seed, first + begin)
    for r in range(begin, end):
        replication = first + r
        agent = TSDE.of_setup(setup, seed, replication)
        truth = done.true_kinds[r]
        bandit = setup.bandit_of(truth)
        world = World(bandit, setup.start, seed, replication, setup.max_elapsed)
        sums = np.zeros(2)
        mark = 0
        for t in range(1, int(done.times[-1]) + 1):
            states, earned, expected = world.pull(agent.select())
            agent.observe(states)
            sums += expected, earned
            if t == done.times[mark]:
                done.expected[r, mark], done.realised[r, mark] = sums
                done.episodes[r, mark] = agent.episode.number
                if len(done.truth_weights):
                    done.truth_weights[r, mark] = _truth_weights(setup, agent, truth)
                mark += 1
        if len(done.oracle_expected):
            _run_oracle(setup, done, r, seed, replication)


def _truth_weights(setup: Setup, agent: TSDE, truth: IntArray) -> FloatArray:
    """Posterior weight [K] of each arm's true kind."""
    prior = setup.tables.prior
    weights = np.empty(setup.num_arms)
    for k in range(setup.num_arms):
        posterior = agent.posterior(k)
        first = int(prior.kind_offsets[k])
        weights[k] = posterior[prior.kinds[first : first + len(posterior)] == truth[k]].sum()
    return weights
