"""The law of a kind: which arms it has, in which shares, estimated from all its arms together.

Arms of a kind are draws from one law. Where each is seen once or twice, that law is most of what is
known about any of them, so it is worth having in full: not only its mean, but that some arms gain
much from a pull and others nothing. Here it is weights of many candidates, spread over all that an
arm may be (`spread_prior`). With L[k, m] the likelihood of what was seen of arm k if it is
candidate m, and b the law that one starts from, the weights maximise

    sum_k log sum_m w[m] L[k, m]  +  UNKNOWN_ARMS sum_m b[m] log w[m]:

the marginal likelihood of all arms and of a few more of which nothing is known, whose law is b. The
sum is concave in w. Steps of EM lead to its maximum, and extrapolating them (SQUAREM; Varadhan and
Roland 2008) leads there sooner. If the best step that EM can take lets no weight grow by more than
a share e, no law is better by more than e for each arm: that is when the search ends.

Arms that have shown the same are one row with a number. Rows are sorted, and sums are made chunk by
chunk: neither the order of arms and sightings nor the number of threads changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST, counted, require_memory, shown
from restive.errors import ProblemError
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.kinds import (
    add_posteriors,
    extrapolate,
    improve_law,
    write_likelihoods,
    write_log_chances,
)
from restive.learn.priors.finite import ArmPrior
from restive.threads import in_order, stop_if_interrupted

__all__ = ["FIRST_SIGHT", "UNKNOWN_ARMS", "KindEstimate", "estimate_kind", "estimate_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[float], None]

UNKNOWN_ARMS = 20.0  # arms of which nothing is known, beside those seen: a few arms prove little
FIRST_SIGHT = 1 << 20  # the age of an arm's first sighting: its chain has settled by then
CLOSE = 1e-4  # what a better law could add to the logarithm, for each arm, when the search ends
MOST_STEPS = 3000  # of EM
CHUNK = 512  # rows whose sums are made at once; fixed, so that threads change no bit
AT_ONCE = 64  # candidates whose chances are computed at once


@dataclass(frozen=True, eq=False, repr=False)
class KindEstimate:
    """The law of a kind, and how it was found."""

    prior: ArmPrior  # the candidates, with the weights that all arms together speak for
    log_evidence: float  # logarithm of the probability of all that was seen, under that law
    num_arms: int  # of which something was seen
    converged: bool
    num_steps: int  # of EM

    def __repr__(self) -> str:
        end = "" if self.converged else ", not converged"
        return f"KindEstimate({counted(self.num_arms, 'arm')}, {self.prior!r}{end})"


def estimate_kind(
    base: ArmPrior,
    arms: ArrayLike,
    last_states: ArrayLike,
    ages: ArrayLike,
    states: ArrayLike,
    counts: ArrayLike | None = None,
    *,
    pulled: ArrayLike | None = None,
    tolerance: float = CLOSE,
    progress: Progress = lambda share: None,
) -> KindEstimate:
    """Estimate the law of a kind from everything that was seen of its arms.

    Parameters
    ----------
    base
        What an arm may be, and the law of arms of which nothing is known: one of `spread_prior`.
    arms, last_states, ages, states
        Sightings [C]: the arm's number, the state that it was last seen in, how many steps before,
        and the state that it was seen in. An arm's first sighting has the age FIRST_SIGHT, and any
        last state.
    counts
        How often each happened [C]; once by default.
    pulled
        Whether the arm was pulled when it was last seen [C]; by default it was.
    tolerance
        What no other law may add to the logarithm of the posterior, for each arm, when the search
        ends.
    progress
        Called with the share that is done.

    Returns
    -------
    Where nothing was seen, that is `base`.
    """
    size = base.typical.num_states
    if pulled is not None:  # a state of its own for each that was not
        last_states = np.asarray(last_states) + size * ~np.asarray(pulled, dtype=np.bool_)
        size *= 2
    rows = _merged(size, arms, last_states, ages, states, counts)
    if not len(rows.numbers):
        return KindEstimate(base, 0.0, 0, True, 0)
    likelihoods, tops = _likelihoods(base, rows, progress, pulled is not None)
    search = _Search(likelihoods, rows.numbers, base.weights, tolerance)
    law, evidence = search.run(progress)
    evidence += fsum(rows.numbers * tops)
    prior = base.with_weights(law[: len(base.candidates)])
    num_arms = int(rows.numbers.sum())
    return KindEstimate(prior, evidence, num_arms, search.converged, search.steps)


def estimate_law(base: FloatArray, likelihoods: FloatArray) -> FloatArray:
    """Return the law [M] of a kind from its arms' likelihoods [arms, M], up to a factor for each.

    Parameters
    ----------
    base
        The law [M] of arms of which nothing is known.
    likelihoods
        Of what was seen of each arm; no row is all zeros.
    """
    full = -(-len(base) // LANES) * LANES
    rows = np.zeros((len(likelihoods), full))
    rows[:, : len(base)] = likelihoods / likelihoods.max(axis=1)[:, None]
    law, _ = _Search(rows, np.ones(len(rows)), base, CLOSE).run(lambda share: None)
    return np.asarray(law[: len(base)] / law[: len(base)].sum())


class _Rows(NamedTuple):
    """What arms have shown: a row for each set of counts, with the number of arms that has it."""

    starts: IntArray  # [rows + 1] where each row's cells begin
    cells: IntArray  # [C] which of the distinct cells
    counts: IntArray  # [C]
    numbers: FloatArray  # [rows]
    distinct: IntArray  # [cells], packed, ascending
    examples: IntArray  # [rows] an arm of each


def _merged(
    size: int, arms: ArrayLike, last_states: ArrayLike, ages: ArrayLike, states: ArrayLike,
    counts: ArrayLike | None,
) -> _Rows:  # fmt: skip
    """Put together what each arm has shown, and the arms that have shown the same."""
    fields = [
        _whole(arms, "arms", 0, MOST),
        _whole(last_states, "last_states", 0, size - 1),
        _whole(ages, "ages", 1, (1 << 62) // size**2),
        _whole(states, "states", 0, size - 1),
    ]
    fields.append(
        np.ones(len(fields[0]), dtype=np.int64)
        if counts is None
        else _whole(counts, "counts", 0, MOST)
    )
    if len({len(field) for field in fields}) > 1:
        raise ProblemError(
            "arms, last_states, ages, states and counts must be of one length, got "
            f"{', '.join(str(len(field)) for field in fields)}"
        )
    arm, last_state, age, state, count = (field[fields[4] > 0] for field in fields)
    # at its first sighting any last state says the same
    last_state = np.where(age >= FIRST_SIGHT, 0, last_state)
    distinct, which = np.unique((age * size + last_state) * size + state, return_inverse=True)
    names, owner = np.unique(arm, return_inverse=True)
    width = max(len(distinct), 1)
    keys, places = np.unique(owner * width + which, return_inverse=True)
    totals = np.zeros(len(keys), dtype=np.int64)
    np.add.at(totals, places, count)
    owner, which = np.divmod(keys, width)
    starts = np.searchsorted(owner, np.arange(len(names) + 1))
    return _alike(names, starts, which, totals, distinct)


def _alike(
    names: IntArray, starts: IntArray, cells: IntArray, counts: IntArray, distinct: IntArray
) -> _Rows:
    """Make one row of arms with the same cells and counts; shorter ones come first."""
    lengths = np.diff(starts)
    found: list[tuple[IntArray, IntArray, IntArray]] = []
    for length in np.unique(lengths).tolist():
        own = np.flatnonzero(lengths == length)
        at = starts[own][:, None] + np.arange(length)
        table = np.concatenate([cells[at], counts[at]], axis=1)  # [arms, 2 length]
        rows, first, number = np.unique(table, axis=0, return_index=True, return_counts=True)
        found.append((rows, names[own[first]], number))
    halves = [np.split(rows, 2, axis=1) for rows, _, _ in found]
    sizes = [np.full(len(rows), rows.shape[1] // 2) for rows, _, _ in found]
    return _Rows(
        np.concatenate([[0], np.cumsum(_joined(sizes))]),
        _joined([half[0].ravel() for half in halves]),
        _joined([half[1].ravel() for half in halves]),
        _joined([number for _, _, number in found]).astype(np.float64),
        distinct,
        _joined([example for _, example, _ in found]),
    )


def _joined(parts: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *parts])


def _likelihoods(
    base: ArmPrior, rows: _Rows, progress: Progress, by_mode: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Likelihoods [rows, M], relative to each row's largest, and the logarithms of these [rows].

    M is filled up to a multiple of LANES, with candidates that are not possible.
    """
    count = len(base.candidates)
    full = -(-count // LANES) * LANES
    require_memory(
        8 * full * (len(rows.numbers) + 2 * len(rows.distinct)),
        f"likelihoods of {len(rows.numbers):,} arms and {count:,} candidates",
        "estimate the kind from some of its arms",
    )
    logs = np.ascontiguousarray(_log_chances(base, rows.distinct, full, by_mode).T)
    likelihoods, tops = np.empty((len(rows.numbers), full)), np.empty(len(rows.numbers))

    def write(some: slice) -> None:
        starts = rows.starts[some.start : some.stop + 1]
        write_likelihoods(starts, rows.cells, rows.counts, logs, likelihoods[some], tops[some])

    for _ in in_order(write, _chunks(len(tops), CHUNK)):
        pass
    impossible = np.flatnonzero(tops == -np.inf)
    if len(impossible):
        raise ProblemError(
            f"arm {rows.examples[impossible[0]]}: what was seen of it has probability zero under "
            "every candidate of the kind"
        )
    progress(0.1)
    return likelihoods, tops


def _log_chances(base: ArmPrior, cells: IntArray, full: int, by_mode: bool) -> FloatArray:
    """Log chances [M, cells] of cells, under each candidate.

    By mode, an arm has twice as many states, the later ones left at once: those in which it was
    seen but not pulled.
    """
    active = np.array([arm.active for arm in base.candidates])
    passive = np.array([arm.passive for arm in base.candidates])
    if by_mode:
        left = np.zeros_like(passive)
        active, passive = (np.block([[part, left], [passive, left]]) for part in (active, passive))
    logs = np.full((full, len(cells)), -np.inf)

    def write(some: slice) -> None:
        work = np.empty((3, *active.shape[1:]))
        write_log_chances(active[some], passive[some], cells, work, logs[some])

    for _ in in_order(write, _chunks(len(active), AT_ONCE)):
        pass
    return logs


def _chunks(count: int, size: int) -> Iterator[slice]:
    return (slice(at, min(at + size, count)) for at in range(0, count, size))


class _Step(NamedTuple):
    """A law, and what a step of EM makes of it."""

    law: FloatArray  # [M]
    better: FloatArray  # [M]
    evidence: float  # log probability of what was seen under `law`
    value: float  # evidence and log density of the prior
    growth: float  # the largest share by which a weight grows


class _Search:
    """The search for a law, by steps of EM that are extrapolated."""

    def __init__(
        self, likelihoods: FloatArray, numbers: FloatArray, base: FloatArray, tolerance: float
    ) -> None:
        self.likelihoods, self.numbers, self.tolerance = likelihoods, numbers, tolerance
        self.start = np.zeros(likelihoods.shape[1])
        self.start[: len(base)] = base
        self.flat = UNKNOWN_ARMS * self.start
        self.num_arms = float(numbers.sum())
        self.least = self.flat / (self.num_arms + UNKNOWN_ARMS)  # no step leads below this
        self.steps, self.converged = 0, False

    def run(self, progress: Progress) -> tuple[FloatArray, float]:
        """Return the law [M] and its log evidence."""
        here = self.step(self.start)
        while not self._ends(here):
            then = self.step(here.better)
            if self._ends(then):
                return then.law, then.evidence
            far = self.step(self._extrapolated(here, then))
            # never worse than before: EM's own step is there to fall back on
            here = far if far.value >= then.value else self.step(then.better)
            progress(0.1 + 0.9 * min(1.0, (self.tolerance / here.growth) ** 0.5))
        progress(1.0)
        return here.law, here.evidence

    def _ends(self, step: _Step) -> bool:
        self.converged = step.growth <= self.tolerance
        return self.converged or self.steps >= MOST_STEPS

    def step(self, law: FloatArray) -> _Step:
        """Take a step of EM."""

        def some(rows: slice) -> tuple[float, FloatArray]:
            sums = np.zeros(len(law))
            own = add_posteriors(self.likelihoods[rows], self.numbers[rows], law, sums)
            return own, sums

        sums, evidence = np.zeros(len(law)), 0.0
        chunks = _chunks(len(self.numbers), CHUNK)
        few = len(self.numbers) <= 2 * CHUNK
        for own, part in map(some, chunks) if few else in_order(some, chunks):
            evidence += own
            sums += part
        stop_if_interrupted()
        self.steps += 1
        better = np.empty(len(law))
        density, growth = improve_law(law, sums, self.flat, self.num_arms, better)
        return _Step(law, better, evidence, evidence + density, growth)

    def _extrapolated(self, here: _Step, then: _Step) -> FloatArray:
        """Go on in the direction of two steps, as far as they say that it leads."""
        far = np.empty(len(here.law))
        extrapolate(here.law, then.law, then.better, self.least, far)
        return far


def _whole(values: ArrayLike, field: str, least: int, most: int) -> IntArray:
    """Return whole numbers [C] within a range, or say which field is wrong."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ProblemError(f"{field} must be a list of whole numbers, got {shown(values)}")
    if array.size and not least <= array.min() <= array.max() <= most:
        wrong = array.min() if array.min() < least else array.max()
        raise ProblemError(f"{field} must be from {least} to {most:,}, got {wrong}")
    return array.astype(np.int64)
