"""The one loop: learners and oracles in worlds, replication by replication.

A replication is a pure function of (seed, its number). It draws the true system (or is given it),
runs TSDE in it and, where asked, the policy that knows the truth, both with the same luck.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import hot_kernel, inlined, kernel, place
from restive.kernels.posterior import draw_truth, weigh_truth
from restive.kernels.random import LEARNER, TRUTH, WORLD, stream_key
from restive.kernels.tables import (
    EPISODE,
    EPOCH,
    EPOCH_END,
    EXPLORING,
    IMPOSSIBLE,
    NONE,
    BeliefTables,
    LearnerState,
    PriorTables,
    RankTables,
    Scratch,
)
from restive.kernels.tsde import (
    begin_episode,
    begin_epoch,
    choose,
    drawn_kind,
    due,
    explore,
    finish,
    follow_kind,
    pass_time,
    reset,
    take_in_arm,
)
from restive.kernels.world import copy_into, pull, select_by_rank

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

__all__ = ["run_oracle", "run_replications"]


@hot_kernel
def run_replications(
    prior: PriorTables, policy: RankTables, arms: BeliefTables, state: LearnerState,
    scratch: Scratch, true_kinds: IntArray, start_state: IntArray, start_elapsed: IntArray,
    mixings: IntArray, doubling: bool, times: IntArray, seed: np.uint64, first: int,
    truths: IntArray, expected: FloatArray, realised: FloatArray, episodes: IntArray,
    truth_weights: FloatArray, oracle_expected: FloatArray, oracle_realised: FloatArray,
    trace_arms: IntArray, trace_states: IntArray,
) -> int:  # fmt: skip
    """Run the replications first, first + 1, ... and write what they earned up to each time.

    One replication per row of `expected`. `true_kinds` is the true system, or empty to draw it from
    the prior; `oracle_expected` has no rows where no oracle is wanted, `truth_weights` none where
    the posterior is not, the traces none where no trajectory is. Returns 0, or 1 + the group of
    arms whose candidates were all ruled out by what was seen.
    """
    num_arms = len(start_state)
    truth, chosen, states = scratch.truth, scratch.chosen, scratch.states
    num_pulls = len(chosen)
    for r in range(len(expected)):
        world = stream_key(seed, first + r, WORLD)
        learner = stream_key(seed, first + r, LEARNER)
        reset(prior, state, start_state, start_elapsed)
        if len(true_kinds) > 0:
            copy_into(truth, true_kinds)
        else:
            draw_truth(prior, state, stream_key(seed, first + r, TRUTH), truth)
        copy_into(truths[r], truth)
        world_arms = _arms_of(arms, truth, scratch.true_arms)
        clock = state.clock
        begin_epoch(state, mixings[0], 2 if doubling else np.iinfo(np.int64).max)
        total_expected, total_realised = 0.0, 0.0
        mark = 0
        for t in range(1, times[-1] + 1):
            if t == clock[EPOCH_END]:
                clock[EPOCH] += 1
                begin_epoch(state, mixings[clock[EPOCH]], 2 * t)
            reason = due(state)
            if reason != NONE:
                begin_episode(prior, state, reason, learner)
                for k in range(num_arms):
                    follow_kind(policy, state, k, drawn_kind(prior, state, k))
            choose(policy, state, scratch.everything, chosen)
            if state.rules[EXPLORING] != 0:
                explore(state, learner, scratch.everything, chosen)
            doubled = False
            for i in range(num_pulls):
                k = chosen[i]
                seen, mean = pull(
                    world_arms, k, k, num_arms, t, state.last_state, state.seen, world
                )
                total_expected += mean
                total_realised += arms.rewards[place(world_arms.reward_offsets[place(k)] + seen)]
                doubled |= take_in_arm(prior, state, k, seen)
                states[i] = seen
            pass_time(state, doubled)
            if len(trace_arms) > 0:
                copy_into(trace_arms[t - 1], chosen)
                copy_into(trace_states[t - 1], states)
            if t == times[place(mark)]:
                expected[r, mark] = total_expected
                realised[r, mark] = total_realised
                episodes[r, mark] = clock[EPISODE]
                if len(truth_weights) > 0:
                    weigh_truth(prior, state, truth, truth_weights[r, mark])
                mark += 1
        finish(prior, state)
        if clock[IMPOSSIBLE] != 0:
            return int(clock[IMPOSSIBLE])
        if len(oracle_expected) > 0:
            _run_oracle(
                policy, world_arms, scratch, start_state, start_elapsed, times, world,
                oracle_expected[r], oracle_realised[r],
            )  # fmt: skip
    return 0


@inlined
def _arms_of(arms: BeliefTables, kinds: IntArray, room: IntArray) -> BeliefTables:
    """Tables with an entry per arm instead of per kind: one look-up less for each pull."""
    for k in range(len(kinds)):
        room[0, k] = arms.offsets[kinds[k]]
        room[1, k] = arms.mean_offsets[kinds[k]]
        room[2, k] = arms.reward_offsets[kinds[k]]
        room[3, k] = arms.sizes[kinds[k]]
        room[4, k] = arms.lengths[kinds[k]]
    return BeliefTables(
        arms.beliefs, arms.thresholds, room[0], arms.means, room[1], arms.rewards, room[2], room[3],
        room[4],
    )  # fmt: skip


@kernel
def run_oracle(
    policy: RankTables, arms: BeliefTables, scratch: Scratch, start_state: IntArray,
    start_elapsed: IntArray, times: IntArray, world: np.uint64, expected: FloatArray,
    realised: FloatArray,
) -> None:  # fmt: skip
    """Run the policy of the true system, whose kinds are in `scratch.truth`."""
    own = _arms_of(arms, scratch.truth, scratch.true_arms)
    _run_oracle(policy, own, scratch, start_state, start_elapsed, times, world, expected, realised)


@hot_kernel
def _run_oracle(
    policy: RankTables, arms: BeliefTables, scratch: Scratch, start_state: IntArray,
    start_elapsed: IntArray, times: IntArray, world: np.uint64, expected: FloatArray,
    realised: FloatArray,
) -> None:  # fmt: skip
    """Run the policy of the true system with the luck of the learner's world."""
    truth, chosen, last_state, seen = (
        scratch.truth,
        scratch.chosen,
        scratch.last_state,
        scratch.seen,
    )
    num_arms = len(truth)
    for k in range(num_arms):
        last_state[k] = start_state[k]
        seen[k] = 1 - start_elapsed[k]
    total_expected, total_realised = 0.0, 0.0
    mark = 0
    for t in range(1, times[-1] + 1):
        select_by_rank(policy, truth, t, last_state, seen, scratch.rank, chosen)
        for i in range(len(chosen)):
            k = chosen[i]
            state, mean = pull(arms, k, k, num_arms, t, last_state, seen, world)
            total_expected += mean
            total_realised += arms.rewards[place(arms.reward_offsets[place(k)] + state)]
            last_state[k] = state
            seen[k] = t
        if t == times[mark]:
            expected[mark] = total_expected
            realised[mark] = total_realised
            mark += 1
