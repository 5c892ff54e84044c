"""Where a live agent is, a file or a URL; and `restive live list`, `copy` and `backup`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import typer

from restive.cli.progress import spinner
from restive.errors import ProblemError

if TYPE_CHECKING:
    from restive.live.agent import LiveAgent

__all__ = [
    "AsJson",
    "File",
    "Place",
    "backup",
    "checked_place",
    "copy",
    "last_part",
    "list_agents",
    "opened",
]

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

    journal = Journal(file)
    try:
        journal.backup(out)
    finally:
        journal.close()
    print(f"written: {out}")


@contextmanager
def opened(file: str) -> Iterator[LiveAgent]:
    """Open an agent for a command."""
    from restive.live.agent import LiveAgent

    ending = Path(file).suffix.lower()
    if ending in OTHERS and Path(file).is_file():
        raise ProblemError(
            f"{file}: is a {ending[1:].upper()} file; the file of the agent, which "
            "`restive live init` made, comes first"
        )
    with spinner(f"opening {last_part(file)}") as show:
        agent = LiveAgent.open(file, progress=lambda done, total: show("events", done, total))
    with agent:
        yield agent
