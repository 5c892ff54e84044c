"""A task: what is to be done, whoever does it.

Prior, pulls, policy mapping, horizon and start, checked, with the tables that learners share. No
learner is in it: a learner is put on it (`learner_state`), and so are the truths that it meets
(`measure.replication`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import ceil, log2
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, checked_elapsed, counted
from restive.errors import ProblemError, TooLargeError
from restive.kernels.learn.learners.memory import Knowledge
from restive.kernels.loop.tables import RankTables
from restive.learn.priors.independent import Prior, require_prior
from restive.learn.slots import Choices
from restive.plan.policies.base import (
    IndexPolicy,
    IndexRule,
    Policy,
    checked_table,
    rank_tables,
    tabled_policy,
)
from restive.plan.policies.registry import PolicyMapping, own_mapping, policy_mappings
from restive.plan.policies.registry import policy_mapping as registered_mapping
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit, checked_num_pulls, kinds_of
from restive.problem.beliefs import MODES, MOST_ELAPSED, BeliefState, start_or_initial

__all__ = ["Facts", "Mapping", "Task", "make_task", "truncation"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# A registered name, an index rule (Arm -> table) or a mapping (RestlessBandit -> Policy).
Mapping: TypeAlias = str | Callable[[Any], Any]

MOST_CACHED_POLICIES = 256
MOST_CACHED_TABLES = 4096


@dataclass(frozen=True)
class Facts:
    """What every learner knows beforehand: nothing of the transition probabilities."""

    rewards: tuple[FloatArray, ...]  # [K][S] of each arm's states
    num_pulls: int
    horizon: int | None
    passive_rewards: tuple[FloatArray, ...] = ()  # [K][S] while it is not pulled; none if empty
    always_seen: tuple[bool, ...] = ()  # [K]; never if empty

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.rewards)

    @property
    def sizes(self) -> IntArray:
        """The number of states of each arm."""
        return self.knowledge.sizes

    @cached_property
    def knowledge(self) -> Knowledge:
        """The same for kernels."""
        sizes = np.array([len(rewards) for rewards in self.rewards], dtype=np.int64)
        flat = np.concatenate(self.rewards)
        low, high = float(flat.min()), float(flat.max())
        shares = (flat - low) / (high - low) if high > low else np.zeros_like(flat)
        unpulled = (
            np.concatenate(self.passive_rewards) if self.passive_rewards else np.zeros_like(flat)
        )
        return Knowledge(sizes, np.cumsum(sizes) - sizes, flat, shares, unpulled)

    def known_horizon(self, learner: str) -> int:
        """Return the horizon, for a learner that needs one."""
        if self.horizon is None:
            raise ProblemError(f"the learner {learner} needs a horizon")
        return self.horizon


@dataclass(frozen=True, eq=False, repr=False)
class Task:
    """What a learner is put on; made by `make_task`.

    Tables are made when they are first needed. Index rules have ranks, by kind of arm, and run
    compiled. Other mappings have `make_policy`, which is called for each sampled system and
    remembered for the last 256 of them.
    """

    prior: Prior
    num_pulls: int
    mapping: Mapping
    mapping_name: str
    horizon: int | None
    given_mixing_time: int | None
    max_elapsed: int | None
    start: BeliefState
    choices: Choices
    rule: IndexRule | None
    make_policy: Callable[[RestlessBandit], Policy] | None
    cached: OrderedDict[bytes, Policy] = field(default_factory=OrderedDict, repr=False)
    cached_tables: OrderedDict[bytes, FloatArray] = field(default_factory=OrderedDict, repr=False)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return self.prior.num_arms

    def __repr__(self) -> str:
        steps = "no horizon" if self.horizon is None else f"horizon {self.horizon:,}"
        return (
            f"Task({counted(self.num_arms, 'arm')}, {counted(self.num_pulls, 'pull')}, "
            f"{self.mapping_name}, {steps})"
        )

    @cached_property
    def facts(self) -> Facts:
        """What a learner that has no prior knows."""
        arms = [self.prior.typical(k) for k in range(self.num_arms)]
        return Facts(
            tuple(arm.rewards for arm in arms),
            self.num_pulls,
            self.horizon,
            tuple(arm.passive_rewards for arm in arms),
            tuple(arm.always_seen for arm in arms),
        )

    @cached_property
    def always_seen(self) -> IntArray:
        """The arms that are seen in every step, ascending."""
        return np.flatnonzero(self.facts.always_seen)

    @cached_property
    def mixing_time(self) -> int:
        """T^mix(1/4): as given, or the largest over the prior's support.

        Under a continuous prior, whose chains may be as slow as they like, it is at most what a
        table has ages for: all that depends on it is which ages share a counter.
        """
        if self.given_mixing_time is not None:
            return self.given_mixing_time
        slowest = self.choices.mixing_time()
        return min(slowest, MOST_ELAPSED) if self.choices.has_particles else slowest

    def truncation(self, epoch: int) -> int:
        """T^mix of an epoch: ages from which on they share a counter."""
        horizon = 2**epoch if self.horizon is None else self.horizon
        least = MODES if len(self.always_seen) else 1
        return max(least, truncation(horizon, self.mixing_time))

    @cached_property
    def index_tables(self) -> tuple[FloatArray, ...]:
        """Index tables by kind, of an index rule; none for other mappings."""
        return () if self.rule is None else tuple(_index_tables(self.choices, self.rule))

    @cached_property
    def ranks(self) -> RankTables | None:
        """Ranks of these tables; None for mappings that are no index rules."""
        return rank_tables(self.index_tables) if self.index_tables else None

    def make_tables(self, *, with_posterior: bool) -> None:
        """Make all tables now: what is wrong is found, and threads that follow share them."""
        _ = self.choices.tables, self.ranks
        if with_posterior:
            _ = self.choices.slots, self.mixing_time

    def bandit_of(self, kinds: IntArray) -> RestlessBandit:
        """Return the system whose arms are of these kinds."""
        return RestlessBandit(
            [self.choices.kinds.arms[kind] for kind in kinds.tolist()], self.num_pulls
        )

    def policy_for(self, bandit: RestlessBandit) -> Policy:
        """Return the policy of a system that holds particles, which hardly ever comes again.

        The index tables of its arms are kept for a while: an arm that was drawn is drawn again
        until its particles are renewed.
        """
        if self.make_policy is not None:
            return self.make_policy(bandit)
        kinds = kinds_of(bandit)
        tables = [
            self.particle_table(arm, label)
            for arm, label in zip(kinds.arms, kinds.labels, strict=True)
        ]
        return tabled_policy(bandit, kinds, tables, self.mapping_name)

    def particle_table(self, arm: Arm, label: str) -> FloatArray:
        """Return the index table of a particle, which may be asked for again."""
        assert self.rule is not None
        table = self.cached_tables.pop(arm.numbers, None)
        if table is None:
            table = checked_table(self.rule(arm), arm, label)
        self.cached_tables[arm.numbers] = table
        if len(self.cached_tables) > MOST_CACHED_TABLES:
            self.cached_tables.popitem(last=False)
        return table

    def policy_of(self, kinds: IntArray) -> Policy:
        """Return the policy of a system: what a learner plays when it has drawn it."""
        if self.make_policy is None:
            assert self.ranks is not None
            kinds_of_arms = replace(self.choices.kinds, of=kinds.astype(np.intp))
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


def make_task(
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int | None = None,
    *,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    true_bandit: RestlessBandit | None = None,
    ages: int | None = None,
) -> Task:
    """Check what a learner is given.

    Whoever sees to it that no other age occurs may ask for the likelihoods of `ages` ages, and of
    those at which beliefs have settled, alone.
    """
    require_prior(prior)
    num_pulls = checked_num_pulls(num_pulls, prior.num_arms)
    if horizon is not None:
        horizon = checked_count(horizon, "horizon")
    if max_elapsed is not None:
        max_elapsed = checked_elapsed(max_elapsed)
    if mixing_time is not None:
        mixing_time = checked_count(mixing_time, "mixing_time")
    first_arms = [prior.typical(k) for k in range(prior.num_arms)]
    like = RestlessBandit(first_arms, num_pulls)
    start = start_or_initial(start, like)
    start.require_fits(like)
    row = _row_of(policy_mapping, first_arms[0])
    choices = Choices.of(prior, true_bandit, max_elapsed, ages)
    return Task(
        prior=prior,
        num_pulls=num_pulls,
        mapping=row.name if row in policy_mappings() else policy_mapping,
        mapping_name=row.name,
        horizon=horizon,
        given_mixing_time=mixing_time,
        max_elapsed=max_elapsed,
        start=start,
        choices=choices,
        rule=_rule_of(row, max_elapsed, hold_slow=choices.has_particles) if row.rule else None,
        make_policy=None if row.rule else lambda bandit: row(bandit, max_elapsed=max_elapsed),
    )


def _index_tables(choices: Choices, rule: IndexRule) -> Iterator[FloatArray]:
    """Index tables by kind; candidates of weight zero are never drawn and need none."""
    kinds = choices.kinds
    for arm, label, used in zip(kinds.arms, kinds.labels, choices.used, strict=True):
        yield checked_table(rule(arm), arm, label) if used else np.zeros((arm.num_states, 1))


def _rule_of(row: PolicyMapping, max_elapsed: int | None, *, hold_slow: bool) -> IndexRule:
    """Return the rule of a mapping; a particle that mixes too slowly for it is no error."""

    def rule(arm: Arm) -> Any:
        try:
            return row.table(arm, max_elapsed)
        except TooLargeError:
            if not hold_slow:
                raise
            return row.table(arm, MOST_ELAPSED)

    return rule


def truncation(horizon: int, quarter: int) -> int:
    """T^mix = log2(T) T^mix(1/4) of Section 3, rounded up, and at least 1."""
    return max(1, ceil(log2(horizon) * quarter))


def _row_of(mapping: Mapping, arm: Arm) -> PolicyMapping:
    return registered_mapping(mapping) if isinstance(mapping, str) else own_mapping(mapping, arm)
