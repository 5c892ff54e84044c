"""Recording: results as they come in, and corrections.

Results come in parts, twice and late. They are sorted into what can be taken and what cannot before
anything is journaled. Those for the open tick wait until it closes; those for a closed tick are
learned from at their own time, unless the arm was seen since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from restive.arguments import shown
from restive.errors import ConflictError, ProblemError
from restive.live.journal.events import Event, Journal
from restive.live.journal.sql_tables import (
    OPEN,
    WAITING,
    PullRow,
    enter_instead,
    enter_leave,
    enter_results,
    enter_return,
    left_with,
    pulls_of,
)
from restive.live.memory import Memory
from restive.live.session import Session, Writer
from restive.live.settings import (
    LEAVE,
    NOT_PULLED,
    REFUSE,
    UNSEEN,
    Settings,
    checked_result,
)
from restive.live.told.answers import Mistake, Receipt, RefusedError

__all__ = [
    "NOT_LISTED",
    "Batch",
    "Prepared",
    "SortedResults",
    "checked_batches",
    "correct",
    "prepare",
    "record",
    "sort_results",
]

NOT_LISTED = "it was not on the list of"
A_YEAR = timedelta(days=366)  # beyond which a date is more likely a slip

# ---------------------------------------------------------------- sorting


@dataclass
class Batch:
    """Results of one tick: of pulls that were decided, and of arms pulled instead."""

    tick: int | None  # None for the open one
    results: Mapping[str, Any]
    instead: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class SortedResults:
    """Results that can be taken, by slot, and mistakes."""

    tick: int
    in_time: dict[int, int | str] = field(default_factory=dict)  # for the open tick
    instead: dict[int, int] = field(default_factory=dict)
    shown: dict[int, int | str] = field(default_factory=dict)  # of arms that were not pulled
    late: dict[int, int | str] = field(default_factory=dict)
    late_instead: dict[int, int] = field(default_factory=dict)
    superseded: list[int] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)
    returning: list[int] = field(default_factory=list)  # who left by the result that this replaces
    known: int = 0
    mistakes: list[Mistake] = field(default_factory=list)

    @property
    def adds(self) -> bool:
        """Whether there is a result that is not recorded yet."""
        return bool(self.in_time or self.instead or self.shown or self.late or self.late_instead)


def checked_batches(batches: Any) -> Sequence[Batch]:
    """Return a list of batches, or raise."""
    if not isinstance(batches, list | tuple) or not all(isinstance(one, Batch) for one in batches):
        raise ProblemError(f"batches must be a list of Batch, got {shown(batches)}")
    return batches


def sort_results(journal: Journal, memory: Memory, batch: Batch) -> SortedResults:
    """Sort the results of a tick; nothing is changed."""
    tick = memory.tick if batch.tick is None else batch.tick
    found = SortedResults(tick)
    if memory.tick < 0 or not 0 <= tick <= memory.tick:
        reason = "nothing has been decided yet"
        if memory.tick >= 0:
            query = "SELECT 1 FROM event WHERE kind = 'decide' AND tick = ?"  # and withdrawn
            undone = journal.connection.execute(query, (tick,)).fetchone() is not None
            reason = _no_list(memory, tick, undone)
        names = [*batch.results, *batch.instead]
        found.mistakes += [Mistake(batch.tick, str(name), reason) for name in names]
        return found
    there, roster = pulls_of(journal, memory, tick), memory.roster
    now = memory.open
    unshown = set(now.unshown) if now is not None and now.tick == tick and now.always else set()
    for decided, given in ((True, batch.results), (False, batch.instead)):
        for name, value in given.items():
            try:
                slot = roster.slot(name)
                if decided and type(value) is int and 0 <= value < roster.num_states(slot):
                    if there.get(slot) is WAITING:
                        found.in_time[slot] = value  # the usual case, quickly
                        continue
                    if unshown and slot in unshown:
                        found.shown[slot] = value
                        continue
                _sort_one(found, memory, there.get(slot), slot, value, decided)
            except ConflictError as error:
                found.mistakes.append(Mistake(tick, str(name), str(error), conflict=True))
            except ProblemError as error:
                found.mistakes.append(Mistake(tick, str(name), str(error)))
    told = found.in_time | found.late
    gone = [slot for slot in told if slot in memory.gone and told[slot] != UNSEEN]
    left = left_with(journal, memory.gone, gone) if gone else {}
    found.returning = [slot for slot in gone if left.get(slot) == tick]
    open_now = memory.open is not None and tick == memory.open.tick
    if open_now and not memory.roster.all_possible:
        _drop_impossible(found, memory)
    return found


def _no_list(memory: Memory, tick: int, undone: bool) -> str:
    """Say that there is no list of a tick, and ask about the year where it is far ahead."""
    clock, words, last = memory.settings.clock, memory.settings.words, memory.tick
    newest = f"the last decision is of {words.when(last, clock.label(last))}"
    try:
        when, (begins, now) = words.when(tick, clock.label(tick)), map(clock.begins, (tick, last))
    except ProblemError:  # after the last year that there is
        return f"{words.when(tick)} is not decided yet; {newest}"
    if undone:
        return f"the list of {when} was undone; {newest}"
    far = begins is not None and now is not None and begins - now > A_YEAR
    year = "; is the year mistyped?" if far else ""
    return f"{when} is not decided yet; {newest}{year}"


def _sort_one(
    found: SortedResults, memory: Memory, row: PullRow | None, slot: int, value: Any, decided: bool
) -> None:
    if isinstance(value, str) and value != LEAVE:
        value = memory.settings.result_named(value)
    result = checked_result(value, "result")
    words, size = memory.settings.words, memory.roster.num_states(slot)
    when = words.when(found.tick)
    if isinstance(result, int) and result >= size:
        raise ProblemError(f"state {result} is none of its states 0 to {size - 1}")
    if not decided and not isinstance(result, int):
        leaves = ", and say `restive live leave`" if result == LEAVE else ""
        raise ProblemError(
            f"nobody was reached who was not on the list of {when}: leave this row out{leaves}"
        )
    if memory.roster.always_seen(slot):
        _require_state(found, memory, row, result)
        if row is None and decided:
            _sort_shown(found, memory, slot, result)
            return
    if result == LEAVE and slot not in memory.gone:
        found.leaving.append(slot)
    result = UNSEEN if result == LEAVE else result
    if row is not None and row.decided != decided:
        raise ProblemError(
            f"it was {'chosen instead of' if decided else 'among'} those decided for {when}"
        )
    if row is not None and _known(memory.settings, row, result, when):
        found.known += 1
        return
    if row is None and decided:
        raise ProblemError(f"{NOT_LISTED} {when}")
    if slot >= memory.num_joined:
        raise ProblemError("it joins with the next decision and cannot be seen before")
    if found.tick < memory.joined[slot]:
        joined = words.when(memory.joined[slot])
        raise ProblemError(f"it joined in {joined} and cannot be seen before")
    refused = not memory.roster.moves_alike and memory.settings.missing == REFUSE
    if result == UNSEEN and refused and not memory.roster.always_seen(slot):
        raise ProblemError(
            f"a {words.pull} changes how it moves, and this file refuses {words.many('pull')} "
            f"without a state: give one, or {NOT_PULLED!r} if there was no {words.pull}"
        )
    _place(found, memory, slot, result, decided)


def _require_state(
    found: SortedResults, memory: Memory, row: PullRow | None, result: int | str
) -> None:
    """Raise unless this can be said of an arm that is seen in every tick."""
    words = memory.settings.words
    if result == NOT_PULLED and row is None:
        raise ProblemError(
            f"it is seen every {words.tick} and was not on the list, so give its state, or "
            f"{UNSEEN!r}; got {shown(result)}"
        )
    if found.tick != memory.tick and (row is None or row.state is None):
        raise ProblemError(
            f"it is seen every {words.tick}, and {words.when(found.tick)} is over: its state then "
            "cannot come late"
        )


def _sort_shown(found: SortedResults, memory: Memory, slot: int, result: int | str) -> None:
    """Take a state of an arm that was not pulled and is seen all the same."""
    when = memory.settings.words.when(found.tick)
    if slot >= memory.num_joined:
        raise ProblemError("it joins with the next decision and cannot be seen before")
    assert memory.open is not None
    if result == LEAVE and slot not in memory.gone:
        found.leaving.append(slot)
    result = UNSEEN if result == LEAVE else result
    before = memory.open.shown.get(slot)
    if before is None or (before == UNSEEN and isinstance(result, int)):
        found.shown[slot] = result
    elif before != result:
        named = [_shown(memory.settings, one) for one in (before, result)]
        raise ConflictError(
            f"{named[0]} was recorded for {when} already, now {named[1]}; undo it, and record it "
            "anew"
        )
    else:
        found.known += 1


def _known(settings: Settings, row: PullRow, result: int | str, when: str) -> bool:
    """Whether this was recorded already; raise if something else was."""
    status, state, _ = row
    if state is not None or status == NOT_PULLED:
        recorded = status if state is None else state
        if result != recorded:
            before, now = (_shown(settings, one) for one in (recorded, result))
            raise ConflictError(
                f"{before} was recorded for {when} already, now {now}; if that was wrong, change "
                f"it on the page of this {settings.words.arm}, under Calls, or by `restive live "
                "change` (older ones: `restive live correct`)"
            )
        return True
    return status == UNSEEN == result


def _shown(settings: Settings, result: int | str) -> str:
    if isinstance(result, int):
        return settings.state_name(result)
    own = settings.outcome_word(result)
    return own if own != result else repr(result)


def _place(
    found: SortedResults, memory: Memory, slot: int, result: int | str, decided: bool
) -> None:
    if memory.open is not None and found.tick == memory.open.tick:
        if decided:
            found.in_time[slot] = result
        else:
            assert isinstance(result, int)
            found.instead[slot] = result
        return
    if isinstance(result, int) and memory.seen_since(slot, found.tick):
        found.superseded.append(slot)
    if decided:
        found.late[slot] = result
    else:
        assert isinstance(result, int)
        found.late_instead[slot] = result


def _drop_impossible(found: SortedResults, memory: Memory) -> None:
    """Turn states that the prior rules out into mistakes."""
    assert memory.open is not None
    while True:
        new = {k: s for k, s in found.in_time.items() if isinstance(s, int)} | found.instead
        new |= {k: s for k, s in found.shown.items() if isinstance(s, int)}
        if not new:
            return
        wrong = memory.impossible(memory.open.sightings | new)
        if wrong is None:
            return
        if wrong not in new:  # an arm recorded before, which together with these cannot be
            wrong = max(new)
        state = new[wrong]
        found.in_time.pop(wrong, None)
        found.instead.pop(wrong, None)
        found.shown.pop(wrong, None)
        found.mistakes.append(
            Mistake(
                found.tick,
                memory.roster.names[wrong],
                f"state {state} has probability zero under all that is known; the prior rules it "
                "out",
            )
        )


# ---------------------------------------------------------------- journaling results


@dataclass
class Prepared:
    """Results that were looked at, before anything is journaled."""

    found: list[SortedResults]  # by tick, ascending
    mistakes: list[Mistake]
    receipt: Receipt


def prepare(
    session: Session, memory: Memory, batches: Sequence[Batch], accept_good: bool = False
) -> Prepared:
    """Look at results, inside a transaction; raise if some cannot be taken, unless that is fine."""
    found = [sort_results(session.journal, memory, batch) for batch in batches]
    found.sort(key=lambda one: one.tick)  # late ones in the order of time
    mistakes = [mistake for one in found for mistake in one.mistakes]
    if mistakes and not accept_good:
        raise RefusedError(mistakes, noun=memory.settings.words.arm)
    return Prepared(found, mistakes, _total(found, memory))


def record(
    session: Session, memory: Memory, prepared: Prepared, writer: Writer, answer: dict[str, Any]
) -> None:
    """Journal results that can be taken."""
    for one in prepared.found:
        _journal_results(session, memory, one, writer, answer)
    writer.finish(max(memory.tick, 0), answer)


def _total(found: Sequence[SortedResults], memory: Memory) -> Receipt:
    missing = set() if memory.open is None else set(memory.open.missing)
    new = known = late = superseded = 0
    for one in found:
        missing.difference_update(one.in_time, one.instead, one.shown)
        new += len(one.in_time) + len(one.instead) + len(one.shown)
        known += one.known
        late += len(one.late) + len(one.late_instead) - len(one.superseded)
        superseded += len(one.superseded)
    closed = memory.open is not None and not missing
    return Receipt(new, known, late, superseded, closed)


def _journal_results(
    session: Session, memory: Memory, one: SortedResults, writer: Writer, answer: Any
) -> None:
    journal = session.journal
    if one.in_time:
        body = _columns(one.in_time)
        assert memory.open is not None
        short = body if body["arms"] != memory.open.choice.arms else {"results": body["results"]}
        enter_results(journal, writer.append("record", one.tick, short, answer), body)
    if one.instead:
        body = _columns(one.instead)
        enter_instead(journal, writer.append("override", one.tick, body, answer), body)
    if one.shown:
        writer.append("shown", one.tick, _columns(one.shown), answer)
    for late, kind, enter in (
        (one.late, "late", enter_results),
        (one.late_instead, "override", enter_instead),
    ):
        if late:
            body = _columns(late) | {"late": True}
            unused = [slot for slot in sorted(late) if slot in one.superseded]
            if unused:
                body["superseded"] = unused
            session.touch()
            event = _append_late(memory, writer, kind, one.tick, body, answer)
            enter(journal, event, body)
    leaving = [slot for slot in sorted(set(one.leaving)) if slot not in memory.gone]
    if leaving:
        body = {"arms": leaving, "of": one.tick}
        event = writer.append("leave", max(memory.tick, 0), body, answer)
        enter_leave(journal, event, leaving)
    if one.returning:
        back = sorted(one.returning)
        writer.append("return", max(memory.tick, 0), {"arms": back}, answer)
        enter_return(journal, back)


def _append_late(
    memory: Memory, writer: Writer, kind: str, tick: int, body: dict[str, Any], answer: Any
) -> Event:
    """Journal late results; refuse them if they contradict what is known."""
    try:
        event = writer.append(kind, tick, body, answer)
    except ProblemError as error:
        mistake = _late_mistake(memory, tick, body, str(error))
        raise RefusedError([mistake], noun=memory.settings.words.arm) from None
    if memory.open is not None and memory.impossible(memory.open.sightings) is not None:
        reason = "it contradicts what was recorded for the open tick; the prior rules it out"
        mistake = _late_mistake(memory, tick, body, reason)
        raise RefusedError([mistake], noun=memory.settings.words.arm)
    return event


def _late_mistake(memory: Memory, tick: int, body: dict[str, Any], reason: str) -> Mistake:
    names = [memory.roster.names[arm] for arm in body["arms"]]
    place = next((i for i, arm in enumerate(body["arms"]) if f"arm {arm}:" in reason), 0)
    return Mistake(tick, names[place], reason.partition(": ")[2] or reason)


def _columns(results: dict[int, Any]) -> dict[str, Any]:
    ordered = dict(sorted(results.items()))
    return {"arms": list(ordered), "results": list(ordered.values())}


# ---------------------------------------------------------------- corrections


def correct(
    session: Session, memory: Memory, results: dict[str, Any], tick: int, note: str, writer: Writer
) -> Receipt:
    """Journal that states were recorded wrongly; a rebuild takes it in.

    Whoever left with a result that is corrected is back at once, and who should have left has.
    """
    leaving: list[int] = []
    there, words = pulls_of(session.journal, memory, tick), memory.settings.words
    left = left_with(session.journal, memory.gone, map(memory.roster.slot, results))
    now = _said_last(session.journal, tick)
    body: dict[str, Any] = {"arms": [], "results": [], "note": note}
    for name, given in results.items():
        slot, state = memory.roster.slot(name), given
        size = memory.roster.num_states(slot)
        if isinstance(state, str) and state != LEAVE:
            state = memory.settings.result_named(state)
        if memory.roster.always_seen(slot) and (slot not in there or isinstance(state, str)):
            raise ProblemError(
                f"{words.arm} {name!r} is seen every {words.tick}: only the state of a {words.pull}"
                " can be corrected, to another state; nothing was changed"
            )
        if slot not in there or there[slot].status == OPEN:
            raise ProblemError(
                f"{words.arm} {name!r}: nothing was recorded for {words.when(tick)}; nothing was "
                "changed"
            )
        if state == LEAVE:
            leaving.append(slot)
            state = UNSEEN
        known = isinstance(state, int) and not isinstance(state, bool) and 0 <= state < size
        if not known and state not in (UNSEEN, NOT_PULLED):
            raise ProblemError(
                f"{words.arm} {name!r}: {shown(given)} is no result: say "
                f"{', '.join(memory.settings.choices(size))}; nothing was changed"
            )
        if now.get(slot) == state and (left.get(slot) == tick) == (given == LEAVE):
            continue  # as is known
        body["arms"].append(slot)
        body["results"].append(state)
    new = len(body["arms"])
    receipt = Receipt(new=new, known=len(results) - new)
    answer = {"receipt": vars(receipt)}
    if not new:
        writer.finish(max(memory.tick, 0), answer)
        return receipt
    writer.append("correct", tick, body, answer)
    back = [slot for slot in body["arms"] if left.get(slot) == tick and slot not in leaving]
    leaving = sorted(set(leaving).difference(memory.gone))
    if leaving:
        event = writer.append("leave", max(memory.tick, 0), {"arms": leaving, "of": tick}, answer)
        enter_leave(session.journal, event, leaving)
    if back:
        writer.append("return", max(memory.tick, 0), {"arms": sorted(back)}, answer)
        enter_return(session.journal, back)
    return receipt


def _said_last(journal: Journal, tick: int) -> dict[int, int | str]:
    """Return what was said last of each pull of a tick, as a correction or before."""
    withdrawn, found = journal.withdrawn(), dict[int, tuple[int, int | str]]()
    for event in journal.events(kinds=("correct",)):
        if event.tick == tick and event.seq not in withdrawn:
            body = event.body
            for slot, result in zip(body["arms"], body["results"], strict=True):
                found[slot] = event.seq, result
    for slot, status, state, recorded in journal.connection.execute(
        "SELECT slot, status, state, recorded FROM pull WHERE tick = ? AND recorded IS NOT NULL",
        (tick,),
    ):
        if recorded > found.get(slot, (0,))[0]:
            found[slot] = recorded, status if state is None else state
    return {slot: result for slot, (_, result) in found.items()}
