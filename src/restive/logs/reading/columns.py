"""What the fields of a column mean: words, truth values, numbers; and which rows cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite, nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.errors import LogError, ProblemError
from restive.logs.reading.file import Column, LogFile
from restive.logs.reading.lines import FAULTS

__all__ = ["TRUTH", "Mistakes", "WordColumn", "all_match", "is_empty", "read_flags", "read_numbers"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

MOST_SHOWN = 20
MOST_KEPT = 100_000
MOST_PLACES = 3  # rows of a note
MOST_WORDS = 1 << 30
MOST_MARKS = 6  # words of a column in a message
TRUTH = {"1": 1, "true": 1, "yes": 1, "t": 1, "0": 0, "false": 0, "no": 0, "f": 0}
DECIMAL = r"^-?[0-9]+(\.[0-9]*)?$"


class Mistakes:
    """Which rows are good; the others are refused together, or left out if that was asked for.

    A row is marked for the first thing that is wrong with it.

    Parameters
    ----------
    file
        The log, as messages call it and its rows.
    lines
        Line of each row [R].
    faults
        What is wrong with rows before their fields are looked at [R].
    skip
        Whether bad rows are left out.
    """

    def __init__(
        self, file: LogFile, lines: NDArray[np.uint32], faults: NDArray[np.int8], skip: bool
    ) -> None:
        self.file, self.lines, self.skip = file, lines, skip
        self.good: BoolArray = np.ones(len(lines), dtype=np.bool_)
        self._found: list[tuple[IntArray, str, Callable[[int], str] | None]] = []
        for fault, reason in FAULTS.items():
            self.mark(faults == fault, reason)
        self.is_row = self.good.copy()  # [R]

    def mark(self, bad: BoolArray, reason: str, detail: Callable[[int], str] | None = None) -> None:
        """Note rows that are bad; `detail` tells, by row, what a {} in the reason stands for."""
        rows = np.flatnonzero(bad & self.good)
        if len(rows):
            self._found.append((rows, reason, detail))
            self.good[rows] = False

    def mark_field(self, bad: BoolArray, reason: str, column: Column) -> None:
        """Note rows that are bad, where a {} in the reason stands for what their field holds."""
        self.mark(bad, reason, lambda row: f"{column.text(row)!r:.60}")

    @property
    def count(self) -> int:
        """How many bad rows there are."""
        return sum(len(rows) for rows, _, _ in self._found)

    def refuse(self) -> None:
        """Raise if there are any, unless they are to be skipped."""
        if self.skip or not self.count:
            return
        rows = np.concatenate([rows for rows, _, _ in self._found])
        which = np.repeat(range(len(self._found)), [len(rows) for rows, _, _ in self._found])
        first = np.argsort(rows)[:MOST_KEPT]
        found = []
        for row, at in zip(rows[first].tolist(), which[first].tolist(), strict=True):
            _, reason, detail = self._found[at]
            told = reason if detail is None else reason.replace("{}", detail(row))
            found.append((int(self.lines[row]), told))
        shown = [f"  {self.file.row} {line}: {reason}" for line, reason in found[:MOST_SHOWN]]
        if self.count > MOST_SHOWN:
            shown.append(f"  and {self.count - MOST_SHOWN:,} more")
        them = "it" if self.count == 1 else "them"
        # to leave all rows out is no advice
        skip = f", or leave {them} out with skip_bad (--skip-bad)" if self.good.any() else ""
        count = counted(self.count, "bad row") if skip else f"none of {self.count:,} rows is good"
        raise LogError(f"{self.file.path}: {count}; mend {them}{skip}:\n" + "\n".join(shown), found)

    def notes(self) -> list[str]:
        """Tell how many rows were left out, by reason, and the first of them."""
        return [
            f"{counted(len(rows), 'row')} {'was' if len(rows) == 1 else 'were'} left out "
            f"({self._places(rows)}): " + reason.replace("{}", "...")
            for rows, reason, _ in sorted(self._found, key=lambda found: found[1])
        ]

    def _places(self, rows: IntArray) -> str:
        """Return where rows are: "line 3", "lines 3, 8, 9, ..."."""
        named = ", ".join(map(str, self.lines[rows[:MOST_PLACES]].tolist()))
        more = ", ..." if len(rows) > MOST_PLACES else ""
        return f"{self.file.row}{'s' if len(rows) > 1 else ''} {named}{more}"


class WordColumn:
    """A column of words, each of which must be there and be UTF-8.

    Parameters
    ----------
    column
        The column.
    what
        What messages call it.
    mistakes
        Where rows without such a word are marked.
    most
        How many different words there may be.

    `texts` are the different words in the order of their first rows, '' where one is not UTF-8;
    `numbers` [R] tell which one each row has, -1 for a field that is empty.
    """

    def __init__(
        self, column: Column, what: str, mistakes: Mistakes, most: int = MOST_WORDS
    ) -> None:
        words, numbers = column.words
        if b"" in words:
            empty = words.index(b"")
            mistakes.mark(numbers == empty, f"{what} is empty")
            words = words[:empty] + words[empty + 1 :]
            numbers = np.where(numbers == empty, -1, numbers - (numbers > empty))
        self.texts, self.numbers = [_decoded(word) for word in words], numbers.astype(np.int32)
        if len(words) > most:
            raise ProblemError(
                f"{what} has more than {most:,} different values, as "
                + ", ".join(repr(text) for text in self.texts[most - 2 : most + 1])
            )
        if "" in self.texts:
            foreign = np.array([not text for text in self.texts] + [False])
            reason = f"{what} is not UTF-8: {{}}; save the file as CSV in UTF-8"
            mistakes.mark_field(foreign[self.numbers], reason, column)

    def reorder(self, good: BoolArray) -> None:
        """Put the words in the order of their first good rows; those without one come last."""
        first = np.full(len(self.texts) + 1, len(good), dtype=np.int64)  # the last is for no word
        rows = np.flatnonzero(good)[::-1]
        first[self.numbers[rows]] = rows  # the last one stays, of the first row
        order = np.argsort(first[:-1], kind="stable")
        places = np.full(len(first), -1, dtype=np.int32)
        places[order] = np.arange(len(order))
        self.texts, self.numbers = [self.texts[at] for at in order], places[self.numbers]

    def meanings(self, meaning: Callable[[str], int]) -> IntArray:
        """What each word stands for [words + 1]; the last one, -1, is for a field that is empty."""
        return np.array([*map(meaning, self.texts), -1], dtype=np.int64)


def _decoded(word: bytes) -> str:
    """Return a word, '' for one that is not UTF-8."""
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def read_flags(column: Column, name: str, mistakes: Mistakes) -> tuple[IntArray, list[str]]:
    """Return 1 where a field says yes, 0 where it says no [R], and notes.

    One word and blanks, as people mark rows by hand, say yes and no.
    """
    found, numbers = column.words
    marks = sorted({_decoded(word) for word in found} - {""})
    if b"" in found and len(marks) == 1 == len(found) - 1 and TRUTH.get(marks[0].lower(), 1):
        note = f"{marks[0]!r} in column {name!r} is taken as pulled, a blank as not pulled"
        return np.array([bool(word) for word in found], dtype=np.int64)[numbers], [note]
    if marks and not any(mark.lower() in TRUTH for mark in marks):
        listed = ", ".join(repr(mark) for mark in marks[:MOST_MARKS])
        listed += ", ..." * (len(marks) > MOST_MARKS)
        raise ProblemError(
            f"column {name!r} holds {listed}, and which of them means that the arm was pulled is "
            "not known: write 1 or 0, true or false, yes or no, or one word and blanks for no"
        )
    words = WordColumn(column, "pulled", mistakes)
    flags = words.meanings(lambda text: TRUTH.get(text.lower(), -1))[words.numbers]
    reason = "pulled is {}, expected 1 or 0, true or false, yes or no"
    mistakes.mark_field(flags < 0, reason, column)
    return flags, []


def read_numbers(column: Column, what: str, mistakes: Mistakes) -> FloatArray:
    """Return numbers [R]; rows without one are marked."""
    (values,) = column.read(_numbers)
    wrong = np.isnan(values)
    if wrong.any():
        mistakes.mark(is_empty(column), f"{what} is empty")
        mistakes.mark_field(wrong, f"{what} is {{}}, expected a number", column)
    return values


def _numbers(texts: Any) -> tuple[FloatArray]:
    if all_match(texts, DECIMAL):
        found: FloatArray = texts.cast("string").cast("float64").to_numpy()
        return (np.where(np.isfinite(found), found, nan),)
    return (np.array([_number(text) for text in texts.to_pylist()], dtype=np.float64),)


def _number(text: bytes) -> float:
    try:
        value = float(text.decode("utf-8", errors="replace"))
    except ValueError:
        return nan
    return value if isfinite(value) else nan


def all_match(texts: Any, pattern: str) -> bool:
    """Whether a pattern describes each of these texts, an array of bytes."""
    import pyarrow.compute

    return bool(pyarrow.compute.all(pyarrow.compute.match_substring_regex(texts, pattern)).as_py())


def is_empty(column: Column) -> BoolArray:
    """Return which fields are empty [R]."""
    words, numbers = column.words
    empty: BoolArray = np.array([not word for word in words])[numbers]
    return empty
