"""Answers to requests that a rebuilt file keeps, and the acts that they tell of.

A rebuild puts all that was seen in the order of time, so a request and what it did are apart: that
it was answered is an event of its own, after all others. Where what it did is withdrawn, so is its
answer, or whoever asks again would be told that all is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from restive.live.journal.events import UNDO, Event, Journal
from restive.live.journal.sql_tables import GoodEvents

__all__ = ["ANSWERED", "answered_requests", "answers_of"]

ANSWERED = "answered"
AGAIN = "again"  # of requests that found nothing to do
TOLD = ("record", "shown", "late", "override", "correct")  # which a rebuild makes one of, by tick


def answered_requests(events: GoodEvents) -> Iterator[tuple[Event, dict[str, Any]]]:
    """Yield the requests that were answered, each with its answer and of what that tells.

    Not those that withdrew something.
    """
    request: Event | None = None
    of: list[list[Any]] = []  # kinds and ticks of what it did
    for event in events.standing():
        if request is not None and '"with"' in event.text and event.body["with"] == request.seq:
            of.append([event.kind, event.tick])
            continue
        if request is not None:
            yield _with_answer(request, of)
        request = event if event.request is not None and event.kind != UNDO else None
        of = [[event.kind, event.tick]]
    if request is not None:
        yield _with_answer(request, of)


def _with_answer(request: Event, of: list[list[Any]]) -> tuple[Event, dict[str, Any]]:
    body = request.body
    return request, {
        "answer": body["answer"],
        "of": body["of"] if request.kind == ANSWERED else of,
    }


def answers_of(journal: Journal, acts: Sequence[Event], withdrawn: set[int]) -> list[Event]:
    """Return the answers that a rebuild kept and that tell of these events, which it made."""
    found = []
    for kept in journal.events(acts[0].seq, kinds=(ANSWERED,)) if acts else ():
        of = kept.body["of"]
        made = [one for one in acts if one.seq < kept.seq]
        if kept.seq not in withdrawn and any(_tells(of, one) for one in made):
            found.append(kept)
    return found


def _tells(of: Sequence[Sequence[Any]], act: Event) -> bool:
    """Whether an answer tells of an event: of the same tick, or found nothing to do since then."""
    kinds = TOLD if act.kind in TOLD else (act.kind,)
    return any(
        tick >= act.tick if kind == AGAIN else kind in kinds and tick == act.tick
        for kind, tick in of
    )
