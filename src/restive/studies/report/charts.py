"""Charts of results: small multiples, a panel per point of the sweep; bands are 95%."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from restive.pages.axes import Dotted, Line, Scale, draw_lines
from restive.pages.chart import Chart, Panel, line_data
from restive.pages.looks import matplotlib_figures, settings
from restive.plan.policies.registry import mapping_title
from restive.studies.summary import CaseSummary, Curve

__all__ = [
    "Naming",
    "Points",
    "bound_chart",
    "figure_of",
    "learner_title",
    "posterior_charts",
    "regret_chart",
    "reward_chart",
]

SIZE = (5.4, 4.4)  # inches of a panel of a figure that stands by itself
CROWDED = 20  # times: regrets that differ by more are shown on logarithmic axes at first
MOST_ARMS = 12  # whose posterior is drawn

Points = Mapping[str, Sequence[CaseSummary]]  # cases by the point of the sweep


class Naming:
    """Names and looks of the lines of a page: a learner has the same ones in all of its charts."""

    def __init__(self, found: Sequence[CaseSummary]) -> None:
        self._one_learner = len({case.case.learner for case in found}) == 1
        self._one_mapping = len({case.case.mapping for case in found}) == 1
        self.names = list(dict.fromkeys(map(self.name, found)))

    def name(self, case: CaseSummary) -> str:
        """Return what tells a case from the others at its point."""
        mapping = mapping_title(case.case.mapping)
        if self._one_learner:
            return mapping
        return learner_title(case) if self._one_mapping else f"{learner_title(case)}, {mapping}"

    def number(self, case: CaseSummary) -> int:
        """Return the number of its look."""
        return self.names.index(self.name(case))


def learner_title(found: CaseSummary) -> str:
    """Return a learner's title, with the options that are not the defaults."""
    learner = found.case.settings.learner()
    return learner.title + found.case.learner.removeprefix(learner.name)


def regret_chart(points: Points, naming: Naming) -> Chart:
    """Regret against time."""
    lines = _lines(points, naming, lambda case: case.regret)
    return _chart_of_regrets(
        "regret", "Regret against time", "regret (total reward lost)", points, lines,
        "Total reward lost against the same policy when it knows the truth. Mean and 95% band.",
    )  # fmt: skip


def bound_chart(points: Points, naming: Naming) -> Chart | None:
    """Regret against the relaxation bound, where there is one, with what policies that know lose.

    The latter is not the learning's.
    """
    bounded = {
        title: cases for title, cases in points.items() if cases[0].relaxation_bound is not None
    }
    if not bounded:
        return None
    bounds = {f" of {cases[0].relaxation_bound:.6f}" for cases in bounded.values()}
    bound = bounds.pop() if len(bounds) == 1 else ""
    return _chart_of_regrets(
        "bound", "Regret against the relaxation bound", "reward lost against the bound", bounded,
        _lines(bounded, naming, lambda case: case.bound_regret),
        f"No policy earns more than the bound{bound} per step in the long run. What the policy "
        "that knows the truth loses against it, no learner could have earned.",
        {title: _known(cases, naming) for title, cases in bounded.items()},
        "knows the truth",
    )  # fmt: skip


def _chart_of_regrets(
    name: str,
    title: str,
    label: str,
    points: Points,
    lines: Mapping[str, Sequence[Line]],
    note: str,
    dotted: Mapping[str, Sequence[Dotted]] | None = None,
    dotted_name: str = "slope 1/2",
) -> Chart:
    every = [line for inside in lines.values() for line in inside]

    def draw(point: str, axes: Any, scale: Scale) -> None:
        others = list(dotted[point]) if dotted else []
        if scale == "log" and not dotted:
            others += _square_root(every)
        draw_lines(axes, lines[point], scale, among=every, dotted=others)
        axes.set_ylabel(label)

    positive = any((line.mean > 0).any() for line in every)
    ends = np.array([line.mean[-1] for line in every])
    crowded = bool((ends > 0).all() and ends.max() > CROWDED * ends.min())
    same = " All panels have the same axes." if len(points) > 1 else ""
    return Chart(
        name, title, f"{note}{same}", _panels(points, lines, draw),
        columns=("line", label), scales=("linear", "log") if positive else ("linear",),
        shown="log" if crowded else "linear",
        dotted=dotted_name if dotted or positive else "", dotted_on=None if dotted else "log",
        legend=_legend(every),
    )  # fmt: skip


def reward_chart(points: Points, naming: Naming) -> Chart:
    """Reward per step up to each time, with the J that each line is measured against."""
    lines = _lines(points, naming, lambda case: case.average_reward)

    def draw(point: str, axes: Any, scale: Scale) -> None:
        targets = [case.truth_reward[0] for case in points[point]]
        dotted = [
            Dotted(line.times[[0, -1]], [target, target], line.number)
            for line, target in zip(lines[point], targets, strict=True)
        ] + [Dotted([], [], name="J of each")]
        draw_lines(axes, lines[point], scale, dotted=dotted)
        axes.set_ylim(_settled(lines[point], targets))
        axes.set_ylabel("reward per step so far")

    own = " Each panel has its own axis of rewards." if len(points) > 1 else ""
    return Chart(
        "reward", "Average reward so far",
        f"Expected reward per step up to each time; dotted: J, what the same policy earns per step "
        f"when it knows the truth.{own}",
        _panels(points, lines, draw), columns=("line", "reward per step so far"),
        scales=("log time",), shown="log time", shared="x", dotted="J of each",
        legend=_legend([line for inside in lines.values() for line in inside]),
    )  # fmt: skip


def posterior_charts(points: Points, naming: Naming) -> list[Chart]:
    """Posterior weight of each arm's truth against time, a chart per point where it is recorded."""
    charts = []
    for at, (title, cases) in enumerate(points.items()):
        shown = [
            case for case in cases
            if case.truth_weights is not None and case.truth_weights.mean.shape[1] <= MOST_ARMS
        ]  # fmt: skip
        if shown:
            charts.append(_posterior_chart(f"posterior-{at}", title, shown, naming))
    return charts


def _posterior_chart(name: str, title: str, shown: Sequence[CaseSummary], naming: Naming) -> Chart:
    # arms are no learners: they have looks of their own
    lines = {naming.name(case): _arm_lines(case, len(naming.names)) for case in shown}

    def draw(case: str, axes: Any, scale: Scale) -> None:
        draw_lines(axes, lines[case], scale, dotted=[Dotted(lines[case][0].times[[0, -1]], [1, 1])])
        axes.set_ylim(0, 1.05)
        axes.set_ylabel("posterior weight of the truth")

    return Chart(
        name, f"Posterior weight of the truth{f', {title}' if title else ''}",
        "What the learner gives to the true parameters of each arm, on average.",
        _panels(lines, lines, draw), columns=("arm", "posterior weight of the truth"),
        scales=("log time",), shown="log time", legend=next(iter(lines.values())),
    )  # fmt: skip


def figure_of(panels: Sequence[tuple[Panel, Scale]]) -> Any:
    """Return a figure that stands by itself, with a legend in each panel."""
    with settings():
        figure = matplotlib_figures().Figure(
            figsize=(SIZE[0] * len(panels), SIZE[1]), layout="constrained", dpi=170
        )
        for axes, (panel, scale) in zip(
            figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True
        ):
            panel.draw(axes, scale)
            axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
    return figure


def _lines(
    points: Points, naming: Naming, curve: Callable[[CaseSummary], Curve | None]
) -> dict[str, list[Line]]:
    return {
        title: [
            _line(naming.number(case), naming.name(case), case.times, drawn)
            for case in cases
            if (drawn := curve(case)) is not None
        ]
        for title, cases in points.items()
    }


def _line(number: int, name: str, times: Any, curve: Curve) -> Line:
    return Line(number, name, times, curve.mean, curve.lower, curve.upper)


def _arm_lines(found: CaseSummary, first: int) -> list[Line]:
    whole = found.truth_weights
    assert whole is not None
    return [
        _line(
            first + k, _arm_label(found, k), found.times,
            replace(whole, mean=whole.mean[:, k], stderr=whole.stderr[:, k]),
        )
        for k in range(whole.mean.shape[1])
    ]  # fmt: skip


def _arm_label(found: CaseSummary, k: int) -> str:
    bandit = found.case.settings.systems()[0]
    if bandit is None:
        return f"arm {k}"
    arm = bandit.arms[k]
    if arm.num_states == 2:
        return f"arm {k}: ({arm.active[0, 1]:.3g}, {arm.active[1, 1]:.3g})"
    return bandit.label(k)


def _panels(
    titles: Mapping[str, Any],
    lines: Mapping[str, Sequence[Line]],
    draw: Callable[[str, Any, Scale], None],
) -> list[Panel]:
    return [
        Panel(title.removeprefix("instance "), partial(draw, title), line_data(lines[title]))
        for title in titles
    ]


def _legend(lines: Sequence[Line]) -> list[Line]:
    return list({line.number: line for line in reversed(lines)}.values())[::-1]


def _known(cases: Sequence[CaseSummary], naming: Naming) -> list[Dotted]:
    """Return what policies that know the truth lose against the bound, one per mapping."""
    firsts: dict[str, CaseSummary] = {}
    for case in cases:
        firsts.setdefault(case.case.mapping, case)
    found = []
    for case in firsts.values():
        curve = case.oracle_bound_regret
        assert curve is not None
        # a single policy is every learner's, so it has no learner's colour
        own = None if len(firsts) == 1 else naming.number(case)
        found.append(Dotted(case.times, curve.mean, own))
    return found


def _square_root(lines: Sequence[Line]) -> list[Dotted]:
    """Return a line of slope 1/2 above the highest line."""
    highest = max(lines, key=lambda line: float(line.mean[-1]))
    end = float(highest.mean[-1])
    if end <= 0:
        return []
    guide = 1.6 * end * np.sqrt(highest.times / highest.times[-1])
    return [Dotted(highest.times, guide, name="slope 1/2")]


def _settled(lines: Sequence[Line], targets: Sequence[float]) -> tuple[float, float]:
    """Return limits that show the end of each line and its target: the first steps are wild."""
    late = [line.mean[line.times >= line.times[-1] / 100] for line in lines]
    values = np.concatenate([*late, targets])
    margin = 0.08 * max(float(np.ptp(values)), 1e-9)
    return float(values.min()) - margin, float(values.max()) + margin
