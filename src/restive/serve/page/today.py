"""Today: what to pull, where results go, alarms, and what was earned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from restive.live.agent import LiveAgent
from restive.live.answers import Decision, Status
from restive.live.status import status_lines
from restive.pages.page import render
from restive.serve.auth import Caller

__all__ = ["Today", "today_page"]

MOST_ROWS = 1000
FEW = 20  # arms that are listed without being asked for


@dataclass(frozen=True)
class Today:
    """What the page shows, read in one turn of the agent."""

    status: Status
    decision: Decision | None
    kinds: list[str]
    results: dict[str, int | str]
    rewards: list[dict[str, Any]]

    @classmethod
    def of(cls, agent: LiveAgent) -> Today:
        """Read it."""
        decision = agent.decision()
        arms = () if decision is None else decision.arms
        return cls(
            agent.status(),
            decision,
            agent.kinds_of(arms),
            {} if decision is None else agent.results(decision.tick),
            agent.rewards(),
        )


def today_page(found: Today, chart: str, caller: Caller) -> str:
    """Return the page."""
    status, decision = found.status, found.decision
    pulls = [] if decision is None else _pulls(found, decision)
    return render(
        "serve/page/today.html",
        title="Today",
        heading=_verdict(status),
        visitor=caller,
        here="/",
        status=status,
        decision=decision,
        acts=caller.token.allows("act"),
        few=FEW,
        pulls=pulls,
        more=0 if decision is None else len(decision.arms) - len(pulls),
        chart=chart,
        lines=[line for line in status_lines(status) if not line.startswith("ALARM")],
    )


def _verdict(status: Status) -> str:
    if status.tick < 0:
        return "Nothing has been decided yet"
    when = f" ({status.label})" if status.label else ""
    done = f"{status.decided - status.open} of {status.decided} results are in"
    rings = len(status.alarms)
    alarm = "" if not rings else f"; {rings} alarm{'s' if rings > 1 else ''}"
    return f"Tick {status.tick}{when}: {done}{alarm}"


def _pulls(found: Today, decision: Decision) -> list[tuple[str, str, str, float, float | None]]:
    """Return the rows: arm, kind, result, expected reward, index."""
    audit = set(decision.audit)
    return [
        (
            arm,
            kind,
            str(found.results.get(arm, "open")) + (" (audit)" if arm in audit else ""),
            mean,
            index,
        )
        for arm, kind, mean, index in zip(
            decision.arms[:MOST_ROWS], found.kinds, decision.expected, decision.index, strict=False
        )
    ]
