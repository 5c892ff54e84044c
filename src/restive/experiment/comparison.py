"""Learners side by side on common random numbers: "A beats B" is said only where it is so.

All learners of a point of a study play in the same worlds: replication r has the same truth and the
same luck for each. So differences are taken replication by replication, which removes what the
worlds have in common. Intervals are simultaneous: with 95% all of a point's pairs are right at once
(Bonferroni), so a table of many pairs is no lottery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from statistics import NormalDist

import numpy as np

from restive.experiment.summary import CaseSummary

__all__ = ["Paired", "Ranking", "rankings"]

CONFIDENCE = 0.95


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
        """Whether the interval excludes zero."""
        return abs(self.difference) > self.half_width


@dataclass(frozen=True)
class Ranking:
    """The learners of one point and mapping, from the smallest regret on."""

    point: str
    mapping: str
    cases: tuple[CaseSummary, ...]
    pairs: dict[tuple[int, int], Paired]  # by places in `cases`, the smaller first

    def place(self, at: int) -> str:
        """Place of a learner: from one more than those that beat it to all that it does not."""
        beaten_by = sum(self.pairs[j, at].told_apart for j in range(at))
        beats = sum(self.pairs[at, j].told_apart for j in range(at + 1, len(self.cases)))
        last = len(self.cases) - beats
        return f"{beaten_by + 1}" if last == beaten_by + 1 else f"{beaten_by + 1}-{last}"


def rankings(found: Sequence[CaseSummary]) -> list[Ranking]:
    """Compare the learners of every point and mapping that has more than one."""
    groups: dict[tuple[str, str], list[CaseSummary]] = {}
    for case in found:
        groups.setdefault((case.case.point, case.case.mapping), []).append(case)
    return [
        _ranking(point, mapping, cases)
        for (point, mapping), cases in groups.items()
        if len(cases) > 1
    ]


def _ranking(point: str, mapping: str, cases: list[CaseSummary]) -> Ranking:
    # replications that all have; a run that was stopped may have more of some
    common = min(case.replications for case in cases)
    ordered = sorted(cases, key=lambda case: float(case.final_regrets[:common].mean()))
    num_pairs = len(cases) * (len(cases) - 1) // 2
    quantile = NormalDist().inv_cdf(1 - (1 - CONFIDENCE) / 2 / num_pairs)
    pairs = {}
    for i, j in combinations(range(len(ordered)), 2):
        gaps = ordered[j].final_regrets[:common] - ordered[i].final_regrets[:common]
        spread = float(gaps.std(ddof=1)) if common > 1 else float("nan")
        half_width = quantile * spread / sqrt(common)
        pairs[i, j] = Paired(ordered[i], ordered[j], float(np.mean(gaps)), half_width, common)
    return Ranking(point, mapping, tuple(ordered), pairs)
