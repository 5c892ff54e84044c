"""Learners side by side: a ranking, and every pair on common random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from restive.experiment import Case, CaseSummary
from restive.experiment.comparison import Ranking, rankings
from restive.experiment.running import estimate
from restive.experiment.summary import Curve
from restive.report.charts import NAMES, learner_title
from restive.report.numbers import with_error, with_half_width
from restive.report.page import paragraph, table

__all__ = ["HEADER", "ranking_caption", "ranking_parts", "ranking_rows"]

HEADER = (
    "place", "learner", "regret", "against the bound", "reward per step", "episodes", "us a step",
)  # fmt: skip
READING = (
    "The last column is the time of a step on the machine that made this page. In the table of "
    "pairs each cell is the regret of the row's learner minus that of the column's, replication "
    "by replication in the same worlds, with simultaneous 95% intervals; a star marks the pairs "
    "that the data tell apart. A place such as 2-4 means that they do not tell second from fourth."
)


def ranking_caption(ranking: Ranking) -> str:
    """Return what the regrets of a ranking are measured against."""
    mapping = NAMES.get(ranking.mapping, ranking.mapping)
    known = f"Regret at T against the policy '{mapping}' that knows the truth"
    bound = ranking.cases[0].relaxation_bound
    if bound is None:
        return f"{known}."
    return (
        f"{known}, and against the relaxation bound: T times {bound:.6f}, which no policy exceeds "
        "per step in the long run, minus what was earned."
    )


def ranking_rows(ranking: Ranking) -> list[list[str]]:
    """Return a row for the policy that knows the truth, then one per learner, best first."""
    first = ranking.cases[0]  # all have the same truth
    known = [_at_end(first.oracle_bound_regret), _at_end(first.oracle_reward)]
    rows = [["-", "(knows the truth)", "-", *known, "-", "-"]]
    for at, found in enumerate(ranking.cases):
        rows.append(
            [
                ranking.place(at),
                learner_title(found),
                _at_end(found.regret),
                _at_end(found.bound_regret),
                _at_end(found.average_reward),
                f"{found.num_episodes.mean[-1]:,.0f}",
                f"{1e6 * _seconds(found.case) / found.case.settings.horizon:.2g}",
            ]
        )
    return rows


def _at_end(curve: Curve | None) -> str:
    return "-" if curve is None else with_error(curve.mean[-1], curve.stderr[-1])


_measured: dict[str, float] = {}  # seconds of a run, by case, so that each is tried once


def _seconds(case: Case) -> float:
    text = case.settings.to_json()
    if text not in _measured:
        _measured[text] = estimate(case, 1).seconds
    return _measured[text]


def ranking_parts(found: Sequence[CaseSummary]) -> list[str]:
    """Return the tables of a point's rankings; none where there is one learner."""
    parts = []
    for ranking in rankings(found):
        names = [learner_title(case) for case in ranking.cases]
        pairs = []
        for i, name in enumerate(names):
            cells = ["" if i == j else _cell(ranking, i, j) for j in range(len(names))]
            pairs.append([name, *cells])
        parts += [
            paragraph(ranking_caption(ranking)),
            table(HEADER, ranking_rows(ranking), (0, *range(2, len(HEADER)))),
            table(("minus", *names), pairs, range(1, len(names) + 1)),
        ]
    if parts:
        parts.append(paragraph(READING, "note"))
    return parts


def _cell(ranking: Ranking, i: int, j: int) -> str:
    pair = ranking.pairs[min(i, j), max(i, j)]
    difference = pair.difference if i > j else -pair.difference
    star = "*" if pair.told_apart else ""
    return with_half_width(difference, pair.half_width) + star
