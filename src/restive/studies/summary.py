"""Summaries of a results folder: curves with error bands, read chunk by chunk.

Rows are added in order of replications, one by one, so a summary depends only on the replications
that are there: not on chunks, workers or restarts. Memory grows with the recorded times and with
one or two numbers per replication.

`_curve_table` has summaries as columns, for files and for data frames alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_path, counted, one_line
from restive.errors import RestiveError
from restive.kernels.elementary import logarithms
from restive.kernels.moments import add_rows
from restive.measure.intervals import student_quantile
from restive.measure.regret import COUPLED, EXACT, INFORMED, recorded_times
from restive.pages.figures import new_axes, plot_band
from restive.pages.frames import data_frame, html_table
from restive.plan.relaxation import relaxation_bound
from restive.problem.bandit import RestlessBandit
from restive.studies.exact_rewards import drawn_rewards, fixed_truth_reward
from restive.studies.ledger import Ledger
from restive.studies.settings import CaseSettings
from restive.studies.spec import OWN_LABELS, Case
from restive.studies.work import Arrays, prepared

__all__ = [
    "CaseSummary",
    "Columns",
    "Curve",
    "Results",
    "Slope",
    "curve_columns",
    "headed",
    "label_columns",
    "load_results",
    "summarise",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Columns = dict[str, NDArray[Any]]  # equally long

GROUPS = 50  # of replications, for the jackknife
KEPT_BOUNDS = 256  # systems whose bound is remembered
LEAST_TIMES = 5  # through which a slope is laid


@dataclass(frozen=True, eq=False, repr=False)
class Curve:
    """Means over replications with their standard errors; nan for a single one."""

    mean: FloatArray
    stderr: FloatArray
    replications: int

    def __repr__(self) -> str:
        times, count = counted(len(self.mean), "time"), counted(self.replications, "replication")
        return f"Curve({times}, {count})"

    @property
    def lower(self) -> FloatArray:
        """Lower end of the 95% band (Student's t)."""
        return self.mean - student_quantile(self.replications) * self.stderr

    @property
    def upper(self) -> FloatArray:
        """Upper end of the 95% band (Student's t)."""
        return self.mean + student_quantile(self.replications) * self.stderr


@dataclass(frozen=True)
class Slope:
    """Growth of regret: the exponent a in t^a, by least squares on logarithms."""

    value: float
    lower: float  # 95% interval, by the jackknife over groups of replications
    upper: float
    first: int  # times through which the line is laid
    last: int


@dataclass(frozen=True, eq=False, repr=False)
class CaseSummary:
    """What a case has shown so far."""

    case: Case
    times: IntArray  # [M]
    replications: int
    regret: Curve  # [M] against `baseline`, with expected rewards
    realised_regret: Curve  # [M] with the rewards that were drawn
    average_reward: Curve  # [M] of the learner, per step up to each time, expected
    oracle_reward: Curve  # [M] of the policy that knows the truth, likewise
    num_episodes: Curve  # [M]
    truth_weights: Curve | None  # [M, K] posterior weight of each arm's truth, where recorded
    baseline: str
    truth_method: str  # how `truth_rewards` were found
    slope: Slope | None  # None where regret is not positive or there are too few replications
    truth_rewards: FloatArray  # [R] J of the mapping on each true system
    final_regrets: FloatArray  # [R]

    @property
    def truth_reward(self) -> tuple[float, float]:
        """Mean of J over the true systems and its standard error, 0 where there is but one."""
        rewards = self.truth_rewards
        if self.case.settings.kind == "frequentist" and self.truth_method == "exact":
            return float(rewards[0]), 0.0
        spread = float(rewards.std(ddof=1)) if len(rewards) > 1 else float("nan")
        return float(rewards.mean()), spread / sqrt(len(rewards))

    @property
    def relaxation_bound(self) -> float | None:
        """Reward per step that no policy exceeds in the long run, on a truth that is fixed.

        None where the truth is drawn, its arms change or the relaxation cannot be solved.
        """
        # solved when asked for: who does not show it need not wait for it
        return _bound(self.case.settings.model_copy(update={"learners": ["tsde"]}).to_json())

    @property
    def bound_regret(self) -> Curve | None:
        """Regret [M] against the relaxation bound, with expected rewards; None without a bound."""
        return self._short_of_bound(self.average_reward)

    @property
    def oracle_bound_regret(self) -> Curve | None:
        """Likewise of the policy that knows the truth: the part that is not the learning's."""
        return self._short_of_bound(self.oracle_reward)

    def __repr__(self) -> str:
        half = self.regret.upper[-1] - self.regret.mean[-1]
        regret = f"regret {self.regret.mean[-1]:.4g} ± {half:.2g} at t = {self.times[-1]:,}"
        found = f"{regret}, {counted(self.replications, 'replication')}"
        return one_line(f"CaseSummary({self.case.title}: {found})", f"CaseSummary({found})")

    def to_pandas(self) -> Any:
        """Return the case's curves as a data frame, a row per time (needs pandas)."""
        return data_frame(_curve_table([self]))

    def plot(self, ax: Any = None) -> Any:
        """Draw regret with its band into a matplotlib axes, a new one by default."""
        regret = self.regret
        return plot_band(self.times, regret.mean, regret.lower, regret.upper, self.case.title, ax)

    def _short_of_bound(self, reward: Curve) -> Curve | None:
        bound = self.relaxation_bound
        if bound is None:
            return None
        short = (bound - reward.mean) * self.times
        return Curve(short, reward.stderr * self.times, reward.replications)


class Results(list[CaseSummary]):
    """The cases of a results folder, in the order of the study."""

    def __repr__(self) -> str:
        return f"Results({counted(len(self), 'case')})"

    def __str__(self) -> str:
        return "\n".join(map(repr, self)) or "Results of no case"

    def to_pandas(self) -> Any:
        """Return all curves as one data frame, as `restive export` writes them (needs pandas)."""
        return data_frame(_curve_table(self) if self else {})

    def plot(self, ax: Any = None) -> Any:
        """Draw the regret of all cases into one matplotlib axes, a new one by default."""
        for found in self:
            ax = found.plot(ax)
        return new_axes(6, 4) if ax is None else ax  # of no case

    def _repr_html_(self) -> str:
        return html_table(
            "regret at the last time, 95% intervals",
            ("case", "replications", "time", "regret", "lower", "upper"),
            [
                (
                    found.case.title,
                    found.replications,
                    int(found.times[-1]),
                    float(found.regret.mean[-1]),
                    float(found.regret.lower[-1]),
                    float(found.regret.upper[-1]),
                )
                for found in self
            ],
        )


def load_results(folder: str | PathLike[str]) -> Results:
    """Summarise the cases of a results folder that have replications without a gap."""
    ledger = Ledger.open(checked_path(folder, "folder"))
    return Results(
        summarise(ledger, case) for case in ledger.study.cases if ledger.replications_done(case)
    )


def summarise(ledger: Ledger, case: Case) -> CaseSummary:
    """Read the chunks of a case."""
    settings, task, _ = prepared(case.settings.to_json())
    times = recorded_times(settings.times, settings.horizon)
    exact = fixed_truth_reward(case) if settings.baseline != "coupled" else None
    names = ("regret", "realised", "reward", "oracle", "episodes")
    sums = {name: _Sums(len(times)) for name in names}
    weights = _Sums(len(times) * task.num_arms * settings.posterior)
    truth_rewards, final_regrets = [], []
    for first, arrays in ledger.chunks(case):
        truth, method = _truth_rewards(case, arrays, times, exact)
        if exact is not None or settings.baseline == "exact":
            goal = realised_goal = truth[:, None] * times
            baseline = EXACT
        else:
            goal, realised_goal = arrays["oracle_expected"], arrays["oracle_realised"]
            baseline = INFORMED if case.changes else COUPLED
        regret = goal - arrays["expected"]
        sums["regret"].add(regret, first)
        sums["realised"].add(realised_goal - arrays["realised"], first)
        sums["reward"].add(arrays["expected"] / times, first)
        sums["oracle"].add(arrays["oracle_expected"] / times, first)
        sums["episodes"].add(arrays["episodes"].astype(np.float64), first)
        if len(arrays["truth_weights"]):
            weights.add(arrays["truth_weights"].reshape(len(regret), -1), first)
        truth_rewards.append(truth)
        final_regrets.append(regret[:, -1].copy())
    if not truth_rewards:
        raise RestiveError(f"{ledger.folder}: {case.title}: there are no replications yet")
    return CaseSummary(
        case=case,
        times=times,
        replications=sums["regret"].count,
        regret=sums["regret"].curve(),
        realised_regret=sums["realised"].curve(),
        average_reward=sums["reward"].curve(),
        oracle_reward=sums["oracle"].curve(),
        num_episodes=sums["episodes"].curve(),
        truth_weights=weights.curve(task.num_arms) if weights.count else None,
        baseline=baseline,
        truth_method=method,
        slope=_slope(times, sums["regret"]),
        truth_rewards=np.concatenate(truth_rewards),
        final_regrets=np.concatenate(final_regrets),
    )


class _Sums:
    """Running moments of rows of numbers."""

    def __init__(self, width: int) -> None:
        self.count = 0
        self.mean = np.zeros(width)
        self.squares = np.zeros(width)
        self.groups = np.zeros((GROUPS, width))

    def add(self, rows: FloatArray, first: int) -> None:
        add_rows(np.ascontiguousarray(rows), first, self.mean, self.squares, self.groups)
        self.count = first + len(rows)

    def curve(self, columns: int | None = None) -> Curve:
        """Return the curve, [M] or [M, columns]."""
        if self.count > 1:
            stderr = np.sqrt(self.squares / (self.count - 1) / self.count)
        else:
            stderr = np.full_like(self.mean, np.nan)
        shape = (-1,) if columns is None else (-1, columns)
        return Curve(self.mean.reshape(shape), stderr.reshape(shape), self.count)


@lru_cache(maxsize=KEPT_BOUNDS)  # the same for all learners
def _bound(settings: str) -> float | None:
    checked = CaseSettings.model_validate_json(settings)
    bandit = checked.systems()[0]
    if not isinstance(bandit, RestlessBandit):  # drawn, or its arms change
        return None
    try:
        return relaxation_bound(bandit, max_elapsed=checked.max_elapsed)
    except RestiveError:  # an arm that is against the assumptions, or too large
        return None


def _truth_rewards(
    case: Case,
    arrays: Arrays,
    times: IntArray,
    exact: float | None,
) -> tuple[FloatArray, str]:
    """J of the mapping on each replication's truth, and how it was found."""
    count = len(arrays["expected"])
    if exact is not None:
        return np.full(count, exact), "exact"
    # none that a continuous prior drew, or that changes
    known = bool((arrays["true_kinds"] >= 0).all()) and not case.changes
    if case.settings.baseline == "exact" or (case.mapping == "best_fixed" and known):
        return drawn_rewards(case, arrays["true_kinds"]), "exact, system by system"
    earned = arrays["oracle_expected"]
    if case.changes:  # its phases earn differently
        whole = "what the policy that knows the truth and its changes earned per step"
        return earned[:, -1] / times[-1], whole
    half = int(np.searchsorted(times, times[-1] / 2, side="right")) - 1
    if half < 0:  # no time in the first half is recorded
        return earned[:, -1] / times[-1], "what the policy that knows the truth earned per step"
    late = (earned[:, -1] - earned[:, half]) / (times[-1] - times[half])
    return late, f"what the policy that knows the truth earned per step after t = {times[half]}"


def _slope(times: IntArray, regret: _Sums) -> Slope | None:
    """Fit the last decade of time; the interval comes from leaving out one group at a time."""
    late = times >= times[-1] / 10
    if regret.count < GROUPS or late.sum() < LEAST_TIMES:
        return None
    totals = regret.groups[:, late]
    sizes = np.array([len(range(g, regret.count, GROUPS)) for g in range(GROUPS)])
    left_out = (totals.sum(axis=0) - totals) / (regret.count - sizes)[:, None]
    if (left_out <= 0).any() or (regret.mean[late] <= 0).any():
        return None
    value = _fitted(times[late], regret.mean[late])
    others = np.array([_fitted(times[late], curve) for curve in left_out])
    spread = np.sqrt((GROUPS - 1) / GROUPS * ((others - others.mean()) ** 2).sum())
    half_width = student_quantile(GROUPS) * float(spread)
    return Slope(
        value,
        value - half_width,
        value + half_width,
        int(times[late][0]),
        int(times[-1]),
    )


def _fitted(times: IntArray, values: FloatArray) -> float:
    logs = logarithms(times)
    x = logs - logs.mean()
    return float((x * logarithms(values)).sum() / (x * x).sum())


def _curve_table(found: Sequence[CaseSummary]) -> Columns:
    """Return the curves of some cases, one below the other."""
    labels = label_columns([summary.case for summary in found])
    parts = [headed(summary.case, labels, curve_columns(summary)) for summary in found]
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def headed(case: Case, labels: dict[str, dict[int, Any]], block: Columns) -> Columns:
    """Return columns of a case with those before them that say which case it is."""
    count = len(next(iter(block.values())))
    head = {"case": case.number, "learner": case.learner, "mapping": case.mapping}
    head |= {key: values[case.number] for key, values in labels.items()}
    return {key: np.full(count, value) for key, value in head.items()} | block


def label_columns(cases: Sequence[Case]) -> dict[str, dict[int, Any]]:
    """Swept values by case: numbers where all of a key's are, so that they are no text."""
    columns: dict[str, dict[int, Any]] = {}
    for key in cases[0].labels:
        if key not in OWN_LABELS:
            numbers = all(not isinstance(case.labels[key], str) for case in cases)
            columns[key] = {
                case.number: case.labels[key] if numbers else case.shown[key] for case in cases
            }
    return columns


def curve_columns(found: CaseSummary) -> Columns:
    """Return what a case has shown, a row per recorded time."""
    count = len(found.times)
    columns: Columns = {"time": found.times, "replications": np.full(count, found.replications)}
    for name, curve in (
        ("regret", found.regret),
        ("realised_regret", found.realised_regret),
        ("average_reward", found.average_reward),
        ("oracle_reward", found.oracle_reward),
        ("num_episodes", found.num_episodes),
    ):
        columns |= {name: curve.mean, f"{name}_stderr": curve.stderr}
    mean, stderr = found.truth_reward
    columns["truth_reward"] = np.full(count, mean)
    columns["truth_reward_stderr"] = np.full(count, stderr)
    bound, against_bound = found.relaxation_bound, found.bound_regret
    missing = np.full(count, np.nan)  # the columns are the same everywhere
    columns["relaxation_bound"] = missing if bound is None else np.full(count, bound)
    columns["bound_regret"] = missing if against_bound is None else against_bound.mean
    columns["bound_regret_stderr"] = missing if against_bound is None else against_bound.stderr
    return columns
