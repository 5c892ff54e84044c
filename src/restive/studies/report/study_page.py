"""The page of any study: its verdict, charts by point of the sweep, tables, and what was run."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from restive.arguments import checked_path
from restive.errors import RestiveError
from restive.files import replacing, require_target
from restive.pages.chart import Chart, render_chart
from restive.pages.page import render
from restive.plan.policies.registry import mapping_title
from restive.studies.ledger import Ledger
from restive.studies.paired_differences import Ranking, rankings
from restive.studies.report import charts
from restive.studies.report.forests import difference_forest, ranked_forest, regret_forest
from restive.studies.report.numbers import at_end, with_error
from restive.studies.report.ranking import ranking_section
from restive.studies.report.verdicts import comparison_verdict, study_verdict
from restive.studies.spec import Study
from restive.studies.summary import CaseSummary, Curve, load_results

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["charts_of", "how_it_was_run", "results_table", "write_report"]

MOST_POINTS = 24  # of a sweep that are drawn


def write_report(folder: str | PathLike[str], path: str | PathLike[str] | None = None) -> Path:
    """Write the page of a results folder, by default as DIR/report.html; return its path."""
    folder = checked_path(folder, "folder")
    ledger = Ledger.open(folder)
    target = folder / "report.html" if path is None else checked_path(path, "path")
    require_target(target, (".html",))
    found = load_results(folder)
    if not found:
        raise RestiveError(f"{folder}: there are no replications yet; run the study first")
    with replacing(target) as temporary:
        temporary.write_text(_page(ledger, found), encoding="utf-8")
    return target


def _page(ledger: Ledger, found: Sequence[CaseSummary]) -> str:
    study, naming = ledger.study, charts.Naming(found)
    compared = [ranking for ranking in rankings(found) if ranking.pairs]
    verdict, lead = comparison_verdict(compared) if compared else study_verdict(found, naming)
    if any(case.replications < study.replications for case in found) or len(found) < len(
        study.cases
    ):
        lead = [
            f"Not complete: {study.replications:,} replications of every case are wanted.",
            *lead,
        ]
    shown, folded = charts_of(found, compared, naming)
    return render(
        "studies/report/study_page.html",
        title=study.title,
        eyebrow=_eyebrow(study, found),
        heading=verdict,
        lead=lead,
        several_points=len(_points(found)) > 1,
        charts=[render_chart(chart) for chart in shown],
        not_drawn=_not_drawn(found),
        folded_charts=[(chart.title, render_chart(chart, headed=False)) for chart in folded],
        rankings=[ranking_section(ranking, compared) for ranking in compared],
        results=results_table(found),
        legend=study.legend,
        how_it_was_run=how_it_was_run([ledger], "restive run study.toml --out results"),
    )


def _eyebrow(study: Study, found: Sequence[CaseSummary]) -> str:
    """Return what the page is about, in a line."""
    counts = {case.replications for case in found}
    replications = f"{_span(counts)} replication{'' if counts == {1} else 's'}"
    horizon = f"T\u00a0=\u00a0{_span({int(case.times[-1]) for case in found})}"
    same = ", in the same worlds" if len(found) > 1 else ""
    return f"restive · {study.title} · {replications} of each{same} · {horizon}"


def _span(values: set[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def results_table(found: Sequence[CaseSummary]) -> Markup:
    """Return a row per case."""
    swept = [key for key in found[0].case.labels if key != "mapping"]  # and the learner
    header = [
        *swept, "mapping", "replications", "J", "reward per step", "regret", "slope", "episodes",
    ]  # fmt: skip
    rows = []
    for case in found:
        slope = case.slope
        rows.append(
            [
                *(case.case.shown[key] for key in swept),
                mapping_title(case.case.mapping),
                f"{case.replications:,}",
                with_error(*case.truth_reward, case.replications),
                at_end(case.average_reward),
                at_end(case.regret),
                "-"
                if slope is None
                else f"{slope.value:.2f} [{slope.lower:.2f}, {slope.upper:.2f}]",
                _count(case.num_episodes),
            ]
        )
    first = len(swept) + 1
    return render(
        "studies/report/results_table.html",
        header=header,
        rows=rows,
        numbers=range(first, first + 6),
        baseline=found[0].baseline,
        changing=next((case.baseline for case in found if case.case.changes), ""),
    )


def _count(curve: Curve) -> str:
    """Return a mean of whole numbers; those of a learner that has no choice do not vary."""
    return at_end(curve) if curve.stderr[-1] > 0 else f"{curve.mean[-1]:,.0f}"


def charts_of(
    found: Sequence[CaseSummary], compared: Sequence[Ranking], naming: charts.Naming
) -> tuple[list[Chart], list[Chart]]:
    """Return the charts that a page shows at once, and those that it folds."""
    points = dict(list(_points(found).items())[:MOST_POINTS])
    regret, reward = charts.regret_chart(points, naming), charts.reward_chart(points, naming)
    bound, posteriors = charts.bound_chart(points, naming), charts.posterior_charts(points, naming)
    more = [*([] if bound is None else [bound]), *posteriors]
    if compared:
        drawn = [ranking for ranking in compared if ranking.point in points]
        forests = [ranked_forest(drawn, naming), difference_forest(drawn, naming)]
        return [*forests, regret], [reward, *more]
    if len(found) > 1:
        return [regret, regret_forest(points, naming), reward], more
    return [regret, reward], more


def _points(found: Sequence[CaseSummary]) -> dict[str, list[CaseSummary]]:
    points: dict[str, list[CaseSummary]] = {}
    for case in found:
        points.setdefault(case.case.point, []).append(case)
    return points


def _not_drawn(found: Sequence[CaseSummary]) -> str:
    count = len(_points(found))
    if count <= MOST_POINTS:
        return ""
    return f"The first {MOST_POINTS} of {count} points are drawn; `restive export` has them all."


def _seeds(study: dict[str, Any]) -> str:
    return ", ".join(map(str, study.get("sweep", {}).get("seed") or [study["seed"]]))


def _versions(code: dict[str, Any]) -> str:
    return ", ".join(f"{package} {number}" for package, number in code["versions"].items())


def how_it_was_run(ledgers: Sequence[Ledger], command: str) -> Markup:
    """Return what lets a reader run it again, folded."""
    runs = []
    for ledger in ledgers:
        manifest = ledger.manifest
        versions = "; ".join(dict.fromkeys(map(_versions, ledger.codes)))
        seconds = sum(run["seconds"] for run in manifest["runs"])
        facts = [
            ("study", ledger.study.title),
            ("replications of each case", f"{ledger.study.replications:,}"),
            ("seed", _seeds(ledger.study.data)),
            ("restive", f"{manifest['restive']}, {ledger.commits}"),
            ("versions", versions),
            ("machine", manifest["machine"]),
            ("begun", manifest["begun"]),
            ("time taken", f"{seconds:,.1f} s in {len(manifest['runs'])} run(s)"),
            ("hash of the study", ledger.study.hash[:16]),
        ]
        runs.append((facts, ledger.study.to_toml()))
    return render("studies/report/how_it_was_run.html", runs=runs, command=command)
