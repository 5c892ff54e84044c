"""What a policy is worth: average reward J, bias span and how they were found (Section 4).

Small problems are solved exactly on the joint chain that the policy can reach from the start; fixed
policies exactly at any size; everything else is simulated, with a standard error. The exact way
also looks whether J depends on the start, in which case the paper's Assumption 2 fails for the
policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import inf, nan

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count
from restive.belief import (
    BeliefState,
    belief_table,
    settled_lengths,
    start_or_initial,
)
from restive.chains import stationary
from restive.errors import ProblemError, TooLargeError
from restive.joint import JointStates, Outcomes, joined
from restive.joint_values import absorbed_values, closed_components, gain_and_bias
from restive.long_run import simulated_reward
from restive.policies import policy_mapping
from restive.policies.base import IndexPolicy, Policy, checked_choice
from restive.policies.optimal import OptimalPolicy
from restive.problem import Kinds, RestlessBandit, kinds_of

__all__ = [
    "Value",
    "evaluate",
    "exact_value",
    "explore",
    "explore_other_starts",
    "require_same_shape",
    "told_ages",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MAX_STATES = 200_000
MOST_STARTS = 4096  # starts tried when looking whether J depends on the start
ROWS_AT_ONCE = 1 << 20  # outcomes held while exploring
MOST_CELLS = 1 << 28  # joint states times arms: 1 GiB

DAMPING = 0.9  # below 1, so that periodic chains converge too
GAP = 1e-11
MOST_SWEEPS = 200_000
EQUAL = 1e-8  # gains closer than this are one
OLD = 10_000  # a belief of this age has settled, for the bias of a start
MOST_PHASES = 10_000  # sets of states that fixed arms may pass through


@dataclass(frozen=True)
class Value:
    """What a policy earns in the long run from a start.

    `average_reward` is J; `stderr` its standard error, 0 when exact. `bias_span` is the span of the
    bias over the joint states that can be reached from the start: infinite where J depends on the
    start, and nan where it was simulated or too slow to be solved. `method` says how J was found.
    `num_states` counts the joint states (0 where none were enumerated). `depends_on_start` is None
    where it was not looked at; where it is True, `average_reward_range` holds the least and the
    largest J over all starts tried.
    """

    average_reward: float
    stderr: float
    bias_span: float
    method: str
    num_states: int
    depends_on_start: bool | None
    average_reward_range: tuple[float, float]


def evaluate(
    bandit: RestlessBandit,
    policy: Policy | str,
    start: BeliefState | None = None,
    *,
    max_states: int = MAX_STATES,
    max_elapsed: int | None = None,
    replications: int | None = None,
    steps: int | None = None,
    seed: int = 0,
) -> Value:
    """Average reward of a policy on a bandit.

    Parameters
    ----------
    bandit
        The true arms; they may differ from those the policy was made for.
    policy
        Any policy of this package, an object with `select(state)`, or the name of a policy mapping,
        such as "whittle", for the policy that it makes of this bandit.
    start
        Meta-state to start from; by default every arm was seen in its last (good) state one step
        ago, as in the paper.
    max_states
        Solve exactly up to this many joint states; simulate index policies beyond it.
    max_elapsed
        Ages told apart; by default as many as beliefs need to settle.
    replications, steps, seed
        Independent runs, steps of each that count and seed of a simulation. By default 64 runs of
        at most 50,000 steps, fewer for very many arms, after as many as the slowest arm takes to
        forget the start. With `steps` given, a tenth as many go before them.
    """
    if isinstance(policy, str):
        policy = policy_mapping(policy)(bandit, max_elapsed=max_elapsed, max_states=max_states)
    try:
        return exact_value(bandit, policy, start, max_states=max_states, max_elapsed=max_elapsed)
    except TooLargeError as error:
        if not isinstance(policy, IndexPolicy):
            raise TooLargeError(f"{error}; only index policies can be simulated here") from None
    start = start_or_initial(start, bandit.arms)
    kinds = kinds_of(bandit)
    lengths = told_ages(kinds, policy, max_elapsed)
    found = simulated_reward(bandit, kinds, policy, start, lengths, replications, steps, seed)
    return Value(
        average_reward=found.mean,
        stderr=found.stderr,
        bias_span=nan,
        method=found.method,
        num_states=0,
        depends_on_start=None,
        average_reward_range=(found.mean, found.mean),
    )


def exact_value(
    bandit: RestlessBandit,
    policy: Policy,
    start: BeliefState | None = None,
    *,
    max_states: int = MAX_STATES,
    max_elapsed: int | None = None,
) -> Value:
    """Return what `evaluate` does where it is exact, and raise a `TooLargeError` elsewhere."""
    max_states = checked_count(max_states, "max_states")
    start = start_or_initial(start, bandit.arms)
    start.require_fits(bandit)
    require_same_shape(bandit, policy)
    if isinstance(policy, IndexPolicy) and all(np.ptp(table) == 0 for table in policy.tables):
        return _fixed_value(bandit, policy.select(start), start)
    kinds = kinds_of(bandit)
    lengths = told_ages(kinds, policy, max_elapsed)
    return _joint_value(bandit, kinds, policy, start, lengths, max_states)


def told_ages(kinds: Kinds, policy: Policy, max_elapsed: int | None) -> IntArray:
    """Ages to be told apart: until beliefs settle, and at least as many as the policy does."""
    lengths = settled_lengths(kinds, max_elapsed)
    if isinstance(policy, IndexPolicy):  # it may have been made for other arms
        np.maximum.at(lengths, kinds.of, policy.ranked.lengths[policy.kinds.of])
    return lengths


def require_same_shape(bandit: RestlessBandit, policy: Policy) -> None:
    """Raise where the policy was made for another number of arms, pulls or states."""
    if not callable(getattr(policy, "select", None)):
        raise ProblemError(
            f"expected a policy, such as whittle(bandit), or an object with select(state); got "
            f"{policy!r:.60}"
        )
    made_for = getattr(policy, "bandit", None)
    if not isinstance(made_for, RestlessBandit):
        return  # a policy of the user's, which is asked and checked state by state
    if made_for.num_arms != bandit.num_arms or made_for.num_pulls != bandit.num_pulls:
        raise ProblemError(
            f"the policy is for {made_for.num_arms} arms and {made_for.num_pulls} pulls, "
            f"the bandit has {bandit.num_arms} and {bandit.num_pulls}"
        )
    for k, (arm, other) in enumerate(zip(bandit.arms, made_for.arms, strict=True)):
        if arm.num_states != other.num_states:
            raise ProblemError(
                f"{bandit.label(k)}: has {arm.num_states} states, the policy is for an arm with "
                f"{other.num_states}"
            )


def _fixed_value(bandit: RestlessBandit, pulled: IntArray, start: BeliefState) -> Value:
    """Worth of always pulling the same arms: they are independent, so all is a sum over arms.

    The bias of a pulled arm in (s, n) is b(s, n).z, with z = r - g + P_active z. At each time the
    states that can be reached are a product over arms; the span is taken over all times.
    """
    gain = 0.0
    supports, biases = [], []
    highest = lowest = 0.0
    for k in pulled.tolist():
        arm = bandit.arms[k]
        law = stationary(arm.active, bandit.label(k))
        reward = float(law @ arm.rewards)
        gain += reward
        system = np.eye(arm.num_states) - arm.active + law  # rows of `law`: fixes law.z = 0
        z = np.linalg.solve(system, arm.rewards - reward)
        age = min(int(start.elapsed[k]), OLD)
        belief = belief_table(arm, age)[start.last_state[k], age - 1]
        highest = lowest = highest + float(belief @ z)
        supports.append(belief > 0)
        biases.append(arm.active @ z)
    moves = [bandit.arms[k].active > 0 for k in pulled.tolist()]
    met: set[bytes] = set()
    while (key := b"".join(support.tobytes() for support in supports)) not in met:
        if len(met) > MOST_PHASES:
            highest, lowest = np.inf, -np.inf  # very long periods: not worth following
            break
        met.add(key)
        reached = [bias[support] for bias, support in zip(biases, supports, strict=True)]
        highest = max(highest, sum(float(values.max()) for values in reached))
        lowest = min(lowest, sum(float(values.min()) for values in reached))
        supports = [support @ move for support, move in zip(supports, moves, strict=True)]
    span = highest - lowest if np.isfinite(highest) else float("nan")
    return Value(gain, 0.0, span, "exact: fixed arms", 0, False, (gain, gain))


def _joint_value(
    bandit: RestlessBandit,
    kinds: Kinds,
    policy: Policy,
    start: BeliefState,
    lengths: IntArray,
    max_states: int,
) -> Value:
    joint = JointStates(bandit, kinds, lengths)
    joint.number_of(start)
    blocks: list[Outcomes] = []
    explore(joint, policy, blocks, max_states)
    reachable = joint.count
    # raised limits are for what the policy reaches: a wide search for other starts adds little
    others = min(max_states, max(MAX_STATES, 2 * reachable))
    depends_known = explore_other_starts(joint, policy, blocks, others)
    if not depends_known:
        joint.count = reachable
    chain = joined(blocks, joint.count)
    component, num_closed = closed_components(chain.successor)
    gains = np.zeros(joint.count)
    bias = np.zeros(joint.count)
    for label in range(num_closed):
        members = np.flatnonzero(component == label)
        gains[members] = _class_gain(members, chain, bias)
    settled = _absorb(gains, component, chain, np.zeros(joint.count))
    if num_closed > 1 and not settled:
        raise TooLargeError("the joint chain leaves its transient states too slowly to be solved")
    classes = gains[component >= 0]
    low, high = float(classes.min()), float(classes.max())
    depends = high - low > EQUAL
    if not depends:  # whichever class is reached
        gains[component < 0] = classes[0]
    span = inf if depends else nan
    if not depends and _absorb(bias, component, chain, chain.reward - gains):
        span = float(np.ptp(bias[:reachable]))
    return Value(
        average_reward=float(gains[0]),
        stderr=0.0,
        bias_span=span,
        method="exact: joint chain",
        num_states=reachable,
        depends_on_start=depends if depends or depends_known else None,
        average_reward_range=(low, high),
    )


def _class_gain(members: IntArray, chain: Outcomes, bias: FloatArray) -> float:
    """Gain of a closed class; its bias is written."""
    gain, gap = gain_and_bias(members, chain, bias, DAMPING, GAP, MOST_SWEEPS)
    if gap > 1e-9:
        raise TooLargeError(
            f"the joint chain mixes so slowly that {MOST_SWEEPS:,} sweeps leave J uncertain by "
            f"{gap:.2g}"
        )
    return gain


def _absorb(
    values: FloatArray, component: NDArray[np.int32], chain: Outcomes, earned: FloatArray
) -> bool:
    """Values of transient states, from those of the closed classes; whether they settled."""
    return absorbed_values(values, component, chain, earned, 1e-12, MOST_SWEEPS) <= 1e-12


def explore(joint: JointStates, policy: Policy, blocks: list[Outcomes], max_states: int) -> None:
    """Follow the policy from every numbered state that has not been followed yet."""
    select_many = _batched(policy, joint.bandit)
    done = sum(len(block.reward) for block in blocks)
    at_once = max(1, ROWS_AT_ONCE // max(joint.most_outcomes, joint.bandit.num_arms // 16))
    memory = max(1, MOST_CELLS // joint.bandit.num_arms)
    while done < joint.count:
        if joint.count > memory:
            raise TooLargeError(
                f"the policy reaches more than {memory:,} joint states of {joint.bandit.num_arms:,}"
                " arms: too much for a joint chain"
            )
        if joint.count > max_states:
            raise TooLargeError(
                f"the policy reaches more than {max_states:,} joint states; raise max_states"
            )
        last = min(joint.count, done + at_once)
        actions = select_many(*joint.unpacked(done, last))
        blocks.append(joint.outcomes(joint.rows(done, last), actions, add=True))
        done = last


def explore_other_starts(
    joint: JointStates, policy: Policy, blocks: list[Outcomes], max_states: int
) -> bool:
    """Follow the policy from starts of every kind: each arm just seen in any state, or long ago."""
    if np.prod(joint.sizes + 1.0) > MOST_STARTS:
        return False
    choices = [
        [*(s * length for s in range(size)), length - 1]
        for size, length in zip(joint.sizes.tolist(), joint.lengths.tolist(), strict=True)
    ]
    joint.add(np.array(list(product(*choices)), dtype=np.int32))
    try:
        explore(joint, policy, blocks, max_states)
    except TooLargeError:
        return False
    return True


def _batched(policy: Policy, bandit: RestlessBandit) -> Callable[[IntArray, IntArray], IntArray]:
    if isinstance(policy, IndexPolicy | OptimalPolicy):
        return policy.select_many

    def one_by_one(last_state: IntArray, elapsed: IntArray) -> IntArray:
        pairs = zip(last_state, elapsed, strict=True)
        return np.array([checked_choice(policy, bandit, BeliefState(s, n)) for s, n in pairs])

    return one_by_one
