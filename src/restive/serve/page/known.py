"""What is known by kind of arms, and how learning stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restive.live.agent import LiveAgent
from restive.live.learned import Entropy, FloatArray, KnownKind, Learning
from restive.live.status import Headroom
from restive.pages.page import paragraph, section, table
from restive.serve.auth import Caller
from restive.serve.page.frame import document, number

__all__ = ["Known", "known_page"]


@dataclass(frozen=True)
class Known:
    """What the page shows, read in one turn of the agent."""

    kinds: list[KnownKind]
    learning: Learning
    entropy: list[Entropy]
    headroom: Headroom | None
    events: int

    @classmethod
    def of(cls, agent: LiveAgent) -> Known:
        """Read it."""
        return cls(
            agent.known(),
            agent.learning(),
            agent.entropy(),
            agent.headroom(),
            agent.status().events,
        )


def known_page(found: Known, chart: str, caller: Caller) -> str:
    """Return the page."""
    seen, arms = (sum(getattr(kind, key) for kind in found.kinds) for key in ("seen", "arms"))
    header = ("kind", "arms", "seen", "gains", "stays", "chains left")
    rows = [
        (
            kind.kind, f"{kind.arms:,}", f"{kind.seen:,}", _spread(kind.gains),
            _spread(kind.stays), f"{_middle(kind.effective)} of {kind.chains:,}",
        )
        for kind in found.kinds
    ]  # fmt: skip
    parts = [
        section(
            "By kind",
            table(header, rows, range(1, 6)),
            paragraph(
                "Gains and stays: chance to go from state 0 to the one with the highest number, "
                "and to stay there; the middle 90% of the posterior means of arms that were seen. "
                "Chains left: the number of equally likely chains that would be as uncertain, for "
                "the median arm. Of more than 100 arms, evenly chosen ones are looked at.",
                "note",
            ),
        ),
        section("Learning", *_learning(found.learning)),
        chart,
        section("Room left", *_headroom(found.headroom)),
    ]
    heading = f"{seen:,} of {arms:,} arms have been seen"
    return document("What is known", heading, parts, caller, "/known")


def _spread(values: FloatArray) -> str:
    if not len(values):
        return "–"
    low, high = np.quantile(values, [0.05, 0.95])
    return f"{low:.2f} to {high:.2f}"


def _middle(values: FloatArray) -> str:
    return f"{np.median(values):.1f}" if len(values) else "–"


def _learning(found: Learning) -> list[str]:
    if found.episode == 0:
        return [paragraph("Learning begins with the first decision.")]
    rows = [
        ("episode", str(found.episode)),
        ("began", f"tick {found.began}"),
        ("ticks so far", str(found.length)),
        ("why the one before ended", found.last_ended),
        ("drawn system against what is believed", number(found.distance)),
    ]
    note = (
        "In an episode, decisions are the best for one system, drawn from what is believed. "
        "The last number is the mean difference of their transition probabilities: it shrinks as "
        "arms become known."
    )
    return [table(("", ""), rows), paragraph(note, "note")]


def _headroom(found: Headroom | None) -> list[str]:
    if found is None:
        return [paragraph("These arms pay without being pulled, which nobody sees here.")]
    rows = [
        ("earned a tick", number(found.earned)),
        ("foreseen for the same pulls", number(found.foreseen)),
        ("bound, if the model is right", number(found.bound)),
    ]
    if found.earned is not None and found.bound > 0:
        rows.append(("share of the bound", f"{found.earned / found.bound:.0%}"))
    note = (
        f"Earned: in the last {found.ticks} ticks that are over, by pulls that were seen, as if "
        "all had been. Bound: if every arm were what is believed of it on average, no choice of "
        "arms would earn more a tick in the long run; perhaps none earns as much. Of more than 100 "
        "arms of a kind, evenly chosen ones stand for the others."
    )
    return [table(("", ""), rows), paragraph(note, "note")]
