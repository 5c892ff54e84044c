"""Pictures; matplotlib is loaded when the first one is made and comes with `restive[plot]`."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import RestiveError
from restive.files import replacing, require_target
from restive.policies.whittle import WhittleIndex, whittle_index
from restive.problem import RestlessBandit, kinds_of

__all__ = ["FIGURE_SUFFIXES", "matplotlib_figures", "plot_band", "plot_indices", "plot_posterior"]

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
MOST_PANELS = 12
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito
MARKERS = ("o", "s", "^", "D", "v", "P")


def plot_indices(
    bandit: RestlessBandit, path: str | PathLike[str], max_elapsed: int | None = None
) -> None:
    """Draw Whittle index against elapsed steps, a line per last state and a panel per kind of arm.

    The file's ending chooses the format (png, svg, pdf). Beyond 12 kinds the first 12 are drawn.
    """
    suffix = require_target(path, FIGURE_SUFFIXES)
    figures = matplotlib_figures()
    kinds = kinds_of(bandit)
    num_panels = min(len(kinds.arms), MOST_PANELS)
    columns = min(num_panels, 4)
    rows = -(-num_panels // columns)
    figure = figures.Figure(
        figsize=(1.2 + 3.2 * columns, 0.8 + 2.7 * rows), layout="constrained", dpi=150
    )
    panels = figure.subplots(rows, columns, sharey=True, squeeze=False)
    for j, panel in enumerate(panels.flat):
        if j >= num_panels:
            panel.set_axis_off()
            continue
        _draw(panel, whittle_index(kinds.arms[j], max_elapsed=max_elapsed))
        panel.set_title(kinds.labels[j], fontsize=10)
        if j + columns >= num_panels:
            panel.set_xlabel("steps since last seen")
        if j % columns == 0:
            panel.set_ylabel("Whittle index")
    title = f"Whittle index of {bandit.num_arms} arms ({len(kinds.arms)} kinds)"
    if len(kinds.arms) > num_panels:
        title += f", the first {num_panels} kinds shown"
    figure.suptitle(title, fontsize=11)
    with replacing(path) as temporary:
        figure.savefig(temporary, format=suffix.lstrip("."))


def plot_band(
    times: NDArray[np.int64],
    mean: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    label: str,
    ax: Any = None,
) -> Any:
    """Draw regret against time with its band into axes, new ones by default; returns the axes."""
    if ax is None:
        figures = matplotlib_figures()
        ax = figures.Figure(figsize=(5, 3.4), layout="constrained", dpi=150).subplots()
    (line,) = ax.plot(times, mean, linewidth=1.6, label=label)
    ax.fill_between(times, lower, upper, color=line.get_color(), alpha=0.25)
    ax.set_xlabel("time")
    ax.set_ylabel("regret (mean and 95% band)")
    ax.legend(frameon=False)
    return ax


def plot_posterior(posterior: Any, truth: Any = None, ax: Any = None) -> Any:
    """Draw an `ArmPosterior` into axes, new ones by default; returns the axes."""
    if ax is None:
        figures = matplotlib_figures()
        ax = figures.Figure(figsize=(4.4, 4.0), layout="constrained", dpi=150).subplots()
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
    ax.scatter(p01, p11, s=areas, color=COLOURS[0], alpha=0.5, linewidth=0, label="chains")
    if truth is not None:
        ax.plot(truth.active[0, 1], truth.active[1, 1], "x", color=COLOURS[1], markersize=10,
                markeredgewidth=2, label="truth")  # fmt: skip
        ax.legend(frameon=False, fontsize=8)
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
        ax.errorbar(places, centre, yerr=error, fmt=MARKERS[k], color=COLOURS[k], markersize=4,
                    label=f"{field}: mean and 90%")  # fmt: skip
        if truth is not None:
            label = "truth" if k == 0 else None
            ax.plot(places, getattr(truth, field).ravel(), "x", color="black", label=label)
    ax.set_xticks(np.arange(size * size), names, rotation=90)
    ax.set_ylabel("transition probability")
    ax.set_ylim(-0.02, 1.02)
    ax.legend(frameon=False, fontsize=8)


def _draw(panel: Any, found: WhittleIndex) -> None:
    index = _visible(found.index)
    length = index.shape[1]
    upper = found.upper[:, np.minimum(np.arange(length), found.upper.shape[1] - 1)]
    ages = np.arange(1, length + 1)
    for s, line in enumerate(index):
        colour, marker = COLOURS[s % len(COLOURS)], MARKERS[s % len(MARKERS)]
        every = max(1, length // 12)
        panel.plot(
            ages, line, color=colour, marker=marker, markersize=4, markevery=every,
            linewidth=1.4, label=f"last seen in state {s}",
        )  # fmt: skip
        if not found.indexable:
            label = "not indexable: both ends" if s == 0 else None
            panel.fill_between(ages, line, upper[s], color=colour, alpha=0.25, label=label)
    panel.axhline(found.limit, color="0.4", linewidth=0.8, linestyle=":", label="limit")
    panel.xaxis.get_major_locator().set_params(integer=True)
    panel.grid(True, linewidth=0.3)
    panel.legend(fontsize=7, frameon=False)


def _visible(table: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ages worth drawing: some past the last that differs from the limit by 1%."""
    spread = np.abs(table - table[:, -1:]).max(axis=0)
    far = np.flatnonzero(spread > 0.01 * spread.max())
    length = max(8, (int(far[-1]) if far.size else 0) + 4)
    return table[:, np.minimum(np.arange(length), table.shape[1] - 1)]


def matplotlib_figures() -> Any:
    """Return matplotlib's module of figures, or say how to get it."""
    try:
        import matplotlib.figure as figures
    except ImportError:
        raise RestiveError("pictures need matplotlib: pip install 'restive[plot]'") from None
    return figures
