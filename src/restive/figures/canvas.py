"""New figures: in a notebook, or beside pyplot, they show themselves."""

from __future__ import annotations

import sys
from typing import Any

from restive.style.looks import matplotlib_figures

__all__ = ["new_axes", "new_figure"]

SHOWING = ("matplotlib.pyplot", "ipykernel")  # modules that are there where figures are looked at


def new_figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches."""
    figures = matplotlib_figures()
    size: Any = {"figsize": (width, height), "layout": "constrained", "dpi": 150}
    if any(name in sys.modules for name in SHOWING):
        import matplotlib.pyplot

        return matplotlib.pyplot.figure(**size)
    return figures.Figure(**size)


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure."""
    return new_figure(width, height).subplots()
