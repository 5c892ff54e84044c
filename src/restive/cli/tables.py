"""Tables on a terminal of any width: where there is no room, columns are left out."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["print_lines", "print_table", "terminal"]

NO_TERMINAL = 120  # columns, where nobody says how many
PADDING = 3  # columns of the terminal beside each column of a table
LEAST_COLUMNS = 2
LEAST_NAME = 8  # columns of the terminal that names need, in several lines
LEAST_PROSE = 20  # columns of the terminal that sentences need
LONGEST_WORD = 24  # that is not broken
COLOURS: Mapping[str, str] = {"holds": "green", "fails": "bold red", "undecided": "yellow"}


def terminal() -> Console:
    """Return where tables are printed; what is piped is as wide as COLUMNS says, if it is set."""
    from rich.console import Console

    columns = os.environ.get("COLUMNS", "")
    said = columns.isdecimal() and int(columns) > 0
    return Console(width=None if said or sys.stdout.isatty() else NO_TERMINAL)


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: Sequence[str],
    prose: Sequence[str] = (),
    drop: Sequence[str] = (),
    caption: str = "",
    explained: Mapping[str, str] = MappingProxyType({}),
    elsewhere: str = "",
    ruled: bool = False,
) -> None:
    """Print a table, a line per row but for `prose`; where it is too wide, columns are left out.

    Parameters
    ----------
    title, header, rows, caption, ruled
        What it shows; `ruled` draws a line between rows.
    words
        Columns of names and the like; all that is neither these nor prose is a number.
    prose
        Columns of sentences, which are broken between words.
    drop
        Columns that are left out where there is no room, the first of these first; a line below
        the table names them. Beyond these the last ones go.
    explained
        Sentences on columns, which follow the caption where there is room for the column.
    elsewhere
        Where columns can be seen that are left out, beside a wider window: " and with --json".
    """
    console = terminal()
    columns = [_Column.of(name, rows, at, words, prose) for at, name in enumerate(header)]
    kept, widths = _fitting(columns, drop, console.width)
    there = {column.at for column in kept}
    left_out = [name for at, name in enumerate(header) if at not in there]
    about = [words for name, words in explained.items() if name not in left_out]
    caption = " ".join(filter(None, (caption, *about)))
    if left_out:
        said = f"left out, for want of room: {', '.join(left_out)}; shown in a wider window"
        caption = f"{caption}\n{said}{elsewhere}" if caption else f"{said}{elsewhere}"
    console.print(_table(title, kept, widths, rows, caption, ruled))


def print_lines(lines: Sequence[str]) -> None:
    """Print lines as they are, broken between words where they are too long."""
    console = terminal()
    for line in lines:
        console.print(line, highlight=False, markup=False)


class _Column(NamedTuple):
    """A column of a table: its place, what is in it, and how narrow it may be."""

    name: str
    at: int
    is_number: bool
    is_prose: bool
    least: int
    natural: int

    @classmethod
    def of(
        cls, name: str, rows: Sequence[Sequence[str]], at: int, words: Sequence[str],
        prose: Sequence[str],
    ) -> _Column:  # fmt: skip
        from rich.cells import cell_len

        lines = [line for row in rows for line in row[at].splitlines()]
        widest = max(map(cell_len, lines), default=0)
        heading = max(map(cell_len, name.split()), default=1)
        if name not in prose:
            wide = max(widest, cell_len(name))
            return cls(name, at, name not in words, False, max(widest, heading), wide)
        longest = max((cell_len(word) for line in lines for word in line.split()), default=0)
        least = max(heading, min(longest, LONGEST_WORD), min(widest, LEAST_PROSE))
        return cls(name, at, False, True, least, max(widest, cell_len(name)))

    @property
    def as_prose(self) -> _Column:
        """Broken into lines however narrow they are."""
        return self._replace(is_prose=True, least=min(self.least, LEAST_NAME))


def _fitting(
    columns: Sequence[_Column], drop: Sequence[str], width: int
) -> tuple[list[_Column], list[int]]:
    """Return the columns that there is room for, and how wide each is."""
    kept = list(columns)

    def too_wide() -> bool:
        return sum(column.least + PADDING for column in kept) + 1 > width

    gone: list[_Column] = []
    for name in drop:
        if too_wide():
            gone += [column for column in kept if column.name == name]
            kept = [column for column in kept if column.name != name]
    for column in reversed(gone):  # a narrow one may fit where a wide one went
        before, kept = kept, sorted([*kept, column], key=lambda c: c.at)
        kept = before if too_wide() else kept
    if too_wide():  # long names go over several lines
        kept = [column if column.is_number else column.as_prose for column in kept]
    while too_wide() and len(kept) > LEAST_COLUMNS:
        kept.pop()
    room = max(width - 1 - sum(column.least + PADDING for column in kept), 0)
    widths: list[int] = []
    for column in kept:  # numbers have what they need; sentences share the rest
        wanted = max(column.natural - column.least, 0)
        others = [c for c in kept[len(widths) + 1 :] if c.natural > c.least]
        given = min(wanted, room // (1 + len(others)) if others else room)
        room -= given
        widths.append(column.least + given)
    return kept, widths


def _table(
    title: str,
    columns: Sequence[_Column],
    widths: Sequence[int],
    rows: Sequence[Sequence[str]],
    caption: str,
    ruled: bool,
) -> Table:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=escape(title), caption=escape(caption) if caption else None, show_lines=ruled
    )
    for column, width in zip(columns, widths, strict=True):
        side: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.name, justify=side, width=width)
    for row in rows:
        cells = (row[column.at] for column in columns)
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in cells))
    return table
