"""The pictures that `.plot()` draws: regret, indices, what is believed of an arm, trajectories.

Each draws into axes that it is given, or into new ones, and returns them; several panels are an
array of axes. In a notebook, or beside pyplot, new figures show themselves.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.pages.axes import Line, draw_line, set_scale
from restive.pages.looks import LIGHT, look, matplotlib_figures, settings

__all__ = [
    "FIGURE_SUFFIXES",
    "IndexPanel",
    "Track",
    "draw_posterior",
    "in_the_plane",
    "new_axes",
    "plot_band",
    "plot_index",
    "plot_panels",
    "plot_posterior",
    "plot_tracks",
    "transition_names",
]

FloatArray = NDArray[np.float64]

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
MOST_PANELS = 12
AREA = 160.0  # of the largest circle, in square points
MOST_LETTERS = 12  # of the name of a state beside a picture
SHOWING = ("matplotlib.pyplot", "ipykernel")  # modules that are there where figures are looked at


def _new_figure(width: float, height: float) -> Any:
    """Return an empty figure of a size in inches."""
    figures = matplotlib_figures()
    size: Any = {"figsize": (width, height), "layout": "constrained", "dpi": 150}
    if any(name in sys.modules for name in SHOWING):
        import matplotlib.pyplot

        return matplotlib.pyplot.figure(**size)
    return figures.Figure(**size)


def new_axes(width: float, height: float) -> Any:
    """Return the axes of a new figure."""
    return _new_figure(width, height).subplots()


def plot_band(
    times: NDArray[np.int64],
    mean: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
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
        if ax.figure.get_layout_engine() is None:  # nothing makes room below
            ax.legend()
        else:
            _legend_below(ax)
    return ax


def _legend_below(ax: Any, **looks: Any) -> None:
    """Put the legend below the axis, where it covers nothing."""
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2, **looks)


@dataclass(frozen=True, eq=False)
class IndexPanel:
    """The index of one kind of arm; `upper` is there where it is not one number."""

    title: str
    state_names: Sequence[str] | None
    index: FloatArray  # [S, L]
    upper: FloatArray | None = None  # [S, L]


def plot_index(panel: IndexPanel, name: str, ax: Any = None) -> Any:
    """Draw one index into axes, new ones by default; returns the axes."""
    with settings():
        ax = new_axes(6, 4) if ax is None else ax
        _draw_index(ax, panel)
        _label(ax, name, bottom=True, left=True)
    return ax


def plot_panels(panels: Sequence[IndexPanel], name: str, title: str) -> Any:
    """Draw the first 12 indices side by side on one scale; returns their axes [P]."""
    shown = panels[:MOST_PANELS]
    columns = min(len(shown), 4)
    rows = -(-len(shown) // columns)
    with settings():
        figure = _new_figure(1.2 + 3.6 * columns, 0.8 + 3.0 * rows)
        axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
        for j, ax in enumerate(axes.flat):
            if j >= len(shown):
                ax.set_axis_off()
                continue
            _draw_index(ax, shown[j])
            ax.set_title(shown[j].title)
            _label(ax, name, bottom=j + columns >= len(shown), left=j % columns == 0)
        if len(panels) > len(shown):
            title += f", the first {len(shown)} kinds shown"
        figure.suptitle(title)
    return axes.ravel()[: len(shown)]


def _label(ax: Any, name: str, *, bottom: bool, left: bool) -> None:
    if bottom:
        ax.set_xlabel("steps since last seen")
    if left:
        ax.set_ylabel(name)


def _draw_index(ax: Any, panel: IndexPanel) -> None:
    index = _visible(panel.index)
    length = index.shape[1]
    ages = np.arange(1, length + 1)
    for s, line in enumerate(index):
        style = look(s)
        last = f"state {s}" if panel.state_names is None else panel.state_names[s]
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
    _legend_below(ax, fontsize=9.5)


def _visible(table: FloatArray) -> FloatArray:
    """Return the ages worth drawing: some past the last that differs from the limit by 1%."""
    spread = np.abs(table - table[:, -1:]).max(axis=0)
    far = np.flatnonzero(spread > 0.01 * spread.max())
    length = max(8, (int(far[-1]) if far.size else 0) + 4)
    return table[:, np.minimum(np.arange(length), table.shape[1] - 1)]


def plot_posterior(posterior: Any, truth: Any = None, ax: Any = None) -> Any:
    """Draw an `ArmPosterior` into axes, new ones by default; returns the axes."""
    with settings():
        ax = new_axes(6, 5) if ax is None else ax
        draw_posterior(ax, posterior, truth=truth)
        if truth is not None or not in_the_plane(posterior):
            _legend_below(ax)
    return ax


def draw_posterior(ax: Any, posterior: Any, *, prior: Any = None, truth: Any = None) -> None:
    """Draw an `ArmPosterior` into axes, with what was believed before behind it, if given.

    Chains of two states, the same pulled or not, are points (p01, p11) of the plane; of any others
    each transition probability has its mean and 90% interval.
    """
    (_draw_chains if in_the_plane(posterior) else _draw_intervals)(ax, posterior, prior, truth)


def in_the_plane(posterior: Any) -> bool:
    """Whether (p01, p11) says all of a chain."""
    return posterior.active.shape[1] == 2 and np.array_equal(posterior.active, posterior.passive)


def _draw_chains(ax: Any, posterior: Any, prior: Any, truth: Any) -> None:
    """Draw each chain as a circle as large as it is likely, over rings of the prior or a density.

    The density is an image, which a page does not have: it would not turn dark.
    """
    p01, p11, weights = posterior.active[:, 0, 1], posterior.active[:, 1, 1], posterior.weights
    largest = weights.max()
    if prior is None:
        _draw_density(ax, posterior)
    else:
        largest = max(largest, prior.weights.max())
        ax.scatter(
            prior.active[:, 0, 1], prior.active[:, 1, 1], s=AREA * prior.weights / largest,
            facecolors="none", edgecolors=LIGHT["mute"], linewidths=0.9,
        )  # fmt: skip
        ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    ax.scatter(
        p01, p11, s=AREA * weights / largest, color=look(0).colour, alpha=0.35, lw=0,
        label="chains",
    )  # fmt: skip
    mean, low, high = (
        (chains.active[0, 1], chains.active[1, 1])
        for chains in (posterior.mean(), posterior.quantile(0.05), posterior.quantile(0.95))
    )
    for x, y in (((low[0], high[0]), (mean[1],) * 2), ((mean[0],) * 2, (low[1], high[1]))):
        ax.plot(x, y, color=LIGHT["ink"], linewidth=1.4)
    if truth is not None:
        ax.plot(truth.active[0, 1], truth.active[1, 1], "x", color=look(1).colour, markersize=10,
                markeredgewidth=2, label="truth")  # fmt: skip
    bad, good = posterior.states or ("bad", "good")
    ax.set_xlabel(f"p01: from {bad} to {good}")
    ax.set_ylabel(f"p11: stays {good}")


def _draw_density(ax: Any, posterior: Any) -> None:
    """Draw the density of (p01, p11): a normal bump at each chain."""
    middle = (np.arange(100) + 0.5) / 100
    weights, bumps = posterior.weights, []
    for values in (posterior.active[:, 0, 1], posterior.active[:, 1, 1]):
        spread = np.sqrt((weights * (values - (weights * values).sum()) ** 2).sum())
        width = max(spread * posterior.effective ** (-1 / 6), 0.01)  # Silverman's, in the plane
        bumps.append(np.exp(-(((middle[:, None] - values) / width) ** 2) / 2))
    density = np.einsum("im,jm,m->ji", *bumps, weights)
    ax.imshow(density, origin="lower", extent=(0, 1, 0, 1), cmap="Blues", aspect="equal")


def _draw_intervals(ax: Any, posterior: Any, prior: Any, truth: Any) -> None:
    alike = np.array_equal(posterior.active, posterior.passive)
    size = posterior.active.shape[1]
    mean, low, high = posterior.mean(), posterior.quantile(0.05), posterior.quantile(0.95)
    for k, field in enumerate(["active"] if alike else ["active", "passive"]):
        centre, bottom, top = (getattr(each, field).ravel() for each in (mean, low, high))
        places = np.arange(size * size) + 0.3 * k
        error = [np.maximum(centre - bottom, 0), np.maximum(top - centre, 0)]
        style = look(k)
        label = f"{field}: mean and 90%"
        ax.errorbar(centre, places, xerr=error, fmt=style.marker, color=style.colour, label=label)
        if prior is not None:
            bottom, top = (getattr(prior.quantile(q), field).ravel() for q in (0.05, 0.95))
            ax.barh(places, top - bottom, 0.2, bottom, color=LIGHT["mute"], alpha=0.3, zorder=0)
        if truth is not None:
            once = "truth" if k == 0 else None
            ax.plot(getattr(truth, field).ravel(), places, "x", color="black", label=once)
    ax.set_yticks(np.arange(size * size), transition_names(posterior))
    ax.invert_yaxis()  # the first on top
    ax.set_xlabel("transition probability")
    ax.set_xlim(-0.02, 1.02)


def transition_names(posterior: Any) -> list[str]:
    """Return what each transition is called, short enough for the side of a picture."""
    names = posterior.states or [str(state) for state in range(posterior.active.shape[1])]
    short = [
        name if len(name) <= MOST_LETTERS else f"{name[: MOST_LETTERS - 1]}…" for name in names
    ]
    return [f"{one} to {other}" for one in short for other in short]


@dataclass(frozen=True, eq=False)
class Track:
    """One arm over the steps shown: what it was expected to pay, and what was seen of it."""

    label: str
    rewards: FloatArray  # [S]
    state_names: Sequence[str] | None
    expected: FloatArray  # [T] reward of a pull in each step, by belief
    pulled: NDArray[np.int64]  # [P] times of its pulls
    states: NDArray[np.int64]  # [P] states seen


def plot_tracks(times: NDArray[np.int64], tracks: Sequence[Track]) -> Any:
    """Draw arms one below the other over the same time; returns their axes [P]."""
    with settings():
        figure = _new_figure(8, 1.0 + 1.35 * len(tracks))
        axes = figure.subplots(len(tracks), 1, sharex=True, squeeze=False)[:, 0]
        for ax, track in zip(axes, tracks, strict=True):
            _draw_track(ax, times, track)
        axes[-1].set_xlabel("time (steps)")
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return axes


def _draw_track(ax: Any, times: NDArray[np.int64], track: Track) -> None:
    rewards, line, dots = track.rewards, look(0), look(1)
    ax.step(
        times, track.expected, where="mid", color=line.colour, linewidth=1.3,
        label="expected if pulled (belief)",
    )  # fmt: skip
    ax.vlines(
        track.pulled, rewards.min(), rewards[track.states],
        color=LIGHT["rule"], linewidth=1, zorder=1,
    )  # fmt: skip
    ax.plot(
        track.pulled, rewards[track.states], linestyle="", marker=dots.marker, markersize=4,
        color=dots.colour, label="pulled: state seen",
    )  # fmt: skip
    ax.set_title(track.label, loc="left")
    if len(rewards) <= 5 and len(np.unique(rewards)) == len(rewards):
        names = track.state_names or [f"state {s}" for s in range(len(rewards))]
        ax.set_yticks(rewards, names)
    else:
        ax.set_ylabel("reward")
    low, high = float(rewards.min()), float(rewards.max())
    room = 0.15 * (high - low) or 0.5
    ax.set_ylim(low - room, high + room)
