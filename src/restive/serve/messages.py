"""What clients send and get, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from restive.learn.posterior import ArmPosterior
from restive.live.acts.forgetting import Forgetting
from restive.live.agent import LiveAgent
from restive.live.clock import utc_time
from restive.live.journal.events import Event
from restive.live.settings import Settings
from restive.live.told.answers import Act, Alarm, ArmRow, Decision, Receipt, Status
from restive.live.told.explaining import Why
from restive.live.words import Words

__all__ = [
    "AcknowledgeBody",
    "ActAnswer",
    "AlarmAnswer",
    "ArmAnswer",
    "ArmDetails",
    "ArmPage",
    "DecideBody",
    "DecisionAnswer",
    "EventPage",
    "ForgetAnswer",
    "JoinBody",
    "Name",
    "ReceiptAnswer",
    "RecordBody",
    "StatusAnswer",
    "StepBody",
    "Tick",
    "UndoBody",
    "WhyAnswer",
]  # fmt: skip

MOST_TICK = 2**53  # numbers beyond are not exact in every client
MOST_STATE = 10**6
MOST_ARMS = 10**6


def _whole(value: Any) -> Any:
    """Return a number that is whole as one: in JSON 1 and 1.0 are the same."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


AsWhole = BeforeValidator(_whole)
Tick = Annotated[int, Field(strict=True, ge=0, le=MOST_TICK), AsWhole]
Name = Annotated[str, Field(min_length=1, max_length=200)]
State = Annotated[int, Field(strict=True, ge=0, le=MOST_STATE), AsWhole]
Word = Annotated[str, Field(min_length=1, max_length=200)]
Result = State | Word  # a state, its name, or an outcome; which words there are the file knows


Skip = Annotated[
    bool,
    Field(strict=True, description="let more than one tick pass; by the wall's clock, over a year"),
]


class Body(BaseModel):
    """What a client sends; a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


class DecideBody(Body):
    """What to decide; all of it may be left out."""

    tick: Annotated[Tick | None, Field(description="which tick, for a clock that is given")] = None
    date: Annotated[
        Annotated[str, Field(min_length=1, max_length=40)] | None,
        Field(description="its date instead, as 2026-11-16, where ticks have dates"),
    ] = None
    num_pulls: Annotated[int, Field(strict=True, ge=0, le=MOST_ARMS), AsWhole] | None = None
    unavailable: Annotated[list[Name], Field(max_length=MOST_ARMS)] = []
    skip: Skip = False


class UndoBody(Body):
    """What to withdraw; it may be left out."""

    event: Annotated[int, Field(strict=True, ge=1, le=2**53), AsWhole] | None = Field(
        None, description="the act that is meant, by its event: 409 if it is not the last one"
    )


class StepBody(Body):
    """Results by arm: a state or its name, "unseen", "not-pulled", "leave", or an outcome."""

    tick: Tick | None = Field(None, description="of which decision; the last one by default")
    seen: dict[str, Result] = Field(max_length=MOST_ARMS)
    skip: Skip = False


class RecordBody(Body):
    """Results by arm, and states of arms that somebody pulled by his own choice."""

    tick: Tick | None = Field(None, description="of which decision; the last one by default")
    seen: dict[str, Result] = Field(max_length=MOST_ARMS)
    instead: dict[str, Result] = Field({}, max_length=MOST_ARMS)


class Joining(Body):
    """An arm that joins."""

    name: Name
    kind: Name | None = Field(None, description="may be left out where there is one kind")
    last_state: Result | None = Field(None, description="a state, or its name")
    elapsed: Annotated[int, Field(strict=True, ge=1, le=2**20), AsWhole] | None = Field(
        None, description="ticks since it was seen in that state"
    )


class JoinBody(Body):
    """Arms that join."""

    arms: list[Joining] = Field(min_length=1, max_length=MOST_ARMS)


class AcknowledgeBody(Body):
    """What was found."""

    note: str = Field(min_length=1, max_length=10_000)


class DecisionAnswer(BaseModel):
    """A decision: arms to pull, and what is known of each by now."""

    tick: int
    date: str
    begins: datetime | None
    expires: datetime | None
    arms: list[str]
    expected: list[float | None]
    index: list[float | None] = Field(description="while the tick is open")
    audit: list[str]
    left: list[str] = Field(description="who has left since, without a result: nobody shall call")
    results: dict[str, int | str] = Field(
        description="by arm: the name of its state, its number if it has no name, or open, ..."
    )

    @classmethod
    def of(cls, agent: LiveAgent, found: Decision) -> DecisionAnswer:
        """Return a decision with its results."""
        return cls(
            tick=found.tick,
            date=agent.settings.clock.label(found.tick),
            begins=found.begins,
            expires=found.expires,
            arms=list(found.arms),
            expected=[_finite(value) for value in found.expected],
            index=[_finite(value) for value in found.index],
            audit=list(found.audit),
            left=sorted(agent.uncalled(found.tick)),
            results={
                arm: _named(agent.settings, result)
                for arm, result in agent.results(found.tick).items()
            },
        )


class Rejected(BaseModel):
    """A row of a file that was not taken."""

    line: int
    arm: str
    reason: str


class ReceiptAnswer(BaseModel):
    """What became of what was sent."""

    text: str = Field(description="the same in words")
    new: int
    known: int
    late: int
    superseded: int
    closed: bool
    repeated: bool = Field(False, description="this very file was recorded before")
    rejected: list[Rejected] = []

    @classmethod
    def of(cls, receipt: Receipt, text: str) -> ReceiptAnswer:
        """Return a receipt."""
        return cls(text=text, **asdict(receipt))


class ArmAnswer(BaseModel):
    """An arm, as a list shows it."""

    name: str
    kind: str
    joined: int
    left: int | None
    waiting: bool
    last_state: int | None
    last_state_name: str | None
    last_tick: int | None
    index: float | None
    good: float | None = Field(description="probability of the state with the highest number, now")
    pulls: int

    @classmethod
    def of(cls, row: ArmRow, settings: Settings) -> ArmAnswer:
        """Return an arm."""
        name = None if row.last_state is None else settings.state_name(row.last_state)
        return cls(**asdict(row) | {"index": _finite(row.index), "last_state_name": name})


class Believed(BaseModel):
    """Transition probabilities: posterior mean and the ends of 90% intervals."""

    mean: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]


class ArmDetails(ArmAnswer):
    """An arm, with all that is known of it."""

    states: list[str] = Field(description="names of its states, in their order")
    belief: list[float] | None = Field(description="law of its state, now")
    active: Believed | None
    passive: Believed | None
    history: list[dict[str, Any]] = Field(description="its last pulls")

    @classmethod
    def of_agent(cls, agent: LiveAgent, name: str) -> ArmDetails:
        """Return what an agent knows of an arm."""
        row, settings = agent.arm(name), agent.settings
        found = None if row.waiting else agent.posterior(name)
        names = [settings.state_name(state) for state in range(agent.num_states(name))]
        return cls(
            **ArmAnswer.of(row, settings).model_dump(),
            states=names,
            belief=None if row.waiting else agent.belief(name).tolist(),
            active=None if found is None else _believed(found, "active"),
            passive=None if found is None else _believed(found, "passive"),
            history=[
                pull | {"state_name": None if pull["state"] is None else names[pull["state"]]}
                for pull in agent.history(name)
            ],
        )


class SightingAnswer(BaseModel):
    """A state that was seen of an arm."""

    tick: int
    date: str
    state: str


class WhyAnswer(BaseModel):
    """Why an arm is on the list of the last decision, or is not."""

    arm: str
    kind: str
    tick: int
    date: str
    listed: bool
    audit: bool
    available: bool
    rests: bool = Field(description="it is not, after a pull that has shown no state")
    sightings: int
    last: list[SightingAnswer]
    last_state: str | None
    elapsed: int | None
    belief: dict[str, float]
    low: dict[str, float] = Field(description="ends of 90% intervals of these chances")
    high: dict[str, float]
    expected: float = Field(description="reward of this tick with a pull")
    expected_without: float = Field(description="and without one")
    averaged: bool = Field(description="whether indices are means over what arms may be")
    index: float | None
    index_at_mean: float | None
    rank: int | None
    num_ranked: int
    num_listed: int
    rival: str | None = Field(description="first not on the list, or the last that is")
    rival_index: float | None
    waits: int | None
    result: str | None
    rebuilt: bool = Field(description="the list is older than a rebuild; so beliefs are known now")
    known_now: bool = Field(
        description="the same, or since the list something was forgotten or came late"
    )
    listed_expected: float | None = Field(description="what the list itself says of the arm")
    listed_index: float | None
    forgotten: int | None = Field(description="what was seen before this tick is forgotten")
    lines: list[str] = Field(description="all of it in words")

    @classmethod
    def of(cls, found: Why) -> WhyAnswer:
        """Return an explanation."""
        keys = ("index", "index_at_mean", "rival_index", "listed_index")
        numbers = {key: _finite(getattr(found, key)) for key in keys}
        return cls(**found.to_json() | numbers)


class ArmPage(BaseModel):
    """A page of arms."""

    arms: list[ArmAnswer]
    next: str | None = Field(description="`after` of the next page; null on the last")


class EventAnswer(BaseModel):
    """A line of the journal."""

    seq: int
    kind: str
    tick: int
    at: datetime
    request: str | None
    actor: str
    body: dict[str, Any]
    digest: str

    @classmethod
    def of(cls, event: Event) -> EventAnswer:
        """Return an event."""
        return cls(
            seq=event.seq, kind=event.kind, tick=event.tick, at=utc_time(event.at),
            request=event.request, actor=event.actor, body=event.body, digest=event.digest.hex(),
        )  # fmt: skip


class EventPage(BaseModel):
    """A page of the journal."""

    events: list[EventAnswer]
    next: int | None = Field(description="`after` of the next page; null on the last")


class ForgetAnswer(BaseModel):
    """What was forgotten."""

    event: int
    text: str = Field(description="the same in words")
    before: int = Field(description="the first tick that still counts")
    date: str = Field(description="of that tick, where ticks have dates")
    arms: int = Field(description="of how many arms")
    kind: str | None = Field(description="of all of this kind")
    name: str | None = Field(description="of this arm alone")
    everyone: bool

    @classmethod
    def of(cls, found: Forgetting, words: Words) -> ForgetAnswer:
        """Return what was forgotten."""
        return cls(**vars(found), date=found.label, text=found.text(words))


class AlarmAnswer(BaseModel):
    """An alarm that nobody has acknowledged."""

    id: int
    name: str
    tick: int = Field(description="since when")
    date: str = Field(description="of that tick, where ticks have dates")
    sentence: str = Field(description="what is wrong, what to look at and what to do")
    count: int = Field(description="how often it rang since it was last acknowledged")
    last: int = Field(description="tick when it last did")
    kind: str | None = Field(description="of arms it is about; null for all")
    began: int | None = Field(description="tick since when rewards are likely off")
    began_date: str = Field(description="of that tick, where ticks have dates")
    remedy: str = Field(description="what to forget if arms have changed for good, or that it is")

    @classmethod
    def of(cls, alarm: Alarm, words: Words) -> AlarmAnswer:
        """Return an alarm."""
        return cls(
            id=alarm.seq, name=alarm.name, tick=alarm.tick, date=alarm.label,
            sentence=alarm.sentence, count=alarm.count, last=alarm.last, kind=alarm.kind,
            began=alarm.began, began_date=alarm.began_label, remedy=alarm.remedy(words),
        )  # fmt: skip


class ActAnswer(BaseModel):
    """What was withdrawn, or can be."""

    event: int = Field(description="the first of its events, its id")
    kind: Literal[
        "decide", "record", "step", "join", "leave", "correct", "acknowledge", "forget", "remember"
    ]
    tick: int
    date: str
    count: int = Field(description="arms decided, results, arms that join or leave, corrections")
    at: datetime
    actor: str
    who: str = Field(
        description="of whom, if of one arm, and which result; what was forgotten; else empty"
    )
    sentence: str

    @classmethod
    def of(cls, act: Act, words: Words) -> ActAnswer:
        """Return an act."""
        return cls(**vars(act) | {"at": utc_time(act.at)}, date=act.label, sentence=act.text(words))


class StatusAnswer(BaseModel):
    """Where the agent stands."""

    tick: int
    label: str
    arms: int
    waiting: int
    decided: int
    open: int
    unshown: int = Field(description="without a result, not on the list: seen in every tick")
    decisions: int
    pulls: int
    seen: int
    unseen: int
    late: int
    superseded: int
    not_pulled: int
    reward: float
    forecast: float
    audit_mean: float | None
    unseen_by_last_state: dict[str, tuple[int, int]]
    corrections: int
    approximate: bool
    pulled_only: bool
    events: int
    alarms: list[AlarmAnswer]
    forget_after: float | None = Field(description="ticks after which what was seen weighs 1/e")
    forgotten: list[ForgetAnswer]

    @classmethod
    def of(cls, found: Status, settings: Settings) -> StatusAnswer:
        """Return where an agent stands."""
        unseen = found.unseen_by_last_state.items()
        given = vars(found) | {
            "unseen_by_last_state": {settings.state_name(state): pair for state, pair in unseen},
            "alarms": [AlarmAnswer.of(alarm, settings.words) for alarm in found.alarms],
            "forgotten": [ForgetAnswer.of(told, settings.words) for told in found.forgotten],
        }
        return cls(**given)


def _named(settings: Settings, result: int | str) -> int | str:
    """Return the name of a state where states have names."""
    named = isinstance(result, int) and settings.has_names
    return settings.state_name(int(result)) if named else result


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _believed(found: ArmPosterior, field: str) -> Believed:
    mean, low, high = (
        getattr(chains, field).tolist()
        for chains in (found.mean(), found.quantile(0.05), found.quantile(0.95))
    )
    return Believed(mean=mean, low=low, high=high)
