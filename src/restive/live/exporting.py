"""Tables of a live agent's file as CSV, JSON lines or Parquet."""

from __future__ import annotations

import json
from os import PathLike

from restive.errors import ProblemError
from restive.files import replacing, require_target
from restive.live.table_file import table_text, write_text
from restive.live.view import LiveView

__all__ = ["export_table"]

SUFFIXES = (".csv", ".jsonl", ".parquet")


def export_table(live: LiveView, table: str, path: str | PathLike[str]) -> int:
    """Write a table in the format that the file's ending names; return the number of rows."""
    suffix = require_target(path, SUFFIXES)
    columns, rows = live.table(table)
    if suffix == ".csv":
        write_text(path, table_text(columns, rows))
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
