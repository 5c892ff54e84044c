"""The page of any study: curves by mapping and point of the sweep, tables, and what was run."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from restive.arguments import checked_path
from restive.errors import RestiveError
from restive.experiment import CaseSummary, Ledger, load_results
from restive.experiment.summary import Curve
from restive.files import replacing, require_target
from restive.policies import mapping_title
from restive.report import charts
from restive.report.numbers import at_end, with_error
from restive.report.page import code, figures, page, paragraph, section, table
from restive.report.ranking import ranking_parts

__all__ = ["charts_of", "how_it_was_run", "results_table", "write_report"]

MOST_ARMS = 12  # whose posterior is drawn
MOST_POINTS = 24  # of a sweep that are drawn
READING = (
    "Regret is J t minus what the learner earned up to t, where J is what the same mapping earns "
    "per step when it knows the truth; each mapping is measured against its own J, so regrets of "
    "different mappings are no ranking: rewards are. Means are over replications, with 95% bands; "
    "rewards are expected ones, E[r | what is known], which have the same mean as those drawn and "
    "far less noise. The slope is the exponent a of regret ~ t^a over the last decade of time, "
    "with a 95% interval by the jackknife."
)


def write_report(folder: str | PathLike[str], path: str | PathLike[str] | None = None) -> Path:
    """Write the page of a results folder, by default as DIR/report.html; return its path."""
    folder = checked_path(folder, "folder")
    ledger = Ledger.open(folder)
    target = folder / "report.html" if path is None else checked_path(path, "path")
    require_target(target, (".html",))
    found = load_results(folder)
    if not found:
        raise RestiveError(f"{folder}: no replication is there yet; run the study first")
    wanted = ledger.study.replications
    parts = []
    if any(case.replications < wanted for case in found) or len(found) < len(ledger.study.cases):
        parts.append(
            paragraph(f"Not complete: {wanted:,} replications of every case are wanted.", "fails")
        )
    legend = [paragraph(line, "note") for line in ledger.study.legend]
    results = section("Results", results_table(found), *legend, paragraph(READING, "note"))
    compares = len({case.case.learner for case in found}) > 1  # then the rankings come first
    parts += [
        *([] if compares else [results]),
        *_points(found),
        *([results] if compares else []),
        how_it_was_run([ledger], "restive run study.toml --out results"),
    ]
    with replacing(target) as temporary:
        temporary.write_text(page(ledger.study.title, parts), encoding="utf-8")
    return target


def results_table(found: Sequence[CaseSummary]) -> str:
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
    caption = f"At t = T; after ± the half-width of a 95% interval. Regret: {found[0].baseline}."
    return table(header, rows, range(first, first + 6)) + paragraph(caption, "note")


def _count(curve: Curve) -> str:
    """Return a mean of whole numbers; those of a learner that has no choice do not vary."""
    return at_end(curve) if curve.stderr[-1] > 0 else f"{curve.mean[-1]:,.0f}"


def charts_of(found: Sequence[CaseSummary], name: str) -> list[tuple[str, str]]:
    """Return pictures and captions of the cases of one point of a sweep."""
    drawn = [
        ("regret", charts.draw_regret(found), "Regret against time."),
        ("log", charts.draw_log_regret(found), "The same on logarithmic axes."),
        *_against_bound(found),
        (
            "reward",
            charts.draw_average_reward(found),
            "Average reward per step so far; dotted: J of each mapping.",
        ),
    ]
    for case in found:
        if case.truth_weights is not None and case.truth_weights.mean.shape[1] <= MOST_ARMS:
            caption = f"Posterior weight of the truth, by arm ({charts.line_name(case, found)})."
            drawn.append((f"posterior-{case.case.number}", charts.draw_posterior(case), caption))
    return [
        (charts.svg(charts.side_by_side([draw]), f"{name}-{kind}"), caption)
        for kind, draw, caption in drawn
    ]


def _against_bound(found: Sequence[CaseSummary]) -> list[tuple[str, charts.Draw, str]]:
    """Return the chart of regret against the relaxation bound, where there is one."""
    bound = found[0].relaxation_bound  # that of all cases of a point: they have the same truth
    if bound is None:
        return []
    caption = (
        f"Regret against the relaxation bound of {bound:.6f} per step; dotted: what the policy "
        "that knows the truth falls short of it."
    )
    return [("bound", charts.draw_bound_regret(found), caption)]


def _points(found: Sequence[CaseSummary]) -> list[str]:
    """Sections with the charts and rankings, one per point of the sweep."""
    points: dict[str, list[CaseSummary]] = {}
    for case in found:
        points.setdefault(case.case.point, []).append(case)
    parts = [
        section(
            title or "Curves",
            *ranking_parts(cases),
            figures(charts_of(cases, f"p{number}")),
            anchor=f"p{number}",
        )
        for number, (title, cases) in enumerate(list(points.items())[:MOST_POINTS])
    ]
    if len(points) > MOST_POINTS:
        parts.append(
            paragraph(
                f"The first {MOST_POINTS} of {len(points)} points are drawn; "
                "`restive export` has them all."
            )
        )
    return parts


def _seeds(study: dict[str, Any]) -> str:
    return ", ".join(map(str, study.get("sweep", {}).get("seed") or [study["seed"]]))


def _versions(code: dict[str, Any]) -> str:
    return ", ".join(f"{package} {number}" for package, number in code["versions"].items())


def how_it_was_run(ledgers: Sequence[Ledger], command: str) -> str:
    """Return the section that lets a reader run it again."""
    parts = []
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
        parts.append(table(("", ""), facts))
        parts.append(paragraph("The study, as a file study.toml:"))
        parts.append(code(ledger.study.to_toml()))
    return section(
        "How it was run, and how to run it again",
        *parts,
        paragraph("The same seed gives the same numbers, on any machine and number of processors:"),
        code(command),
    )
