"""What checks compare: items, each an x and a y that a right chain would leave unrelated.

A check's number for an arm is the covariance of x and y within strata (groups of items with the
same last state and about the same age, say). It is computed in the log and in logs that the fitted
chains would have left, seen at the same moments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithms
from restive.kernels.logs.checks import Items, covariances, step_covariances
from restive.logs.sample import Sample

__all__ = [
    "Comparison",
    "between_arms",
    "by_group",
    "by_half",
    "by_pull",
    "gaps_by_state",
    "later_by_earlier",
    "next_by_last",
    "next_by_second_last",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
States = NDArray[np.int16]

LEAST_ITEMS = 50


@dataclass(frozen=True, eq=False)
class Comparison:
    """One number per arm, as a function of the states seen: `measure(states, out)`.

    `out` [K', 3] gets covariances, variances of x and variances of y.
    """

    measure: Callable[[States, FloatArray], None]
    num_items: int

    @property
    def possible(self) -> bool:
        """Whether there is enough to compare."""
        return self.num_items >= LEAST_ITEMS


def _items(
    sample: Sample, target: IntArray, stratum: IntArray, *, source: IntArray | None = None,
    given: NDArray[Any] | None = None, refined_by: IntArray | None = None,
) -> Comparison:  # fmt: skip
    """Compare x, a sighting's state (`source`) or a number `given`, with the targets' states."""
    if sample.by_mode:
        stratum = 2 * stratum + sample.pulled[np.maximum(target - 1, 0)]
    spread = int(stratum.max(initial=0)) + 1
    distinct, which = np.unique(sample.owner[target] * spread + stratum, return_inverse=True)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(len(distinct) + 1))
    none = np.zeros(0, dtype=np.int32)
    items = Items(
        (target[order] + sample.drawn_at).astype(np.int32),
        none if source is None else source[order].astype(np.int32),
        np.zeros(0) if given is None else given[order].astype(np.float64),
        none if refined_by is None else refined_by[order].astype(np.int32),
        starts.astype(np.int64),
        distinct // spread,
    )

    def measure(states: States, out: FloatArray) -> None:
        # scratch of its own: replicates are measured on several threads
        covariances(states, sample.scores, items, np.empty((sample.log.num_states, 6)), out)

    return Comparison(measure, len(target))


def _age_class(ages: IntArray) -> IntArray:
    """Ages told apart: 1 to 4, then ever longer stretches, two for each doubling."""
    halves = np.frexp(ages.astype(np.float64) ** 2)[1] - 1  # the whole part of 2 log2, exactly
    return np.where(ages <= 4, ages, halves).astype(np.int64)


def _seen_again(sample: Sample) -> IntArray:
    return np.flatnonzero(sample.foretold)


def next_by_last(sample: Sample) -> Comparison:
    """Whether a state goes with the one seen before: memory at all."""
    target = _seen_again(sample)
    return _items(sample, target, _age_class(sample.ages[target]), source=target - 1)


def next_by_second_last(sample: Sample) -> Comparison:
    """Whether a state goes with the second last one, where the last one is the same: order 2."""
    target = np.flatnonzero((sample.place >= 2) & sample.foretold)
    return _items(
        sample, target, _age_class(sample.ages[target]), source=target - 2, refined_by=target - 1
    )


def later_by_earlier(sample: Sample, lag: int) -> Comparison:
    """How a state goes with that of `lag` steps before: Chapman and Kolmogorov."""
    key = sample.owner * (2 * sample.log.num_steps) + sample.steps  # ascending
    source = np.searchsorted(key, key - lag)
    source = np.minimum(source, len(key) - 1)
    there = (key[source] == key - lag) & (sample.owner[source] == sample.owner)
    target = np.flatnonzero(there)
    return _items(sample, target, np.zeros_like(target), source=source[target])


def by_half(sample: Sample) -> Comparison:
    """Whether arms move otherwise in the second half of the log: drift."""
    target = _seen_again(sample)
    late = sample.steps[target] >= sample.log.num_steps // 2
    return _items(
        sample, target, _age_class(sample.ages[target]), given=late, refined_by=target - 1
    )


def by_group(sample: Sample, group: IntArray, chosen: int) -> Comparison:
    """Whether arms move otherwise into steps of one group (a weekday, say) than into others."""
    target = _seen_again(sample)
    return _items(
        sample, target, _age_class(sample.ages[target]), given=group[target] == chosen,
        refined_by=target - 1,
    )  # fmt: skip


def gaps_by_state(sample: Sample) -> Comparison:
    """Whether the gap after a sighting depends on the state that was seen."""
    target = np.flatnonzero(sample.place >= 1) - 1
    gaps = sample.ages[target + 1]
    return _items(sample, target, np.zeros_like(target), given=logarithms(gaps))


def by_pull(sample: Sample) -> Comparison:
    """Whether arms that were pulled move otherwise in the next step than those only seen."""
    target = np.flatnonzero(sample.ages == 1)
    return _items(
        sample, target, np.zeros_like(target), given=sample.pulled[target - 1],
        refined_by=target - 1,
    )  # fmt: skip


def between_arms(sample: Sample) -> Comparison:
    """Whether arms seen in the same step are good or bad together."""
    distinct, step, counts = np.unique(sample.steps, return_inverse=True, return_counts=True)
    which = step.ravel().astype(np.int32)
    scores, starts = sample.scores, sample.starts

    def measure(states: States, out: FloatArray) -> None:
        step_covariances(
            states[sample.drawn_at :], scores, starts, which, np.empty((len(distinct), 2)), out
        )

    return Comparison(measure, int(counts[counts > 1].sum()))
