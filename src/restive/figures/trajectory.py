"""What happened to some arms over time: pulls, states seen and beliefs in between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.figures.canvas import new_figure
from restive.problem import Arm
from restive.style.looks import LIGHT, look, settings

__all__ = ["Track", "plot_tracks"]


@dataclass(frozen=True, eq=False)
class Track:
    """One arm over the steps shown: what it was expected to pay, and what was seen of it."""

    label: str
    arm: Arm
    expected: NDArray[np.float64]  # [T] reward of a pull in each step, by belief
    pulled: NDArray[np.int64]  # [P] times of its pulls
    states: NDArray[np.int64]  # [P] states seen


def plot_tracks(times: NDArray[np.int64], tracks: Sequence[Track]) -> Any:
    """Draw arms one below the other over the same time; returns the figure."""
    with settings():
        figure = new_figure(8, 1.0 + 1.35 * len(tracks))
        axes = figure.subplots(len(tracks), 1, sharex=True, squeeze=False)[:, 0]
        for ax, track in zip(axes, tracks, strict=True):
            _draw(ax, times, track)
        axes[-1].set_xlabel("time (steps)")
        axes[-1].xaxis.get_major_locator().set_params(integer=True)
        handles, labels = axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=3)
    return figure


def _draw(ax: Any, times: NDArray[np.int64], track: Track) -> None:
    arm, line, dots = track.arm, look(0), look(1)
    ax.step(
        times, track.expected, where="mid", color=line.colour, linewidth=1.3,
        label="expected if pulled (belief)",
    )  # fmt: skip
    ax.vlines(
        track.pulled, arm.rewards.min(), arm.rewards[track.states],
        color=LIGHT["rule"], linewidth=1, zorder=1,
    )  # fmt: skip
    ax.plot(
        track.pulled, arm.rewards[track.states], linestyle="", marker=dots.marker, markersize=4,
        color=dots.colour, label="pulled: state seen",
    )  # fmt: skip
    ax.set_title(track.label, loc="left")
    if arm.num_states <= 5 and len(np.unique(arm.rewards)) == arm.num_states:
        names = [f"state {s}" for s in range(arm.num_states)] if arm.states is None else arm.states
        ax.set_yticks(arm.rewards, names)
    else:
        ax.set_ylabel("reward")
    low, high = float(arm.rewards.min()), float(arm.rewards.max())
    room = 0.15 * (high - low) or 0.5
    ax.set_ylim(low - room, high + room)
