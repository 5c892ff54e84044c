"""What the fields of a column mean: words, truth values, numbers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.logs.fields import STRAY_QUOTE, UNCLOSED_QUOTE, WRONG_WIDTH
from restive.kernels.logs.values import read_numbers
from restive.kernels.logs.words import EMPTY, add_words, find_words, rehash_words
from restive.logs.reading.mistakes import Mistakes
from restive.logs.reading.rows import Chunk

__all__ = [
    "TRUTH",
    "FlagColumn",
    "Found",
    "NumberColumn",
    "TextColumn",
    "mark",
    "row_faults",
]

Bytes = NDArray[np.uint8]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]

TRUTH = {"1": 1, "true": 1, "yes": 1, "t": 1, "0": 0, "false": 0, "no": 0, "f": 0}
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
