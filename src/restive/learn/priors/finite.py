"""Finite priors: lists of what an arm, or a whole system, may be, with weights (Section 2.1).

Rewards are known, so the candidates of one arm share them, those while it is not pulled too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import counted, drawn_seed
from restive.errors import ProblemError
from restive.kernels.elementary import exponentials, logarithms
from restive.kernels.random import TRUTH, key_at, stream
from restive.learn.evidence import Evidence, log_likelihood
from restive.problem.arm import Arm, numbers_array
from restive.problem.bandit import RestlessBandit

__all__ = ["ArmPrior", "JointPrior"]

FloatArray = NDArray[np.float64]

SUM_NOISE = 1e-12  # weights this close to a sum of 1 are kept to the bit, as a snapshot wrote them


@dataclass(frozen=True, eq=False, init=False, repr=False)
class ArmPrior:
    """Distribution over what one arm may be.

    Parameters
    ----------
    candidates
        The arms that it may be; they agree in the number and names of states and in both rewards.
    weights
        Their weights, in any scale; equal by default.
    """

    candidates: tuple[Arm, ...]
    weights: FloatArray  # [candidates], sums to one
    kind: ArmPrior  # what an arm of its kind may be: itself, or what it was before evidence

    def __init__(self, candidates: Iterable[Arm], weights: ArrayLike | None = None) -> None:
        candidates = listed(candidates, "candidates", "arms")
        _require_alike(candidates, "candidate")
        _require_distinct([arm.numbers for arm in candidates], "candidate")
        object.__setattr__(self, "candidates", candidates)
        object.__setattr__(self, "kind", self)
        object.__setattr__(self, "weights", _normalised(weights, len(candidates), "candidates"))

    @property
    def typical(self) -> Arm:
        """An arm with the states and rewards that all candidates share: the first of them."""
        return self.candidates[0]

    @property
    def moves_alike(self) -> bool:
        """Whether the arm, whichever it is, moves alike pulled or not."""
        return all(arm.is_uncontrolled for arm in self.candidates)

    def draw(self, key: np.uint64) -> Arm:
        """Draw an arm by its weight, with 64 random bits."""
        return self.candidates[_drawn(self.weights, key)]

    def given(self, evidence: Evidence) -> ArmPrior:
        """Return what the arm may be once this was seen of it: the same arms, other weights."""
        logs = [log_likelihood(arm, evidence) for arm in self.candidates]
        return self.informed(_reweighted(self.weights, np.array(logs)))

    def with_weights(self, weights: ArrayLike) -> ArmPrior:
        """Return the distribution over the same arms that has these weights."""
        prior = object.__new__(ArmPrior)  # the candidates need not be checked again
        object.__setattr__(prior, "candidates", self.candidates)
        object.__setattr__(prior, "kind", prior)
        object.__setattr__(
            prior, "weights", _normalised(weights, len(self.candidates), "candidates")
        )
        return prior

    def informed(self, weights: ArrayLike) -> ArmPrior:
        """Return what an arm of this kind may be, with the weights that evidence gave it."""
        prior = self.with_weights(weights)
        object.__setattr__(prior, "kind", self.kind)
        return prior

    def __repr__(self) -> str:
        states = counted(self.typical.num_states, "state")
        return f"ArmPrior({counted(len(self.candidates), 'candidate')} of {states})"


@dataclass(frozen=True, eq=False, init=False, repr=False)
class JointPrior:
    """Distribution over whole systems, for arms whose parameters depend on each other.

    Parameters
    ----------
    bandits
        The systems; they agree in the number of arms and pulls and, arm by arm, in the numbers of
        states and in both rewards.
    weights
        Their weights, in any scale; equal by default.
    """

    bandits: tuple[RestlessBandit, ...]
    weights: FloatArray  # [bandits], sums to one

    def __init__(self, bandits: Iterable[RestlessBandit], weights: ArrayLike | None = None) -> None:
        bandits = listed(bandits, "bandits", "bandits")
        if not bandits:
            raise ProblemError("a prior needs at least one bandit, got none")
        for j, bandit in enumerate(bandits):
            if not isinstance(bandit, RestlessBandit):
                raise ProblemError(f"bandit {j}: expected a bandit, got {type(bandit).__name__}")
            if bandit.num_arms != bandits[0].num_arms or bandit.num_pulls != bandits[0].num_pulls:
                raise ProblemError(
                    f"bandit {j} has {bandit.num_arms} arms and {bandit.num_pulls} pulls, bandit 0 "
                    f"has {bandits[0].num_arms} and {bandits[0].num_pulls}; they must agree"
                )
        for k in range(bandits[0].num_arms):
            _require_alike([bandit.arms[k] for bandit in bandits], f"arm {k} of bandit")
        _require_distinct([tuple(arm.numbers for arm in one.arms) for one in bandits], "bandit")
        object.__setattr__(self, "bandits", bandits)
        object.__setattr__(self, "weights", _normalised(weights, len(bandits), "bandits"))

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return self.bandits[0].num_arms

    def candidates(self, k: int) -> tuple[Arm, ...]:
        """Return what arm k may be, by system."""
        return tuple(bandit.arms[k] for bandit in self.bandits)

    def typical(self, k: int) -> Arm:
        """An arm with the states and rewards of arm k."""
        return self.bandits[0].arms[k]

    def moves_alike(self, k: int) -> bool:
        """Whether arm k, whichever it is, moves alike pulled or not."""
        return all(bandit.arms[k].is_uncontrolled for bandit in self.bandits)

    def sample(self, seed: int | None = 0, num_pulls: int | None = None) -> RestlessBandit:
        """Draw a system: the truth of replication 0 of `bayesian_regret` with this seed.

        Parameters
        ----------
        seed
            Names the draw; with None one is drawn.
        num_pulls
            Arms pulled each step; the systems have it, so it may be left out.
        """
        own = self.bandits[0].num_pulls
        if num_pulls is not None and num_pulls != own:
            raise ProblemError(f"the prior's systems have {own} pulls, num_pulls is {num_pulls}")
        key = stream(drawn_seed(seed), 0, TRUTH)
        return self.bandits[_drawn(self.weights, np.uint64(key_at(key, 0)))]

    def given(self, evidence: Sequence[Evidence]) -> JointPrior:
        """Return what the systems may be once this was seen of each arm."""
        require_evidence(evidence, self.num_arms)
        logs = [
            sum(log_likelihood(arm, seen) for arm, seen in zip(bandit.arms, evidence, strict=True))
            for bandit in self.bandits
        ]
        return JointPrior(self.bandits, _reweighted(self.weights, np.array(logs)))

    def __repr__(self) -> str:
        systems, arms = counted(len(self.bandits), "system"), counted(self.num_arms, "arm")
        return f"JointPrior({systems} of {arms})"


def _drawn(weights: FloatArray, key: np.uint64) -> int:
    """Place that 64 random bits draw by weight."""
    totals = np.cumsum(weights)
    uniform = (int(key) >> 11) * 2.0**-53
    return int(np.searchsorted(totals, uniform * totals[-1], side="right"))


def require_evidence(evidence: Sequence[Evidence], num_arms: int) -> None:
    """Raise unless there is evidence of each arm."""
    if len(evidence) != num_arms:
        raise ProblemError(
            f"the prior is for {num_arms} arms, evidence of {len(evidence)} was given"
        )


def _reweighted(weights: FloatArray, logs: FloatArray) -> FloatArray:
    """Weights times exp(logs), up to a factor, without underflow of the largest."""
    total = logarithms(weights) + logs
    largest = total.max()
    if largest == -np.inf:
        raise ProblemError("the evidence has probability zero under every candidate")
    return exponentials(total - largest)


def listed(values: Iterable[Any], what: str, of: str) -> tuple[Any, ...]:
    """Return the values as a tuple, or say what must be a list."""
    if not isinstance(values, Iterable):
        raise ProblemError(f"{what} must be a list of {of}, got {values!r:.60}")
    return tuple(values)


def _require_alike(arms: Sequence[Arm], what: str) -> None:
    if not arms:
        raise ProblemError(f"a prior needs at least one {what}, got none")
    for j, arm in enumerate(arms):
        if not isinstance(arm, Arm):
            raise ProblemError(f"{what} {j}: expected an Arm, got {type(arm).__name__}")
        if arm.num_states != arms[0].num_states:
            raise ProblemError(
                f"{what} {j} has {arm.num_states} states, {what} 0 has {arms[0].num_states}; "
                "they must agree"
            )
        for field, here, there in rewards_of(arm, arms[0]):
            if not np.array_equal(here, there):
                raise ProblemError(
                    f"{what} {j} has {field} {here.tolist()}, {what} 0 has {there.tolist()}; "
                    "rewards are known, so they must agree"
                )
        if arm.seen != arms[0].seen:
            raise ProblemError(
                f"{what} {j} is seen {arm.seen!r}, {what} 0 {arms[0].seen!r}; when an arm is "
                "seen is known, so they must agree"
            )
        if arm.states != arms[0].states:
            raise ProblemError(
                f"{what} {j} has states {arm.states}, {what} 0 has {arms[0].states}; their names "
                "must agree"
            )


def rewards_of(arm: Arm, other: Arm) -> Iterator[tuple[str, FloatArray, FloatArray]]:
    """Yield both kinds of rewards: what each is called and what two arms have."""
    yield "rewards", arm.rewards, other.rewards
    yield "passive_rewards", arm.passive_rewards, other.passive_rewards


def _require_distinct(numbers: Sequence[object], what: str) -> None:
    """Raise where two are the same: their weights would be halves of one, and one has no mode."""
    places: dict[object, int] = {}
    for j, one in enumerate(numbers):
        first = places.setdefault(one, j)
        if first != j:
            raise ProblemError(
                f"{what} {j} is the same as {what} {first}: give it once, with the sum of their "
                "weights"
            )


def _normalised(weights: ArrayLike | None, count: int, what: str) -> FloatArray:
    if weights is None:
        weights = np.full(count, 1 / count)
    values = numbers_array(weights, "prior", "weights")
    if values.shape != (count,):
        raise ProblemError(f"weights must hold one number for each of the {count} {what}")
    if not (np.isfinite(values).all() and (values >= 0).all() and values.any()):
        raise ProblemError("weights must be finite, not negative, and not all zero")
    largest = values.max()
    if largest > 1 or abs(values.sum() - 1) > SUM_NOISE:
        values /= largest  # first, so that the sum of very large weights is finite
        values /= values.sum()
    values.setflags(write=False)
    return values
