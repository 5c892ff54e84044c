"""Which state a row shows: as it stands there, by a threshold, or by quantiles of a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count
from restive.errors import ProblemError
from restive.learn.evidence import MOST_STATES
from restive.logs.reading.columns import TRUTH, NumberColumn, TextColumn, mark, row_faults
from restive.logs.reading.mistakes import Mistakes
from restive.logs.reading.rows import Chunk, Table
from restive.problem.arm import state_names

__all__ = ["StateReader", "state_reader"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
SAMPLE = 1_000_000  # values of which quantiles are taken


@dataclass
class StateReader:
    """Reads states: `look` ahead of time, `read` chunk after chunk; `finish` gives their names."""

    column: int
    look: Callable[[Chunk], Any]
    read: Callable[[Chunk, Any, BoolArray, Mistakes], IntArray]
    finish: Callable[[], tuple[str, ...]]
    notes: list[str] = field(default_factory=list)


def state_reader(
    table: Table, slot: int, state: str | None, state_from: str | None, states: Any
) -> StateReader:
    """Return how states are read; exactly one of `state` and `state_from` names a column.

    `slot` is the place at which that column's fields will be in a chunk.
    """
    if (state is None) == (state_from is None):
        raise ProblemError(
            "say what an arm's state is: state = a column of states, or state_from = 'delay < 15'"
        )
    if state_from is not None:
        if states is not None:
            raise ProblemError("state_from makes two states, bad and good; leave states out")
        return _compared(table, slot, state_from)
    assert state is not None
    column = table.column(state, "state")
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        count = checked_count(states, "states", 2, MOST_STATES)
        return _by_quantiles(table, slot, column, state, count)
    return _named(slot, column, state, states)


def _compared(table: Table, slot: int, text: str) -> StateReader:
    found = re.fullmatch(r"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*", str(text))
    if found is None:
        raise ProblemError(
            "state_from must be a column, a comparison and a value, as 'delay < 15', got "
            f"{text!r:.60}"
        )
    name, sign, value = found.groups()
    column = table.column(name, "state_from")
    names = (f"not {name} {sign} {value}", f"{name} {sign} {value}")
    try:
        threshold = float(value)
    except ValueError:
        if sign not in ("==", "!="):
            raise ProblemError(
                f"state_from: {value!r:.60} is not a number; text can only be compared by == and !="
            ) from None
        return _compared_text(slot, column, name, sign, value.strip("'\""), names)

    numbers = NumberColumn(name, slot)

    def read(chunk: Chunk, found: Any, good: BoolArray, mistakes: Mistakes) -> IntArray:
        values = numbers.read(chunk, found, good, mistakes)
        with np.errstate(invalid="ignore"):
            return np.asarray(COMPARISONS[sign](values, threshold), dtype=np.int64)

    return StateReader(column, numbers.look, read, lambda: names)


def _compared_text(
    slot: int, column: int, name: str, sign: str, value: str, names: tuple[str, str]
) -> StateReader:
    words = TextColumn(name, slot)

    def read(chunk: Chunk, found: Any, good: BoolArray, mistakes: Mistakes) -> IntArray:
        numbers = words.read(chunk, found, good, mistakes)
        same = words.meanings(lambda text: text == value)[numbers] == 1
        return np.asarray(same == (sign == "=="), dtype=np.int64)

    def finish() -> tuple[str, ...]:
        if value not in words.texts:
            raise ProblemError(f"state_from: no row has {name} {value!r}")
        return names

    return StateReader(column, words.look, read, finish)


def _by_quantiles(table: Table, slot: int, column: int, name: str, count: int) -> StateReader:
    thresholds, told = _quantiles(table, column, name, count)

    numbers = NumberColumn(name, slot)

    def read(chunk: Chunk, found: Any, good: BoolArray, mistakes: Mistakes) -> IntArray:
        values = numbers.read(chunk, found, good, mistakes)
        return np.searchsorted(thresholds, values, side="right").astype(np.int64)

    edges = [f"{edge:g}" for edge in thresholds]
    middle = [f"{low} <= {name} < {high}" for low, high in pairwise(edges)]
    names = (f"{name} < {edges[0]}", *middle, f"{name} >= {edges[-1]}")
    return StateReader(column, numbers.look, read, lambda: names, [told])


def _quantiles(table: Table, column: int, name: str, count: int) -> tuple[NDArray[np.float64], str]:
    """Thresholds between states that are about equally frequent, from a first reading."""
    ignored = Mistakes("", "", skip=True)
    values = np.zeros(0)
    num_seen, keep_every = 0, 1
    numbers = NumberColumn(name, 0)
    for chunk, looked in table.chunks([column], numbers.look):
        good = row_faults(chunk, ignored)
        found = numbers.read(chunk, looked, good, ignored)
        places = np.arange(num_seen, num_seen + len(found))
        num_seen += len(found)
        values = np.concatenate([values, found[good & (places % keep_every == 0)]])
        while len(values) > SAMPLE:  # every second, every fourth, ... row of the file
            values, keep_every = values[::2], 2 * keep_every
    if not len(values):
        raise ProblemError(f"column {name!r} holds no number, so it has no quantiles")
    thresholds = np.quantile(values, np.arange(1, count) / count)
    if len(np.unique(thresholds)) < count - 1 or thresholds[0] <= values.min():
        raise ProblemError(
            f"column {name!r} cannot be cut into {count} states by quantiles: too many rows have "
            "the same value; use fewer states, or state_from"
        )
    told = f"states are {name} cut at {', '.join(f'{edge:g}' for edge in thresholds)}"
    if keep_every > 1:
        told += f" (quantiles of every {keep_every:,}th row)"
    return thresholds, told


def _named(slot: int, column: int, name: str, states: Any) -> StateReader:
    words = TextColumn("state", slot, most=1 << 16)
    order = None if states is None else _order(states)

    def code(text: str) -> int:
        if order is not None:
            return order.get(text, -1)
        return _plain_state(text)

    def read(chunk: Chunk, found: Any, good: BoolArray, mistakes: Mistakes) -> IntArray:
        numbers = words.read(chunk, found, good, mistakes)
        codes = words.meanings(code)
        if order is None and (codes < 0).all() and good.any():
            raise _need_names(name, words.texts)
        expected = (
            "expected a whole number from 0 (the worst), or true or false; or name the states"
            if order is None
            else f"expected one of {', '.join(order)}"
        )
        shown = codes[numbers]
        if (codes[:-1] < 0).any():
            mark(good, shown < 0, chunk, mistakes, f"state is {{}}, {expected}", slot)
        return np.asarray(shown)

    def finish() -> tuple[str, ...]:
        if order is not None:
            return tuple(order)
        return tuple(str(s) for s in range(int(words.meanings(code).max()) + 1))

    return StateReader(column, words.look, read, finish)


def _order(states: Any) -> dict[str, int]:
    if isinstance(states, str) or not isinstance(states, Iterable):
        raise ProblemError(
            f"states must be a number (of quantiles) or the states' names, worst first, "
            f"got {states!r:.60}"
        )
    names = state_names([str(name) for name in states], None, "the log")
    if len(names) < 2:
        raise ProblemError(f"states must be at least two different names, got {names!s:.60}")
    return {name: at for at, name in enumerate(names)}


def _plain_state(text: str) -> int:
    """Return a state written as a whole number (also 1.0) or a truth value; -1 for others."""
    if text.lower() in TRUTH:
        return TRUTH[text.lower()]
    found = re.fullmatch(r"(\d{1,4})(\.0*)?", text)
    state = int(found[1]) if found else -1
    return state if state < MOST_STATES else -1


def _need_names(name: str, texts: Sequence[str]) -> ProblemError:
    shown = ", ".join(repr(text) for text in sorted(texts)[:6]) + ", ..." * (len(texts) > 6)
    try:
        [float(text) for text in texts]
        advice = "cut it with state_from = '... < ...' or into quantiles with states = 3"
    except ValueError:
        advice = "name the states in order, worst first, with states = ['bad', 'good']"
    return ProblemError(f"column {name!r} holds {shown}: {advice}")
