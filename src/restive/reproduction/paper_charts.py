"""The paper's Figures 2 and 3, on the page and as files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from restive.experiment import CaseSummary
from restive.report import charts
from restive.report.charts import Naming
from restive.report.forests import forest
from restive.style.chart import Chart, chart
from restive.style.drawing import write_figure
from restive.style.forest import Row
from restive.style.page import beside

__all__ = ["page_figures", "write_figures"]


def page_figures(bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary]) -> list[str]:
    """Return both figures as parts of a page, with the fitted growth beside Figure 2."""
    naming = Naming([*bayesian, *frequentist])
    regret, reward, posterior = _charts(bayesian, frequentist, naming)
    growth = [_growth(bayesian, naming)] if any(found.slope for found in bayesian) else []
    return [beside(*map(chart, [regret, *growth])), beside(chart(reward), chart(posterior))]


def write_figures(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary], folder: Path
) -> None:
    """Write figure-2 and figure-3 as .png and .svg."""
    naming = Naming([*bayesian, *frequentist])
    regret, reward, posterior = (made.panels[0] for made in _charts(bayesian, frequentist, naming))
    for name, panels in {
        "figure-2": charts.figure_of([(regret, "linear"), (regret, "log")]),
        "figure-3": charts.figure_of([(reward, "log time"), (posterior, "log time")]),
    }.items():
        write_figure(panels, folder / name)


def _charts(
    bayesian: Sequence[CaseSummary], frequentist: Sequence[CaseSummary], naming: Naming
) -> tuple[Chart, Chart, Chart]:
    whittle = [found for found in frequentist if found.case.mapping == "whittle"]
    regret = charts.regret_chart({"": bayesian}, naming)
    reward = charts.reward_chart({"": frequentist}, naming)
    (posterior,) = charts.posterior_charts({"": whittle}, naming)
    return (
        replace(regret, name="figure-2", title="Figure 2: Bayesian regret of TSDE"),
        replace(reward, name="figure-3-left", title="Figure 3, left: one system, reward per step"),
        replace(
            posterior, name="figure-3-right", title="Figure 3, right: weight of the true (p01, p11)"
        ),
    )


def _growth(bayesian: Sequence[CaseSummary], naming: Naming) -> Chart:
    """Return the exponents of regret's growth, beside that of the square root."""
    rows = [
        Row(
            naming.number(found), naming.name(found), slope.last, slope.value, slope.lower,
            slope.upper, f"{slope.value:.3f} [{slope.lower:.3f}, {slope.upper:.3f}]",
            filled=not slope.lower <= 0.5 <= slope.upper,
        )
        for found in bayesian
        if (slope := found.slope) is not None
    ]  # fmt: skip
    return forest(
        "growth", "How fast does it grow?",
        "Exponent a of regret ~ t^a over the last decade of time, with 95% intervals. The upright "
        "line is the square root, 1/2; hollow: the interval does not tell it from that.",
        {"": rows}, {"": "exponent of time"}, ("mapping", "exponent"), "linear",
        scales=("linear",), references=(0.5,),
    )  # fmt: skip
