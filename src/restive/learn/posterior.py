"""What is believed of one arm: weighted chains, whatever prior they come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.pages.frames import data_frame, html_table
from restive.problem.arm import Arm

__all__ = ["ArmPosterior", "Chains", "weighted_quantile"]

FloatArray = NDArray[np.float64]


class Chains(NamedTuple):
    """A number for each transition of an arm: when it is pulled, and when it is not."""

    active: FloatArray  # [S, S]
    passive: FloatArray  # [S, S]


@dataclass(frozen=True, eq=False)
class ArmPosterior:
    """The chains that an arm may have, and how likely each is.

    Under a finite prior these are its candidates, under a joint prior the arm's part in each
    system, in their order; under a continuous prior they are particles. Those of channels are
    tested against integration. Those of arms that move otherwise when pulled, or have three states
    or more, are not, and are `unchecked`: compare what you read off them with what more particles
    say (`particles=1024` of the prior).
    """

    active: FloatArray  # [M, S, S]
    passive: FloatArray  # [M, S, S]
    weights: FloatArray  # [M], sums to one
    log_evidence: float | None = None  # log probability of what was seen, where it is known
    states: tuple[str, ...] | None = None  # names of the states
    unchecked: bool = (
        False  # particles that tests do not compare with integration: try more of them
    )

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def effective(self) -> float:
        """The number of equally likely chains that would be as uncertain, 1 / sum of squares."""
        return float(1 / (self.weights**2).sum())

    def mean(self) -> Chains:
        """Mean of each transition probability."""
        return Chains(*(np.einsum("m,mij->ij", self.weights, chains) for chains in self._chains()))

    def quantile(self, q: float) -> Chains:
        """Quantile of each transition probability: the least value with weight q at or below it."""
        if not (isinstance(q, int | float | np.number) and 0 <= q <= 1):
            raise ProblemError(f"q must be a number from 0 to 1, got {q!r:.60}")
        return Chains(
            *(weighted_quantile(chains, self.weights, float(q)) for chains in self._chains())
        )

    def plot(self, truth: Arm | None = None, ax: Any = None) -> Any:
        """Draw what is believed, with the true arm where it is given; returns the axes.

        Chains of two states, the same pulled or not, as density of (p01, p11) with the chains and
        their mean; any others as means. 90% intervals are those of each transition probability.
        """
        from restive.pages.figures import plot_posterior

        if truth is not None and not (
            isinstance(truth, Arm) and truth.num_states == self.active.shape[1]
        ):
            raise ProblemError(
                f"truth must be an arm of {self.active.shape[1]} states, got {truth!r:.60}"
            )
        return plot_posterior(self, truth, ax)

    def to_pandas(self) -> Any:
        """Return a data frame, a row per transition: mean and 90% interval (needs pandas)."""
        return data_frame(self._columns())

    def _columns(self) -> dict[str, Any]:
        mean, low, high = self.mean(), self.quantile(0.05), self.quantile(0.95)
        size = self.active.shape[1]
        names = np.array(self.states or range(size))
        alike = np.array_equal(self.active, self.passive)
        fields = ("active",) if alike else ("active", "passive")
        columns: dict[str, Any] = {
            "when": np.repeat(["either"] if alike else ["pulled", "not pulled"], size * size),
            "from": np.tile(np.repeat(names, size), len(fields)),
            "to": np.tile(names, size * len(fields)),
        }
        for name, chains in (("mean", mean), ("low", low), ("high", high)):
            columns[name] = np.concatenate([getattr(chains, field).ravel() for field in fields])
        return columns

    def _repr_html_(self) -> str:
        columns = self._columns()
        rows = zip(*(column.tolist() for column in columns.values()), strict=True)
        return html_table(f"{self!r}; low and high are the ends of 90% intervals", [*columns], rows)

    def _chains(self) -> tuple[FloatArray, FloatArray]:
        return self.active, self.passive

    def __repr__(self) -> str:
        size = self.active.shape[1]
        return (
            f"ArmPosterior({len(self):,} chains of {size} states, "
            f"effective number {self.effective:.1f}{', unchecked' * self.unchecked})"
        )


def weighted_quantile(chains: FloatArray, weights: FloatArray, q: float) -> FloatArray:
    """Quantile of numbers [M, ...] with weights [M]: the least with weight q at or below it."""
    values = chains.reshape(len(weights), -1)
    order = np.argsort(values, axis=0, kind="stable")
    totals = np.cumsum(weights[order], axis=0)
    least = q * totals[-1] * (1 - 1e-12)  # so that rounding does not pass the value by
    places = np.argmax((totals >= least) & (weights[order] > 0), axis=0)
    rows = np.take_along_axis(order, places[None], axis=0)
    quantiles: FloatArray = np.take_along_axis(values, rows, axis=0).reshape(chains.shape[1:])
    return quantiles
