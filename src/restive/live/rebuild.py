"""A new file from an old one: all sightings in the order of time, with corrections taken in.

Decisions stay what they were; what was late or superseded is seen at its own time. The new file's
first event holds the digest of the old one's last, so that it is known what it came from.
"""

from __future__ import annotations

import os
from typing import Any

from restive.files import replacing
from restive.live.agent import LiveAgent
from restive.live.bodies import new_arms
from restive.live.contents import (
    enter_arms,
    enter_choice,
    enter_instead,
    enter_leave,
    enter_results,
    enter_unseen,
)
from restive.live.creating import fill_file
from restive.live.journal import Event, Journal, require_absent
from restive.live.priors import stored_priors
from restive.live.recording import Writer
from restive.live.session import Now, Session
from restive.live.settings import Settings

__all__ = ["rebuild"]

REBUILD = "rebuild"


def rebuild(
    path: str | os.PathLike[str], out: str | os.PathLike[str], now: Now | None = None
) -> LiveAgent:
    """Write a new file of all that is known now, and open it."""
    require_absent(out)
    old = Journal(path)
    try:
        with old.reading():
            events = list(old.checked_events())
            kinds = stored_priors(old, events[0].body["priors"])
    finally:
        old.close()
    first = events[0].body
    settings, arms = Settings.from_data(first["settings"]), new_arms(first["arms"], list(kinds))
    with replacing(out) as temporary:
        fill_file(temporary, settings, kinds, arms, REBUILD, now, events[-1].digest.hex())
        session = Session(Journal(temporary), now)
        with session.writing():
            for event in _in_order_of_time(events):
                _enter(session, event)
        session.journal.close()
    return LiveAgent.open(out, now=now)


def _in_order_of_time(events: list[Event]) -> list[tuple[str, int, dict[str, Any]]]:
    """Return kind, tick and body of the new file's events."""
    found: list[tuple[str, int, dict[str, Any]]] = []
    results: dict[int, dict[int, int | str]] = {}
    instead: dict[int, dict[int, int]] = {}
    decided: list[int] = []
    for event in events[1:]:
        body = event.body
        if event.kind in ("join", "leave"):
            body.pop("answer", None)
            found.append((event.kind, event.tick, body))
        elif event.kind == "decide":
            decided = body["arms"]
            kept = {"arms": body["arms"], "pulls": len(body["arms"]), "kept": True}
            found.append(("decide", event.tick, kept | {"audit": body.get("audit", [])}))
        elif event.kind in ("record", "late", "override", "correct"):
            pairs = dict(zip(body.get("arms", decided), body["results"], strict=True))
            others = instead.setdefault(event.tick, {})
            if event.kind == "override":
                others |= pairs
                continue
            for slot, result in pairs.items():
                of = others if slot in others else results.setdefault(event.tick, {})
                of[slot] = result
    ticks = {tick for kind, tick, _ in found if kind == "decide"}
    undecided = [tick for tick in sorted(instead.keys() - ticks) if instead[tick]]
    found += [("decide", tick, {"arms": [], "pulls": 0, "kept": True}) for tick in undecided]
    order = sorted(range(len(found)), key=lambda i: (found[i][1], found[i][0] == "decide", i))
    ordered = []
    for i in order:
        kind, tick, _ = found[i]
        ordered.append(found[i])
        if kind == "decide":
            ordered += [
                (name, tick, {"arms": sorted(given), "results": [given[k] for k in sorted(given)]})
                for name, given in (("record", results.get(tick)), ("override", instead.get(tick)))
                if given
            ]
    return ordered


def _enter(session: Session, event: tuple[str, int, dict[str, Any]]) -> None:
    kind, tick, body = event
    journal, memory = session.journal, session.memory
    writer = Writer(session, REBUILD, None, None)
    before, first = memory.tick, len(memory.roster)
    entered = writer.append(kind, tick, body, None)
    if kind == "join":
        enter_arms(journal, entered, first, body)
    elif kind == "leave":
        enter_leave(journal, entered, body["arms"])
    elif kind == "decide":
        assert memory.open is not None
        enter_unseen(journal, before)
        enter_choice(journal, entered, memory.open.choice)
    elif kind == "record":
        enter_results(journal, entered, body)
    else:
        enter_instead(journal, entered, body)
