"""Tables of a live agent's file, in files of other programs."""

from __future__ import annotations

import json
from os import PathLike
from typing import Any

from restive.errors import ProblemError
from restive.files import replacing, require_target
from restive.live.settings import Settings
from restive.live.sheets import sheet_text, write_text
from restive.live.sql_tables import Progress
from restive.live.view import LiveView

__all__ = ["export_table"]

EXPORTS = (".csv", ".jsonl", ".parquet")


def export_table(
    live: LiveView, table: str, path: str | PathLike[str], progress: Progress | None = None
) -> int:
    """Write a table to a new file, in the format that its ending names; return the rows' number."""
    suffix = require_target(path, EXPORTS, absent=True)
    columns, rows = live.table(table, progress)
    if table != "events":  # a line of the journal is for programs
        columns, rows = _with_names(live.settings, columns, rows)
        columns = [live.settings.words.column(column) for column in columns]
    if suffix == ".csv":
        write_text(path, sheet_text(columns, rows))
    elif suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
    else:
        try:
            import pyarrow
            from pyarrow.parquet import write_table
        except ImportError:
            raise ProblemError("Parquet needs `pip install 'restive[io]'`") from None
        by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = {name: list(cells) for name, cells in zip(columns, by_column, strict=True)}
        with replacing(path) as temporary:
            write_table(pyarrow.table(arrays), temporary)
    return len(rows)


def _with_names(
    settings: Settings, columns: list[str], rows: list[tuple[Any, ...]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Give each column of states one of their names, where they have names."""
    for state in ("state", "last_state"):
        if state in columns and settings.has_names:
            at = columns.index(state)
            columns = [*columns[: at + 1], f"{state}_name", *columns[at + 1 :]]
            names = [None if row[at] is None else settings.state_name(row[at]) for row in rows]
            rows = [
                (*row[: at + 1], name, *row[at + 1 :])
                for row, name in zip(rows, names, strict=True)
            ]
    return columns, rows
