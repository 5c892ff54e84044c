"""What is believed of one arm."""

from __future__ import annotations

from typing import Any

import numpy as np

from restive.figures.canvas import new_axes
from restive.style.looks import look, settings

__all__ = ["plot_posterior"]


def plot_posterior(posterior: Any, truth: Any = None, ax: Any = None) -> Any:
    """Draw an `ArmPosterior` into axes, new ones by default; returns the axes."""
    with settings():
        if ax is None:
            ax = new_axes(6, 5)
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
    bad, good = posterior.states or ("bad", "good")
    ax.set_xlabel(f"p01: from {bad} to {good}")
    ax.set_ylabel(f"p11: stays {good}")


def _draw_intervals(ax: Any, posterior: Any, truth: Any, fields: list[str]) -> None:
    mean, low, high = posterior.mean(), posterior.quantile(0.05), posterior.quantile(0.95)
    size = posterior.active.shape[1]
    states = posterior.states or range(size)
    names = [f"{i} to {j}" for i in states for j in states]
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
