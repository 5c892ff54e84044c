"""Deciding: which tick it is, which arms are pulled in it, and what was decided before."""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import Any

from restive.arguments import checked_count
from restive.errors import ConflictError, ProblemError
from restive.live.alarms import ADVICE
from restive.live.answers import Decision
from restive.live.memory import Memory
from restive.live.session import Session, Writer
from restive.live.settings import NOT_PULLED, REFUSE, UNSEEN
from restive.live.sql_tables import DECIDED, enter_choice, enter_unseen

__all__ = ["decide", "decision", "decision_or_none", "ring", "tick_now"]

MOST_MISSED = 10**6
CLOCK = "clock"


def tick_now(session: Session, memory: Memory, tick: int | None) -> int:
    """Return the tick of the decision that is asked for, by the file's clock."""
    clock = memory.settings.clock
    if clock.kind == "given":
        if tick is None:
            raise ProblemError("this file's clock is what you say: pass tick")
        now = tick
    elif clock.kind == "calls":
        now = memory.tick + 1
        if memory.open is not None and memory.open.missing:
            now = memory.tick
    else:
        now = clock.tick_at(session.at)
        if now < 0:
            raise ProblemError(f"the first tick begins {clock.label(0)}; it is too early to decide")
        now = max(now, memory.tick)
    if tick is not None and tick not in (now, memory.tick):
        raise ConflictError(f"it is tick {now} by the file's clock, not {tick}")
    now = now if tick is None else tick
    if now < memory.tick:
        raise ConflictError(
            f"tick {now} is over: tick {memory.tick} was decided; time never goes back"
        )
    return now


def decide(
    session: Session, memory: Memory, tick: int, num_pulls: int | None,
    unavailable: Iterable[str], writer: Writer, *, skip: bool = False,
) -> None:  # fmt: skip
    """Decide a tick, inside a transaction, unless it is decided."""
    if memory.tick == tick:
        return
    before = memory.tick
    _require_results(memory)
    if tick - before > MOST_MISSED and not skip:
        raise ProblemError(
            f"{tick - before - 1:,} ticks have passed since the last decision; pass skip=True (or "
            "--skip) if that is right"
        )
    out = sorted({memory.roster.slot(name) for name in unavailable} - memory.gone.keys())
    free = memory.num_available - len(out)
    if num_pulls is None:
        wanted = min(memory.settings.num_pulls, free)
    else:
        wanted = checked_count(num_pulls, "num_pulls", 0)
        if wanted > free:
            raise ProblemError(f"num_pulls is {wanted}, but only {free} arms are available")
    memory = session.touch()
    if memory.open is not None and memory.open.missing:
        enter_unseen(session.journal, before)
    memory.begin_tick(tick)
    choice = memory.choose(tick, wanted, out)
    memory.take(tick, choice)
    body: dict[str, Any] = {
        "arms": choice.arms,
        "pulls": wanted,
        "mean": fsum(choice.expected),
        "variance": fsum(choice.variance),
    }
    if out:
        body["out"] = out
    if choice.audit:
        body["audit"] = choice.audit
    event = writer.append("decide", tick, body, {"decision": tick}, applied=True)
    enter_choice(session.journal, event, choice)
    ring(session, memory)


def ring(session: Session, memory: Memory) -> None:
    """Journal the alarms that are due."""
    rings, memory.rings = memory.rings, []
    for name in rings:
        what, _, kind = name.partition(": ")
        sentence = ADVICE[what] if not kind else f"kind {kind!r}: {ADVICE[what]}"
        body = {"name": name, "sentence": sentence, "capital": memory.watches.value(name)}
        session.append("alarm", memory.tick, body, "restive")
    clock = memory.settings.clock
    set_back = clock.kind == "wall" and clock.tick_at(session.at) < memory.tick
    if set_back and CLOCK not in memory.watches.ringing:
        sentence = "the machine's clock was set back; ticks wait until it has caught up"
        session.append("alarm", memory.tick, {"name": CLOCK, "sentence": sentence}, "restive")


def _require_results(memory: Memory) -> None:
    """Raise if the open tick must not be closed yet."""
    now = memory.open
    if now is None or memory.roster.moves_alike or memory.settings.missing != REFUSE:
        return
    missing = now.missing
    if missing:
        names = ", ".join(repr(memory.roster.names[arm]) for arm in missing[:5])
        raise ProblemError(
            f"{len(missing)} pulls of tick {now.tick} have no result ({names}"
            f"{', ...' if len(missing) > 5 else ''}), and pulling changes how arms move: record a "
            f"state, or {NOT_PULLED!r}; {UNSEEN!r} is refused by this file's settings"
        )


def decision(session: Session, tick: int) -> Decision:
    """Return the decision of a tick that has one."""
    found = decision_or_none(session, tick)
    assert found is not None
    return found


def decision_or_none(session: Session, tick: int) -> Decision | None:
    """Return the decision of a tick; None if there is none."""
    memory, execute = session.memory, session.journal.connection.execute
    names, clock = memory.roster.names, memory.settings.clock
    now = memory.open
    if now is not None and now.tick == tick:
        choice = now.choice
        slots, audit, index = choice.arms, choice.audit, choice.index
        expected = choice.expected
    else:
        if not execute(
            "SELECT 1 FROM event WHERE kind = 'decide' AND tick = ?", (tick,)
        ).fetchone():
            return None
        found = execute(
            f"SELECT slot, expected, audit FROM pull WHERE tick = ? AND {DECIDED} ORDER BY slot",
            (tick,),
        ).fetchall()
        slots, expected = [row[0] for row in found], [row[1] for row in found]
        audit, index = [slot for slot, _, drawn in found if drawn], [None] * len(found)
    return Decision(
        tick=tick,
        arms=tuple([names[slot] for slot in slots]),
        expected=tuple(expected),
        index=tuple(index),
        audit=tuple([names[slot] for slot in audit]),
        begins=clock.begins(tick),
        expires=clock.begins(tick + 1) if clock.kind == "wall" else None,
    )
