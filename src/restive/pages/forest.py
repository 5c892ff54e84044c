"""Forest plots: a row per thing, with its name, its interval and its number in words.

Name and number stand beside the interval, in the margins: on no axis, and on its row. Long ones go
over two lines, so that the interval keeps its room on a phone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, log10
from textwrap import wrap
from typing import Any

import numpy as np

from restive.pages.axes import TICKS, Scale, set_axis, tick_text
from restive.pages.looks import LIGHT, look

__all__ = ["Row", "draw_forest", "forest_height", "forest_margins", "hides_a_row"]

ROW = 34.0  # points of height
ENDS = 46.0  # points of height of the axis below
CROWDED = 0.06  # share of a linear axis below which a row's distance from zero is hard to see
MARGIN = 0.04  # of an axis, beyond the outermost interval
LETTER = 6.9  # points of width
DIGIT = 8.0
OTHERS = {"+": 10.5, "−": 10.5, "±": 10.5, "%": 12.0, ",": 4.0, ".": 4.0, " ": 4.0}
LONGEST_NAME, LONGEST_NUMBER = 17, 13  # letters in a line
GAP = 8.0  # points between words and the axis


@dataclass(frozen=True)
class Row:
    """One thing with its interval; hollow where the interval decides nothing."""

    number: int  # of its look
    name: str
    time: int  # of what was measured
    value: float
    lower: float  # nan where the error is not known
    upper: float
    text: str  # the number as it is read
    place: str = ""  # before the name
    filled: bool = True


def forest_margins(rows: Sequence[Row]) -> tuple[float, float]:
    """Return the points that names and numbers take, left and right of the axis."""
    names = max(_widest(row.name, LONGEST_NAME) for row in rows)
    lines = [line for row in rows for line in _folded(row.text, LONGEST_NUMBER).splitlines()]
    numbers = max(map(_length, lines), default=0.0)
    return _indent(rows) + LETTER * names + GAP, numbers + GAP


def forest_height(rows: Sequence[Row]) -> float:
    """Return the height of the drawing, in points."""
    return ROW * len(rows) + ENDS


def hides_a_row(rows: Sequence[Row]) -> bool:
    """Whether a linear axis would press together what the intervals tell from zero."""
    ends = _ends(rows)
    width = ends.max() - min(ends.min(), 0.0)
    told = [abs(row.value) for row in rows if row.filled]
    return bool(told) and min(told) < CROWDED * width


def draw_forest(
    axes: Any,
    rows: Sequence[Row],
    scale: Scale,
    label: str,
    *,
    among: Sequence[Row] = (),
    about_zero: bool = False,
    references: Sequence[float] = (),
) -> None:
    """Draw rows from top to bottom, on an axis that suits all those `among` which they are shown.

    About zero, a logarithmic axis is linear as far as the narrowest interval is wide.
    """
    axes.set_xlabel(label)
    every = [*rows, *among]
    width, _ = axes.get_figure().get_size_inches() * 72
    wide = axes.get_position().width * width  # points
    _set_axis(axes, every, scale, about_zero, references)
    axes.yaxis.set_visible(False)
    axes.spines["left"].set_visible(False)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for value in references:
        axes.axvline(value, color=LIGHT["mute"], linewidth=1)
    if scale == "linear":
        longest = max(_length(tick_text(tick)) for tick in axes.get_xticks())
        axes.locator_params(axis="x", nbins=max(1, min(TICKS, int(wide / (longest + GAP)))))
        _set_ticks(axes, [value for value in references if value])
    left = -forest_margins(every)[0] / wide
    for at, row in enumerate(rows):
        _draw_row(axes, at, row)
        for x, side, text, colour in (
            (left, "left", row.place, "mute"),
            (left + _indent(every) / wide, "left", _folded(row.name, LONGEST_NAME), "ink"),
            (1 + GAP / wide, "left", _folded(row.text, LONGEST_NUMBER), "ink"),
        ):
            _write(axes, x, at, text, LIGHT[colour], side)


def _set_ticks(axes: Any, references: Sequence[float]) -> None:
    """Put a tick at each reference, and leave out others that would stand in its place."""
    if not references:
        return
    low, high = axes.get_xlim()
    near = 0.08 * (high - low)
    usual = [
        tick
        for tick in axes.xaxis.get_major_locator().tick_values(low, high)
        if low <= tick <= high and all(abs(tick - value) > near for value in references)
    ]
    axes.xaxis.set_ticks(sorted([*usual, *references]))
    axes.set_xlim(low, high)


def _folded(text: str, letters: int) -> str:
    """Return words in two lines of so many letters, unless they have lines of their own."""
    if "\n" in text:
        return text
    return "\n".join(wrap(text, letters, break_long_words=False, break_on_hyphens=True)[:2]) or text


def _widest(text: str, letters: int) -> int:
    return max(map(len, _folded(text, letters).splitlines()), default=0)


def _length(number: str) -> float:
    """Points that a number takes: digits and signs are wider than the letters of a name."""
    return sum(OTHERS.get(letter, DIGIT) for letter in number)


def _indent(rows: Sequence[Row]) -> float:
    """Points that places take before names."""
    longest = max(len(row.place) for row in rows)
    return LETTER * (longest + 1) if longest else 0.0


def _draw_row(axes: Any, at: int, row: Row) -> None:
    style = look(row.number)
    left = axes.get_xlim()[0]
    if np.isfinite(row.lower):
        ends = [max(row.lower, left), row.upper]
        axes.plot(ends, [at, at], color=style.colour, linewidth=2.2, solid_capstyle="butt")
    axes.plot(
        [row.value], [at], color=style.colour, marker=style.marker, markersize=7,
        markerfacecolor=style.colour if row.filled else LIGHT["paper"], markeredgewidth=1.4,
    )  # fmt: skip


def _write(axes: Any, x: float, y: float, text: str, colour: str, side: str) -> None:
    """Write a row's words beside the axis: x in shares of its width, y in rows."""
    if text:
        axes.text(
            x, y, text, transform=axes.get_yaxis_transform(), va="center", ha=side, color=colour,
            linespacing=1.2,
        )  # fmt: skip


def _set_axis(
    axes: Any, rows: Sequence[Row], scale: Scale, about_zero: bool, references: Sequence[float]
) -> None:
    """Set the axis and its limits: all intervals are inside, and zero, but for logarithms."""
    ends = _ends(rows)
    low, high = min(float(ends.min()), 0.0), max(float(ends.max()), 0.0, *references)
    if scale == "linear":
        set_axis(axes.xaxis, "linear")
        pad = MARGIN * max(high - low, 1e-9)
        axes.set_xlim(low - pad, high + pad)
    elif about_zero:
        edge = 10.0 ** floor(log10(_least_half_width(rows)))
        set_axis(axes.xaxis, "symlog", linthresh=edge, linscale=0.6)
        axes.set_xlim(1.3 * min(low, -edge / 2), 1.3 * max(high, edge))
    else:
        least = min(row.value for row in rows)
        set_axis(axes.xaxis, "log")
        axes.set_xlim(max(float(ends[ends > 0].min()), least / 10) / 1.3, high * 1.2)


def _ends(rows: Sequence[Row]) -> Any:
    ends = np.array([[row.lower, row.value, row.upper] for row in rows]).ravel()
    return ends[np.isfinite(ends)]


def _least_half_width(rows: Sequence[Row]) -> float:
    widths = [row.upper - row.value for row in rows if row.upper > row.value]
    return min(widths, default=1.0)
