"""Deciding: which tick it is, which arms are pulled in it, and what was decided before."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from math import fsum
from shlex import quote
from typing import Any

from restive.arguments import checked_count
from restive.errors import ConflictError, JumpError, ProblemError
from restive.live.acts.forgetting import FORGET, forget_by_itself
from restive.live.journal.events import STANDING
from restive.live.journal.sql_tables import DECIDED, enter_choice, enter_unseen
from restive.live.memory import Memory
from restive.live.session import Session, Writer
from restive.live.settings import NOT_PULLED, REFUSE, UNSEEN
from restive.live.told.alarms import CLOCK, advice
from restive.live.told.answers import Decision
from restive.live.told.onset import began

__all__ = ["decide", "decision", "decision_or_none", "following", "ring", "tick_now"]

LONGEST_PAUSE = timedelta(days=366)  # after which a clock that runs by itself is not trusted


def tick_now(session: Session, memory: Memory, tick: int | None) -> int:
    """Return the tick of the decision that is asked for, by the file's clock."""
    clock, words = memory.settings.clock, memory.settings.words
    if clock.kind == "given":
        if tick is None:
            how = "its date or its number" if clock.has_dates else "its number"
            following = memory.tick + 1
            such = f"{clock.label(following)}, or {following}" if clock.has_dates else following
            raise ProblemError(f"say which {words.tick} the list is for, by {how}, such as {such}")
        now = tick
    elif clock.kind == "calls":
        now = memory.tick + 1
        if memory.open is not None and memory.open.missing:
            now = memory.tick
    else:
        now = clock.tick_at(session.at)
        if now < 0:
            first = clock.label(0)
            raise ProblemError(f"the first {words.tick} begins {first}; it is too early to decide")
        now = max(now, memory.tick)
    passed = memory.roster.some_always_seen and tick is not None and memory.tick < tick < now
    if tick is not None and tick not in (now, memory.tick) and not passed:
        passes = (
            f"; {words.many('tick')} pass by themselves in this file: leave the date out, or make "
            "it anew with --by-hand"
        )  # fmt: skip
        raise ConflictError(
            f"it is {words.when(now)} by the file's clock, not {tick}"
            f"{passes if clock.kind == 'wall' else ''}"
        )
    now = now if tick is None else tick
    if now < memory.tick:
        raise ConflictError(
            f"{words.when(now, clock.label(now))} is over: "
            f"{words.when(memory.tick, clock.label(memory.tick))} was decided; "
            "lists are made for that or later; one that was a slip can be undone: "
            f"restive live undo {quote(session.journal.name)}"
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
    if not skip:
        _require_no_jump(memory, tick)
    out = sorted({memory.roster.slot(name) for name in unavailable} - memory.gone.keys())
    away = memory.lost_at(tick).difference(out, memory.gone)
    free = memory.num_available - len(out) - len(away)
    if num_pulls is None:
        wanted = min(memory.settings.num_pulls, free)
    else:
        wanted = checked_count(num_pulls, "num_pulls", 0)
        if wanted > free:
            there = memory.settings.words.count(free, "arm")
            calls = memory.settings.words.count(wanted, "pull")
            raise ProblemError(f"{calls} are asked for, but only {there} can be chosen")
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
    since: dict[str, int] = {}  # by kind, "" for all: when rewards began to be off
    for name in rings:
        body = {"name": name, "sentence": advice(name), "capital": memory.watches.value(name)}
        tick = began(session.journal, memory, name)
        if tick:  # before the first tick there is nothing to forget
            body["began"] = since[name.partition(": ")[2]] = tick
        session.append("alarm", memory.tick, body, "restive")
    if memory.settings.on_alarm == FORGET and memory.roster.joint is None:
        if len(since) > 1:  # where kinds are off, the others need not be
            since.pop("", None)
        for kind, tick in since.items():
            forget_by_itself(session, memory, kind or None, tick)
    clock = memory.settings.clock
    set_back = clock.kind == "wall" and clock.tick_at(session.at) < memory.tick
    if set_back and CLOCK not in memory.watches.ringing:
        body = {"name": CLOCK, "sentence": advice(CLOCK)}
        session.append("alarm", memory.tick, body, "restive")


def _require_no_jump(memory: Memory, tick: int) -> None:
    """Raise if so many ticks would pass that it may be a slip.

    Of a date that somebody types, more than one. A clock on the wall goes on while nobody looks, so
    weeks without a decision are weeks; a jump of years is a clock that is wrong.
    """
    clock, words, missed = memory.settings.clock, memory.settings.words, tick - memory.tick - 1
    seen = memory.roster.some_always_seen
    looked = clock.kind == "wall" and not seen and _pause(memory, tick) <= LONGEST_PAUSE
    if missed < 1 or looked:
        return
    last = "none was made yet"
    if memory.tick >= 0:
        last = f"the last one is of {words.when(memory.tick, clock.label(memory.tick))}"
    jump = (
        f"{words.count(missed, 'tick')} would pass without a list: {last}, this one would be "
        f"of {words.when(tick, clock.label(tick))}"
    )
    waiting = 0 if memory.open is None else len(memory.open.missing)
    if waiting:
        jump += f", and {words.count(waiting, 'pull')} without a result would count as not reached"
    if seen:
        jump += (
            f"; in these nobody was seen, so {words.many('arm')} that are seen every {words.tick} "
            "are on no list until their next states are recorded"
        )
    raise JumpError(jump)


def _pause(memory: Memory, tick: int) -> timedelta:
    """Time from the last decision's tick, or the first tick, to this one."""
    clock = memory.settings.clock
    ends, begins = clock.begins(tick), clock.begins(max(memory.tick, 0))
    assert ends is not None
    assert begins is not None
    return ends - begins


def _require_results(memory: Memory) -> None:
    """Raise if the open tick must not be closed yet."""
    now = memory.open
    if now is None:
        return
    _require_shown(memory)
    if memory.roster.moves_alike or memory.settings.missing != REFUSE:
        return
    missing, words = now.missing, memory.settings.words
    if missing:
        names = ", ".join(repr(memory.roster.names[arm]) for arm in missing[:5])
        raise ProblemError(
            f"no result yet for {words.count(len(missing), 'pull')} of {words.when(now.tick)} "
            f"({names}{', ...' if len(missing) > 5 else ''}), and a {words.pull} changes how "
            f"{words.many('arm')} move: record a state, or {NOT_PULLED!r}; {UNSEEN!r} is refused "
            "by this file's settings"
        )


def _require_shown(memory: Memory) -> None:
    """Raise if a state is missing of an arm that is seen in every tick: nothing stands for it."""
    now, words = memory.open, memory.settings.words
    assert now is not None
    always = set(now.always)
    unknown = [arm for arm in now.missing if arm in always] if always else []
    if unknown:
        names = ", ".join(repr(memory.roster.names[arm]) for arm in unknown[:5])
        raise ProblemError(
            f"no state yet for {words.count(len(unknown), 'arm')} of {words.when(now.tick)} "
            f"({names}{', ...' if len(unknown) > 5 else ''}), seen every {words.tick} whether on "
            f"the list or not: record the states of all of them before the next list, or {UNSEEN!r}"
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
            f"SELECT 1 FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING}", (tick,)
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


def following(session: Session, memory: Memory, tick: int | None, closed: bool) -> int:
    """Return the tick of the decision after results of a tick were recorded."""
    kind = memory.settings.clock.kind
    if kind == "calls":
        return memory.tick + closed
    wanted = (memory.tick if tick is None else tick) + 1 if kind == "given" else None
    return tick_now(session, memory, wanted)
