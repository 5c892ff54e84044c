"""What the fields of a column mean: words, truth values, numbers, times."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.log_rows import (
    AWARE,
    EMPTY,
    LOCAL,
    NUMBER,
    STRAY_QUOTE,
    UNCLOSED_QUOTE,
    UNREADABLE,
    WRONG_WIDTH,
    add_words,
    find_words,
    read_numbers,
    read_times,
    rehash_words,
)
from restive.log_file.mistakes import Mistakes
from restive.log_file.rows import Chunk
from restive.steps import StepRule, ZoneOffsets

__all__ = [
    "TRUTH",
    "FlagColumn",
    "Found",
    "NumberColumn",
    "TextColumn",
    "Times",
    "TimesFound",
    "mark",
    "row_faults",
]

Bytes = NDArray[np.uint8]
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


class Found(NamedTuple):
    """Words that were looked up ahead of time."""

    numbers: IntArray  # [R], or EMPTY or NEW
    num_new: int
    num_empty: int


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
        self._known = self._tables()

    def _tables(self) -> tuple[IntArray, Bytes, IntArray, IntArray, IntArray, int]:
        return self._slots, self._pool, self._ends, self._following, self._short, self.count

    def look(self, chunk: Chunk, slot: int) -> Found:
        """Look up what is known by now; threads do this ahead of `read`."""
        starts, ends = chunk.starts[slot], chunk.ends[slot]
        numbers = np.empty(len(starts), dtype=np.int64)
        return Found(numbers, *find_words(chunk.text, starts, ends, numbers, *self._known))

    def read(self, chunk: Chunk, slot: int, found: Found) -> IntArray:
        """Return the number of the word in each row [R]; EMPTY where the field is empty."""
        if not found.num_new:
            return found.numbers
        starts, ends = chunk.starts[slot], chunk.ends[slot]
        row = 0
        while row < len(starts):
            row, self.count = add_words(
                chunk.text, starts, ends, row, found.numbers, *self._tables()
            )
            if self.count > self.most:
                raise ProblemError(
                    f"{self.what} has more than {self.most:,} different values, as "
                    f"{', '.join(repr(word) for word in self.words(self.most - 2, self.most + 1))}"
                )
            if row < len(starts):
                self._grow(int(ends[row] - starts[row]))
        self._known = self._tables()  # at once: threads may be looking words up
        return found.numbers

    def _grow(self, size: int) -> None:
        self._pool = np.concatenate([self._pool, np.zeros(len(self._pool) + size, np.uint8)])
        self._ends = np.concatenate([self._ends, np.zeros_like(self._ends)])
        self._following = np.concatenate([self._following, np.zeros_like(self._following)])
        self._slots = np.full(2 * len(self._slots), -1, dtype=np.int64)
        rehash_words(self._pool, self._ends, self.count, self._slots)

    def words(self, first: int = 0, end: int | None = None) -> list[str]:
        """Return the words from number `first` on; '' for one that is not UTF-8."""
        limits = self._ends[first : (self.count if end is None else end) + 1]
        raw = self._pool[limits[0] : limits[-1]].tobytes()
        places = (limits - limits[0]).tolist()
        if raw.isascii():
            text = raw.decode("ascii")
            found = [text[a:b] for a, b in pairwise(places)]
        else:
            found = [_decoded(raw[a:b]) for a, b in pairwise(places)]
        return [word.replace('""', '"') for word in found] if b'""' in raw else found


def _decoded(word: bytes) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return ""


class TextColumn:
    """A column of words, each of which must be there and be UTF-8."""

    def __init__(self, what: str, slot: int, most: int = 1 << 30) -> None:
        self.what, self.slot = what, slot
        self.words = Words(what, most)
        self.texts: list[str] = []
        self._foreign: list[int] = []  # words that are not UTF-8
        self._meanings: list[int] = []

    def look(self, chunk: Chunk) -> Found:
        """Look words up ahead of time."""
        return self.words.look(chunk, self.slot)

    def read(self, chunk: Chunk, found: Found, good: BoolArray, mistakes: Mistakes) -> IntArray:
        """Return the number of each row's word [R]."""
        numbers = self.words.read(chunk, self.slot, found)
        if found.num_empty:
            mark(good, numbers == EMPTY, chunk, mistakes, f"{self.what} is empty")
        known = len(self.texts)
        if self.words.count > known:
            self.texts += self.words.words(known)
            self._foreign += [at for at in range(known, len(self.texts)) if not self.texts[at]]
        if self._foreign:
            mark(
                good, np.isin(numbers, self._foreign), chunk, mistakes,
                f"{self.what} is not UTF-8: {{}}; save the file as CSV in UTF-8", self.slot,
            )  # fmt: skip
        return numbers

    def meanings(self, meaning: Callable[[str], int]) -> IntArray:
        """What each word stands for [words + 1]; the last one is for a field that is empty."""
        if len(self._meanings) < len(self.texts):
            self._meanings += map(meaning, self.texts[len(self._meanings) :])
        return np.array([*self._meanings, -1], dtype=np.int64)


class FlagColumn(TextColumn):
    """A column of truth values."""

    def read(self, chunk: Chunk, found: Found, good: BoolArray, mistakes: Mistakes) -> IntArray:
        """Return 1 where the field says yes, 0 where it says no [R]."""
        numbers = super().read(chunk, found, good, mistakes)
        values = self.meanings(lambda text: TRUTH.get(text.lower(), -1))[numbers]
        reason = f"{self.what} is {{}}, expected 1 or 0, true or false, yes or no"
        mark(good, values < 0, chunk, mistakes, reason, self.slot)
        return np.asarray(np.maximum(values, 0))


class NumberColumn:
    """A column of numbers."""

    def __init__(self, what: str, slot: int) -> None:
        self.what, self.slot = what, slot

    def look(self, chunk: Chunk) -> FloatArray:
        """Read plain decimal numbers ahead of time [R]; nan for others."""
        starts, ends = chunk.starts[self.slot], chunk.ends[self.slot]
        values = np.empty(len(starts))
        read_numbers(chunk.text, starts, ends, values)
        return values

    def read(
        self, chunk: Chunk, values: FloatArray, good: BoolArray, mistakes: Mistakes
    ) -> FloatArray:
        """Return the numbers [R]; rows without one are marked."""
        if not np.isnan(values).any():
            return values
        empty = chunk.ends[self.slot] <= chunk.starts[self.slot]
        for row in np.flatnonzero(np.isnan(values) & good & ~empty).tolist():
            try:  # it may be written with an exponent
                value = float(chunk.word(row, self.slot))
            except ValueError:
                continue
            if isfinite(value):
                values[row] = value
        mark(good, empty, chunk, mistakes, f"{self.what} is empty")
        reason = f"{self.what} is {{}}, expected a number"
        mark(good, np.isnan(values), chunk, mistakes, reason, self.slot)
        return values


class TimesFound(NamedTuple):
    """Times that were read ahead of time."""

    times: IntArray  # [R]
    kinds: NDArray[np.int8]  # [R]
    kind: int  # of all of them, or UNREADABLE
    whole: bool
    ascending: bool


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

    def look(self, chunk: Chunk) -> TimesFound:
        """Read times ahead of time."""
        starts, ends = chunk.starts[self.slot], chunk.ends[self.slot]
        times, kinds = np.empty(len(starts), np.int64), np.empty(len(starts), np.int8)
        return TimesFound(times, kinds, *read_times(chunk.text, starts, ends, times, kinds))

    def read(
        self, chunk: Chunk, found: TimesFound, good: BoolArray, mistakes: Mistakes
    ) -> IntArray:
        """Return times in micros [R]."""
        if self.kind == UNREADABLE:
            self._settle(found, good)
        whole = self.kind != NUMBER or self.rule is not None or found.whole
        if found.kind != self.kind or found.kind == UNREADABLE or not whole:
            self._mark_bad(chunk, found, good, mistakes)
        times = found.times
        if self._converts and good.any():
            times = self._instants(times, chunk, good, mistakes)
        if found.ascending and times is found.times and good.all():
            self.in_order &= bool(times[0] >= self.last)
            self.last = int(times[-1])
        else:
            self._watch_order(times[good])
        return times

    def _settle(self, found: TimesFound, good: BoolArray) -> None:
        """Let the first row that is good decide what times are."""
        kinds = found.kinds[good & (found.kinds != UNREADABLE)]
        if len(kinds):
            self.kind = int(kinds[0])
            self._require_step()

    def _mark_bad(
        self, chunk: Chunk, found: TimesFound, good: BoolArray, mistakes: Mistakes
    ) -> None:
        times, kinds = found.times, found.kinds
        empty = chunk.ends[self.slot] <= chunk.starts[self.slot]
        self._mark(good, empty, chunk, mistakes, "time is empty")
        self._mark(
            good, kinds == UNREADABLE, chunk, mistakes,
            "time is {}, expected a whole number (up to 2e12), 2026-03-29 or 2026-03-29 14:30:00 "
            "(also with an offset, +02:00)",
        )  # fmt: skip
        if self.kind != UNREADABLE:
            expected = f"expected {TIME_KINDS[self.kind]} as in the rows before"
            self._mark(good, kinds != self.kind, chunk, mistakes, f"time is {{}}, {expected}")
        if self.kind == NUMBER and self.rule is None:
            expected = "expected a whole number (or say how long a step is: step = 0.5)"
            self._mark(good, times % MICROS != 0, chunk, mistakes, f"time is {{}}, {expected}")

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

    def _require_step(self) -> None:
        """Now that it is known what times are: is the step known, and does it fit?"""
        rule = self.rule
        if self.kind == NUMBER:
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
        if self.kind == AWARE and rule.days and self.zone is None:
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
