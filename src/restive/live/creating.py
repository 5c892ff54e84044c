"""Making the file of a live agent."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from restive.errors import ProblemError
from restive.files import replacing
from restive.live.bodies import joining
from restive.live.contents import enter_arms
from restive.live.journal import Journal, as_text, require_absent
from restive.live.memory import Memory
from restive.live.priors import store_priors
from restive.live.roster import NewArm, Roster
from restive.live.session import Now
from restive.live.settings import Settings

__all__ = ["create_file", "fill_file"]


def create_file(
    path: str | os.PathLike[str],
    settings: Settings,
    kinds: Mapping[str, Any],
    arms: Sequence[NewArm],
    actor: str,
    now: Now | None = None,
) -> None:
    """Make the file of a new agent; it is there whole or not at all."""
    require_absent(path)
    with replacing(path) as temporary:
        fill_file(temporary, settings, kinds, arms, actor, now)


def fill_file(
    path: Path,
    settings: Settings,
    kinds: Mapping[str, Any],
    arms: Sequence[NewArm],
    actor: str,
    now: Now | None = None,
    parent: str | None = None,
) -> None:
    """Write the tables and the first event of a new agent into an empty file."""
    roster = Roster(kinds)
    roster.checked(arms)
    roster.add(arms)
    if not roster.moves_alike and settings.missing is None:
        raise ProblemError(
            "pulling changes how some arms move, so say what a pull without a result means: "
            "missing='refuse' or missing='as-not-pulled'"
        )
    Memory(settings, roster)  # finds what is wrong before there is a file
    Journal.prepare(path)
    journal = Journal(path)
    try:
        _write_first(journal, settings, roster, arms, actor, parent, now)
    finally:
        journal.close()


def _write_first(
    journal: Journal, settings: Settings, roster: Roster, arms: Sequence[NewArm], actor: str,
    parent: str | None, now: Now | None,
) -> None:  # fmt: skip
    """Write priors, the first event and its arms."""
    with journal.writing():
        journal.connection.execute(
            "INSERT INTO meta VALUES ('made_by', ?)", (f"restive {version('restive')}",)
        )
        listed = store_priors(journal, roster.kinds)
        body: dict[str, Any] = {
            "settings": json.loads(as_text(settings.to_data())),
            "priors": listed,
            "arms": joining(arms, list(roster.kinds)),
            **({"parent": parent} if parent is not None else {}),
        }
        moment = now() if now is not None else datetime.now(UTC)
        event = journal.append(
            journal.last(), "init", 0, round(moment.timestamp() * 1e6), body, actor
        )
        enter_arms(journal, event, 0, body["arms"])
