"""What is wrong with the rows of a log, by line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from restive.arguments import counted
from restive.errors import LogError

__all__ = ["Mistakes"]

MOST_SHOWN = 20
MOST_KEPT = 100_000


class Mistakes:
    """Collects bad rows; they are refused together at the end, or left out if that was asked for.

    Parameters
    ----------
    file
        What messages call the log.
    row
        What they call a row: "line" or, in a Parquet file, "row".
    skip
        Whether bad rows are left out.
    """

    def __init__(self, file: str, row: str, skip: bool) -> None:
        self.file, self.row, self.skip = file, row, skip
        self.found: list[tuple[int, str]] = []
        self.reasons: Counter[str] = Counter()

    def add(self, lines: Iterable[int], reason: str, detail: Callable[[int], str] | None) -> None:
        """Note bad rows; `detail` tells, by place, what a {} in the reason stands for."""
        for at, line in enumerate(lines):
            self.reasons[reason] += 1
            if len(self.found) < MOST_KEPT:
                added = "" if detail is None else detail(at)
                self.found.append((int(line), reason.replace("{}", added)))

    @property
    def count(self) -> int:
        """How many bad rows there are."""
        return self.reasons.total()

    def refuse(self) -> None:
        """Raise if there are any, unless they are to be skipped."""
        if self.skip or not self.count:
            return
        found = sorted(self.found)
        lines = [f"  {self.row} {line}: {reason}" for line, reason in found[:MOST_SHOWN]]
        if self.count > MOST_SHOWN:
            lines.append(f"  and {self.count - MOST_SHOWN:,} more")
        them = "it" if self.count == 1 else "them"
        raise LogError(
            f"{self.file}: {counted(self.count, 'bad row')}; mend {them}, or leave {them} out with "
            "skip_bad (--skip-bad):\n" + "\n".join(lines),
            found,
        )

    def notes(self) -> list[str]:
        """Tell how many rows were left out, by reason."""
        return [
            f"{counted(count, 'row')} {'was' if count == 1 else 'were'} left out: "
            + reason.replace("{}", "...")
            for reason, count in sorted(self.reasons.items())
        ]
