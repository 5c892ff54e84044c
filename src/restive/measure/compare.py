"""Learners compared in one call: regret with bands, and who beats whom.

All learners meet the same worlds: replication r has the same truth and the same luck for each. So
they are compared replication by replication, which removes what the worlds have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, TypeAlias

import numpy as np

from restive.arguments import counted, drawn_seed, one_line, shown, silent
from restive.errors import ProblemError
from restive.learn.learners import describe, learner_of
from restive.learn.learners.base import ignores_unpulled
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.learn.priors.independent import (
    IndependentPrior,
    Prior,
    grid_prior,
    uniform_prior,
)
from restive.learn.task import Mapping
from restive.measure.intervals import paired_interval
from restive.measure.regret import EXACT, LearnerLike, RegretCurve, frequentist_regret
from restive.pages.figures import plot_band
from restive.pages.frames import data_frame, html_table
from restive.plan.sanity_checks import blind_learners_hint, fixed_arms_hint
from restive.problem.bandit import RestlessBandit, always_seen, kinds_of, require_bandit
from restive.problem.changing import ChangingBandit, first_phase

__all__ = [
    "LEVELS",
    "ComparedLearners",
    "Difference",
    "compare",
    "default_prior",
    "has_grid",
    "known_prior",
]


World: TypeAlias = RestlessBandit | ChangingBandit
Problem: TypeAlias = World | tuple[World, Prior]

COLUMNS = ("learner", "regret", "lower", "upper", "average_reward")
LEVELS = tuple(i / 10 for i in range(1, 10))  # of the prior of two-state arms


@dataclass(frozen=True)
class Difference:
    """Regret at T of the second learner minus that of the first."""

    first: str
    second: str
    mean: float
    half_width: float  # of the interval that is right for all pairs of the problem at once, 95%

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes zero."""
        return abs(self.mean) > self.half_width


@dataclass(frozen=True, eq=False, repr=False)
class ComparedLearners:
    """Learners on one problem, from the smallest regret at T on."""

    bandit: World
    curves: tuple[RegretCurve, ...]  # `learner` says whose
    differences: tuple[Difference, ...]  # of each pair, the better one first
    remarks: tuple[str, ...] = ()  # where the problem may not be the one that was meant

    def __str__(self) -> str:
        width = max(len(name) for name in ("learner", *(curve.learner for curve in self.curves)))
        lines = [f"{'learner':{width}}  regret at T, ± half of the 95% interval"]
        for curve in self.curves:
            half = curve.upper[-1] - curve.mean[-1]
            lines.append(f"{curve.learner:{width}}  {curve.mean[-1]:.4g} ± {half:.2g}")
        return "\n".join([*lines, *self.remarks])

    def __repr__(self) -> str:
        first = self.curves[0]
        count, regret = counted(len(self.curves), "learner"), f"{first.mean[-1]:.4g}"
        return one_line(
            f"ComparedLearners({count}, the best {first.learner}: regret {regret})",
            f"ComparedLearners({count}, the best regret {regret})",
        )

    def to_pandas(self) -> Any:
        """Return a data frame, a row per learner from the best on (needs pandas)."""
        rows = zip(*self._rows(), strict=True)
        return data_frame(dict(zip(COLUMNS, rows, strict=True)))

    def _repr_html_(self) -> str:
        first = self.curves[0]
        title = f"regret at T = {first.times[-1]:,}, 95% intervals, seed {first.seed}"
        return html_table(title, COLUMNS, self._rows())

    def plot(self, ax: Any = None) -> Any:
        """Draw the curves of all learners into one matplotlib axes, a new one by default."""
        for curve in self.curves:
            band = curve.times, curve.mean, curve.lower, curve.upper
            ax = plot_band(*band, curve.learner, ax)
        return ax

    def _rows(self) -> list[tuple[Any, ...]]:
        return [
            (
                curve.learner,
                float(curve.mean[-1]),
                float(curve.lower[-1]),
                float(curve.upper[-1]),
                float(curve.average_reward[-1]),
            )
            for curve in self.curves
        ]


def compare(
    problems: Problem | Iterable[Problem],
    learners: Sequence[LearnerLike],
    policy_mapping: Mapping = "whittle",
    horizon: int = 2000,
    *,
    replications: int = 200,
    seed: int | None = 0,
    threads: int | None = None,
    progress: Callable[[int], None] = silent,
    **options: Any,
) -> list[ComparedLearners]:
    """Run learners on problems, in the same worlds.

    Parameters
    ----------
    problems
        Bandits, which may change (`ChangingBandit`), or pairs of one and the prior of learners that
        have one. By default that is a
        9 x 9 grid for each arm. Where any arm has more than two states, pays while not pulled or
        moves differently when pulled, and where all are always seen, every row of the matrices of
        every arm may be anything (Dirichlet laws with ones), pulled and not.
    learners
        Names, or functions of (task, seed) that return a learner of your own: an object with
        `select()` and `observe(states)`. Yours run in Python, slower.
    policy_mapping
        What learners with a posterior play, and what regret is measured against.
    horizon
        Steps of each replication, T.
    replications, seed
        How many, and the name of their luck; with None a seed is drawn, which the curves show.
    threads, progress, options
        As in `frequentist_regret`.
    """
    if isinstance(problems, World) or _is_pair(problems):
        problems = [problems]  # type: ignore[list-item]
    if isinstance(problems, str) or not isinstance(problems, Iterable):
        require_bandit(problems, "a problem")
    if not isinstance(learners, Sequence) or isinstance(learners, str):
        raise ProblemError(f"learners must be a list of names, as ['tsde'], got {shown(learners)}")
    names = [describe(learner_of(given)) for given in learners]
    if not names or len(set(names)) < len(names):
        raise ProblemError(f"give at least one learner, each only once, got {names}")
    seed = drawn_seed(seed)
    found = []
    for problem in problems:
        bandit, prior = _checked(problem)
        curves = [
            frequentist_regret(
                bandit, prior, policy_mapping, horizon, learner=given, replications=replications,
                seed=seed, threads=threads, progress=progress, **options,
            )
            for given in learners
        ]  # fmt: skip
        remarks = _remarks(bandit, learners, curves[0])
        found.append(_ordered(bandit, curves, remarks))
    return found


def _is_pair(problem: Any) -> bool:
    return (
        isinstance(problem, tuple)
        and len(problem) == 2
        and isinstance(problem[1], IndependentPrior | JointPrior)
    )


def _checked(problem: Any) -> tuple[World, Prior]:
    bandit, prior = problem if _is_pair(problem) else (problem, None)
    if isinstance(bandit, str):
        require_bandit(bandit, "a problem")
    if not isinstance(bandit, World):
        raise ProblemError(
            f"a problem is a RestlessBandit, or a pair of one and a prior, got {problem!r:.60}"
        )
    if prior is not None:
        return bandit, prior
    return bandit, default_prior(first_phase(bandit))


def default_prior(bandit: RestlessBandit) -> Prior:
    """Return a 9 x 9 grid for each arm, or, where that is no prior of them, any law of each row."""
    if always_seen(bandit).all() or not has_grid(bandit):
        return uniform_prior(bandit)
    return grid_prior(LEVELS, like=bandit)


def has_grid(bandit: RestlessBandit) -> bool:
    """Whether all arms are channels, which have a grid for a prior.

    Arms of a grid move alike, pulled or not: of those that pay always none would be worth a pull.
    """
    return all(
        arm.num_states == 2 and arm.is_uncontrolled and not arm.pays_unpulled
        for arm in kinds_of(bandit).arms
    )


def known_prior(prior: Prior) -> str:
    """Return what a prior of `default_prior` holds possible, in words; of another prior, ""."""
    if not isinstance(prior, IndependentPrior):
        return ""
    words = {_known_arm_prior(arm) for arm in {id(arm): arm for arm in prior.arms}.values()}
    return "" if "" in words else ", or ".join(sorted(words))


def _known_arm_prior(prior: ArmPrior | DirichletArmPrior) -> str:
    if isinstance(prior, DirichletArmPrior):
        given = [prior.active, 0 if prior.passive is None else prior.passive]
        ones = all(np.all(table == 1) for table in given)
        return "any chances in every row, pulled and not (Dirichlet laws with ones)" if ones else ""
    chances = [(arm.active[0, 1], arm.active[1, 1]) for arm in prior.candidates]
    grid = [(p01, p11) for p01 in LEVELS for p11 in LEVELS]
    if len(chances) != len(grid) or not np.allclose(chances, grid) or np.ptp(prior.weights) > 0:
        return ""
    return f"a {len(LEVELS)} x {len(LEVELS)} grid of (p01, p11), each {LEVELS[0]} to {LEVELS[-1]}"


def _remarks(bandit: World, learners: Sequence[LearnerLike], curve: RegretCurve) -> tuple[str, ...]:
    specs = [learner_of(given) for given in learners]
    blind = [spec.title for spec in specs if ignores_unpulled(spec)]
    remarks = [blind_learners_hint(bandit.arms, blind)]
    if curve.baseline == EXACT and isinstance(bandit, RestlessBandit):
        known = {curve.policy_mapping: (curve.average_reward_of_truth, 0.0)}
        remarks.append(fixed_arms_hint(bandit, known))
    return tuple(filter(None, remarks))


def _ordered(
    bandit: World, curves: list[RegretCurve], remarks: tuple[str, ...]
) -> ComparedLearners:
    ordered = sorted(curves, key=lambda curve: float(curve.mean[-1]))
    count = max(1, comb(len(ordered), 2))
    differences = tuple(
        Difference(
            first.learner,
            second.learner,
            *paired_interval(first.samples[:, -1], second.samples[:, -1], count),
        )
        for first, second in combinations(ordered, 2)
    )
    return ComparedLearners(bandit, tuple(ordered), differences, remarks)
