"""Results as they come in, sorted into what can be taken and what cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from restive.arguments import shown
from restive.errors import ProblemError
from restive.live.answers import Mistake
from restive.live.contents import WAITING, Row, pulls_of
from restive.live.journal import Journal
from restive.live.memory import Memory
from restive.live.settings import LEAVE, NOT_PULLED, REFUSE, UNSEEN, checked_result

__all__ = ["Batch", "Sorted", "sort_results"]


@dataclass
class Batch:
    """Results of one tick: of pulls that were decided, and of arms pulled instead."""

    tick: int | None  # None for the open one
    results: Mapping[str, Any]
    instead: Mapping[str, Any] = field(default_factory=dict)


@dataclass
class Sorted:
    """Results that can be taken, by slot, and mistakes."""

    tick: int
    record: dict[int, int | str] = field(default_factory=dict)  # for the open tick
    instead: dict[int, int] = field(default_factory=dict)
    late: dict[int, int | str] = field(default_factory=dict)
    late_instead: dict[int, int] = field(default_factory=dict)
    superseded: list[int] = field(default_factory=list)
    leaving: list[int] = field(default_factory=list)
    known: int = 0
    mistakes: list[Mistake] = field(default_factory=list)


def sort_results(journal: Journal, memory: Memory, batch: Batch) -> Sorted:
    """Sort the results of a tick; nothing is changed."""
    tick = memory.tick if batch.tick is None else batch.tick
    found = Sorted(tick)
    if memory.tick < 0 or not 0 <= tick <= memory.tick:
        reason = (
            "nothing has been decided yet"
            if memory.tick < 0
            else f"tick {tick} is not decided yet; the last decision is of tick {memory.tick}"
        )
        names = [*batch.results, *batch.instead]
        found.mistakes += [Mistake(batch.tick, str(name), reason) for name in names]
        return found
    there, roster = pulls_of(journal, memory, tick), memory.roster
    for ours, given in ((True, batch.results), (False, batch.instead)):
        for name, value in given.items():
            try:
                slot = roster.slot(name)
                if (
                    there.get(slot) is WAITING
                    and ours
                    and type(value) is int
                    and 0 <= value < roster.num_states(slot)
                ):
                    found.record[slot] = value  # the usual case, quickly
                    continue
                _sort_one(found, memory, there.get(slot), slot, value, ours)
            except _ConflictError as error:
                found.mistakes.append(Mistake(tick, str(name), str(error), conflict=True))
            except ProblemError as error:
                found.mistakes.append(Mistake(tick, str(name), str(error)))
    open_now = memory.open is not None and tick == memory.open.tick
    if open_now and not memory.roster.all_possible:
        _drop_impossible(found, memory)
    return found


class _ConflictError(ProblemError):
    pass


def _sort_one(
    found: Sorted, memory: Memory, row: Row | None, slot: int, value: Any, ours: bool
) -> None:
    result = checked_result(value, "result")
    tick, size = found.tick, memory.roster.num_states(slot)
    if isinstance(result, int) and result >= size:
        raise ProblemError(f"state {result} is none of its states 0 to {size - 1}")
    if not ours and not isinstance(result, int):
        raise ProblemError(f"an arm pulled instead needs a state, got {shown(result)}")
    if result == LEAVE and slot not in memory.gone:
        found.leaving.append(slot)
    result = UNSEEN if result == LEAVE else result
    if row is not None and row[2] != ours:
        raise ProblemError(
            f"it was {'pulled instead of' if ours else 'among'} the arms decided for tick {tick}"
        )
    if row is not None and _known(row, result, tick):
        found.known += 1
        return
    if row is None and ours:
        raise ProblemError(f"it was not pulled in tick {tick}")
    if slot >= memory.agent.task.num_arms:
        raise ProblemError("it joins with the next decision and cannot be seen before")
    refused = not memory.roster.moves_alike and memory.settings.missing == REFUSE
    if result == UNSEEN and refused:
        raise ProblemError(
            f"pulling changes how it moves, and this file refuses unseen pulls: give a state, or "
            f"{NOT_PULLED!r} if it was not pulled"
        )
    _place(found, memory, slot, result, ours)


def _known(row: Row, result: int | str, tick: int) -> bool:
    """Whether this was recorded already; raise if something else was."""
    status, state, _ = row
    if state is not None or status == NOT_PULLED:
        recorded = status if state is None else state
        if result != recorded:
            raise _ConflictError(
                f"{recorded!r} was recorded for tick {tick} already, now {result!r}; to correct "
                "it, use `correct` and `rebuild`"
            )
        return True
    return status == UNSEEN == result


def _place(found: Sorted, memory: Memory, slot: int, result: int | str, ours: bool) -> None:
    if memory.open is not None and found.tick == memory.open.tick:
        if ours:
            found.record[slot] = result
        else:
            assert isinstance(result, int)
            found.instead[slot] = result
        return
    if isinstance(result, int) and memory.seen_since(slot, found.tick):
        found.superseded.append(slot)
    if ours:
        found.late[slot] = result
    else:
        assert isinstance(result, int)
        found.late_instead[slot] = result


def _drop_impossible(found: Sorted, memory: Memory) -> None:
    """Turn states that the prior rules out into mistakes."""
    assert memory.open is not None
    while True:
        new = {k: s for k, s in found.record.items() if isinstance(s, int)} | found.instead
        if not new:
            return
        wrong = memory.impossible(memory.open.sightings | new)
        if wrong is None:
            return
        if wrong not in new:  # an arm recorded before, which together with these cannot be
            wrong = max(new)
        state = new[wrong]
        found.record.pop(wrong, None)
        found.instead.pop(wrong, None)
        found.mistakes.append(
            Mistake(
                found.tick,
                memory.roster.names[wrong],
                f"state {state} has probability zero under all that is known; the prior rules it "
                "out",
            )
        )
