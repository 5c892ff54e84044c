"""Charts of a page: small multiples with a legend, a switch of scales and their numbers.

Without scripts a chart is whole: the switch is CSS alone. With them a legend's buttons hide lines,
pointer and arrow keys read values, and each panel can be saved as SVG and CSV.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from math import isnan
from typing import Any

from restive.pages.axes import Line, Scale, place_of_axes
from restive.pages.drawing import page_svg
from restive.pages.looks import LIGHT, look, matplotlib_figures, settings
from restive.pages.page import anchor, attributes

__all__ = ["Chart", "Data", "Panel", "chart", "line_data", "short"]

WIDTH = 360.0  # points, which are pixels on a phone
HEIGHT = 262.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 28.0, 26.0, 46.0  # points around the axes
KEY = (34.0, 12.0)  # points of a line in a legend
DIGITS = 6  # of numbers in a page
READING = "Point at a panel, or select it and press the arrow keys, to read values."

Data = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Panel:
    """One chart: how it is drawn on a scale, and the numbers in it."""

    title: str
    draw: Callable[[Any, Scale], None]
    data: Data
    height: float = HEIGHT
    left: float = LEFT
    top: float = TOP


@dataclass(frozen=True, eq=False)
class Chart:
    """Panels of one quantity."""

    name: str  # of its files and ids, unique on the page
    title: str
    note: str
    panels: Sequence[Panel]
    columns: tuple[str, str] = ("line", "mean")  # of the saved numbers: who, and what
    scales: Sequence[Scale] = ("linear",)
    shown: Scale = "linear"
    shared: str = "xy"  # axes that all panels have in common
    dotted: str = ""  # what dotted lines are
    dotted_on: Scale | None = None  # the scale that alone has them
    legend: Sequence[Line] = ()
    along: str = "time"  # what the x axis has, in the saved numbers


def line_data(lines: Sequence[Line]) -> Data:
    """Return the numbers of lines."""
    return [
        {
            "key": line.key, "name": line.name, "colour": f"var(--{look(line.number).variable})",
            "x": [int(t) for t in line.times],
            **{name: short(getattr(line, name)) for name in ("mean", "lower", "upper")},
        }
        for line in lines
    ]  # fmt: skip


def short(values: Any) -> list[float | None]:
    """Return numbers with few digits; one that is not known is null."""
    return [None if isnan(v) else float(f"{v:.{DIGITS}g}") for v in map(float, values)]


def chart(made: Chart, *, headed: bool = True) -> str:
    """Return a chart as a section of a page, with a heading unless it stands under another."""
    drawings = {scale: _drawn(made, scale) for scale in made.scales}
    figures = [
        _figure(made, at, panel, {scale: drawings[scale][at] for scale in made.scales})
        for at, panel in enumerate(made.panels)
    ]
    heading = f"<h2>{escape(made.title)}</h2>" if headed else ""
    reading = f' <span class="reading">{READING}</span>' if made.legend else ""
    return "\n".join(
        [
            f'<section class="charts" id="{made.name}"><header>'
            f'<div class="head">{heading}{_switch(made)}</div>'
            f'<p class="note">{escape(made.note)}{reading}</p>{_legend(made)}</header>',
            f'<div class="grid">{"".join(figures)}</div>',
            '<p class="quiet" aria-live="polite"></p></section>',
        ]
    )


def _drawn(made: Chart, scale: Scale) -> list[str]:
    """Draw all panels on a scale, on axes that they share."""
    with settings():
        panels = [_axes(panel) for panel in made.panels]
        for panel, axes in zip(made.panels, panels, strict=True):
            panel.draw(axes, scale)
            # level and above the axis: readable, and no width lost
            axes.set_title(axes.get_ylabel(), loc="left")
            axes.set_ylabel("")
        for side in made.shared:
            limits = [getattr(axes, f"get_{side}lim")() for axes in panels]
            low, high = min(low for low, _ in limits), max(high for _, high in limits)
            for axes in panels:
                getattr(axes, f"set_{side}lim")(low, high)
        return [
            _text(axes, f"{made.name}-{at}-{anchor(scale)}", scale)
            for at, axes in enumerate(panels)
        ]


def _axes(panel: Panel) -> Any:
    figure = matplotlib_figures().Figure(figsize=(WIDTH / 72, panel.height / 72))
    figure.patch.set_visible(False)
    axes = figure.add_axes(
        (
            panel.left / WIDTH,
            BOTTOM / panel.height,
            1 - (panel.left + RIGHT) / WIDTH,
            1 - (panel.top + BOTTOM) / panel.height,
        )
    )
    axes.patch.set_visible(False)
    return axes


def _text(axes: Any, name: str, scale: Scale) -> str:
    drawing = page_svg(axes.get_figure(), name)
    drawing.set("class", f"drawing {anchor(scale)}")
    drawing.set("data-axes", json.dumps(place_of_axes(axes), separators=(",", ":")))
    return ET.tostring(drawing, encoding="unicode").replace(" />", "/>")


def _figure(made: Chart, at: int, panel: Panel, drawings: Mapping[Scale, str]) -> str:
    save = "".join(
        f'<button type="button" data-save="{kind}" '
        f'aria-label="save {escape(panel.title)} as {kind.upper()}">{kind.upper()}</button>'
        for kind in ("svg", "csv")
    )
    who, what = made.columns
    numbers = json.dumps(
        {"columns": [who, made.along, what, "lower", "upper"], "series": panel.data},
        separators=(",", ":"),
        ensure_ascii=False,
    ).replace("<", "\\u003c")
    label = f"{made.title}: {panel.title}" if panel.title else made.title
    return (
        f'<figure id="{made.name}-{at}" aria-label="{escape(label)}">'
        f"<figcaption>{escape(panel.title)}<span>{save}</span></figcaption>"
        f"{''.join(drawings.values())}"
        f'<script type="application/json">{numbers}</script></figure>\n'
    )


def _switch(made: Chart) -> str:
    if len(made.scales) == 1:
        return ""
    choices = "".join(
        f"<label><input{attributes(type='radio', name=f'{made.name}-scale', value=scale)}"
        f"{' checked' if scale == made.shown else ''}>{scale}</label>"
        for scale in made.scales
    )
    return f'<fieldset class="scale"><legend class="quiet">scale</legend>{choices}</fieldset>'


def _legend(made: Chart) -> str:
    items = [
        f'<button type="button" aria-pressed="true" data-series="{line.key}">'
        f"{_key(line.number, f'{made.name}-{line.key}')}{escape(line.name)}</button>"
        for line in made.legend
    ]
    if made.dotted:
        kind = f' class="{made.dotted_on}"' if made.dotted_on else ""
        key = _key(None, f"{made.name}-dotted")
        items.append(f"<span{kind}>{key}{escape(made.dotted)}</span>")
    return f'<div class="legend">{"".join(items)}</div>' if items else ""


def _key(number: int | None, name: str) -> str:
    """Return a line as a legend shows it."""
    with settings():
        figure = matplotlib_figures().Figure(figsize=(KEY[0] / 72, KEY[1] / 72))
        figure.patch.set_visible(False)
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 2), ylim=(-1, 1))
        axes.set_axis_off()
        if number is None:
            axes.plot([0, 2], [0, 0], ":", color=LIGHT["mute"], linewidth=1.2)
        else:
            style = look(number)
            axes.plot(
                [0, 1, 2], [0, 0, 0], color=style.colour, linestyle=style.dash,
                marker=style.marker, markevery=[1],
            )  # fmt: skip
        drawing = page_svg(figure, name)
    drawing.set("class", "key")
    drawing.set("aria-hidden", "true")
    return ET.tostring(drawing, encoding="unicode").replace(" />", "/>")
