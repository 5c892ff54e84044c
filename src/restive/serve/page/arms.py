"""The list of arms, and the page of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from restive.learn.posterior import ArmPosterior
from restive.live.agent import LiveAgent
from restive.live.settings import LEAVE, REFUSE, UNSEEN, Settings
from restive.live.told.answers import Act, ArmRow
from restive.live.told.explaining import Why
from restive.pages.page import capitalised, render
from restive.serve.auth import Caller
from restive.serve.page.answers import Answer, Said, answer_of, may_undo

__all__ = ["ON_A_PAGE", "ArmShown", "Listed", "arm_page", "arms_page"]

ON_A_PAGE = 50
NOTHING = Said()
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
        state = "never seen" if row.last_state is None else settings.outcome_text(row.last_state)
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
    def of(
        cls, agent: LiveAgent, by: str, start: str | int | None = None,
        names: Sequence[str] | None = None,
    ) -> Listed:  # fmt: skip
        """Read it, or only arms of some names."""
        rows = agent.arms(start, ON_A_PAGE, by) if names is None else [*map(agent.arm, names)]
        arms = [
            Cells.of(
                row,
                agent.settings,
                agent.tick,
                None if row.waiting else agent.posterior(row.name),
            )
            for row in rows
        ]
        return cls(
            agent.settings, agent.top_state, arms, agent.num_arms, by, start, list(agent.kinds)
        )


def arms_page(
    found: Listed, caller: Caller, note: str = "", said: Said = NOTHING,
    typed: tuple[str, str] = ("", ""),
) -> str:  # fmt: skip
    """Return a page of the list, with a note on what was looked for.

    `typed` are name and kind of who could not join.
    """
    after: str | int | None = None
    if len(found.arms) == ON_A_PAGE and not note:
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
        said=said.text,
        wrong=said.wrong,
        typed=typed,
        admin=caller.token.allows("admin"),
        clock=found.settings.clock,
        kinds=found.kinds,
        arms=found.arms,
        first=not found.start,
        after=after,
    )


class PullTold(NamedTuple):
    """A pull of an arm, what became of it, and how that can be put right."""

    when: str
    answer: Answer
    late: str  # whether it came late
    wrong: bool  # whether it is one that a correction can put right
    expected: str
    audit: bool


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
    told: list[PullTold]  # the newest first
    last_act: Act | None
    clients: frozenset[str]  # names of tokens
    tick: int
    uncalled: bool  # on the list, though they have left, and no result has come

    @classmethod
    def of(cls, agent: LiveAgent, name: str) -> ArmShown:
        """Read it."""
        row = agent.arm(name)
        posterior = None if row.waiting else agent.posterior(name)
        why = None if row.waiting or agent.tick < 0 else agent.explain(name)
        history = agent.history(name)
        return cls(
            agent.settings, agent.top_state, row, why, posterior, agent.prior(name), history,
            _told(agent, name, history), agent.last_act(),
            frozenset(one.name for one in agent.tokens()), agent.tick,
            agent.tick >= 0 and name in agent.uncalled(agent.tick),
        )  # fmt: skip

    @property
    def sightings(self) -> list[tuple[int, int]]:
        """Ticks and states that were seen."""
        return [(row["tick"], row["state"]) for row in self.history if row["state"] is not None]


def _told(agent: LiveAgent, name: str, history: Sequence[dict[str, Any]]) -> list[PullTold]:
    """Return the pulls of an arm with what may be said of them, the newest first."""
    settings, size, now = agent.settings, agent.num_states(name), agent.tick
    changeable, left = agent.changeable(), agent.left_with([name]).get(name)
    found = []
    for pull in reversed(history):
        tick, state, status = pull["tick"], pull["state"], pull["status"]
        result = status if state is None else state
        if tick == left:
            result = LEAVE
        waits = status == "open" or (status == UNSEEN and not pull["told"] and tick != left)
        can = pull["expected"] is not None  # chosen by somebody else: only the file says it
        if settings.missing == REFUSE and waits and tick < now:
            can = False
        own = answer_of(
            settings, name, tick, None if waits and can else result, size if can else 0,
            unseen=settings.missing != REFUSE,
        )  # fmt: skip
        late = {"late": "late", "superseded": "too late to be used"}.get(status, "")
        wrong = can and not waits and (tick, name) not in changeable
        expected = "–" if pull["expected"] is None else f"{pull['expected']:.3f}"
        found.append(PullTold(own.when, own, late, wrong, expected, bool(pull["audit"])))
    return found


def arm_page(found: ArmShown, charts: Sequence[str], caller: Caller, said: Said = NOTHING) -> str:
    """Return the page of an arm."""
    row, settings = found.row, found.settings
    keeps = caller.token.allows("admin")
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
        told=found.told,
        said=said.text,
        wrong=said.wrong,
        undoes=found.last_act if may_undo(found.last_act, caller, found.clients) else None,
        mine=found.last_act is not None and found.last_act.actor == caller.actor,
        acts=caller.token.allows("act"),
        keeps=keeps,
        uncalled=found.uncalled,
        left=None if row.left is None else settings.words.when(row.left),
        manages=keeps and not row.waiting,
        clock=settings.clock,
    )
