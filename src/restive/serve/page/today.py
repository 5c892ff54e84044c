"""Today: alarms, who is on the list, where results go, the next list, and what was earned."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from restive.live.agent import LiveAgent
from restive.live.settings import REFUSE, Settings
from restive.live.told.answers import Act, Alarm, Decision, Status, causes
from restive.live.told.status import status_lines
from restive.live.told.summaries import RewardTable
from restive.pages.page import capitalised, render
from restive.serve.auth import Caller
from restive.serve.page.answers import Answer, Said, answer_of, may_undo, results_shown

__all__ = ["Today", "today_page"]

OPEN = "open"  # a result that waits
MOST_ROWS = 1000
MOST_TAPPED = 200  # arms whose results can be tapped in one by one
MOST_OFF = 6  # ticks whose rewards are told beside an alarm
MOST_ANSWERED = 5  # alarms that are told though somebody has looked
NEVER = 10**6  # ticks ago
MOST_OLDER = 10_000  # missing results that are counted
FEW = 20  # arms that are listed without being asked for


class TickOff(NamedTuple):
    """What was earned in a tick, and what was foreseen for the same pulls."""

    tick: int
    when: str
    reward: float
    forecast: float


class Answered(NamedTuple):
    """An alarm that somebody has looked at."""

    title: str
    note: str
    actor: str


@dataclass(frozen=True)
class Today:
    """What the page shows, read in one turn of the agent."""

    settings: Settings
    status: Status
    last_act: Act | None  # which can be undone
    decision: Decision | None
    kinds: list[str]
    sizes: list[int]  # numbers of states
    refuses: bool  # pulls that were made and not seen
    results: dict[str, int | str]  # "leave" of who left by it
    uncalled: set[str]  # those on the list who have left, and have no result
    changeable: Container[tuple[int, str]]  # ticks and arms whose results may be changed
    earlier: list[Answer]  # results of ticks that are over: missing, or come since the last list
    older: int  # such results that are missing for longer
    clients: frozenset[str]  # names of tokens
    taking_in: str  # how far a rebuild is, if there is one now
    answered: list[Answered]
    rewards: RewardTable

    @classmethod
    def of(cls, agent: LiveAgent, taking_in: str = "") -> Today:
        """Read it."""
        decision = agent.decision()
        arms = () if decision is None else decision.arms
        settings = agent.settings
        rewards = agent.reward_table()  # before the status, which needs less of the same sums
        return cls(
            settings,
            agent.status(),
            agent.last_act(),
            decision,
            agent.kinds_of(arms),
            [agent.num_states(name) for name in arms[:MOST_ROWS]],
            settings.missing == REFUSE,
            {} if decision is None else results_shown(agent, decision.tick),
            set() if decision is None else agent.uncalled(decision.tick),
            agent.changeable(),
            _earlier(agent),
            len(agent.missing_results(NEVER, MOST_OLDER)) - len(agent.missing_results()),
            frozenset(one.name for one in agent.tokens()),
            taking_in,
            _answered(agent),
            rewards,
        )


@dataclass(frozen=True)
class PullShown:
    """A row of the list."""

    arm: str
    kind: str
    answer: Answer
    away: bool  # has left, and nobody shall call them
    expected: float
    index: float | None
    audit: bool


class Asks(NamedTuple):
    """What must be said for the next list."""

    kind: str  # of the field: "date", "datetime-local", "number", or "" for none
    value: str  # what it begins with
    note: str
    jumps: bool  # whether somebody must say that ticks without a list are meant


def today_page(found: Today, chart: str, caller: Caller, said: Said, asked: str = "") -> str:
    """Return the page; `asked` is a date or tick that was refused, since it is far off."""
    status, decision = found.status, found.decision
    acts = caller.token.allows("act")
    taps = acts and decision is not None and len(decision.arms) <= MOST_TAPPED
    pulls = [] if decision is None else _pulls(found, decision, taps)
    return render(
        "serve/page/today.html",
        title="Today",
        heading=_verdict(found),
        visitor=caller,
        here="/",
        words=found.settings.words,
        status=status,
        causes=causes(status.alarms),
        decision=decision,
        acts=acts,
        manages=caller.token.allows("admin"),
        said=said.text,
        wrong=said.wrong,
        asks=_asks(found, asked),
        earlier=found.earlier if acts else [],
        older=f"{found.older:,}" if acts and found.older > 0 else "",
        off={one.seq: told for one in status.alarms if (told := _off(found, one))},
        answered=found.answered,
        undoes=found.last_act if may_undo(found.last_act, caller, found.clients) else None,
        mine=found.last_act is not None and found.last_act.actor == caller.actor,
        keeps=caller.token.allows("admin"),
        taking_in=found.taking_in,
        past=max((t for t in found.rewards.tick.tolist() if t < status.tick), default=None),
        taps=taps,
        few=FEW,
        pulls=pulls,
        count=0 if decision is None else len(decision.arms) - len(found.uncalled),
        more=0 if decision is None else len(decision.arms) - len(pulls),
        chart=chart,
        lines=status_lines(replace(status, alarms=()), found.settings),
    )


def _verdict(found: Today) -> str:
    status = found.status
    if status.tick < 0:
        return "There is no list yet"
    when = found.settings.words.when(status.tick, status.label)
    done = f"{status.decided - status.open} of {status.decided} results are in"
    rings = len(status.alarms)
    alarm = "" if not rings else f"; {rings} alarm{'s' if rings > 1 else ''}"
    return f"{capitalised(when)}: {done}{alarm}"


def _off(found: Today, alarm: Alarm) -> list[TickOff]:
    """Tell how far off rewards were in the ticks that an alarm is about, but for empty ones."""
    if alarm.began is None:
        return []
    table, words, label = found.rewards, found.settings.words, found.settings.clock.label
    columns = (table.tick, table.seen, table.reward, table.forecast)
    return [
        TickOff(tick, words.when(tick, label(tick)), reward, forecast)
        for tick, seen, reward, forecast in zip(*map(np.ndarray.tolist, columns), strict=True)
        if alarm.began <= tick < found.status.tick and seen
    ][-MOST_OFF:]


def _earlier(agent: LiveAgent) -> list[Answer]:
    """Return results of ticks that are over: those that are missing, or have just come."""
    settings, now = agent.settings, agent.tick
    if settings.missing == REFUSE:
        return []
    come = agent.changeable()
    pulls = {pull for pull in come if pull[0] < now} | set(agent.missing_results())
    by_tick = {tick: results_shown(agent, tick) for tick in {tick for tick, _ in pulls}}
    missing = set(pulls).difference(come)
    found = []
    for tick, arm in sorted(pulls, key=lambda pull: (-pull[0], pull[1])):
        result = None if (tick, arm) in missing else by_tick[tick].get(arm)
        found.append(answer_of(settings, arm, tick, result, agent.num_states(arm)))
    return found


def _answered(agent: LiveAgent) -> list[Answered]:
    """Return the alarms that were answered last, the newest first."""
    words = agent.settings.words
    return [
        Answered(alarm.title(words), note, actor)
        for alarm, note, actor in agent.answered_alarms(MOST_ANSWERED)
    ]


def _asks(found: Today, asked: str) -> Asks:
    """Return what the next list needs to be told, and what making it does."""
    clock, words, status = found.settings.clock, found.settings.words, found.status
    note = f"Within a {words.tick} the list stays the same, however often it is asked for."
    if status.unshown:
        note += f" It needs the states of {words.count(status.unshown, 'arm')} more, whether on the"
        note += " list or not: send a file with all of them."
    elif status.open:
        missing = words.count(status.open, "pull")
        if found.refuses:
            note += f" {missing} must have a result first."
        else:
            note += f" With the next {words.tick}, {missing} without a result will count as not"
            note += " reached until the result comes."
    jumps = bool(asked)
    if clock.kind != "given":
        return Asks("", "", note, jumps)
    following = status.tick + 1
    if not clock.has_dates:
        return Asks("number", asked or str(following), note, jumps)
    label = clock.label(following)
    note += f" Give any date in the {words.tick}."
    return Asks("datetime-local" if "T" in label else "date", asked or label, note, jumps)


def _pulls(found: Today, decision: Decision, taps: bool) -> list[PullShown]:
    """Return the rows of the list."""
    audit, settings = set(decision.audit), found.settings
    rows = zip(
        decision.arms[:MOST_ROWS], found.kinds, found.sizes, decision.expected, decision.index,
        strict=False,
    )  # fmt: skip
    shown = []
    for arm, kind, size, mean, index in rows:
        result = found.results.get(arm, OPEN)
        away = arm in found.uncalled
        can = taps and not away and (result == OPEN or (decision.tick, arm) in found.changeable)
        told = None if can and result == OPEN else result
        answer = answer_of(
            settings, arm, decision.tick, told, size if can else 0, unseen=not found.refuses
        )
        shown.append(PullShown(arm, kind, answer, away, mean, index, arm in audit))
    return shown
