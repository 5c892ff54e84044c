"""The indices of a bandit's arms as a file: a table (.csv, .npz) or a picture."""

from __future__ import annotations

import csv
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.figures import FIGURE_SUFFIXES, plot_panels
from restive.files import replacing, require_target, spreadsheet_text
from restive.overview import ranges
from restive.policies import best_index, lp_priority
from restive.policies.base import index_columns
from restive.policies.myopic import myopic_table
from restive.policies.whittle import whittle_index
from restive.problem import Kinds, RestlessBandit, kinds_of

__all__ = ["TABLE_SUFFIXES", "plot_indices", "write_index_table"]

TABLE_SUFFIXES = (".csv", ".npz")
INDICES = ("whittle", "whittle_upper", "myopic", "lp_priority", "best_index")

Tables = dict[str, NDArray[np.float64]]  # of one kind of arm, by the name of the index


def write_index_table(
    bandit: RestlessBandit,
    path: str | PathLike[str],
    max_elapsed: int | None = None,
    discount: float = 1.0,
) -> None:
    """Write the indices of every kind of arm by last state and elapsed steps, as CSV or NPZ."""
    suffix = require_target(path, TABLE_SUFFIXES)
    kinds = kinds_of(bandit)
    tables = _tables(bandit, kinds, max_elapsed, discount)
    with replacing(path) as temporary:
        if suffix == ".csv":
            _write_csv(temporary, kinds, tables)
            return
        arrays: dict[str, NDArray[Any]] = {"kind_of_arm": kinds.of}
        for j, own in enumerate(tables):
            arrays |= {f"{name}_{j}": table for name, table in own.items()}
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def plot_indices(
    bandit: RestlessBandit,
    path: str | PathLike[str],
    max_elapsed: int | None = None,
    discount: float = 1.0,
) -> None:
    """Draw Whittle index against elapsed steps, a line per last state and a panel per kind of arm.

    The file's ending chooses the format (png, svg, pdf). Beyond 12 kinds the first 12 are drawn.
    """
    suffix = require_target(path, FIGURE_SUFFIXES)
    kinds = kinds_of(bandit)
    panels = [
        whittle_index(arm, discount, max_elapsed).panel(label)
        for arm, label in zip(kinds.arms, kinds.labels, strict=True)
    ]
    title = f"Whittle index of {bandit.num_arms} arms ({len(panels)} kinds)"
    figure = plot_panels(panels, "Whittle index", title)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix.lstrip("."))


def _tables(
    bandit: RestlessBandit, kinds: Kinds, max_elapsed: int | None, discount: float
) -> list[Tables]:
    priority = lp_priority(bandit, max_elapsed).tables
    best = best_index(bandit, max_elapsed).tables
    found = []
    for j, arm in enumerate(kinds.arms):
        whittle = whittle_index(arm, discount, max_elapsed)
        myopic = myopic_table(arm, max_elapsed)
        values = (whittle.index, whittle.upper, myopic, priority[j], best[j])
        found.append(dict(zip(INDICES, values, strict=True)))
    return found


def _write_csv(path: Path, kinds: Kinds, tables: list[Tables]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for j, arm in enumerate(kinds.arms):
            columns = index_columns(arm, **tables[j])
            columns["last_state_name"] = np.array(
                [spreadsheet_text(name) for name in columns["last_state_name"].tolist()]
            )
            if j == 0:
                writer.writerow(["arms", "name", *columns])
            head = [ranges(np.flatnonzero(kinds.of == j)), spreadsheet_text(arm.name or "")]
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            writer.writerows([*head, *row] for row in rows)
