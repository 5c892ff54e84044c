"""The arms of a log, fitted: what each is like, and where it was last seen.

`fit_arms` puts priors and counts together into a `FittedLog`, whose `ArmTable` has a row per arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import counted, silent
from restive.errors import ProblemError
from restive.learn.evidence import Evidence
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.logs.arm_table import ArmTable
from restive.logs.counts import LogCounts, count_log
from restive.logs.finite import INTERVAL, SharedCandidates
from restive.logs.kind_priors import AnyArmPrior, given_priors, passive_rewards_of
from restive.logs.kind_words import KindShape
from restive.logs.log import Log
from restive.logs.population import Population, fit_population
from restive.problem.arm import Arm, numbers_array
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState

if TYPE_CHECKING:
    from restive.logs.checks import Check
    from restive.logs.decision import FitDecision
    from restive.logs.forgetting import ForgettingAdvice
    from restive.logs.held_out import HeldOut

__all__ = ["FittedLog", "fit_arms", "log_rewards"]


# arms that were left alone and seen again, and how often that was, where claims are made
FEWEST_RESTED, LEAST_RESTED, LEAST_MOVES = 5, 0.2, 30

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class FittedLog:
    """What a log says about its arms.

    `arms` is a table with posterior means and 90% intervals; `kind_priors` is what arms of
    each kind may be; `checks` say whether chains describe the log at all, and
    `held_out` how well its later part was predicted from the earlier one. `forgetting` says whether
    the arms change, and for how long what was seen of them helps to predict.
    """

    log: Log
    counts: LogCounts
    kind_priors: tuple[AnyArmPrior, ...]  # by kind
    rewards: FloatArray  # [S]
    passive_rewards: FloatArray | None  # [S] of arms that are not pulled; None if they pay nothing
    controlled: bool
    start: BeliefState  # when and in which state each arm was last seen, for an agent
    notes: tuple[str, ...]
    _progress: Progress = field(default=silent, repr=False)
    _posteriors: tuple[Any, ...] = field(default=(), repr=False)  # of priors that are not finite
    kind_shapes: dict[str, KindShape] = field(default_factory=dict)  # of laws of any shape
    checks: tuple[Check, ...] = ()
    held_out: HeldOut | None = None
    forgetting: ForgettingAdvice | None = None
    recent: LogCounts | None = None  # what a memory still holds at the end, where arms change
    seen: str = "pulled"  # when arms are seen, as in `Arm`
    population: Population | None = None  # None where all kinds have a prior that was given

    @property
    def shows_gain(self) -> bool:
        """Whether the log shows that pulls do any good, or was not asked.

        For some kind what a pull adds (`KindShape.gain`) is above zero, by its interval, as it is
        for 5% of logs at most if pulls change nothing, however many kinds there are.
        """
        return not self._gains or any(low > 0 for low, _ in self._gains)

    @property
    def shows_harm(self) -> bool:
        """Whether the log shows, as surely, that pulls do harm to some kind, and good to none."""
        return not self.shows_gain and any(high < 0 for _, high in self._gains)

    @property
    def _gains(self) -> list[tuple[float, float]]:
        """Ends of what a pull adds, by kind: wider intervals where there are several kinds."""
        gains = [shape.gain for shape in self.kind_shapes.values() if shape.gain is not None]
        wider = NormalDist().inv_cdf(1 - 0.05 / max(len(gains), 1)) / NormalDist().inv_cdf(0.95)
        return [
            (mean - wider * (mean - low), mean + wider * (high - mean)) for mean, low, high in gains
        ]

    @property
    def is_guessed(self) -> bool:
        """Whether all counts, pulled or not, and the log does not show that pulls do any good.

        What choosing arms is worth is then no more than what the law takes to be likely.
        """
        return self.passive_rewards is not None and not self.shows_gain

    @cached_property
    def tells_of_rest(self) -> bool:
        """Whether enough arms were left alone and seen again, as far as pulls change how they move.

        Else what arms do by themselves, and so what pulls add, is what the law takes to be likely.
        """
        if not self.controlled:
            return True
        row, elapsed, _ = self.counts.unpacked(self.counts.cells)
        rested = (elapsed > 1) | (row >= self.log.num_states)
        arms = np.repeat(np.arange(self.log.num_arms), np.diff(self.counts.starts))
        enough = max(FEWEST_RESTED, LEAST_RESTED * self.log.num_arms)
        return bool(
            len(np.unique(arms[rested])) >= enough
            and self.counts.counts[rested].sum() >= LEAST_MOVES
        )

    @property
    def draws_laws(self) -> bool:
        """Whether arms can be drawn with the law of all of them: it is estimated, and fine."""
        own = self.population
        return own is not None and own.kind_priors == self.kind_priors and not own.is_rough

    @property
    def num_sightings(self) -> int:
        """How many sightings count: of pulled arms alone where pulls change how arms move."""
        if self.controlled and self.seen != "always":
            return int((self.log.code_column & 1).sum(dtype=np.int64))
        return self.log.num_sightings

    @property
    def by_mode(self) -> bool:
        """Whether sightings count by whether the arm was pulled in the step before."""
        return self.counts.by_mode

    def __repr__(self) -> str:
        held = sum(check.verdict == "holds" for check in self.checks)
        return (
            f"FittedLog({counted(self.num_sightings, 'sighting')} of "
            f"{counted(self.log.num_arms, 'arm')}; "
            f"{held} of {len(self.checks)} checks hold)"
        )

    def check(self, name: str) -> Check:
        """Return the check of this name."""
        for check in self.checks:
            if check.name == name:
                return check
        raise ProblemError(
            f"no check {name!r}; there are {', '.join(check.name for check in self.checks)}"
        )

    @cached_property
    def arms(self) -> ArmTable:
        """Each arm's posterior means and 90% intervals, and where it was last seen."""
        log, size = self.log, self.log.num_states
        active, passive, low, high = np.empty((4, log.num_arms, size, size))
        for kind, prior in enumerate(self.kind_priors):
            own = np.flatnonzero(log.kind_of == kind)
            if isinstance(prior, ArmPrior):
                found = self._shared[kind].summary(
                    self.counts, own, lambda share: self._progress("fitting", share)
                )
                active[own], passive[own] = found.active, found.passive
                low[own], high[own] = found.low, found.high
            else:
                for k in own.tolist():
                    posterior = self._posteriors[k].particles()
                    active[k], passive[k] = self._mean(k, posterior)
                    low[k], high[k] = (posterior.quantile(q)[0] for q in INTERVAL)
        return ArmTable(
            names=log.arms,
            kinds=tuple(np.array(log.kinds, dtype=object)[log.kind_of].tolist()),
            sightings=np.diff(log.starts),
            last_state=self.start.last_state,
            elapsed=self.start.elapsed,
            active=active,
            passive=passive if self.controlled else active,
            low=low,
            high=high,
        )

    def _mean(self, k: int, posterior: Any) -> tuple[FloatArray, FloatArray]:
        """Means of an arm's matrices: exact where it is always seen."""
        if self.seen != "always":
            mean = posterior.mean()
            return mean.active, mean.passive
        alphas, size = self._posteriors[k].posterior_alphas, self.log.num_states
        rows = alphas / alphas.sum(axis=1, keepdims=True)
        return rows[:size], rows[-size:]

    def evidence(self, k: int) -> Evidence:
        """Return what was seen of arm k."""
        return self.counts.evidence(k)

    def problem(self, num_pulls: int) -> RestlessBandit:
        """Return the bandit of posterior means."""
        table = self.arms
        return RestlessBandit(
            [
                Arm(
                    table.active[k],
                    table.passive[k] if self.controlled else None,
                    self.rewards,
                    self.passive_rewards,
                    name=table.names[k],
                    states=self.log.state_names,
                    seen=self.seen,
                )
                for k in range(len(table))
            ],
            num_pulls,
        )

    @property
    def usual_pulls(self) -> int:
        """The log's own pulls a step, the median; 1 where that leaves nothing to choose."""
        log = self.log
        if self.seen == "always" and not log.has_pulled:  # then its rows are no pulls
            return 1
        return log.usual_pulls if 0 < log.usual_pulls < log.num_arms else 1

    def decision(self, num_pulls: int | None = None, *, seed: int = 0) -> FitDecision:
        """Return what to do: whom to pull first, what that is worth, and how sure that is.

        Parameters
        ----------
        num_pulls
            Pulls in each step; by default as many as the log has, `usual_pulls`.
        seed
            Names the luck of the worlds in which ways of choosing arms are compared.
        """
        from restive.logs.decision import decide  # which needs this module

        return decide(self, self.usual_pulls if num_pulls is None else num_pulls, seed=seed)

    @cached_property
    def prior(self) -> IndependentPrior:
        """What the arms may be, now that the log was seen: the prior of an agent.

        Where arms change, what was seen of them `forgetting.forget_after` steps ago and earlier is
        not in it: of what a prior holds an agent forgets nothing.
        """
        counts = self.counts if self.recent is None else self.recent
        posteriors: list[Any] = list(self._posteriors) or [None] * self.log.num_arms
        for kind, prior in enumerate(self.kind_priors):
            own = np.flatnonzero(self.log.kind_of == kind)
            if isinstance(prior, ArmPrior):
                for some, weights in self._shared[kind].blocks(counts, own):
                    for k, row in zip(some.tolist(), weights, strict=True):
                        posteriors[k] = prior.informed(row)
            elif self.recent is not None:
                for k in own.tolist():
                    posteriors[k] = prior.given(counts.evidence(k))
        return IndependentPrior(posteriors)

    def supports(self, arms: IntArray) -> Iterator[tuple[int, FloatArray, FloatArray, FloatArray]]:
        """Yield arms, matrices they may have (active, passive) and weights [M].

        The active ones are [M, R, S], a row for each way to begin: `LogCounts.num_rows`.
        """
        for kind, prior in enumerate(self.kind_priors):
            own = arms[self.log.kind_of[arms] == kind]
            if not isinstance(prior, ArmPrior):
                for k in own.tolist():
                    found = self._posteriors[k].particles()
                    first = [found.active, found.passive] if self.by_mode else [found.active]
                    yield k, np.concatenate(first, axis=1), found.passive, found.weights
                continue
            for some, weights in self._shared[kind].blocks(self.counts, own):
                for k, row in zip(some.tolist(), weights, strict=True):
                    yield k, *self._shared[kind].ways, row

    def weights(self, kind: int, arms: IntArray) -> FloatArray:
        """Posterior weights [arms, M] of arms of a kind that has candidates."""
        return self._shared[kind].weights(self.counts, arms)

    @cached_property
    def _shared(self) -> dict[int, SharedCandidates]:
        return {
            kind: SharedCandidates(prior, self.log.arms)
            for kind, prior in enumerate(self.kind_priors)
            if isinstance(prior, ArmPrior)
        }


def log_rewards(log: Log, rewards: ArrayLike | None, field: str = "rewards") -> FloatArray:
    """Rewards [S] of the states; by default from 0 (the worst) to 1 in equal steps."""
    if rewards is None:
        return np.linspace(0, 1, log.num_states)
    array = numbers_array(rewards, "the log", field)
    if array.shape != (log.num_states,):
        raise ProblemError(
            f"{field} must hold one number per state ({', '.join(log.states)}), got shape "
            f"{array.shape}"
        )
    return array


def fit_arms(
    log: Log,
    prior: AnyArmPrior | Mapping[str, AnyArmPrior] | None = None,
    rewards: ArrayLike | None = None,
    controlled: bool = False,
    until: int | None = None,
    progress: Progress = silent,
    passive_rewards: ArrayLike | None = None,
    seen: str = "pulled",
    quick: bool = False,
) -> FittedLog:
    """Fit the arms of a log, without the checks; arguments as in `fit_log`.

    `until` is the step at which the fit ends: later sightings are not looked at. With `quick` the
    law of the arms is rough, for means alone.
    """
    always = seen == "always"
    if always:
        _require_moves_told(log, controlled)
    counts = count_log(
        log, until=until, pulled_only=controlled and not always,
        progress=lambda s: progress("counting", s), by_mode=controlled and always,
        next_only=always,
    )  # fmt: skip
    if not len(counts.cells):
        raise ProblemError(
            "no arm was seen twice" + ("" if until is None else f" before {log.label(until)}")
            + "; how arms change cannot be learned from this log"
        )  # fmt: skip
    values = log_rewards(log, rewards)
    notes: list[str] = []
    if rewards is None and log.num_states > 2:
        shown = ", ".join(f"{name}: {r:g}" for name, r in zip(log.states, values, strict=True))
        notes.append(f"rewards were not given and are taken as {shown}")
    notes += _never_seen(log, counts)
    unused = int((log.code_column & 1 == 0).sum()) if controlled and not always else 0
    if unused:
        notes.append(
            f"{counted(unused, 'row')} of arms that were not pulled count for nothing; if arms are "
            'seen whether they are pulled or not, say seen="always" (--seen always)'
        )
    unpulled = None
    if passive_rewards is not None:
        unpulled = log_rewards(log, passive_rewards, "passive_rewards")
    end = log.num_steps if until is None else until
    if always and counts.left_out:
        notes.append(
            f"{counts.left_out:,} moves over steps without a row are left out: arms are taken to "
            "be seen every step, and what was done with them meanwhile is not known"
        )
    given = {} if prior is None else given_priors(log, prior, values, unpulled)
    moved = controlled
    if given:
        unpulled = passive_rewards_of(next(iter(given.values())))
        moved = controlled or not all(getattr(p, "moves_alike", True) for p in given.values())
        if always and moved and not controlled:
            raise ProblemError(
                "the prior is of arms that move otherwise when pulled: fit with controlled = True "
                "(--controlled)"
            )
    population = None
    if len(given) < len(log.kinds):
        pays = {"rewards": values, "passive_rewards": unpulled, "states": log.state_names}
        population = fit_population(
            log, counts, pays, moved, always, end, notes, quick,
            lambda share: progress("estimating kinds", share),
        )  # fmt: skip
        notes += [
            f"prior has no kind {kind!r}: what its arms may be is estimated from the log"
            for kind in log.kinds
            if given and kind not in given
        ]
    kind_priors = [
        given[name] if name in given else population.kind_priors[kind]  # type: ignore[union-attr]
        for kind, name in enumerate(log.kinds)
    ]
    shapes = {}
    if population is not None and not given and not quick:
        shapes = dict(zip(log.kinds, population.shapes(), strict=True))
    notes += _doubts(values, unpulled, controlled)
    fitted = _summarised(
        log, counts, kind_priors, values, unpulled, controlled, always, end, notes, progress
    )
    return replace(fitted, kind_shapes=shapes, seen=seen, population=population)


def _require_moves_told(log: Log, controlled: bool) -> None:
    """Raise where pulls change how arms move and the log does not say who was pulled."""
    if controlled and not log.has_pulled:
        raise ProblemError(
            "arms that are always seen move by one chain when pulled and by another when not, and "
            "the log does not say who was pulled: name its column with --pulled COLUMN (pulled=)"
        )


def _never_seen(log: Log, counts: LogCounts) -> list[str]:
    """Say which states no arm was ever seen in."""
    size = log.num_states
    pairs = np.bincount(counts.cells % (size * size), minlength=size * size).reshape(size, size)
    missing = np.flatnonzero(pairs.sum(axis=0) + pairs.sum(axis=1) == 0)
    return [
        f"no arm that was seen twice was ever in state {log.states[state]!r}: how arms get there "
        "and back is a guess"
        for state in missing.tolist()
    ]


def _doubts(rewards: FloatArray, unpulled: FloatArray | None, controlled: bool) -> list[str]:
    """Say where what was asked may not be what was meant."""
    if controlled and unpulled is None:
        return [
            "only pulled arms pay; if arms count while they are not pulled too, say so with "
            "passive_rewards (--pay always)"
        ]
    if not controlled and unpulled is not None and np.array_equal(rewards, unpulled):
        return [
            "pulling changes neither how arms move nor what they pay, so all policies earn the "
            "same; if pulls change how arms move, fit with controlled = True (--controlled)"
        ]
    return []


def _summarised(
    log: Log, counts: LogCounts, kind_priors: Sequence[Any], rewards: FloatArray,
    unpulled: FloatArray | None, controlled: bool, always: bool, end: int, notes: list[str],
    progress: Progress,
) -> FittedLog:  # fmt: skip
    seen = counts.last_step >= 0
    if not seen.all():
        notes.append(f"{counted(int((~seen).sum()), 'arm')} not seen before {log.label(end)}")
    elapsed = np.where(seen, end - counts.last_step, end + 1)
    if always and (elapsed > 1).any():
        notes.append(
            f"{counted(int((elapsed > 1).sum()), 'arm')} without a row in the last step: taken to "
            "be as they were seen last"
        )
        elapsed[:] = 1
    start = BeliefState(np.where(seen, counts.last_state, log.num_states - 1), elapsed)
    posteriors: tuple[Any, ...] = ()
    if not all(isinstance(prior, ArmPrior) for prior in kind_priors):
        posteriors = tuple(_posteriors(log, counts, kind_priors, progress))
    return FittedLog(
        log, counts, tuple(kind_priors), rewards, unpulled, controlled, start,
        (*log.notes, *notes), progress, posteriors,
    )  # fmt: skip


def _posteriors(
    log: Log, counts: LogCounts, kind_priors: Sequence[Any], progress: Progress
) -> Iterator[Any]:
    """Posteriors of arms whose prior is not finite; None for the others."""
    for k, kind in enumerate(log.kind_of.tolist()):
        prior = kind_priors[kind]
        yield None if isinstance(prior, ArmPrior) else prior.given(counts.evidence(k))
        progress("fitting", (k + 1) / log.num_arms)
