"""Pictures; matplotlib is loaded when the first one is made and comes with `restive[plot]`."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.files import replacing, require_target
from restive.policies.whittle import WhittleIndex, whittle_index
from restive.problem import RestlessBandit, kinds_of
from restive.style.axes import set_scale
from restive.style.lines import Line, draw_line
from restive.style.looks import LIGHT, look, matplotlib_figures, settings

__all__ = ["FIGURE_SUFFIXES", "matplotlib_figures", "plot_band", "plot_indices", "plot_posterior"]

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
MOST_PANELS = 12


def plot_indices(
    bandit: RestlessBandit,
    path: str | PathLike[str],
    max_elapsed: int | None = None,
    discount: float = 1.0,
) -> None:
    """Draw Whittle index against elapsed steps, a line per last state and a panel per kind of arm.

    The file's ending chooses the format (png, svg, pdf). Beyond 12 kinds the first 12 are drawn.
    """
    suffix = require_target(path, FIGURE_SUFFIXES)
    with settings():
        figure = _index_figure(bandit, max_elapsed, discount)
        with replacing(path) as temporary:
            figure.savefig(temporary, format=suffix.lstrip("."))


def _index_figure(bandit: RestlessBandit, max_elapsed: int | None, discount: float) -> Any:
    kinds = kinds_of(bandit)
    num_panels = min(len(kinds.arms), MOST_PANELS)
    columns = min(num_panels, 4)
    rows = -(-num_panels // columns)
    figure = matplotlib_figures().Figure(
        figsize=(1.2 + 3.6 * columns, 0.8 + 3.0 * rows), layout="constrained", dpi=150
    )
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for j, panel in enumerate(panels.flat):
        if j >= num_panels:
            panel.set_axis_off()
            continue
        _draw(panel, whittle_index(kinds.arms[j], discount, max_elapsed))
        panel.set_title(kinds.labels[j])
        if j + columns >= num_panels:
            panel.set_xlabel("steps since last seen")
        if j % columns == 0:
            panel.set_ylabel("Whittle index")
    title = f"Whittle index of {bandit.num_arms} arms ({len(kinds.arms)} kinds)"
    if len(kinds.arms) > num_panels:
        title += f", the first {num_panels} kinds shown"
    figure.suptitle(title)
    return figure


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
            figure = matplotlib_figures().Figure(figsize=(6, 4), layout="constrained", dpi=150)
            ax = figure.subplots()
            set_scale(ax, "linear")
        number = len(ax.get_legend_handles_labels()[0])
        draw_line(ax, Line(number, label, times, mean, lower, upper))
        ax.set_xlabel("time (steps)")
        ax.set_ylabel("regret (mean and 95% band)")
        ax.legend()
    return ax


def plot_posterior(posterior: Any, truth: Any = None, ax: Any = None) -> Any:
    """Draw an `ArmPosterior` into axes, new ones by default; returns the axes."""
    with settings():
        if ax is None:
            figure = matplotlib_figures().Figure(figsize=(6, 5), layout="constrained", dpi=150)
            ax = figure.subplots()
        alike = np.array_equal(posterior.active, posterior.passive)
        if posterior.active.shape[1] == 2 and alike:
            _draw_density(ax, posterior, truth)
        else:
            _draw_intervals(ax, posterior, truth, ["active"] if alike else ["active", "passive"])
    return ax


def _draw_density(ax: Any, posterior: Any, truth: Any) -> None:
    """Draw the density of (p01, p11): a normal bump at each chain, and the chains."""
    p01, p11, weights = posterior.active[:, 0, 1], posterior.active[:, 1, 1], posterior.weights
    middle = (np.arange(100) + 0.5) / 100
    bumps = []
    for values in (p01, p11):
        spread = np.sqrt((weights * (values - (weights * values).sum()) ** 2).sum())
        width = max(spread * posterior.effective ** (-1 / 6), 0.01)  # Silverman's, in the plane
        bumps.append(np.exp(-(((middle[:, None] - values) / width) ** 2) / 2))
    density = np.einsum("im,jm,m->ji", *bumps, weights)
    ax.imshow(density, origin="lower", extent=(0, 1, 0, 1), cmap="Blues", aspect="equal")
    areas = 60 * weights / weights.max()
    ax.scatter(p01, p11, s=areas, color=look(0).colour, alpha=0.5, linewidth=0, label="chains")
    if truth is not None:
        ax.plot(truth.active[0, 1], truth.active[1, 1], "x", color=look(1).colour, markersize=10,
                markeredgewidth=2, label="truth")  # fmt: skip
        ax.legend()
    ax.set_xlabel("p01: from bad to good")
    ax.set_ylabel("p11: stays good")


def _draw_intervals(ax: Any, posterior: Any, truth: Any, fields: list[str]) -> None:
    mean, low, high = posterior.mean(), posterior.quantile(0.05), posterior.quantile(0.95)
    size = posterior.active.shape[1]
    names = [f"{i} to {j}" for i in range(size) for j in range(size)]
    for k, field in enumerate(fields):
        centre, bottom, top = (getattr(each, field).ravel() for each in (mean, low, high))
        places = np.arange(size * size) + 0.3 * k
        error = [np.maximum(centre - bottom, 0), np.maximum(top - centre, 0)]
        style = look(k)
        label = f"{field}: mean and 90%"
        ax.errorbar(places, centre, yerr=error, fmt=style.marker, color=style.colour, label=label)
        if truth is not None:
            once = "truth" if k == 0 else None
            ax.plot(places, getattr(truth, field).ravel(), "x", color="black", label=once)
    ax.set_xticks(np.arange(size * size), names, rotation=90)
    ax.set_ylabel("transition probability")
    ax.set_ylim(-0.02, 1.02)
    ax.legend()


def _draw(panel: Any, found: WhittleIndex) -> None:
    index = _visible(found.index)
    length = index.shape[1]
    upper = found.upper[:, np.minimum(np.arange(length), found.upper.shape[1] - 1)]
    ages = np.arange(1, length + 1)
    for s, line in enumerate(index):
        style = look(s)
        panel.plot(
            ages, line, color=style.colour, linestyle=style.dash, marker=style.marker,
            markevery=max(1, length // 12), label=f"last seen in state {s}",
        )  # fmt: skip
        if not found.indexable:
            label = "not indexable: both ends" if s == 0 else None
            panel.fill_between(
                ages, line, upper[s], color=style.colour, alpha=0.2, lw=0, label=label
            )
    panel.axhline(found.limit, color=LIGHT["mute"], linewidth=1, linestyle=":", label="limit")
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.legend(fontsize=9.5)


def _visible(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ages worth drawing: some past the last that differs from the limit by 1%."""
    spread = np.abs(table - table[:, -1:]).max(axis=0)
    far = np.flatnonzero(spread > 0.01 * spread.max())
    length = max(8, (int(far[-1]) if far.size else 0) + 4)
    return table[:, np.minimum(np.arange(length), table.shape[1] - 1)]
