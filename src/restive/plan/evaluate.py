"""What a policy earns: average reward J, bias span and how they were found (Section 4).

Small problems are solved exactly on the joint chain that the policy can reach from the start; fixed
policies exactly at any size; everything else is simulated, with a standard error. The exact way
also looks whether J depends on the start, in which case the paper's Assumption 2 fails for the
policy. Arms that pay while not pulled are reduced to arms that do not (`reduction`); what they earn
by themselves is added to J, and their potential to the bias.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import fsum, inf, isnan, nan

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, one_line
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.plan.joint_chain import JointStates
from restive.plan.policies.base import IndexPolicy, Policy, checked_choice
from restive.plan.policies.optimal import OptimalPolicy
from restive.plan.policies.random import RandomPolicy
from restive.plan.policies.registry import as_policy
from restive.plan.policies.round_robin import RoundRobinPolicy
from restive.plan.simulated_run import paid_arms, plan_of_runs, simulated_reward
from restive.plan.solved_run import MAX_STATES, Chooser, solve_long_run
from restive.problem.arm import Arm
from restive.problem.bandit import Kinds, RestlessBandit, always_seen, kinds_of
from restive.problem.beliefs import (
    BeliefState,
    belief_table,
    expected,
    laws_now,
    settled_elapsed,
    settled_lengths,
    start_or_initial,
)
from restive.problem.chains import solved, unichain_law, weighted
from restive.problem.reduction import ReducedKinds, reduce_kinds

__all__ = ["Value", "chooser", "evaluate", "exact_value", "require_same_shape", "told_ages"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

OLD = 10_000  # a belief of this age has settled, for the bias of a start
MOST_PHASES = 10_000  # sets of states that fixed arms may pass through


@dataclass(frozen=True, repr=False)
class Value:
    """What a policy earns in the long run from a start.

    `average_reward` is J; `stderr` its standard error, 0 when exact. `bias_span` is the span of the
    bias over the joint states that can be reached from the start: infinite where J depends on the
    start, and nan where it was simulated or too slow to be solved. `method` says how J was found.
    `num_states` counts the joint states (0 where none were enumerated). `depends_on_start` is None
    where it was not looked at; where it is True, `average_reward_range` holds the least and the
    largest J over all starts tried. `why_simulated` says what solving J would have taken, where it
    was simulated instead.
    """

    average_reward: float
    stderr: float
    bias_span: float
    method: str
    num_states: int
    depends_on_start: bool | None
    average_reward_range: tuple[float, float]
    why_simulated: str = ""

    def __repr__(self) -> str:
        error = f", stderr={self.stderr:.2g}" if self.stderr else ""
        span = "" if isnan(self.bias_span) else f", bias_span={self.bias_span:.6g}"
        fields = f"average_reward={self.average_reward:.9g}{error}{span}"
        return one_line(f"Value({fields}, {self.method})", f"Value({fields})")


def evaluate(
    bandit: RestlessBandit,
    policy: Policy | str,
    *,
    start: BeliefState | None = None,
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
        Any policy of this package, an object with `select(state)`, or a name such as "whittle": the
        policy that this mapping makes of this bandit, or "round_robin".
    start
        Meta-state to start from; by default every arm was seen in its last (good) state one step
        ago, as in the paper.
    max_states
        Solve exactly up to this many joint states; simulate index policies beyond it. With very
        many arms or pulls fewer states take as much memory or time, and fewer are solved.
    max_elapsed
        Ages told apart; by default as many as beliefs need to settle.
    replications, steps, seed
        Independent runs, steps of each that count and seed of a simulation. By default 64 runs of
        at most 50,000 steps, fewer for very many arms, after as many as the slowest arm takes to
        forget the start. With `steps` given, a tenth as many go before them.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> value = rs.evaluate(bandit, "whittle")
    >>> round(value.average_reward, 6), value.method
    (0.499825, 'exact: joint chain')
    """
    policy = as_policy(policy, bandit, max_elapsed=max_elapsed, max_states=max_states)
    try:
        return exact_value(bandit, policy, start, max_states=max_states, max_elapsed=max_elapsed)
    except TooLargeError as error:
        if not isinstance(policy, IndexPolicy):
            raise TooLargeError(f"{error}; only index policies can be simulated here") from None
        why = str(error)
    value = _simulated_value(bandit, policy, start, max_elapsed, replications, steps, seed)
    return replace(value, why_simulated=why)


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
    start = start_or_initial(start, bandit)
    start.require_fits(bandit)
    require_same_shape(bandit, policy)
    kinds = kinds_of(bandit)
    reduced = reduce_kinds(kinds)
    if isinstance(policy, IndexPolicy) and all(np.ptp(table) == 0 for table in policy.tables):
        return _fixed_value(bandit, reduced, policy.select(start), start)
    lengths = told_ages(kinds, policy, max_elapsed)
    return _joint_value(bandit, reduced, policy, start, lengths, max_states)


def told_ages(kinds: Kinds, policy: Policy, max_elapsed: int | None) -> IntArray:
    """Ages to be told apart: until beliefs settle, and at least as many as the policy does."""
    lengths = settled_lengths(kinds, max_elapsed)
    if isinstance(policy, IndexPolicy):  # it may have been made for other arms
        own = lengths.copy()
        np.maximum.at(lengths, kinds.of, policy.ranked.lengths[policy.kinds.of])
        for j, arm in enumerate(kinds.arms):
            if arm.always_seen:  # which has no ages
                lengths[j] = own[j]
    return lengths


def require_same_shape(bandit: RestlessBandit, policy: Policy) -> None:
    """Raise where the policy was made for another number of arms, pulls or states."""
    if callable(getattr(policy, "observe", None)):  # it learns, so it is no function of the state
        raise ProblemError(
            f"evaluate takes a policy, got {policy!r:.60}; for an agent use simulate or "
            "frequentist_regret"
        )
    if not callable(getattr(policy, "select", None)):
        raise ProblemError(
            f"expected a policy, such as whittle(bandit), or an object with select(state); got "
            f"{policy!r:.60}"
        )
    if isinstance(policy, RandomPolicy):
        raise ProblemError(
            "a policy that draws its arms anew each time has no joint chain to solve; simulate it: "
            "simulate(bandit, 'random', horizon)"
        )
    if isinstance(policy, RoundRobinPolicy) and policy.must_count:
        raise ProblemError(
            "whose turn it is among arms that are always seen is no part of a state, so there is "
            "no joint chain to solve; `restive plan` says what taking turns earns, or simulate it: "
            "simulate(bandit, 'round_robin', horizon)"
        )
    made_for = getattr(policy, "bandit", None)
    if not isinstance(made_for, RestlessBandit):
        return  # a policy of the user's, which is asked and checked state by state
    if made_for.num_arms != bandit.num_arms or made_for.num_pulls != bandit.num_pulls:
        raise ProblemError(
            f"the policy is for {made_for.num_arms} arms and {made_for.num_pulls} pulls, "
            f"the bandit has {bandit.num_arms} and {bandit.num_pulls}"
        )
    sizes, others = kinds_of(bandit).sizes, kinds_of(made_for).sizes
    for k in np.flatnonzero(sizes != others).tolist():
        raise ProblemError(
            f"{bandit.label(k)}: has {sizes[k]} states, the policy is for an arm with {others[k]}"
        )
    for k in np.flatnonzero(always_seen(bandit) != always_seen(made_for)).tolist():
        raise ProblemError(
            f"{bandit.label(k)}: is seen {_when(bandit.arms[k])}, the policy is for an arm that is "
            f"seen {_when(made_for.arms[k])}"
        )


def _when(arm: Arm) -> str:
    return "always" if arm.always_seen else "when it is pulled"


def _fixed_value(
    bandit: RestlessBandit, reduced: ReducedKinds, pulled: IntArray, start: BeliefState
) -> Value:
    """Value of always pulling the same arms: they are independent, so all is a sum over arms.

    The bias of a pulled arm in (s, n) is b(s, n).h, with h = r - g + P_active h, plus b(s, n).z for
    what its state is worth alone. At each time the states that can be reached are a product over
    arms; the span is taken over all times. The state of an arm that is always seen is known, so its
    bias is h + z, and z alone where it is not pulled.
    """
    alone = np.delete(np.arange(bandit.num_arms), pulled)
    always = always_seen(bandit)
    drift = _drift(reduced, start, alone[~always[alone]])
    rewards, begun, biases, supports, moves = [], [], [], [], []
    first, which = _alike(reduced.kinds.of[pulled], start.last_state[pulled], start.elapsed[pulled])
    for k in pulled[first].tolist():
        arm, potential = _reduced_arm(reduced, k)
        state = int(start.last_state[k])
        law = unichain_law(arm.active, bandit.label(k))
        reward = fsum(law * arm.rewards)
        rewards.append(reward)
        system = np.eye(arm.num_states) - arm.active + law  # rows of `law`: fixes law.h = 0
        bias = solved(system, arm.rewards - reward) + potential
        moves.append(arm.active > 0)
        if arm.always_seen:
            begun.append(float(bias[state]))
            supports.append(arm.active[state] > 0)
            biases.append(bias)
            continue
        belief = _belief_at(arm, state, int(start.elapsed[k]))
        begun.append(fsum(belief * bias))
        supports.append(belief > 0)
        biases.append(weighted(arm.active, bias))
    highest = lowest = _summed(begun, which) + float(drift[0])
    for kind, state, count in _paying(reduced, start, alone[always[alone]]):
        arm, potential = reduced.kinds.arms[kind], count * reduced.potentials[kind]
        highest = lowest = highest + float(potential[state])
        which = np.append(which, len(biases))
        supports.append(arm.passive[state] > 0)
        biases.append(potential)
        moves.append(arm.passive > 0)
    met: set[bytes] = set()
    step = 0
    while (key := _key(supports)) not in met or step < len(drift):
        if len(met) > MOST_PHASES:
            highest, lowest = np.inf, -np.inf  # very long periods: not worth following
            break
        met.add(key)
        step += 1
        others = float(drift[min(step, len(drift) - 1)])
        reached = [bias[support] for bias, support in zip(biases, supports, strict=True)]
        highest = max(highest, _summed([values.max() for values in reached], which) + others)
        lowest = min(lowest, _summed([values.min() for values in reached], which) + others)
        supports = [support @ move for support, move in zip(supports, moves, strict=True)]
    span = highest - lowest if np.isfinite(highest) else float("nan")
    gain = _summed(rewards, which[: len(pulled)]) + reduced.own_reward
    return Value(gain, 0.0, span, "exact: fixed arms", 0, False, (gain, gain))


def _summed(values: list[float], which: IntArray) -> float:
    """Sum of a value for each arm, given the values of those that are alike."""
    return float(np.cumsum(np.array(values)[which])[-1])


def _key(supports: list[NDArray[np.bool_]]) -> bytes:
    return b"".join(support.tobytes() for support in supports)


def _reduced_arm(reduced: ReducedKinds, k: int) -> tuple[Arm, FloatArray]:
    kind = reduced.kinds.of[k]
    return reduced.kinds.arms[kind], reduced.potentials[kind]


def _belief_at(arm: Arm, last_state: int, elapsed: int) -> FloatArray:
    age = min(elapsed, OLD)
    belief: FloatArray = belief_table(arm, age)[last_state, age - 1]
    return belief


def _alike(*columns: IntArray) -> tuple[IntArray, IntArray]:
    """Where rows of these columns come first, in ascending order, and which of these each is."""
    first = which = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, numbers = np.unique(column, return_inverse=True)
        numbers = which * len(values) + numbers
        _, first, which = np.unique(numbers, return_index=True, return_inverse=True)
    return first, which


def _paying(
    reduced: ReducedKinds, start: BeliefState, alone: IntArray
) -> Iterator[tuple[int, int, int]]:
    """Yield kind, state and number of arms that are always seen, never pulled, and paid then."""
    some = alone[_pays(reduced)[reduced.kinds.of[alone]]]
    kinds, states = reduced.kinds.of[some], start.last_state[some]
    first, which = _alike(kinds, states)
    for place, count in zip(first.tolist(), np.bincount(which).tolist(), strict=True):
        yield int(kinds[place]), int(states[place]), count


def _pays(reduced: ReducedKinds) -> NDArray[np.bool_]:
    """Which kinds are paid while not pulled."""
    return np.array([bool(potential.any()) for potential in reduced.potentials])


def _drift(reduced: ReducedKinds, start: BeliefState, alone: IntArray) -> FloatArray:
    """Sum of b_k.z_k over arms that are never pulled, by steps from the start until it settles.

    It is nan where beliefs do not settle.
    """
    some = alone[_pays(reduced)[reduced.kinds.of[alone]]]
    kinds, ages = reduced.kinds.of[some], np.minimum(start.elapsed[some], OLD)
    first, which = _alike(kinds, ages, start.last_state[some])
    try:
        lengths = [settled_elapsed(reduced.kinds.arms[kind]) for kind in np.unique(kinds)]
    except (AssumptionError, TooLargeError):
        return np.array([nan])
    drift = np.zeros(max(lengths, default=1))
    for place, count in zip(first.tolist(), np.bincount(which).tolist(), strict=True):
        kind, age, state = int(kinds[place]), int(ages[place]), int(start.last_state[some[place]])
        table = belief_table(reduced.kinds.arms[kind], age - 1 + len(drift))
        drift += count * expected(reduced.potentials[kind], table)[state, age - 1 :]
    return drift


def _joint_value(
    bandit: RestlessBandit,
    reduced: ReducedKinds,
    policy: Policy,
    start: BeliefState,
    lengths: IntArray,
    max_states: int,
) -> Value:
    joint = JointStates(bandit, reduced.kinds, lengths)
    found = solve_long_run(joint, start, chooser(policy, bandit), max_states)
    span = inf if found.depends_on_start else nan
    if found.bias is not None:
        span = float(np.ptp(found.bias + _potentials(joint, reduced, found.num_states)))
    own = reduced.own_reward
    return Value(
        average_reward=found.average_reward + own,
        stderr=0.0,
        bias_span=span,
        method="exact: joint chain",
        num_states=found.num_states,
        depends_on_start=found.depends_on_start or (False if found.all_starts else None),
        average_reward_range=(found.lowest + own, found.highest + own),
    )


def _potentials(joint: JointStates, reduced: ReducedKinds, count: int) -> FloatArray:
    """Sum of b_k.z_k [count] in the first joint states: what their arms' states are worth alone."""
    total = np.zeros(count)
    last_state, elapsed = joint.unpacked(0, count)
    for kind, potential in enumerate(reduced.potentials):
        if not potential.any():
            continue
        members = np.flatnonzero(reduced.kinds.of == kind)
        length = int(joint.lengths[members[0]])
        values = expected(potential, laws_now(reduced.kinds.arms[kind], length))
        for k in members:
            total += values[last_state[:, k], elapsed[:, k] - 1]
    return total


def chooser(policy: Policy, bandit: RestlessBandit) -> Chooser:
    """Return the policy as a function of many meta-states at once."""
    if isinstance(policy, IndexPolicy | OptimalPolicy):
        return policy.select_many

    def one_by_one(last_state: IntArray, elapsed: IntArray) -> IntArray:
        pairs = zip(last_state, elapsed, strict=True)
        return np.array([checked_choice(policy, bandit, BeliefState(s, n)) for s, n in pairs])

    return one_by_one


def _simulated_value(
    bandit: RestlessBandit,
    policy: IndexPolicy,
    start: BeliefState | None,
    max_elapsed: int | None,
    replications: int | None,
    steps: int | None,
    seed: int,
) -> Value:
    start = start_or_initial(start, bandit)
    kinds = reduce_kinds(kinds_of(bandit)).kinds
    lengths = told_ages(kinds, policy, max_elapsed)
    runs = plan_of_runs(bandit, kinds, lengths, replications, steps)
    found = simulated_reward(
        bandit, paid_arms(bandit, lengths), policy.ranked, policy.kinds.of, start, runs, seed
    )
    mean = found.mean
    return Value(
        average_reward=mean,
        stderr=found.stderr,
        bias_span=nan,
        method=found.method,
        num_states=0,
        depends_on_start=None,
        average_reward_range=(mean, mean),
    )
