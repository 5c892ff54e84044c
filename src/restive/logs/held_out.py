"""Whether the chains help at all: how well they predict a later part of the log.

Everything is fitted on the earlier part. Each later sighting is then predicted from when and in
which state the arm was last seen, by a coin per arm, by the chains, and by chains of order 2. The
better guess has the larger logarithm of the chance it gave to what was seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, log, sqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import ProblemError
from restive.kernels.elementary import logarithms
from restive.logs.fitted import FittedLog, fit_arms
from restive.logs.log import Log
from restive.logs.sample import Sample, sample_of
from restive.problem.beliefs import beliefs_at

__all__ = ["HeldOut", "PredictionGain", "held_out"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

EARLIER = 0.7  # share of the steps that is fitted
COIN_STRENGTH = 2.0  # sightings that all arms' mean counts as, for a coin
SECOND_STRENGTH = 4.0  # sightings that the chain's word counts as, for order 2
LEAST_SIGHTINGS = 30
BINS = 10


@dataclass(frozen=True)
class PredictionGain:
    """Mean difference of log chances between two ways to predict, with its standard error."""

    gain: float
    stderr: float

    @property
    def verdict(self) -> str:
        """Whether the first is better ("holds"), worse ("fails") or neither for certain."""
        if abs(self.gain) <= 1.96 * self.stderr:
            return "undecided"
        return "holds" if self.gain > 0 else "fails"


@dataclass(frozen=True, eq=False)
class HeldOut:
    """How the later part of a log was predicted.

    Log chances are means per sighting (natural logarithms). `predicted` and `seen` are, by bin of
    the chance that the chains gave to the best state, its mean and how often that state came.
    """

    split: int  # the first step that was predicted
    num_sightings: int
    coin: float
    chain: float
    second: float
    chain_against_coin: PredictionGain
    second_against_chain: PredictionGain
    predicted: FloatArray  # [bins]
    seen: FloatArray  # [bins]
    in_bin: IntArray  # [bins]


def held_out(
    log: Log,
    prior: object = None,
    rewards: ArrayLike | None = None,
    controlled: bool = False,
    progress: Callable[[float], None] = lambda share: None,
    seen: str = "pulled",
) -> HeldOut | None:
    """Foretell the last 30% of a log's steps from the rest; None where too little is there."""
    split = int(EARLIER * log.num_steps)
    sample = sample_of(log, controlled, seen)
    later = np.flatnonzero((sample.steps >= split) & sample.foretold)
    earlier = sample.steps < split
    if split < 1 or len(later) < LEAST_SIGHTINGS or earlier.sum() < LEAST_SIGHTINGS:
        return None
    try:
        fitted = fit_arms(
            log, prior, rewards, controlled, split,  # type: ignore[arg-type]
            lambda what, share: progress(share), seen=seen, quick=True,
        )  # fmt: skip
    except ProblemError:
        return None
    chain = _predictions(fitted, sample, later)
    coin = _coin(sample, later, earlier)
    second = _second_order(sample, later, earlier, chain)
    shown = sample.states[later]
    rows = np.arange(len(later))
    logs = [logarithms(np.maximum(law[rows, shown], 1e-300)) for law in (coin, chain, second)]
    best = chain[:, -1]
    bins = np.minimum((best * BINS).astype(np.int64), BINS - 1)
    in_bin = np.bincount(bins, minlength=BINS)
    good = shown == log.num_states - 1
    return HeldOut(
        split=split,
        num_sightings=len(later),
        coin=float(logs[0].mean()),
        chain=float(logs[1].mean()),
        second=float(logs[2].mean()),
        chain_against_coin=_difference(logs[1] - logs[0], sample.steps[later]),
        second_against_chain=_difference(logs[2] - logs[1], sample.steps[later]),
        predicted=np.bincount(bins, best, minlength=BINS) / np.maximum(in_bin, 1),
        seen=np.bincount(bins, good, minlength=BINS) / np.maximum(in_bin, 1),
        in_bin=in_bin,
    )


def _predictions(fitted: FittedLog, sample: Sample, later: IntArray) -> FloatArray:
    """Chances [sightings, S] of each state, by the arms' posteriors, for these sightings."""
    size = sample.log.num_states
    found = np.empty((len(later), size))
    edges = np.searchsorted(sample.owner[later], np.arange(sample.num_arms + 1))
    place_of = {k: place for place, k in enumerate(sample.arms.tolist())}
    for k, active, passive, weights in fitted.supports(sample.arms):
        rows = np.arange(edges[place_of[k]], edges[place_of[k] + 1])
        if not len(rows):
            continue
        used = weights > 1e-12
        last, ages, which = sample.pairs(later[rows])
        laws = beliefs_at(active[used], passive[used], last, ages)
        means = (laws * weights[used, None]).sum(axis=1) / weights[used].sum()
        found[rows] = means[which]
    return found


def _coin(sample: Sample, later: IntArray, earlier: NDArray[np.bool_]) -> FloatArray:
    """Each arm's share of states in the earlier part, a little towards that of all arms."""
    size = sample.log.num_states
    counts = np.zeros((sample.num_arms, size))
    np.add.at(counts, (sample.owner[earlier], sample.states[earlier]), 1)
    pooled = (counts.sum(axis=0) + 1) / (counts.sum() + size)
    shares = counts + COIN_STRENGTH * pooled
    shares /= shares.sum(axis=1)[:, None]
    return np.asarray(shares[sample.owner[later]])


def _second_order(
    sample: Sample, later: IntArray, earlier: NDArray[np.bool_], chain: FloatArray
) -> FloatArray:
    """Each arm's counts after two sightings in a row, towards what the chain says; else that."""
    size = sample.log.num_states
    in_a_row = (sample.place >= 2) & (sample.ages == 1) & (np.roll(sample.ages, 1) == 1)
    counts = np.zeros((sample.num_arms, size, size, size))
    past = np.flatnonzero(in_a_row & earlier)
    states = sample.states
    np.add.at(counts, (sample.owner[past], states[past - 2], states[past - 1], states[past]), 1)
    found = chain.copy()
    rows = np.flatnonzero(in_a_row[later])
    at = later[rows]
    own = counts[sample.owner[at], states[at - 2], states[at - 1]]
    found[rows] = (own + SECOND_STRENGTH * chain[rows]) / (
        own.sum(axis=1)[:, None] + SECOND_STRENGTH
    )
    return found


def _difference(gains: FloatArray, steps: IntArray) -> PredictionGain:
    """Mean gain; sightings of one step may depend on each other, so that steps are the units."""
    mean = float(gains.mean())
    _, which = np.unique(steps, return_inverse=True)
    sums = np.bincount(which.ravel(), gains - mean)
    count = len(sums)
    if count < 2:
        return PredictionGain(mean, float("inf"))
    return PredictionGain(mean, sqrt(count / (count - 1) * float((sums**2).sum())) / len(gains))


def in_words(gain: float) -> str:
    """Return what a gain in log chance means: so many percent more chance for what was seen."""
    return f"{100 * (exp(gain) - 1):+.1f}%" if gain < log(10) else f"{exp(gain):.0f} times"
