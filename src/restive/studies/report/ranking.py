"""Learners side by side: a ranking, and every pair on common random numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from restive.learn.learners.base import ignores_unpulled
from restive.measure.compare import known_prior
from restive.pages.page import render
from restive.plan.policies.registry import mapping_title
from restive.plan.sanity_checks import best_first_hint, blind_learners_hint, fixed_arms_hint
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import first_phase
from restive.studies.paired_differences import LEAST_REPLICATIONS, Ranking
from restive.studies.report.charts import learner_title
from restive.studies.report.numbers import at_end, with_half_width
from restive.studies.spec import Case
from restive.studies.timing import seconds_per_step

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = [
    "HEADER",
    "bound_caption",
    "ranking_caption",
    "ranking_remarks",
    "ranking_rows",
    "ranking_section",
    "ranking_title",
    "ranking_verdict",
    "victories",
]

HEADER = (
    "learner", "place", "regret", "against the bound", "reward per step", "episodes", "us a step",
)  # fmt: skip


def ranking_caption(ranking: Ranking) -> str:
    """Return what the numbers of a ranking are: at what time, over what, against what."""
    mapping = mapping_title(ranking.mapping)
    known = (
        f"Means over {ranking.replications:,} replications at T = {ranking.cases[0].times[-1]:,}, "
        "± the half-width of a 95% interval (Student's t). "
        f"Regret is against the policy '{mapping}' that knows the truth"
    )
    if ranking.cases[0].case.changes:
        known += (
            " and is told of every change of the arms; a world that changes has no relaxation bound"
        )
    return f"{known}."


def bound_caption(ranking: Ranking) -> str:
    """Return what the column "against the bound" says, "" where there is no bound."""
    bound = ranking.cases[0].relaxation_bound
    if bound is None:
        return ""
    return (
        f"Against the relaxation bound it is T times {bound:.6f}, which no policy exceeds per step "
        "in the long run, minus what was earned."
    )


def ranking_remarks(ranking: Ranking) -> list[str]:
    """Return what a reader should know of the question before taking its answer."""
    first = ranking.cases[0]
    bandit, prior, _ = first.case.settings.systems()
    blind = [
        learner_title(found)
        for found in ranking.cases
        if ignores_unpulled(found.case.settings.learner())
    ]
    arms = (prior.typical(k) for k in range(prior.num_arms))
    remarks = [blind_learners_hint(arms, blind)]
    if isinstance(bandit, RestlessBandit):
        remarks.append(fixed_arms_hint(bandit, {ranking.mapping: first.truth_reward}))
    if isinstance(first.case.settings.instance, dict):  # of the user's own
        if bandit is not None:
            remarks.append(best_first_hint(first_phase(bandit)))
        if known := known_prior(prior):
            begin = f"learners with a prior begin with {known}"
            remarks.append(f"{begin}; for another prior compare a study with a [prior]")
    return [f"{remark[0].upper()}{remark[1:]}." for remark in remarks if remark]


def ranking_verdict(ranking: Ranking) -> str:
    """Return how many pairs the data tell apart, or that there are too few replications to say."""
    if ranking.replications < LEAST_REPLICATIONS:
        return (
            f"Too few replications to tell learners apart: {ranking.replications}, and at least "
            f"{LEAST_REPLICATIONS} are needed."
        )
    told_apart = sum(pair.told_apart for pair in ranking.pairs.values())
    return (
        f"Pairs of learners that the data tell apart: {told_apart} of {len(ranking.pairs)} "
        "(paired differences of regret; with 95% all intervals of the table are right at once)."
    )


def victories(ranking: Ranking) -> list[tuple[str, str]]:
    """Return each learner that beats others, best first, with whom it beats by how much."""
    rows = []
    for at, found in enumerate(ranking.cases):
        beaten = [
            f"{learner_title(pair.second)} by {with_half_width(pair.difference, pair.half_width)}"
            for pair in ranking.victories(at)
        ]
        if beaten:
            rows.append((learner_title(found), "; ".join(beaten)))
    return rows


def ranking_rows(ranking: Ranking) -> list[list[str]]:
    """Return a row for the policy that knows the truth, then one per learner, best first."""
    first = ranking.cases[0]  # all have the same truth
    known = [at_end(first.oracle_bound_regret), at_end(first.oracle_reward)]
    rows = [["(knows the truth)", "-", "-", *known, "-", "-"]]
    for at, found in enumerate(ranking.cases):
        rows.append(
            [
                learner_title(found),
                ranking.place(at),
                at_end(found.regret),
                at_end(found.bound_regret),
                at_end(found.average_reward),
                f"{found.num_episodes.mean[-1]:,.0f}",
                _two_digits(1e6 * _seconds_per_step(found.case)),
            ]
        )
    return rows


def _two_digits(value: float) -> str:
    return f"{float(f'{value:.2g}'):,g}"  # 350, not 3.5e+02


_measured: dict[str, float] = {}  # seconds of a step, by case, so that each is tried once


def _seconds_per_step(case: Case) -> float:
    text = case.settings.to_json()
    if text not in _measured:
        _measured[text] = seconds_per_step(case.settings, with_oracle=False)
    return _measured[text]


def ranking_title(ranking: Ranking, among: Sequence[Ranking]) -> str:
    """Return what tells a ranking from the others of its page."""
    words = [ranking.point.removeprefix("instance ")]
    if len({other.mapping for other in among}) > 1:
        words.append(mapping_title(ranking.mapping))
    return ", ".join(filter(None, words))


def ranking_section(ranking: Ranking, among: Sequence[Ranking]) -> Markup:
    """Return a ranking, folded: the order, and every pair."""
    names = [learner_title(case) for case in ranking.cases]
    pairs = []
    for i, name in enumerate(names):
        cells = ["" if i == j else _cell(ranking, i, j) for j in range(len(names))]
        pairs.append([name, *cells])
    return render(
        "studies/report/ranking.html",
        title=ranking_title(ranking, among) or "Learners",
        caption=f"{ranking_caption(ranking)} {bound_caption(ranking)}".strip(),
        header=HEADER,
        rows=ranking_rows(ranking),
        verdict=ranking_verdict(ranking),
        remarks=ranking_remarks(ranking),
        names=names,
        pairs=pairs,
    )


def _cell(ranking: Ranking, i: int, j: int) -> str:
    pair = ranking.pairs[min(i, j), max(i, j)]
    difference = pair.difference if i > j else -pair.difference
    star = "*" if pair.told_apart else ""
    return with_half_width(difference, pair.half_width) + star
