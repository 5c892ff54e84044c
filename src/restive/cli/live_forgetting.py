"""`restive live forget` and `remember`: for arms that have changed, or do so all the time."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from restive.cli.live_init import COMMAND_LINE, By
from restive.cli.live_places import AsJson, File, opened
from restive.cli.progress import say
from restive.errors import ProblemError

__all__ = ["forget", "remember"]


def forget(
    file: File,
    arms: Annotated[
        list[str] | None, typer.Argument(metavar="[ARM]...", help="Of whom, by name.")
    ] = None,
    before: Annotated[
        str | None,
        typer.Option(help="The first date that still counts, or its number (required)."),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="Of all of this kind instead.")] = None,
    everyone: Annotated[bool, typer.Option("--all", help="Of everyone instead.")] = False,
    as_json: AsJson = False,
    by: By = COMMAND_LINE,
) -> None:
    """Forget what was seen of some arms before a date, where they have changed."""
    if (bool(arms) + (kind is not None) + everyone) != 1:
        raise ProblemError("say of whom: a name, --kind KIND or --all; nothing was changed")
    with opened(file) as agent:
        words, clock, last = agent.settings.words, agent.settings.clock, max(agent.tick, 1)
        if before is None:
            raise ProblemError(
                f"say from which {words.tick} on results still count: add --before "
                f"{clock.label(last) or last}; nothing was changed"
            )
        done = agent.forget(before, arms or None, kind=kind, actor=by)
    if as_json:
        print(json.dumps(asdict(done)))
    else:
        say(f"{done.text(words)}; if that was not meant: restive live undo {file}")


def remember(
    file: File,
    ticks: Annotated[
        float | None,
        typer.Option("--for", help="Results of so many ticks ago count 37%, older ones less."),
    ] = None,
    for_ever: Annotated[
        bool, typer.Option("--for-ever", help="Old results count as much as new ones.")
    ] = False,
    by: By = COMMAND_LINE,
) -> None:
    """Show or change how long what was seen is remembered, for arms that change all the time."""
    from restive.live.acts.forgetting import said_of_memory

    if for_ever and ticks is not None:
        raise ProblemError("say --for TICKS or --for-ever, not both; nothing was changed")
    with opened(file) as agent:
        if for_ever or ticks is not None:
            agent.remember(ticks, actor=by)
        said = said_of_memory(agent.settings)
    say(said)
