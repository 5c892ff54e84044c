"""The table of a fit's arms: what was seen of each, and what its chances are."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.files import replacing, spreadsheet_text
from restive.pages.frames import data_frame

__all__ = ["ArmTable"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BOUNDS = ("", " (low)", " (high)")  # of a chance: its mean and its 90% interval


@dataclass(frozen=True, eq=False)
class ArmTable:
    """A row per arm: how often it was seen, and its posterior's means and 90% intervals."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]  # [K]
    sightings: IntArray  # [K]
    last_state: IntArray  # [K]
    elapsed: IntArray  # [K] steps from then to the first one after the log
    active: FloatArray  # [K, S, S] posterior means
    passive: FloatArray  # [K, S, S]
    low: FloatArray  # [K, S, S] of active
    high: FloatArray  # [K, S, S]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of `rows`."""
        own = ("arm", "kind", "sightings", "last_state", "elapsed")
        chances = [f"p{s}{t}" for s, t in self._entries]
        passive = () if self._uncontrolled else tuple(f"passive_{name}" for name in chances)
        return (*own, *(n for c in chances for n in (c, f"{c}_low", f"{c}_high")), *passive)

    @property
    def _entries(self) -> list[tuple[int, int]]:
        """Entries of a matrix that tell the others."""
        size = self.active.shape[1]
        return [(s, t) for s in range(size) for t in range(1, size)]

    @property
    def _uncontrolled(self) -> bool:
        return self.passive is self.active

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        shown = (self.active, self.low, self.high)
        passive = () if self._uncontrolled else (self.passive,)
        for k in range(len(self)):
            yield (
                self.names[k], self.kinds[k], int(self.sightings[k]), int(self.last_state[k]),
                int(self.elapsed[k]),
                *(float(part[k, s, t]) for s, t in self._entries for part in shown),
                *(float(part[k, s, t]) for s, t in self._entries for part in passive),
            )  # fmt: skip

    def to_pandas(self) -> Any:
        """Return a data frame, a row per arm (needs pandas)."""
        return data_frame(dict(zip(self.columns, zip(*self.rows(), strict=True), strict=True)))

    def to_csv(self, path: str | PathLike[str], states: Sequence[str] | None = None) -> None:
        """Write the table, its columns in words; a file for `restive live init --arms`, too.

        Parameters
        ----------
        path
            Where to.
        states
            Names of the states; their numbers by default.
        """
        size = self.active.shape[1]
        named = [str(s) for s in range(size)] if states is None else list(states)
        chances = [f"chance of {named[t]} after {named[s]}" for s, t in self._entries]
        alike = self._uncontrolled
        pulled = chances if alike else [f"{chance} when pulled" for chance in chances]
        header = [*self.columns[:5], *(f"{c}{part}" for c in pulled for part in BOUNDS)]
        header += [] if alike else [f"{chance} when not pulled" for chance in chances]
        with (
            replacing(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow([spreadsheet_text(column) for column in header])
            for name, kind, seen, last, *numbers in self.rows():
                shown = (f"{x:.6g}" if isinstance(x, float) else x for x in numbers)
                texts = [spreadsheet_text(text) for text in (name, kind, named[last])]
                writer.writerow([*texts[:2], seen, texts[2], *shown])

    def __repr__(self) -> str:
        return f"ArmTable({len(self):,} arms: {', '.join(self.columns)})"
