"""The API: what `LiveAgent` does, over HTTP."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from restive.arguments import MOST, shown
from restive.errors import ProblemError
from restive.live.agent import LiveAgent
from restive.live.people.operator_files import record_sheet
from restive.live.people.roster import LONG_AGO
from restive.live.people.sheets import parse_sheet
from restive.live.settings import Settings
from restive.live.told.answers import ArmRow
from restive.live.view import MOST_PAGE
from restive.serve.auth import MANAGED, Admin, Doer, Reader
from restive.serve.messages import (
    MOST_TICK,
    AcknowledgeBody,
    ActAnswer,
    AlarmAnswer,
    ArmAnswer,
    ArmDetails,
    ArmPage,
    DecideBody,
    DecisionAnswer,
    EventAnswer,
    EventPage,
    JoinBody,
    Joining,
    ReceiptAnswer,
    RecordBody,
    Rejected,
    StatusAnswer,
    StepBody,
    UndoBody,
    WhyAnswer,
)
from restive.serve.problems import Problem, refusals
from restive.serve.service import Service, service_of

__all__ = ["ANY", "WRITING", "IfMatch", "Key", "expected", "require_keys_once", "router", "tag"]

ANYTIME = (400, 401, 403, 408, 413, 422, 429, 500, 503)
WRITING = (*ANYTIME, 409, 412, 507)
CSV, JSON = "text/csv", "application/json"
ANY = "*"  # tick


async def require_keys_once(request: Request) -> None:
    """Raise if an object in a JSON body has a key twice: a reader of JSON would take the last."""
    if _media(request) != JSON:
        return
    for name in _keys_twice(await request.body()):
        raise RequestValidationError(
            [{"loc": ("body", name), "msg": "is there twice", "type": "twice"}]
        )


def _media(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


router = APIRouter(prefix="/v1", dependencies=[Depends(require_keys_once)])

Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key", min_length=1, max_length=200,
        description="your id of this request: sent again, it is given the same answer",
    ),
]  # fmt: skip
IfMatch = Annotated[
    str,
    Header(
        alias="If-Match", pattern=r'^(\*|"-?[0-9]{1,15}")$',
        description='tick of the last decision, as "41": 412 if somebody was faster',
    ),
]  # fmt: skip
TickInPath = Annotated[int, Path(ge=0, le=MOST_TICK)]
NumberInPath = Annotated[int, Path(ge=0, le=2**62)]
NameInPath = Annotated[str, Path(min_length=1, max_length=200)]
Limit = Annotated[int, Query(ge=1, le=MOST_PAGE)]


@router.post(
    "/decisions",
    status_code=201,
    responses=refusals(*WRITING)
    | {200: {"model": DecisionAnswer, "description": "the same again"}},
)
async def decide(
    request: Request, response: Response, caller: Doer, body: DecideBody | None = None,
    key: Key = None, if_match: IfMatch = ANY,
) -> DecisionAnswer:  # fmt: skip
    """Decide which arms to pull now; asked again in the same tick, the answer is the same."""
    asked = body or DecideBody()

    def work(agent: LiveAgent) -> tuple[int, DecisionAnswer]:
        before = agent.tick
        tick = agent.tick_asked(asked.tick, asked.date)
        made = agent.decide(
            key, tick, asked.num_pulls, asked.unavailable, skip=asked.skip, actor=caller.actor
        )
        return before, DecisionAnswer.of(agent, made)

    before, answer = await service_of(request).write(work, expected(if_match))
    response.status_code = 201 if answer.tick > before else 200
    tag(response, max(before, answer.tick))
    return answer


@router.get("/decisions/{tick}", responses=refusals(*ANYTIME, 404))
async def decision(
    request: Request, response: Response, caller: Reader, tick: TickInPath
) -> DecisionAnswer:
    """Return the decision of a tick, and what became of each of its pulls."""

    def work(agent: LiveAgent) -> tuple[int, DecisionAnswer]:
        found = agent.decision(tick)
        if found is None:
            raise Problem(404, f"nothing was decided for tick {tick}")
        return agent.tick, DecisionAnswer.of(agent, found)

    last, answer = await service_of(request).read(work)
    tag(response, last)
    return answer


RECORDS = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {"schema": RecordBody.model_json_schema()},
            CSV: {"schema": {"type": "string"}},
        },
    }
}


@router.post(
    "/observations", responses=refusals(*WRITING, 415), openapi_extra=RECORDS
)  # fmt: skip
async def record(
    request: Request, response: Response, caller: Doer,
    tick: Annotated[int | None, Query(ge=0, le=MOST_TICK, description="of CSV rows")] = None,
    accept_good: Annotated[bool, Query(description="take the good rows of a CSV file")] = False,
    key: Key = None, if_match: IfMatch = ANY,
) -> ReceiptAnswer:  # fmt: skip
    """Record results, as JSON or as a CSV file; a CSV file is its own idempotency key."""
    contents = await request.body()
    media = _media(request)
    if media == CSV:
        work = _recording_file(contents, tick, accept_good, caller.actor)
    elif media == JSON:
        work = _recording(_parsed(contents), key, caller.actor)
    else:
        raise Problem(415, f"send {JSON} or {CSV}, got {shown(media)}")
    return await _written(request, response, work, if_match)


def _parsed(contents: bytes) -> RecordBody:
    try:
        return RecordBody.model_validate_json(contents)
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        raise RequestValidationError(
            [one | {"loc": ("body", *one["loc"])} for one in found]
        ) from None


def _keys_twice(contents: bytes) -> list[str]:
    """Return the keys that some object of a JSON text has twice; none if it is no JSON."""
    found: list[str] = []

    def look(pairs: list[tuple[str, Any]]) -> None:
        counts = Counter(name for name, _ in pairs)
        found.extend(name for name, count in counts.items() if count > 1)

    with suppress(ValueError, RecursionError):
        json.loads(contents, object_pairs_hook=look)
    return found


def _recording(
    body: RecordBody, key: str | None, actor: str
) -> Callable[[LiveAgent], ReceiptAnswer]:
    def work(agent: LiveAgent) -> ReceiptAnswer:
        receipt = agent.record(body.seen, body.tick, instead=body.instead, request=key, actor=actor)
        return ReceiptAnswer.of(receipt, receipt.text(agent.settings.words))

    return work


def _recording_file(
    contents: bytes, tick: int | None, accept_good: bool, actor: str
) -> Callable[[LiveAgent], ReceiptAnswer]:
    def work(agent: LiveAgent) -> ReceiptAnswer:
        sheet = parse_sheet(contents, "results", agent.settings.words)
        done = record_sheet(agent, sheet, tick, accept_good=accept_good, actor=actor)
        rejected = [Rejected(line=line, arm=arm, reason=why) for line, arm, why in done.rejected]
        answer = ReceiptAnswer.of(done.receipt, done.receipt.text(agent.settings.words))
        return answer.model_copy(
            update={"repeated": done.repeated is not None, "rejected": rejected}
        )

    return work


@router.post("/step", responses=refusals(*WRITING))
async def step(
    request: Request, response: Response, caller: Doer, body: StepBody,
    key: Key = None, if_match: IfMatch = ANY,
) -> DecisionAnswer:  # fmt: skip
    """Record results and decide the next tick, in one transaction."""

    def work(agent: LiveAgent) -> DecisionAnswer:
        made = agent.step(body.seen, body.tick, skip=body.skip, request=key, actor=caller.actor)
        return DecisionAnswer.of(agent, made)

    answer = await service_of(request).write(work, expected(if_match))
    tag(response, answer.tick)
    return answer


@router.get("/undo", responses=refusals(*ANYTIME))
async def last_act(request: Request, response: Response, caller: Reader) -> ActAnswer | None:
    """Return what would be withdrawn now; null if there is nothing."""

    def work(agent: LiveAgent) -> tuple[int, ActAnswer | None]:
        act = agent.last_act()
        return agent.tick, None if act is None else ActAnswer.of(act, agent.settings.words)

    tick, answer = await service_of(request).read(work)
    tag(response, tick)
    return answer


@router.post("/undo", responses=refusals(*WRITING))
async def undo(
    request: Request, response: Response, caller: Doer, body: UndoBody | None = None,
    key: Key = None, if_match: IfMatch = ANY,
) -> ActAnswer:  # fmt: skip
    """Withdraw the last decision, results or other act, as if it had never happened."""
    event = None if body is None else body.event

    def work(agent: LiveAgent) -> tuple[int, ActAnswer]:
        last = agent.last_act()
        if last is not None and last.kind in MANAGED:
            caller.require("admin")  # as what it withdraws did
        act = agent.undo(event, request=key, actor=caller.actor)
        return agent.tick, ActAnswer.of(act, agent.settings.words)

    tick, answer = await service_of(request).write(work, expected(if_match))
    tag(response, tick)
    return answer


@router.get("/arms", responses=refusals(*ANYTIME))
async def arms(
    request: Request, caller: Reader,
    after: Annotated[str | None, Query(max_length=200, description="`next` of a page")] = None,
    limit: Limit = 50,
    by: Literal["name", "index", "pulls", "age", "belief"] = "name",
) -> ArmPage:  # fmt: skip
    """Return a page of arms."""
    start: str | int | None = after
    if after is not None and by != "name":
        if not re.fullmatch(r"[0-9]{1,9}", after):
            raise ProblemError(f"after: by {by} it is a number, got {shown(after)}")
        start = int(after)

    def work(agent: LiveAgent) -> tuple[list[ArmRow], Settings]:
        return agent.arms(start, limit, by), agent.settings

    rows, settings = await service_of(request).read(work)
    following = None
    if len(rows) == limit:
        following = rows[-1].name if by == "name" else str(int(start or 0) + limit)
    return ArmPage(arms=[ArmAnswer.of(row, settings) for row in rows], next=following)


@router.post("/arms", responses=refusals(*WRITING))
async def join(
    request: Request, response: Response, caller: Admin, body: JoinBody,
    key: Key = None, if_match: IfMatch = ANY,
) -> ReceiptAnswer:  # fmt: skip
    """Let arms join; they can be pulled from the next decision on."""

    def work(agent: LiveAgent) -> ReceiptAnswer:
        kinds = _kinds(body, agent.kinds)
        known = {
            arm.name: (_state(agent, arm), arm.elapsed or LONG_AGO)
            for arm in body.arms
            if arm.last_state is not None
        }
        receipt = agent.join(kinds, known, request=key, actor=caller.actor)
        return ReceiptAnswer.of(receipt, receipt.text_of_arms("joined", agent.settings.words))

    return await _written(request, response, work, if_match)


def _state(agent: LiveAgent, arm: Joining) -> int:
    """Return the state in which an arm that joins was last seen."""
    given = arm.last_state
    if isinstance(given, str):
        return agent.settings.state_of(given, f"arm {arm.name!r}: last_state")
    assert given is not None
    return given


def _kinds(body: JoinBody, kinds: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for arm in body.arms:
        if arm.name in found:
            raise ProblemError(f"arm {arm.name!r} is there twice")
        if arm.kind is None and len(kinds) > 1:
            raise ProblemError(f"arm {arm.name!r}: say its kind, one of {', '.join(kinds)}")
        if arm.last_state is None and arm.elapsed is not None:
            raise ProblemError(f"arm {arm.name!r}: elapsed needs last_state")
        found[arm.name] = kinds[0] if arm.kind is None else arm.kind
    return found


@router.get("/arms/{arm:path}", responses=refusals(*ANYTIME, 404))
async def arm(request: Request, caller: Reader, arm: NameInPath) -> ArmDetails:
    """Return an arm that has not left, with all that is known of it."""

    def work(agent: LiveAgent) -> ArmDetails:
        _require_arm(agent, arm)
        return ArmDetails.of_agent(agent, arm)

    return await service_of(request).read(work)


@router.get("/explanations/{arm:path}", responses=refusals(*ANYTIME, 404))
async def explanation(request: Request, caller: Reader, arm: NameInPath) -> WhyAnswer:
    """Tell why an arm is on the list of the last decision, or is not."""

    def work(agent: LiveAgent) -> WhyAnswer:
        _require_arm(agent, arm)
        return WhyAnswer.of(agent.explain(arm))

    return await service_of(request).read(work)


@router.delete("/arms/{arm:path}", responses=refusals(*WRITING, 404))
async def leave(
    request: Request, response: Response, caller: Admin, arm: NameInPath,
    key: Key = None, if_match: IfMatch = ANY,
) -> ReceiptAnswer:  # fmt: skip
    """Let an arm leave for ever; what was seen of it stays."""

    def work(agent: LiveAgent) -> ReceiptAnswer:
        _require_arm(agent, arm, gone=True)  # or a request that is repeated
        receipt = agent.leave([arm], request=key, actor=caller.actor)
        return ReceiptAnswer.of(receipt, receipt.text_of_arms("left", agent.settings.words))

    return await _written(request, response, work, if_match)


@router.get("/events", responses=refusals(*ANYTIME))
async def events(
    request: Request, caller: Reader,
    after: Annotated[int, Query(ge=0, le=MOST)] = 0, limit: Limit = 50,
) -> EventPage:  # fmt: skip
    """Return a page of the journal."""
    found = await service_of(request).read(lambda agent: agent.events(after, limit))
    following = found[-1].seq if len(found) == limit else None
    return EventPage(events=[EventAnswer.of(event) for event in found], next=following)


@router.get("/status", responses=refusals(*ANYTIME))
async def status(request: Request, response: Response, caller: Reader) -> StatusAnswer:
    """Tell where the agent stands."""
    found = await service_of(request).read(
        lambda agent: StatusAnswer.of(agent.status(), agent.settings)
    )
    tag(response, found.tick)
    return found


@router.get("/alarms", responses=refusals(*ANYTIME))
async def alarms(request: Request, caller: Reader) -> list[AlarmAnswer]:
    """Return the alarms that nobody has acknowledged."""
    found, words = await service_of(request).read(
        lambda agent: (agent.alarms(), agent.settings.words)
    )
    return [AlarmAnswer.of(alarm, words) for alarm in found]


@router.post(
    "/alarms/{alarm}/acknowledge", status_code=204, responses=refusals(*WRITING, 404)
)  # fmt: skip
async def acknowledge(
    request: Request, caller: Doer, alarm: NumberInPath, body: AcknowledgeBody
) -> None:
    """Say that somebody has looked at an alarm, and what was found."""

    def work(agent: LiveAgent) -> None:
        if alarm not in {one.seq for one in agent.alarms()}:
            raise Problem(404, f"there is no alarm {alarm} that waits to be acknowledged")
        agent.acknowledge(alarm, body.note, actor=caller.actor)

    await service_of(request).write(work)


@router.get("/openapi.json", include_in_schema=False)
async def openapi(request: Request, caller: Reader) -> Any:
    """Describe the API."""
    return request.app.openapi()


async def _written(
    request: Request, response: Response, work: Callable[[LiveAgent], ReceiptAnswer],
    if_match: str,
) -> ReceiptAnswer:  # fmt: skip
    def tagged(agent: LiveAgent) -> tuple[ReceiptAnswer, int]:
        return work(agent), agent.tick

    service: Service = service_of(request)
    answer, tick = await service.write(tagged, expected(if_match))
    tag(response, tick)
    return answer


def _require_arm(agent: LiveAgent, name: str, *, gone: bool = False) -> None:
    """Raise unless there is an arm of this name, or there was one and it may have `gone`."""
    try:
        left = agent.arm(name).left
    except ProblemError as error:
        raise Problem(404, str(error)) from None
    if left is not None and not gone:
        words = agent.settings.words
        raise Problem(404, f"{words.arm} {name!r} has left, in {words.when(left)}")


def expected(if_match: str) -> int | None:
    """Return the tick that a client insists on; None if it does not."""
    return None if if_match == ANY else int(if_match.strip('"'))


def tag(response: Response, tick: int) -> None:
    """Tell the tick of the last decision, for If-Match."""
    response.headers["ETag"] = f'"{tick}"'
