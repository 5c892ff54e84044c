"""A finite prior as tables: what kernels need to keep the posterior and to act on a draw from it.

The posterior of a candidate is its prior weight times the product of b_c(s, n)[s'] over everything
seen: arm in s, n steps later in s'. Both kinds of prior are the same to the kernels: groups of arms
that share one draw, a group per arm or one group of all arms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import NDArray

from restive.belief import belief_tables, mixing_time, settled_lengths
from restive.errors import ProblemError, RestiveError, TooLargeError
from restive.kernels.tables import (
    BLOCK,
    LEAST_LIKELIHOOD,
    LEAST_WEIGHT,
    MOST_LOSS,
    BeliefTables,
    PriorTables,
)
from restive.kernels.vectors import LANES
from restive.prior import ArmPrior, JointPrior, Prior
from restive.problem import Arm, Kinds, RestlessBandit, kinds_among, starts_of

__all__ = ["LearningTables", "aligned", "in_lanes", "lane_places", "learning_tables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_LIKELIHOOD_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class LearningTables:
    """Tables of all arms that a learner may draw and of those it meets."""

    kinds: Kinds  # of all candidates, then of the true arms where there are some
    arms: BeliefTables  # by kind
    prior: PriorTables
    in_support: NDArray[np.bool_]  # [kinds] whether the prior gives the kind any weight
    used: NDArray[np.bool_]  # [kinds] whether it is in the support or in the true bandit
    true_kinds: IntArray  # [K] of the true bandit, empty without one

    def mixing_time(self) -> int:
        """T^mix(1/4) of Assumption 1: the largest over arms and systems that the prior allows."""
        slowest = 1
        for kind in np.flatnonzero(self.in_support).tolist():
            try:
                slowest = max(slowest, mixing_time(self.kinds.arms[kind]))
            except RestiveError as error:
                reason = str(error).split(": ", 1)[-1]
                raise type(error)(
                    f"{self.kinds.labels[kind]}: {reason}; pass mixing_time"
                ) from None
        return slowest


def learning_tables(
    prior: Prior, true_bandit: RestlessBandit | None = None, max_elapsed: int | None = None
) -> LearningTables:
    """Make the tables of a prior and, where one is given, of the true bandit."""
    choices, table_of, group_of, weights = _layout(prior)
    labels = [
        f"arm {k}, candidate {j}"
        for k, candidates in zip(_first_arms(table_of), choices, strict=True)
        for j in range(len(candidates))
    ]
    arms: list[Arm] = [arm for candidates in choices for arm in candidates]
    num_candidates = len(arms)
    if true_bandit is not None:
        _require_fits(true_bandit, prior)
        arms += true_bandit.arms
        labels += [f"true {true_bandit.label(k)}" for k in range(true_bandit.num_arms)]
    kinds = kinds_among(arms, labels.__getitem__)
    kind_offsets = starts_of([len(candidates) for candidates in choices])
    candidate_kinds = kinds.of[:num_candidates]
    padded = [in_lanes(_held(group, LEAST_WEIGHT * group.max())) for group in weights]
    in_support = np.zeros(len(kinds.arms), dtype=bool)
    for k_table, first in enumerate(kind_offsets):
        group = int(group_of[np.flatnonzero(table_of == k_table)[0]])
        possible = np.flatnonzero(weights[group] > 0)
        in_support[candidate_kinds[first + possible]] = True
    used = in_support.copy()
    used[kinds.of[num_candidates:]] = True
    lengths = _lengths(kinds, used, max_elapsed)
    _require_likelihoods_fit(choices, lengths[candidate_kinds], kind_offsets)
    tables = belief_tables(kinds.arms, lengths)
    blocks = [
        _likelihoods(tables, candidate_kinds[first : first + len(candidates)])
        for first, candidates in zip(kind_offsets, choices, strict=True)
    ]
    return LearningTables(
        kinds=kinds,
        arms=tables,
        prior=PriorTables(
            groups=group_of,
            likelihoods=aligned(np.concatenate([block.ravel() for block in blocks])),
            offsets=starts_of([block.size for block in blocks])[table_of],
            lengths=np.array([block.shape[1] for block in blocks], dtype=np.int64)[table_of],
            sizes=np.array([block.shape[0] for block in blocks], dtype=np.int64)[table_of],
            losses=np.array([_loss(block) for block in blocks], dtype=np.int64)[table_of],
            kinds=candidate_kinds.astype(np.int64),
            kind_offsets=kind_offsets[table_of],
            weights=np.concatenate(padded),
            row_offsets=starts_of([len(group) // LANES for group in padded]),
            row_counts=np.array([len(group) // LANES for group in padded], dtype=np.int64),
            block_offsets=starts_of([len(group) // LANES // BLOCK for group in padded]),
        ),
        in_support=in_support,
        used=used,
        true_kinds=kinds.of[num_candidates:].astype(np.int64),
    )


def _lengths(kinds: Kinds, used: NDArray[np.bool_], max_elapsed: int | None) -> IntArray:
    """Ages told apart per kind; one for candidates of weight zero, which are never looked at."""
    lengths = np.ones(len(kinds.arms), dtype=np.int64)
    places = np.flatnonzero(used).tolist()
    arms = tuple(kinds.arms[j] for j in places)
    labels = tuple(kinds.labels[j] for j in places)
    lengths[places] = settled_lengths(Kinds(arms, labels, np.arange(len(arms))), max_elapsed)
    return lengths


def _layout(
    prior: Prior,
) -> tuple[list[tuple[Arm, ...]], IntArray, IntArray, list[FloatArray]]:
    """Candidates per table, table and group of each arm, weights per group."""
    if isinstance(prior, JointPrior):
        arms = np.arange(prior.num_arms)
        choices = [prior.candidates(int(k)) for k in arms]
        return choices, arms, np.zeros_like(arms), [prior.weights]
    table_by_identity: dict[int, int] = {}
    distinct: list[ArmPrior] = []
    table_of = np.empty(prior.num_arms, dtype=np.int64)
    for k, arm in enumerate(prior.arms):
        table = table_by_identity.setdefault(id(arm), len(distinct))
        if table == len(distinct):
            distinct.append(arm)
        table_of[k] = table
    choices = [arm.candidates for arm in distinct]
    weights = [arm.weights for arm in prior.arms]
    return choices, table_of, np.arange(prior.num_arms), weights


def _first_arms(table_of: IntArray) -> list[int]:
    return [int(k) for k in np.unique(table_of, return_index=True)[1]]


def _require_fits(bandit: RestlessBandit, prior: Prior) -> None:
    if bandit.num_arms != prior.num_arms:
        raise ProblemError(
            f"the true bandit has {bandit.num_arms} arms, the prior is about {prior.num_arms}"
        )
    for k, arm in enumerate(bandit.arms):
        expected = (
            prior.candidates(k)[0]
            if isinstance(prior, JointPrior)
            else (prior.arms[k].candidates[0])
        )
        if not np.array_equal(arm.rewards, expected.rewards):
            raise ProblemError(
                f"{bandit.label(k)}: rewards are {arm.rewards.tolist()}, the prior's are "
                f"{expected.rewards.tolist()}; rewards are known, so they must agree"
            )


def _require_likelihoods_fit(
    choices: list[tuple[Arm, ...]], lengths: IntArray, offsets: IntArray
) -> None:
    """Raise, before any table is made, where the likelihoods would fill the memory."""
    total = 0
    for candidates, first in zip(choices, offsets.tolist(), strict=True):
        longest = int(lengths[first : first + len(candidates)].max())
        total += candidates[0].num_states ** 2 * longest * (len(candidates) + BLOCK * LANES) * 8
    if total > MOST_LIKELIHOOD_BYTES:
        raise TooLargeError(
            f"the likelihoods of {len(lengths):,} candidates take {total / 2**30:.1f} GiB, more "
            f"than {MOST_LIKELIHOOD_BYTES >> 30}; use fewer candidates or a smaller max_elapsed"
        )


def _likelihoods(tables: BeliefTables, kinds: Sequence[int] | IntArray) -> FloatArray:
    """Array [S, L, S, width] with b_c(s, n)[s'] of candidate c at [s, n - 1, s', c]."""
    size = int(tables.sizes[kinds[0]])
    length = int(tables.lengths[kinds].max())
    rows = np.empty((size, length, size, len(kinds)))
    for c, kind in enumerate(kinds):
        own = int(tables.lengths[kind])
        begin = int(tables.offsets[kind])
        table = tables.beliefs[begin : begin + size * own * size].reshape(size, own, size)
        rows[..., c] = table[:, np.minimum(np.arange(length), own - 1)]
    return in_lanes(_held(rows, LEAST_LIKELIHOOD))


def _held(values: FloatArray, least: float) -> FloatArray:
    """Raise what is positive to `least`, so that products do not underflow (see kernels.tables)."""
    held: FloatArray = np.where(values > 0, np.maximum(values, least), 0.0)
    return held


def aligned(values: FloatArray) -> FloatArray:
    """Copy to where rows of LANES numbers do not straddle the processor's lines of 64 bytes."""
    room = np.empty(len(values) + LANES)
    first = (-room.ctypes.data % 64) // 8
    copy = room[first : first + len(values)]
    copy[:] = values
    return copy


def _loss(likelihoods: FloatArray) -> int:
    """Bits by which an observation can lower a weight it leaves positive, at most MOST_LOSS."""
    least = likelihoods[likelihoods > 0].min()
    return min(ceil(-log2(least)), MOST_LOSS)


def lane_places(count: int) -> IntArray:
    """Where each of `count` candidates stands: row c % rows of lane c // rows."""
    rows = _num_rows(count)
    candidates = np.arange(count, dtype=np.int64)
    return np.asarray((candidates % rows) * LANES + candidates // rows)


def in_lanes(values: FloatArray) -> FloatArray:
    """Lay numbers by candidate, on the last axis, out in lanes, filled up with zeros."""
    count = values.shape[-1]
    laid = np.zeros((*values.shape[:-1], _num_rows(count) * LANES))
    laid[..., lane_places(count)] = values
    return laid


def _num_rows(count: int) -> int:
    """Rows for `count` candidates: whole blocks, so that kernels need not look for the last."""
    return -(-count // (BLOCK * LANES)) * BLOCK
