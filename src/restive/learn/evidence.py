"""What was seen of an arm, as counts.

An arm last seen in state s, n steps ago, was seen again in state s'. How often each such (s, n, s')
happened is all that a posterior needs: whoever chose the pulls, and in whatever order things were
seen. A finite prior, a continuous one, a log file and a journal all meet here.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST, checked_count, shown
from restive.errors import ProblemError, RestiveError
from restive.kernels.elementary import logarithms
from restive.problem.arm import Arm
from restive.problem.beliefs import belief_table, settled_elapsed

__all__ = ["Evidence", "log_likelihood"]

IntArray = NDArray[np.int64]

MOST_STATES = 1 << 10
MOST_CELLS = 1 << 62  # a cell is packed into one number of 64 bits


class Evidence:
    """Counts of what was seen of one arm, by (last state, elapsed steps, next state).

    Evidence of the same sightings is equal, in whatever order they were added.

    Parameters
    ----------
    num_states
        The arm's number of states, S.
    """

    __slots__ = ("_counts", "num_states")

    def __init__(self, num_states: int) -> None:
        self.num_states = checked_count(num_states, "num_states", most=MOST_STATES)
        self._counts: dict[int, int] = {}  # by cell, packed into one number

    def add(
        self,
        last_state: ArrayLike,
        elapsed: ArrayLike,
        next_state: ArrayLike,
        count: ArrayLike = 1,
    ) -> None:
        """Count sightings: one, or many at once as arrays that broadcast against each other.

        Parameters
        ----------
        last_state
            State in which the arm was seen.
        elapsed
            Steps from then to the next sighting, at least 1.
        next_state
            State in which it was seen then.
        count
            How often that happened, at least 0.
        """
        fields = (
            _whole(last_state, "last_state", 0, self.num_states - 1),
            _whole(elapsed, "elapsed", 1, MOST_CELLS // self.num_states**2),
            _whole(next_state, "next_state", 0, self.num_states - 1),
            _whole(count, "count", 0, MOST),
        )
        try:
            states, ages, seen, counts = np.broadcast_arrays(*fields)
        except ValueError:
            shapes = ", ".join(str(field.shape) for field in fields)
            raise ProblemError(
                f"last_state, elapsed, next_state and count must go together; their shapes are "
                f"{shapes}"
            ) from None
        cells = (ages * self.num_states + states) * self.num_states + seen
        distinct, places = np.unique(cells, return_inverse=True)
        totals = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(totals, places.ravel(), counts.ravel())
        for cell, total in zip(distinct.tolist(), totals.tolist(), strict=True):
            if total:
                self._counts[cell] = self._counts.get(cell, 0) + total

    @property
    def total(self) -> int:
        """The number of sightings counted."""
        return sum(self._counts.values())

    def cells(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return last states, elapsed steps, next states and counts [C], by age, then state."""
        packed = np.array(sorted(self._counts), dtype=np.int64)
        counts = np.array([self._counts[cell] for cell in packed.tolist()], dtype=np.int64)
        before, seen = np.divmod(packed, self.num_states)
        elapsed, last_state = np.divmod(before, self.num_states)
        return last_state, elapsed, seen, counts

    def to_data(self) -> dict[str, Any]:
        """Return plain data, for `json.dumps`."""
        return {
            "num_states": self.num_states,
            "cells": np.array(self.cells()).T.tolist(),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Evidence:
        """Return the evidence that `to_data` wrote."""
        try:
            evidence = cls(data["num_states"])
            columns = np.array(data["cells"]).reshape(-1, 4).T
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(
                f"expected the data that Evidence.to_data() returned, got {shown(data)}"
            ) from None
        if columns.size:
            evidence.add(*columns)
        return evidence

    def __add__(self, other: Evidence) -> Evidence:
        if not isinstance(other, Evidence):
            return NotImplemented
        if other.num_states != self.num_states:
            raise ProblemError(
                f"evidence of an arm of {self.num_states} states cannot be added to that of one "
                f"of {other.num_states}"
            )
        both = Evidence(self.num_states)
        both._counts = dict(self._counts)
        for cell, count in other._counts.items():
            both._counts[cell] = both._counts.get(cell, 0) + count
        return both

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evidence):
            return NotImplemented
        return self.num_states == other.num_states and self._counts == other._counts

    __hash__ = None  # type: ignore[assignment]  # it changes as things are seen

    def __repr__(self) -> str:
        return f"Evidence(num_states={self.num_states}, {self.total:,} sightings)"


def log_likelihood(arm: Arm, evidence: Evidence) -> float:
    """Logarithm of the probability of what was seen, if this is the arm; -inf if it cannot be.

    It is the sum of C(s, n, s') log b(s, n)[s'], with exact ages as far as beliefs move at all.
    """
    if evidence.num_states != arm.num_states:
        raise ProblemError(
            f"the evidence is about an arm of {evidence.num_states} states, this one has "
            f"{arm.num_states}"
        )
    last_state, elapsed, next_state, counts = evidence.cells()
    if not len(counts):
        return 0.0
    # Not `log_chances`: beliefs are held from the age on at which an agent's table ends, so that
    # evidence weighs what an agent's own posterior does (the other is within 5e-14 of it).
    length = int(elapsed.max())
    with suppress(RestiveError):  # which never settles, or late: every age is told apart
        length = min(length, settled_elapsed(arm))
    chances = belief_table(arm, length)[last_state, np.minimum(elapsed, length) - 1, next_state]
    if (chances == 0).any():
        return -inf
    return float((counts * logarithms(chances)).sum())


def _whole(values: ArrayLike, field: str, least: int, most: int) -> IntArray:
    """Return whole numbers within a range, or say which field is wrong."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.array(None)
    if isinstance(values, np.ma.MaskedArray) or (
        array.size and not np.issubdtype(array.dtype, np.integer)
    ):
        raise ProblemError(f"{field} must be whole numbers, got {shown(values)}")
    if array.size and not least <= array.min() <= array.max() <= most:
        wrong = array.min() if array.min() < least else array.max()
        raise ProblemError(f"{field} must be from {least} to {most:,}, got {wrong}")
    return array.astype(np.int64)
