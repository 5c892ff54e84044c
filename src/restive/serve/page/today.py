"""Today: what to pull, where results go, alarms, and what was earned."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from restive.live.agent import LiveAgent
from restive.live.answers import Alarm, Decision, Status
from restive.live.status import status_lines
from restive.pages.page import folded, paragraph, section
from restive.serve.auth import Caller
from restive.serve.page.frame import arm_link, document, linked_table, number

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
    status = found.status
    acts = caller.token.allows("act")
    parts = [_now(found, acts), _alarms(status.alarms, acts)]
    if chart:
        parts.append(chart)
    lines = [line for line in status_lines(status) if not line.startswith("ALARM")]
    parts.append(section("In numbers", "<ul>", *(f"<li>{escape(x)}</li>" for x in lines), "</ul>"))
    return document("Today", _verdict(status), [f'<div data-events="{status.events}">', *parts,
                                                "</div>"], caller, "/")  # fmt: skip


def _verdict(status: Status) -> str:
    if status.tick < 0:
        return "Nothing has been decided yet"
    when = f" ({status.label})" if status.label else ""
    done = f"{status.decided - status.open} of {status.decided} results are in"
    rings = len(status.alarms)
    alarm = "" if not rings else f"; {rings} alarm{'s' if rings > 1 else ''}"
    return f"Tick {status.tick}{when}: {done}{alarm}"


def _now(found: Today, acts: bool) -> str:
    parts = []
    decision = found.decision
    if decision is not None:
        count = f"{len(decision.arms)} arms to pull"
        parts.append(
            f'<p><a class="button" href="/decisions/{decision.tick}.csv" download>'
            f"Download {count}</a></p>"
        )
    if acts:
        parts.append(_drop() if decision is not None else "")
        parts.append(
            '<form class="decide"><button>Decide</button> '
            "<span>which arms to pull now; within a tick the answer stays the same</span></form>"
        )
    parts.append('<output aria-live="polite"></output>')
    if decision is not None:
        parts.append(
            folded("Arms to pull", _pulls(found, decision), unfolded=len(decision.arms) <= FEW)
        )
    return section("Today", *parts)


def _drop() -> str:
    return (
        '<form class="drop"><label><b>Results:</b> drop a CSV file here, or choose one '
        '<input type="file" accept=".csv,text/csv"></label>'
        '<p class="note">Columns: arm, and state or outcome; tick or date for others than the open '
        "one. The same file twice is harmless.</p></form>"
    )


def _pulls(found: Today, decision: Decision) -> str:
    audit = set(decision.audit)
    rows = [
        (
            arm_link(arm),
            escape(kind),
            escape(str(found.results.get(arm, "open"))) + (" (audit)" if arm in audit else ""),
            number(mean),
            number(index),
        )
        for arm, kind, mean, index in zip(
            decision.arms[:MOST_ROWS], found.kinds, decision.expected, decision.index, strict=False
        )
    ]
    more = len(decision.arms) - len(rows)
    note = paragraph(f"and {more:,} more, in the file to download", "note") if more > 0 else ""
    return linked_table(("arm", "kind", "result", "expected", "index"), rows, 3) + note


def _alarms(alarms: tuple[Alarm, ...], acts: bool) -> str:
    if not alarms:
        return section("Alarms", paragraph("None.", "holds"))
    return section("Alarms", *(_alarm(alarm, acts) for alarm in alarms))


def _alarm(alarm: Alarm, acts: bool) -> str:
    form = (
        f'<form class="acknowledge" data-alarm="{alarm.seq}"><label>What was found '
        '<input name="note" required maxlength="10000"></label><button>Acknowledge</button></form>'
    )
    return (
        f'<div class="alarm"><p><b class="fails">{escape(alarm.name)}</b> (tick {alarm.tick}): '
        f"{escape(alarm.sentence)}</p>{form if acts else ''}</div>"
    )
