"""Charts of a page: small multiples with a legend, a switch of scales and their numbers.

Without scripts a chart is whole: the switch is CSS alone. With them a legend's buttons hide lines,
pointer and arrow keys read values, and each panel can be saved as SVG and CSV.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any

from restive.pages.axes import Line, Scale, place_of_axes
from restive.pages.drawing import page_svg
from restive.pages.looks import LIGHT, look, matplotlib_figures, settings
from restive.pages.page import anchor, render

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["Chart", "Data", "Panel", "line_data", "render_chart", "short"]

WIDTH = 360.0  # points, which are pixels on a phone
HEIGHT = 262.0
LEFT, RIGHT, TOP, BOTTOM = 54.0, 28.0, 26.0, 46.0  # points around the axes
KEY = (34.0, 12.0)  # points of a line in a legend
DIGITS = 6  # of numbers in a page

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
    right: float = RIGHT


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


def render_chart(chart: Chart, *, headed: bool = True) -> Markup:
    """Return a chart as a section of a page, with a heading unless it stands under another."""
    keys = [_key(line.number, f"{chart.name}-{line.key}") for line in chart.legend]
    if chart.dotted:
        keys.append(_key(None, f"{chart.name}-dotted"))
    by_scale = [_drawn(chart, scale) for scale in chart.scales]
    return render(
        "pages/templates/chart.html",
        chart=chart,
        headed=headed,
        keys=keys,
        drawings=list(zip(*by_scale, strict=True)),  # of each panel
    )


def _drawn(chart: Chart, scale: Scale) -> list[Markup]:
    """Draw all panels on a scale, on axes that they share."""
    with settings():
        panels = [_axes(panel) for panel in chart.panels]
        for panel, axes in zip(chart.panels, panels, strict=True):
            panel.draw(axes, scale)
            # level and above the axis: readable, and no width lost
            axes.set_title(axes.get_ylabel(), loc="left")
            axes.set_ylabel("")
        for side in chart.shared:
            limits = [getattr(axes, f"get_{side}lim")() for axes in panels]
            low, high = min(low for low, _ in limits), max(high for _, high in limits)
            for axes in panels:
                getattr(axes, f"set_{side}lim")(low, high)
        return [
            _panel_svg(axes, f"{chart.name}-{at}-{anchor(scale)}", scale)
            for at, axes in enumerate(panels)
        ]


def _axes(panel: Panel) -> Any:
    figure = matplotlib_figures().Figure(figsize=(WIDTH / 72, panel.height / 72))
    figure.patch.set_visible(False)
    axes = figure.add_axes(
        (
            panel.left / WIDTH,
            BOTTOM / panel.height,
            1 - (panel.left + panel.right) / WIDTH,
            1 - (panel.top + BOTTOM) / panel.height,
        )
    )
    axes.patch.set_visible(False)
    return axes


def _panel_svg(axes: Any, name: str, scale: Scale) -> Markup:
    place = json.dumps(place_of_axes(axes), separators=(",", ":"))
    given = {"class": f"drawing {anchor(scale)}", "data-axes": place}
    return page_svg(axes.get_figure(), name, given)


def _key(number: int | None, name: str) -> Markup:
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
        return page_svg(figure, name, {"class": "key", "aria-hidden": "true"})
