"""The steps of TSDE compiled one by one, for an agent that is asked step by step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels import posterior, tsde
from restive.kernels.compiler import hot_kernel, kernel
from restive.kernels.random import stream_key
from restive.kernels.tables import (
    EXPLORING,
    NONE,
    BeliefTables,
    LearnerState,
    PriorTables,
    RankTables,
)
from restive.kernels.world import pull

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

__all__ = [
    "add_up_all",
    "begin_epoch",
    "begin_if_due",
    "choose",
    "draw_truth",
    "explore",
    "follow_ranks",
    "key_of",
    "multiply_pending",
    "pull_arms",
    "reset",
    "take_in_if_possible",
]


@kernel
def key_of(seed: np.uint64, replication: int, stream: int) -> np.uint64:
    """Key of a stream of random numbers."""
    return stream_key(seed, replication, stream)


@kernel
def reset(
    prior: PriorTables, state: LearnerState, start_state: IntArray, start_elapsed: IntArray
) -> None:
    """See `tsde.reset`."""
    tsde.reset(prior, state, start_state, start_elapsed)


@kernel
def begin_epoch(state: LearnerState, mixing: int, end: int) -> None:
    """See `tsde.begin_epoch`."""
    tsde.begin_epoch(state, mixing, end)


@hot_kernel
def begin_if_due(prior: PriorTables, state: LearnerState, key: np.uint64) -> bool:
    """Begin an episode if one must begin at this time; tell whether one did."""
    reason = tsde.due(state)
    if reason != NONE:
        tsde.begin_episode(prior, state, reason, key)
        for k in range(len(state.sampled)):
            state.sampled[k] = tsde.drawn_kind(prior, state, k)
    return reason != NONE


@kernel
def follow_ranks(policy: RankTables, state: LearnerState) -> None:
    """Point each arm at the ranks of the kind that was sampled for it."""
    for k in range(len(state.sampled)):
        tsde.follow_kind(policy, state, k, state.sampled[k])


@kernel
def choose(policy: RankTables, state: LearnerState, available: BoolArray, chosen: IntArray) -> None:
    """See `tsde.choose`."""
    if len(chosen) > 0:
        tsde.choose(policy, state, available, chosen)


@kernel
def explore(state: LearnerState, key: np.uint64, available: BoolArray, chosen: IntArray) -> None:
    """See `tsde.explore`."""
    if len(chosen) > 0 and state.rules[EXPLORING] != 0:
        tsde.explore(state, key, available, chosen)


@kernel
def take_in_if_possible(
    prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray
) -> int:
    """Learn what was seen and return -1, or return an arm that cannot have been seen so."""
    _multiply_pending_of(prior, state, pulled)
    arm = posterior.impossible_arm(prior, state, pulled, states)
    if arm < 0:
        _take_in(prior, state, pulled, states)
    return int(arm)


@hot_kernel
def _multiply_pending_of(prior: PriorTables, state: LearnerState, pulled: IntArray) -> None:
    """Bring the weights of the pulled arms' groups up to date."""
    for i in range(len(pulled)):
        posterior.multiply_pending(prior, state, prior.groups[pulled[i]])


@hot_kernel
def _take_in(prior: PriorTables, state: LearnerState, pulled: IntArray, states: IntArray) -> None:
    """See `tsde.take_in`."""
    tsde.take_in(prior, state, pulled, states)


@kernel
def multiply_pending(prior: PriorTables, state: LearnerState, group: int) -> None:
    """See `posterior.multiply_pending`."""
    posterior.multiply_pending(prior, state, group)


@hot_kernel
def add_up_all(prior: PriorTables, state: LearnerState) -> None:
    """Make the sums of every group anew, for weights that were set from outside."""
    for group in range(len(prior.row_counts)):
        posterior.add_up(prior, state, group)


@kernel
def draw_truth(prior: PriorTables, state: LearnerState, key: np.uint64, truth: IntArray) -> None:
    """See `posterior.draw_truth`."""
    posterior.draw_truth(prior, state, key, truth)


@kernel
def pull_arms(
    arms: BeliefTables, kinds: IntArray, t: int, last_state: IntArray, seen: IntArray,
    key: np.uint64, pulled: IntArray, states: IntArray,
) -> tuple[float, float]:  # fmt: skip
    """Pull arms at time t: write their states, return the rewards earned and expected."""
    earned, expected = 0.0, 0.0
    for i in range(len(pulled)):
        k = pulled[i]
        states[i], mean = pull(arms, kinds[k], k, len(kinds), t, last_state, seen, key)
        earned += arms.rewards[arms.reward_offsets[kinds[k]] + states[i]]
        expected += mean
    for i in range(len(pulled)):
        last_state[pulled[i]] = states[i]
        seen[pulled[i]] = t
    return earned, expected
