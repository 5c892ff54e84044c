"""Files that operators exchange with a live agent: people, decisions and results.

A results file is one request: the same file twice is harmless.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from restive.arguments import shown, suggestion
from restive.errors import ProblemError
from restive.live.agent import LiveAgent
from restive.live.answers import Decision, Receipt, RefusedError
from restive.live.clock import Clock
from restive.live.results import Batch
from restive.live.roster import LONG_AGO, NewArm
from restive.live.settings import Settings
from restive.live.table_file import Table, table_text

__all__ = [
    "Recorded",
    "decision_text",
    "parsed_results",
    "people",
    "record_table",
    "rejected_text",
]

MOST_NAMED = 20  # bad rows that a message lists
DECISION = ("tick", "date", "arm", "kind", "expected", "index", "audit")


# ---------------------------------------------------------------- people


def people(
    table: Table, kinds: Sequence[str], clock: Clock, tick: int, known: Mapping[str, NewArm]
) -> list[NewArm]:
    """Return the arms of a file: arm, kind, and last_state with last_seen or elapsed.

    Parameters
    ----------
    table
        The file.
    kinds
        The kinds there are; a file needs no column for them where there is one.
    clock, tick
        The clock by which `last_seen` is a date, and the tick at which the arms join.
    known
        Arms of a prior file: what is known of them holds where this file says nothing else.
    """
    table.require("arm")
    if len(kinds) > 1 and not known:
        table.require("kind")
    arms, wrong = [], []
    for line, row in zip(table.lines, table.rows, strict=True):
        try:
            arms.append(_person(row, kinds, clock, tick, known))
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    if wrong:
        raise ProblemError(_listed(table.name, wrong, "nothing was changed"))
    return arms


def _person(
    row: Mapping[str, str], kinds: Sequence[str], clock: Clock, tick: int,
    known: Mapping[str, NewArm],
) -> NewArm:  # fmt: skip
    name, kind = row["arm"], row.get("kind", "")
    if name in known and not row.get("last_state") and kind in ("", known[name].kind):
        return known[name]
    if not kind and len(kinds) > 1:
        raise ProblemError(f"its kind is missing: one of {', '.join(kinds)}")
    kind = kind or kinds[0]
    if kind not in kinds:
        raise ProblemError(f"there is no kind {shown(kind)}; {suggestion(kind, kinds)}")
    if not row.get("last_state"):
        if row.get("last_seen") or row.get("elapsed"):
            raise ProblemError("last_state is missing, though it tells when it was seen")
        return NewArm(name, kind)
    state = _whole(row["last_state"], "last_state")
    if row.get("elapsed"):
        return NewArm(name, kind, state, _whole(row["elapsed"], "elapsed"))
    if not row.get("last_seen"):
        return NewArm(name, kind, state, LONG_AGO)
    elapsed = tick - clock.tick_of(row["last_seen"], before=True)
    if elapsed < 1:
        raise ProblemError(f"last_seen {row['last_seen']} is not before the tick in which it joins")
    return NewArm(name, kind, state, elapsed)


def _whole(text: str, what: str) -> int:
    if not text.isdecimal() or len(text) > 9:
        raise ProblemError(f"{what} must be a whole number, got {shown(text)}")
    return int(text)


# ---------------------------------------------------------------- decisions


def decision_text(live: LiveAgent, decision: Decision) -> str:
    """Write a decision as CSV; the same decision always the same."""
    label, audit = live.settings.clock.label(decision.tick), set(decision.audit)
    kinds = live.kinds_of(decision.arms)
    rows = [
        (decision.tick, label, arm, kind, f"{mean:.6f}", "" if i is None else f"{i:.6f}",
         int(arm in audit))
        for arm, kind, mean, i in zip(
            decision.arms, kinds, decision.expected, decision.index, strict=True
        )
    ]  # fmt: skip
    return table_text(DECISION, rows)


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Recorded:
    """What became of a results file."""

    receipt: Receipt
    repeated: int | None  # the tick for which this very file was recorded before
    rejected: tuple[tuple[int, str, str], ...]  # line, arm and reason


def record_table(
    live: LiveAgent,
    table: Table,
    tick: int | None = None,
    *,
    accept_good: bool = False,
    pulled_instead: bool = False,
    actor: str = "file",
) -> Recorded:
    """Record a results file: arm, state or outcome, and tick or date where it is not the open one.

    All or nothing, unless `accept_good` takes the rows that can be taken.

    Parameters
    ----------
    live, table
        The agent and the file.
    tick
        Of all rows, where the file does not say.
    accept_good
        Take the rows that can be taken.
    pulled_instead
        Arms that were not decided were pulled by somebody's own choice.
    actor
        Who does this, for the journal.
    """
    request = f"file {table.digest}" + ("" if tick is None else f" tick {tick}")
    before = live.request(request)
    if before is not None:
        return Recorded(Receipt(**before.body["answer"]["receipt"]), before.tick, ())
    rows, wrong = _parsed(live.settings, table, tick)
    batches = _batches(live, rows, pulled_instead)
    lines = {(at, arm): line for line, at, arm, _ in reversed(rows)}
    if wrong and not accept_good:
        wrong += _named(live.mistakes(batches), lines)
        raise ProblemError(_listed(table.name, sorted(wrong), "nothing was recorded"))
    try:
        receipt, mistakes = live.record_batches(
            batches, accept_good=accept_good, request=request, actor=actor
        )
    except RefusedError as error:
        listed = _listed(table.name, sorted(_named(error.mistakes, lines)), "nothing was recorded")
        raise RefusedError(error.mistakes, listed) from None
    return Recorded(receipt, None, tuple(sorted(wrong + _named(mistakes, lines))))


Row = tuple[int, int | None, str, int | str]


def _parsed(
    settings: Settings, table: Table, tick: int | None
) -> tuple[list[Row], list[tuple[int, str, str]]]:
    """Return line, tick, arm and result of each row, and the rows that cannot be read."""
    table.require("arm")
    word = "outcome" if "outcome" in table.columns else "state"
    table.require(word)
    rows: list[Row] = []
    wrong: list[tuple[int, str, str]] = []
    seen: dict[tuple[int | None, str], int | str] = {}
    for line, row in zip(table.lines, table.rows, strict=True):
        try:
            at = tick
            if row.get("tick"):
                at = _whole(row["tick"], "tick")
            elif row.get("date"):
                at = settings.clock.tick_of(row["date"])
            if not row[word]:
                continue  # nothing is known yet
            result = settings.result_of(row[word])
            if seen.setdefault((at, row["arm"]), result) != result:
                raise ProblemError("is there twice, with another result")
            rows.append((line, at, row["arm"], result))
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    return rows, wrong


def parsed_results(live: LiveAgent, table: Table) -> dict[str, Any]:
    """Return the results of a file by arm, or raise if a row cannot be read."""
    rows, wrong = _parsed(live.settings, table, None)
    if wrong:
        raise ProblemError(_listed(table.name, wrong, "nothing was changed"))
    return {arm: result for _, _, arm, result in rows}


def _batches(live: LiveAgent, rows: Sequence[Row], pulled_instead: bool) -> list[Batch]:
    by_tick: dict[int | None, tuple[dict[str, Any], dict[str, Any]]] = {}
    for _, at, arm, result in rows:
        by_tick.setdefault(at, ({}, {}))[0][arm] = result
    if pulled_instead:
        for at, (ours, instead) in by_tick.items():
            decision = live.decision(at)
            there = set() if decision is None else set(decision.arms)
            for arm in [name for name in ours if name not in there]:
                instead[arm] = ours.pop(arm)
    return [Batch(at, ours, instead) for at, (ours, instead) in by_tick.items()]


def _named(
    mistakes: Iterable[Any], lines: Mapping[tuple[int | None, str], int]
) -> list[tuple[int, str, str]]:
    """Give mistakes their lines."""
    return [
        (lines.get((m.tick, m.arm), lines.get((None, m.arm), 0)), m.arm, m.reason) for m in mistakes
    ]


def _listed(name: str, wrong: Sequence[tuple[int, str, str]], after: str) -> str:
    rows = [f"  line {line}: arm {shown(arm)}: {reason}" for line, arm, reason in wrong]
    more = [f"  and {len(rows) - MOST_NAMED} more"] if len(rows) > MOST_NAMED else []
    what = "1 row" if len(rows) == 1 else f"{len(rows)} rows"
    return "\n".join([f"{name}: {what} cannot be taken; {after}", *rows[:MOST_NAMED], *more])


def rejected_text(table: Table, rejected: Sequence[tuple[int, str, str]]) -> str:
    """Write the rows that were not taken, each with its reason."""
    by_line = dict(zip(table.lines, table.rows, strict=True))
    rows = [(*by_line[line].values(), reason) for line, _, reason in rejected if line in by_line]
    return table_text([*table.columns, "reason"], rows)
