"""The arms that checks look at: all of them or, in a large log, some that are evenly spread."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from restive.logs.fitted import FittedLog
from restive.logs.log import Log

__all__ = ["Sample", "drawn_arms", "sample_of"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MOST_SIGHTINGS = 30_000
MOST_SAMPLED_ARMS = 1_000
LEVELS = 20_001  # of means of states
MOST_LAWS, FEW_ARMS = 20, 300  # drawn for as many arms; fewer for more


@dataclass(frozen=True, eq=False)
class Sample:
    """Sightings of some arms of a log, sorted by arm, then step."""

    log: Log
    arms: IntArray  # [K'] their numbers in the log
    starts: IntArray  # [K' + 1]
    steps: IntArray  # [R]
    states: IntArray  # [R]
    pulled: NDArray[np.bool_]  # [R]
    by_mode: bool = False  # whether the law of a sighting depends on whether it was pulled before
    next_only: bool = False  # whether arms are always seen: gaps say nothing

    @property
    def num_arms(self) -> int:
        """How many arms there are."""
        return len(self.arms)

    @cached_property
    def owner(self) -> IntArray:
        """The arm, by its place in the sample, of each sighting [R]."""
        return np.repeat(np.arange(self.num_arms), np.diff(self.starts))

    @cached_property
    def place(self) -> IntArray:
        """Which of its arm's sightings each is [R], from 0."""
        return np.arange(len(self.steps)) - self.starts[self.owner]

    @cached_property
    def ages(self) -> IntArray:
        """Steps since the sighting before [R]; 0 for an arm's first."""
        ages = np.diff(self.steps, prepend=0)
        ages[self.place == 0] = 0
        return ages

    @cached_property
    def foretold(self) -> NDArray[np.bool_]:
        """Which sightings have a law given the one before [R]."""
        return np.asarray(self.ages == 1 if self.next_only else self.place >= 1)

    @cached_property
    def before(self) -> IntArray:
        """The row (`logs.counts`) of the sighting before [R]; of an arm's first one, anything."""
        rows = self.states + self.log.num_states * (self.by_mode & ~self.pulled)
        return np.roll(rows, 1)

    @property
    def drawn_at(self) -> int:
        """Where states that are compared begin, in arrays in which the log's own come first."""
        return len(self.steps) if self.next_only else 0

    def pairs(self, rows: IntArray) -> tuple[IntArray, IntArray, IntArray]:
        """Return rows and ages [C] that occur at these sightings, and which each has."""
        size = self.log.num_states * (1 + self.by_mode)
        keys = self.ages[rows] * size + self.before[rows]
        distinct, which = np.unique(keys, return_inverse=True)
        ages, last = np.divmod(distinct, size)
        return last, ages, which

    @cached_property
    def scores(self) -> FloatArray:
        """What states count as [S]: from 0, the worst, to 1.

        Behind these, where arms are always seen, what means of states count as [LEVELS].
        """
        own: FloatArray = np.linspace(0, 1, self.log.num_states)
        return np.concatenate([own, np.linspace(0, 1, LEVELS)]) if self.next_only else own


def sample_of(log: Log, controlled: bool = False, seen: str = "pulled") -> Sample:
    """Return the sightings of evenly spread arms, about 30,000 in all.

    If pulls change how arms move, of pulled arms only, unless arms are always seen.
    """
    always = seen == "always"
    seen_twice = np.flatnonzero(np.diff(log.starts) > 1)
    every = max(
        -(-log.num_sightings // MOST_SIGHTINGS), -(-len(seen_twice) // MOST_SAMPLED_ARMS), 1
    )
    arms = seen_twice[::every]
    blocks = [log.block(k, k + 1) for k in arms.tolist()]
    if controlled and not always:
        blocks = [block.of_pulled() for block in blocks]
    sizes = [len(b.steps) for b in blocks]
    empty = np.zeros(0, dtype=np.int64)
    codes = np.concatenate([empty, *(b.codes for b in blocks)])
    return Sample(
        log,
        arms,
        np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
        np.concatenate([empty, *(b.steps for b in blocks)]),
        codes >> 1,
        (codes & 1).astype(np.bool_),
        controlled and always,
        always,
    )


def drawn_arms(
    fitted: FittedLog, sample: Sample, replicates: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Matrices [replicates, K', S, S] of the sample's arms, drawn from their posteriors."""
    size = sample.log.num_states
    active = np.empty((replicates, sample.num_arms, size, size))
    passive = np.empty_like(active)
    lots = rng.random((sample.num_arms, replicates))
    place_of = {k: place for place, k in enumerate(sample.arms.tolist())}
    laws = _laws_that_may_be(fitted, sample.num_arms, rng)
    for number, one in enumerate(laws):
        mine = slice(number, None, len(laws))
        for k, candidates, passive_candidates, weights in one.supports(sample.arms):
            place = place_of[k]
            sums = np.cumsum(weights)
            chosen = np.searchsorted(sums / sums[-1], lots[place, mine], side="right")
            active[mine, place] = candidates[chosen, :size]
            passive[mine, place] = passive_candidates[chosen]
    return active, passive


def _laws_that_may_be(
    fitted: FittedLog, num_arms: int, rng: np.random.Generator
) -> list[FittedLog]:
    """Return the fit with laws of kinds as they may be: of few arms they are not known well."""
    count = min(MOST_LAWS, MOST_LAWS * FEW_ARMS // max(num_arms, 1))
    if not fitted.logit_laws or count < 2:
        return [fitted]
    normals = rng.standard_normal((count, len(fitted.logit_laws), 4))
    return [
        replace(
            fitted,
            logit_laws=tuple(
                law.redrawn(own) for law, own in zip(fitted.logit_laws, some, strict=True)
            ),
        )
        for some in normals
    ]
