"""Forest plots of results: regret at the end, and paired differences from the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from restive.pages.axes import Scale
from restive.pages.chart import Chart, Data, Panel, short
from restive.pages.forest import Row, draw_forest, forest_height, forest_margins, hides_a_row
from restive.studies.paired_differences import Ranking
from restive.studies.report.charts import Naming, Points, learner_title
from restive.studies.report.numbers import at_end, with_half_width
from restive.studies.report.ranking import ranking_title
from restive.studies.summary import CaseSummary

__all__ = ["difference_forest", "forest", "ranked_forest", "regret_forest"]

CROWDED = 10  # times: regrets that differ by more are shown on a logarithmic axis at first


def ranked_forest(compared: Sequence[Ranking], naming: Naming) -> Chart:
    """Regret of each learner at the end, from the smallest on, with its place."""
    rows = {
        ranking_title(ranking, compared): [
            _row(case, naming.number(case), learner_title(case), ranking.place(at))
            for at, case in enumerate(ranking.cases)
        ]
        for ranking in compared
    }
    return _forest_of_regrets(
        rows, "learner",
        "Total reward lost against the policy that knows the truth: less is better. Before a name "
        "its place; 2-4 means that the data do not tell second from fourth.",
    )  # fmt: skip


def regret_forest(points: Points, naming: Naming) -> Chart:
    """Regret at the end: a panel per point, or a single one where there is one line."""
    if len(naming.names) == 1:
        every = [case for cases in points.values() for case in cases]
        rows = {"": [_row(case, 0, case.case.point or naming.name(case)) for case in every]}
    else:
        rows = {
            title.removeprefix("instance "): [
                _row(case, naming.number(case), naming.name(case)) for case in cases
            ]
            for title, cases in points.items()
        }
    return _forest_of_regrets(
        rows, "case",
        "Total reward lost against the same policy when it knows the truth. Policies that aim at "
        "less have less to lose: regrets of different policies are no ranking.",
    )  # fmt: skip


def difference_forest(compared: Sequence[Ranking], naming: Naming) -> Chart:
    """Regret minus that of the leader, replication by replication."""
    rows, labels = {}, {}
    for ranking in compared:
        title = ranking_title(ranking, compared)
        labels[title] = f"difference from {learner_title(ranking.cases[0])}"
        rows[title] = [
            _difference(ranking, at, naming.number(case))
            for at, case in enumerate(ranking.cases)
            if at > 0
        ]
    crowded = any(hides_a_row(inside) for inside in rows.values())
    return forest(
        "differences", "How sure is the order?",
        "Differences from the leader, replication by replication in the same worlds, with "
        "simultaneous 95% intervals. Filled: told apart from the leader; hollow: not. The "
        "logarithmic axis is linear about zero.",
        rows, labels, ("learner", "regret minus the leader's"), "log" if crowded else "linear",
        about_zero=True,
    )  # fmt: skip


def forest(
    name: str,
    title: str,
    note: str,
    rows: Mapping[str, Sequence[Row]],
    labels: Mapping[str, str],
    columns: tuple[str, str],
    shown: Scale,
    *,
    scales: Sequence[Scale] = ("linear", "log"),
    about_zero: bool = False,
    references: Sequence[float] = (0.0,),
) -> Chart:
    """Return a chart with a forest per title, all on one axis."""
    every = [row for inside in rows.values() for row in inside]

    def draw(panel: str, axes: Any, scale: Scale) -> None:
        draw_forest(
            axes, rows[panel], scale, labels[panel], among=every, about_zero=about_zero,
            references=references if scale == "linear" or about_zero else (),
        )  # fmt: skip

    left, right = forest_margins(every)
    panels = [
        Panel(panel, partial(draw, panel), _data(inside), forest_height(inside), left, 0, right)
        for panel, inside in rows.items()
    ]
    return Chart(name, title, note, panels, columns, scales, shown, shared="x")


def _forest_of_regrets(rows: Mapping[str, Sequence[Row]], who: str, note: str) -> Chart:
    values = [row.value for inside in rows.values() for row in inside]
    positive = min(values) > 0
    crowded = positive and max(values) > CROWDED * min(values)
    return forest(
        "end", "Regret at the end", f"{note} Intervals are 95%.",
        rows, dict.fromkeys(rows, "regret at T"), (who, "regret"), "log" if crowded else "linear",
        scales=("linear", "log") if positive else ("linear",),
    )  # fmt: skip


def _row(case: CaseSummary, number: int, name: str, place: str = "") -> Row:
    curve = case.regret
    return Row(
        number, name, int(case.times[-1]), float(curve.mean[-1]), float(curve.lower[-1]),
        float(curve.upper[-1]), at_end(curve), place,
    )  # fmt: skip


def _difference(ranking: Ranking, at: int, number: int) -> Row:
    pair = ranking.pairs[0, at]
    case, value, half = ranking.cases[at], pair.difference, pair.half_width
    return Row(
        number, learner_title(case), int(case.times[-1]), value, value - half, value + half,
        f"+{with_half_width(value, half)}", filled=pair.told_apart,
    )  # fmt: skip


def _data(rows: Sequence[Row]) -> Data:
    return [
        {"name": row.name, "x": [row.time], "mean": short([row.value]),
         "lower": short([row.lower]), "upper": short([row.upper])}
        for row in rows
    ]  # fmt: skip
