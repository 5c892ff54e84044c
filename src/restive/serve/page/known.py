"""What is known by kind of arms, and how learning stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restive.live.acts.forgetting import said_of_memory
from restive.live.agent import LiveAgent
from restive.live.settings import Settings
from restive.live.told.answers import Status
from restive.live.told.learned import Entropy, FloatArray, KnownKind, Learning
from restive.live.told.status import Headroom
from restive.pages.page import render
from restive.serve.auth import Caller

__all__ = ["Known", "known_page"]


@dataclass(frozen=True)
class Known:
    """What the page shows, read in one turn of the agent."""

    settings: Settings
    top: str
    kinds: list[KnownKind]
    learning: Learning
    entropy: list[Entropy]
    headroom: Headroom | None
    status: Status

    @classmethod
    def of(cls, agent: LiveAgent) -> Known:
        """Read it."""
        return cls(
            agent.settings,
            agent.top_state,
            agent.known(),
            agent.learning(),
            agent.entropy(),
            agent.headroom(),
            agent.status(),
        )


def known_page(found: Known, chart: str, caller: Caller) -> str:
    """Return the page."""
    words = found.settings.words
    seen, arms = (sum(getattr(kind, key) for kind in found.kinds) for key in ("seen", "arms"))
    kinds = [
        (
            kind.kind, f"{kind.arms:,}", f"{kind.seen:,}", _spread(kind.gains),
            _spread(kind.stays), f"{_middle(kind.effective)} of {kind.chains:,}",
        )
        for kind in found.kinds
    ]  # fmt: skip
    return render(
        "serve/page/known.html",
        title="What is known",
        heading=f"Seen so far: {seen:,} of {words.count(arms, 'arm')}",
        visitor=caller,
        here="/known",
        words=words,
        top=found.top,
        bottom=found.settings.state_text(0),
        kinds=kinds,
        learning=found.learning,
        chart=chart,
        headroom=found.headroom,
        share=_share(found.headroom),
        remembered=[
            said_of_memory(found.settings),
            *(told.text(words) for told in found.status.forgotten),
        ],
        fades=found.status.forget_after is not None,
        manages=caller.token.allows("admin"),
    )


def _spread(values: FloatArray) -> str:
    if not len(values):
        return "–"
    low, high = np.quantile(values, [0.05, 0.95])
    return f"{low:.2f} to {high:.2f}"


def _middle(values: FloatArray) -> str:
    return f"{np.median(values):.1f}" if len(values) else "–"


def _share(headroom: Headroom | None) -> str:
    """Return how much of the bound is earned, "" where that is not known."""
    if headroom is None or headroom.earned is None or headroom.bound <= 0:
        return ""
    return f"{headroom.earned / headroom.bound:.0%}"
