"""Axes that charts share: scales, ticks as plain text, and where a value stands in the drawing."""

from __future__ import annotations

from math import floor, log10
from typing import Any, Literal

__all__ = ["Scale", "place_of_axes", "set_axis", "set_scale", "tick_text"]

Scale = Literal["linear", "log", "log time"]

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
TICKS = 5
MOST_PLAIN, LEAST_PLAIN = 1e6, 1e-3  # beyond, powers of ten


def set_scale(axes: Any, scale: Scale) -> None:
    """Set both axes linear or logarithmic, or time alone logarithmic; ticks are plain text."""
    for axis, logarithmic in ((axes.xaxis, scale != "linear"), (axes.yaxis, scale == "log")):
        set_axis(axis, "log" if logarithmic else "linear")


def set_axis(axis: Any, kind: str, **options: float) -> None:
    """Set the scale of one axis."""
    from matplotlib import ticker

    getattr(axis.axes, f"set_{axis.axis_name}scale")(kind, **options)
    if kind == "linear":
        axis.set_major_locator(ticker.MaxNLocator(TICKS, steps=[1, 2, 2.5, 5, 10]))
    axis.set_minor_locator(ticker.NullLocator())
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: tick_text(value)))


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
