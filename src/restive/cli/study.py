"""`restive run`, `status`, `report` and `export`: the life of a study."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

from restive.arguments import bytes_in_words, duration
from restive.cli.completion import complete_formats, complete_tables
from restive.cli.progress import run_display, say, spinner
from restive.cli.tables import print_table
from restive.errors import RestiveError

if TYPE_CHECKING:
    from restive.studies.ledger import Ledger
    from restive.studies.spec import Case, Study

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
    "run_shown",
    "status",
    "tell",
    "where_of",
]

# where a study runs: the same options for every command that runs one
Executor = Annotated[str, typer.Option(help="Where to run: serial, threads or dask.")]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="Threads or local Dask workers (default: one per processor)."),
]
Scheduler = Annotated[
    str | None, typer.Option(help="Address of a Dask cluster, such as tls://host:8786.")
]
TlsCaFile = Annotated[
    Path | None,
    typer.Option(help="For tls://...: certificates to trust (default: Dask's settings)."),
]
TlsCert = Annotated[Path | None, typer.Option(help="For tls://...: our certificate.")]
TlsKey = Annotated[Path | None, typer.Option(help="For tls://...: its key.")]

A_CHUNK = "chunks/*/[0-9]*"  # finished ones: names of others begin with a dot
Results = Annotated[Path, typer.Argument(metavar="DIR", help="Results folder of `restive run`.")]


def run(
    study: Annotated[
        Path,
        typer.Argument(
            metavar="STUDY", help="TOML file of the study, or a results folder to continue."
        ),
    ],
    out: Annotated[
        Path | None, typer.Option(help="Results folder: new, or one to continue.")
    ] = None,
    replications: Annotated[
        int | None, typer.Option(min=1, help="Replications to reach, if more than the file says.")
    ] = None,
    executor: Executor = "threads",
    workers: Workers = None,
    scheduler: Scheduler = None,
    tls_ca_file: TlsCaFile = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    check: Annotated[
        bool, typer.Option("--check", help="Only check the file and report what it would take.")
    ] = False,
) -> None:
    """Run a study, or continue one.

    Results that are already in the folder are kept.
    """
    from dataclasses import replace

    from restive.arguments import checked_count
    from restive.studies.ledger import Ledger
    from restive.studies.manifest import MANIFEST
    from restive.studies.spec import load_study

    if (study / MANIFEST).is_file():
        found, out = Ledger.open(study).study, out or study
    else:
        found = load_study(study)
    if replications is not None:
        found = replace(found, replications=checked_count(replications, "replications"))
    where = where_of(executor, workers, scheduler, tls_ca_file, tls_cert, tls_key)
    if check:
        with spinner("trying each case"):
            _print_check(found)
        return
    if out is None:
        raise RestiveError("name a results folder: --out DIR (or --check the file only)")
    _print_results(run_shown(found, out, where))


def where_of(
    executor: str, workers: int | None, scheduler: str | None, *tls: Path | None
) -> dict[str, Any]:
    """Return the options of `run_study` that say where it runs; of the TLS files all or none."""
    from restive.studies.executors import TLS

    given = [path for path in tls if path is not None]
    if given and len(given) < len(tls):
        raise RestiveError("give --tls-ca-file, --tls-cert and --tls-key together")
    if scheduler is not None and executor == "threads":
        executor = "dask"  # the only one that has a scheduler
    return {
        "executor": executor,
        "workers": workers,
        "scheduler": scheduler,
        "tls": TLS(*given) if given else None,
    }


def run_shown(study: Study, out: Path, where: dict[str, Any]) -> Ledger:
    """Run a study, with its progress on the screen."""
    from restive.studies.runner import run_study

    with going_on(out), run_display(study.title) as display:
        return run_study(study, out, progress=display, tell=tell, **where)


@contextmanager
def going_on(folder: Path) -> Iterator[None]:
    """Say how to continue a run that is stopped."""
    try:
        yield
    except KeyboardInterrupt:
        if any(folder.rglob(A_CHUNK)):
            kept = f"what is done is kept in {folder}, and the same command continues from there"
        else:
            kept = "nothing was finished yet; the same command begins anew"
        tell(f"stopped; {kept}")
        raise typer.Exit(130) from None


def status(
    folder: Results,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Report how far a study has come."""
    from restive.studies.ledger import Ledger

    ledger = Ledger.open(folder)
    cases = [_progress_of(ledger, case) for case in ledger.study.cases]
    whole = all(case["done"] >= case["wanted"] for case in cases)
    running = ledger.is_being_written()
    if as_json:
        data = {
            "title": ledger.study.title,
            "complete": whole,
            "running": running,
            "restive": ledger.manifest["restive"],
            "commits": ledger.commits,
            "cases": cases,
        }
        print(json.dumps(data, indent=2))
        return
    print_table(
        ledger.study.title,
        ("case", "done", "of", "chunks", "damaged"),
        [
            [str(case["title"]), *(f"{case[key]:,}" for key in ("done", "wanted", "chunks")),
             str(case["damaged"])]
            for case in cases
        ],
        words=("case",),
        drop=("chunks",),
        caption="\n".join(ledger.study.legend),
    )  # fmt: skip
    print(f"run by restive {ledger.manifest['restive']}, {ledger.commits}")
    if running:
        print("a run is writing here now")
    elif whole:
        print(f"complete; to see it: restive report {quote(str(folder))}")
    else:
        print(
            f"not complete, and nothing is running; to continue: restive run {quote(str(folder))}"
        )


def _progress_of(ledger: Ledger, case: Case) -> dict[str, Any]:
    """Return how many replications of a case are there, and in how many files."""
    from restive.studies.chunk_file import DamagedChunkError

    done = damaged = 0
    tasks = ledger.finished(case)
    for task in tasks:
        try:
            ledger.read(task)
            done += task.count
        except DamagedChunkError:
            damaged += 1
    return {
        "case": case.number,
        "title": case.title,
        "done": done,
        "wanted": ledger.study.replications,
        "chunks": len(tasks),
        "damaged": damaged,
    }


def report(
    folder: Results,
    out: Annotated[
        Path | None, typer.Option(help="The page to write (default: DIR/report.html).")
    ] = None,
) -> None:
    """Make an HTML page of a study's results."""
    from restive.paper.page import is_reproduction, write_page
    from restive.studies.report.study_page import write_report

    with spinner("drawing"):
        page = write_page(folder, out) if is_reproduction(folder) else write_report(folder, out)
    print(page)


def export(
    folder: Results,
    format: Annotated[  # noqa: A002
        str | None,
        typer.Option(
            help="csv, parquet or npz (default: as --out ends, else csv).",
            autocompletion=complete_formats,
        ),
    ] = None,
    table: Annotated[
        str,
        typer.Option(
            help="curves, replications (every one), or posterior.", autocompletion=complete_tables
        ),
    ] = "curves",
    out: Annotated[
        Path | None,
        typer.Option(help="The file to write, - for standard output (default: DIR/TABLE.FORMAT)."),
    ] = None,
) -> None:
    """Write the results as a table for other tools."""
    from restive.studies.export import export_results

    if out == Path("-"):
        _export_to_output(folder, format or "csv", table)
        return
    with spinner("writing"):
        path = export_results(folder, format=format, table=table, path=out)
    print(path)


def _export_to_output(folder: Path, format: str, table: str) -> None:  # noqa: A002
    """Write a table to standard output, whole or not at all."""
    from tempfile import TemporaryDirectory

    from restive.studies.export import export_results

    if format != "csv" and sys.stdout.isatty():
        raise RestiveError(f"{format} is not text: send it to a file, as in --out - > {table}")
    with TemporaryDirectory() as scratch, spinner("writing"):
        path = export_results(
            folder, format=format, table=table, path=Path(scratch) / f"{table}.{format}"
        )
        written = path.read_bytes()
    sys.stdout.flush()
    sys.stdout.buffer.write(written)


def tell(line: str) -> None:
    """Print a line for a person."""
    say(f"restive: {line}", sys.stderr)


def _print_check(study: Study) -> None:
    from restive.arguments import counted
    from restive.studies.runner import require_sound
    from restive.studies.timing import estimate
    from restive.threads import available_threads

    require_sound(study)
    rows = []
    seconds = disk = memory = 0.0
    processors = available_threads()
    for case in study.cases:
        _, prior, num_pulls = case.settings.systems()
        cost = estimate(case, study.replications, processors)
        seconds += cost.seconds
        disk += cost.disk_bytes
        memory = max(memory, cost.memory_bytes)
        rows.append(
            [
                case.title,
                f"{prior.num_arms:,}",
                f"{num_pulls:,}",
                f"{case.settings.horizon:,}",
                f"{study.replications:,}",
                duration(cost.seconds / processors),
                bytes_in_words(cost.disk_bytes),
            ]
        )
    print_table(
        f"{study.title}: {counted(len(study.cases), 'case')}",
        ("case", "arms", "pulls", "horizon", "replications", "time", "results"),
        rows,
        words=("case",),
        drop=("results", "pulls"),
        caption="\n".join(study.legend),
    )
    print(
        f"about {duration(seconds / processors)} on {counted(processors, 'processor')}, "
        f"{bytes_in_words(disk)} on disk, about {bytes_in_words(memory)} of memory; nothing was run"
    )


def _print_results(ledger: Ledger) -> None:
    from restive.studies.summary import load_results

    rows = [
        [
            found.case.title,
            f"{found.replications:,}",
            f"{found.regret.mean[-1]:.4g}",
            f"{found.regret.upper[-1] - found.regret.mean[-1]:.2g}",
            f"{found.average_reward.mean[-1]:.5g}",
            f"{found.truth_reward[0]:.5g}",
            f"{found.num_episodes.mean[-1]:.4g}",
        ]
        for found in load_results(ledger.folder)
    ]
    print_table(
        ledger.study.title,
        ("case", "replications", "regret", "± (95%)", "reward per step", "J", "episodes"),
        rows,
        words=("case",),
        drop=("episodes", "J", "replications"),
        caption="\n".join(ledger.study.legend),
    )
    print(f"kept in {ledger.folder}; to see it: restive report {quote(str(ledger.folder))}")
