"""Where a live agent is, a file or a URL; and `restive live list`, `copy` and `backup`."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from shlex import quote
from threading import Timer
from typing import TYPE_CHECKING, Annotated, TextIO

import typer

from restive.cli.progress import Show, say, spinner
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent

__all__ = [
    "OTHERS",
    "AsJson",
    "File",
    "Place",
    "backup",
    "checked_place",
    "copy",
    "last_part",
    "list_agents",
    "opened",
    "tell_moved",
    "way_back",
]

PATIENCE = 1.0  # seconds of waiting that need no word
OTHERS = (".csv", ".toml", ".json", ".xlsx", ".parquet", ".txt")  # which are no agents' files


def checked_place(place: str | None) -> str | None:
    """Return a path or a URL as it was given; one with a password would show it to everybody."""
    from restive.live.journal.events import is_url

    if place is None or not is_url(place):
        return place if place is None else str(Path(place))
    from restive.live.journal.postgres import agent_place

    if agent_place(place, whole="#" not in place).secret:
        raise ProblemError(
            "a password in a URL can be read by everybody on this machine; leave it out, and set "
            "PGPASSWORD, or keep it in a file that PGPASSFILE or PGSERVICEFILE names"
        )
    return place


def last_part(place: str) -> str:
    """Return how a place is called in a line: its last part."""
    return Path(place).name


File = Annotated[
    str,
    typer.Argument(
        metavar="FILE",
        help="The file that `init` made, or postgresql://USER@HOST/DATABASE#AGENT.",
        callback=checked_place,
    ),
]
Place = Annotated[
    str, typer.Argument(help="The file or URL to make.", metavar="TO", callback=checked_place)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_agents(
    url: Annotated[
        str,
        typer.Argument(
            metavar="URL", help="As postgresql://USER@HOST/DATABASE.", callback=checked_place
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """List what `init` has made in a PostgreSQL database."""
    from restive.live.journal.events import is_url

    if not is_url(url):
        raise ProblemError(f"{url}: a file holds one agent; give a URL, postgresql://HOST/DATABASE")
    from restive.live.journal.postgres import agents_of

    names = agents_of(url)
    if as_json:
        print(json.dumps(names))
        return
    for name in names:
        print(f"{url}#{name}")
    if not names:
        new = quote(f"{url}#NAME")
        print(f"{url}: no agents yet; make one with `restive live init {new}`")


def copy(file: File, to: Place) -> None:
    """Copy all of it into a new file or database, as it is now, with all digests as they are."""
    from restive.live.journal.events import Journal, copy_journal

    journal = Journal(file)
    try:
        with spinner(f"copying {last_part(file)}"):
            count, digest = copy_journal(journal, to)
    finally:
        journal.close()
    print(f"{to}: {count:,} events; the last has digest {digest.hex()[:16]}")


def backup(file: File, out: Annotated[Path, typer.Argument(help="The copy to make.")]) -> None:
    """Write a copy of the file, while others may write to it."""
    from restive.live.journal.events import Journal
    from restive.live.journal.sql_tables import moved_on

    journal = Journal(file)
    try:
        journal.backup(out)
        moved = moved_on(journal)
    finally:
        journal.close()
    tell_moved(file, moved)
    print(f"written: {out}")


def tell_moved(file: str, moved: str | None, out: TextIO | None = None) -> None:
    """Say that a rebuild has made another file of this one, if one has."""
    if moved is not None:
        say(f"{last_part(file)} was rebuilt: {moved} goes on; this file is old", out)


def way_back(file: str, names: Sequence[str]) -> str:
    """Say how those who left come back."""
    one = quote(names[0]) if len(names) == 1 else "NAME"
    return f"if that was not meant: restive live return {quote(file)} {one}"


@contextmanager
def opened(file: str, *, to_write: bool = False) -> Iterator[LiveAgent]:
    """Open an agent for a command; one that writes is told first that a file is old."""
    from restive.live.agent import LiveAgent
    from restive.live.journal.events import WAIT

    ending = Path(file).suffix.lower()
    if ending in OTHERS and Path(file).is_file():
        raise ProblemError(
            f"{file}: is a {ending[1:].upper()} file; the file of the agent, which "
            "`restive live init` made, comes first"
        )
    with spinner(f"opening {last_part(file)}") as show, _telling_who_waits(file, show):
        agent = LiveAgent.open(file, progress=lambda done, total: show("events", done, total))
    agent.wait_for_others(WAIT, lambda: say(_waiting(file), sys.stderr))
    with agent:
        if to_write:
            agent.require_newest()
        yield agent


def _waiting(file: str) -> str:
    return f"waiting: another program has {last_part(file)} open"


@contextmanager
def _telling_who_waits(file: str, show: Show) -> Iterator[None]:
    """Say after a while that another program has the file for itself, if one has."""

    def look() -> None:
        with (
            suppress(sqlite3.OperationalError, ValueError),
            closing(
                sqlite3.connect(f"{Path(file).resolve().as_uri()}?mode=ro", uri=True, timeout=0)
            ) as other,
        ):
            try:
                other.execute("SELECT 1 FROM event LIMIT 1")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:
                    show("waiting: another program has it open")
                    if not sys.stderr.isatty():  # where there is no spinner
                        say(_waiting(file), sys.stderr)

    timer = Timer(PATIENCE, look)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
