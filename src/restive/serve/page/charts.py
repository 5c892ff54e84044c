"""Charts of the page, as SVG: rewards against forecasts, what was unknown, and one arm."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from restive.learn.posterior import ArmPosterior
from restive.live.settings import Settings
from restive.live.told.learned import Entropy
from restive.live.told.summaries import RewardTable
from restive.live.words import Words
from restive.measure.intervals import student_quantile
from restive.pages.axes import Line, draw_line, set_scale
from restive.pages.chart import Chart, Panel, line_data, render_chart
from restive.pages.figures import draw_posterior, in_the_plane, transition_names
from restive.pages.looks import LIGHT
from restive.pages.page import capitalised
from restive.problem.beliefs import beliefs_at
from restive.problem.chains import weighted

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["arm_charts", "belief_curve", "entropy_chart", "reward_chart", "reward_lines"]

FloatArray = NDArray[np.float64]

MOST_TICKS = 120  # of single ticks
MOST_POINTS = 200  # of sums
MOST_KINDS = 8  # lines of one chart
LETTER, ROW = 7.2, 26.0  # points that a letter of a label is wide, and a row of a picture high
NORMAL = student_quantile(10**6)  # standard deviations that hold 95%


def plain(text: str) -> str:
    """Return a text that matplotlib takes for no formula."""
    return text.replace("$", r"\$")


def _data(lines: Sequence[Line], settings: Settings) -> list[dict[str, Any]]:
    """Return the numbers of lines, with what an operator calls the ticks."""
    found = [dict(one) for one in line_data(lines)]
    label = settings.clock.label
    found[0]["labels"] = [settings.words.when(tick, label(tick)) for tick in found[0]["x"]]
    return found


def reward_lines(table: RewardTable) -> tuple[list[Line], list[Line]]:
    """Return what was earned and what was forecast, tick by tick and summed, with 95% bands.

    Forecasts are of the pulls that were seen; their variance is their share of the tick's.
    """
    shown = (table.seen > 0) & ~np.isnan(table.variance)
    ticks, earned, forecast = table.tick[shown], table.reward[shown], table.forecast[shown]
    variance = table.variance[shown] * table.seen[shown] / table.pulls[shown]
    last = slice(-MOST_TICKS, None)
    each = _pair(ticks[last], earned[last], forecast[last], variance[last])
    few = np.unique(np.linspace(0, len(ticks) - 1, MOST_POINTS).round().astype(int))
    sums = [np.cumsum(values)[few] for values in (earned, forecast, variance)]
    return each, _pair(ticks[few], *sums)


def _pair(ticks: NDArray[np.int64], earned: FloatArray, forecast: FloatArray,
          variance: FloatArray) -> list[Line]:  # fmt: skip
    half = NORMAL * np.sqrt(variance)
    return [
        Line(0, "earned", ticks, earned, earned, earned),
        Line(1, "forecast", ticks, forecast, forecast - half, forecast + half),
    ]


def reward_chart(table: RewardTable, settings: Settings) -> str:
    """Return the chart of rewards; "" before there are two ticks to compare."""
    if np.count_nonzero((table.seen > 0) & ~np.isnan(table.variance)) < 2:
        return ""
    each, summed = reward_lines(table)
    words = settings.words

    def panel(title: str, lines: list[Line]) -> Panel:
        def draw(axes: Any, scale: Any) -> None:
            set_scale(axes, scale)
            axes.set_xlabel(plain(words.tick))
            axes.set_ylabel(plain(words.reward))
            for line in lines:
                draw_line(axes, line)

        return Panel(title, draw, _data(lines, settings))

    return render_chart(
        Chart(
            name="rewards",
            title=f"{capitalised(words.reward)} against forecast",
            note=f"Forecasts are of the {words.many('pull')} that have a result, made with the "
            "list; 95 of 100 points fall into the bands if the model is right.",
            panels=[panel(f"{words.tick} by {words.tick}", each), panel("summed", summed)],
            columns=("line", words.reward),
            shared="",
            legend=each,
        )
    )


def entropy_chart(found: Sequence[Entropy], settings: Settings) -> str:
    """Return the chart of entropy over time; "" where there is none."""
    words = settings.words
    lines = [
        Line(number, each.kind, each.ticks, each.bits, each.bits, each.bits)
        for number, each in enumerate(found[:MOST_KINDS])
    ]
    if not lines or len(lines[0].times) < 2:
        return ""

    def draw(axes: Any, scale: Any) -> None:
        set_scale(axes, scale)
        axes.set_xlabel(plain(words.tick))
        axes.set_ylabel("bits")
        axes.set_ylim(0, 1.05 * max(float(line.mean.max()) for line in lines) or 1)
        for line in lines:
            draw_line(axes, line)

    return render_chart(
        Chart(
            name="entropy",
            title="What was still unknown",
            note="How many answers of yes or no (bits) were missing to know what "
            f"{words.many('arm')} are like, after each {words.tick}: the mean over those that were "
            "seen, by kind (of more than 30, evenly chosen ones). 0: all is known. Where chances "
            "may be any numbers there is no such count.",
            panels=[Panel("bits", draw, _data(lines, settings))],
            columns=("kind", "bits"),
            legend=lines,
            along=words.tick,
        )
    )


def belief_curve(
    posterior: ArmPosterior, sightings: Sequence[tuple[int, int]], until: int
) -> tuple[NDArray[np.int64], FloatArray]:
    """Chance of the top state at each tick from the first sighting on, by what is known today."""
    ticks, chances = [], []
    for at, (tick, state) in enumerate(sightings):
        following = sightings[at + 1][0] if at + 1 < len(sightings) else until + 1
        ticks.append(tick)
        chances.append(float(state == posterior.active.shape[1] - 1))
        ages = np.arange(1, following - tick)
        laws = beliefs_at(posterior.active, posterior.passive, np.full_like(ages, state), ages)
        ticks.extend((tick + ages).tolist())
        chances.extend(weighted(laws[:, :, -1], posterior.weights).tolist())
    return np.array(ticks, dtype=np.int64), np.array(chances)


def arm_charts(
    posterior: ArmPosterior,
    prior: ArmPosterior,
    sightings: Sequence[tuple[int, int]],
    until: int,
    settings: Settings,
    top: str,
) -> list[Markup]:
    """Return the charts of an arm: its sightings with the belief between them, its posterior.

    The prior of its kind is drawn behind the posterior.
    """
    recent = [(tick, state) for tick, state in sightings if tick > until - MOST_TICKS]
    charts = [_sightings_chart(posterior, recent, until, settings, top)] if recent else []
    charts.append(_posterior_chart(posterior, prior, settings.words))
    return [render_chart(chart) for chart in charts]


def _posterior_chart(posterior: ArmPosterior, prior: ArmPosterior, words: Words) -> Chart:
    alike = np.array_equal(posterior.active, posterior.passive)
    note = (
        f"Each circle is one way the {words.arm} may be, as large as it is likely; the cross is "
        "the mean, and spans 90% of it. Rings: the same before anything was seen."
        if in_the_plane(posterior)
        else "The chance of each change: its mean, and where it lies with 90% chance; pale bars: "
        "the same before anything was seen."
        + ("" if alike else f" Of each two, the upper one is with a {words.pull}.")
    )

    def draw(axes: Any, scale: Any) -> None:
        draw_posterior(axes, posterior, prior=prior)

    panel = Panel("what is believed", draw, [])
    if not in_the_plane(posterior):
        names = transition_names(posterior)
        left = LETTER * max(map(len, names))
        panel = replace(panel, left=left, height=max(panel.height, ROW * len(names)))
    return Chart("posterior", f"What the {words.arm} may be", note, [panel])


def _sightings_chart(
    posterior: ArmPosterior, sightings: Sequence[tuple[int, int]], until: int, settings: Settings,
    top: str,
) -> Chart:  # fmt: skip
    words = settings.words
    what = f"chance of {top}"
    ticks, chances = belief_curve(posterior, sightings, until)
    line = Line(0, what, ticks, chances, chances, chances)
    last = posterior.active.shape[1] - 1

    def draw(axes: Any, scale: Any) -> None:
        set_scale(axes, scale)
        draw_line(axes, line)
        axes.plot(
            [tick for tick, _ in sightings], [state / last for _, state in sightings],
            linestyle="none", marker="|", markersize=14, markeredgewidth=2, color=LIGHT["ink"],
        )  # fmt: skip
        axes.set_ylim(-0.08, 1.08)
        axes.set_xlabel(plain(words.tick))
        axes.set_ylabel(plain(what))

    return Chart(
        "sightings", "Sightings, and the belief between them", "Bars are states that were seen.",
        [Panel(what, draw, _data([line], settings))],
        columns=("line", "chance"), legend=[line], along=words.tick,
    )  # fmt: skip
