"""Logs as they come, files, data frames or columns: with every mistake named by its line.

pyarrow reads them (`file`, with `lines`). What its fields mean is decided here for a column at
a time, and for each different field only once: `times`, `states`, and in `columns` all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from restive.arguments import silent
from restive.errors import ProblemError
from restive.logs.log import Log, Rows, UnsortedLog, checked_same_step, sorted_log
from restive.logs.reading.columns import Mistakes, WordColumn, read_flags
from restive.logs.reading.file import FileRows, LogFile, LogSource, open_log
from restive.logs.reading.states import StateRule, state_rule
from restive.logs.reading.times import read_times
from restive.logs.time_steps import MICROS, StepRule, step_rule

__all__ = ["load_log"]

IntArray = NDArray[np.int64]
Wanted = TypeVar("Wanted")

ONE_BY_ONE = StepRule("1", length=MICROS)
READING = 0.9  # of the time a log takes; the rest is sorting


def load_log(
    source: LogSource,
    *,
    time: str,
    arm: str,
    state: str | None = None,
    state_from: str | None = None,
    states: int | Sequence[str] | None = None,
    step: str | float | None = None,
    zone: str | None = None,
    by: str | None = None,
    pulled: str | None = None,
    same_step: str = "error",
    skip_bad: bool = False,
    progress: Callable[[float], None] = silent,
) -> Log:
    """Read a log: a row says when which arm was seen in which state. Rows come in any order.

    Needs pyarrow (`pip install 'restive[io]'`).

    Parameters
    ----------
    source
        The path of a CSV file (comma or semicolon, UTF-8) with the columns' names in its first
        line, or of a Parquet file; or a data frame (of pandas, polars, or anything else that has
        `__arrow_c_stream__`); or columns by name, a dictionary of lists or arrays.
    time
        Column of times: numbers, or dates and times such as 2026-03-29 14:30, also with an offset.
    arm
        Column of the arms' names.
    state
        Column of states: whole numbers from 0, the worst; true or false; or names (see `states`).
    state_from
        Instead of `state`, a comparison such as "delay < 15": state 1 where it holds, else 0.
    states
        The names in column `state`, worst first; or into how many states, by quantiles, the
        numbers in that column are cut.
    step
        How long a step is: a number, or a length of time such as "1d", "2w", "6h", "15min". By
        default times are whole numbers and a step is 1.
    zone
        Whose clocks and days count, such as "Europe/Berlin".
    by
        Column of kinds: arms of a kind are taken to be alike before they are seen.
    pulled
        Column that says which arms were pulled, as yes and no, 1 and 0, or one word and blanks;
        the others were only seen. By default all rows are of arms that were pulled.
    same_step
        What counts where an arm has several rows in one step: "error" refuses such logs, "last" is
        the state of the latest row (of the last one in the file, if their times are equal),
        "worst" the lowest state. The arm counts as pulled if any of these rows says so.
    skip_bad
        Leave out rows that cannot be used (the log's `notes` tell how many) instead of refusing.
    progress
        Called with the share that is done.

    Examples
    --------
    >>> import restive as rs
    >>> columns = {"who": ["a", "b", "a", "b"], "week": [0, 0, 1, 1], "state": [0, 1, 1, 1]}
    >>> rs.load_log(columns, time="week", arm="who", state="state")
    Log(4 sightings of 2 arms in 2 steps, 0 to 1, states 0, 1)
    """
    file = open_log(source)
    told = Complaints(file)
    rule = told.unless(step_rule, step, zone)
    same_step = told.unless(checked_same_step, same_step)
    meaning = told.unless(state_rule, state, state_from, states)
    columns = [(time, "time"), (arm, "arm")]
    columns += [] if meaning is None else [(meaning.column, meaning.argument)]
    columns += [(name, what) for name, what in [(by, "by"), (pulled, "pulled")] if name is not None]
    places = [told.unless(file.column, name, what) for name, what in columns]
    told.refuse()
    taken_in = _understood(  # which keeps nothing of what was read: sorting needs the memory
        file.rows(places, lambda share: progress(READING * share)),
        file, meaning, rule, time, zone, by is not None, pulled, skip_bad,
    )  # fmt: skip
    progress(READING)
    try:
        log = sorted_log(taken_in, same_step, file.row)
    except ProblemError as error:
        raise ProblemError(f"{file.path}: {error}") from None
    if len(log.states) == 1:
        raise ProblemError(
            f"{file.path}: every row is of state {log.states[0]}; how arms change cannot be "
            "learned from one state (if there are others, name them all with states)"
        )
    progress(1.0)
    return log


class Complaints:
    """All that is wrong with how a file was asked for, told in one go with the columns it has."""

    def __init__(self, file: LogFile) -> None:
        self.file = file
        self.found: list[str] = []

    def unless(self, wanted: Callable[..., Wanted], *given: Any) -> Wanted:
        """Return what is wanted, or note why there is none: then `refuse` comes before its use."""
        try:
            return wanted(*given)
        except ProblemError as error:
            self.found.append(str(error).removeprefix(f"{self.file.path}: "))
            return cast(Wanted, None)

    def refuse(self) -> None:
        """Raise if anything was noted."""
        if len(self.found) > 1:
            self.found.append(f"its columns are {', '.join(self.file.header)}")
            listed = "\n  ".join(self.found)
            raise ProblemError(f"{self.file.path}: {len(self.found) - 1} mistakes\n  {listed}")
        if self.found:
            raise ProblemError(f"{self.file.path}: {self.found[0]}")


def _understood(
    found: FileRows, file: LogFile, meaning: StateRule, rule: StepRule | None, time: str,
    zone: str | None, has_kinds: bool, pulled: str | None, skip_bad: bool,
) -> UnsortedLog:  # fmt: skip
    """Return what the columns of a file mean: time, arm, state and, where they are, kind and flag.

    Of the things that may be wrong with a row, the first in the order of the steps here is told.
    """
    if not len(found.lines):
        raise ProblemError(f"{file.path}: no rows below the header")
    mistakes = Mistakes(file, found.lines, found.faults, skip_bad)
    told = Complaints(file)
    times = told.unless(read_times, found.columns[0], time, rule, zone, mistakes)
    states = told.unless(meaning.read, found.columns[2], mistakes)
    flagged: tuple[IntArray, list[str]] = (np.array(1), [])
    if pulled is not None:
        flagged = told.unless(read_flags, found.columns[-1], pulled, mistakes)
    told.refuse()
    flags, marks = flagged
    arms = WordColumn(found.columns[1], "arm", mistakes)
    of_rows = WordColumn(found.columns[3], "kind", mistakes) if has_kinds else None
    if not mistakes.good.all():
        arms.reorder(mistakes.good)  # rows that are left out have no say in it
    kinds, kind_of = ["all"], np.zeros(len(arms.texts), dtype=np.int64)
    if of_rows is not None:  # an arm's first good row stays good
        kinds, kind_of = of_rows.texts, _kind_of(arms, of_rows, mistakes)
    mistakes.refuse()
    if not mistakes.good.any():
        raise ProblemError(f"{file.path}: no rows below the header that can be used")
    if states.refusal:
        raise ProblemError(states.refusal)
    codes = (2 * states.codes + flags).astype(np.int16)
    rows = Rows(arms.numbers, times.micros, found.lines, codes)
    return UnsortedLog(
        rows if mistakes.good.all() else rows.picked(mistakes.good),
        arms=arms.texts,
        states=states.names,
        kinds=kinds,
        kind_of=kind_of,
        rule=rule or ONE_BY_ONE,
        aware=times.are_instants,
        has_pulled=pulled is not None,
        notes=[*states.notes, *marks, *times.notes, *mistakes.notes()],
    )


def _kind_of(arms: WordColumn, kinds: WordColumn, mistakes: Mistakes) -> IntArray:
    """Return the kind of each arm [K], that of its first good row; it must be that of the others.

    It is -1 for an arm without a good row.
    """
    kind_of = np.full(len(arms.texts) + 1, -1, dtype=np.int64)  # the last is for no arm at all
    good = np.flatnonzero(mistakes.good)[::-1]
    kind_of[arms.numbers[good]] = kinds.numbers[good]  # the last one stays, of the first row

    def detail(row: int) -> str:
        k = arms.numbers[row]
        here, known = kinds.texts[kinds.numbers[row]], kinds.texts[kind_of[k]]
        return f"{arms.texts[k]!r} is {here!r} here and {known!r} before"

    mistakes.mark(kinds.numbers != kind_of[arms.numbers], "arm {}", detail)
    return kind_of[:-1]
