"""What a fitted log comes to: whom to pull, what that is worth, and how sure that is.

Worlds are drawn from what the log leaves possible and go on where it ends. In each of them three
ways of choosing arms are played with the same luck: by Whittle's index, always the same arms, and
in turn. A gain is the difference within a world; its interval holds 95% of the worlds, so it has
in it both chance and what is not known of the arms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_seed, counted, one_line, silent
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.logs.calibration import Calibration, calibrate
from restive.logs.fitted import FittedLog, fit_arms
from restive.logs.lists import mean_index_policy
from restive.logs.play import Worlds, play_worlds
from restive.logs.sample import sample_of
from restive.plan.policies.best_fixed import best_fixed
from restive.plan.policies.round_robin import round_robin

__all__ = ["WAYS", "Estimate", "FitDecision", "decide", "share_of"]

FloatArray = NDArray[np.float64]
Progress = Callable[[str, float], None]

WAYS = ("by index", "always the same", "in turn")
TOO_LITTLE_REST = (
    "hardly any arm was left alone and seen again, so this log does not tell what pulls change"
)
WORLDS = 200
FEWEST_WORLDS = 40  # fewer say nothing about 95%
MOST_STEPS, LEAST_STEPS = 100, 10  # that are played
MOST_WORK = 30_000_000  # states of arms in worlds and steps: less than ten seconds


@dataclass(frozen=True)
class Estimate:
    """A mean over worlds and the ends of what 95% of them have."""

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, values: FloatArray) -> Estimate:
        """Summarise what was found in each world."""
        low, high = np.quantile(values, [0.025, 0.975])
        return cls(float(values.mean()), float(low), float(high))

    @property
    def is_clear(self) -> bool:
        """Whether zero is outside."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, repr=False)
class FitDecision:
    """What to do with a log's arms; rewards are per step.

    `gain` is that of the index over taking turns, `share` the same as a share of what taking turns
    earns, None where that is not positive in every world. `pulls_add` is what pulls by index add to
    what arms earn if nobody is pulled, where arms pay while they are not pulled. All are None where
    nothing could be played, and `why_not` says why.
    """

    num_pulls: int
    num_steps: int  # that were played
    num_worlds: int
    earned: dict[str, Estimate]  # by way
    gain: Estimate | None
    share: Estimate | None
    pulls_add: Estimate | None
    can_differ: bool  # whether whom one pulls can make any difference, as the problem is put
    first: tuple[str, ...]  # arms to pull first, the highest index first
    calibration: Calibration | None  # of a fit on the earlier half of the log
    why_not: str = ""
    shows_gain: bool = True  # whether the log shows that pulls do any good, or was not asked

    def __repr__(self) -> str:
        if self.gain is None:
            return one_line(f"FitDecision({self.why_not})", "FitDecision(nothing could be played)")
        worth = f"by index {self.gain.mean:+.3g} ({self.gain.low:.3g} to {self.gain.high:.3g})"
        doubt = "" if self.shows_gain else ", no effect shown"
        return f"FitDecision({counted(self.num_pulls, 'pull')}, {worth}{doubt})"


def decide(
    fitted: FittedLog,
    num_pulls: int,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> FitDecision:
    """Play three ways of choosing arms in worlds that the log leaves possible.

    Parameters
    ----------
    fitted
        From `fit_log`.
    num_pulls
        Pulls in each step.
    seed
        Names all luck.
    progress
        Called with what is being done and the share of it that is done.
    """
    seed = checked_seed(seed)
    bandit = fitted.problem(num_pulls)
    steps, worlds = _how_much(fitted)
    can_differ = num_pulls < bandit.num_arms and _can_differ(fitted)
    nothing = FitDecision(num_pulls, 0, 0, {}, None, None, None, can_differ, (), None)
    if steps < LEAST_STEPS:
        return replace(nothing, why_not=f"{bandit.num_arms:,} arms are too many to play here")
    try:
        index = mean_index_policy(fitted, bandit)
        ways = dict(zip(WAYS, (index, best_fixed(bandit), round_robin(bandit)), strict=True))
    except (AssumptionError, TooLargeError) as error:
        return replace(nothing, why_not=str(error))
    chosen = index.select(fitted.start)
    best_first = chosen[np.argsort(-index.index(fitted.start)[chosen], kind="stable")]
    nothing = replace(nothing, first=tuple(fitted.log.arms[k] for k in best_first.tolist()))
    if not fitted.tells_of_rest:
        return replace(nothing, why_not=TOO_LITTLE_REST)
    totals, drawn = {}, Worlds(fitted, worlds, seed)
    for at, (way, policy) in enumerate(ways.items()):

        def tell(share: float, at: int = at) -> None:
            progress("playing", (at + share) / len(WAYS))

        totals[way] = play_worlds(drawn, policy, fitted.start, steps, tell) / steps
    by_index, in_turn = totals["by index"], totals["in turn"]
    positive = bool((in_turn > 0).all())
    return FitDecision(
        num_pulls=num_pulls,
        num_steps=steps,
        num_worlds=worlds,
        earned={way: Estimate.of(values) for way, values in totals.items()},
        gain=Estimate.of(by_index - in_turn),
        share=share_of(by_index, in_turn) if positive else None,
        pulls_add=_pulls_add(drawn, by_index, steps),
        can_differ=can_differ,
        first=nothing.first,
        calibration=_calibration(fitted),
        shows_gain=fitted.shows_gain,
    )


def _how_much(fitted: FittedLog) -> tuple[int, int]:
    """Return how many steps are played in how many worlds; of many arms, fewer of both."""
    steps = min(max(fitted.log.num_steps // 2, LEAST_STEPS), MOST_STEPS)
    size = fitted.log.num_arms * fitted.log.num_states
    worlds = min(WORLDS, MOST_WORK // (size * steps))
    if worlds >= FEWEST_WORLDS:
        return steps, worlds
    return MOST_WORK // (size * FEWEST_WORLDS), FEWEST_WORLDS


def _can_differ(fitted: FittedLog) -> bool:
    """Whether pulls change how arms move or what they pay."""
    unpulled = fitted.passive_rewards
    return fitted.controlled or unpulled is None or not np.array_equal(fitted.rewards, unpulled)


def share_of(values: FloatArray, others: FloatArray) -> Estimate:
    """Gain as a share: that of the means, and what 95% of the worlds have."""
    low, high = np.quantile(values / others - 1, [0.025, 0.975])
    return Estimate(float(values.mean() / others.mean() - 1), float(low), float(high))


def _pulls_add(worlds: Worlds, by_index: FloatArray, steps: int) -> Estimate | None:
    if worlds.passive_rewards is None:
        return None
    alone = np.zeros(worlds.count)
    for states in worlds.run(steps):  # nobody is pulled
        alone += worlds.passive_rewards[states].sum(axis=1)
    return Estimate.of(by_index - alone / steps)


def _calibration(fitted: FittedLog) -> Calibration | None:
    """Fit the earlier half alone, and compare what it expects of the later one with what came."""
    log, half = fitted.log, fitted.log.num_steps // 2
    try:
        earlier = fit_arms(
            log, None, fitted.rewards, fitted.controlled, half,
            passive_rewards=fitted.passive_rewards, seen=fitted.seen, quick=True,
        )  # fmt: skip
    except ProblemError:  # too little was seen by then
        return None
    return calibrate(earlier, sample_of(log, fitted.controlled, fitted.seen), half)
