"""`restive compare`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import run_display, spinner
from restive.cli.study import (
    Executor,
    Scheduler,
    TlsCaFile,
    TlsCert,
    TlsKey,
    Workers,
    going_on,
    tell,
    tls_of,
)
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.experiment import CaseSummary

__all__ = ["compare"]


def compare(
    instances: Annotated[
        list[str], typer.Argument(metavar="INSTANCE...", help="Zoo instances, see `restive zoo`.")
    ],
    learners: Annotated[
        str | None, typer.Option(help="Names, separated by commas (default: all that fit).")
    ] = None,
    policy_mapping: Annotated[
        str, typer.Option(help="What learners with a posterior play, and regret is against.")
    ] = "whittle",
    horizon: Annotated[
        int | None, typer.Option(min=2, help="Steps (default: the instance's own).")
    ] = None,
    replications: Annotated[int, typer.Option(min=2, help="Of every learner.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same numbers.")] = 0,
    out: Annotated[Path, typer.Option(help="Results folder: new, or one to continue.")] = Path(
        "comparison"
    ),
    executor: Executor = "threads",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls_ca_file: TlsCaFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Let learners play in the same worlds, rank them and tell which differences are real."""
    from restive.comparison_study import comparison_study
    from restive.experiment import load_results, run_study
    from restive.figures import matplotlib_figures
    from restive.report import write_report

    tls = tls_of(tls_ca_file, tls_cert, tls_key)
    matplotlib_figures()  # the page needs it: told now, not after the run
    named = None if learners is None else _names(learners)
    study = comparison_study(instances, named, policy_mapping, horizon, replications, seed, tell)
    if scheduler is not None and executor == "threads":
        executor = "dask"
    with going_on(out), run_display(study.title) as display:
        ledger = run_study(
            study,
            out,
            executor=executor,
            workers=workers,
            scheduler=scheduler,
            tls=tls,
            progress=display,
            tell=tell,
        )
    with spinner("comparing"):
        found = load_results(ledger.folder)
        _print_rankings(found)
    with spinner("drawing"):
        page = write_report(ledger.folder)
    print(f"the report: {page}")


def _names(learners: str) -> list[str]:
    named = [name.strip() for name in learners.split(",") if name.strip()]
    if not named:
        raise ProblemError(f"--learners: names separated by commas, got {learners!r}")
    return named


def _print_rankings(found: list[CaseSummary]) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from restive.experiment.paired_differences import rankings
    from restive.report.ranking import (
        HEADER,
        ranking_caption,
        ranking_remarks,
        ranking_rows,
        ranking_verdict,
        victories,
    )

    console = Console(width=None if sys.stdout.isatty() else 120)
    for ranking in rankings(found):
        table = Table(
            title=escape(ranking.point or "learners"), caption=escape(ranking_caption(ranking))
        )
        for column in HEADER:
            table.add_column(column, justify="left" if column == "learner" else "right")
        for row in ranking_rows(ranking):
            table.add_row(*map(escape, row))
        console.print(table)
        for remark in ranking_remarks(ranking):
            console.print(remark, highlight=False, markup=False)
        if not ranking.pairs:
            continue
        if won := victories(ranking):
            beaten = Table("learner", "beats", show_lines=True)
            for names in won:
                beaten.add_row(*map(escape, names))
            console.print(beaten)
        console.print(ranking_verdict(ranking), highlight=False)
