"""Checks: whether independent Markov chains describe a log, and how far they are off.

Each check is a number computed from the log and, for comparison, from 399 logs that the fitted
chains would have left, seen at the same moments (for memory: logs with each arm's states shuffled).
It is significant if few of these are as far out: pooled over arms, or arm by arm. Both ways are
looked at, so the smaller share counts twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, isnan, nan

import numpy as np
from numpy.typing import NDArray

from restive.kernels.logs.checks import shuffle_states, simulate_states
from restive.logs.comparisons import (
    Comparison,
    between_arms,
    by_group,
    by_half,
    by_pull,
    gaps_by_state,
    later_by_earlier,
    next_by_last,
    next_by_second_last,
)
from restive.logs.fitted import FittedLog
from restive.logs.redrawn import next_means, whole_chains
from restive.logs.sample import Sample, drawn_arms, sample_of
from restive.logs.time_steps import WEEKDAYS
from restive.threads import in_order

__all__ = ["LEVEL", "REPLICATES", "Check", "check_log"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REPLICATES = 399
AT_ONCE = 8  # replicates that a thread takes at a time
LEVEL = 0.01  # at which a check fails
LITTLE_MEMORY = 0.1  # a memory of less, for certain, is none; else too little was seen to tell
LAGS = (2, 3, 7, 14, 30)
BLOCKS_OF_HOURS = 4


@dataclass(frozen=True)
class Check:
    """One question put to the log.

    `verdict` is "holds", "fails" or "undecided" (too little to look at). `size` is how far the log
    is off in the unit that `finding` names, `p` the share of fitted logs as far off (at least
    1/400, doubled), `z` how many of their standard deviations. `arms_off` counts the arms that are
    beyond 95% of their own replicates, and `worst_arm` is one that is beyond all arms' in 99% of
    the replicates, or None.
    """

    name: str
    question: str
    verdict: str
    size: float
    p: float
    z: float
    finding: str
    advice: str = ""
    arms_off: int = 0
    num_arms: int = 0
    worst_arm: str | None = None


@dataclass(frozen=True, eq=False)
class _Measured:
    """A comparison in the log (row 0) and in its replicates."""

    covariance: FloatArray  # [1 + B, G, K']
    x_variance: FloatArray
    y_variance: FloatArray

    def slope(self, group: int = 0) -> float:
        """By how much y differs for a difference of 1 in x, over all arms."""
        return float(self._slopes(group, slice(1))[0])

    def mean_slope(self) -> float:
        """Mean over replicates: what the chains say."""
        return float(self._slopes(0, slice(1, None)).mean())

    def surely_below(self, size: float, most: float) -> bool:
        """Whether a size is less than `most` either way, for 95%."""
        return abs(size) + 1.96 * float(self._slopes(0, slice(1, None)).std()) < most

    def _slopes(self, group: int, rows: slice) -> FloatArray:
        spread = self.x_variance[rows, group].sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            slopes = self.covariance[rows, group].sum(axis=1) / spread
        return np.where(spread > 0, slopes, nan)

    @property
    def pooled(self) -> FloatArray:
        """Standard deviations [1 + B, G] from the replicates' mean, over all arms together."""
        return _standardised(self.covariance.sum(axis=2))

    @property
    def by_arm(self) -> FloatArray:
        """The same for each arm [1 + B, G, K']."""
        return _standardised(self.covariance)

    @property
    def p(self) -> float:
        """Share of replicates as far out, whether all arms go one way or each its own."""
        one_way = _share(np.abs(self.pooled).max(axis=1))
        each = _share((self.by_arm**2).sum(axis=(1, 2)))
        return min(1.0, 2 * min(one_way, each))

    def worst_arm(self, sample: Sample) -> str | None:
        """An arm that is further out than any arm in 99% of the replicates."""
        furthest = np.abs(self.by_arm).max(axis=1)  # over groups
        if _share(furthest.max(axis=1)) > LEVEL:
            return None
        return sample.log.arms[int(sample.arms[int(furthest[0].argmax())])]

    @property
    def arms_off(self) -> int:
        """How many arms are beyond 95% of their replicates."""
        far = np.abs(self.by_arm).max(axis=1)
        return int(((far >= far[0]).mean(axis=0) <= 0.05).sum())


def _standardised(values: FloatArray) -> FloatArray:
    deviation = values - values.mean(axis=0)
    spread = deviation.std(axis=0)
    return np.asarray(np.divide(deviation, spread, out=np.zeros_like(values), where=spread > 1e-12))


def _share(far: FloatArray) -> float:
    """Share of all rows, the log's own among them, that are at least as far out as row 0."""
    return float((far >= far[0] * (1 - 1e-9)).mean())


def check_log(
    fitted: FittedLog,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> tuple[Check, ...]:
    """Put all questions to a log that its sightings can answer."""
    sample = sample_of(fitted.log, fitted.controlled, fitted.seen)
    groups = _questions(sample, fitted)
    asked = [q for q in groups if all(c.possible for c in q.comparisons)]
    rng = np.random.default_rng([seed, 1])
    arms = drawn_arms(fitted, sample, REPLICATES, rng)
    measured = _measured(sample, asked, arms, seed, progress)
    found = dict(zip((q.name for q in asked), measured, strict=True))
    return tuple(
        _judged(q, found[q.name], sample) if q.name in found else _undecided(q) for q in groups
    )


@dataclass(frozen=True, eq=False)
class _Question:
    name: str
    question: str
    comparisons: Sequence[Comparison]
    tell: Callable[[_Measured], tuple[float, str]]  # size and finding
    advice: str
    labels: Sequence[str] = ("",)
    shuffled: bool = False  # compared with shuffled states instead of chains


def _questions(sample: Sample, fitted: FittedLog) -> list[_Question]:
    found = [
        _memory(sample),
        _order_two(sample),
        *(_lag(sample, lag) for lag in LAGS if lag < sample.log.num_steps // 2),
        _drift(sample),
        *_calendar(sample),
        _dependence(sample),
    ]
    if (sample.ages[sample.place > 0] > 1).any():
        found.append(_gaps(sample))
    if fitted.log.has_pulled and not fitted.controlled:
        found.append(_pulls(sample))
    return found


def _memory(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        # shuffled, states of an arm seen a few times go against each other: that is no memory
        size = found.slope() - found.mean_slope()
        return size, f"a state is {size:+.3f} more often good after good than after bad"

    return _Question(
        "memory", "Does it matter at all what was seen before?", [next_by_last(sample)], tell,
        "nothing is gained by more than each arm's share of good states: pull the best arms",
        shuffled=True,
    )  # fmt: skip


def _order_two(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        size = found.slope() - found.mean_slope()
        return size, f"{size:+.3f} more often good if good in the second last sighting too"

    return _Question(
        "order 2", "Is the last sighting all that matters?", [next_by_second_last(sample)], tell,
        "arms remember more than one step, so beliefs fade too fast or too slowly: try longer "
        "steps, or states that say more",
    )  # fmt: skip


def _lag(sample: Sample, lag: int) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        seen, chain = found.slope(), found.mean_slope()
        return seen - chain, f"correlation over {lag} steps {seen:.3f}, the chains say {chain:.3f}"

    return _Question(
        f"{lag} steps later", f"Are states {lag} steps later as the chain says?",
        [later_by_earlier(sample, lag)], tell,
        f"beliefs of age {lag} are off: policies wait too long or not long enough",
    )  # fmt: skip


def _drift(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        size = found.slope()
        return size, f"{size:+.3f} more often good in the second half, from the same last state"

    return _Question(
        "drift", "Do arms move in the second half of the log as in the first?", [by_half(sample)],
        tell, "fit a later part of the log alone, and fit again from time to time",
    )  # fmt: skip


def _calendar(sample: Sample) -> list[_Question]:
    steps = sample.steps + sample.log.first_step
    found = []
    weekdays, hours = sample.log.calendar.weekdays(steps), sample.log.calendar.hours(steps)
    if weekdays is not None and sample.log.num_steps >= 14:
        found.append(_grouped("weekday", "weekday", sample, weekdays, WEEKDAYS))
    if hours is not None:
        labels = [f"{h} to {h + BLOCKS_OF_HOURS} h" for h in range(0, 24, BLOCKS_OF_HOURS)]
        found.append(_grouped("hour", "time of day", sample, hours // BLOCKS_OF_HOURS, labels))
    return found


def _grouped(
    name: str, what: str, sample: Sample, group: IntArray, labels: Sequence[str]
) -> _Question:
    there = [g for g in range(len(labels)) if (group == g).any()]

    def tell(found: _Measured) -> tuple[float, str]:
        at = int(np.abs(found.pooled[0]).argmax())
        size = found.slope(at)
        return size, f"{labels[there[at]]}: {size:+.3f} more often good, from the same last state"

    return _Question(
        name, f"Do arms move alike at every {what}?",
        [by_group(sample, group, g) for g in there], tell,
        f"the {what} matters and the chain does not know it: fit each part on its own",
    )  # fmt: skip


def _dependence(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        size = found.slope()
        return size, f"arms seen in the same step have correlation {size:.3f}"

    return _Question(
        "dependence", "Do arms move independently of each other?", [between_arms(sample)], tell,
        "something common moves the arms: intervals for sums over arms are too narrow, and what "
        "one arm shows says something about the others",
    )  # fmt: skip


def _gaps(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        spread = found.y_variance[0].sum()
        ratio = exp(found.covariance[0].sum() / spread) if spread > 0 else nan
        return (
            ratio - 1,
            f"after good it takes {ratio:.2f} times as long as after bad to be seen again",
        )

    return _Question(
        "gaps", "Is an arm seen again as soon after bad as after good?", [gaps_by_state(sample)],
        tell, "fine if whoever chose the pulls looked at the last state; a fault if arms are not "
        "seen because of the state they are in now",
    )  # fmt: skip


def _pulls(sample: Sample) -> _Question:
    def tell(found: _Measured) -> tuple[float, str]:
        size = found.slope()
        return size, f"{size:+.3f} more often good after a pull, from the same last state"

    return _Question(
        "pulls", "Do pulled and unpulled arms move alike?", [by_pull(sample)], tell,
        "pulling changes how arms move: fit with controlled, which uses pulled sightings only",
    )  # fmt: skip


def _measured(
    sample: Sample, asked: Sequence[_Question], arms: tuple[FloatArray, FloatArray], seed: int,
    progress: Callable[[float], None],
) -> list[_Measured]:  # fmt: skip
    shapes = [(3, 1 + REPLICATES, len(q.comparisons), sample.num_arms) for q in asked]
    tables = [np.zeros(shape) for shape in shapes]
    expected = [np.zeros(shape[1:]) for shape in shapes]  # covariances, a step at a time
    ages = np.maximum(sample.ages, 1)

    def one(row: int) -> None:
        drawn, shuffled = sample.states.astype(np.int16), sample.states.astype(np.int16)
        if row:
            active, passive = arms[0][row - 1], arms[1][row - 1]
            shuffle_states(sample.starts, np.uint64(seed), row, shuffled)
            if sample.next_only:
                drawn = whole_chains(sample, active, passive, np.random.default_rng([seed, 4, row]))
            else:
                simulate_states(sample.starts, ages, active, passive, np.uint64(seed), row, drawn)
        out = np.empty((sample.num_arms, 3))
        if sample.next_only:
            if not row:
                active, passive = (matrices.mean(axis=0) for matrices in arms)
            means = np.concatenate([drawn, next_means(sample, active, passive, drawn)])
            drawn, shuffled = np.tile(drawn, 2), np.tile(shuffled, 2)
        for question, table, said in zip(asked, tables, expected, strict=True):
            for group, comparison in enumerate(question.comparisons):
                comparison.measure(shuffled if question.shuffled else drawn, out)
                table[:, row, group] = out.T
                if sample.next_only and not question.shuffled:
                    comparison.measure(means, out)
                    said[row, group] = out[:, 0]

    one(0)

    def some(rows: range) -> int:
        for row in rows:
            one(row)
        return rows[-1]

    parts = [range(b, min(b + AT_ONCE, 1 + REPLICATES)) for b in range(1, 1 + REPLICATES, AT_ONCE)]
    for done in in_order(some, parts):
        progress(done / REPLICATES)
    if sample.next_only:  # as far from what is expected of the log as chains are from their own
        for question, table, said in zip(asked, tables, expected, strict=True):
            if not question.shuffled:
                table[0, 1:] += said[:1] - said[1:]
                table[1, 1:] = table[1, :1]
    return [_Measured(*table) for table in tables]


def _judged(question: _Question, found: _Measured, sample: Sample) -> Check:
    size, finding = question.tell(found)
    if isnan(size):
        return _undecided(question, "nothing varies that could be compared")
    p = found.p
    far = p <= LEVEL
    # memory is what is hoped for, everything else is a fault
    good = far if question.shuffled else not far
    verdict = "holds" if good else "fails"
    if question.shuffled and not good and not found.surely_below(size, LITTLE_MEMORY):
        verdict, finding = "undecided", f"{finding}, but too few sightings to tell"
    at = int(np.abs(found.pooled[0]).argmax())
    return Check(
        name=question.name,
        question=question.question,
        verdict=verdict,
        size=size,
        p=p,
        z=float(found.pooled[0, at]),
        finding=finding,
        advice=question.advice if verdict == "fails" else "",
        arms_off=found.arms_off,
        num_arms=sample.num_arms,
        worst_arm=found.worst_arm(sample),
    )


def _undecided(question: _Question, finding: str = "too few sightings to tell") -> Check:
    return Check(question.name, question.question, "undecided", nan, nan, nan, finding)
