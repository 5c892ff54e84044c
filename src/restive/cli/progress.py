"""What a command shows while it runs: on a terminal only, but for a line a minute in a log."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from shutil import get_terminal_size
from textwrap import fill
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Protocol, TextIO

from restive.arguments import duration

if TYPE_CHECKING:
    from restive.studies.runner import Progress

__all__ = ["bar", "run_display", "say", "spinner", "wrapped"]

COMMAND = ": restive live "  # before what somebody may copy
LOG_SECONDS = 60
MOST_BARS = 12  # cases that have one of their own
NARROW = 80  # columns, below which the rate is not shown
BAR_ROOM, RATE_ROOM = 24, 24  # columns beside the names: bar, share and time; rate


class Show(Protocol):
    """Shows the current step, and how many of its parts are done where they are counted."""

    def __call__(self, step: str, done: int = 0, total: int = 0) -> None:
        """Show a step; `total` is 0 where its parts are not counted."""


def say(text: str, file: TextIO | None = None) -> None:
    """Print a text, on a terminal broken between words."""
    out = sys.stdout if file is None else file
    print(wrapped(text) if out.isatty() else text, file=out, flush=True)


def wrapped(text: str) -> str:
    """Return a text broken between words, as wide as the terminal is.

    A command to copy, at the end of a line, has a line of its own, which is not broken.
    """
    width = get_terminal_size().columns
    lines = []
    for line in text.split("\n"):
        said, colon, command = line.partition(COMMAND)
        lines.append(fill(said + colon[:1], width, break_long_words=False, break_on_hyphens=False))
        if colon:
            lines.append(f"  {COMMAND[2:]}{command}")
    return "\n".join(lines)


@contextmanager
def spinner(title: str) -> Iterator[Show]:
    """Show the current step on stderr while it runs; nothing when that is no terminal."""
    if not sys.stderr.isatty():  # then rich, which takes its time to load, is not needed
        yield lambda step, done=0, total=0: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None)

        def show(step: str, done: int = 0, total: int = 0) -> None:
            count = f" {done:,} of {total:,}" if total > 1 else ""
            progress.update(
                task,
                description=escape(f"{title}: {step}{count}"),
                completed=done,
                total=total or None,
            )

        yield show


@contextmanager
def bar(title: str) -> Iterator[Callable[[str, float], None]]:
    """Show what is being done and how far it is on stderr; nothing when that is no terminal."""
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    if not console.is_terminal:
        yield lambda what, share: None
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(escape(title), total=1.0)
        yield lambda what, share: progress.update(
            task, description=escape(f"{title}: {what}"), completed=share
        )


@contextmanager
def run_display(title: str) -> Iterator[Callable[[Progress], None]]:
    """Show how far a run is, its rate and the time left, on stderr."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        with _log(title) as show_in_log:
            yield show_in_log
        return
    from rich.markup import escape
    from rich.progress import BarColumn, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    rate_column = [] if console.width < NARROW else [TextColumn("{task.fields[rate]}")]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        *rate_column,
        TimeRemainingColumn(elapsed_when_finished=True),
    )

    def shortened(name: str) -> str:
        room = console.width - BAR_ROOM - len(rate_column) * RATE_ROOM
        return escape(name if len(name) <= room else f"{name[: room - 1]}…")

    with Bars(*columns, console=console) as bars:
        total = bars.add_task(shortened(title), total=None, rate="")
        parts: dict[str, TaskID] = {}
        began = monotonic()

        def show(progress: Progress) -> None:
            if not parts and 1 < len(progress.cases) <= MOST_BARS:
                for name, different in _told_apart(progress.cases).items():
                    parts[name] = bars.add_task(shortened(f"  {different}"), rate="")
            for name, part in parts.items():
                bars.update(part, total=progress.replications, completed=progress.cases[name])
            rate = progress.done / max(monotonic() - began, 1e-9)
            bars.update(
                total,
                total=progress.total,
                completed=sum(progress.cases.values()),
                rate=f"{rate:,.0f} replications/s" if progress.done else "",
            )

        yield show


def _told_apart(names: Iterable[str]) -> dict[str, str]:
    """Return what tells each case from the others: a bar has no room for more."""
    parts = {name: name.split(", ") for name in names}
    common = set.intersection(*(set(own) for own in parts.values()))
    return {
        name: ", ".join(part for part in own if part not in common) or name
        for name, own in parts.items()
    }


@contextmanager
def _log(title: str) -> Iterator[Callable[[Progress], None]]:
    """Write a line a minute, also while nothing ends: what a person looks for in a log."""
    began, ended = monotonic(), Event()
    known: list[Progress] = []  # the newest alone

    def show(progress: Progress) -> None:
        known[:] = [progress]

    def write() -> None:
        while not ended.wait(LOG_SECONDS):
            far = _how_far(known[0], monotonic() - began) if known else "being prepared"
            print(f"{datetime.now():%Y-%m-%d %H:%M:%S} {title}: {far}", file=sys.stderr, flush=True)

    writer = Thread(target=write, daemon=True)
    writer.start()
    try:
        yield show
    finally:
        ended.set()
        writer.join()


def _how_far(progress: Progress, seconds: float) -> str:
    far = f"{sum(progress.cases.values()):,} of {progress.total:,} replications"
    if not progress.done:
        return f"{far}, none new so far"
    rate = progress.done / seconds
    left = duration((progress.to_do - progress.done) / rate)
    return f"{far}, {rate:,.{0 if rate >= 1 else 2}f}/s, {left} left"
