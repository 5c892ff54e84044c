"""Axes that charts share: scales, ticks as plain text, where a value stands; lines with bands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from restive.pages.looks import LIGHT, look

__all__ = [
    "TICKS",
    "Dotted",
    "Line",
    "Scale",
    "draw_line",
    "draw_lines",
    "place_of_axes",
    "set_axis",
    "set_scale",
    "tick_text",
]

FloatArray = NDArray[np.float64]
Scale = Literal["linear", "log", "log time"]

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TICKS = 5
LEAST_TICKS = 2  # of a logarithmic axis
MOST_PLAIN, LEAST_PLAIN = 1e6, 1e-3  # beyond, powers of ten
BAND = 0.2  # opacity
DECADES = 4  # that a logarithmic axis shows below its highest line


def set_scale(axes: Any, scale: Scale) -> None:
    """Set both axes linear or logarithmic, or time alone logarithmic; ticks are plain text."""
    for axis, logarithmic in ((axes.xaxis, scale != "linear"), (axes.yaxis, scale == "log")):
        set_axis(axis, "log" if logarithmic else "linear")


def set_axis(axis: Any, kind: str, **options: float) -> None:
    """Set the scale of one axis."""
    from matplotlib import ticker

    getattr(axis.axes, f"set_{axis.axis_name}scale")(kind, **options)
    if kind == "log":
        axis.set_major_locator(_log_ticks())
    if kind == "linear":
        axis.set_major_locator(ticker.MaxNLocator(TICKS, steps=[1, 2, 2.5, 5, 10]))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_text(value)))


def _log_ticks() -> Any:
    """Return what finds the ticks of a logarithmic axis: decades, or finer where there is one."""
    from matplotlib import ticker

    class LogTicks(ticker.LogLocator):
        def tick_values(self, low: float, high: float) -> Any:
            ticks: Any = []
            for parts in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0)):
                ticks = ticker.LogLocator(subs=parts).tick_values(low, high)
                if ((ticks >= low) & (ticks <= high)).sum() >= LEAST_TICKS:
                    return ticks
            return ticker.MaxNLocator(3).tick_values(low, high)

    return LogTicks()


def tick_text(value: float) -> str:
    """Return a tick's label without markup: 0.05, 10,000, 2·10⁻⁴."""
    size = abs(value)
    sign = "−" if value < 0 else ""
    if size and not LEAST_PLAIN <= size < MOST_PLAIN:
        exponent = floor(log10(size) + 1e-9)
        mantissa = f"{size / 10.0**exponent:.3g}"
        factor = "" if mantissa == "1" else f"{mantissa}·"
        return f"{sign}{factor}10{str(exponent).translate(SUPERSCRIPTS)}"
    return f"{sign}{size:,.6g}"


def place_of_axes(axes: Any) -> dict[str, list[float | int]]:
    """Return for x and y: the drawing's ends, the values there, and whether it is logarithmic.

    Drawings are measured in points from the upper left corner, as in their SVG.
    """
    width, height = axes.get_figure().get_size_inches() * 72
    box = axes.get_position()
    return {
        "x": [
            round(box.x0 * width, 2), round(box.x1 * width, 2),
            *axes.get_xlim(), int(axes.get_xscale() == "log"),
        ],
        "y": [
            round((1 - box.y0) * height, 2), round((1 - box.y1) * height, 2),
            *axes.get_ylim(), int(axes.get_yscale() == "log"),
        ],
    }  # fmt: skip


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
    name: str = ""  # in a legend of its own figure


def draw_lines(
    axes: Any,
    lines: Sequence[Line],
    scale: Scale,
    *,
    among: Sequence[Line] = (),
    dotted: Sequence[Dotted] = (),
) -> None:
    """Draw lines into axes; those `among` which they are shown share the floor of the axis.

    On a logarithmic axis what is not positive is left out.
    """
    set_scale(axes, scale)
    axes.set_xlabel("time (steps)" if scale == "linear" else "time (steps, logarithmic)")
    logarithmic = scale == "log"
    for line in lines:
        draw_line(axes, line, logarithmic=logarithmic)
    for other in dotted:
        _draw_dotted(axes, other)
    if scale == "linear":
        axes.set_xlim(left=0)
    positive = np.concatenate([line.mean[line.mean > 0] for line in [*lines, *among]])
    if logarithmic and positive.size:  # bands would reach down for ever
        axes.set_ylim(bottom=max(positive.min() / 3, positive.max() * 10.0**-DECADES))


def draw_line(axes: Any, line: Line, *, logarithmic: bool = False) -> None:
    """Draw a line with its band; on a logarithmic axis only what is positive."""
    shown = line.mean > (0 if logarithmic else -np.inf)
    if not shown.any():
        return
    style = look(line.number)
    axes.plot(
        line.times[shown], line.mean[shown], color=style.colour, linestyle=style.dash,
        marker=style.marker, markevery=(0.05, 0.16), label=line.name, gid=f"class:{line.key}",
    )  # fmt: skip
    lower = np.maximum(line.lower, line.mean / 1000) if logarithmic else line.lower
    axes.fill_between(
        line.times[shown], lower[shown], line.upper[shown],
        color=style.colour, alpha=BAND, lw=0, gid=f"class:{line.key}",
    )  # fmt: skip


def _draw_dotted(axes: Any, other: Dotted) -> None:
    """Draw a line to compare with."""
    own = other.number is not None
    axes.plot(
        other.times, other.values, linestyle=":", linewidth=1.2,
        color=look(other.number or 0).colour if own else LIGHT["mute"],
        gid=f"class:s{other.number}" if own else None, label=other.name or None,
    )  # fmt: skip
