"""The list of one tick: who was on it, and what came of each pull."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from restive.live.agent import LiveAgent
from restive.live.settings import Settings
from restive.pages.page import capitalised, render
from restive.serve.auth import Caller
from restive.serve.page.answers import results_shown

__all__ = ["Past", "past_page"]

MOST_ROWS = 1000


class Row(NamedTuple):
    """A pull."""

    arm: str
    kind: str
    result: str  # "" where none has come
    how: str  # where it was not chosen by rank


@dataclass(frozen=True)
class Past:
    """What the page shows, read in one turn of the agent."""

    settings: Settings
    tick: int
    rows: list[Row]
    count: int  # of all on the list
    before: int | None  # the tick of the list before, and of the one after
    after: int | None

    @classmethod
    def of(cls, agent: LiveAgent, tick: int) -> Past | None:
        """Read it; None if there is no list of this tick."""
        found = agent.decision(tick)
        if found is None:
            return None
        told, results = agent.outcome_words(tick), results_shown(agent, tick)
        others = [arm for arm in results if arm not in set(found.arms)]
        arms, audit = [*found.arms, *others][:MOST_ROWS], set(found.audit)
        how = dict.fromkeys(audit, "drawn evenly") | dict.fromkeys(others, "not on the list")
        ticks = agent.reward_table().tick.tolist()
        return cls(
            agent.settings,
            tick,
            [
                Row(
                    arm, kind, agent.settings.outcome_text(results[arm]) if arm in told else "",
                    how.get(arm, ""),
                )
                for arm, kind in zip(arms, agent.kinds_of(arms), strict=True)
            ],
            len(found.arms),
            max((one for one in ticks if one < tick), default=None),
            min((one for one in ticks if one > tick), default=None),
        )  # fmt: skip


def past_page(found: Past, caller: Caller) -> str:
    """Return the page."""
    words, clock = found.settings.words, found.settings.clock
    when = capitalised(words.when(found.tick, clock.label(found.tick)))
    return render(
        "serve/page/past.html",
        title=when,
        heading=f"{when}: {words.count(found.count, 'arm')}",
        visitor=caller,
        here="",
        words=words,
        clock=clock,
        found=found,
    )
