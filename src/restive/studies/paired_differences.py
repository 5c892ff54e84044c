"""Learners compared on common random numbers: "A beats B" is said only where it is so.

All learners of a point of a study play in the same worlds: replication r has the same truth and the
same luck for each. So differences are taken replication by replication, which removes what the
worlds have in common. Intervals are simultaneous: with 95% all of a point's pairs are right at once
(Student's t, Bonferroni), so a table of many pairs is no lottery. Nothing is said of fewer than
`LEAST_REPLICATIONS`: regrets are skewed, and a loss that is rare may just not have been seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb

from restive.measure.intervals import paired_interval
from restive.studies.summary import CaseSummary

__all__ = ["LEAST_REPLICATIONS", "Paired", "Ranking", "rankings"]

# Regrets are skewed: of a rare loss that was not seen the spread knows nothing. With the regrets of
# docs/comparison.md, shifted to equal means, some pair of an instance is falsely told apart in 1 to
# 4% of samples of 100 on seven instances and in 10 to 13% on the two most skewed ones, where
# samples of 20 give 23% (docs/how-to/compare-learners.md has the table).
LEAST_REPLICATIONS = 100


@dataclass(frozen=True)
class Paired:
    """Regret at T of the second minus that of the first, over the replications of both."""

    first: CaseSummary
    second: CaseSummary
    difference: float
    half_width: float  # of the simultaneous 95% interval; nan for a single replication
    replications: int

    @property
    def told_apart(self) -> bool:
        """Whether the interval excludes zero, and rests on enough replications."""
        enough = self.replications >= LEAST_REPLICATIONS
        return enough and abs(self.difference) > self.half_width


@dataclass(frozen=True)
class Ranking:
    """The learners of one point and mapping, from the smallest regret on."""

    point: str
    mapping: str
    cases: tuple[CaseSummary, ...]
    pairs: dict[tuple[int, int], Paired]  # by places in `cases`, the smaller first
    replications: int  # that all learners have

    def place(self, at: int) -> str:
        """Place of a learner: from one more than those that beat it to all that it does not."""
        beaten_by = sum(self.pairs[j, at].told_apart for j in range(at))
        beats = sum(self.pairs[at, j].told_apart for j in range(at + 1, len(self.cases)))
        last = len(self.cases) - beats
        return f"{beaten_by + 1}" if last == beaten_by + 1 else f"{beaten_by + 1}-{last}"

    def victories(self, at: int) -> list[Paired]:
        """Return the pairs in which a learner beats another, the closest first."""
        pairs = (self.pairs[at, j] for j in range(at + 1, len(self.cases)))
        return [pair for pair in pairs if pair.told_apart]


def rankings(found: Sequence[CaseSummary]) -> list[Ranking]:
    """Compare the learners of every point and mapping."""
    groups: dict[tuple[str, str], list[CaseSummary]] = {}
    for case in found:
        groups.setdefault((case.case.point, case.case.mapping), []).append(case)
    return [_ranking(point, mapping, cases) for (point, mapping), cases in groups.items()]


def _ranking(point: str, mapping: str, cases: list[CaseSummary]) -> Ranking:
    # replications that all have; a run that was stopped may have more of some
    common = min(case.replications for case in cases)
    ordered = sorted(cases, key=lambda case: float(case.final_regrets[:common].mean()))
    pairs = {}
    for i, j in combinations(range(len(ordered)), 2):
        first, second = (ordered[place].final_regrets[:common] for place in (i, j))
        gap, half_width = paired_interval(first, second, comb(len(cases), 2))
        pairs[i, j] = Paired(ordered[i], ordered[j], gap, half_width, common)
    return Ranking(point, mapping, tuple(ordered), pairs, common)
