"""One page for a manager: a headline, three sentences and one picture, in the manager's units."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from restive.logs.decision import FitDecision
from restive.logs.decision_words import Units, headline, seen_in_brief, sentences
from restive.logs.fitted import FittedLog
from restive.pages.axes import Scale
from restive.pages.chart import Chart, Panel, render_chart, short
from restive.pages.forest import Row, draw_forest, forest_height, forest_margins
from restive.pages.page import render

if TYPE_CHECKING:
    from markupsafe import Markup

__all__ = ["summary_page", "ways_chart"]

NEAR = 0.5  # of the highest end of an interval: lowest ends beyond are far from zero
MARGIN = 0.06  # of the axis, beyond the outermost interval


def summary_page(fitted: FittedLog, found: FitDecision, units: Units, title: str) -> str:
    """Return the whole page."""
    return render(
        "logs/summary.html",
        title=title,
        eyebrow=title,
        heading=headline(fitted, found, units),
        lead=sentences(fitted, found, units),
        chart=ways_chart(fitted, found, units),
        about=f"From {seen_in_brief(fitted, units)}. fit.html has what is behind it.",
    )


def ways_chart(fitted: FittedLog, found: FitDecision, units: Units) -> Markup | str:
    """Return what three ways of choosing arms earn, as a chart; nothing where that is not known."""
    if not found.earned or fitted.is_guessed:
        return ""
    names = {
        "by index": f"{units.pulls} by priority",
        "always the same": f"always the same {units.arms}",
        "in turn": f"{units.pulls} in turn",
    }
    rows = [
        Row(
            at, names[way], found.num_steps, earned.mean, earned.low, earned.high,
            f"{earned.mean:.3g}\n({earned.low:.3g} to {earned.high:.3g})",
        )
        for at, (way, earned) in enumerate(found.earned.items())
    ]  # fmt: skip

    low, high = min(row.lower for row in rows), max(row.upper for row in rows)
    apart = low > NEAR * high  # from zero the rows would look alike

    def draw(axes: Any, scale: Scale) -> None:
        draw_forest(axes, rows, scale, f"{units.reward} a {units.step}")
        if apart:
            axes.set_xlim(low - MARGIN * (high - low), high + MARGIN * (high - low))

    note = (
        f"{found.num_pulls:,} {units.pulls} a {units.step}, for {found.num_steps:,} of them after "
        "the log's end. Bars hold 95% of simulations of what may come; those of all rows have "
        "the same luck, so that differences are surer than the bars look."
    )
    note += " The axis does not begin at 0." if apart else ""
    left, right = forest_margins(rows)
    panel = Panel("", draw, _data(rows), forest_height(rows), left, 0, right)
    chart = Chart(
        "ways", "Three ways to choose", note, [panel], ("way", f"{units.reward} a {units.step}"),
        shared="x",
    )  # fmt: skip
    return render_chart(chart)


def _data(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "name": row.name, "x": [row.time], "mean": short([row.value]),
            "lower": short([row.lower]), "upper": short([row.upper]),
        }
        for row in rows
    ]  # fmt: skip
