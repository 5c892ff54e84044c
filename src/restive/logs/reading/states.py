"""Which state a row shows: as it stands there, by a threshold, or by quantiles of a number."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count
from restive.errors import ProblemError
from restive.learn.evidence import MOST_STATES
from restive.logs.reading.columns import TRUTH, Mistakes, WordColumn, read_numbers
from restive.logs.reading.file import Column
from restive.problem.arm import state_names

__all__ = ["StateRule", "States", "state_rule"]

IntArray = NDArray[np.int64]

COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
SAMPLE = 1_000_000  # values of which quantiles are taken
MOST_WORDS = 1 << 16  # in a column of states


class States(NamedTuple):
    """Which states rows show."""

    codes: IntArray  # [R], anything where the row is marked
    names: tuple[str, ...]  # of the states, worst first
    notes: tuple[str, ...] = ()
    refusal: str = ""  # why they are not what was meant, told after all bad rows


class StateRule(NamedTuple):
    """How states are read: of which column, and what its fields mean."""

    column: str
    argument: str  # that named the column
    read: Callable[[Column, Mistakes], States]


def state_rule(state: Any, state_from: Any, states: Any) -> StateRule:
    """Return how states are read; exactly one of `state` and `state_from` names a column."""
    if (state is None) == (state_from is None):
        raise ProblemError(
            "say what an arm's state is: state = a column of states, or state_from = 'delay < 15'"
        )
    if state_from is not None:
        if states is not None:
            raise ProblemError("state_from makes two states, bad and good; leave states out")
        return _compared(str(state_from))
    if isinstance(states, int | np.integer) and not isinstance(states, bool):
        count = checked_count(states, "states", 2, MOST_STATES)
        return StateRule(state, "state", partial(_by_quantiles, name=state, count=count))
    order = None if states is None else _order(states)
    return StateRule(state, "state", partial(_named, name=state, order=order))


def _compared(text: str) -> StateRule:
    found = re.fullmatch(r"\s*(.+?)\s*(<=|>=|==|!=|<|>)\s*(.+?)\s*", text)
    if found is None:
        raise ProblemError(
            "state_from must be a column, a comparison and a value, as 'delay < 15', got "
            f"{text!r:.60}"
        )
    name, sign, value = found.groups()
    names = (f"not {name} {sign} {value}", f"{name} {sign} {value}")

    def read_texts(column: Column, mistakes: Mistakes) -> States:
        wanted = value.strip("'\"")
        words = WordColumn(column, name, mistakes)
        codes = words.meanings(lambda text: int((text == wanted) == (sign == "==")))
        missing = "" if wanted in words.texts else f"state_from: no row has {name} {wanted!r}"
        return States(codes[words.numbers], names, refusal=missing)

    def compare_numbers(column: Column, mistakes: Mistakes) -> States:
        values = read_numbers(column, name, mistakes)
        with np.errstate(invalid="ignore"):
            holds = COMPARISONS[sign](values, threshold)
        return States(holds.astype(np.int64), names)

    try:
        threshold = float(value)
    except ValueError:
        if sign not in ("==", "!="):
            raise ProblemError(
                f"state_from: {value!r:.60} is not a number; text can only be compared by == and !="
            ) from None
        return StateRule(name, "state_from", read_texts)
    return StateRule(name, "state_from", compare_numbers)


def _by_quantiles(column: Column, mistakes: Mistakes, name: str, count: int) -> States:
    """Cut numbers so that states are about equally frequent."""
    values = read_numbers(column, name, mistakes)
    known = values[mistakes.is_row & ~np.isnan(values)]
    if not len(known):
        raise ProblemError(f"column {name!r} holds no number, so it has no quantiles")
    keep_every = 1
    while len(known) > keep_every * SAMPLE:  # every second, every fourth, ... row of the file
        keep_every *= 2
    sample = known[::keep_every]
    thresholds = np.quantile(sample, np.arange(1, count) / count)
    if len(np.unique(thresholds)) < count - 1 or thresholds[0] <= sample.min():
        raise ProblemError(
            f"column {name!r} cannot be cut into {count} states by quantiles: too many rows have "
            "the same value; use fewer states, or state_from"
        )
    edges = [f"{edge:g}" for edge in thresholds]
    told = f"states are {name} cut at {', '.join(edges)}"
    if keep_every > 1:
        told += f" (quantiles of every {keep_every:,}th row)"
    middle = [f"{low} <= {name} < {high}" for low, high in pairwise(edges)]
    names = (f"{name} < {edges[0]}", *middle, f"{name} >= {edges[-1]}")
    codes = np.searchsorted(thresholds, values, side="right").astype(np.int64)
    return States(codes, names, (told,))


def _named(column: Column, mistakes: Mistakes, name: str, order: dict[str, int] | None) -> States:
    """States as they stand there: by name, in a given order, or as whole numbers."""
    words = WordColumn(column, "state", mistakes, MOST_WORDS)
    notes, alike = tuple[str, ...](), dict[str, str]()
    if order is None:
        codes = words.meanings(_plain_state)
        if (codes < 0).all() and mistakes.good.any():
            raise _need_names(name, words.texts)
        expected = "a whole number from 0 (the worst), or true or false; or name the states"
        names = tuple(str(state) for state in range(int(codes.max(initial=-1)) + 1))
        good = [text for text in words.texts if not text[0].isdigit() and _plain_state(text) == 1]
        notes = tuple(f"{text!r} is taken as the good state" for text in good[:1])
    else:
        known = order
        codes = words.meanings(lambda text: known.get(text, -1))
        expected, names = f"one of {', '.join(order)}", tuple(order)
        alike = {name.casefold(): name for name in order}
    shown = codes[words.numbers]

    def detail(row: int) -> str:
        text = column.text(row)
        meant = alike.get(text.casefold())
        return f"{text!r:.60}" + (f" (did you mean {meant!r}?)" if meant else "")

    mistakes.mark(shown < 0, f"state is {{}}, expected {expected}", detail)
    return States(shown, names, notes)


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
