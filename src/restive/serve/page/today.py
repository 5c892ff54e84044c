"""Today: alarms, who is on the list, where results go, the next list, and what was earned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from restive.live.agent import LiveAgent
from restive.live.answers import Act, Decision, Status
from restive.live.settings import LEAVE, REFUSE, UNSEEN, Settings
from restive.live.status import status_lines
from restive.live.summaries import RewardTable
from restive.pages.page import capitalised, render
from restive.serve.auth import MANAGED, Caller

__all__ = ["Said", "Today", "today_page"]

MOST_ROWS = 1000
MOST_TAPPED = 200  # arms whose results can be tapped in one by one
MOST_ANSWERED = 5  # alarms that are told though somebody has looked
FEW = 20  # arms that are listed without being asked for


class Said(NamedTuple):
    """What the page tells about what was just done."""

    text: str = ""
    wrong: bool = False


class LateShown(NamedTuple):
    """A pull of a tick that is over, which waits for its result."""

    arm: str
    tick: int
    when: str
    choices: dict[str, str]


class LateTold(NamedTuple):
    """A result of a tick that is over, which can still be changed."""

    arm: str
    when: str
    result: str
    event: int


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
    events: dict[tuple[int, str], int]  # by tick and arm: by which its result may be taken back
    missing: list[LateShown]  # results of ticks that are over
    late: list[LateTold]  # such results that came since the last list
    answered: list[Answered]
    rewards: RewardTable

    @classmethod
    def of(cls, agent: LiveAgent) -> Today:
        """Read it."""
        decision = agent.decision()
        arms = () if decision is None else decision.arms
        settings = agent.settings
        return cls(
            settings,
            agent.status(),
            agent.last_act(),
            decision,
            agent.kinds_of(arms),
            [agent.num_states(name) for name in arms[:MOST_ROWS]],
            settings.missing == REFUSE,
            {} if decision is None else _results(agent, decision.tick),
            agent.changeable(),
            _missing(agent),
            _late(agent),
            _answered(agent),
            agent.reward_table(),
        )


@dataclass(frozen=True)
class PullShown:
    """A row of the list."""

    arm: str
    kind: str
    result: str
    choices: dict[str, str]  # what may be tapped; empty where there is a result, or too many
    event: int | None  # by which its result may be taken back
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
        decision=decision,
        acts=acts,
        manages=caller.token.allows("admin"),
        said=said.text,
        wrong=said.wrong,
        asks=_asks(found, asked),
        missing=found.missing if acts else [],
        late=found.late if acts else [],
        answered=found.answered,
        undoes=found.last_act if _may_undo(found.last_act, caller) else None,
        taps=taps and any(pull.choices for pull in pulls),
        few=FEW,
        pulls=pulls,
        more=0 if decision is None else len(decision.arms) - len(pulls),
        chart=chart,
        lines=status_lines(replace(status, alarms=()), found.settings),
    )


def _verdict(found: Today) -> str:
    status = found.status
    if status.tick < 0:
        return "Nothing has been decided yet"
    when = found.settings.words.when(status.tick, status.label)
    done = f"{status.decided - status.open} of {status.decided} results are in"
    rings = len(status.alarms)
    alarm = "" if not rings else f"; {rings} alarm{'s' if rings > 1 else ''}"
    return f"{capitalised(when)}: {done}{alarm}"


def _may_undo(act: Act | None, caller: Caller) -> bool:
    """Whether a visitor may withdraw an act: whoever may do it may undo it."""
    role = "admin" if act is not None and act.kind in MANAGED else "act"
    return act is not None and caller.token.allows(role)


def _results(agent: LiveAgent, tick: int) -> dict[str, int | str]:
    """Return what is known of each arm of a decision, and of whom it is that they left."""
    found = agent.results(tick)
    left = agent.left_with([arm for arm, result in found.items() if result == UNSEEN])
    return found | {arm: LEAVE for arm, of in left.items() if of == tick}


def _missing(agent: LiveAgent) -> list[LateShown]:
    """Return pulls of ticks that are over whose results can still be tapped in."""
    settings = agent.settings
    if settings.missing == REFUSE:
        return []
    choices: dict[int, dict[str, str]] = {}
    found = []
    for tick, arm in agent.missing_results():
        size = agent.num_states(arm)
        when = settings.words.when(tick, settings.clock.label(tick))
        own = choices.setdefault(size, settings.choices(size))
        found.append(LateShown(arm, tick, when, own))
    return found


def _late(agent: LiveAgent) -> list[LateTold]:
    """Return results of ticks that are over which came since the last list was made."""
    settings, now = agent.settings, agent.tick
    return [
        LateTold(
            arm,
            settings.words.when(tick, settings.clock.label(tick)),
            settings.outcome_text(_results(agent, tick)[arm]),
            event,
        )
        for (tick, arm), event in agent.changeable().items()
        if tick < now
    ]


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
    choices = {size: settings.choices(size, unseen=not found.refuses) for size in set(found.sizes)}
    rows = zip(
        decision.arms[:MOST_ROWS], found.kinds, found.sizes, decision.expected, decision.index,
        strict=False,
    )  # fmt: skip
    return [
        PullShown(
            arm=arm,
            kind=kind,
            result=settings.outcome_text(found.results.get(arm, "open")),
            choices=choices[size] if taps and found.results.get(arm, "open") == "open" else {},
            event=found.events.get((decision.tick, arm)) if taps else None,
            expected=mean,
            index=index,
            audit=arm in audit,
        )
        for arm, kind, size, mean, index in rows
    ]
