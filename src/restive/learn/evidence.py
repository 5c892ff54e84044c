"""What was seen of an arm, as counts.

An arm last seen in state s, n steps ago, was seen again in state s'. How often each such (s, n, s')
happened is all that a posterior needs: whoever chose the pulls, and in whatever order things were
seen. Arms that are always seen, and people who report by themselves, are also seen in steps in
which they are not pulled; what is seen after that has another law, P_passive^n, and is counted
apart. A finite prior, a continuous one, a log file and a journal all meet here.
"""

from __future__ import annotations

from collections import Counter
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
from restive.problem.beliefs import belief_table, log_chances, settled_elapsed

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

    __slots__ = ("_counts", "_unpulled", "num_states")

    def __init__(self, num_states: int) -> None:
        self.num_states = checked_count(num_states, "num_states", most=MOST_STATES)
        self._counts: dict[int, int] = {}  # by cell, packed into one number
        self._unpulled: dict[int, int] = {}  # those that were not pulled when they were last seen

    def add(
        self,
        last_state: ArrayLike,
        elapsed: ArrayLike,
        next_state: ArrayLike,
        count: ArrayLike = 1,
        *,
        pulled: bool = True,
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
        pulled
            Whether the arm was pulled in the step in which it was seen in `last_state`. It was not
            pulled in the steps between.
        """
        counts_of = self._of(pulled)
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
                counts_of[cell] = counts_of.get(cell, 0) + total

    def add_noted(self, cells: list[int], *, pulled: bool = True) -> None:
        """Count sightings that an agent noted, each as its cell: (n S + s) S + s'."""
        counts_of = self._counts if pulled else self._unpulled
        for cell, total in Counter(cells).items():
            counts_of[cell] = counts_of.get(cell, 0) + total

    def _of(self, pulled: bool) -> dict[int, int]:
        if not isinstance(pulled, bool):
            raise ProblemError(f"pulled must be True or False, got {shown(pulled)}")
        return self._counts if pulled else self._unpulled

    @property
    def total(self) -> int:
        """The number of sightings counted."""
        return sum(self._counts.values()) + sum(self._unpulled.values())

    def cells(self, *, pulled: bool = True) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return last states, elapsed steps, next states and counts [C], by age, then state.

        Those of arms that were pulled when they were last seen, or with `pulled=False` the others.
        """
        own = self._of(pulled)
        packed = np.array(sorted(own), dtype=np.int64)
        counts = np.array([own[cell] for cell in packed.tolist()], dtype=np.int64)
        before, seen = np.divmod(packed, self.num_states)
        elapsed, last_state = np.divmod(before, self.num_states)
        return last_state, elapsed, seen, counts

    def to_data(self) -> dict[str, Any]:
        """Return plain data, for `json.dumps`."""
        data = {
            "num_states": self.num_states,
            "cells": np.array(self.cells()).T.tolist(),
        }
        if self._unpulled:
            data["unpulled_cells"] = np.array(self.cells(pulled=False)).T.tolist()
        return data

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Evidence:
        """Return the evidence that `to_data` wrote."""
        try:
            evidence = cls(data["num_states"])
            columns = np.array(data["cells"]).reshape(-1, 4).T
            unpulled = np.array(data.get("unpulled_cells", [])).reshape(-1, 4).T
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            if isinstance(error, ProblemError):
                raise
            raise ProblemError(
                f"expected the data that Evidence.to_data() returned, got {shown(data)}"
            ) from None
        if columns.size:
            evidence.add(*columns)
        if unpulled.size:
            evidence.add(*unpulled, pulled=False)
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
        for pulled in (True, False):
            counts = both._of(pulled)
            counts.update(self._of(pulled))
            for cell, count in other._of(pulled).items():
                counts[cell] = counts.get(cell, 0) + count
        return both

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Evidence):
            return NotImplemented
        return (
            self.num_states == other.num_states
            and self._counts == other._counts
            and self._unpulled == other._unpulled
        )

    __hash__ = None  # type: ignore[assignment]  # it changes as things are seen

    def __repr__(self) -> str:
        return f"Evidence(num_states={self.num_states}, {self.total:,} sightings)"


def log_likelihood(arm: Arm, evidence: Evidence) -> float:
    """Logarithm of the probability of what was seen, if this is the arm; -inf if it cannot be.

    It is the sum of C(s, n, s') log b(s, n)[s'], with exact ages as far as beliefs move at all, and
    of C log P_passive^n(s, s') for sightings after steps in which it was not pulled.
    """
    if evidence.num_states != arm.num_states:
        raise ProblemError(
            f"the evidence is about an arm of {evidence.num_states} states, this one has "
            f"{arm.num_states}"
        )
    last_state, elapsed, next_state, counts = evidence.cells()
    others = 0.0
    for pulled in (True, False) if arm.always_seen else (False,):
        others += _log_product(arm, evidence, pulled)
    if arm.always_seen or not len(counts):
        return others
    # Not `log_chances`: beliefs are held from the age on at which an agent's table ends, so that
    # evidence weighs what an agent's own posterior does (the other is within 5e-14 of it).
    length = int(elapsed.max())
    with suppress(RestiveError):  # which never settles, or late: every age is told apart
        length = min(length, settled_elapsed(arm))
    chances = belief_table(arm, length)[last_state, np.minimum(elapsed, length) - 1, next_state]
    if (chances == 0).any():
        return -inf
    return float((counts * logarithms(chances)).sum()) + others


def _log_product(arm: Arm, evidence: Evidence, pulled: bool) -> float:
    """Sum of C(s, n, s') log of the chance of s', with the first step by the matrix of `pulled`."""
    last_state, elapsed, next_state, counts = evidence.cells(pulled=pulled)
    if not len(counts):
        return 0.0
    first = arm.active if pulled else arm.passive
    logs = log_chances(first[None], arm.passive[None], last_state, elapsed, next_state)[:, 0]
    return float((counts * logs).sum())


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
