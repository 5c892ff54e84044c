"""The page of a fitted log: what was found, what the checks say, and pictures.

What a page is made of comes from `style`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from math import isnan
from typing import Any
from xml.etree import ElementTree

import numpy as np

from restive.logs.checks import REPLICATES, Check
from restive.logs.fit import FittedLog
from restive.logs.held_out import HeldOut, in_words
from restive.style.drawing import page_svg
from restive.style.looks import LIGHT, look, matplotlib_figures, settings
from restive.style.page import page, paragraph, section, table

__all__ = ["CHECK_HEADER", "check_rows", "fit_page", "held_out_sentences"]

SIZE = (5.4, 4.4)  # inches of a picture
MOST_ARMS = 200  # rows of the table of arms
MOST_CROSSES = 300  # arms drawn with their intervals
CHECK_HEADER = ("check", "verdict", "finding", "p", "s.d. off", "arms off at 5%", "what to do")


def fit_page(fitted: FittedLog, title: str) -> str:
    """Return the whole page."""
    matplotlib_figures()
    log = fitted.log
    about = (
        f"{log.num_sightings:,} sightings of {log.num_arms:,} arms in {log.num_steps:,} "
        f"steps, {log.span}. States, worst first: {', '.join(log.states)}."
    )
    notes = [paragraph(note, "note") for note in fitted.notes]
    parts = [section("Notes", *notes)] if notes else []
    if fitted.checks:
        parts.append(_checks_section(fitted))
    if fitted.held_out is not None:
        parts.append(_held_out_section(fitted.held_out))
    parts.append(_arms_section(fitted))
    return page(title, title, _verdict(fitted), [about], parts)


def _verdict(fitted: FittedLog) -> str:
    """Say in one sentence whether chains describe the log, and whether they help."""
    failed = [check.name for check in fitted.checks if check.verdict == "fails"]
    described = "Chains describe this log as far as the checks can tell"
    if failed:
        described = f"Chains do not describe all of this log: {', '.join(failed)}"
    elif not fitted.checks:
        described = "Chains were fitted to this log"
    if fitted.held_out is None:
        return f"{described}."
    return f"{described}. {held_out_sentences(fitted.held_out)[0]}"


def check_rows(checks: Sequence[Check]) -> list[tuple[str, ...]]:
    """Return the table of checks, as text."""
    return [
        (
            check.name,
            check.verdict,
            check.finding,
            "" if isnan(check.p) else f"{check.p:.3f}",
            "" if isnan(check.z) else f"{check.z:+.1f}",
            "" if not check.num_arms else _arms_off(check),
            check.advice,
        )
        for check in checks
    ]


def _arms_off(check: Check) -> str:
    expected = 0.05 * check.num_arms
    worst = f"; furthest {check.worst_arm}" if check.worst_arm else ""
    return f"{check.arms_off} of {check.num_arms} ({expected:.0f} expected){worst}"


def _checks_section(fitted: FittedLog) -> str:
    return section(
        "Do chains describe it?",
        paragraph(
            "Each line is a number computed from the log and from "
            f"{REPLICATES} logs that the fitted chains would have left, seen at the same moments. "
            "p is the share of these that are as far out, over all arms or arm by arm; at 0.01 a "
            "check fails."
        ),
        table(CHECK_HEADER, check_rows(fitted.checks), numbers=(3, 4), stacked=True),
    )


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


def _held_out_section(found: HeldOut) -> str:
    rows = [
        ("a coin per arm", f"{found.coin:.4f}", ""),
        ("the chains", f"{found.chain:.4f}", _gain(found.chain_against_coin)),
        ("chains of order 2", f"{found.second:.4f}", _gain(found.second_against_chain)),
    ]
    return section(
        "Does it help?",
        *(paragraph(sentence) for sentence in held_out_sentences(found)),
        table(("predicted by", "mean log chance", "gain on the line above"), rows, numbers=(1, 2)),
        _picture(
            _draw_predicted(found),
            "predicted",
            "Chance of the best state that the chains gave, and how often it came; 95% bars. On "
            "the line they are right.",
        ),
    )


def _picture(draw: Any, name: str, caption: str) -> str:
    """Return a drawing as a figure of the page."""
    with settings():
        figure = matplotlib_figures().Figure(figsize=SIZE, layout="constrained")
        draw(figure.subplots())
        drawn = ElementTree.tostring(page_svg(figure, name), encoding="unicode")
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>"


def _gain(found: Any) -> str:
    return f"{found.gain:+.4f} ± {1.96 * found.stderr:.4f}"


def _draw_predicted(found: HeldOut) -> Any:
    def draw(axes: Any) -> None:
        there = found.in_bin > 0
        x, y, n = found.predicted[there], found.seen[there], found.in_bin[there]
        half = 1.96 * np.sqrt(np.maximum(y * (1 - y), 0.25 / n) / n)
        axes.plot([0, 1], [0, 1], color=LIGHT["mute"], linestyle=":", linewidth=1)
        axes.errorbar(x, y, half, fmt="o", color=look(0).colour, capsize=2, markersize=4)
        axes.set_xlabel("predicted")
        axes.set_ylabel("seen")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)

    return draw


def _arms_section(fitted: FittedLog) -> str:
    arms = fitted.arms
    shown = min(len(arms), MOST_ARMS)
    rows = [
        tuple(f"{x:.3f}" if isinstance(x, float) else str(x) for x in row)
        for row, _ in zip(arms.rows(), range(shown), strict=False)
    ]
    parts = [
        paragraph(
            "Posterior means and 90% intervals; elapsed counts steps from the last sighting to the "
            "first step after the log."
        )
    ]
    if fitted.log.num_states == 2:
        parts.append(
            _picture(
                _draw_arms(fitted),
                "arms",
                "Chance of a good state after a bad one (p01) and after a good one (p11), with 90% "
                "intervals. Arms on the diagonal have no memory.",
            )
        )
    if shown < len(arms):
        parts.append(
            paragraph(f"The first {shown} of {len(arms):,} arms; all are in arms.csv.", "note")
        )
    parts.append(table(arms.columns, rows, numbers=range(2, len(arms.columns))))
    return section("The arms", *parts)


def _draw_arms(fitted: FittedLog) -> Any:
    def draw(axes: Any) -> None:
        arms = fitted.arms
        every = max(-(-len(arms) // MOST_CROSSES), 1)
        axes.plot([0, 1], [0, 1], color=LIGHT["mute"], linestyle=":", linewidth=1)
        for kind, name in enumerate(fitted.log.kinds):
            own = np.flatnonzero(fitted.log.kind_of == kind)[::every]
            x, y = arms.active[own, 0, 1], arms.active[own, 1, 1]
            low, high = arms.low[own], arms.high[own]
            axes.errorbar(
                x, y,
                xerr=[np.maximum(x - low[:, 0, 1], 0), np.maximum(high[:, 0, 1] - x, 0)],
                yerr=[np.maximum(y - low[:, 1, 1], 0), np.maximum(high[:, 1, 1] - y, 0)],
                fmt=look(kind).marker, color=look(kind).colour, markersize=3,
                linewidth=0.5, alpha=0.8, label=name.replace("$", r"\$"),
            )  # fmt: skip
        axes.set_xlabel("p01")
        axes.set_ylabel("p11")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        if len(fitted.log.kinds) > 1:
            axes.legend(fontsize=8, frameon=False)

    return draw
