"""What the arms of a log may be: one law of all of them (`learn.law`), given their kinds.

A kind's law is weights of points, averaged over what the law of all arms may be: the candidates of
an agent's prior, of lists and of the table of arms. Where arms were seen so often that points are
too far apart for what is known of them, it is the Dirichlet law with the same means and variance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.random import key_at, stream
from restive.learn.law import SHARED, ArmCells, Law, Points, fit_law
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior
from restive.logs.counts import LogCounts, first_sightings
from restive.logs.kind_words import KindShape, candidate_values
from restive.logs.log import Log
from restive.problem.arm import Arm

__all__ = ["Population", "fit_population"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_ARMS = 1_000  # from which the law is fitted
MOST_KINDS = 8  # that differ in the law; those with fewer arms are like all of them
FEW = 20  # points that an arm has weight on, in effect: with fewer they are too far apart
BLOCK = 1_000  # arms whose likelihoods are held at once
INTERVAL = (0.05, 0.95)  # ends of a 90% interval
QUICK_DRAWS = 64
LEAST_PARAMETER, MOST_ALIKE = 0.05, 500.0  # of Dirichlet laws: a parameter, the sum of a row's


@dataclass(frozen=True, eq=False, repr=False)
class Population:
    """The law of a log's arms, and what was seen of them."""

    law: Law
    traits: FloatArray  # [kinds, p]
    kind_of: IntArray  # [K]
    seen: ArmCells
    pays: Mapping[str, Any]  # rewards, those of arms that are not pulled, names of states
    always: bool  # whether arms are always seen

    @cached_property
    def candidates(self) -> ArmPrior:
        """The shared points, all of one weight."""
        return candidates_of(self.law.shared, self.pays, self.always)

    @cached_property
    def kind_priors(self) -> tuple[ArmPrior | DirichletArmPrior, ...]:
        """What arms of each kind may be."""
        return tuple(
            self._dirichlet(row) if self.is_rough else self.candidates.with_weights(row)
            for row in self.law.weights(self.traits)
        )

    @cached_property
    def points(self) -> tuple[ArmPrior, ...]:
        """The same, as weights of points however far apart."""
        return tuple(self.candidates.with_weights(row) for row in self.law.weights(self.traits))

    @cached_property
    def is_rough(self) -> bool:
        """Whether shared points are too far apart for what is known of most arms."""
        some = evenly_spread(np.arange(self.seen.num_arms), 200)
        likelihoods, _ = self.law.likelihoods(self.seen.of_arms(some), self.law.shared)
        own = likelihoods.T * self.law.weights(self.traits)[self.kind_of[some]]
        worth = own.sum(axis=1) ** 2 / (own**2).sum(axis=1)
        return bool(np.median(worth) < FEW)

    def _dirichlet(self, weights: FloatArray) -> DirichletArmPrior:
        rows = np.concatenate(self.law.shared.matrices, axis=1)
        means, squares = (np.einsum("m,mrs->rs", weights, rows**power) for power in (1, 2))
        spread = (squares - means**2).sum(axis=1)
        alike = (means * (1 - means)).sum(axis=1) / np.maximum(spread, 1e-12) - 1
        found = np.maximum(means * np.clip(alike, 0.5, MOST_ALIKE)[:, None], LEAST_PARAMETER)
        size = self.seen.num_states
        passive = found[size:] if self.law.controlled else None
        seen = "always" if self.always else "pulled"
        return DirichletArmPrior(found[:size], passive, seen=seen, **self.pays)

    def shapes(self) -> list[KindShape]:
        """Say what each kind's law is like: means and 90% intervals."""
        what, values, num_sorts = candidate_values(self.candidates)
        found = np.array(
            [
                np.einsum("gm,qm->gq", own, values)
                for own in self.law.laws(self.law.shared, self.traits)
            ]
        )  # [draws, kinds, Q]
        ends = np.quantile(found, INTERVAL, axis=0)
        there = self.kind_of[np.diff(self.seen.starts) > 0]
        numbers = np.bincount(there, minlength=len(self.traits))
        return [
            KindShape(what, found[:, g].mean(axis=0), ends[:, g].T, num_sorts, int(numbers[g]))
            for g in range(len(self.traits))
        ]

    def drawn(self, arms: IntArray, count: int, seed: int) -> Iterator[tuple[FloatArray, ...]]:
        """Yield matrices [arms, S, S], pulled and not, that these arms may have; `count` times.

        Each time under another law that may be the population's.
        """
        matrices, key = self.law.points.matrices, stream(seed, 0, 78)
        blocks = [arms[at : at + BLOCK] for at in range(0, len(arms), BLOCK)]
        drawn = np.empty((count, len(arms)), dtype=np.int64)
        for number, some in enumerate(blocks):
            own, kinds = self.seen.of_arms(some), self.kind_of[some]
            found = self.law.drawn(own, self.traits, kinds, count, np.uint64(key_at(key, number)))
            begin = number * BLOCK
            for i, places in enumerate(found):
                drawn[i, begin : begin + len(some)] = places
        for places in drawn:
            yield tuple(part[places] for part in matrices)


def candidates_of(points: Points, pays: Mapping[str, Any], always: bool) -> ArmPrior:
    """Return points as candidates, all of one weight."""
    pulled, alone = points.matrices
    seen = "always" if always else "pulled"
    if len(points.theta) == 2:
        return ArmPrior([Arm(one, None, **pays, seen=seen) for one in alone])
    return ArmPrior(
        [Arm(one, other, **pays, seen=seen) for one, other in zip(pulled, alone, strict=True)]
    )


def fit_population(
    log: Log, counts: LogCounts, pays: Mapping[str, Any], controlled: bool, always: bool,
    until: int, notes: list[str], quick: bool = False,
    progress: Callable[[float], None] = lambda share: None,
) -> Population:  # fmt: skip
    """Fit the law of all arms of a log to what was seen before step `until`.

    `notes` gets what to say of it. With `quick` the law is rough: for its means alone.
    """
    rows, ages, states = counts.unpacked(counts.cells)
    steps, first = first_sightings(log, until, controlled and not always)
    begun, size = np.flatnonzero(steps >= 0), counts.num_states
    arms = np.repeat(np.arange(log.num_arms), np.diff(counts.starts))
    seen = ArmCells.of(
        size,
        log.num_arms,
        np.concatenate([arms, begun]),
        np.concatenate([rows, np.full_like(begun, 2 * size)]),
        np.concatenate([ages, steps[begun] + 1]),
        np.concatenate([states, first[begun]]),
        np.concatenate([counts.counts, np.ones_like(begun)]),
    )
    some = evenly_spread(np.arange(log.num_arms), MOST_ARMS)
    if len(some) < log.num_arms:
        notes.append(f"the law of all arms was fitted to {len(some):,} of them, evenly spread")
    traits = _traits_of_kinds(log, notes)
    options = {"points": SHARED, "draws": QUICK_DRAWS} if quick else {}
    law = fit_law(
        seen.of_arms(some), traits[log.kind_of[some]], controlled=controlled, progress=progress,
        **options,
    )  # fmt: skip
    return Population(law, traits, log.kind_of, seen, pays, always)


def _traits_of_kinds(log: Log, notes: list[str]) -> FloatArray:
    """Traits [kinds, p]: a one, and contrasts in which no kind comes first."""
    numbers = np.bincount(log.kind_of, minlength=len(log.kinds))
    largest = np.sort(np.argsort(-numbers, kind="stable")[:MOST_KINDS])
    if len(largest) < len(log.kinds):
        notes.append(
            f"the law tells the {MOST_KINDS} kinds with the most arms apart; the others are taken "
            "to be like all arms"
        )
    count = len(largest)
    found = np.zeros((len(log.kinds), count))
    found[:, 0] = 1
    for j in range(1, count):
        found[largest[:j], j] = np.sqrt(0.5 / (j * (j + 1)))
        found[largest[j], j] = -j * found[largest[0], j]
    return found


def evenly_spread(arms: IntArray, most: int) -> IntArray:
    """Return at most so many arms, evenly spread."""
    return arms[:: max(-(-len(arms) // most), 1)]
