"""Learners side by side: a ranking, and every pair on common random numbers."""

from __future__ import annotations

from collections.abc import Sequence

from restive.experiment import Case, CaseSummary
from restive.experiment.comparison import Ranking, rankings
from restive.experiment.running import estimate
from restive.relaxation import relaxation_bound
from restive.report.charts import NAMES, learner_title
from restive.report.numbers import with_error, with_half_width
from restive.report.page import paragraph, table

__all__ = ["ranking_parts", "ranking_rows"]

HEADER = ("place", "learner", "regret", "reward per step", "of the bound", "episodes", "us a step")
READING = (
    "The last column is the time of a step on the machine that made this page. In the table of "
    "pairs each cell is the regret of the row's learner minus that of the column's, replication "
    "by replication in the same worlds, with simultaneous 95% intervals; a star marks the pairs "
    "that the data tell apart. A place such as 2-4 means that they do not tell second from fourth."
)


def ranking_rows(ranking: Ranking) -> list[list[str]]:
    """Return a row for the policy that knows the truth, then one per learner, best first."""
    bandit = ranking.cases[0].case.settings.systems()[0]
    bound = None if bandit is None else relaxation_bound(bandit)
    oracle = ranking.cases[0].oracle_reward
    name = f"(knows the truth: {NAMES.get(ranking.mapping, ranking.mapping)})"
    share = "-" if bound is None else f"{oracle.mean[-1] / bound:.2%}"
    earned = with_error(oracle.mean[-1], oracle.stderr[-1])
    rows = [["-", name, "-", earned, share, "-", "-"]]
    for at, found in enumerate(ranking.cases):
        reward = found.average_reward
        rows.append(
            [
                ranking.place(at),
                learner_title(found),
                with_error(found.regret.mean[-1], found.regret.stderr[-1]),
                with_error(reward.mean[-1], reward.stderr[-1]),
                "-" if bound is None else f"{reward.mean[-1] / bound:.2%}",
                f"{found.num_episodes.mean[-1]:,.0f}",
                f"{1e6 * _seconds(found.case) / found.case.settings.horizon:.2g}",
            ]
        )
    return rows


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
        mapping = NAMES.get(ranking.mapping, ranking.mapping)
        parts += [
            paragraph(f"Regret against the policy '{mapping}' that knows the truth, at T."),
            table(HEADER, ranking_rows(ranking), (0, 2, 3, 4, 5, 6)),
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
