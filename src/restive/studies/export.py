"""Results as tables for other tools: csv, parquet or npz, tidy, with the same columns everywhere.

Each row of `curves` is a case at a time, of `posterior` a case, an arm and a time, of
`replications` a case, a replication and a time. All begin with `case`, `learner`,
`mapping` and a column per swept key.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_path, suggestion
from restive.errors import ProblemError, RestiveError
from restive.files import replacing, require_target, spreadsheet_text
from restive.measure.regret import recorded_times
from restive.studies.ledger import Ledger
from restive.studies.spec import Case
from restive.studies.summary import Columns, curve_columns, headed, label_columns, summarise

__all__ = ["FORMATS", "TABLES", "export_results"]

FORMATS = ("csv", "parquet", "npz")
TABLES = ("curves", "replications", "posterior")


def export_results(
    folder: str | PathLike[str],
    path: str | PathLike[str] | None = None,
    *,
    table: str = "curves",
    format: str | None = None,  # noqa: A002
) -> Path:
    """Write a table of a results folder; return the file's path.

    Parameters
    ----------
    folder
        The results folder.
    format
        "csv", "parquet" (needs pyarrow) or "npz", an array per column; by default what the
        ending of `path` says, and "csv" without one.
    table
        "curves": regret, rewards and episodes with standard errors, by case and time; the
        relaxation bound and regret against it are nan where there is none;
        "replications": sums up to each time of every replication;
        "posterior": weight of each arm's truth, where the study recorded it.
    path
        By default in the folder, named after the table.
    """
    folder = checked_path(folder, "folder")
    if path is not None:
        path = checked_path(path, "path")
    if format is None:
        endings = tuple(f".{known}" for known in FORMATS)
        ending = ".csv" if path is None else require_target(path, endings)
        format = ending.removeprefix(".")  # noqa: A001
    for value, known, what in ((format, FORMATS, "format"), (table, TABLES, "table")):
        if value not in known:
            raise ProblemError(f"unknown {what} {value!r}; {suggestion(value, known)}")
    ledger = Ledger.open(folder)
    path = folder / f"{table}.{format}" if path is None else path
    require_target(path, (f".{format}",))
    write = {"csv": _write_csv, "parquet": _write_parquet, "npz": _write_npz}[format]
    with replacing(path) as temporary:
        write(temporary, _blocks(ledger, table))
    return path


def _blocks(ledger: Ledger, table: str) -> Iterator[Columns]:
    """Rows of a table, some at a time, in order."""
    found = False
    labels = label_columns(ledger.study.cases)
    for case in ledger.study.cases:
        if not ledger.replications_done(case):
            continue
        if table == "replications":
            blocks = _replications(ledger, case)
        elif table == "curves":
            blocks = iter([curve_columns(summarise(ledger, case))])
        else:
            blocks = _posterior(ledger, case)
        for block in blocks:
            found = True
            yield headed(case, labels, block)
    if not found:
        what = "no posterior was recorded (posterior = true)" if table == "posterior" else "empty"
        raise RestiveError(f"{ledger.folder}: nothing to export: {what}")


def _posterior(ledger: Ledger, case: Case) -> Iterator[Columns]:
    if not case.settings.posterior:
        return
    found = summarise(ledger, case)
    if found.truth_weights is None:  # a learner without a posterior
        return
    num_times, num_arms = found.truth_weights.mean.shape
    yield {
        "arm": np.repeat(np.arange(num_arms), num_times),
        "time": np.tile(found.times, num_arms),
        "weight": found.truth_weights.mean.T.ravel(),
        "weight_stderr": found.truth_weights.stderr.T.ravel(),
    }


def _replications(ledger: Ledger, case: Case) -> Iterator[Columns]:
    times = recorded_times(case.settings.times, case.settings.horizon)
    for first, arrays in ledger.chunks(case):
        count = len(arrays["expected"])
        yield {
            "replication": np.repeat(np.arange(first, first + count), len(times)),
            "time": np.tile(times, count),
            "expected_reward": arrays["expected"].ravel(),
            "realised_reward": arrays["realised"].ravel(),
            "num_episodes": arrays["episodes"].ravel(),
            "oracle_expected_reward": arrays["oracle_expected"].ravel(),
            "oracle_realised_reward": arrays["oracle_realised"].ravel(),
        }


def _write_csv(path: Path, blocks: Iterator[Columns]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for number, block in enumerate(blocks):
            if number == 0:
                writer.writerow(block)
            writer.writerows(zip(*map(_cells, block.values()), strict=True))


def _cells(column: NDArray[Any]) -> list[Any]:
    """Return a column as Python's numbers, which print with all their digits, or as text."""
    cells: list[Any] = column.tolist()
    return [spreadsheet_text(cell) for cell in cells] if column.dtype.kind == "U" else cells


def _write_parquet(path: Path, blocks: Iterator[Columns]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise RestiveError("parquet needs pyarrow: pip install 'restive[io]'") from None
    writer = None
    try:
        for block in blocks:
            table = pyarrow.table(block)
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _write_npz(path: Path, blocks: Iterator[Columns]) -> None:
    parts = list(blocks)
    columns: Any = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    with path.open("wb") as file:  # given a path, numpy would add an ending to .NPZ
        np.savez_compressed(file, **columns)
