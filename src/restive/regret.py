"""Regret of TSDE with honest error bars (Section 1.1 of the paper).

Regret up to t is J t minus what the learner earned, with J the average reward of the same mapping
applied to the truth. Two choices keep the error small without changing what is estimated:

* *expected rewards*: each step counts E[r | xi, A], not the reward that happened to be drawn;
* *coupling*: the policy that knows the truth runs in the same world with the same luck.

Against the exact J the estimate is of the paper's regret. Where J is not to be had exactly, the
coupled policy's own earnings stand in for J t; they differ from it by the span of the bias at most.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.agents.setup import Mapping, Setup, setup_learner
from restive.arguments import checked_count
from restive.belief import BeliefState
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.figures import plot_band
from restive.files import replacing
from restive.intervals import student_quantile
from restive.policies.best_fixed import fixed_reward
from restive.prior import Prior
from restive.problem import RestlessBandit
from restive.replication import Replications, replicate
from restive.worth import exact_value

__all__ = [
    "RegretCurve",
    "bayesian_regret",
    "exact_rewards",
    "frequentist_regret",
    "recorded_times",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Rewards: TypeAlias = Literal["expected", "realised"]
Baseline: TypeAlias = Literal["auto", "exact", "coupled"]

DEFAULT_TIMES = 50
MOST_TIMES = 1_000_000
MAX_STATES_FOR_J = 50_000
MOST_SYSTEMS_FOR_J = 1_000  # whose J is solved exactly when "exact" is asked for

CSV_HEADER = ("time", "regret", "stderr", "lower", "upper", "average_reward", "num_episodes")


@dataclass(frozen=True, eq=False)
class RegretCurve:
    """Regret at some times, over replications."""

    times: IntArray  # [M]
    mean: FloatArray  # [M] regret up to each time
    stderr: FloatArray  # [M] its standard error; nan for a single replication
    average_reward: FloatArray  # [M] what the learner earned per step up to each time
    num_episodes: FloatArray  # [M] episodes begun, on average
    baseline: str  # what regret is measured against
    rewards: str  # "expected" or "realised"
    policy_mapping: str
    replications: int
    average_reward_of_truth: float  # mean of J, or of what the coupled policy earned per step
    samples: FloatArray = field(repr=False)  # [R, M] regret of each replication

    @property
    def lower(self) -> FloatArray:
        """Lower end [M] of the 95% band of the mean (Student's t)."""
        return self.mean - student_quantile(self.replications) * self.stderr

    @property
    def upper(self) -> FloatArray:
        """Upper end [M] of the 95% band of the mean (Student's t)."""
        return self.mean + student_quantile(self.replications) * self.stderr

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write a row per time."""
        columns = (
            self.times, self.mean, self.stderr, self.lower, self.upper, self.average_reward,
            self.num_episodes,
        )  # fmt: skip
        with (
            replacing(path) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(CSV_HEADER)
            for row in zip(*columns, strict=True):
                writer.writerow([int(row[0]), *(repr(float(value)) for value in row[1:])])

    def plot(self, ax: Any = None) -> Any:
        """Draw the curve with its band into a matplotlib axes, a new one by default."""
        return plot_band(self.times, self.mean, self.lower, self.upper, self.policy_mapping, ax)


def bayesian_regret(
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int = 2000,
    replications: int = 1000,
    seed: int = 0,
    *,
    times: int | Sequence[int] | IntArray | None = None,
    rewards: Rewards = "expected",
    baseline: Baseline = "auto",
    doubling: bool = False,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> RegretCurve:
    """Regret of TSDE with the truth drawn from the prior in each replication (Eq. 2).

    Parameters
    ----------
    prior
        What the learner holds possible, and what the truth is drawn from.
    num_pulls
        Arms pulled each step, N.
    policy_mapping
        As in `TSDE`.
    horizon
        Steps of each replication, T.
    replications, seed
        How many, and the name of their luck. More replications leave the earlier ones as they are.
    times
        Times to record, or how many: by default about 50, evenly in the logarithm, the last of
        them T.
    rewards
        "expected" counts E[r | xi, A], "realised" what was drawn: noisier, the same mean.
    baseline
        "coupled" measures against the policy that knows the truth, in the same world; "exact"
        against J t with J solved for each system that was drawn; "auto" is "coupled" here.
    doubling
        Hide the horizon from the learner, which then runs in epochs of 1, 2, 4, ... steps.
    mixing_time, start, max_elapsed
        As in `TSDE`.
    threads
        By default as many as there are processors; the result does not depend on it.
    progress
        Called with the number of replications done since the last call.
    """
    checked_times = recorded_times(times, horizon)
    setup = setup_learner(
        prior, num_pulls, policy_mapping, None if doubling else horizon, mixing_time, start,
        max_elapsed,
    )  # fmt: skip
    kind = "coupled" if baseline == "auto" else baseline
    _check_choice(rewards, ("expected", "realised"), "rewards")
    _check_choice(kind, ("coupled", "exact"), "baseline")
    done = replicate(
        setup, checked_times, replications, seed, with_oracle=kind == "coupled", threads=threads,
        progress=progress,
    )  # fmt: skip
    if kind == "coupled":
        return _coupled_curve(setup, done, rewards)
    return _exact_curve(setup, done, rewards, exact_rewards(setup, done.true_kinds))


def frequentist_regret(
    bandit: RestlessBandit,
    prior: Prior,
    policy_mapping: Mapping = "whittle",
    horizon: int = 10_000,
    replications: int = 1000,
    seed: int = 0,
    *,
    times: int | Sequence[int] | IntArray | None = None,
    rewards: Rewards = "expected",
    baseline: Baseline = "auto",
    doubling: bool = False,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> RegretCurve:
    """Regret of TSDE on one true bandit (Eq. 1), which need not be in the prior's support.

    Parameters are those of `bayesian_regret`, but for `bandit`, the truth, which also says how many
    arms are pulled. The "auto" baseline is J t where J, from the start, can be solved exactly, else
    the coupled policy.
    """
    checked_times = recorded_times(times, horizon)
    if not isinstance(bandit, RestlessBandit):
        raise ProblemError(f"bandit must be a RestlessBandit, got {bandit!r:.60}")
    setup = setup_learner(
        prior, bandit.num_pulls, policy_mapping, None if doubling else horizon, mixing_time, start,
        max_elapsed, bandit,
    )  # fmt: skip
    _check_choice(rewards, ("expected", "realised"), "rewards")
    _check_choice(baseline, ("auto", "coupled", "exact"), "baseline")
    exact = None
    if baseline != "coupled":
        try:
            exact = exact_rewards(setup, setup.tables.true_kinds[None])
        except (AssumptionError, TooLargeError):
            if baseline == "exact":
                raise
    done = replicate(
        setup, checked_times, replications, seed, with_oracle=exact is None, threads=threads,
        progress=progress,
    )  # fmt: skip
    if exact is None:
        return _coupled_curve(setup, done, rewards)
    return _exact_curve(setup, done, rewards, np.full(len(done.expected), exact[0]))


def _coupled_curve(setup: Setup, done: Replications, rewards: Rewards) -> RegretCurve:
    earned = done.expected if rewards == "expected" else done.realised
    known = done.oracle_expected if rewards == "expected" else done.oracle_realised
    per_step = float(known[:, -1].mean() / done.times[-1])
    name = "coupled: the policy that knows the truth, in the same world"
    return _curve(setup, done, rewards, known - earned, name, per_step)


def _exact_curve(
    setup: Setup, done: Replications, rewards: Rewards, truth: FloatArray
) -> RegretCurve:
    earned = done.expected if rewards == "expected" else done.realised
    samples = truth[:, None] * done.times - earned
    return _curve(setup, done, rewards, samples, "exact: J t", float(truth.mean()))


def _curve(
    setup: Setup,
    done: Replications,
    rewards: Rewards,
    samples: FloatArray,
    baseline: str,
    truth: float,
) -> RegretCurve:
    count = len(samples)
    earned = done.expected if rewards == "expected" else done.realised
    spread = samples.std(axis=0, ddof=1) if count > 1 else np.full(samples.shape[1], np.nan)
    return RegretCurve(
        times=done.times,
        mean=samples.mean(axis=0),
        stderr=spread / np.sqrt(count),
        average_reward=earned.mean(axis=0) / done.times,
        num_episodes=done.episodes.mean(axis=0),
        baseline=baseline,
        rewards=rewards,
        policy_mapping=setup.mapping_name,
        replications=count,
        average_reward_of_truth=truth,
        samples=samples,
    )


def exact_rewards(setup: Setup, true_kinds: IntArray) -> FloatArray:
    """J of the mapping on each system, by kinds of arms [R, K], or an error where it is none."""
    if isinstance(setup.mapping, str) and setup.mapping_name == "best_fixed":
        rewards = np.array([fixed_reward(arm) for arm in setup.tables.kinds.arms])
        best: FloatArray = np.sort(rewards[true_kinds], axis=1)[:, -setup.num_pulls :]
        return np.asarray(best.sum(axis=1))
    systems, places = np.unique(true_kinds, axis=0, return_inverse=True)
    if len(systems) > MOST_SYSTEMS_FOR_J:
        raise TooLargeError(
            f"{len(systems):,} different systems were drawn, and J of each would have to be solved "
            f"(limit {MOST_SYSTEMS_FOR_J:,}); use baseline = 'coupled'"
        )
    values = np.array([_exact_reward(setup, kinds) for kinds in systems])
    return values[places.ravel()]


def _exact_reward(setup: Setup, kinds: IntArray) -> float:
    bandit = setup.bandit_of(kinds)
    policy = setup.policy_of(kinds)
    try:
        value = exact_value(
            bandit, policy, setup.start, max_states=MAX_STATES_FOR_J, max_elapsed=setup.max_elapsed
        )
    except TooLargeError as error:
        why = str(error).removesuffix("; raise max_states")  # which is no option here
        raise TooLargeError(
            f"J cannot be solved exactly: {why}; use baseline = 'coupled'"
        ) from None
    return value.average_reward


def recorded_times(times: int | Sequence[int] | IntArray | None, horizon: int) -> IntArray:
    """Times to record: as given, or this many (about 50), evenly in the logarithm up to T."""
    horizon = checked_count(horizon, "horizon")
    if times is None:
        times = DEFAULT_TIMES
    if isinstance(times, int):
        spaced = np.geomspace(1, horizon, checked_count(times, "times", 2, MOST_TIMES)).round()
        return np.unique(spaced).astype(np.int64)
    checked = np.asarray(times)
    if checked.ndim != 1 or not checked.size or not np.issubdtype(checked.dtype, np.integer):
        raise ProblemError(f"times must be a list of whole numbers, got {times!r:.60}")
    if checked[0] < 1 or checked[-1] != horizon or (np.diff(checked) <= 0).any():
        raise ProblemError(
            f"times must rise from at least 1 to the horizon, {horizon}; got {times!r:.60}"
        )
    return checked.astype(np.int64)


def _check_choice(value: str, known: tuple[str, ...], what: str) -> None:
    if value not in known:
        raise ProblemError(f"{what} must be one of {', '.join(known)}, got {value!r}")
