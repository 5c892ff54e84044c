"""Pictures of arrays; matplotlib is loaded when the first one is made, with `restive[plot]`."""

from __future__ import annotations

from restive.figures.curves import plot_band
from restive.figures.index import Panel, plot_index, plot_panels
from restive.figures.posterior import plot_posterior
from restive.figures.trajectory import Track, plot_tracks
from restive.style.looks import matplotlib_figures

__all__ = [
    "FIGURE_SUFFIXES",
    "Panel",
    "Track",
    "matplotlib_figures",
    "plot_band",
    "plot_index",
    "plot_panels",
    "plot_posterior",
    "plot_tracks",
]

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
