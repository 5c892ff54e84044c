"""Files that operators exchange with a live agent: who the arms are, decisions, results, tables.

A results file is one request: the same file twice is harmless.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from restive.arguments import shown, suggestion
from restive.errors import ProblemError
from restive.files import replacing, require_target
from restive.learn.priors.independent import grid_prior
from restive.live.agent import LiveAgent
from restive.live.answers import Decision, Receipt, RefusedError
from restive.live.clock import NAMED, Clock
from restive.live.creating import create_file
from restive.live.recording import Batch
from restive.live.roster import ALL, LONG_AGO, NewArm, arm_of_prior_file
from restive.live.settings import Settings
from restive.live.sheets import Sheet, read_sheet, sheet_text, write_text
from restive.live.view import LiveView
from restive.logs.prior_file import load_prior
from restive.problem.toml_text import parse_toml, read_text

__all__ = [
    "Recorded",
    "arms_of_sheet",
    "create_from_files",
    "decision_text",
    "export_table",
    "parsed_results",
    "record_sheet",
    "rejected_text",
]

MOST_NAMED = 20  # bad rows that a message lists
DECISION = ("tick", "date", "arm", "kind", "expected", "index", "audit")
EXPORTS = (".csv", ".jsonl", ".parquet")


# ---------------------------------------------------------------- a new agent, and its arms


def create_from_files(
    path: str | PathLike[str],
    prior: Path | None,
    levels: str | None,
    arms: Path | None,
    settings_file: Path | None,
    options: dict[str, Any],
    clock_options: dict[str, Any],
    actor: str,
) -> LiveAgent:
    """Make the file of a new agent from files and options of `restive live init`; open it."""
    clock = _clock(**clock_options)
    states: tuple[str, ...] = ()
    known: dict[str, NewArm] = {}
    if (prior is None) == (levels is None):
        raise ProblemError("say what the arms may be: --prior FILE or --levels 0.1,0.5,0.9")
    if prior is not None:
        found = load_prior(prior)
        kinds: dict[str, Any] = dict(found.kinds)
        states = found.states
        known = {name: arm_of_prior_file(found, k) for k, name in enumerate(found.names)}
    else:
        kinds = {ALL: grid_prior(_levels(str(levels)), 1).arms[0]}
    if arms is not None:
        new = arms_of_sheet(read_sheet(arms), list(kinds), clock, 0, known)
    else:
        new = list(known.values())
    if not new:
        raise ProblemError("who are the arms? pass --arms FILE, with a column 'arm'")
    more = {} if settings_file is None else _settings(settings_file)
    data = {
        **{key: value for key, value in options.items() if value is not None},
        "clock": clock.to_data(),
        "states": list(states),
        **more,
    }
    create_file(path, Settings.from_data(data), kinds, new, actor)
    return LiveAgent.open(path)


def _clock(clock: str, start: str | None, zone: str, by_hand: bool) -> Clock:
    if clock in ("calls", "given"):
        if start is not None:
            raise ProblemError(f"a clock of {clock} has no start; say --clock weekly, or P7D")
        return Clock.calls() if clock == "calls" else Clock.given()
    if start is None:
        raise ProblemError(f"when does the first tick of {shown(clock)} begin? pass --start")
    make = Clock.given if by_hand else Clock.wall
    return make(start, NAMED.get(clock, clock), zone)


def _levels(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ProblemError(f"--levels must be numbers by commas, got {shown(text)}") from None


def _settings(path: Path) -> dict[str, Any]:
    try:
        data = parse_toml(read_text(path))
        if "num_pulls" in data or "clock" in data:
            raise ProblemError("pulls and clock are options of `restive live init`")
        Settings.from_data({"num_pulls": 1, **data})
        return data
    except ProblemError as error:
        raise ProblemError(f"{path}: {error}") from None


def arms_of_sheet(
    sheet: Sheet, kinds: Sequence[str], clock: Clock, tick: int, known: Mapping[str, NewArm]
) -> list[NewArm]:
    """Return the arms of a file: arm, kind, and last_state with last_seen or elapsed.

    Parameters
    ----------
    sheet
        The file.
    kinds
        The kinds there are; a file needs no column for them where there is one.
    clock, tick
        The clock by which `last_seen` is a date, and the tick at which the arms join.
    known
        Arms of a prior file: what is known of them holds where this file says nothing else.
    """
    sheet.require("arm")
    if len(kinds) > 1 and not known:
        sheet.require("kind")
    arms, wrong = [], []
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
        try:
            arms.append(_arm_of_row(row, kinds, clock, tick, known))
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    if wrong:
        raise ProblemError(_listed(sheet.name, wrong, "nothing was changed"))
    return arms


def _arm_of_row(
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
    return sheet_text(DECISION, rows)


# ---------------------------------------------------------------- results


@dataclass(frozen=True)
class Recorded:
    """What became of a results file."""

    receipt: Receipt
    repeated: int | None  # the tick for which this very file was recorded before
    rejected: tuple[tuple[int, str, str], ...]  # line, arm and reason


def record_sheet(
    live: LiveAgent,
    sheet: Sheet,
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
    live, sheet
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
    request = f"file {sheet.digest}" + ("" if tick is None else f" tick {tick}")
    before = live.request(request)
    if before is not None:
        return Recorded(Receipt(**before.body["answer"]["receipt"]), before.tick, ())
    rows, wrong = _parsed(live.settings, sheet, tick)
    batches = _batches(live, rows, pulled_instead)
    lines = {(at, arm): line for line, at, arm, _ in reversed(rows)}
    if wrong and not accept_good:
        wrong += _with_lines(live.mistakes(batches), lines)
        raise ProblemError(_listed(sheet.name, sorted(wrong), "nothing was recorded"))
    try:
        receipt, mistakes = live.record_batches(
            batches, accept_good=accept_good, request=request, actor=actor
        )
    except RefusedError as error:
        listed = _listed(
            sheet.name, sorted(_with_lines(error.mistakes, lines)), "nothing was recorded"
        )
        raise RefusedError(error.mistakes, listed) from None
    return Recorded(receipt, None, tuple(sorted(wrong + _with_lines(mistakes, lines))))


ParsedRow = tuple[int, int | None, str, int | str]


def _parsed(
    settings: Settings, sheet: Sheet, tick: int | None
) -> tuple[list[ParsedRow], list[tuple[int, str, str]]]:
    """Return line, tick, arm and result of each row, and the rows that cannot be read."""
    sheet.require("arm")
    word = "outcome" if "outcome" in sheet.columns else "state"
    sheet.require(word)
    rows: list[ParsedRow] = []
    wrong: list[tuple[int, str, str]] = []
    seen: dict[tuple[int | None, str], int | str] = {}
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
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


def parsed_results(live: LiveAgent, sheet: Sheet) -> dict[str, Any]:
    """Return the results of a file by arm, or raise if a row cannot be read."""
    rows, wrong = _parsed(live.settings, sheet, None)
    if wrong:
        raise ProblemError(_listed(sheet.name, wrong, "nothing was changed"))
    return {arm: result for _, _, arm, result in rows}


def _batches(live: LiveAgent, rows: Sequence[ParsedRow], pulled_instead: bool) -> list[Batch]:
    by_tick: dict[int | None, tuple[dict[str, Any], dict[str, Any]]] = {}
    for _, at, arm, result in rows:
        by_tick.setdefault(at, ({}, {}))[0][arm] = result
    if pulled_instead:
        for at, (results, instead) in by_tick.items():
            decision = live.decision(at)
            there = set() if decision is None else set(decision.arms)
            for arm in [name for name in results if name not in there]:
                instead[arm] = results.pop(arm)
    return [Batch(at, results, instead) for at, (results, instead) in by_tick.items()]


def _with_lines(
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


def rejected_text(sheet: Sheet, rejected: Sequence[tuple[int, str, str]]) -> str:
    """Write the rows that were not taken, each with its reason."""
    by_line = dict(zip(sheet.lines, sheet.rows, strict=True))
    rows = [(*by_line[line].values(), reason) for line, _, reason in rejected if line in by_line]
    return sheet_text([*sheet.columns, "reason"], rows)


# ---------------------------------------------------------------- tables


def export_table(live: LiveView, table: str, path: str | PathLike[str]) -> int:
    """Write a table in the format that the file's ending names; return the number of rows."""
    suffix = require_target(path, EXPORTS)
    columns, rows = live.table(table)
    if suffix == ".csv":
        write_text(path, sheet_text(columns, rows))
    elif suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
    else:
        try:
            import pyarrow
            from pyarrow.parquet import write_table
        except ImportError:
            raise ProblemError("Parquet needs `pip install 'restive[io]'`") from None
        by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = {name: list(cells) for name, cells in zip(columns, by_column, strict=True)}
        with replacing(path) as temporary:
            write_table(pyarrow.table(arrays), temporary)
    return len(rows)
