"""The optimal policy of small bandits, by relative value iteration on the joint chain.

After any step exactly N arms have just been seen, so the joint meta-states that matter are those in
which N arms have age 1. Their number grows like (ages)^(K-N): a few arms only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import ceil, comb, lgamma, log, log10

import numpy as np
from numpy.typing import NDArray

from restive.arguments import (
    MOST,
    bytes_in_words,
    checked_count,
    count_in_words,
    require_memory,
)
from restive.errors import AssumptionError, TooLargeError
from restive.plan.joint_chain import ROUNDING, JointStates, most_outcomes, optimal_bias, shown_sizes
from restive.plan.policies.base import policy_repr
from restive.plan.solved_run import MAX_STATES
from restive.problem.bandit import RestlessBandit, always_seen, kinds_of
from restive.problem.beliefs import BeliefState, require_state, settled_lengths
from restive.problem.reduction import reduce_kinds

__all__ = ["OptimalPolicy", "optimal"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Ages are told apart until beliefs are this close to their limit: coarser than elsewhere, since the
# number of states is a power of it; what it costs is of its own size.
AGE_TOLERANCE = 1e-9
USUAL_OUTCOMES = 500  # of all choices in a state; where there are more, it counts as several
DAMPING = 0.9
GAP = 1e-10
MOST_SWEEPS = 100_000
TIE_TOLERANCE = 1e-9
LARGE = 100.0  # logarithm of what is more than any memory
MOST_DIGITS = 15  # of a number of states that is counted out


@dataclass(frozen=True, eq=False, repr=False)
class OptimalPolicy:
    """Pull the arms that are best in the long run, as far as floating point can tell.

    The choice in a state looks one step ahead to the optimal bias, so that it is there for every
    meta-state; among equals the lowest arms win. `joint` and `bias` are those of arms that pay only
    when pulled (`reduction`).
    """

    bandit: RestlessBandit
    average_reward: float
    joint: JointStates = field(repr=False)
    bias: FloatArray = field(repr=False)  # [states]
    actions: IntArray = field(repr=False)  # [actions, N]
    name: str = "optimal"

    def __repr__(self) -> str:
        return policy_repr(self)

    def select(self, state: BeliefState) -> IntArray:
        """Return the arms to pull, ascending [N]."""
        require_state(state, self.bandit)
        chosen: IntArray = self.select_many(state.last_state[None], state.elapsed[None])[0]
        return chosen

    def select_many(self, last_state: IntArray, elapsed: IntArray) -> IntArray:
        """Arms to pull [M, N], ascending, for M meta-states given as [M, K] arrays."""
        rows = self.joint.cells(last_state, elapsed)
        num_actions = len(self.actions)
        found = self.joint.outcomes(
            np.repeat(rows, num_actions, axis=0), np.tile(self.actions, (len(rows), 1)), add=False
        )
        ahead = (found.probability * self.bias[found.successor]).sum(axis=1)
        values = (found.reward + ahead).reshape(len(rows), num_actions)
        tolerance = TIE_TOLERANCE * self.joint.unit
        good = values >= values.max(axis=1, keepdims=True) - tolerance
        chosen: IntArray = self.actions[good.argmax(axis=1)]
        return chosen


def optimal(
    bandit: RestlessBandit, *, max_states: int = MAX_STATES, max_elapsed: int | None = None
) -> OptimalPolicy:
    """Return the policy with the largest average reward; small bandits only.

    Parameters
    ----------
    bandit
        The arms and the number of pulls.
    max_states
        Refuse, with a `TooLargeError`, when there are more joint states. Where they have more than
        500 outcomes each, of all choices together, and 100 million in all, each counts as several.
    max_elapsed
        Ages told apart; by default until beliefs are within 1e-9 of their limits.
    """
    max_states = checked_count(max_states, "max_states")
    kinds = kinds_of(bandit)
    lengths = settled_lengths(kinds, max_elapsed, AGE_TOLERANCE)
    sizes = kinds.sizes
    ages = np.where(always_seen(bandit), 1, lengths[kinds.of])
    _require_few(bandit, log_num_states(sizes, ages, bandit.num_pulls), max_states)
    num_actions = comb(bandit.num_arms, bandit.num_pulls)
    reduced = reduce_kinds(kinds)
    joint = JointStates(bandit, reduced.kinds, lengths)
    for rows in _fresh_states(bandit.num_pulls, joint):
        joint.add(rows)
    arms = combinations(range(bandit.num_arms), bandit.num_pulls)
    choices = np.array(list(arms), dtype=np.int64)
    found = joint.outcomes(
        np.repeat(joint.rows(0, joint.count), num_actions, axis=0),
        np.tile(choices, (joint.count, 1)),
        add=False,
    )
    bias, gain, gap = optimal_bias(found, num_actions, DAMPING, GAP * joint.unit, MOST_SWEEPS)
    if gap > 1e-7 * joint.unit:
        raise AssumptionError(
            f"the optimum did not settle: after {MOST_SWEEPS:,} sweeps its average reward is only "
            f"known to {gap:.2g}; some arm mixes too slowly, or the best average reward depends "
            "on the start"
        )
    return OptimalPolicy(bandit, gain + reduced.own_reward, joint, bias, choices)


def _require_few(bandit: RestlessBandit, states: float, max_states: int) -> None:
    """Raise where so many joint states, given as a logarithm, are more than may be solved."""
    actions = log_choices(bandit.num_arms, bandit.num_pulls)
    outcomes = float(np.log10(shown_sizes(bandit)).sum())
    rows = 10 ** min(states + actions, LARGE)
    size = rows * (4 * bandit.num_arms + 8 * bandit.num_pulls + 12 * 10 ** min(outcomes, LARGE))
    needs = (
        f"the optimum needs {count_in_words(states)} joint states with "
        f"{count_in_words(actions)} choices of {count_in_words(outcomes)} outcomes each"
    )
    others = "lower max_elapsed, or use whittle or lp_priority with relaxation_bound"
    count_as = states + max(0.0, actions + outcomes - log10(USUAL_OUTCOMES))
    if count_as <= log10(MAX_STATES) + ROUNDING:
        count_as = states
    if count_as > log10(max_states) + ROUNDING:
        if count_as < log10(MOST):
            most_outcomes(bandit)  # beyond which more states do not help
            needed = ceil(10**count_as * (1 - ROUNDING))
            others = f"raise max_states to {needed:,} if there is as much memory, {others}"
        raise TooLargeError(f"{needs}, {bytes_in_words(size)} in all; {others}")
    require_memory(size, f"{needs}; they", others)


def log_num_states(sizes: IntArray, lengths: IntArray, num_pulls: int) -> float:
    """Decimal logarithm of the number of joint meta-states in which N arms have just been seen.

    Arms whose belief settles at once, and those that are always seen, have one age only; they count
    as just seen or not. Where the
    number is beyond any limit the logarithm is that of a round figure: as if all arms that age had
    their (geometric) mean number of ages.
    """
    ageing = lengths > 1
    if np.log10(sizes * lengths.astype(np.float64)).sum() < MOST_DIGITS:
        return log10(num_joint_states(sizes.tolist(), lengths.tolist(), num_pulls))
    older = np.log10(lengths[ageing] - 1.0)
    fresh = min(num_pulls, len(older))
    stale = (len(older) - fresh) * float(older.mean()) if len(older) else 0.0
    return float(np.log10(sizes).sum()) + stale + log_choices(len(older), fresh)


def log_choices(num_arms: int, num_pulls: int) -> float:
    """Decimal logarithm of the number of ways to choose the arms to pull."""
    parts = (num_arms, num_pulls, num_arms - num_pulls)
    whole, *rest = (lgamma(part + 1) for part in parts)
    return (whole - sum(rest)) / log(10)


def num_joint_states(sizes: Sequence[int], lengths: Sequence[int], num_pulls: int) -> int:
    """Count the joint meta-states in which N arms have just been seen, one by one."""
    ageless = 0
    factor = 1
    by_fresh = [1]  # by_fresh[j]: ways with j of the ageing arms fresh
    for size, length in zip(sizes, lengths, strict=True):
        if length == 1:
            ageless += 1
            factor *= size
            continue
        fresh, stale = size, size * (length - 1)
        shifted = [0, *by_fresh]
        by_fresh = [
            ways * stale + before * fresh
            for ways, before in zip([*by_fresh, 0], shifted, strict=True)
        ]
    return factor * sum(by_fresh[max(0, num_pulls - ageless) : num_pulls + 1])


def _fresh_states(num_pulls: int, joint: JointStates) -> Iterator[NDArray[np.int32]]:
    """Rows of cells, a block per set of ageing arms that have just been seen."""
    sizes, lengths, ages = joint.sizes, joint.lengths, joint.ages
    ageing = np.flatnonzero(ages > 1)
    ageless = len(lengths) - len(ageing)
    for num_fresh in range(max(0, num_pulls - ageless), min(num_pulls, len(ageing)) + 1):
        for fresh in combinations(ageing.tolist(), num_fresh):
            choices = []
            for k, (size, length) in enumerate(zip(sizes, lengths, strict=True)):
                cells = np.arange(size * length).reshape(size, length)
                just_seen = k in fresh or ages[k] == 1
                choices.append((cells[:, :1] if just_seen else cells[:, 1:]).ravel())
            grid = np.meshgrid(*choices, indexing="ij", copy=False)
            yield np.stack([axis.ravel() for axis in grid], axis=1).astype(np.int32)
