"""Timing by the best of several runs, and results that say what was hoped for.

Machines are shared and noisy, so only ratios within one run mean anything, and the best of several
runs is the steadiest figure.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

__all__ = ["Result", "best_time", "report", "seconds_to_stream"]


@dataclass(frozen=True)
class Result:
    """One ratio and its goal; `at_least` tells on which side of the goal it should be."""

    name: str
    ratio: float
    goal: float
    at_least: bool
    detail: str = ""

    @property
    def reached(self) -> bool:
        """Whether the goal was reached in this run."""
        return self.ratio >= self.goal if self.at_least else self.ratio <= self.goal


def best_time(
    function: Callable[[], object], repeats: int = 5, clock: Callable[[], float] = perf_counter
) -> float:
    """Seconds of the fastest of several calls."""
    best = float("inf")
    for _ in range(repeats):
        begin = clock()
        function()
        best = min(best, clock() - begin)
    return best


def seconds_to_stream(num_bytes: int) -> float:
    """Seconds to copy so many bytes: what reading and writing memory costs here and now.

    A yardstick for work that must look at all arms. It does not depend on how numpy was built, as
    its sorting and selecting do, by a factor of eight.
    """
    source = bytes(num_bytes)
    return best_time(lambda: bytearray(source), 20)


def report(results: list[Result]) -> str:
    """Lines of a table."""
    lines = []
    for result in results:
        sign = ">=" if result.at_least else "<="
        verdict = "reached" if result.reached else "MISSED"
        lines.append(
            f"{result.name:<66} {result.ratio:>9.4g}   goal {sign} {result.goal:<6g} {verdict}"
        )
        if result.detail:
            lines.append(f"    {result.detail}")
    return "\n".join(lines)
