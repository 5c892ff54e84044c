"""What TSDE is given, checked and made into tables; shared by the online agent and the engine."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, log2
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.agents.learners import DynamicEpisodes, Facts, Learner, Relative, Rules
from restive.arguments import checked_count, checked_elapsed, require_memory
from restive.belief import BeliefState, start_or_initial
from restive.errors import ProblemError
from restive.kernels.tables import BLOCK, BUFFER, CLOCK_SIZE, VISITS, LearnerState, RankTables
from restive.kernels.vectors import LANES
from restive.policies import IndexRule, Policy, PolicyMapping, own_mapping, policy_mappings
from restive.policies import policy_mapping as registered_mapping
from restive.policies.base import IndexPolicy, checked_table, rank_tables
from restive.posterior import LearningTables, aligned, learning_tables
from restive.prior import IndependentPrior, JointPrior, Prior
from restive.problem import Arm, RestlessBandit, checked_num_pulls

__all__ = ["Mapping", "Setup", "setup_learner", "truncation"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A registered name, an index rule (Arm -> table) or a mapping (RestlessBandit -> Policy).
Mapping: TypeAlias = str | Callable[[Any], Any]

MOST_CACHED_POLICIES = 256


@dataclass(frozen=True, eq=False)
class Setup:
    """A learner's prior, mapping and settings, with their tables.

    Index rules have `ranks`, by kind of arm, and run compiled. Other mappings have `make_policy`,
    which is called for each sampled system and remembered for the last 256 of them.
    """

    prior: Prior
    num_pulls: int
    mapping: Mapping
    mapping_name: str
    horizon: int | None
    mixing_time: int  # T^mix(1/4)
    max_elapsed: int | None
    start: BeliefState
    tables: LearningTables
    index_tables: tuple[FloatArray, ...]  # of an index rule, by kind; none for other mappings
    ranks: RankTables | None  # of these tables
    make_policy: Callable[[RestlessBandit], Policy] | None
    learner: Learner = field(default_factory=DynamicEpisodes)
    cached: OrderedDict[bytes, Policy] = field(default_factory=OrderedDict, repr=False)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return self.prior.num_arms

    @property
    def facts(self) -> Facts:
        """What a learner that has no prior is told."""
        rewards = tuple(self.prior.candidates(k)[0].rewards for k in range(self.num_arms))
        return Facts(rewards, self.num_pulls, self.horizon)

    def truncation(self, epoch: int) -> int:
        """T^mix of an epoch: ages from which on they share a counter."""
        horizon = 2**epoch if self.horizon is None else self.horizon
        return truncation(horizon, self.mixing_time)

    def bandit_of(self, kinds: IntArray) -> RestlessBandit:
        """Return the system whose arms are of these kinds."""
        return RestlessBandit([self.tables.kinds.arms[kind] for kind in kinds], self.num_pulls)

    def policy_of(self, kinds: IntArray) -> Policy:
        """Return the policy of a system: what the learner plays when it has drawn it."""
        if self.make_policy is None:
            assert self.ranks is not None
            kinds_of_arms = replace(self.tables.kinds, of=kinds.astype(np.intp))
            return IndexPolicy(
                self.bandit_of(kinds),
                self.mapping_name,
                kinds_of_arms,
                self.index_tables,
                self.ranks,
            )
        key = kinds.tobytes()
        policy = self.cached.pop(key, None)
        if policy is None:
            policy = self.make_policy(self.bandit_of(kinds))
        self.cached[key] = policy
        if len(self.cached) > MOST_CACHED_POLICIES:
            self.cached.popitem(last=False)
        return policy

    def fresh_visits(self, longest_truncation: int) -> IntArray:
        """Room for counters that tell at most this many ages apart."""
        cells = int(self.tables.prior.sizes.sum()) * longest_truncation
        require_memory(8 * cells * VISITS, "the counters", "pass a smaller mixing_time or horizon")
        return np.zeros(cells * VISITS, dtype=np.int64)

    def fresh_state(self, longest_truncation: int) -> LearnerState:
        """Room for a learner whose counters tell at most this many ages apart."""
        prior = self.tables.prior
        num_arms, num_groups = self.num_arms, len(prior.row_counts)
        starts = np.concatenate([[0], np.cumsum(prior.sizes)]).astype(np.int64)
        rules = self.learner.rules(self.facts) if isinstance(self.learner, Relative) else Rules()

        def room(size: int) -> IntArray:
            return np.zeros(size, dtype=np.int64)

        # side by side: how far apart they lie changes how fast a processor stores and loads them
        sizes = [len(prior.weights), len(prior.weights) // BLOCK, num_groups * LANES]
        together = aligned(np.zeros(sum(sizes)))
        weights, sums, starts_of_lanes = np.split(together, np.cumsum(sizes)[:-1])
        weights[:] = prior.weights
        return LearnerState(
            last_state=room(num_arms),
            seen=room(num_arms),
            drawn=room(num_groups),
            sampled=room(num_arms),
            rank_begin=room(num_arms),
            rank_length=room(num_arms),
            rank=room(num_arms),
            weights=weights,
            sums=sums,
            starts=starts_of_lanes,
            totals=np.zeros(num_groups),
            uniforms=np.zeros(num_groups),
            pending=room(num_groups * BUFFER),
            num_pending=room(num_groups),
            lost=room(num_groups),
            visits=self.fresh_visits(longest_truncation),
            size_starts=starts,
            clock=room(CLOCK_SIZE),
            rules=rules.as_numbers(),
        )


def setup_learner(
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int | None = None,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    true_bandit: RestlessBandit | None = None,
    learner: Learner | None = None,
) -> Setup:
    """Check what a learner is given and make its tables; by default it is TSDE."""
    if not isinstance(prior, IndependentPrior | JointPrior):
        raise ProblemError(
            f"prior must be an IndependentPrior or a JointPrior, got {type(prior).__name__}"
        )
    num_pulls = checked_num_pulls(num_pulls, prior.num_arms)
    if horizon is not None:
        horizon = checked_count(horizon, "horizon")
    tables = learning_tables(prior, true_bandit, max_elapsed)
    quarter = (
        tables.mixing_time() if mixing_time is None else checked_count(mixing_time, "mixing_time")
    )
    first_arms = _first_candidates(prior)
    start = start_or_initial(start, first_arms)
    start.require_fits(RestlessBandit(first_arms, num_pulls))
    if max_elapsed is not None:
        max_elapsed = checked_elapsed(max_elapsed)
    row = _row_of(policy_mapping, first_arms[0])
    index_tables = tuple(
        _index_tables(tables, lambda arm: row.table(arm, max_elapsed)) if row.rule else ()
    )
    return Setup(
        prior=prior,
        num_pulls=num_pulls,
        mapping=row.name if row in policy_mappings() else policy_mapping,
        mapping_name=row.name,
        horizon=horizon,
        mixing_time=quarter,
        max_elapsed=max_elapsed,
        start=start,
        tables=tables,
        index_tables=index_tables,
        ranks=rank_tables(index_tables) if index_tables else None,
        make_policy=None if row.rule else lambda bandit: row(bandit, max_elapsed=max_elapsed),
        learner=learner or DynamicEpisodes(),
    )


def _index_tables(tables: LearningTables, rule: IndexRule) -> Iterator[FloatArray]:
    """Index tables by kind; candidates of weight zero are never drawn and need none."""
    kinds = tables.kinds
    for arm, label, used in zip(kinds.arms, kinds.labels, tables.used, strict=True):
        yield checked_table(rule(arm), arm, label) if used else np.zeros((arm.num_states, 1))


def truncation(horizon: int, quarter: int) -> int:
    """T^mix = log2(T) T^mix(1/4) of Section 3, rounded up, and at least 1."""
    return max(1, ceil(log2(horizon) * quarter))


def _first_candidates(prior: Prior) -> list[Arm]:
    if isinstance(prior, JointPrior):
        return list(prior.bandits[0].arms)
    return [arm.candidates[0] for arm in prior.arms]


def _row_of(mapping: Mapping, arm: Arm) -> PolicyMapping:
    return registered_mapping(mapping) if isinstance(mapping, str) else own_mapping(mapping, arm)
