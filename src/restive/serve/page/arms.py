"""The list of arms, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from restive.learn.posterior import ArmPosterior
from restive.live.agent import LiveAgent
from restive.live.answers import ArmRow
from restive.live.explaining import Why
from restive.live.settings import LEAVE, Settings
from restive.pages.page import capitalised, render
from restive.serve.auth import Caller

__all__ = ["ArmShown", "Listed", "arm_page", "arms_page"]

ON_A_PAGE = 50
ORDERED = {"index": "priority", "age": "how long ago they were seen", "belief": "chance"}


class Cells(NamedTuple):
    """What list and page show of an arm, in words."""

    row: ArmRow
    state: str  # it was last seen in
    ago: str
    gains: str
    stays: str

    @classmethod
    def of(
        cls, row: ArmRow, settings: Settings, tick: int, posterior: ArmPosterior | None
    ) -> Cells:
        """Put an arm into words as it is known at a tick; one that waits has no posterior."""
        state = "never seen" if row.last_state is None else settings.state_text(row.last_state)
        if row.waiting:
            state = "joins next"
        if row.left is not None:
            state = "left"
        ago = "–" if row.last_tick is None else str(tick - row.last_tick)
        gains, stays = ("–", "–") if posterior is None else _believed(posterior)
        return cls(row, state, ago, gains, stays)


def _believed(found: ArmPosterior) -> tuple[str, str]:
    mean, low, high = (
        chains.active for chains in (found.mean(), found.quantile(0.05), found.quantile(0.95))
    )
    gains, stays = (f"{mean[at]:.2f} [{low[at]:.2f}, {high[at]:.2f}]" for at in ((0, -1), (-1, -1)))
    return gains, stays


@dataclass(frozen=True)
class Listed:
    """A page of the list, read in one turn of the agent."""

    settings: Settings
    top: str
    arms: list[Cells]
    num_arms: int
    by: str
    start: str | int | None
    kinds: list[str]

    @classmethod
    def of(cls, agent: LiveAgent, by: str, start: str | int | None) -> Listed:
        """Read it."""
        arms = [
            Cells.of(
                row,
                agent.settings,
                agent.tick,
                None if row.waiting else agent.posterior(row.name),
            )
            for row in agent.arms(start, ON_A_PAGE, by)
        ]
        return cls(
            agent.settings, agent.top_state, arms, agent.num_arms, by, start, list(agent.kinds)
        )


def arms_page(found: Listed, caller: Caller, note: str = "") -> str:
    """Return a page of the list, with a note on what was looked for."""
    after: str | int | None = None
    if len(found.arms) == ON_A_PAGE:
        by_name = found.by == "name"
        after = found.arms[-1].row.name if by_name else int(found.start or 0) + ON_A_PAGE
    words = found.settings.words
    headings = (
        (words.arm, "name"), ("kind", ""), ("last seen in", ""),
        (f"{words.many('tick')} ago", "age"), ("priority", "index"),
        (f"chance of {found.top}", "belief"), (words.many("pull"), "pulls"), ("gains", ""),
        ("stays", ""),
    )  # fmt: skip
    order = words.many("pull") if found.by == "pulls" else ORDERED.get(found.by, found.by)
    return render(
        "serve/page/arms.html",
        title=capitalised(words.many("arm")),
        heading=f"{words.count(found.num_arms, 'arm')}, by {order}",
        visitor=caller,
        here="/arms",
        headings=headings,
        words=words,
        top=found.top,
        bottom=found.settings.state_text(0),
        sorted_by=found.by,
        note=note,
        admin=caller.token.allows("admin"),
        clock=found.settings.clock,
        kinds=found.kinds,
        arms=found.arms,
        first=not found.start,
        after=after,
    )


@dataclass(frozen=True)
class ArmShown:
    """What the page of an arm shows, read in one turn of the agent."""

    settings: Settings
    top: str
    row: ArmRow
    why: Why | None  # None before the first decision, and for one who waits
    posterior: ArmPosterior | None
    prior: ArmPosterior  # of its kind
    history: list[dict[str, Any]]
    left_with: int | None  # tick of the result with which it left
    tick: int

    @classmethod
    def of(cls, agent: LiveAgent, name: str) -> ArmShown:
        """Read it."""
        row = agent.arm(name)
        posterior = None if row.waiting else agent.posterior(name)
        why = None if row.waiting or agent.tick < 0 else agent.explain(name)
        return cls(
            agent.settings, agent.top_state, row, why, posterior, agent.prior(name),
            agent.history(name), agent.left_with([name]).get(name), agent.tick,
        )  # fmt: skip

    @property
    def sightings(self) -> list[tuple[int, int]]:
        """Ticks and states that were seen."""
        return [(row["tick"], row["state"]) for row in self.history if row["state"] is not None]


def arm_page(found: ArmShown, charts: Sequence[str], caller: Caller) -> str:
    """Return the page of an arm."""
    row, settings = found.row, found.settings
    history = [
        (
            pull["tick"],
            pull["label"] or "–",
            _became(pull, settings, found.left_with),
            "–" if pull["expected"] is None else f"{pull['expected']:.3f}",
            "yes" if pull["audit"] else "",
        )
        for pull in reversed(found.history)
    ]
    return render(
        "serve/page/arm.html",
        title=row.name,
        heading=f"{capitalised(settings.words.arm)} {row.name}",
        visitor=caller,
        here="",
        words=settings.words,
        top=found.top,
        bottom=settings.state_text(0),
        why=found.why,
        arm=Cells.of(row, settings, found.tick, found.posterior),
        charts=charts,
        history=history,
        manages=caller.token.allows("admin") and not row.waiting,
        clock=settings.clock,
        leaves=caller.token.allows("admin") and row.left is None,
    )


def _became(pull: dict[str, Any], settings: Settings, left_with: int | None) -> str:
    """Say what became of a pull: what was seen, and whether that was late."""
    state, status = pull["state"], pull["status"]
    if state is None:
        return settings.outcome_text(LEAVE if pull["tick"] == left_with else status)
    late = {"late": " (late)", "superseded": " (too late to be used)"}.get(status, "")
    return settings.outcome_text(state) + late
