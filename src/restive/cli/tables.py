"""Tables on a terminal of any width: where the numbers have no room, a block per row."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

__all__ = ["duration", "print_lines", "print_table", "size", "terminal"]

NO_TERMINAL = 120  # columns
CUT = "…"  # where rich has cut a word
COLOURS: Mapping[str, str] = {"holds": "green", "fails": "bold red", "undecided": "yellow"}
MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365.25 * 86_400
DURATIONS = (  # up to which each is used, its length, and how it is written
    (1, 1, "{:.1f} s"),
    (100, 1, "{:.0f} s"),
    (90 * MINUTE, MINUTE, "{:.0f} min"),
    (48 * HOUR, HOUR, "{:.1f} h"),
    (1000 * DAY, DAY, "{:.0f} days"),
    (inf, YEAR, "{:,.1f} years"),
)


def terminal() -> Console:
    """Return where tables are printed."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else NO_TERMINAL)


def print_table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    words: Sequence[str],
    caption: str = "",
    ruled: bool = False,
) -> None:
    """Print a table; columns of `words` may be broken into lines, those of numbers never are."""
    console = terminal()
    numbers = [at for at, name in enumerate(header) if name not in words]
    table = _table(title, header, rows, numbers, caption, ruled)
    with console.capture() as captured:
        console.print(table)
    text = captured.get()
    if CUT not in text and all(row[at] in text for row in rows for at in numbers):
        console.print(table)
    else:
        print_lines(_blocks(title, header, rows, caption))


def print_lines(lines: Sequence[str]) -> None:
    """Print lines as they are, broken between words where they are too long."""
    console = terminal()
    for line in lines:
        console.print(line, highlight=False, markup=False)


def duration(seconds: float) -> str:
    """Return a time for a person: "12 s", "3 min", "2.5 h", "9 days", "55.6 years"."""
    unit, written = next((unit, written) for most, unit, written in DURATIONS if seconds < most)
    return written.format(seconds / unit)


def size(count: float) -> str:
    """Return a number of bytes for a person: "12.0 KiB", "185.5 GiB"."""
    for name in ("B", "KiB", "MiB", "GiB"):
        if count < 1000:
            return f"{count:,.0f} {name}" if name == "B" else f"{count:,.1f} {name}"
        count /= 1024
    return f"{count:,.1f} TiB"


def _table(
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    numbers: Sequence[int],
    caption: str,
    ruled: bool,
) -> Table:
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=escape(title), caption=escape(caption) if caption else None, show_lines=ruled
    )
    for at, name in enumerate(header):
        if at in numbers:
            widest = max((len(row[at]) for row in rows), default=0)
            table.add_column(name, justify="right", min_width=widest)
        else:
            table.add_column(name)
    for row in rows:
        table.add_row(*(Text(cell, style=COLOURS.get(cell, "")) for cell in row))
    return table


def _blocks(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], caption: str
) -> list[str]:
    lines = [title] if title else []
    for first, *rest in rows:
        lines.append(first or header[0])
        lines += [f"  {name}: {cell}" for name, cell in zip(header[1:], rest, strict=True) if cell]
    return [*lines, *([caption] if caption else [])]
