"""Charts of a fitted log: its arms by kind, and what was predicted against what was seen."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.logs.fit import FittedLog
from restive.logs.held_out import HeldOut
from restive.style.axes import Scale
from restive.style.chart import Chart, Panel, short
from restive.style.looks import LIGHT, look

__all__ = ["arms_chart", "predicted_chart"]

HEIGHT = 350.0  # points: axes from 0 to 1 are square
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_CROSSES = 300  # arms drawn with their intervals
MOST_KINDS = 12


def arms_chart(fitted: FittedLog) -> Chart:
    """p01 and p11 of all arms with their intervals: a panel per kind."""
    own = [np.flatnonzero(fitted.log.kind_of == kind) for kind in range(len(fitted.log.kinds))]
    largest = sorted(range(len(own)), key=lambda kind: -len(own[kind]))[:MOST_KINDS]
    every = max(-(-sum(len(own[kind]) for kind in largest) // MOST_CROSSES), 1)
    note = (
        "Chance of a good state after a bad one (p01) and after a good one (p11): posterior means "
        "with 90% intervals."
    )
    if len(largest) < len(own):
        note += f" The {MOST_KINDS} kinds with the most arms, of {len(own):,}."
    if every > 1:
        note += f" One arm in {every:,} is drawn."
    panels = [
        _arms_panel(fitted, kind, own[kind], own[kind][::every], titled=len(own) > 1)
        for kind in sorted(largest)
    ]
    return Chart(
        "p01-p11", "How arms move", note, panels, ("arm", "p11"), along="p01",
        dotted="no memory: p01 = p11",
    )  # fmt: skip


def _arms_panel(
    fitted: FittedLog, kind: int, every: NDArray[np.int64], drawn: NDArray[np.int64], titled: bool
) -> Panel:
    arms = fitted.arms
    counted = f"{len(every):,} arm{'s' if len(every) > 1 else ''}"
    title = f"{fitted.log.kinds[kind]}, {counted}" if titled else counted
    data = [
        {
            "name": arms.names[k],
            **{key: short([part[k, s, 1]]) for key, part, s in (
                ("x", arms.active, 0), ("mean", arms.active, 1), ("lower", arms.low, 1),
                ("upper", arms.high, 1),
            )},
        }
        for k in drawn.tolist()
    ]  # fmt: skip
    return Panel(title, partial(_draw_arms, fitted, kind, drawn), data, HEIGHT)


def _draw_arms(
    fitted: FittedLog, kind: int, drawn: NDArray[np.int64], axes: Any, scale: Scale
) -> None:
    arms = fitted.arms
    x, y = (arms.active[drawn, s, 1] for s in (0, 1))
    errors = [
        [np.maximum(at - arms.low[drawn, s, 1], 0), np.maximum(arms.high[drawn, s, 1] - at, 0)]
        for s, at in enumerate((x, y))
    ]
    _unit_axes(axes, "p01", "p11")
    axes.errorbar(
        x, y, xerr=errors[0], yerr=errors[1], fmt=look(kind).marker, color=look(kind).colour,
        markersize=4, elinewidth=0.6,
    )  # fmt: skip


def predicted_chart(found: HeldOut) -> Chart:
    """Chances that the chains gave to the best state, and how often it came."""
    there = found.in_bin > 0
    x, y, count = found.predicted[there], found.seen[there], found.in_bin[there]
    half = 1.96 * np.sqrt(np.maximum(y * (1 - y), 0.25 / count) / count)
    low, high = np.maximum(y - half, 0), np.minimum(y + half, 1)

    def draw(axes: Any, scale: Scale) -> None:
        _unit_axes(axes, "predicted", "seen")
        axes.errorbar(
            x, y, [y - low, high - y], fmt=look(0).marker, color=look(0).colour, elinewidth=1.4
        )

    data = [
        {"name": "the chains", "x": short(x), "mean": short(y), "lower": short(low),
         "upper": short(high)}
    ]  # fmt: skip
    note = (
        "Sightings that were held out, in groups of like chances of the best state; 95% intervals "
        "of how often it came."
    )
    panel = Panel(f"{int(count.sum()):,} sightings", draw, data, HEIGHT)
    return Chart(
        "predicted", "Predicted against seen", note, [panel], ("predicted by", "seen"),
        along="predicted", dotted="seen as predicted",
    )  # fmt: skip


def _unit_axes(axes: Any, x: str, y: str) -> None:
    """Set up axes from 0 to 1, with their diagonal."""
    axes.plot([0, 1], [0, 1], color=LIGHT["mute"], linestyle=":", linewidth=1.2)
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(TICKS, [f"{tick:g}" for tick in TICKS])
