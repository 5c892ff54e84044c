"""Charts of results: each draws into axes, so that a figure or a page can put them together.

Lines differ in colour, dash and marker, so that they can be told apart in grey and by the
colour-blind; bands are 95%.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from restive.experiment.summary import CaseSummary, Curve
from restive.figures import COLOURS, MARKERS, matplotlib_figures
from restive.files import replacing
from restive.policies import mapping_title

__all__ = [
    "draw_average_reward",
    "draw_bound_regret",
    "draw_log_regret",
    "draw_posterior",
    "draw_regret",
    "learner_title",
    "line_name",
    "side_by_side",
    "svg",
    "write_figure",
]

DASHES = ("-", "--", "-.", (0, (4, 1, 1, 1, 1, 1)), (0, (1, 1)), (0, (6, 2)))
MOST_INSIDE = 5  # lines whose legend has room among them
LEGEND_ROW = 0.2  # inches
SIZE = (4.6, 3.5)  # inches of one chart: legible at a column's and at a phone's width

Draw = Callable[[Any], None]


def draw_regret(cases: Sequence[CaseSummary]) -> Draw:
    """Regret against time."""

    def draw(axes: Any) -> None:
        for i, found in enumerate(cases):
            _line(axes, found.times, found.regret, i, line_name(found, cases))
        axes.set_xlabel("time (steps)")
        axes.set_ylabel("regret (total reward lost)")
        axes.set_xlim(left=0)
        _finish(axes)

    return draw


def draw_bound_regret(cases: Sequence[CaseSummary]) -> Draw:
    """Regret against the relaxation bound, of each learner and of the policies that know."""

    def draw(axes: Any) -> None:
        firsts: dict[str, int] = {}  # the first case of each mapping
        for i, found in enumerate(cases):
            assert found.bound_regret is not None
            _line(axes, found.times, found.bound_regret, i, line_name(found, cases))
            firsts.setdefault(found.case.mapping, i)
        for i in firsts.values():
            known = cases[i].oracle_bound_regret
            assert known is not None
            # a single policy is every learner's, so it has no learner's colour
            colour = "0.35" if len(firsts) == 1 else COLOURS[i % len(COLOURS)]
            axes.plot(cases[i].times, known.mean, color=colour, linestyle=":", linewidth=1)
        axes.plot([], [], color="0.35", linestyle=":", label="knows the truth")
        axes.set_xlabel("time (steps)")
        axes.set_ylabel("regret against the relaxation bound")
        axes.set_xlim(left=0)
        _finish(axes)

    return draw


def draw_log_regret(cases: Sequence[CaseSummary]) -> Draw:
    """Regret against time on logarithmic axes, with a line of slope 1/2."""

    def draw(axes: Any) -> None:
        highest, floor = 0.0, np.inf
        for i, found in enumerate(cases):
            positive = found.regret.mean > 0
            if not positive.any():
                continue
            highest = max(highest, float(found.regret.mean[-1]))
            lowest = float(found.regret.mean[positive].min())
            floor = min(floor, lowest / 3)
            clipped = replace(found.regret, mean=np.maximum(found.regret.mean, lowest / 2))
            label = line_name(found, cases)
            if found.slope is not None and len(cases) < MOST_INSIDE:
                label += f", slope {found.slope.value:.2f}"
            _line(axes, found.times, clipped, i, label, keep=positive)
        axes.set_xscale("log")
        axes.set_yscale("log")
        times = cases[0].times
        if highest > 0:
            guide = 1.6 * highest * np.sqrt(times / times[-1])
            axes.plot(times, guide, color="0.35", linestyle=":", label="slope 1/2")
            axes.set_ylim(bottom=floor)  # bands reach down for ever on such an axis
        axes.set_xlabel("time (steps, logarithmic)")
        axes.set_ylabel("regret (logarithmic)")
        _finish(axes)

    return draw


def draw_average_reward(cases: Sequence[CaseSummary]) -> Draw:
    """Reward per step up to each time, with the J that each learner is measured against."""

    def draw(axes: Any) -> None:
        lowest, highest = np.inf, -np.inf
        for i, found in enumerate(cases):
            _line(axes, found.times, found.average_reward, i, line_name(found, cases))
            target = found.truth_reward[0]
            axes.axhline(target, color=COLOURS[i % len(COLOURS)], linestyle=":", linewidth=1)
            settled = found.average_reward.mean[found.times >= found.times[-1] / 100]
            lowest = min(lowest, float(settled.min()), target)
            highest = max(highest, float(settled.max()), target)
        axes.plot([], [], color="0.35", linestyle=":", label="J of each mapping")
        height = max(highest - lowest, 1e-9)
        axes.set_ylim(lowest - 0.08 * height, highest + 0.4 * height)  # with room for the legend
        axes.set_xscale("log")
        axes.set_xlabel("time (steps, logarithmic)")
        axes.set_ylabel("average reward per step so far")
        _finish(axes)

    return draw


def draw_posterior(found: CaseSummary) -> Draw:
    """Posterior weight of each arm's truth against time."""

    def draw(axes: Any) -> None:
        assert found.truth_weights is not None
        for k in range(found.truth_weights.mean.shape[1]):
            whole = found.truth_weights
            weights = replace(whole, mean=whole.mean[:, k], stderr=whole.stderr[:, k])
            _line(axes, found.times, weights, k, _arm_label(found, k))
        axes.axhline(1, color="0.35", linestyle=":", linewidth=1)
        axes.set_ylim(0, 1.05)
        axes.set_xscale("log")
        axes.set_xlabel("time (steps, logarithmic)")
        axes.set_ylabel("posterior weight of the true parameters")
        _finish(axes)

    return draw


def side_by_side(draws: Sequence[Draw], titles: Sequence[str] | None = None) -> Any:
    """Return a figure with a panel per chart."""
    figure = matplotlib_figures().Figure(
        figsize=(SIZE[0] * len(draws), SIZE[1]), layout="constrained", dpi=200
    )
    panels = figure.subplots(1, len(draws), squeeze=False)[0]
    for panel, draw in zip(panels, draws, strict=True):
        draw(panel)
    for panel, title in zip(panels, titles or (), strict=False):
        panel.set_title(title, fontsize=10)
    return figure


def write_figure(figure: Any, stem: Path) -> list[Path]:
    """Write a figure as .png and .svg; return the paths."""
    paths = [stem.with_suffix(suffix) for suffix in (".png", ".svg")]
    for path in paths:
        with replacing(path) as temporary:
            if path.suffix == ".svg":
                temporary.write_text(svg(figure, stem.name), encoding="utf-8")
            else:
                figure.savefig(temporary, format="png", metadata={"Software": None})
    return paths


def svg(figure: Any, name: str) -> str:
    """Return a figure as an <svg> element; `name` keeps its ids apart from other figures'."""
    import matplotlib

    text = StringIO()
    # letters as paths look the same everywhere; a salt makes ids the same every time
    with matplotlib.rc_context({"svg.fonttype": "path", "svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    whole = text.getvalue()
    element = whole[whole.index("<svg") :]
    return re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{name}-", element)


def _line(axes: Any, times: Any, curve: Curve, number: int, label: str, keep: Any = None) -> None:
    shown = slice(None) if keep is None else keep
    label = label.replace("$", r"\$")  # text, not a formula
    colour = COLOURS[number % len(COLOURS)]
    style = number + number // len(COLOURS)  # a colour that comes again has another dash
    axes.plot(
        times[shown], curve.mean[shown], color=colour, linestyle=DASHES[style % len(DASHES)],
        linewidth=1.6, label=label, marker=MARKERS[style % len(MARKERS)], markersize=4,
        markevery=(0.05, 0.16),
    )  # fmt: skip
    lower = curve.lower if keep is None else np.maximum(curve.lower, curve.mean * 1e-3)
    axes.fill_between(
        times[shown], lower[shown], curve.upper[shown], color=colour, alpha=0.22, lw=0
    )


def _finish(axes: Any) -> None:
    axes.grid(True, linewidth=0.3)
    axes.tick_params(labelsize=8)
    lines = len(axes.get_legend_handles_labels()[0])  # on logarithmic axes there may be none
    if lines > MOST_INSIDE:
        figure = axes.get_figure()
        figure.set_figheight(SIZE[1] + LEGEND_ROW * ceil(lines / 2))
        figure.legend(
            *axes.get_legend_handles_labels(),
            fontsize=7.5, frameon=False, ncols=2, loc="outside lower center",
        )  # fmt: skip
    elif lines:
        axes.legend(fontsize=8, frameon=False)


def line_name(found: CaseSummary, among: Sequence[CaseSummary]) -> str:
    """Return what tells a case from the others of its chart."""
    mapping = mapping_title(found.case.mapping)
    if len({case.case.learner for case in among}) == 1:
        return mapping
    if len({case.case.mapping for case in among}) == 1:
        return learner_title(found)
    return f"{learner_title(found)}, {mapping}"


def learner_title(found: CaseSummary) -> str:
    """Return a learner's title, with the options that are not the defaults."""
    learner = found.case.settings.learner()
    return learner.title + found.case.learner.removeprefix(learner.name)


def _arm_label(found: CaseSummary, k: int) -> str:
    bandit = found.case.settings.systems()[0]
    if bandit is None:
        return f"arm {k}"
    arm = bandit.arms[k]
    if arm.num_states == 2:
        return f"arm {k}: ({arm.active[0, 1]:.3g}, {arm.active[1, 1]:.3g})"
    return bandit.label(k)
