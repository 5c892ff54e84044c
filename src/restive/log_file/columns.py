"""What the fields of a column mean: words, truth values, numbers, times."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.log_rows import (
    AWARE,
    LOCAL,
    NUMBER,
    STRAY_QUOTE,
    UNCLOSED_QUOTE,
    UNREADABLE,
    WRONG_WIDTH,
    intern_words,
    read_numbers,
    read_times,
    rehash_words,
)
from restive.log_file.mistakes import Mistakes
from restive.log_file.rows import Chunk
from restive.steps import StepRule, ZoneOffsets

__all__ = ["TRUTH", "FlagColumn", "TextColumn", "Times", "Words", "mark", "numbers", "row_faults"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

MICROS = 1_000_000
TRUTH = {"1": 1, "true": 1, "yes": 1, "t": 1, "0": 0, "false": 0, "no": 0, "f": 0}
TIME_KINDS = {NUMBER: "a number", LOCAL: "a date", AWARE: "a date with an offset"}
FAULTS = {
    WRONG_WIDTH: "has another number of fields than the header",
    STRAY_QUOTE: "has a quote inside a field; quote the whole field and double the quote",
    UNCLOSED_QUOTE: "has a quote that is never closed",
}


def mark(
    good: BoolArray,
    bad: BoolArray,
    chunk: Chunk,
    mistakes: Mistakes,
    reason: str,
    slot: int | None = None,
) -> None:
    """Note the rows that are `bad` and still good; a {} in the reason is what the field holds."""
    wrong = np.flatnonzero(bad & good)
    if not len(wrong):
        return
    detail: Callable[[int], str] | None = None
    if slot is not None:

        def detail(at: int) -> str:
            return f"{chunk.word(int(wrong[at]), slot)!r:.60}"

    mistakes.add(chunk.lines[wrong].tolist(), reason, detail)
    good[wrong] = False


def row_faults(chunk: Chunk, mistakes: Mistakes) -> BoolArray:
    """Return which rows are rows at all."""
    good = np.ones(len(chunk.lines), dtype=np.bool_)
    if chunk.faults.any():
        for fault, reason in reversed(FAULTS.items()):
            mark(good, (chunk.faults & fault) != 0, chunk, mistakes, reason)
    return good


class Words:
    """Numbers words in the order in which they first appear."""

    def __init__(self, what: str, most: int) -> None:
        self.what, self.most = what, most
        self._slots = np.full(1 << 10, -1, dtype=np.int64)
        self._pool = np.zeros(1 << 14, dtype=np.uint8)
        self._ends = np.zeros(1 << 9, dtype=np.int64)
        self._following = np.zeros(1 << 9, dtype=np.int64)
        self._short = np.full(256, -1, dtype=np.int64)
        self.count = 0

    def read(self, chunk: Chunk, slot: int) -> IntArray:
        """Return the number of the word in each row [R]; -1 where the field is empty."""
        starts, ends = chunk.starts[slot], chunk.ends[slot]
        out = np.empty(len(starts), dtype=np.int64)
        row = 0
        while True:
            row, self.count = intern_words(
                chunk.text, starts, ends, row, out, self._slots, self._pool, self._ends,
                self._following, self._short, self.count,
            )  # fmt: skip
            if self.count > self.most:
                raise ProblemError(
                    f"{self.what} has more than {self.most:,} different values, as "
                    f"{', '.join(repr(word) for word in self.words(self.count - 3))}"
                )
            if row == len(starts):
                return out
            self._grow(int(ends[row] - starts[row]))

    def _grow(self, size: int) -> None:
        self._pool = np.concatenate([self._pool, np.zeros(len(self._pool) + size, np.uint8)])
        self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        self._following = np.concatenate([self._following, np.zeros_like(self._following)])
        self._slots = np.full(2 * len(self._slots), -1, dtype=np.int64)
        rehash_words(self._pool, self._ends, self.count, self._slots)

    def words(self, first: int = 0) -> list[str]:
        """Return the words from number `first` on; '' for one that is not UTF-8."""
        whole = self._pool.tobytes()
        found = []
        for word in range(first, self.count):
            try:
                text = whole[self._ends[word] : self._ends[word + 1]].decode("utf-8")
            except UnicodeDecodeError:
                text = ""
            found.append(text.replace('""', '"'))
        return found


class TextColumn:
    """A column of words, each of which must be there and be UTF-8."""

    def __init__(self, what: str, slot: int, most: int = 1 << 30) -> None:
        self.what, self.slot = what, slot
        self.words = Words(what, most)
        self.texts: list[str] = []

    def read(self, chunk: Chunk, good: BoolArray, mistakes: Mistakes) -> IntArray:
        """Return the number of each row's word [R]."""
        found = self.words.read(chunk, self.slot)
        mark(good, found < 0, chunk, mistakes, f"{self.what} is empty")
        if self.words.count > len(self.texts):
            self.texts += self.words.words(len(self.texts))
        if "" in self.texts:
            foreign = np.array([text == "" for text in self.texts])
            mark(
                good, foreign[found] & (found >= 0), chunk, mistakes,
                f"{self.what} is not UTF-8: {{}}; save the file as CSV in UTF-8", self.slot,
            )  # fmt: skip
        return found


class FlagColumn(TextColumn):
    """A column of truth values."""

    def read(self, chunk: Chunk, good: BoolArray, mistakes: Mistakes) -> IntArray:
        """Return 1 where the field says yes, 0 where it says no [R]."""
        found = super().read(chunk, good, mistakes)
        meaning = np.array([TRUTH.get(text.lower(), -1) for text in self.texts] or [-1])
        values = np.asarray(meaning[found])
        reason = f"{self.what} is {{}}, expected 1 or 0, true or false, yes or no"
        mark(good, values < 0, chunk, mistakes, reason, self.slot)
        return np.asarray(np.maximum(values, 0))


def numbers(chunk: Chunk, slot: int, what: str, good: BoolArray, mistakes: Mistakes) -> FloatArray:
    """Return a column of numbers [R]; rows without one are marked."""
    starts, ends = chunk.starts[slot], chunk.ends[slot]
    values = np.empty(len(starts))
    read_numbers(chunk.text, starts, ends, values)
    for row in np.flatnonzero(np.isnan(values) & good & (ends > starts)).tolist():
        try:  # it may be written with an exponent
            value = float(chunk.word(row, slot))
        except ValueError:
            continue
        if isfinite(value):
            values[row] = value
    mark(good, ends <= starts, chunk, mistakes, f"{what} is empty")
    mark(good, np.isnan(values), chunk, mistakes, f"{what} is {{}}, expected a number", slot)
    return values


class Times:
    """A column of times: all numbers, or all dates, or all dates with an offset."""

    def __init__(self, slot: int, name: str, rule: StepRule | None, zone: str | None) -> None:
        self.slot, self.name, self.rule, self.zone = slot, name, rule, zone
        self.kind = UNREADABLE
        self.num_twice = 0
        self.last = np.iinfo(np.int64).min
        self.in_order = True

    @property
    def are_instants(self) -> bool:
        """Whether times are instants, as opposed to what a clock on the wall shows."""
        return self.kind == AWARE or self._converts

    @property
    def _converts(self) -> bool:
        """Whether clocks on the wall must be understood as instants: for steps within a day."""
        return bool(self.kind == LOCAL and self.zone and self.rule and self.rule.length)

    def read(self, chunk: Chunk, good: BoolArray, mistakes: Mistakes) -> IntArray:
        """Return times in micros [R]."""
        starts, ends = chunk.starts[self.slot], chunk.ends[self.slot]
        times, kinds = np.empty((2, len(starts)), dtype=np.int64)
        read_times(chunk.text, starts, ends, times, kinds)
        self._mark(good, ends <= starts, chunk, mistakes, "time is empty")
        self._mark(
            good, kinds == UNREADABLE, chunk, mistakes,
            "time is {}, expected a whole number, 2026-03-29 or 2026-03-29 14:30:00 (also with an "
            "offset, +02:00)",
        )  # fmt: skip
        if self.kind == UNREADABLE and good.any():
            self._settle(int(kinds[good][0]))
        if self.kind != UNREADABLE:
            expected = f"expected {TIME_KINDS[self.kind]} as in the rows before"
            self._mark(good, kinds != self.kind, chunk, mistakes, f"time is {{}}, {expected}")
        if self.kind == NUMBER and self.rule is None:
            expected = "expected a whole number (or say how long a step is: step = 0.5)"
            self._mark(good, times % MICROS != 0, chunk, mistakes, f"time is {{}}, {expected}")
        if self._converts and good.any():
            times = self._instants(times, chunk, good, mistakes)
        self._watch_order(times[good])
        return times

    def _mark(
        self, good: BoolArray, bad: BoolArray, chunk: Chunk, mistakes: Mistakes, reason: str
    ) -> None:
        mark(good, bad, chunk, mistakes, reason, self.slot)

    def _watch_order(self, times: IntArray) -> None:
        if len(times):
            self.in_order &= bool(times[0] >= self.last and (np.diff(times) >= 0).all())
            self.last = int(times[-1])

    def _instants(
        self, times: IntArray, chunk: Chunk, good: BoolArray, mistakes: Mistakes
    ) -> IntArray:
        assert self.zone is not None
        offsets = ZoneOffsets(self.zone, int(times[good].min()), int(times[good].max()))
        instants, missing, twice = offsets.instants(times)
        reason = f"time {{}} does not exist in {self.zone}: clocks were set forward"
        self._mark(good, missing, chunk, mistakes, reason)
        self.num_twice += int((twice & good).sum())
        return instants

    def _settle(self, kind: int) -> None:
        """Now that it is known what times are: is the step known, and does it fit?"""
        self.kind = kind
        rule = self.rule
        if kind == NUMBER:
            if self.zone is not None:
                raise ProblemError(f"column {self.name!r} holds numbers; zone is for dates")
            if rule is not None and not rule.is_number:
                raise ProblemError(
                    f"column {self.name!r} holds numbers, so step is a number too, got "
                    f"{rule.text!r}"
                )
            return
        if rule is None or rule.is_number:
            told = "" if rule is None else f", got {rule.text!r}"
            raise ProblemError(
                f"column {self.name!r} holds dates; say how long a step is, as step = '1d' or '1h'"
                + told
            )
        if kind == AWARE and rule.days and self.zone is None:
            raise ProblemError(
                f"column {self.name!r} holds times with an offset; say whose days count, as "
                "zone = 'UTC' or 'Europe/Berlin'"
            )

    def notes(self) -> list[str]:
        """Tell what was decided."""
        told = []
        if not self.in_order:
            told.append("rows are not in order of time; they were sorted")
        if self.num_twice:
            told.append(
                f"{self.num_twice:,} times occur twice in {self.zone}, when clocks are set back; "
                "the first is taken"
            )
        return told
