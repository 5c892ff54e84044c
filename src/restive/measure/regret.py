"""Regret with honest error bars (Section 1.1 of the paper).

Regret up to t is J t minus what the learner earned, with J the average reward of the same mapping
applied to the truth. Two choices keep the error small without changing what is estimated:

* *expected rewards*: each step counts E[r | xi, A], not the reward that happened to be drawn.
  Arms that pay while they are not pulled count with what is expected of them in any case, since
  what is not seen is not drawn;
* *coupling*: the policy that knows the truth runs in the same world with the same luck.

Against the exact J the estimate is of the paper's regret. Where J cannot be computed exactly, the
coupled policy's own earnings stand in for J t; they differ from it by at most the span of the bias.

Where the world changes there is no J: regret up to t is what the policy of the phase's own arms,
which is told of every change, earned up to t in the same world, minus what the learner earned.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, counted, drawn_seed, one_line, silent
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.files import replacing
from restive.learn.learners import describe, learner_of
from restive.learn.learners.base import Learner
from restive.learn.priors.independent import Prior
from restive.learn.task import Mapping, Task, make_task
from restive.measure.changes import Phases, with_phases
from restive.measure.intervals import student_quantile
from restive.measure.long_runs import tell_if_long
from restive.measure.replication import Replications, replicate, require_room
from restive.pages.figures import plot_band
from restive.pages.frames import data_frame, html_table
from restive.plan.evaluate import exact_value
from restive.plan.policies.registry import policy_mapping
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState
from restive.problem.changing import ChangingBandit, first_phase

__all__ = [
    "COUPLED",
    "EXACT",
    "INFORMED",
    "NO_EXACT",
    "RegretCurve",
    "bayesian_regret",
    "exact_rewards",
    "frequentist_regret",
    "recorded_times",
    "truth_reward",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

Rewards: TypeAlias = Literal["expected", "realised"]
Baseline: TypeAlias = Literal["auto", "exact", "coupled"]
# A registered name, or a function of (task, seed) that returns a learner of the user's own.
LearnerLike: TypeAlias = str | dict[str, Any] | Callable[[Task, int], Any]

COUPLED = "coupled: the policy that knows the truth, in the same world"
INFORMED = "what the policy that is told of every change earned in the same world"
EXACT = "exact: J t"

NO_EXACT = (
    "baseline is 'exact', and where arms change there is no J: leave it out, and regret is against "
    "the policy that is told of the changes"
)
DEFAULT_TIMES = 50
MOST_TIMES = 1_000_000
SHOWN_TIMES = 10  # in a notebook
MAX_STATES_FOR_J = 50_000
MOST_SYSTEMS_FOR_J = 1_000  # whose J is solved exactly when "exact" is asked for

CSV_HEADER = ("time", "regret", "stderr", "lower", "upper", "average_reward", "num_episodes")


@dataclass(frozen=True, eq=False, repr=False)
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
    learner: str
    replications: int
    seed: int
    average_reward_of_truth: float  # mean of J, or of what the coupled policy earned per step
    samples: FloatArray  # [R, M] regret of each replication

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
        with (
            replacing(path) as temporary,
            temporary.open("w", newline="", encoding="utf-8") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(CSV_HEADER)
            for row in zip(*self._columns, strict=True):
                writer.writerow([int(row[0]), *(repr(float(value)) for value in row[1:])])

    def to_pandas(self) -> Any:
        """Return a data frame, a row per time, as `to_csv` writes them (needs pandas)."""
        return data_frame(dict(zip(CSV_HEADER, self._columns, strict=True)))

    @property
    def _columns(self) -> tuple[NDArray[Any], ...]:
        return (
            self.times, self.mean, self.stderr, self.lower, self.upper, self.average_reward,
            self.num_episodes,
        )  # fmt: skip

    def __repr__(self) -> str:
        half = self.upper[-1] - self.mean[-1]
        regret = f"{self.mean[-1]:.4g} ± {half:.2g} (95%) at t = {self.times[-1]:,}"
        runs = f"{counted(self.replications, 'replication')}, seed {self.seed}"
        return one_line(
            f"RegretCurve({self.learner}, {self.policy_mapping}: {regret}, {runs})",
            f"RegretCurve({regret}, {runs})",
        )

    def _repr_html_(self) -> str:
        shown = np.unique(np.linspace(0, len(self.times) - 1, SHOWN_TIMES).round().astype(int))
        columns = [column[shown].tolist() for column in self._columns]
        return html_table(repr(self), CSV_HEADER, zip(*columns, strict=True))

    def plot(self, ax: Any = None, label: str | None = None) -> Any:
        """Draw the curve with its band into a matplotlib axes, a new one by default.

        The legend names it by learner and policy mapping, or as `label` says.
        """
        if label is None:
            label = f"{self.learner}, {self.policy_mapping}"
        return plot_band(self.times, self.mean, self.lower, self.upper, label, ax)


def bayesian_regret(
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int = 2000,
    *,
    learner: LearnerLike = "tsde",
    replications: int = 1000,
    seed: int | None = 0,
    times: int | Sequence[int] | IntArray | None = None,
    rewards: Rewards = "expected",
    baseline: Baseline = "auto",
    doubling: bool = False,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = silent,
) -> RegretCurve:
    """Regret of a learner with the truth drawn from the prior in each replication (Eq. 2).

    Parameters
    ----------
    prior
        What the learner considers possible, and what the truth is drawn from.
    num_pulls
        Arms pulled each step, N.
    policy_mapping
        As in `TSDE`.
    horizon
        Steps of each replication, T.
    learner
        The name of a learner, by default TSDE; a table with its options, as in a study, such as
        {"name": "epsilon_greedy", "epsilon": 0.1}; or a function of (task, seed) that returns one
        of your own: an object with `select()` and `observe(states)`. Yours runs in Python, slower.
    replications, seed
        How many, and the name of their luck. More replications leave the earlier ones as they are.
        With seed = None one is drawn; `curve.seed` shows it.
    times
        Times to record, or how many: by default about 50, evenly in the logarithm, the last of
        them T.
    rewards
        "expected" counts E[r | xi, A], "realised" what was drawn for the pulled arms: noisier, the
        same mean.
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

    Examples
    --------
    >>> import restive as rs
    >>> prior = rs.grid_prior([0.2, 0.8], num_arms=3)
    >>> rs.bayesian_regret(prior, num_pulls=1, horizon=50, replications=20)
    RegretCurve(tsde, whittle: 3.791 ± 1.6 (95%) at t = 50, 20 replications, seed 0)
    """
    task = make_task(
        prior, num_pulls, policy_mapping, None if doubling else horizon, mixing_time=mixing_time,
        start=start, max_elapsed=max_elapsed,
    )  # fmt: skip
    chosen: Baseline = "coupled" if baseline == "auto" else baseline
    return _regret(
        task, learner, recorded_times(times, horizon), replications, seed, rewards, chosen, threads,
        progress,
    )  # fmt: skip


def frequentist_regret(
    bandit: RestlessBandit | ChangingBandit,
    prior: Prior,
    policy_mapping: Mapping = "whittle",
    horizon: int = 10_000,
    *,
    learner: LearnerLike = "tsde",
    replications: int = 1000,
    seed: int | None = 0,
    times: int | Sequence[int] | IntArray | None = None,
    rewards: Rewards = "expected",
    baseline: Baseline = "auto",
    doubling: bool = False,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] = silent,
) -> RegretCurve:
    """Regret of a learner on one true bandit (Eq. 1), which need not be in the prior's support.

    Parameters are those of `bayesian_regret`, but for `bandit`, the truth, which also says how many
    arms are pulled. The "auto" baseline is J t where J, from the start, can be solved exactly, else
    the coupled policy. Where the bandit changes, it is the coupled policy, told of every change.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> rs.frequentist_regret(bandit, rs.beta_prior(like=bandit), horizon=20, replications=4)
    RegretCurve(tsde, whittle: 0.7746 ± 2.8 (95%) at t = 20, 4 replications, seed 0)
    """
    if not isinstance(bandit, RestlessBandit | ChangingBandit):
        raise ProblemError(f"bandit must be a RestlessBandit, got {bandit!r:.60}")
    task = make_task(
        prior, bandit.num_pulls, policy_mapping, None if doubling else horizon,
        mixing_time=mixing_time, start=start, max_elapsed=max_elapsed,
        true_bandit=first_phase(bandit),
    )  # fmt: skip
    phases = None
    if isinstance(bandit, ChangingBandit):
        task, phases = with_phases(task, bandit)
    return _regret(
        task, learner, recorded_times(times, horizon), replications, seed, rewards, baseline,
        threads, progress, phases,
    )  # fmt: skip


def _regret(
    task: Task,
    learner: LearnerLike,
    times: IntArray,
    replications: int,
    seed: int | None,
    rewards: Rewards,
    baseline: Baseline,
    threads: int | None,
    progress: Callable[[int], None],
    phases: Phases | None = None,
) -> RegretCurve:
    """Regret on a task, whose truth is given or drawn from its prior."""
    spec = learner_of(learner)
    seed = drawn_seed(seed)
    _check_choice(rewards, ("expected", "realised"), "rewards")
    _check_choice(baseline, ("auto", "coupled", "exact"), "baseline")
    if phases is not None:
        if baseline == "exact":
            raise ProblemError(NO_EXACT)
        baseline = "coupled"
    fixed = None
    if baseline != "coupled" and len(task.choices.true_kinds):
        fixed = truth_reward(task, required=baseline == "exact")
    coupled = fixed is None and baseline != "exact"
    count = checked_count(replications, "replications")
    require_room(task, count, len(times))
    tell_if_long(
        task, spec, int(times[-1]), count, with_oracle=coupled, phases=phases, threads=threads
    )
    done = replicate(
        task, spec, times, replications, seed, with_oracle=coupled, threads=threads,
        progress=progress, phases=phases,
    )  # fmt: skip
    expected = rewards == "expected"
    earned = done.expected if expected else done.realised
    if coupled:
        known = done.oracle_expected if expected else done.oracle_realised
        against = COUPLED if phases is None else INFORMED
        return _curve(
            task, spec, done, seed, rewards, known - earned, against, _per_step(known, times)
        )
    truth = exact_rewards(done.task, done.true_kinds) if fixed is None else np.full(count, fixed)
    samples = truth[:, None] * times - earned
    return _curve(task, spec, done, seed, rewards, samples, EXACT, float(truth.mean()))


def truth_reward(task: Task, required: bool = False) -> float | None:
    """J of the mapping on the true bandit; None where it cannot be solved and need not be."""
    try:
        return float(exact_rewards(task, task.choices.true_kinds[None])[0])
    except (AssumptionError, TooLargeError):
        if required:
            raise
        return None


def _per_step(known: FloatArray, times: IntArray) -> float:
    return float(known[:, -1].mean() / times[-1])


def _curve(
    task: Task,
    learner: Learner,
    done: Replications,
    seed: int,
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
        policy_mapping=task.mapping_name,
        learner=describe(learner),
        replications=count,
        seed=seed,
        average_reward_of_truth=truth,
        samples=samples,
    )


def exact_rewards(task: Task, true_kinds: IntArray) -> FloatArray:
    """J of the mapping on each system, by kinds of arms [R, K], or an error where it is none."""
    formula = policy_mapping(task.mapping).exact_rewards if isinstance(task.mapping, str) else None
    if formula is not None:
        return formula(task.choices.kinds.arms, true_kinds, task.num_pulls)
    first: dict[bytes, int] = {}  # numpy would take seconds to sort rows of very many arms
    same_as = [first.setdefault(kinds.tobytes(), r) for r, kinds in enumerate(true_kinds)]
    if len(first) > MOST_SYSTEMS_FOR_J:
        raise TooLargeError(
            f"{len(first):,} different systems were drawn, and J of each would have to be solved "
            f"(limit {MOST_SYSTEMS_FOR_J:,}); use baseline = 'coupled'"
        )
    values = {r: _exact_reward(task, true_kinds[r]) for r in first.values()}
    return np.array([values[r] for r in same_as])


def _exact_reward(task: Task, kinds: IntArray) -> float:
    bandit = task.bandit_of(kinds)
    policy = task.policy_of(kinds)
    try:
        value = exact_value(
            bandit, policy, task.start, max_states=MAX_STATES_FOR_J, max_elapsed=task.max_elapsed
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
