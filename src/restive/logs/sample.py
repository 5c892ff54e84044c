"""The arms that checks look at: all of them or, in a large log, some that are evenly spread."""

from __future__ import annotations

from dataclasses import dataclass
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
    """Matrices [replicates, K', S, S] of the sample's arms, drawn from their posteriors.

    Each replicate has another law of all arms, as far as that is known.
    """
    size, population = sample.log.num_states, fitted.population
    active = np.empty((replicates, sample.num_arms, size, size))
    passive = np.empty_like(active)
    if fitted.draws_laws:
        assert population is not None
        seed = int(rng.integers(1 << 32))
        for i, (pulled, alone) in enumerate(population.drawn(sample.arms, replicates, seed)):
            active[i], passive[i] = pulled, alone
        return active, passive
    lots = rng.random((sample.num_arms, replicates))
    place_of = {k: place for place, k in enumerate(sample.arms.tolist())}
    for k, candidates, passive_candidates, weights in fitted.supports(sample.arms):
        sums = np.cumsum(weights)
        place = place_of[k]
        chosen = np.searchsorted(sums / sums[-1], lots[place], side="right")
        active[:, place] = candidates[chosen, :size]
        passive[:, place] = passive_candidates[chosen]
    return active, passive
