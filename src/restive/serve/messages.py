"""What clients send and get, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictInt

from restive.learn.posterior import ArmPosterior
from restive.live.agent import LiveAgent
from restive.live.answers import Alarm, ArmRow, Decision, Receipt, Status
from restive.live.clock import utc_time
from restive.live.journal import Event

__all__ = [
    "AcknowledgeBody",
    "AlarmAnswer",
    "ArmAnswer",
    "ArmDetails",
    "ArmPage",
    "DecideBody",
    "DecisionAnswer",
    "EventPage",
    "JoinBody",
    "Name",
    "ReceiptAnswer",
    "RecordBody",
    "StatusAnswer",
    "StepBody",
    "Tick",
]  # fmt: skip

MOST_TICK = 2**53  # numbers beyond are not exact in every client
MOST_STATE = 10**6
MOST_ARMS = 10**6

Tick = Annotated[int, Field(strict=True, ge=0, le=MOST_TICK)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
State = Annotated[StrictInt, Field(ge=0, le=MOST_STATE)]
Result = State | Literal["unseen", "not-pulled", "leave"]


class Body(BaseModel):
    """What a client sends; a field that is not known is a mistake."""

    model_config = ConfigDict(extra="forbid")


class DecideBody(Body):
    """What to decide; all of it may be left out."""

    tick: Annotated[Tick | None, Field(description="which tick, for a clock that is given")] = None
    num_pulls: Annotated[int, Field(strict=True, ge=0, le=MOST_ARMS)] | None = None
    unavailable: Annotated[list[Name], Field(max_length=MOST_ARMS)] = []


class StepBody(Body):
    """Results by arm: a state, "unseen", "not-pulled" or "leave"."""

    tick: Tick | None = Field(None, description="of which decision; the last one by default")
    seen: dict[str, Result] = Field(max_length=MOST_ARMS)


class RecordBody(StepBody):
    """Results by arm, and states of arms that somebody pulled by his own choice."""

    instead: dict[str, State] = Field({}, max_length=MOST_ARMS)


class Joining(Body):
    """An arm that joins."""

    name: Name
    kind: Name | None = Field(None, description="may be left out where there is one kind")
    last_state: State | None = None
    elapsed: Annotated[int, Field(strict=True, ge=1, le=2**20)] | None = Field(
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
    results: dict[str, int | str]

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
            results=agent.results(found.tick),
        )


class Rejected(BaseModel):
    """A row of a file that was not taken."""

    line: int
    arm: str
    reason: str


class ReceiptAnswer(BaseModel):
    """What became of what was sent."""

    new: int
    known: int
    late: int
    superseded: int
    closed: bool
    repeated: bool = Field(False, description="this very file was recorded before")
    rejected: list[Rejected] = []

    @classmethod
    def of(cls, receipt: Receipt) -> ReceiptAnswer:
        """Return a receipt."""
        return cls(**asdict(receipt))


class ArmAnswer(BaseModel):
    """An arm, as a list shows it."""

    name: str
    kind: str
    joined: int
    left: int | None
    waiting: bool
    last_state: int | None
    last_tick: int | None
    index: float | None
    good: float | None = Field(description="probability of the state with the highest number, now")
    pulls: int

    @classmethod
    def of(cls, row: ArmRow) -> ArmAnswer:
        """Return an arm."""
        return cls(**asdict(row) | {"index": _finite(row.index)})


class Believed(BaseModel):
    """Transition probabilities: posterior mean and the ends of 90% intervals."""

    mean: list[list[float]]
    low: list[list[float]]
    high: list[list[float]]


class ArmDetails(ArmAnswer):
    """An arm, with all that is known of it."""

    belief: list[float] | None = Field(description="law of its state, now")
    active: Believed | None
    passive: Believed | None
    history: list[dict[str, Any]] = Field(description="its last pulls")

    @classmethod
    def of_agent(cls, agent: LiveAgent, name: str) -> ArmDetails:
        """Return what an agent knows of an arm."""
        row = agent.arm(name)
        found = None if row.waiting else agent.posterior(name)
        return cls(
            **ArmAnswer.of(row).model_dump(),
            belief=None if row.waiting else agent.belief(name).tolist(),
            active=None if found is None else _believed(found, "active"),
            passive=None if found is None else _believed(found, "passive"),
            history=agent.history(name),
        )


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


class AlarmAnswer(BaseModel):
    """An alarm that nobody has acknowledged."""

    id: int
    name: str
    tick: int
    sentence: str

    @classmethod
    def of(cls, alarm: Alarm) -> AlarmAnswer:
        """Return an alarm."""
        return cls(id=alarm.seq, name=alarm.name, tick=alarm.tick, sentence=alarm.sentence)


class StatusAnswer(BaseModel):
    """Where the agent stands."""

    tick: int
    label: str
    arms: int
    waiting: int
    decided: int
    open: int
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
    events: int
    alarms: list[AlarmAnswer]

    @classmethod
    def of(cls, found: Status) -> StatusAnswer:
        """Return where an agent stands."""
        given = vars(found) | {
            "unseen_by_last_state": {str(s): n for s, n in found.unseen_by_last_state.items()},
            "alarms": [AlarmAnswer.of(alarm) for alarm in found.alarms],
        }
        return cls(**given)


def _finite(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


def _believed(found: ArmPosterior, field: str) -> Believed:
    mean, low, high = (
        getattr(chains, field).tolist()
        for chains in (found.mean(), found.quantile(0.05), found.quantile(0.95))
    )
    return Believed(mean=mean, low=low, high=high)
