"""The paper's theory as numbers: its bounds beside what they bound (Sections 4 and 5).

The heart is Section 5.1, which takes regret apart. With v_i the bias of the sampled system theta_i
under its policy pi_i, the Bellman equation J(theta_i) + v_i(xi) = r_i(xi, pi_i(xi)) + E_i[v_i(xi')]
turns R = J(theta*) T - sum r_*(xi_t, A_t) into R_0 + R_1 + R_2 + R_3, whatever happens (Eq. 9).
`decompose_regret` runs TSDE on problems so small that every v_i can be solved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product
from math import ceil, log, log2, nan, sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, counted, shown
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.learn.learner_state import LearnerState
from restive.learn.learners.relatives import DynamicEpisodes
from restive.learn.priors.continuous import MIXING_SHARE
from restive.learn.priors.independent import Prior, require_prior
from restive.learn.slots import Choices
from restive.learn.task import Mapping, Task, make_task
from restive.measure.loop import drive
from restive.measure.replication import drawn_truths
from restive.plan.actors import make_record, make_trace, world_of
from restive.plan.evaluate import chooser, require_same_shape, told_ages
from restive.plan.joint_chain import JointStates, Outcomes, closed_components, gain_and_bias, joined
from restive.plan.policies.base import Policy
from restive.plan.policies.registry import as_policy
from restive.plan.solved_run import (
    DAMPING,
    EQUAL,
    GAP,
    MAX_STATES,
    MOST_SWEEPS,
    explore,
    explore_other_starts,
)
from restive.problem.arm import Arm, numbers_array
from restive.problem.bandit import RestlessBandit, checked_num_pulls, kinds_of
from restive.problem.beliefs import BeliefState, initial_state, require_state

__all__ = [
    "Bounds",
    "Decomposition",
    "MeasuredBound",
    "bounds_for",
    "decompose_regret",
    "discounted_spans",
    "episode_bound",
    "regret_bound",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_SYSTEMS = 1_000  # in the support of a prior whose systems are all solved
MOST_IDENTITY_ERROR = 1e-6  # more than rounding leaves of R - (R_0 + R_1 + R_2 + R_3)


def episode_bound(
    total_states: int, num_pulls: int, horizon: int, mixing_time: int, *, as_printed: bool = False
) -> float:
    """Most episodes that TSDE can begin, whatever happens (Lemma 8).

    As printed it is 2 sqrt(sum|S_k| T^mix T log(NT)). The proof takes 2^M(zeta) <= N(zeta), which
    fails at a first visit: a counter that more than doubled M times, from 0 on, is at least
    2^M - 1. So M_T <= sqrt(2 M T), with M = 1 + |Z| log2(1 + NT / |Z|) macro episodes and
    |Z| = sum|S_k| ceil(T^mix) counters.

    Parameters
    ----------
    total_states
        States of all arms together, sum|S_k|.
    num_pulls
        Arms pulled each step, N.
    horizon
        Number of steps, T; at least 2 for the paper's own formula, where T^mix is 0 at T = 1.
    mixing_time
        T^mix(1/4), the largest over arms and systems; T^mix is log2(T) times that.
    as_printed
        Return the paper's own formula.
    """
    checked_count(total_states, "total_states")
    checked_count(num_pulls, "num_pulls")
    checked_count(mixing_time, "mixing_time")
    truncation = log2(checked_count(horizon, "horizon", 2 if as_printed else 1)) * mixing_time
    if as_printed:
        return 2 * sqrt(total_states * truncation * horizon * log(num_pulls * horizon))
    counters = total_states * max(1, ceil(truncation))
    macro_episodes = 1 + counters * log2(1 + num_pulls * horizon / counters)
    return sqrt(2 * macro_episodes * horizon)


def regret_bound(
    total_states: int, num_pulls: int, horizon: int, mixing_time: int, bias_span: float
) -> float:
    """Theorem 1 as Section 5.4 restates it: a bound on the Bayesian regret of TSDE.

    2 (H + N) sqrt(sum|S_k| T^mix T log(NT)) + 28 (H + 1) sum|S_k| sqrt(N T^mix T log(T^mix T)).

    Parameters
    ----------
    total_states, num_pulls, horizon, mixing_time
        As in `episode_bound`, T >= 2.
    bias_span
        H, the largest span of the bias over all systems.
    """
    _require_span(bias_span)
    episodes = episode_bound(total_states, num_pulls, horizon, mixing_time, as_printed=True)
    mixed = log2(horizon) * mixing_time * horizon
    model_error = 28 * total_states * sqrt(num_pulls * mixed * log(mixed))
    return (bias_span + num_pulls) * episodes + (bias_span + 1) * model_error


@dataclass(frozen=True, repr=False)
class Bounds:
    """What the theory allows. No regret exceeds N T: where Theorem 1 does, it says nothing yet.

    The paper's rewards lie in [0, 1]. Others are scaled by their range for its bounds, and what is
    bounded is scaled back; `remarks` say so, and where the theorem does not hold at all.
    """

    total_states: int  # sum|S_k|
    num_pulls: int  # N
    horizon: int  # T
    mixing_time: int  # T^mix(1/4)
    bias_span: float  # H
    truncation: float  # T^mix = log2(T) T^mix(1/4), not rounded
    episodes: float  # Lemma 8, corrected
    episodes_as_printed: float  # Lemma 8
    regret: float  # Theorem 1
    times_trivial: float  # Theorem 1 over N T
    covered: float = 1.0  # prior probability, at least, that all arms mix within T^mix(1/4)
    scale: float = 1.0  # range of rewards that do not lie in [0, 1]
    remarks: tuple[str, ...] = ()

    def __repr__(self) -> str:
        numbers = f"regret {self.regret:.4g}, episodes {self.episodes:.4g}"
        return f"Bounds({numbers}, N = {self.num_pulls:,}, T = {self.horizon:,})"


def bounds_for(prior: Prior, num_pulls: int, horizon: int, bias_span: float) -> Bounds:
    """All bounds, with the numbers of states and the mixing time that a prior implies.

    Under a continuous prior no mixing time holds for all that is possible. There it is the 95%
    quantile of the slowest arm, and Theorem 1 holds for the truths that mix within it: `covered`
    says how likely that is at least. The bound on the number of episodes holds for every truth.

    Parameters
    ----------
    prior
        What the learner considers possible.
    num_pulls, horizon, bias_span
        N, T >= 2, and H, the largest span of the bias over the prior's support, in the units of
        the rewards.
    """
    require_prior(prior)
    _require_span(bias_span)
    choices, pulls = Choices.of(prior, None, None), checked_num_pulls(num_pulls, prior.num_arms)
    size = (int(choices.sizes.sum()), pulls, horizon, choices.mixing_time())
    scale, remarks = _scale_of([prior.typical(k) for k in range(prior.num_arms)])
    num_continuous = sum(
        choices.continuous[pool] is not None for pool in choices.pool_of_group.tolist()
    )
    scaled = regret_bound(*size, bias_span / scale)
    episodes, printed = episode_bound(*size), episode_bound(*size, as_printed=True)
    truncation, times_trivial = log2(horizon) * size[3], scaled / (pulls * horizon)
    return Bounds(
        *size, bias_span, truncation, episodes, printed, scale * scaled, times_trivial,
        MIXING_SHARE**num_continuous, scale, remarks,
    )  # fmt: skip


def _require_span(bias_span: Any) -> None:
    if isinstance(bias_span, bool) or not isinstance(bias_span, int | float | np.number):
        raise ProblemError(f"bias_span must be a number, got {shown(bias_span)}")
    if not bias_span >= 0:
        raise ProblemError(f"bias_span must be at least 0, got {bias_span!r}")


def _scale_of(arms: Sequence[Arm]) -> tuple[float, tuple[str, ...]]:
    """Range of rewards that do not lie in [0, 1], else 1; and what is to be said of them."""
    always = any(arm.pays_unpulled for arm in arms)
    rewards = [arm.rewards for arm in arms]
    if always:
        rewards += [arm.passive_rewards for arm in arms]
    low, high = float(np.min(np.concatenate(rewards))), float(np.max(np.concatenate(rewards)))
    scale, remarks = 1.0, []
    if low < 0 or high > 1:
        scale = high - low or 1.0
        remarks.append(
            f"rewards are from {low:g} to {high:g}: for the bounds, which need [0, 1], they are "
            "scaled by this range, and the bounds are scaled back"
        )
    if always:
        remarks.append(
            "arms also pay while they are not pulled, which Theorem 1 does not cover: what a pull "
            "gains then depends on the unknown parameters; take its bound as a formula only"
        )
    return scale, tuple(remarks)


def discounted_spans(
    bandit: RestlessBandit,
    policy: Policy | str,
    discounts: Sequence[float] | FloatArray,
    *,
    starts: Sequence[BeliefState] | None = None,
) -> FloatArray:
    """Span of the discounted values v^beta over all that a policy reaches, by beta (Condition 2).

    v^beta = r + beta P v^beta, as in Appendix A (the sum in Condition 2 starts at beta^1 and is
    beta times that). The condition asks for one bound for all beta < 1. Where J does not depend on
    the start the spans tend to that of the bias; where it does they grow like 1 / (1 - beta).

    Parameters
    ----------
    bandit, policy
        As in `evaluate`.
    discounts
        Values of beta, between 0 and 1.
    starts
        Meta-states to start from; by default the paper's, every arm just seen in its last state.
    """
    betas = numbers_array(discounts, "discounted_spans", "discounts").ravel().tolist()
    if not all(0 < beta < 1 for beta in betas):
        raise ProblemError(f"discounts must be numbers between 0 and 1, got {discounts!r:.60}")
    policy = as_policy(policy, bandit)
    joint = _joint_states(bandit, policy)
    given = [initial_state(bandit)] if starts is None else starts
    if not isinstance(given, list | tuple) or not given:
        raise ProblemError(f"starts must be a list of BeliefState, got {shown(starts)}")
    for start in given:
        require_state(start, bandit)
        joint.number_of(start)
    blocks: list[Outcomes] = []
    explore(joint, chooser(policy, bandit), blocks, MAX_STATES)
    chain, states = joined(blocks), np.arange(joint.count)
    return np.array([np.ptp(_solved(chain, states, beta)[1]) for beta in betas])


class MeasuredBound(NamedTuple):
    """A measured mean with its standard error, and what the theory allows."""

    name: str
    measured: float
    stderr: float  # nan for a single replication
    bound: float
    ratio: float  # measured over bound; nan where the bound is 0


@dataclass(frozen=True, eq=False, repr=False)
class Decomposition:
    """Regret of TSDE and the four parts whose sum it is, by replication (Section 5.1)."""

    regret: FloatArray  # [R] R = J(theta*) T - sum r_*(xi_t, A_t)
    sampling_regret: FloatArray  # [R] R_0 = J(theta*) T - sum J(theta_i) T_i
    switching_regret: FloatArray  # [R] R_1 = sum v_i(xi_t+1) - v_i(xi_t)
    transition_regret: FloatArray  # [R] R_2 = sum E_i[v_i(xi') | pi_i, xi_t] - v_i(xi_t+1)
    reward_regret: FloatArray  # [R] R_3 = sum (r_i - r_*)(xi_t, A_t)
    num_episodes: IntArray  # [R] M_T
    systems: tuple[RestlessBandit, ...]  # the prior's support
    average_rewards: FloatArray  # [systems] J
    bias_spans: FloatArray  # [systems] over all states solved
    bias_span: float  # H, the largest of them
    bellman_residual: float  # largest error in Eq. 9 over all systems and states
    bounds: Bounds

    def __repr__(self) -> str:
        parts = (self.sampling_regret, self.switching_regret, self.transition_regret)
        means = ", ".join(f"{part.mean():.4g}" for part in (*parts, self.reward_regret))
        count = counted(len(self.regret), "replication")
        return f"Decomposition(R = {self.regret.mean():.4g}, R_0 to R_3 = {means}; {count})"

    @property
    def comparisons(self) -> tuple[MeasuredBound, ...]:
        """Measured means beside the bounds of Lemmas 4, 5 and 8 and of Theorem 1."""
        num_episodes, bounds = float(self.num_episodes.mean()), self.bounds
        most = bounds.scale * bounds.num_pulls  # that a step can earn
        rows: list[tuple[str, FloatArray | IntArray, float]] = [
            ("R_0, at most N E M_T", self.sampling_regret, most * num_episodes),
            ("R_1, at most H E M_T", self.switching_regret, self.bias_span * num_episodes),
            ("regret", self.regret, bounds.regret),
            ("episodes M_T", self.num_episodes, bounds.episodes),
            ("episodes M_T, as printed", self.num_episodes, bounds.episodes_as_printed),
        ]
        return tuple(_compared(*row) for row in rows)


def _compared(name: str, values: FloatArray | IntArray, bound: float) -> MeasuredBound:
    mean, count = float(values.mean()), len(values)
    stderr = float(values.std(ddof=1)) / sqrt(count) if count > 1 else nan
    return MeasuredBound(name, mean, stderr, bound, mean / bound if bound else nan)


def decompose_regret(
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int = 200,
    *,
    replications: int = 100,
    seed: int = 0,
) -> Decomposition:
    """Run TSDE and take its regret apart into R_0 + R_1 + R_2 + R_3 (Section 5.1).

    The truth is drawn from the prior each time; the runs are those of `bayesian_regret` with the
    same seed. Each system in the prior's support is solved for J and v on all that its policy
    reaches from what came up in the runs, and with every arm just seen in any state or long ago: a
    matter of two or three arms. Where its J depends on the start that is an `AssumptionError`.

    Parameters
    ----------
    prior, num_pulls, policy_mapping
        As in `TSDE`.
    horizon
        Steps of each replication, T >= 2.
    replications, seed
        How many, and the name of their luck.
    """
    task = make_task(prior, num_pulls, policy_mapping, checked_count(horizon, "horizon", 2))
    support = _support(task)
    systems = tuple(task.bandit_of(kinds) for kinds in support)
    runs = _run(task, support, checked_count(replications, "replications"), seed)
    gains, spans, residuals = (np.empty(len(support)) for _ in range(3))
    before, after, ahead, modelled = (np.empty(runs.sampled.shape) for _ in range(4))
    for j, kinds in enumerate(support):
        policy = task.policy_of(kinds)
        joint = _joint_states(systems[j], policy)
        rows, numbers = np.unique(joint.cells(*runs.metas), axis=0, return_inverse=True)
        joint.add(rows)
        steps = runs.sampled == j
        now, then = (numbers.ravel()[part[steps]] for part in (runs.path[:, :-1], runs.path[:, 1:]))
        taken = joint.outcomes(rows[now], runs.arms[steps], add=True)
        gains[j], bias, residuals[j] = _bellman(joint, policy, task.mapping_name)
        spans[j] = np.ptp(bias)
        before[steps], after[steps] = bias[now], bias[then]
        ahead[steps], modelled[steps] = _expected(taken, bias), taken.reward
    target = gains[runs.truth] * horizon
    regret = target - runs.expected.sum(axis=1)
    parts = (
        target - gains[runs.sampled].sum(axis=1),
        (after - before).sum(axis=1),
        (ahead - after).sum(axis=1),
        (modelled - runs.expected).sum(axis=1),
    )
    bounds = bounds_for(prior, num_pulls, horizon, float(spans.max()))
    if np.abs(regret - sum(parts)).max() > MOST_IDENTITY_ERROR * max(1.0, bounds.scale):
        raise ProblemError(
            f"policy mapping {task.mapping_name!r} does not choose by system and meta-state alone "
            "(or tells settled ages apart), so its choices have no Bellman equation"
        )
    return Decomposition(
        regret,
        *parts,
        num_episodes=runs.num_episodes,
        systems=systems,
        average_rewards=gains,
        bias_spans=spans,
        bias_span=float(spans.max()),
        bellman_residual=float(residuals.max()),
        bounds=bounds,
    )


class _Runs(NamedTuple):
    """What happened in R replications, in which V different meta-states came up."""

    truth: IntArray  # [R] number of the true system in the support
    num_episodes: IntArray  # [R]
    sampled: IntArray  # [R, T] number of the system that was played
    arms: IntArray  # [R, T, N]
    expected: FloatArray  # [R, T] r_*(xi_t, A_t)
    path: IntArray  # [R, T + 1] number of the meta-state
    metas: IntArray  # [2, V, K] last states and elapsed steps


def _run(task: Task, support: IntArray, replications: int, seed: int) -> _Runs:
    """Run TSDE on truths from the prior, and note which system it plays in each step."""
    assert task.horizon is not None
    shape = (replications, task.horizon)
    number = {kinds.tobytes(): j for j, kinds in enumerate(support)}
    truths = drawn_truths(task, replications, seed)
    num_episodes = np.zeros(replications, dtype=np.int64)
    sampled = np.empty(shape, dtype=np.int64)
    arms = np.empty((*shape, task.num_pulls), dtype=np.int64)
    expected = np.empty(shape)
    path = np.zeros((replications, task.horizon + 1), dtype=np.int64)
    metas = {task.start: 0}
    world = world_of(task.choices.tables, task.num_arms)
    for r in range(replications):
        learner_state = _Watched(task, task.horizon)
        trace = make_trace(task.horizon, task.num_pulls)
        record = make_record(
            task.num_pulls, task.start, np.array([task.horizon]), truths[r : r + 1], seed, r
        )
        drive(learner_state, world, record, trace)
        begun, kinds = zip(*learner_state.drawn, strict=True)
        num_episodes[r] = len(begun)
        lengths = np.diff([*begun, task.horizon + 1])
        sampled[r] = np.repeat([number[system.tobytes()] for system in kinds], lengths)
        arms[r] = trace.arms.reshape(task.horizon, -1)
        expected[r] = trace.expected
        state = task.start
        states = trace.states.reshape(task.horizon, -1)
        for t in range(task.horizon):
            state = state.updated(arms[r, t], states[t])
            path[r, t + 1] = metas.setdefault(state, len(metas))
    true = np.array([number[kinds.tobytes()] for kinds in truths])
    seen = np.array([(state.last_state, state.elapsed) for state in metas]).swapaxes(0, 1)
    return _Runs(true, num_episodes, sampled, arms, expected, path, seen)


class _Watched(LearnerState):
    """TSDE that returns to Python with every draw, so that it can be noted."""

    def __init__(self, task: Task, steps: int) -> None:
        super().__init__(task, DynamicEpisodes(), steps)
        self.actor.lookup.mode["tabled"] = 0
        self.drawn: list[tuple[int, IntArray]] = []

    def follow(self, kinds: IntArray) -> None:
        self.drawn.append((self.time, kinds))
        super().follow(kinds)


def _support(task: Task) -> IntArray:
    """Kinds of arms [systems, K] of every system that the prior gives any weight."""
    slots = task.choices.drawable
    if task.choices.has_particles:
        raise ProblemError(
            "under a continuous prior there is no list of systems that could be solved; use a "
            "finite prior"
        )
    choices = product(
        *(np.flatnonzero(task.choices.weights[pool]) for pool in task.choices.pool_of_group)
    )
    possible = np.array(list(islice(choices, MOST_SYSTEMS + 1)))  # [systems, groups]
    if len(possible) > MOST_SYSTEMS:
        raise TooLargeError(
            f"the prior allows more than {MOST_SYSTEMS:,} systems, and each would have to be "
            "solved; use fewer arms or candidates"
        )
    return np.unique(slots.kinds[slots.kind_offsets + possible[:, slots.groups]], axis=0)


def _joint_states(bandit: RestlessBandit, policy: Policy) -> JointStates:
    require_same_shape(bandit, policy)
    kinds = kinds_of(bandit)
    return JointStates(bandit, kinds, told_ages(kinds, policy, None))


def _bellman(joint: JointStates, policy: Policy, name: str) -> tuple[float, FloatArray, float]:
    """J, bias and largest error in Eq. 9 on all that is reached from numbered and other starts."""
    blocks: list[Outcomes] = []
    choose, limit = chooser(policy, joint.bandit), MAX_STATES
    if not explore_other_starts(joint, choose, blocks, limit):
        raise TooLargeError(f"too many arms or joint states (limit {limit:,}): {joint.bandit!r}")
    chain = joined(blocks)
    component, count = closed_components(chain.successor)
    gains = [_solved(chain, np.flatnonzero(component == label))[0] for label in range(count)]
    if max(gains) - min(gains) > EQUAL:
        raise AssumptionError(
            f"J of {name!r} depends on the start, {min(gains):.6g} to {max(gains):.6g}, contrary "
            "to Assumption 2 of the paper, so there is no bias; use another policy mapping. The "
            f"system is {joint.bandit!r}"
        )
    gain, bias = _solved(chain, np.arange(joint.count))
    errors = chain.reward + _expected(chain, bias) - bias - gain
    return gain, bias, float(np.abs(errors).max())


def _solved(chain: Outcomes, members: IntArray, beta: float = 1.0) -> tuple[float, FloatArray]:
    """Solve g + v = r + beta P v on a closed set; for beta < 1 v is v^beta - g / (1 - beta)."""
    values = np.zeros(len(chain.reward))
    scaled = chain._replace(probability=beta * chain.probability)
    limits = (DAMPING, GAP, MOST_SWEEPS)
    gain, gap = gain_and_bias(members, scaled, values, *limits)
    if gap > GAP:
        raise TooLargeError(
            f"{MOST_SWEEPS:,} sweeps did not settle the values at discount {beta!r}: the "
            "joint chain mixes too slowly, or J depends on the start"
        )
    return gain, values


def _expected(outcomes: Outcomes, values: FloatArray) -> FloatArray:
    """Mean value [M] in the next state; unused places have probability 0."""
    return np.asarray((outcomes.probability * values[outcomes.successor]).sum(axis=1))
