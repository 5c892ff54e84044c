"""The list of arms, and the page of one."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

from restive.learn.posterior import ArmPosterior
from restive.live.agent import LiveAgent
from restive.live.answers import ArmRow
from restive.pages.page import paragraph, section, table
from restive.serve.auth import Caller
from restive.serve.page.frame import arm_link, document, link, linked_table, number, query

__all__ = ["ArmShown", "Listed", "arm_page", "arms_page"]

ON_A_PAGE = 50
HEADINGS = (
    ("arm", "name"), ("kind", ""), ("last seen in", ""), ("ticks ago", "age"), ("index", "index"),
    ("chance of the top state", "belief"), ("pulls", "pulls"), ("gains", ""), ("stays", ""),
)  # fmt: skip
NOTE = (
    "The top state is the one with the highest number. Gains and stays: chance to go from state 0 "
    "to the top state, and to stay there; posterior mean and 90% interval."
)


@dataclass(frozen=True)
class Listed:
    """A page of the list, read in one turn of the agent."""

    rows: list[ArmRow]
    chains: list[tuple[str, str]]  # of each row: gains and stays
    tick: int
    arms: int
    by: str
    start: str | int | None

    @classmethod
    def of(cls, agent: LiveAgent, by: str, start: str | int | None) -> Listed:
        """Read it."""
        rows = agent.arms(start, ON_A_PAGE, by)
        chains = [
            ("–", "–") if row.waiting else _believed(agent.posterior(row.name)) for row in rows
        ]
        return cls(rows, chains, agent.tick, agent.num_arms, by, start)


def _believed(found: ArmPosterior) -> tuple[str, str]:
    mean, low, high = (
        chains.active for chains in (found.mean(), found.quantile(0.05), found.quantile(0.95))
    )
    gains, stays = (f"{mean[at]:.2f} [{low[at]:.2f}, {high[at]:.2f}]" for at in ((0, -1), (-1, -1)))
    return gains, stays


def arms_page(found: Listed, caller: Caller) -> str:
    """Return a page of the list."""
    header = [
        escape(text) if not by or by == found.by else link(query("/arms", by=by), text)
        for text, by in HEADINGS
    ]
    rows = [
        (
            arm_link(row.name), escape(row.kind), _state(row), _ago(row, found.tick),
            number(row.index), number(row.good), str(row.pulls), *believed,
        )
        for row, believed in zip(found.rows, found.chains, strict=True)
    ]  # fmt: skip
    find = (
        '<form method="get" action="/arms" class="find"><label>Name <input name="find" '
        'maxlength="200"></label><button>Find</button></form>'
    )
    heading = f"{found.arms:,} arms, by {found.by}"
    parts = [find, linked_table(header, rows, 3), paragraph(NOTE, "note"), _turning(found)]
    return document("Arms", heading, [section("Arms", *parts)], caller, "/arms")


def _turning(found: Listed) -> str:
    links = []
    if found.start:
        links.append(link(query("/arms", by=found.by), "First page"))
    if len(found.rows) == ON_A_PAGE:
        after: Any = found.rows[-1].name
        if found.by != "name":
            after = int(found.start or 0) + ON_A_PAGE
        links.append(link(query("/arms", by=found.by, after=after), "Next page"))
    return f'<p class="turning">{" ".join(links)}</p>'


def _state(row: ArmRow) -> str:
    if row.left is not None:
        return "left"
    if row.waiting:
        return "joins next"
    return "never seen" if row.last_state is None else str(row.last_state)


def _ago(row: ArmRow, tick: int) -> str:
    return "–" if row.last_tick is None else str(tick - row.last_tick)


@dataclass(frozen=True)
class ArmShown:
    """What the page of an arm shows, read in one turn of the agent."""

    row: ArmRow
    posterior: ArmPosterior | None
    prior: ArmPosterior  # of its kind
    history: list[dict[str, Any]]
    tick: int

    @classmethod
    def of(cls, agent: LiveAgent, name: str) -> ArmShown:
        """Read it."""
        row = agent.arm(name)
        posterior = None if row.waiting else agent.posterior(name)
        return cls(row, posterior, agent.prior(name), agent.history(name), agent.tick)

    @property
    def sightings(self) -> list[tuple[int, int]]:
        """Ticks and states that were seen."""
        return [(row["tick"], row["state"]) for row in self.history if row["state"] is not None]


def arm_page(found: ArmShown, charts: str, caller: Caller) -> str:
    """Return the page of an arm."""
    row = found.row
    believed = ("–", "–") if found.posterior is None else _believed(found.posterior)
    facts = [
        ("kind", row.kind), ("joined", f"tick {row.joined}"), ("last seen in", _state(row)),
        ("ticks ago", _ago(row, found.tick)), ("index", number(row.index)),
        ("chance of the top state", number(row.good)), ("pulls", str(row.pulls)),
        ("gains", believed[0]), ("stays", believed[1]),
    ]  # fmt: skip
    history = [
        (str(pull["tick"]), pull["label"] or "–", pull["status"],
         "–" if pull["state"] is None else str(pull["state"]), number(pull["expected"]),
         "yes" if pull["audit"] else "")
        for pull in reversed(found.history)
    ]  # fmt: skip
    parts = [
        section("Known", table(("", ""), facts), paragraph(NOTE, "note")),
        charts,
        section(
            "Pulls",
            table(("tick", "date", "what became of it", "state", "expected", "audit"), history)
            if history
            else paragraph("None yet."),
        ),
    ]
    return document(f"Arm {row.name}", f"Arm {row.name}", parts, caller)
