"""What to do: one policy of a plan, what it gains over simple ways, and whom to pull first.

Two simple ways are what most people do today: taking turns, and always the same arms. What the
first of them earns is exact at any size: pulled in turn, each arm is on its own and its pulls come
at fixed distances, so its states when pulled are a chain. Where J was simulated, gains have 95%
intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import fsum, gcd

import numpy as np
from numpy.typing import NDArray

from restive.errors import AssumptionError
from restive.plan.policies.base import IndexPolicy, Policy
from restive.problem.bandit import RestlessBandit, always_seen, kinds_of
from restive.problem.beliefs import BeliefState, beliefs_at
from restive.problem.chains import unichain_law
from restive.problem.reduction import reduce_kinds

__all__ = [
    "ERRORS", "LONG_AGO", "Earned", "Gain", "Recommendation", "arm_names", "arm_titles",
    "last_states", "nothing_seen", "recommend", "round_robin_reward",
]  # fmt: skip

FloatArray = NDArray[np.float64]

# The simplest first: fixed arms need no bookkeeping, Whittle's index is what all else plays unless
# told otherwise (and myopic can get stuck), the optimum is made for one bandit alone.
SIMPLEST_FIRST = ("best_fixed", "whittle", "myopic", "lp_priority", "best_index", "optimal")
AS_GOOD = 1e-3  # share of what pulls add that is not worth a more complicated policy
NEAR = 0.01  # of the rewards' range: a lower index is nearly as good
NO_MORE = 1e-6  # relative: what a bound may be above J by rounding
ERRORS = 2.0  # standard errors to each end of a 95% interval of the mean of 64 runs
MOST_PRODUCTS = 200_000  # matrices multiplied for the value of taking turns
LONG_AGO = 10**6  # steps: whoever was last seen then is as good as never seen
MOST_NAMED = 10  # arms in a sentence


@dataclass(frozen=True)
class Earned:
    """What a policy earns per step, and the standard error of that: 0 where it is exact.

    Where it depends on how the arms begin, it is no number to choose by.
    """

    average_reward: float
    stderr: float
    depends_on_start: bool = False


@dataclass(frozen=True)
class Gain:
    """How much more per step than another way, with its 95% interval; exact if the ends agree."""

    over: float  # what pulls add per step in the other way, or all that it earns
    more: float
    low: float
    high: float

    @property
    def share(self) -> tuple[float, float, float] | None:
        """The gain and its ends as shares of `over`, if that is positive."""
        if self.over <= 1e-9 * max(1.0, abs(self.more)):
            return None
        return self.more / self.over, self.low / self.over, self.high / self.over

    def with_own(self, own: float) -> Gain:
        """Return it over all that the other way earns, what arms earn by themselves included."""
        return replace(self, over=self.over + own)


@dataclass(frozen=True)
class Recommendation:
    """What a plan comes to.

    `matters` says whether it makes any difference whom one pulls. `over_round_robin` is None where
    that was not computed, `over_best_fixed` where it has no value. `first` are the arms to pull if
    nothing was seen lately; `tied` says whether others are as good as the last of these, `nearly`
    whether others are nearly so.
    """

    policy: str
    average_reward: float
    stderr: float
    own_reward: float  # what the arms earn if none is ever pulled
    bound: float | None
    matters: bool
    over_round_robin: Gain | None
    over_best_fixed: Gain | None
    first: tuple[int, ...]
    tied: bool
    nearly: bool = False


def recommend(
    bandit: RestlessBandit,
    earned: Mapping[str, Earned],
    policies: Mapping[str, Policy],
    bound: float | None,
) -> Recommendation | None:
    """Choose the simplest policy that earns as much as any.

    Those whose J depends on the start are passed over; None where there is no other.
    """
    everything = earned
    earned = {name: found for name, found in earned.items() if not found.depends_on_start}
    if not earned:
        return None
    own = reduce_kinds(kinds_of(bandit)).own_reward
    best = max(earned.values(), key=lambda found: found.average_reward)
    name = next(n for n in _in_order(earned) if _as_good(earned[n], best, own))
    found = earned[name]
    turns = round_robin_reward(bandit)
    fixed = earned.get("best_fixed")
    values = [e.average_reward for e in earned.values()] + ([] if turns is None else [turns])
    unit = max(abs(found.average_reward), 1e-300)
    # what these earn alike is what any policy earns only if nothing is known to earn more or less
    known = turns is not None and len(earned) == len(everything)
    known &= "optimal" in earned or (bound is not None and bound <= max(values) + NO_MORE * unit)
    matters = not known or max(values) - min(values) > 1e-9 * unit
    first, tied, nearly = _first_pulls(bandit, policies[name])
    return Recommendation(
        policy=name,
        average_reward=found.average_reward,
        stderr=found.stderr,
        own_reward=own,
        bound=bound,
        matters=matters and bandit.num_pulls < bandit.num_arms,
        over_round_robin=None if turns is None else _gain(found, Earned(turns, 0.0), own),
        over_best_fixed=None if fixed is None else _gain(found, fixed, own),
        first=first,
        tied=tied,
        nearly=nearly,
    )


def round_robin_reward(bandit: RestlessBandit) -> float | None:
    """J of pulling all arms in turn; None where it depends on the start or takes too long.

    Arm k has the turns k, k + K, k + 2K, ... and N turns make a step. Its pulls are
    floor((x + K) / N) steps apart, where x is the place of its turn in the step; after
    N / gcd(K, N) pulls that repeats, for all arms alike but for where they begin.
    """
    num_arms, pulls = bandit.num_arms, bandit.num_pulls
    kinds = reduce_kinds(kinds_of(bandit)).kinds
    num_turns = pulls // gcd(num_arms, pulls)
    if num_turns * len(kinds.arms) > MOST_PRODUCTS:
        return None
    places = [(turn * num_arms) % pulls for turn in range(num_turns)]
    gaps = [(place + num_arms) // pulls for place in places]
    total = 0.0
    for arm, count in zip(kinds.arms, kinds.counts.tolist(), strict=True):
        after = {gap: _seen_after(arm.active, arm.passive, gap) for gap in set(gaps)}
        whole = np.eye(arm.num_states)
        for gap in gaps:
            whole = np.einsum("ij,jk->ik", whole, after[gap])  # not BLAS: the same bits anywhere
        whole = whole / whole.sum(axis=1, keepdims=True)  # rounding does not add up
        try:
            law = unichain_law(whole, "an arm")
        except AssumptionError:
            return None
        for gap in gaps:
            total += count * fsum(law * arm.rewards)
            law = np.einsum("i,ij->j", law, after[gap])
    return total / sum(gaps) + reduce_kinds(kinds_of(bandit)).own_reward


def nothing_seen(bandit: RestlessBandit) -> BeliefState:
    """Return the meta-state of arms that nobody has looked at for very long.

    Arms that are always seen are in their last state.
    """
    sizes = kinds_of(bandit).sizes
    return BeliefState(sizes - 1, np.where(always_seen(bandit), 1, LONG_AGO))


def arm_names(bandit: RestlessBandit, arms: Sequence[int]) -> str:
    """Return arms for a sentence: "downlink, 2 and 3"."""
    named = arm_titles(bandit, arms[:MOST_NAMED])
    if len(arms) > MOST_NAMED:
        named.append(f"{len(arms) - MOST_NAMED:,} more")
    return " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)


def arm_titles(bandit: RestlessBandit, arms: Sequence[int]) -> list[str]:
    """Return what arms are called: their names, with the number where it takes that to tell."""
    counts = Counter(arm.name for arm in bandit.arms)
    names = [bandit.arms[k].name for k in arms]
    return [
        f"{k}" if name is None else name if counts[name] == 1 else f"{k} ({name})"
        for k, name in zip(arms, names, strict=True)
    ]


def last_states(bandit: RestlessBandit) -> str:
    """Say in which states `nothing_seen` takes arms to be that are always seen."""
    names = {arm.states and arm.states[-1] for arm in bandit.arms if arm.always_seen}
    name = next(iter(names)) if len(names) == 1 else None
    return f"in state {name!r}" if name else "in the highest of their states"


def _seen_after(active: FloatArray, passive: FloatArray, gap: int) -> FloatArray:
    """Chances [S, S] of an arm's state when it is pulled, `gap` steps after it was last."""
    size = len(active)
    found = beliefs_at(active[None], passive[None], np.arange(size), np.full(size, gap))
    return np.asarray(found[:, 0])


def _in_order(names: Mapping[str, Earned]) -> list[str]:
    known = [name for name in SIMPLEST_FIRST if name in names]
    return known + [name for name in names if name not in SIMPLEST_FIRST]


def _as_good(found: Earned, best: Earned, own: float) -> bool:
    less = best.average_reward - found.average_reward
    noise = ERRORS * float(np.hypot(found.stderr, best.stderr))
    return less <= max(AS_GOOD * abs(best.average_reward - own), noise)


def _gain(found: Earned, other: Earned, own: float) -> Gain:
    more = found.average_reward - other.average_reward
    half = ERRORS * float(np.hypot(found.stderr, other.stderr))
    return Gain(other.average_reward - own, more, more - half, more + half)


def _first_pulls(bandit: RestlessBandit, policy: Policy) -> tuple[tuple[int, ...], bool, bool]:
    state = nothing_seen(bandit)
    chosen = policy.select(state)
    tied = nearly = False
    if isinstance(policy, IndexPolicy):
        rank = policy.rank(state)
        left = np.ones(bandit.num_arms, dtype=bool)
        left[chosen] = False
        tied = bool((rank[left] == rank[chosen].min()).any())
        rewards = [arm.rewards for arm in kinds_of(bandit).arms]
        index, span = policy.index(state), max(map(np.ptp, rewards))
        nearly = bool((index[left] >= index[chosen].min() - NEAR * span).any())
    return tuple(chosen.tolist()), tied, nearly
