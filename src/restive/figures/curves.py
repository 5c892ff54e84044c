"""Regret against time."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.figures.canvas import new_axes
from restive.style.axes import set_scale
from restive.style.lines import Line, draw_line
from restive.style.looks import settings

__all__ = ["plot_band"]


def plot_band(
    times: NDArray[np.int64],
    mean: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    label: str,
    ax: Any = None,
) -> Any:
    """Draw regret against time with its band into axes, new ones by default; returns the axes.

    Curves drawn into the same axes have different looks.
    """
    with settings():
        if ax is None:
            ax = new_axes(6, 4)
            set_scale(ax, "linear")
        number = len(ax.get_legend_handles_labels()[0])
        draw_line(ax, Line(number, label, times, mean, lower, upper))
        ax.set_xlabel("time (steps)")
        ax.set_ylabel("regret (mean and 95% band)")
        ax.legend()
    return ax
