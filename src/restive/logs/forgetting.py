"""How long to remember: whether what was seen long ago still helps to foretell what comes.

Each sighting is foretold from those before it, of which one that is F steps older weighs 1/e, as
for a learner with `forget_after=F`; and as by a learner that forgets nothing. The better memory
gives the larger chance to what was seen: the sum of the logarithms is its score.

Where nothing changes and the law of the arms is right, the product of all ratios of chances,
averaged over memories, is a fair game that began with 1: with 5% at most it ever reaches 20 (Ville
1939), however often one looks. So a change is found where it reaches 20. Since laws are estimated,
and stand on points that may be far apart, two more things are asked. The interval of the gain, with
steps as units, must be above zero. And the memory must beat its *even twin*, which holds as much
evidence, all sightings weighing the same, by more than chance: a short memory is also a vague one,
which helps where arms are more alike than their law says, and only what is recent about it speaks
for a change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponentials, logarithms
from restive.kernels.logs.forgetting import Chances, Looks, Remembered, score_cells, score_moves
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior
from restive.logs.finite import stacked
from restive.logs.fitted import FittedLog
from restive.logs.sample import sample_of
from restive.problem.beliefs import log_chances
from restive.threads import in_order

__all__ = [
    "ArmLaw",
    "ForgettingAdvice",
    "Sightings",
    "advised_forgetting",
    "laws_of",
    "measured_forgetting",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Progress = Callable[[float], None]

SHORTEST = 10.0  # steps: the first memory that is tried
FADINGS = 20  # in as many steps as a memory has: as learners do
FALSE_ALARMS = 0.05
WIDTH = 1.645  # of a 90% interval
MOST_UNITS = 1000  # of the standard error: steps, or stretches of them
LEAST_SIGHTINGS = 100
MOST_OF_AN_ARM = 30_000  # sightings, the latest
HELD = 1 << 22  # chances at once
TOGETHER = 1 << 15  # sightings of arms that a thread takes at a time
LEAST_LOG = -700.0
POINTS = 2048  # that stand for a continuous prior


class Sightings(NamedTuple):
    """What was seen of some arms, sorted by arm, then step; first sightings are left out."""

    starts: IntArray  # [K + 1] where each arm's begin
    steps: IntArray  # [R] from 0
    before: IntArray  # [R] the row (`logs.counts`) in which the arm was last seen
    ages: IntArray  # [R] steps since then
    states: IntArray  # [R]

    def picked(self, arms: Sequence[int]) -> Sightings:
        """Return those of some arms."""
        own = [np.arange(self.starts[k], self.starts[k + 1]) for k in arms]
        rows = np.concatenate([np.zeros(0, dtype=np.int64), *own])
        starts = np.concatenate([[0], np.cumsum([len(one) for one in own])]).astype(np.int64)
        return Sightings(starts, *(column[rows] for column in self[1:]))


class ArmChains(NamedTuple):
    """Chains that arms may have; those of one law are one object."""

    first: FloatArray  # [M, R, S] the step after a sighting, by its row
    passive: FloatArray  # [M, S, S] the steps after that
    may_rule_out: bool  # whether what they call impossible is so


class ArmLaw(NamedTuple):
    """What an arm may be before anything was seen: weighted chains, or Dirichlet rows."""

    chains: ArmChains | None
    weights: FloatArray  # [M]; or parameters [R, S] of the rows


@dataclass(frozen=True, eq=False, repr=False)
class ForgettingAdvice:
    """How long to remember, and how certain that is.

    Gains are mean differences in log chance of a sighting, natural logarithms, between a memory of
    so many steps and one that forgets nothing. `forget_after` is what to give a learner: None where
    a change was not found.
    """

    tried: FloatArray  # [F] memories, in steps
    gains: FloatArray  # [F] over forgetting nothing
    best: float  # of those tried, with the largest gain
    gain: float  # of the best
    low: float  # ends of its 90% interval
    high: float
    over_even: float  # gain of the best over its even twin
    over_even_low: float  # lower end of its 90% interval
    odds: float  # what the fair game stands at; logarithm
    num_sightings: int  # that were foretold

    def __repr__(self) -> str:
        gain = f"best {self.best:g}, gain {self.gain:.2g} ({self.low:.2g} to {self.high:.2g})"
        return f"ForgettingAdvice({self.verdict!r}, {gain}, {self.num_sightings:,} sightings)"

    @property
    def verdict(self) -> str:
        """Whether the arms change ("changes"), may do so ("may change") or "steady"."""
        if self.odds < log(1 / FALSE_ALARMS) or self.over_even_low <= 0:
            return "steady"
        return "changes" if self.low > 0 else "may change"

    @property
    def forget_after(self) -> float | None:
        """What to give a learner as `forget_after`; None where no change was found."""
        return self.best if self.verdict == "changes" else None


def advised_forgetting(
    fitted: FittedLog, progress: Progress = lambda share: None
) -> ForgettingAdvice | None:
    """Find how long to remember what a log shows; None where it shows too little.

    Arms are those that checks look at: in a large log some that are evenly spread, and of an arm
    that was seen very often the latest sightings.
    """
    known = laws_of(fitted.kind_priors, by_mode=fitted.by_mode)
    if known is None:
        return None
    sample = sample_of(fitted.log, fitted.controlled, fitted.seen)
    rows = np.flatnonzero(sample.foretold)
    left = np.bincount(sample.owner[rows], minlength=sample.num_arms)
    left = np.cumsum(left)[sample.owner[rows]] - np.arange(len(rows))  # of its arm, with itself
    rows = rows[left <= MOST_OF_AN_ARM]
    seen = Sightings(
        np.searchsorted(sample.owner[rows], np.arange(sample.num_arms + 1)),
        sample.steps[rows], sample.before[rows], sample.ages[rows], sample.states[rows],
    )  # fmt: skip
    of = [known[kind] for kind in fitted.log.kind_of[sample.arms].tolist()]
    return measured_forgetting(seen, of, progress)


def laws_of(priors: Sequence[object], *, by_mode: bool = False) -> list[ArmLaw] | None:
    """Return what arms with these priors may be; None if some are of another make.

    `by_mode` tells that rows say whether the arm was pulled (`logs.counts`).
    """
    found, known, drawn = list[ArmLaw](), dict[int, ArmChains](), dict[int, ArmLaw]()
    for prior in priors:
        if isinstance(prior, ArmPrior):
            chains = known.get(id(prior.candidates))
            if chains is None:
                active, passive = stacked(prior.candidates)
                first = np.concatenate([active, passive], axis=1) if by_mode else active
                chains = known[id(prior.candidates)] = ArmChains(first, passive, True)
            found.append(ArmLaw(chains, prior.weights))
        elif not isinstance(prior, DirichletArmPrior):
            return None
        elif prior.always_seen:
            alphas = prior.posterior_alphas
            alike = by_mode and len(alphas) == prior.num_states
            found.append(ArmLaw(None, np.concatenate([alphas, alphas]) if alike else alphas))
        else:
            law = drawn.get(id(prior))
            law = drawn[id(prior)] = law or _drawn(prior)
            found.append(law)
    return found


def _drawn(prior: DirichletArmPrior) -> ArmLaw:
    """Return chains that stand for a continuous prior: many, as no evidence picks them."""
    more = DirichletArmPrior(
        prior.active, prior.passive, prior.rewards, prior.passive_rewards,
        max(POINTS, prior.num_particles), prior.states,
    )  # fmt: skip
    found = more.given(prior.evidence).particles()
    return ArmLaw(ArmChains(found.active, found.passive, False), found.weights)


def measured_forgetting(
    seen: Sightings, laws: Sequence[ArmLaw], progress: Progress = lambda share: None
) -> ForgettingAdvice | None:
    """Find how long to remember what was seen of arms that have these laws [K].

    None where too little was seen to tell.
    """
    if len(seen.steps) < LEAST_SIGHTINGS:
        return None
    first, span = int(seen.steps.min()), int(np.ptp(seen.steps)) + 1
    tried = _memories(span)
    if not len(tried):
        return None
    seen = seen._replace(steps=seen.steps - first)
    units = _Units.over(span)
    scores = _scores(seen, laws, [inf, *tried.tolist()], units, lambda s: progress(0.9 * s))
    count = len(seen.steps)
    gains = (scores[1:] - scores[0]).sum(axis=1)
    best = int(gains.argmax())
    even = _scores(
        seen, laws, [float(tried[best])], units, lambda s: progress(0.9 + 0.1 * s), even=True
    )
    sizes = np.bincount(units.of(seen.steps), minlength=units.number)
    mean, half = _mean(scores[1 + best] - scores[0], sizes)
    over_even, half_over_even = _mean(scores[1 + best] - even[0], sizes)
    largest = float(gains.max())
    odds = largest + float(logarithms(exponentials(gains - largest).mean()))
    return ForgettingAdvice(
        tried=tried,
        gains=gains / count,
        best=float(tried[best]),
        gain=mean,
        low=mean - half,
        high=mean + half,
        over_even=over_even,
        over_even_low=over_even - half_over_even,
        odds=odds,
        num_sightings=count,
    )


def _mean(gained: FloatArray, sizes: IntArray) -> tuple[float, float]:
    """Mean gain of a sighting, and half of its 90% interval; units [U] have `sizes` sightings."""
    count, number = int(sizes.sum()), len(sizes)
    mean = float(gained.sum()) / count
    spread = float(((gained - mean * sizes) ** 2).sum()) * number / max(number - 1, 1)
    return mean, WIDTH * sqrt(spread) / count


class _Units(NamedTuple):
    """Steps, or stretches of them, whose scores are summed up."""

    number: int
    span: int

    @classmethod
    def over(cls, span: int) -> _Units:
        return cls(min(span, MOST_UNITS), span)

    def of(self, steps: IntArray) -> IntArray:
        return np.asarray(steps * self.number // self.span)


def _memories(span: int) -> FloatArray:
    """Memories that are tried: 10, 20, 50, 100, and so on, up to all steps."""
    found, memory = [], SHORTEST
    while memory <= span:
        found += [m for m in (memory, 2 * memory, 5 * memory) if m <= span]
        memory *= 10
    return np.array(found)


def _scores(
    seen: Sightings, laws: Sequence[ArmLaw], memories: Sequence[float], units: _Units,
    progress: Progress, *, even: bool = False,
) -> FloatArray:  # fmt: skip
    """Log chances [memories, units] of what was seen."""
    found = np.zeros((len(memories), units.number))

    def one(arms: list[int]) -> FloatArray:
        return _scored(seen.picked(arms), [laws[k] for k in arms], memories, units, even)

    done, total = 0, max(len(laws), 1)
    parts = list(_parts(seen, laws))
    for part, own in zip(parts, in_order(one, parts), strict=True):
        found += own
        done += len(part)
        progress(done / total)
    return found


def _parts(seen: Sightings, laws: Sequence[ArmLaw]) -> Iterator[list[int]]:
    """Yield arms that have the same chains, some at a time."""
    alike: dict[int, list[int]] = {}
    for k, law in enumerate(laws):
        alike.setdefault(id(law.chains), []).append(k)
    sizes = np.diff(seen.starts)
    for arms in alike.values():
        part: list[int] = []
        for k in arms:
            part.append(k)
            if sizes[part].sum() >= TOGETHER:
                yield part
                part = []
        if part:
            yield part


def _scored(
    seen: Sightings, laws: Sequence[ArmLaw], memories: Sequence[float], units: _Units, even: bool
) -> FloatArray:
    """Log chances [memories, units] of what was seen of arms with the same chains."""
    out = np.zeros((len(memories), units.number))
    fading = [_Fading.of(memory) for memory in memories]
    own_units = units.of(seen.steps)
    chains, starts = laws[0].chains, seen.starts.tolist()
    if chains is None:
        for law, begin, end in zip(laws, starts, starts[1:], strict=False):
            alphas = np.ascontiguousarray(law.weights)
            cells = seen.before[begin:end] * alphas.shape[1] + seen.states[begin:end]
            for fade, row in zip(fading, out, strict=True):
                blocks = seen.steps[begin:end] // fade.steps
                looks = Looks(cells, blocks, own_units[begin:end])
                score_moves(looks, alphas, fade.log_share, even, row)
        return out
    size = len(chains.passive)
    room = max(HELD // size, 1)
    table = _Table.of(chains, seen, slice(None), room)
    for law, begin, end in zip(laws, starts, starts[1:], strict=False):
        prior = np.full(-(-size // 4) * 4, -inf)
        prior[:size] = logarithms(law.weights)
        known = [
            Remembered(np.zeros(len(prior)), np.zeros(len(prior)), np.zeros(3)) for _ in memories
        ]
        for at in range(begin, end, room):
            some = slice(at, min(at + room, end))
            now = table or _Table.of(chains, seen, some, room)
            assert now is not None  # there are no more cells than sightings
            cells = now.cells[some] if now is table else now.cells
            chances = Chances(now.chances, now.logs, prior)
            for fade, mine, row in zip(fading, known, out, strict=True):
                looks = Looks(cells, seen.steps[some] // fade.steps, own_units[some])
                score_cells(looks, chances, mine, fade.log_share, even, row)
    return out


class _Fading(NamedTuple):
    """How a memory loses what it holds: as a learner's does."""

    steps: int  # of a block
    log_share: float  # of its weight that evidence keeps from one block to the next

    @classmethod
    def of(cls, memory: float) -> _Fading:
        if memory == inf:
            return cls(1, 0.0)
        steps = max(1, int(memory) // FADINGS)
        return cls(steps, -steps / memory)


class _Table(NamedTuple):
    """What chains say of the cells that occur, filled up to a multiple of four chains."""

    cells: IntArray  # [n] of each sighting
    chances: FloatArray  # [C, M]
    logs: FloatArray  # [C, M]

    @classmethod
    def of(cls, chains: ArmChains, seen: Sightings, rows: slice, most: int) -> _Table | None:
        """Tabulate the cells of these sightings; None where there are too many."""
        wide, size = chains.first.shape[1], chains.passive.shape[1]
        packed = (seen.ages[rows] * wide + seen.before[rows]) * size + seen.states[rows]
        distinct, cells = np.unique(packed, return_inverse=True)
        if len(distinct) > most:
            return None
        before, states = np.divmod(distinct, size)
        ages, last = np.divmod(before, wide)
        number = len(chains.passive)
        logs = np.zeros((len(distinct), -(-number // 4) * 4))
        logs[:, :number] = log_chances(chains.first, chains.passive, last, ages, states)
        if not chains.may_rule_out:
            np.maximum(logs, LEAST_LOG, out=logs)
        return cls(cells.astype(np.int64).ravel(), exponentials(logs), logs)
