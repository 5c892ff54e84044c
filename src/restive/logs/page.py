"""A fitted log as a page: what was found, what the checks say, whether the chains help.

Its charts show arms by kind, and what was predicted against what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.logs.checks import REPLICATES, Check
from restive.logs.decision import FitDecision
from restive.logs.decision_words import Units, headline, sentences
from restive.logs.fitted import FittedLog
from restive.logs.forgetting_words import forgetting_rows, sentence_of_fit
from restive.logs.held_out import HeldOut, in_words
from restive.logs.kind_words import MUCH
from restive.logs.summary_page import ways_chart
from restive.pages.axes import Scale
from restive.pages.chart import Chart, Panel, render_chart, short
from restive.pages.looks import LIGHT, look
from restive.pages.page import render

__all__ = [
    "check_rows",
    "fit_page",
    "held_out_sentences",
    "model_verdict",
]

MOST_ARMS = 200  # rows of the table of arms
MOST_NAMED = 3  # checks that the heading names
HEIGHT = 350.0  # points: axes from 0 to 1 are square
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
MOST_CROSSES = 300  # arms drawn with their intervals
MOST_KINDS = 12
CHECK_HEADER = ("check", "verdict", "finding", "p", "s.d. off", "arms off at 5%", "what to do")


def fit_page(
    fitted: FittedLog, title: str, decision: FitDecision | None = None, units: Units | None = None
) -> str:
    """Return the whole page: what to do and what it is worth, then whether to trust that."""
    log, held_out, units = fitted.log, fitted.held_out, units or Units()
    advised = any(check.advice for check in fitted.checks)
    check_header = CHECK_HEADER if advised else CHECK_HEADER[:-1]
    charts = [] if held_out is None else [_predicted_chart(held_out)]
    if log.num_states == 2:
        charts.append(_arms_chart(fitted))
    brief = f"{log.in_brief}. States, worst first: {', '.join(log.states)}."
    arm_header, arms = arm_rows(fitted)
    verdict = model_verdict(fitted)
    return render(
        "logs/page.html",
        title=title,
        eyebrow=title,
        heading=verdict if decision is None else headline(fitted, decision, units),
        lead=[*([] if decision is None else sentences(fitted, decision, units)), brief],
        verdict=verdict,
        ways="" if decision is None else ways_chart(fitted, decision, units),
        notes=fitted.notes,
        kinds=[(name, shape.sentence) for name, shape in fitted.kind_shapes.items()],
        much=f"{100 * MUCH:.0f}",
        replicates=REPLICATES,
        check_header=check_header,
        checks=[row[: len(check_header)] for row in check_rows(fitted.checks)],
        helps=[] if held_out is None else held_out_sentences(held_out),
        held_out=[] if held_out is None else _held_out_rows(held_out),
        remember=sentence_of_fit(fitted) if fitted.checks else "",
        memories=forgetting_rows(fitted),
        charts=[render_chart(chart) for chart in charts],
        num_arms=log.num_arms,
        arm_header=arm_header,
        arm_numbers=range(2, len(arm_header)),
        arms=arms,
    )


def arm_rows(fitted: FittedLog) -> tuple[list[str], list[list[str]]]:
    """Return the first arms by their names, in words: states by name, intervals in brackets."""
    log, arms = fitted.log, fitted.arms
    states = log.states if log.state_names else [f"state {s}" for s in log.states]
    entries = [(s, t) for s in range(log.num_states) for t in range(1, log.num_states)]
    header = ["arm", "kind", "sightings", "last seen", "steps since"]
    header += [f"{states[t]} after {states[s]}" for s, t in entries]
    if fitted.controlled:
        header += [f"{states[t]} after {states[s]}, not pulled" for s, t in entries]
    rows = []
    for k in sorted(range(log.num_arms), key=lambda k: _by_nature(arms.names[k]))[:MOST_ARMS]:
        chances = [
            f"{arms.active[k, s, t]:.2f} ({arms.low[k, s, t]:.2f} to {arms.high[k, s, t]:.2f})"
            for s, t in entries
        ]
        if fitted.controlled:
            chances += [f"{arms.passive[k, s, t]:.2f}" for s, t in entries]
        last = states[int(arms.last_state[k])]
        counts = [f"{int(arms.sightings[k]):,}", last, f"{int(arms.elapsed[k]):,}"]
        rows.append([arms.names[k], arms.kinds[k], *counts, *chances])
    return header, rows


def _by_nature(name: str) -> list[tuple[int, int, str]]:
    """Sort as people do: P9 before P10."""
    parts = re.split(r"([0-9]+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts]


def model_verdict(fitted: FittedLog) -> str:
    """Say in one sentence whether chains describe the log, and whether they help."""
    failed = [check.name for check in fitted.checks if check.verdict == "fails"]
    described = "Chains describe this log as far as the checks can tell"
    if failed:
        named = ", ".join(failed)
        if len(failed) > MOST_NAMED:
            named = f"{len(failed)} of {len(fitted.checks)} checks fail"
        described = f"Chains do not describe all of this log ({named})"
    elif not fitted.checks:
        described = "Chains were fitted to this log"
    if fitted.held_out is None:
        return f"{described}."
    verdict = fitted.held_out.chain_against_coin.verdict
    joined = "and" if (verdict == "holds") == (not failed) else "but"
    helps = {
        "holds": "predict better than a coin per arm",
        "fails": "predict worse than a coin per arm",
        "undecided": "predict no better than a coin per arm, as far as can be told",
    }
    return f"{described}, {joined} {helps[verdict]}."


def check_rows(checks: Sequence[Check]) -> list[tuple[str, ...]]:
    """Return the table of checks, as text."""
    return [
        (
            check.name,
            check.verdict,
            _finding(check),
            "" if isnan(check.p) else f"{check.p:.3f}",
            "" if isnan(check.z) else f"{check.z:+.1f}",
            "" if not check.num_arms else _arms_off(check),
            check.advice,
        )
        for check in checks
    ]


def _finding(check: Check) -> str:
    """Return the finding; of memory, whose p is small where chains are right, what that means."""
    hoped = check.name == "memory" and check.verdict == "holds"
    return f"{check.finding}: the small p speaks for chains" if hoped else check.finding


def _arms_off(check: Check) -> str:
    expected = 0.05 * check.num_arms
    worst = f"; furthest {check.worst_arm}" if check.worst_arm else ""
    return f"{check.arms_off} of {check.num_arms} ({expected:.0f} expected){worst}"


def held_out_sentences(found: HeldOut) -> list[str]:
    """Say in words whether the chains help."""
    helps, second = found.chain_against_coin, found.second_against_chain
    words = {
        "holds": "The chains predict better than a coin per arm",
        "fails": "The chains predict worse than a coin per arm",
        "undecided": "The chains and a coin per arm predict equally well, as far as can be told",
    }
    second_words = {
        "holds": "chains of order 2 would be better still",
        "fails": "chains of order 2 are worse",
        "undecided": "chains of order 2 are no better for certain",
    }
    return [
        f"{words[helps.verdict]}: {in_words(helps.gain)} chance for what was seen "
        f"({found.num_sightings:,} sightings of the last 30% of the steps, fitted on the rest).",
        f"Against chains, {second_words[second.verdict]} ({in_words(second.gain)}).",
    ]


def _held_out_rows(found: HeldOut) -> list[tuple[str, str, str]]:
    return [
        ("a coin per arm", f"{found.coin:.4f}", ""),
        ("the chains", f"{found.chain:.4f}", _gain(found.chain_against_coin)),
        ("chains of order 2", f"{found.second:.4f}", _gain(found.second_against_chain)),
    ]


def _gain(found: Any) -> str:
    return f"{found.gain:+.4f} ± {1.96 * found.stderr:.4f}"


def _arms_chart(fitted: FittedLog) -> Chart:
    """p01 and p11 of all arms with their intervals: a panel per kind."""
    own = [np.flatnonzero(fitted.log.kind_of == kind) for kind in range(len(fitted.log.kinds))]
    largest = sorted(range(len(own)), key=lambda kind: -len(own[kind]))[:MOST_KINDS]
    every = max(-(-sum(len(own[kind]) for kind in largest) // MOST_CROSSES), 1)
    note = (
        "Chance of a good state after a bad one (p01) and after a good one (p11): posterior means "
        "with 90% intervals."
    )
    if len(largest) < len(own):
        note += f" The {MOST_KINDS} kinds with the most arms, of {len(own):,}."
    if every > 1:
        note += f" One arm in {every:,} is drawn."
    panels = [
        _arms_panel(fitted, kind, own[kind], own[kind][::every], titled=len(own) > 1)
        for kind in sorted(largest)
    ]
    return Chart(
        "p01-p11", "How arms move", note, panels, ("arm", "p11"), along="p01",
        dotted="no memory: p01 = p11",
    )  # fmt: skip


def _arms_panel(
    fitted: FittedLog, kind: int, every: NDArray[np.int64], drawn: NDArray[np.int64], titled: bool
) -> Panel:
    arms = fitted.arms
    counted = f"{len(every):,} arm{'s' if len(every) > 1 else ''}"
    title = f"{fitted.log.kinds[kind]}, {counted}" if titled else counted
    data = [
        {
            "name": arms.names[k],
            **{key: short([part[k, s, 1]]) for key, part, s in (
                ("x", arms.active, 0), ("mean", arms.active, 1), ("lower", arms.low, 1),
                ("upper", arms.high, 1),
            )},
        }
        for k in drawn.tolist()
    ]  # fmt: skip
    return Panel(title, partial(_draw_arms, fitted, kind, drawn), data, HEIGHT)


def _draw_arms(
    fitted: FittedLog, kind: int, drawn: NDArray[np.int64], axes: Any, scale: Scale
) -> None:
    arms = fitted.arms
    x, y = (arms.active[drawn, s, 1] for s in (0, 1))
    errors = [
        [np.maximum(at - arms.low[drawn, s, 1], 0), np.maximum(arms.high[drawn, s, 1] - at, 0)]
        for s, at in enumerate((x, y))
    ]
    _unit_axes(axes, "p01", "p11")
    axes.errorbar(
        x, y, xerr=errors[0], yerr=errors[1], fmt=look(kind).marker, color=look(kind).colour,
        markersize=4, elinewidth=0.6,
    )  # fmt: skip


def _predicted_chart(found: HeldOut) -> Chart:
    """Chances that the chains gave to the best state, and how often it came."""
    there = found.in_bin > 0
    x, y, count = found.predicted[there], found.seen[there], found.in_bin[there]
    half = 1.96 * np.sqrt(np.maximum(y * (1 - y), 0.25 / count) / count)
    low, high = np.maximum(y - half, 0), np.minimum(y + half, 1)

    def draw(axes: Any, scale: Scale) -> None:
        _unit_axes(axes, "predicted", "seen")
        axes.errorbar(
            x, y, [y - low, high - y], fmt=look(0).marker, color=look(0).colour, elinewidth=1.4
        )

    data = [
        {"name": "the chains", "x": short(x), "mean": short(y), "lower": short(low),
         "upper": short(high)}
    ]  # fmt: skip
    note = (
        "Sightings that were held out, in groups of like chances of the best state; 95% intervals "
        "of how often it came."
    )
    panel = Panel(f"{int(count.sum()):,} sightings", draw, data, HEIGHT)
    return Chart(
        "predicted", "Predicted against seen", note, [panel], ("predicted by", "seen"),
        along="predicted", dotted="seen as predicted",
    )  # fmt: skip


def _unit_axes(axes: Any, x: str, y: str) -> None:
    """Set up axes from 0 to 1, with their diagonal."""
    axes.plot([0, 1], [0, 1], color=LIGHT["mute"], linestyle=":", linewidth=1.2)
    axes.set(xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_ticks(TICKS, [f"{tick:g}" for tick in TICKS])
