"""Index against the steps since an arm was seen, a line per last state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.figures.canvas import new_axes, new_figure
from restive.problem import Arm
from restive.style.looks import LIGHT, look, settings

__all__ = ["Panel", "plot_index", "plot_panels"]

FloatArray = NDArray[np.float64]

MOST_PANELS = 12


@dataclass(frozen=True, eq=False)
class Panel:
    """The index of one kind of arm; `upper` is there where it is not one number."""

    title: str
    arm: Arm
    index: FloatArray  # [S, L]
    upper: FloatArray | None = None  # [S, L]


def plot_index(panel: Panel, name: str, ax: Any = None) -> Any:
    """Draw one index into axes, new ones by default; returns the axes."""
    with settings():
        ax = new_axes(6, 4) if ax is None else ax
        _draw(ax, panel)
        _label(ax, name, bottom=True, left=True)
    return ax


def plot_panels(panels: Sequence[Panel], name: str, title: str) -> Any:
    """Draw the first 12 indices side by side on one scale; returns the figure."""
    shown = panels[:MOST_PANELS]
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    with settings():
        figure = new_figure(1.2 + 3.6 * columns, 0.8 + 3.0 * rows)
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for j, ax in enumerate(axes.flat):
            if j >= len(shown):
                ax.set_axis_off()
                continue
            _draw(ax, shown[j])
            ax.set_title(shown[j].title)
            _label(ax, name, bottom=j + columns >= len(shown), left=j % columns == 0)
        if len(panels) > len(shown):
            title += f", the first {len(shown)} kinds shown"
        figure.suptitle(title)
    return figure


def _label(ax: Any, name: str, *, bottom: bool, left: bool) -> None:
    if bottom:
        ax.set_xlabel("steps since last seen")
    if left:
        ax.set_ylabel(name)


def _draw(ax: Any, panel: Panel) -> None:
    index = _visible(panel.index)
    length = index.shape[1]
    ages = np.arange(1, length + 1)
    for s, line in enumerate(index):
        style = look(s)
        last = f"state {s}" if panel.arm.states is None else panel.arm.states[s]
        ax.plot(
            ages, line, color=style.colour, linestyle=style.dash, marker=style.marker,
            markevery=max(1, length // 12), label=f"last seen: {last}",
        )  # fmt: skip
        if panel.upper is not None:
            upper = panel.upper[s, np.minimum(ages, panel.upper.shape[1]) - 1]
            label = "not indexable: both ends" if s == 0 else None
            ax.fill_between(ages, line, upper, color=style.colour, alpha=0.2, lw=0, label=label)
    limit = panel.index[0, -1]
    ax.axhline(limit, color=LIGHT["mute"], linewidth=1, linestyle=":", label="limit")
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.legend(fontsize=9.5)


def _visible(table: FloatArray) -> FloatArray:
    """Return the ages worth drawing: some past the last that differs from the limit by 1%."""
    spread = np.abs(table - table[:, -1:]).max(axis=0)
    far = np.flatnonzero(spread > 0.01 * spread.max())
    length = max(8, (int(far[-1]) if far.size else 0) + 4)
    return table[:, np.minimum(np.arange(length), table.shape[1] - 1)]
