"""Words in delimited text, as numbers in the order of their first appearance."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import inlined, kernel, place

__all__ = ["EMPTY", "NEW", "add_words", "find_words", "rehash_words"]

Bytes = NDArray[np.uint8]
IntArray = NDArray[np.int64]

EMPTY, NEW = -1, -2  # instead of a word's number
ONE = place(1)


@kernel
def find_words(
    text: Bytes, starts: IntArray, ends: IntArray, numbers: IntArray, slots: IntArray, pool: Bytes,
    pool_ends: IntArray, following: IntArray, short: IntArray, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Look words up; a new word is number -2, an empty one -1.

    While this runs, another thread may add words: then their numbers are `count` or more, and they
    are still new here.

    Parameters
    ----------
    text, starts, ends
        The words [R] of a chunk.
    numbers
        Gets their numbers [R].
    slots
        Hash table: numbers of known words, or -1; its size is a power of two.
    pool, pool_ends
        The known words end to end, and where each ends [room + 1], from 0.
    following
        Which word came last time after each [room]: many logs list all arms again and again in the
        same order, and a good guess saves the search.
    short
        The number of each word of one byte [256], or -1.
    count
        How many are known.

    Returns
    -------
    How many words are new, and how many empty.
    """
    mask = np.uint64(len(slots) - 1)
    last = num_new = num_empty = 0
    for row in range(len(numbers)):
        start, size = starts[row], ends[row] - starts[row]
        if size <= 0:
            numbers[row] = EMPTY
            num_empty += 1
            continue
        if size == 1 and 0 <= short[text[start]] < count:
            numbers[row] = short[text[start]]
            continue
        known = following[last]
        if known >= count or not _same_word(text, start, size, pool, pool_ends, known):
            slot = _hash(text, start, size) & mask
            known = slots[slot]
            while 0 <= known < count and not _same_word(text, start, size, pool, pool_ends, known):
                slot = (slot + np.uint64(1)) & mask
                known = slots[slot]
            if known < 0 or known >= count:
                numbers[row] = NEW
                num_new += 1
                continue
            following[last] = known
        numbers[row] = known
        last = known
    return num_new, num_empty


@kernel
def add_words(
    text: Bytes, starts: IntArray, ends: IntArray, first: int, numbers: IntArray, slots: IntArray,
    pool: Bytes, pool_ends: IntArray, following: IntArray, short: IntArray, count: int,
) -> tuple[int, int]:  # fmt: skip
    """Number new words (-2), from row `first` on, in the order of their first appearance.

    Arguments as in `find_words`. Returns the row that there was no room for (R if there was), and
    how many words are known now.
    """
    mask = np.uint64(len(slots) - 1)
    for row in range(first, len(numbers)):
        if numbers[row] != NEW:
            continue
        start, size = starts[row], ends[row] - starts[row]
        slot = _hash(text, start, size) & mask
        while slots[slot] >= 0 and not _same_word(text, start, size, pool, pool_ends, slots[slot]):
            slot = (slot + np.uint64(1)) & mask
        if slots[slot] < 0:
            begin = pool_ends[count]
            room = begin + size <= len(pool) and 2 * (count + 1) <= len(slots)
            if not room or count + 1 >= len(pool_ends):
                return row, count
            for i in range(size):
                pool[begin + i] = text[start + i]
            pool_ends[count + 1] = begin + size
            slots[slot] = count
            if size == 1:
                short[text[start]] = count
            count += 1
        numbers[row] = slots[slot]
    return len(numbers), count


@inlined
def _same_word(
    text: Bytes, start: int, size: int, pool: Bytes, pool_ends: IntArray, known: int
) -> bool:
    first = place(pool_ends[place(known)])
    here, there = place(start + size), place(pool_ends[place(known + 1)])
    if there - first != place(size):
        return False
    while there > first and pool[there - ONE] == text[here - ONE]:  # names differ at the end
        there -= ONE
        here -= ONE
    return bool(there == first)


@inlined
def _hash(text: Bytes, start: int, size: int) -> np.uint64:
    """FNV-1a, with its high bits mixed into the low ones."""
    code = np.uint64(14695981039346656037)
    for i in range(place(start), place(start + size)):
        code = (code ^ np.uint64(text[i])) * np.uint64(1099511628211)
    return code ^ (code >> np.uint64(29))


@kernel
def rehash_words(pool: Bytes, pool_ends: IntArray, count: int, slots: IntArray) -> None:
    """Enter the known words into a fresh, larger hash table."""
    mask = np.uint64(len(slots) - 1)
    for word in range(count):
        slot = _hash(pool, pool_ends[word], pool_ends[word + 1] - pool_ends[word]) & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = word
