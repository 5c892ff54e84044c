"""Simulation: one visible trajectory, or many replications in the compiled engine.

A world's luck is a function of (seed, replication, time, arm), so whoever acts in it, and however
the work is cut into chunks and threads, the same pull at the same time sees the same draw.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.setup import Setup
from restive.agents.tsde import TSDE
from restive.arguments import checked_count, checked_seed, require_memory
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.kernels.engine import run_replications
from restive.kernels.online import draw_truth, reset
from restive.kernels.random import TRUTH
from restive.kernels.tables import Scratch
from restive.policies.base import Policy
from restive.problem import RestlessBandit
from restive.world import World, stream

__all__ = ["Replications", "Trajectory", "replicate", "simulate"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CHUNK = 64  # replications that a thread takes at a time


class Agent(Protocol):
    """What `simulate` needs of a learner."""

    def select(self) -> IntArray:
        """Return the arms to pull."""

    def observe(self, states: ArrayLike) -> None:
        """Tell what was seen of them."""


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What happened, step by step."""

    arms: IntArray  # [T, N] arms pulled
    states: IntArray  # [T, N] states seen
    rewards: FloatArray  # [T] rewards earned
    expected_rewards: FloatArray  # [T] E[r | xi_t, A_t]
    last_state: IntArray  # [T, K] sigma_t, before the step
    elapsed: IntArray  # [T, K] n_t, before the step
    episode: IntArray  # [T] number of the episode; 0 for a policy


def simulate(
    bandit: RestlessBandit,
    agent_or_policy: Agent | Policy,
    horizon: int,
    seed: int = 0,
    *,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
) -> Trajectory:
    """Run an agent, or a policy that knows the bandit, and keep everything that happens.

    Parameters
    ----------
    bandit
        The true arms.
    agent_or_policy
        A fresh agent with `select()` and `observe(states)`, or a policy with `select(state)`.
    horizon
        Number of steps.
    seed
        Of the world's luck.
    start
        As in `World`; an agent must have been made with the same.
    max_elapsed
        As in `World`.
    """
    horizon = checked_count(horizon, "horizon")
    world = World(bandit, start, seed, max_elapsed=max_elapsed)
    if not callable(getattr(agent_or_policy, "select", None)):
        raise ProblemError(f"expected an agent or a policy, got {agent_or_policy!r:.60}")
    num_arms, num_pulls = bandit.num_arms, bandit.num_pulls
    require_memory(16 * horizon * (num_arms + num_pulls), "the trajectory", "use a smaller horizon")
    shape = (horizon, num_pulls)
    kept = Trajectory(
        arms=np.empty(shape, dtype=np.int64),
        states=np.empty(shape, dtype=np.int64),
        rewards=np.empty(horizon),
        expected_rewards=np.empty(horizon),
        last_state=np.empty((horizon, num_arms), dtype=np.int64),
        elapsed=np.empty((horizon, num_arms), dtype=np.int64),
        episode=np.zeros(horizon, dtype=np.int64),
    )
    observe = getattr(agent_or_policy, "observe", None)
    for t in range(horizon):
        before = world.belief_state
        known = () if observe is not None else (before,)
        arms = agent_or_policy.select(*known)
        if len(arms) != num_pulls:
            raise ProblemError(f"{num_pulls} arms are pulled each step, {len(arms)} were selected")
        states, kept.rewards[t], kept.expected_rewards[t] = world.pull(arms)
        kept.arms[t], kept.states[t] = arms, states
        kept.last_state[t], kept.elapsed[t] = before.last_state, before.elapsed
        if isinstance(agent_or_policy, TSDE):
            kept.episode[t] = agent_or_policy.episode.number
        if observe is not None:
            observe(states)
    return kept


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
    if setup.ranks is None:
        _replicate_stepwise(setup, done, seed, first, progress)
        return done
    workers = available_threads() if threads is None else checked_count(threads, "threads")
    starts = range(0, count, checked_count(chunk, "chunk"))
    nothing = np.empty((0, setup.num_pulls), dtype=np.int64)

    def run(begin: int) -> int:
        end = min(begin + chunk, count)
        _run_chunk(setup, done, begin, end, seed, first, nothing, nothing)
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


def trace(setup: Setup, horizon: int, seed: int, replication: int = 0) -> tuple[IntArray, IntArray]:
    """Arms and states [T, N] of one replication in the engine."""
    done = _room(setup, np.array([horizon]), 1, with_oracle=False, with_posterior=False)
    arms = np.empty((horizon, setup.num_pulls), dtype=np.int64)
    states = np.empty_like(arms)
    _run_chunk(setup, done, 0, 1, seed, replication, arms, states)
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


def _truth(setup: Setup, seed: int, replication: int) -> IntArray:
    """Kinds of the true arms of a replication, as the engine draws them."""
    if len(setup.tables.true_kinds):
        return setup.tables.true_kinds
    truth = np.empty(setup.num_arms, dtype=np.int64)
    state = setup.fresh_state(1)
    reset(setup.tables.prior, state, setup.start.last_state, setup.start.elapsed)
    draw_truth(setup.tables.prior, state, stream(seed, replication, TRUTH), truth)
    return truth


def _run_chunk(
    setup: Setup,
    done: Replications,
    begin: int,
    end: int,
    seed: int,
    first: int,
    trace_arms: IntArray,
    trace_states: IntArray,
) -> None:
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
        trace_arms,
        trace_states,
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


def _replicate_stepwise(
    setup: Setup, done: Replications, seed: int, first: int, progress: Callable[[int], None]
) -> None:
    """Run mappings that are no index rules through the online agent, in Python."""
    with_oracle, with_posterior = len(done.oracle_expected) > 0, len(done.truth_weights) > 0
    for r in range(len(done.expected)):
        replication = first + r
        agent = TSDE.of_setup(setup, seed, replication)
        truth = done.true_kinds[r] = _truth(setup, seed, replication)
        bandit = setup.bandit_of(truth)
        worlds = [World(bandit, setup.start, seed, replication, setup.max_elapsed)]
        if with_oracle:
            worlds.append(World(bandit, setup.start, seed, replication, setup.max_elapsed))
            policy = setup.policy_of(truth)
        sums = np.zeros((2, len(worlds)))
        mark = 0
        for t in range(1, int(done.times[-1]) + 1):
            states, earned, expected = worlds[0].pull(agent.select())
            agent.observe(states)
            sums[:, 0] += expected, earned
            if with_oracle:
                _, earned, expected = worlds[1].pull(policy.select(worlds[1].belief_state))
                sums[:, 1] += expected, earned
            if t == done.times[mark]:
                done.expected[r, mark], done.realised[r, mark] = sums[:, 0]
                done.episodes[r, mark] = agent.episode.number
                if with_oracle:
                    done.oracle_expected[r, mark], done.oracle_realised[r, mark] = sums[:, 1]
                if with_posterior:
                    done.truth_weights[r, mark] = _truth_weights(setup, agent, truth)
                mark += 1
        progress(1)


def _truth_weights(setup: Setup, agent: TSDE, truth: IntArray) -> FloatArray:
    """Posterior weight [K] of each arm's true kind."""
    prior = setup.tables.prior
    weights = np.empty(setup.num_arms)
    for k in range(setup.num_arms):
        posterior = agent.posterior(k)
        first = int(prior.kind_offsets[k])
        weights[k] = posterior[prior.kinds[first : first + len(posterior)] == truth[k]].sum()
    return weights
