"""Logs as files: CSV and Parquet to sightings, with every mistake named by its line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.logs.reading.columns import FlagColumn, Found, TextColumn, row_faults
from restive.logs.reading.mistakes import Mistakes
from restive.logs.reading.rows import Chunk, Table, open_table
from restive.logs.reading.states import StateReader, state_reader
from restive.logs.reading.times import Times, TimesFound
from restive.logs.sightings.log import Log, sorted_log
from restive.logs.sightings.sorter import Rows, SightingSorter
from restive.logs.time_steps import StepRule, step_rule

__all__ = ["load_log"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

ONE_BY_ONE = StepRule("1", length=1_000_000)
READING = 0.9  # of the time a log takes; the rest is sorting


def load_log(
    path: str | os.PathLike[str],
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
    progress: Callable[[float], None] = lambda share: None,
) -> Log:
    """Read a log: a row says when which arm was seen in which state. Rows come in any order.

    Parameters
    ----------
    path
        CSV (comma or semicolon, UTF-8) with the columns' names in its first line, or Parquet
        (needs `restive[io]`).
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
        Column that says which arms were pulled; the others were only seen. By default all
        rows are of arms that were pulled.
    same_step
        What counts where an arm has several rows in one step: "error" refuses such logs, "last" is
        the later one, "worst" the lowest state.
    skip_bad
        Leave out rows that cannot be used (the log's `notes` tell how many) instead of refusing.
    progress
        Called with the share that is done.
    """
    rule = step_rule(step, zone)
    sorter = SightingSorter(same_step)
    table = open_table(path)
    columns = [table.column(time, "time"), table.column(arm, "arm")]
    reading = state_reader(table, 2, state, state_from, states)
    columns.append(reading.column)
    kinds = flags = None
    if by is not None:
        kinds = TextColumn("kind", len(columns))
        columns.append(table.column(by, "by"))
    if pulled is not None:
        flags = FlagColumn("pulled", len(columns))
        columns.append(table.column(pulled, "pulled"))
    mistakes = Mistakes(str(table.path), table.row, skip_bad)
    times, arms = Times(0, time, rule, zone), _Arms(kinds)

    def look(chunk: Chunk) -> _Looked:
        return _Looked(
            times.look(chunk), reading.look(chunk), arms.names.look(chunk),
            None if kinds is None else kinds.look(chunk),
            None if flags is None else flags.look(chunk),
        )  # fmt: skip

    def rows() -> Iterator[Rows]:
        for chunk, found in table.chunks(columns, look, lambda share: progress(READING * share)):
            good = row_faults(chunk, mistakes)
            when = times.read(chunk, found.times, good, mistakes)
            shown = reading.read(chunk, found.states, good, mistakes)
            flag: IntArray | int = 1
            if flags is not None and found.flags is not None:
                flag = flags.read(chunk, found.flags, good, mistakes)
            which = arms.read(chunk, found.arms, found.kinds, good, mistakes)
            parts = which, when, chunk.lines, 2 * shown + flag
            yield Rows.of(*(parts if good.all() else (part[good] for part in parts)))

    sorter.take_in(rows())
    mistakes.refuse()
    if not sorter.num_rows:
        raise ProblemError(
            f"{table.path}: no rows below the header" + " that can be used" * bool(mistakes.count)
        )
    return _finished(
        sorter, table, reading, arms, times, rule or ONE_BY_ONE, pulled is not None,
        [*reading.notes, *times.notes(), *mistakes.notes()], progress,
    )  # fmt: skip


def _finished(
    sorter: SightingSorter, table: Table, reading: StateReader, arms: _Arms, times: Times,
    rule: StepRule, has_pulled: bool, notes: list[str], progress: Callable[[float], None],
) -> Log:  # fmt: skip
    names = reading.finish()
    try:
        log = sorted_log(
            sorter,
            arms=arms.names.texts,
            states=names,
            kinds=arms.kinds,
            kind_of=arms.kind_of,
            rule=rule,
            aware=times.are_instants,
            has_pulled=has_pulled,
            notes=notes,
            row=table.row,
            progress=lambda share: progress(READING + (1 - READING) * share),
        )
    except ProblemError as error:
        raise ProblemError(f"{table.path}: {error}") from None
    if len(log.states) == 1:
        raise ProblemError(
            f"{table.path}: every row is of state {log.states[0]}; how arms change cannot be "
            "learned from one state (if there are others, name them all with states)"
        )
    return log


class _Looked(NamedTuple):
    """What was found in a chunk ahead of time."""

    times: TimesFound
    states: Any
    arms: Found
    kinds: Found | None
    flags: Found | None


class _Arms:
    """The arms' names and kinds."""

    def __init__(self, kinds: TextColumn | None) -> None:
        self.names = TextColumn("arm", 1)
        self._column = kinds
        self._kind_of: IntArray = np.zeros(0, dtype=np.int64)  # -1 for an arm without a good row

    @property
    def kinds(self) -> tuple[str, ...]:
        return ("all",) if self._column is None else tuple(self._column.texts)

    @property
    def kind_of(self) -> IntArray:
        """The kind of each arm [K]."""
        count = len(self.names.texts)
        return np.zeros(count, dtype=np.int64) if self._column is None else self._kind_of

    def read(
        self, chunk: Chunk, arms: Found, kinds: Found | None, good: BoolArray, mistakes: Mistakes
    ) -> IntArray:
        """Return the arm of each row [R]; an arm is of one kind."""
        found = self.names.read(chunk, arms, good, mistakes)
        if self._column is not None and kinds is not None:
            own = self._column.read(chunk, kinds, good, mistakes)
            self._read_kinds(found, own, chunk, good, mistakes)
        return found

    def _read_kinds(
        self, found: IntArray, kinds: IntArray, chunk: Chunk, good: BoolArray, mistakes: Mistakes
    ) -> None:
        more = len(self.names.texts) - len(self._kind_of)
        self._kind_of = np.concatenate([self._kind_of, np.full(more, -1, dtype=np.int64)])
        rows = np.flatnonzero(good)
        first = rows[np.unique(found[rows], return_index=True)[1]]
        fresh = first[self._kind_of[found[first]] < 0]
        self._kind_of[found[fresh]] = kinds[fresh]
        other = np.flatnonzero(good & (kinds != self._kind_of[found]))
        if not len(other):
            return

        def detail(at: int) -> str:
            row = other[at]
            known = self.kinds[self._kind_of[found[row]]]
            here = self.kinds[kinds[row]]
            return f"{self.names.texts[found[row]]!r} is {here!r} here and {known!r} before"

        mistakes.add(chunk.lines[other].tolist(), "arm {}", detail)
        good[other] = False
