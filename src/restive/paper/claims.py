"""The claims of Section 6 of the paper, each with a verdict computed from the data.

A claim *holds* or *fails* when its 95% interval says so, and is *undecided* when the replications
are too few to tell. The paper's Monte-Carlo figures have errors of their own: their "size" was "100
or greater".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from restive.measure.intervals import student_quantile
from restive.plan.policies.registry import mapping_title
from restive.studies.report.numbers import with_error
from restive.studies.summary import CaseSummary

__all__ = ["Claim", "Verdict", "check_claims"]

Verdict = Literal["holds", "fails", "undecided"]

PAPER_REPLICATIONS = 100
PAPER_BAYESIAN_J = {"best_fixed": 2.05, "myopic": 2.16, "whittle": 2.17}
PAPER_FREQUENTIST_J = {"best_fixed": 1.00, "myopic": 1.09, "whittle": 1.12}
ROUNDING = 0.005  # of figures with two decimals
SMALL_GAP = 0.01  # of J: what cannot be seen in the paper's Figure 3
LEAST_REPLICATIONS = 30  # below, a spread is too little known for an interval
MOST_DROP = 4.0  # standard errors by which a rising curve may fall between neighbours, by chance


@dataclass(frozen=True)
class Claim:
    """A claim, the paper's figure, ours, and what the data say."""

    place: str  # in the paper
    claim: str
    paper: str
    ours: str
    verdict: Verdict


def check_claims(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary]
) -> list[Claim]:
    """Check every claim of Section 6."""
    drawn = {found.case.mapping: found for found in bayesian}
    fixed = {found.case.mapping: found for found in frequentist}
    return [
        *_drawn_rewards(drawn),
        *_orders(drawn),
        *_growth(drawn),
        *_exact_rewards(fixed),
        *_convergence(fixed),
        *_posteriors(fixed["whittle"]),
    ]


def _drawn_rewards(drawn: Mapping[str, CaseSummary]) -> Iterator[Claim]:
    for mapping, paper in PAPER_BAYESIAN_J.items():
        found = drawn[mapping]
        mean, stderr = found.truth_reward
        # of a mean over as many draws, with the spread that ours have
        paper_stderr = found.truth_rewards.std(ddof=1) / np.sqrt(PAPER_REPLICATIONS)
        quantile = student_quantile(found.replications)
        near = quantile * float(np.hypot(stderr, paper_stderr)) + ROUNDING
        yield Claim(
            "Section 6, Bayesian",
            f"E J of the mapping '{mapping_title(mapping)}'",
            f"{paper:.2f} (± {quantile * paper_stderr:.2f} with {PAPER_REPLICATIONS} draws)",
            with_error(mean, stderr, found.replications),
            _if_enough(found, "holds" if abs(mean - paper) <= near else "fails"),
        )


def _orders(drawn: Mapping[str, CaseSummary]) -> Iterator[Claim]:
    """Compare mappings on the same drawn systems."""
    for worse, better in (("best_fixed", "myopic"), ("myopic", "whittle")):
        gains = drawn[better].truth_rewards - drawn[worse].truth_rewards
        mean, stderr = float(gains.mean()), float(gains.std(ddof=1) / np.sqrt(len(gains)))
        yield Claim(
            "Section 6, Bayesian",
            f"E J: '{mapping_title(better)}' above '{mapping_title(worse)}'",
            f"by {PAPER_BAYESIAN_J[better] - PAPER_BAYESIAN_J[worse]:.2f}",
            f"by {with_error(mean, stderr, len(gains))} (same systems)",
            _if_enough(drawn[better], _decided(-mean, stderr, 0, len(gains))),
        )


def _growth(drawn: Mapping[str, CaseSummary]) -> Iterator[Claim]:
    for limit, claim, paper in (
        (1.0, "regret grows sub-linearly", "below 1"),
        (0.5, "regret grows no faster than the square root of time", "slope 0.5 drawn in"),
    ):
        for mapping, found in drawn.items():
            slope = found.slope
            ours, verdict = "no fit: too few replications", "undecided"
            if slope is not None:
                ours = f"slope {slope.value:.3f} [{slope.lower:.3f}, {slope.upper:.3f}]"
                if slope.upper <= limit:
                    verdict = "holds"
                elif slope.lower > limit:
                    verdict = "fails"
            what = f"{claim} ('{mapping_title(mapping)}')"
            yield Claim("Figure 2", what, paper, ours, _verdict(verdict))


def _exact_rewards(fixed: Mapping[str, CaseSummary]) -> Iterator[Claim]:
    for mapping, paper in PAPER_FREQUENTIST_J.items():
        exact = fixed[mapping].truth_reward[0]
        yield Claim(
            "Section 6, frequentist",
            f"J of the mapping '{mapping_title(mapping)}'",
            f"{paper:.2f}",
            f"{exact:.6f} ({fixed[mapping].truth_method})",
            "holds" if abs(exact - paper) <= ROUNDING else "fails",
        )


def _convergence(fixed: Mapping[str, CaseSummary]) -> Iterator[Claim]:
    for mapping, found in fixed.items():
        target = found.truth_reward[0]
        gap, stderr = target - found.average_reward.mean[-1], found.average_reward.stderr[-1]
        count = found.replications
        verdict = _decided(abs(float(gap)) / target, float(stderr) / target, SMALL_GAP, count)
        yield Claim(
            "Figure 3, left",
            f"reward per step comes within {SMALL_GAP:.0%} of J ('{mapping_title(mapping)}')",
            "converged",
            f"J minus it: {with_error(100 * gap / target, 100 * stderr / target, count)}% of J",
            _if_enough(found, verdict),
        )


def _posteriors(found: CaseSummary) -> Iterator[Claim]:
    """Weight of each arm's truth: never falls, and what it lacks of one more than halves."""
    assert found.truth_weights is not None
    mean, stderr = found.truth_weights.mean, found.truth_weights.stderr
    count = found.replications
    tenth = int(np.searchsorted(found.times, found.times[-1] / 10))
    for k in range(mean.shape[1]):
        drops = -np.diff(mean[:, k])
        noise = np.hypot(stderr[1:, k], stderr[:-1, k])
        falls = bool((drops > MOST_DROP * noise + 1e-12).any())
        lacking, before = 1 - mean[-1, k], 1 - mean[tenth, k]
        error = float(np.hypot(stderr[-1, k], stderr[tenth, k] / 2))
        verdict = "fails" if falls else _decided(float(lacking - before / 2), error, 0, count)
        yield Claim(
            "Figure 3, right",
            f"weight of arm {k}'s truth rises towards one ('{mapping_title(found.case.mapping)}')",
            "increased to one",
            f"{mean[tenth, k]:.3f} at t = {found.times[tenth]:,}, "
            f"{with_error(mean[-1, k], stderr[-1, k], count)} at t = {found.times[-1]:,}",
            _if_enough(found, _verdict(verdict)),
        )


def _if_enough(found: CaseSummary, verdict: Verdict) -> Verdict:
    return verdict if found.replications >= LEAST_REPLICATIONS else "undecided"


def _decided(value: float, stderr: float, limit: float, replications: int) -> Verdict:
    """Whether a value is at most a limit, as far as its error lets one say."""
    if not np.isfinite(stderr):
        return "undecided"
    half_width = student_quantile(replications) * stderr
    if value + half_width <= limit:
        return "holds"
    return "fails" if value - half_width > limit else "undecided"


def _verdict(word: str) -> Verdict:
    assert word in ("holds", "fails", "undecided")
    return word  # type: ignore[return-value]
