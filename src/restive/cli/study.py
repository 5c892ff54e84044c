"""`restive run`, `status`, `report` and `export`: the life of a study."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import in_words, run_display, spinner
from restive.errors import RestiveError

if TYPE_CHECKING:
    from restive.experiment import TLS, Ledger, Study

__all__ = [
    "Executor",
    "Scheduler",
    "TlsCaFile",
    "TlsCert",
    "TlsKey",
    "Workers",
    "export",
    "going_on",
    "report",
    "run",
    "status",
    "tell",
    "tls_of",
]

# where a study runs: the same options for every command that runs one
Executor = Annotated[str, typer.Option(help="Where it runs: serial, threads or dask.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Threads or local Dask workers (default: one per processor)."),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask cluster, as tls://host:8786.")
]
TlsCaFile = Annotated[
    Path | None, typer.Option(help="For tls://...: whom to trust (default: Dask's settings).")
]
TlsCert = Annotated[Path | None, typer.Option(help="For tls://...: our certificate.")]
TlsKey = Annotated[Path | None, typer.Option(help="For tls://...: its key.")]

Results = Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of `restive run`.")]


def run(
    study: Annotated[
        Path, typer.Argument(help="TOML file of the study, or a results folder to continue.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="Results folder: new, or one to continue.")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="More replications than the file says.")
    ] = None,
    executor: Executor = "threads",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls_ca_file: TlsCaFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file and report what would run.")
    ] = False,
) -> None:
    """Run a study, or continue it: results that are in the folder already are kept."""
    from dataclasses import replace

    from restive.arguments import checked_count
    from restive.experiment import Ledger, load_study, run_study
    from restive.experiment.manifest import MANIFEST

    if (study / MANIFEST).is_file():
        found, out = Ledger.open(study).study, out or study
    else:
        found = load_study(study)
    if replications is not None:
        found = replace(found, replications=checked_count(replications, "replications"))
    tls = tls_of(tls_ca_file, tls_cert, tls_key)
    if check:
        with spinner("trying each case"):
            _print_check(found)
        return
    if out is None:
        raise RestiveError("where to? name a results folder: --out DIR (or --check the file)")
    if scheduler is not None and executor == "threads":
        executor = "dask"  # the only one that has a scheduler
    with going_on(out), run_display(found.title) as display:
        ledger = run_study(
            found,
            out,
            executor=executor,
            workers=workers,
            scheduler=scheduler,
            tls=tls,
            progress=display,
            tell=tell,
        )
    _print_results(ledger)


def tls_of(ca_file: Path | None, cert: Path | None, key: Path | None) -> TLS | None:
    """Return the files to speak to a cluster with; all three or none."""
    from restive.experiment import TLS

    if ca_file is None and cert is None and key is None:
        return None
    if ca_file is None or cert is None or key is None:
        raise RestiveError("give --tls-ca-file, --tls-cert and --tls-key together")
    return TLS(ca_file, cert, key)


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """Say how to continue when a run is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        tell(
            f"stopped; what is done is kept in {folder}, and the same command continues from there"
        )
        raise typer.Exit(130) from None


def status(folder: Results) -> None:
    """Report how far a study is."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from restive.experiment import Ledger
    from restive.experiment.chunk_file import DamagedChunkError

    ledger = Ledger.open(folder)
    wanted = ledger.study.replications
    table = Table(title=escape(ledger.study.title), caption=_legend(ledger.study))
    table.add_column("case")
    for column in ("done", "of", "chunks", "damaged"):
        table.add_column(column, justify="right")
    whole = True
    for case in ledger.study.cases:
        done = damaged = 0
        tasks = ledger.finished(case)
        for task in tasks:
            try:
                ledger.read(task)
                done += task.count
            except DamagedChunkError:
                damaged += 1
        whole &= done >= wanted
        table.add_row(
            escape(case.title), f"{done:,}", f"{wanted:,}", f"{len(tasks):,}", str(damaged)
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    print(f"run by restive {ledger.manifest['restive']}, {ledger.commits}")
    if ledger.is_being_written():
        print("a run is writing here now")
    elif whole:
        print(f"complete; see it: restive report {folder}")
    else:
        print(f"not complete and nothing is running; continue it: restive run {quote(str(folder))}")


def report(
    folder: Results,
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: DIR/report.html).")
    ] = None,
) -> None:
    """Make one HTML page of a study's results: curves, tables and what was run."""
    from restive.report import write_report
    from restive.reproduction import is_reproduction, render

    with spinner("drawing"):
        page = render(folder, out) if is_reproduction(folder) else write_report(folder, out)
    print(page)


def export(
    folder: Results,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(help="csv, parquet or npz (default: as --out ends, else csv)."),
    ] = None,
    table: Annotated[
        str, typer.Option(help="curves, replications (every one), or posterior.")
    ] = "curves",
    out: Annotated[
        Path | None, typer.Option(help="The file to write (default: DIR/TABLE.FORMAT).")
    ] = None,
) -> None:
    """Write the results as a table for other tools."""
    from restive.experiment.export import export_results

    with spinner("writing"):
        path = export_results(folder, format, table, out)
    print(path)


def tell(line: str) -> None:
    """Write a line for a person."""
    print(f"restive: {line}", file=sys.stderr, flush=True)


def _legend(study: Study) -> str | None:
    """Tell under a table what its numbered labels stand for."""
    from rich.markup import escape

    return escape("\n".join(study.legend)) or None


def _print_check(study: Study) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from restive.experiment.runner import estimate, require_sound
    from restive.replication import available_threads

    require_sound(study)
    count = f"{len(study.cases)} case{'s' * (len(study.cases) > 1)}"
    table = Table(title=escape(f"{study.title}: {count}"), caption=_legend(study))
    table.add_column("case")
    for column in ("arms", "pulls", "horizon", "replications", "seconds", "results"):
        table.add_column(column, justify="right")
    seconds = disk = memory = 0.0
    processors = available_threads()
    for case in study.cases:
        _, prior, num_pulls = case.settings.systems()
        cost = estimate(case, study.replications)
        seconds += cost.seconds
        disk += cost.disk_bytes
        memory = max(memory, cost.memory_bytes)
        table.add_row(
            escape(case.title),
            str(prior.num_arms),
            str(num_pulls),
            f"{case.settings.horizon:,}",
            f"{study.replications:,}",
            f"{cost.seconds / processors:.2g}",
            f"{cost.disk_bytes / 2**20:,.1f} MiB",
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    print(
        f"about {in_words(seconds / processors)} on {processors} processors, "
        f"{disk / 2**20:,.1f} MiB on disk, about {memory / 2**20:,.0f} MiB of memory; "
        "nothing was run"
    )


def _print_results(ledger: Ledger) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from restive.experiment import load_results

    table = Table(title=escape(ledger.study.title), caption=_legend(ledger.study))
    table.add_column("case")
    for column in ("replications", "regret", "±", "reward per step", "J", "episodes"):
        table.add_column(column, justify="right")
    for found in load_results(ledger.folder):
        table.add_row(
            escape(found.case.title),
            f"{found.replications:,}",
            f"{found.regret.mean[-1]:.4g}",
            f"{found.regret.upper[-1] - found.regret.mean[-1]:.2g}",
            f"{found.average_reward.mean[-1]:.5g}",
            f"{found.truth_reward[0]:.5g}",
            f"{found.num_episodes.mean[-1]:.4g}",
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    print(f"kept in {ledger.folder}; see it: restive report {ledger.folder}")
