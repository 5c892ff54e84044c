"""What other policies would have earned, and how far that can be said at all.

*Exact*: every arm was seen in every step and pulling changes nothing, so that a policy can be
played on the record itself. *Model-based*: worlds are drawn from what the earlier part of the log
says of the arms, and the policy plays in them; refused unless the same model predicted what the
logged pulls really earned in the later part. *Matched*: the logged pulls were drawn at random, so
that those which a policy would have chosen too are a fair sample of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, checked_seed, counted, shown, silent, suggestion
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.learn.learner_text import learner_from_text
from restive.learn.learners import LEARNERS, learner_of
from restive.learn.make import make_learner
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.logs.calibration import Calibration, calibrate
from restive.logs.checks import check_log
from restive.logs.fitted import FittedLog, fit_arms
from restive.logs.fitting import refuse_unlike_pulls, require_seen
from restive.logs.forgetting import ForgettingAdvice, advised_forgetting
from restive.logs.kind_priors import AnyArmPrior
from restive.logs.log import Log
from restive.logs.play import (
    MOST_HELD,
    Player,
    Worlds,
    agent_player,
    full_record,
    logged_pulls,
    play_record,
    play_worlds,
    play_worlds_one_by_one,
    policy_player,
    sightings_by_step,
)
from restive.logs.sample import sample_of
from restive.measure.intervals import student_quantile
from restive.plan.policies.random import random_policy
from restive.plan.policies.registry import policy_mapping, policy_mappings
from restive.plan.policies.round_robin import round_robin
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState

__all__ = ["ONLY_AFTERWARDS", "PlayedPolicy", "Replay", "replay_log"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Progress = Callable[[str, float], None]

POLICIES = ("whittle", "myopic", "best_fixed", "round_robin", "random")
WORLDS = 200
MOST_PLAYED = 10_000_000  # steps
SEEDS = 20  # of policies that choose at random, and of learners
MANY = 100  # worlds, from which on quantiles of what is earned are an interval
LEAST_MATCHES = 30
ONLY_AFTERWARDS = "known only afterwards"  # of what nobody could have played
MOST_AGES = 2_000  # that a learner's tables tell apart, where no arm gets older
SMALL_WEIGHT = 1e-4  # of a candidate that a learner may forget


@dataclass(frozen=True)
class PlayedPolicy:
    """What one policy earns per step, how that is known (`kind`), and its 95% interval.

    An exact figure has an interval only for policies that choose at random: of the mean over seeds.
    A model-based one has the interval of what is earned, by chance and by what is not known.
    """

    policy: str
    kind: str  # "exact", "model-based", "matched" or "refused"
    per_step: float
    low: float
    high: float
    note: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Replay:
    """Policies played on the later part of a log; `split` is its first step."""

    log: Log
    num_pulls: int
    split: int
    num_steps: int
    logged_per_step: float  # what the logged pulls earned, per step
    logged_pulls: float  # how many there were, per step
    calibration: Calibration | None
    policies: tuple[PlayedPolicy, ...]
    notes: tuple[str, ...]
    whole: FittedLog  # the whole log, as `fit` has it: what is said of the arms is of that
    by_world: dict[str, FloatArray] = field(default_factory=dict)  # what model-based means are of

    @property
    def forgetting(self) -> ForgettingAdvice | None:
        """Whether the arms change, and how long to remember."""
        return self.whole.forgetting

    def __repr__(self) -> str:
        policies, steps = f"{len(self.policies):,} policies", counted(self.num_steps, "step")
        return f"Replay({policies}, {steps}, {counted(self.num_pulls, 'pull')})"


def replay_log(
    log: Log,
    num_pulls: int,
    policies: Sequence[str] = POLICIES,
    *,
    prior: AnyArmPrior | dict[str, AnyArmPrior] | None = None,
    rewards: ArrayLike | None = None,
    passive_rewards: ArrayLike | None = None,
    controlled: bool = False,
    seen: str = "pulled",
    split: float = 0.5,
    fitted: FittedLog | None = None,
    random_pulls: bool = False,
    anyway: bool = False,
    worlds: int = WORLDS,
    seed: int = 0,
    progress: Progress = silent,
) -> Replay:
    """Estimate what policies would have earned in the later part of a log.

    Parameters
    ----------
    log
        From `load_log`.
    num_pulls
        How many arms the policies pull each step.
    policies
        Names: policy mappings, "round_robin", "random", and learners, which play "whittle" or what
        follows a colon, as "tsde:myopic"; with options as "tsde(forget_after=300)".
    prior, rewards, passive_rewards, controlled, seen
        As in `fit_log`; fitted on the earlier part of the log.
    split
        Share of the steps that is the earlier part.
    fitted
        Arms that were fitted already: they are taken as they are, and policies play on the whole
        log. If they were fitted on the same log, the figures are not what an operator could have
        had, and a note says so.
    random_pulls
        The log's pulls were drawn evenly at random: says how often policies would have pulled the
        same arms and what these earned.
    anyway
        Give model-based figures even where the model failed to predict the logged pulls.
    worlds
        How many worlds model-based figures are from.
    seed
        Names all luck.
    progress
        Called with what is being done and the share of it that is done.
    """
    if not isinstance(log, Log):
        raise ProblemError(f"replay_log needs a log, from load_log, got {shown(log)}")
    if not isinstance(controlled, bool):
        raise ProblemError(f"controlled must be True or False, got {shown(controlled)}")
    if fitted is not None and not isinstance(fitted, FittedLog):
        raise ProblemError(f"fitted must be what fit_log returns, got {shown(fitted)}")
    require_seen(prior, seen)
    seed = checked_seed(seed)
    worlds = checked_count(worlds, "worlds", 20, 100_000)
    _require_known(policies)
    notes: list[str] = []
    if fitted is None:
        at = _checked_split(split, log)
        known = fit_arms(log, prior, rewards, controlled, at, progress, passive_rewards, seen)
    else:
        at, known = 0, _as_given(fitted, log, notes)
    if log.has_pulled and not known.controlled:
        refuse_unlike_pulls(check_log(known, seed))
    bandit = known.problem(num_pulls)
    num_steps = log.num_steps - at
    if num_steps > MOST_PLAYED:
        raise ProblemError(
            f"the part to be played lasts {num_steps:,} steps, more than {MOST_PLAYED:,}; is a "
            "time wrong, or the step too short?"
        )
    sample = sample_of(log, known.controlled, known.seen)
    all_seen = known.seen == "always"
    paid = known.passive_rewards if all_seen else None
    earned, pulls = logged_pulls(log, at, known.rewards, paid)
    if known.passive_rewards is not None and not all_seen:
        notes.append(
            "policies' figures count all arms, pulled or not; what the log earned and the "
            "calibration are of pulled arms"
        )
    calibration = None
    if at:
        calibration = calibrate(known, sample, at)
    no_record = known.controlled or all_seen
    record = None if no_record else full_record(log, at)
    game = _Game(known, bandit, num_steps, seed, record, worlds, progress)
    if record is not None:
        played = [*game.exact(policies), game.best_in_hindsight()]
    else:
        _refuse_if_wrong(calibration, anyway, notes)
        played = game.model_based(policies)
        if calibration is not None and not calibration.holds:
            played = [replace(p, note="the model failed its calibration") for p in played]
    if random_pulls:
        played += [game.matched(name, log, at) for name in policies]
    whole = known
    if at:
        whole = fit_arms(log, prior, rewards, controlled, None, progress, passive_rewards, seen)
    whole = replace(whole, forgetting=advised_forgetting(whole, partial(progress, "remembering")))
    return Replay(
        log, num_pulls, at, num_steps, earned, pulls, calibration, tuple(played),
        (*known.notes, *notes), whole, game.by_world,
    )  # fmt: skip


def _require_known(policies: Sequence[str]) -> None:
    if not isinstance(policies, Sequence) or isinstance(policies, str) or not policies:
        raise ProblemError(f"policies must be a list of names, got {policies!r:.60}")
    known = [row.name for row in policy_mappings()] + ["round_robin", "random"]
    for name in policies:
        plain, options, mapping = _parts(str(name))
        if plain in LEARNERS:
            learner_of({"name": plain, **options})
            if mapping:
                policy_mapping(mapping)
        elif mapping or options or plain not in known:
            hint = suggestion(name, [*known, *LEARNERS])
            raise ProblemError(f"unknown policy {name!r}; {hint}")


def _parts(name: str) -> tuple[str, dict[str, Any], str]:
    """Return the name of a policy or a learner, the learner's options, and what it plays."""
    first, _, mapping = name.partition(":")
    options = learner_from_text(first)
    return options.pop("name").replace("-", "_"), options, mapping.replace("-", "_")


def _checked_split(split: Any, log: Log) -> int:
    if isinstance(split, bool) or not isinstance(split, int | float) or not 0 < split < 1:
        raise ProblemError(f"split must be between 0 and 1, got {split!r:.60}")
    at = int(split * log.num_steps)
    if not 0 < at < log.num_steps:
        raise ProblemError(
            f"a log of {counted(log.num_steps, 'step')} cannot be split at {split:g} of them"
        )
    return at


def _as_given(fitted: FittedLog, log: Log, notes: list[str]) -> FittedLog:
    """Fitted arms as of before the log: as in the paper, every arm was just seen good."""
    if fitted.log.arms != log.arms:
        raise ProblemError("the fitted arms are not the arms of this log")
    if fitted.log is log:
        notes.append("in sample: the arms were fitted on the very steps that are played")
    size = log.num_states
    return replace(fitted, start=BeliefState([size - 1] * log.num_arms, [1] * log.num_arms))


def _refuse_if_wrong(calibration: Calibration | None, anyway: bool, notes: list[str]) -> None:
    if calibration is None or calibration.holds:
        if calibration is None:
            notes.append(
                "no pull of the later part could be predicted: nothing vouches for the model"
            )
        return
    if not anyway:
        raise AssumptionError(
            f"{calibration.sentence}: a model that misses what was earned cannot say what would "
            "have been; look at the checks (restive fit), or print the figures anyway (--anyway)"
        )


@dataclass(frozen=True, eq=False)
class _Game:
    """Plays policies by their names."""

    known: FittedLog
    bandit: RestlessBandit
    num_steps: int
    seed: int
    record: IntArray | None
    num_worlds: int
    progress: Progress
    by_world: dict[str, FloatArray] = field(default_factory=dict)

    @property
    def start(self) -> BeliefState:
        return self.known.start

    def _policy(self, name: str, seed: int) -> Any:
        if name == "random":
            return random_policy(self.bandit, seed=seed)
        if name == "round_robin":
            return round_robin(self.bandit)
        return policy_mapping(name)(self.bandit)

    def _start(self, now: IntArray | None) -> BeliefState:
        """Where a player begins: with the states now, if they are seen."""
        return self.start if now is None else BeliefState(now, np.ones_like(now))

    def _players(self, name: str) -> Callable[..., Player]:
        """Return what makes the player of a seed and, if they are seen, of the states now."""
        plain, options, mapping = _parts(name)
        if plain in LEARNERS:
            forgets = options.get("forget_after") is not None  # what is unlikely now may come back
            prior = self.known.prior if forgets else _pruned(self.known.prior)
            oldest = int(self.start.elapsed.max()) + self.num_steps  # that an arm can get
            ages = oldest if oldest <= MOST_AGES else None

            def learner(seed: int, now: IntArray | None = None) -> Player:
                return agent_player(
                    make_learner(
                        plain, prior, self.bandit.num_pulls, mapping or "whittle", self.num_steps,
                        seed=self.seed + seed, start=self._start(now), max_elapsed=ages, **options,
                    )
                )  # fmt: skip

            return learner
        if plain == "random":
            return lambda seed, now=None: policy_player(
                self._policy(plain, self.seed + seed), self.bandit, self._start(now)
            )
        policy = self._policy(plain, 0)
        return lambda seed, now=None: policy_player(policy, self.bandit, self._start(now))

    @staticmethod
    def _is_random(name: str) -> bool:
        return _parts(name)[0] in ("random", *LEARNERS)

    def exact(self, policies: Sequence[str]) -> list[PlayedPolicy]:
        assert self.record is not None
        found = []
        for at, name in enumerate(policies):
            make = self._players(name)
            seeds = SEEDS if self._is_random(name) else 1
            totals = []
            for seed in range(seeds):
                totals.append(
                    play_record(
                        self.record, make(seed), self.known.rewards, self.known.passive_rewards
                    )
                )
                self.progress("playing", (at + (seed + 1) / seeds) / len(policies))
            values = np.array(totals) / self.num_steps
            half = 0.0
            if seeds > 1:
                half = student_quantile(seeds) * float(values.std(ddof=1)) / sqrt(seeds)
            mean = float(values.mean())
            note = f"mean of {seeds} seeds" if seeds > 1 else ""
            found.append(PlayedPolicy(name, "exact", mean, mean - half, mean + half, note))
        return found

    def best_in_hindsight(self) -> PlayedPolicy:
        """The arms that did best on the record, always pulled: nobody could have known them."""
        assert self.record is not None
        gains, unpulled = self.known.rewards[self.record].mean(axis=0), 0.0
        if self.known.passive_rewards is not None:
            alone = self.known.passive_rewards[self.record].mean(axis=0)
            gains, unpulled = gains - alone, float(alone.sum())
        best = float(np.sort(gains)[-self.bandit.num_pulls :].sum()) + unpulled
        return PlayedPolicy("best fixed in hindsight", "exact", best, best, best, ONLY_AFTERWARDS)

    def model_based(self, policies: Sequence[str]) -> list[PlayedPolicy]:
        size = self.bandit.num_arms * self.known.log.num_states**2
        if self.num_worlds * size > MOST_HELD:
            raise TooLargeError(
                f"{self.num_worlds} worlds of {self.bandit.num_arms:,} arms do not fit in memory; "
                f"pass worlds = {max(MOST_HELD // size, 20)}, or replay a part of the arms"
            )
        found, many = [], Worlds(self.known, self.num_worlds, self.seed)
        for at, name in enumerate(policies):

            def tell(share: float, at: int = at) -> None:
                self.progress("playing", (at + share) / len(policies))

            plain = _parts(name)[0]
            policy = None if plain in LEARNERS else self._policy(plain, self.seed)
            if hasattr(policy, "select_many"):
                drawn = many
                totals = play_worlds(drawn, policy, self.start, self.num_steps, tell)
            else:
                drawn = Worlds(self.known, min(self.num_worlds, SEEDS), self.seed)
                totals = play_worlds_one_by_one(drawn, self._players(name), self.num_steps, tell)
            values = totals / self.num_steps
            self.by_world[name] = values
            note = f"{drawn.count} worlds"
            low, high = _prediction_interval(values)
            found.append(PlayedPolicy(name, "model-based", float(values.mean()), low, high, note))
        return found

    def matched(self, name: str, log: Log, split: int) -> PlayedPolicy:
        """What those logged pulls earned that the policy would have chosen too, given the log."""
        if self._is_random(name):
            return PlayedPolicy(name, "refused", np.nan, np.nan, np.nan, "chooses at random itself")
        if self.known.seen == "always":
            note = (
                "a policy sees all arms before it chooses, and a pull changes what it sees next: "
                "pulls that happen to match are not a sample of its own"
            )
            return PlayedPolicy(name, "refused", np.nan, np.nan, np.nan, note)
        if self.known.passive_rewards is not None:
            note = "arms pay while not pulled, which matched pulls say nothing about"
            return PlayedPolicy(name, "refused", np.nan, np.nan, np.nan, note)
        policy = self._policy(name.replace("-", "_"), 0)
        state, earned = self.start, []
        for arms, states, pulled in sightings_by_step(log, split):
            chosen = policy.select(state)
            both = np.isin(arms, chosen) & pulled
            earned += self.known.rewards[states[both]].tolist()
            state = state.updated(arms, states)
        count = len(earned)
        if count < LEAST_MATCHES:
            note = f"only {count} of the logged pulls match; {LEAST_MATCHES} are needed"
            return PlayedPolicy(name, "refused", np.nan, np.nan, np.nan, note)
        pulls = self.bandit.num_pulls
        mean = float(np.mean(earned)) * pulls
        half = student_quantile(count) * float(np.std(earned, ddof=1)) / sqrt(count) * pulls
        note = f"{count} of the logged pulls match; earned with what the log had seen"
        return PlayedPolicy(name, "matched", mean, mean - half, mean + half, note)


def _prediction_interval(values: FloatArray) -> tuple[float, float]:
    """Return the 95% interval of one more value like these.

    Of many, their quantiles. Few have none so far out (all of 20 span 90%): Student's interval, as
    what is earned in many steps is all but normal.
    """
    count = len(values)
    if count >= MANY:
        low, high = np.quantile(values, [0.025, 0.975]).tolist()
        return low, high
    half = student_quantile(count) * float(values.std(ddof=1)) * sqrt(1 + 1 / count)
    mean = float(values.mean())
    return mean - half, mean + half


def _pruned(prior: IndependentPrior) -> IndependentPrior:
    """Leave out candidates that have hardly any weight for any arm: tables get smaller."""
    arms = [arm for arm in prior.arms if isinstance(arm, ArmPrior)]
    if len(arms) < prior.num_arms or any(a.candidates is not arms[0].candidates for a in arms):
        return prior
    weights = np.array([arm.weights for arm in arms])
    kept = np.flatnonzero(weights.max(axis=0) >= SMALL_WEIGHT)
    shared = ArmPrior([arms[0].candidates[m] for m in kept.tolist()])
    return IndependentPrior([shared.with_weights(row[kept]) for row in weights], prior.pooled)
