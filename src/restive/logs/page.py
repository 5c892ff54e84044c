"""The page of a fitted log: what was found, what the checks say, and pictures.

What a page is made of comes from `style`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any

from restive.logs.checks import REPLICATES, Check
from restive.logs.fit import FittedLog
from restive.logs.held_out import HeldOut, in_words
from restive.logs.pictures import arms_chart, predicted_chart
from restive.style.chart import chart
from restive.style.page import page, paragraph, section, table

__all__ = ["CHECK_HEADER", "check_rows", "fit_page", "held_out_sentences"]

MOST_ARMS = 200  # rows of the table of arms
MOST_NAMED = 3  # checks that the heading names
CHECK_HEADER = ("check", "verdict", "finding", "p", "s.d. off", "arms off at 5%", "what to do")


def fit_page(fitted: FittedLog, title: str) -> str:
    """Return the whole page."""
    log = fitted.log
    about = f"{log.in_brief}. States, worst first: {', '.join(log.states)}."
    notes = [paragraph(note, "note") for note in fitted.notes]
    parts = [section("Notes", *notes)] if notes else []
    if fitted.checks:
        parts.append(_checks_section(fitted))
    if fitted.held_out is not None:
        parts += [_held_out_section(fitted.held_out), chart(predicted_chart(fitted.held_out))]
    if log.num_states == 2:
        parts.append(chart(arms_chart(fitted)))
    parts.append(_arms_section(fitted))
    return page(title, title, _verdict(fitted), [about], parts)


def _verdict(fitted: FittedLog) -> str:
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
    advised = any(check.advice for check in fitted.checks)
    header = CHECK_HEADER if advised else CHECK_HEADER[:-1]
    rows = [row[: len(header)] for row in check_rows(fitted.checks)]
    return section(
        "Do chains describe it?",
        paragraph(
            "Each line is a number computed from the log and from "
            f"{REPLICATES} logs that the fitted chains would have left, seen at the same moments. "
            "p is the share of these that are as far out, over all arms or arm by arm; at 0.01 a "
            "check fails. An arm is off at 5% if it is further out than in 95% of these logs."
        ),
        table(header, rows, numbers=(3, 4), stacked=True),
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
    )


def _gain(found: Any) -> str:
    return f"{found.gain:+.4f} ± {1.96 * found.stderr:.4f}"


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
    if shown < len(arms):
        parts.append(
            paragraph(f"The first {shown} of {len(arms):,} arms; all are in arms.csv.", "note")
        )
    parts.append(table(arms.columns, rows, numbers=range(2, len(arms.columns))))
    return section("The arms", *parts)
