"""What was found of each arm: a table."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import RestiveError
from restive.files import replacing

__all__ = ["ArmTable", "posterior_quantiles"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

LOW, HIGH = 0.05, 0.95  # ends of a 90% interval
RISKY = ("=", "+", "-", "@", "\t", "\r")  # with which a spreadsheet begins a formula


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
        """Return a data frame (needs pandas)."""
        try:
            import pandas
        except ImportError:
            raise RestiveError(
                "data frames need pandas: pip install 'restive[io]', or use to_csv"
            ) from None
        return pandas.DataFrame(self.rows(), columns=list(self.columns))

    def to_csv(self, path: str | PathLike[str]) -> None:
        """Write the table."""
        with (
            replacing(path) as temporary,
            temporary.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file)
            writer.writerow(self.columns)
            for name, kind, *numbers in self.rows():
                shown = (f"{x:.6g}" if isinstance(x, float) else x for x in numbers)
                writer.writerow([_harmless(name), _harmless(kind), *shown])

    def __repr__(self) -> str:
        return f"ArmTable({len(self):,} arms: {', '.join(self.columns)})"


def _harmless(text: str) -> str:
    """Return text that no spreadsheet takes for a formula."""
    return "'" + text if text.startswith(RISKY) else text


def posterior_quantiles(
    values: FloatArray, weights: FloatArray, levels: tuple[float, ...]
) -> FloatArray:
    """Quantiles [levels, K] of a probability that has values [M] with weights [K, M].

    Each value stands for the stretch around it, up to halfway to its neighbours, over which its
    weight is spread evenly.
    """
    distinct, which = np.unique(np.round(values, 12), return_inverse=True)
    order = np.argsort(which, kind="stable")
    begins = np.searchsorted(which[order], np.arange(len(distinct)))
    masses = np.add.reduceat(weights[:, order], begins, axis=1)
    if len(distinct) == 1:
        return np.full((len(levels), len(weights)), distinct[0])
    middle = (distinct[1:] + distinct[:-1]) / 2
    edges = np.concatenate([
        [max(2 * distinct[0] - middle[0], 0.0)], middle, [min(2 * distinct[-1] - middle[-1], 1.0)]
    ])  # fmt: skip
    sums = np.concatenate([np.zeros((len(weights), 1)), np.cumsum(masses, axis=1)], axis=1)
    found = np.empty((len(levels), len(weights)))
    for i, level in enumerate(levels):
        at = np.minimum((sums[:, 1:-1] < level).sum(axis=1), len(distinct) - 1)
        rows = np.arange(len(weights))
        before, mass = sums[rows, at], masses[rows, at]
        share = np.clip((level - before) / np.maximum(mass, 1e-300), 0, 1)
        found[i] = edges[at] + share * (edges[at + 1] - edges[at])
    return found
