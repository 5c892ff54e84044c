"""Changing: another result in the place of one that came since the last list was made.

What was recorded together with it is withdrawn and recorded again, by whom it was, so that a single
result of a file can be changed. Older results are corrected instead, which takes a rebuild.
"""

from __future__ import annotations

from restive.arguments import shown
from restive.errors import ConflictError
from restive.live.answers import Receipt
from restive.live.recording import Batch, prepare, record
from restive.live.session import Session, Writer
from restive.live.undoing import Pull, acts_since_the_list, changeable, results_of, undo

__all__ = ["change"]


def change(session: Session, name: str, result: int | str, tick: int | None, actor: str) -> Receipt:
    """Put a result in the place of the one that is there, inside a transaction."""
    memory = session.memory
    tick = memory.tick if tick is None else tick
    words, pull = memory.settings.words, (tick, memory.roster.slot(name))
    event = changeable(session).get(pull)
    if event is None:
        raise ConflictError(
            f"{words.arm} {shown(name)}: no result of {words.when(tick)} came since the last list "
            "was made, or another one rests on it; nothing was changed. Correct it instead"
        )
    own = acts_since_the_list(session)[event]
    others = {one: said for one, said in results_of(session, own).items() if one != pull}
    undo(session, event, Writer(session, actor))
    if others:
        _record(session, others, own[0].actor)
    return _record(session, {pull: result}, actor)


def _record(session: Session, results: dict[Pull, int | str], actor: str) -> Receipt:
    memory = session.memory
    by_tick: dict[int, dict[str, int | str]] = {}
    for (tick, slot), result in results.items():
        by_tick.setdefault(tick, {})[memory.roster.names[slot]] = result
    prepared = prepare(session, memory, [Batch(tick, some) for tick, some in by_tick.items()])
    answer = {"receipt": vars(prepared.receipt)}
    record(session, memory, prepared, Writer(session, actor), answer)
    return prepared.receipt
