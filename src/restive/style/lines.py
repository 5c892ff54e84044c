"""Lines against time, each with its band."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.style.axes import Scale, set_scale
from restive.style.looks import LIGHT, look

__all__ = ["Dotted", "Line", "draw_dotted", "draw_line", "draw_lines"]

FloatArray = NDArray[np.float64]

BAND = 0.2  # opacity
DECADES = 4  # that a logarithmic axis shows below its highest line


@dataclass(frozen=True, eq=False)
class Line:
    """What was measured of one thing: the number of its look, its name, and a band."""

    number: int
    name: str
    times: NDArray[np.int64]  # [M]
    mean: FloatArray  # [M]
    lower: FloatArray  # [M]
    upper: FloatArray  # [M]

    @property
    def key(self) -> str:
        """Class of whatever is drawn of it, on the whole page."""
        return f"s{self.number}"


@dataclass(frozen=True, eq=False)
class Dotted:
    """A line to compare with, of one measured thing or, without a number, of all."""

    times: Any
    values: Any
    number: int | None = None


def draw_lines(
    axes: Any,
    lines: Sequence[Line],
    scale: Scale,
    *,
    among: Sequence[Line] = (),
    dotted: Sequence[Dotted] = (),
) -> None:
    """Draw lines into axes, with a floor that suits all those `among` which they are shown.

    On a logarithmic axis what is not positive is left out.
    """
    set_scale(axes, scale)
    axes.set_xlabel("time (steps)" if scale == "linear" else "time (steps, logarithmic)")
    floor = _floor([*lines, *among]) if scale == "log" else None
    for line in lines:
        draw_line(axes, line, floor)
    for other in dotted:
        draw_dotted(axes, other)
    if scale == "linear":
        axes.set_xlim(left=0)
    if floor is not None:
        axes.set_ylim(bottom=floor)  # bands would reach down for ever


def draw_line(axes: Any, line: Line, floor: float | None = None) -> None:
    """Draw a line with its band; with a floor only what is positive, and no band below it."""
    shown = line.mean > (-np.inf if floor is None else 0)
    if not shown.any():
        return
    style = look(line.number)
    axes.plot(
        line.times[shown], line.mean[shown], color=style.colour, linestyle=style.dash,
        marker=style.marker, markevery=(0.05, 0.16), label=line.name, gid=f"class:{line.key}",
    )  # fmt: skip
    lower, upper = line.lower, line.upper
    if floor is not None:
        lower, upper = np.maximum(lower, floor), np.maximum(upper, floor)
    axes.fill_between(
        line.times[shown], lower[shown], upper[shown],
        color=style.colour, alpha=BAND, lw=0, gid=f"class:{line.key}",
    )  # fmt: skip


def draw_dotted(axes: Any, other: Dotted) -> None:
    """Draw a line to compare with."""
    own = other.number is not None
    axes.plot(
        other.times, other.values, linestyle=":", linewidth=1.2,
        color=look(other.number or 0).colour if own else LIGHT["mute"],
        gid=f"class:s{other.number}" if own else None,
    )  # fmt: skip


def _floor(lines: Sequence[Line]) -> float | None:
    """Return the lowest that a logarithmic axis shows; None where nothing is positive."""
    positive = np.concatenate([line.mean[line.mean > 0] for line in lines])
    if not positive.size:
        return None
    return max(float(positive.min()) / 2, float(positive.max()) / 10**DECADES)
