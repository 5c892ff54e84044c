"""Where the pages are, and signing in: a token is taken once, for a session that a cookie keeps."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Annotated
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from restive.arguments import shown
from restive.errors import ProblemError, RestiveError, StoreError
from restive.live.acts.forgetting import said_of_memory
from restive.live.agent import LiveAgent
from restive.live.people.operator_files import decision_text
from restive.live.settings import LEAVE
from restive.live.view import ORDERS
from restive.pages.page import capitalised, render, script, stylesheet
from restive.serve.auth import (
    COOKIE,
    MANAGED,
    Caller,
    Reader,
    form_fields,
    identify,
    require_own_site,
)
from restive.serve.messages import MOST_TICK
from restive.serve.page.answers import results_shown
from restive.serve.page.arms import ON_A_PAGE, ArmShown, Listed, arm_page, arms_page
from restive.serve.page.charts import arm_charts, entropy_chart, reward_chart
from restive.serve.page.forms import (
    WRONG,
    Keeper,
    Operator,
    Visitor,
    back_to,
    done,
    missing,
    number,
    telling,
    told_then,
)
from restive.serve.page.known import Known, known_page
from restive.serve.page.past import Past, past_page
from restive.serve.page.today import Today, today_page
from restive.serve.problems import Problem, refusals
from restive.serve.service import Service, service_of

__all__ = ["router"]

SESSION_DAYS = 30.0
HTML = {"text/html": {"schema": {"type": "string"}}}
FORM = {
    "requestBody": {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "required": ["token"],
                    "properties": {"token": {"type": "string"}},
                }
            }
        },
    }
}

router = APIRouter(tags=["page"])
get_page = partial(router.get, include_in_schema=False)
post_page = partial(router.post, include_in_schema=False)


@get_page("/login")
async def login_page(ended: Annotated[str | None, Query(max_length=9)] = None) -> HTMLResponse:
    """Ask for a token."""
    why = "You were signed out, and what you tapped last was not recorded: sign in again."
    return HTMLResponse(_asking("" if ended is None else why))


@router.post(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=refusals(403, 408, 413, 429, 503)
    | {401: {"description": "the token is not known, or has ended", "content": HTML}},
    openapi_extra=FORM,
)
async def login(request: Request) -> Response:
    """Begin a session with a token, and keep its secret in the browser's cookie."""
    require_own_site(request)
    secret = (await form_fields(request)).get("token", "").strip()
    if await identify(request, secret) is None:
        return HTMLResponse(
            _asking("This token is not known, or has ended. Was it copied completely?"), 401
        )
    service = service_of(request)
    session = await service.write(lambda agent: agent.sign_in(secret, SESSION_DAYS))
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE, session, max_age=round(SESSION_DAYS * 86_400), httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return response


@router.post(
    "/logout",
    status_code=303,
    response_class=RedirectResponse,
    responses=refusals(403, 408, 413, 503),
)
async def logout(request: Request) -> Response:
    """End the session, and forget the browser's cookie."""
    require_own_site(request)
    session = request.cookies.get(COOKIE)
    if session:
        service = service_of(request)
        if await service.read(lambda agent: agent.token_of(session, session=True)):
            await service.write(lambda agent: agent.sign_out(session))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _asking(wrong: str = "") -> str:
    template = "serve/page/sign_in.html"
    return render(template, title="Sign in", heading="Sign in", visitor=None, wrong=wrong)


# ---------------------------------------------------------------- today


@get_page("/")
async def today(
    request: Request, caller: Visitor, asked: Annotated[str, Query(max_length=40)] = ""
) -> HTMLResponse:
    """What to do now."""
    service = service_of(request)
    found = await service.read(lambda agent: Today.of(agent, service.taking_in))
    version, drawn = found.status.events, (reward_chart, found.rewards, found.settings)
    chart = await service.drawn("rewards", version, *drawn)
    return telling(request, lambda said: today_page(found, chart, caller, said, asked))


@post_page("/decide")
async def decide(request: Request, caller: Operator) -> Response:
    """Make the next list."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        words, before = agent.settings.words, agent.tick
        asked = agent.tick_asked(number(fields, "tick"), fields.get("date") or None)
        made = agent.decide(tick=asked, skip="skip" in fields, actor=caller.actor)
        when = words.when(made.tick, agent.settings.clock.label(made.tick))
        count = words.count(len(made.arms), "arm")
        if made.tick == before:
            return f"The list for {when} was made before: {count}."
        return f"The list for {when} is made: {count}."

    given = fields.get("date") or fields.get("tick") or "now"
    jumped = "/?" + urlencode({"asked": given}) + "#next"
    return await done(request, work, jumped=jumped, refused="/#next")


@post_page("/record")
async def record(request: Request, caller: Operator) -> Response:
    """Record a result that was tapped in."""
    fields = await form_fields(request)
    arm, result = fields.get("arm", ""), fields.get("result", "")

    def work(agent: LiveAgent) -> str:
        tick, now = number(fields, "tick"), agent.tick
        means = _meant(agent, result)
        receipt = agent.record({arm: means}, tick, actor=caller.actor)
        words, said = agent.settings.words, f"{arm}: {agent.settings.said(result)}"
        if means == LEAVE:
            return f"{said}. {arm} is on no list any more."
        if tick is None or tick == now:
            return f"{said}."
        if receipt.superseded:
            return (
                f"{said}. It is kept and not used, since {arm} was seen in a later {words.tick}; "
                "there is nothing more to do."
            )
        over = f"{words.when(tick)} is over and the list of {words.when(now)} is made"
        return f"{said}. {capitalised(over)}: this came late, and is used."

    return await done(request, work, back_to(fields))


@post_page("/change")
async def change(request: Request, caller: Operator) -> Response:
    """Put another result in the place of one that came since the last list."""
    fields = await form_fields(request)
    arm, result = fields.get("arm", ""), fields.get("result", "")

    def work(agent: LiveAgent) -> str:
        tick, settings = number(fields, "tick") or 0, agent.settings
        means, before = _meant(agent, result), results_shown(agent, tick).get(arm)
        if means == before:
            return f"{arm} stays as it was: {settings.said(result)}."
        agent.change(arm, means, tick, actor=caller.actor)
        was = "" if before is None else f", and no longer {settings.outcome_text(before)}"
        return f"{arm}: {settings.said(result)} now{was}."

    return await done(request, work, back_to(fields))


@post_page("/correct")
async def correct(request: Request, caller: Keeper) -> Response:
    """Correct an older result, and take the correction in."""
    fields = await form_fields(request)
    arm, result = fields.get("arm", ""), fields.get("result", "")

    def work(agent: LiveAgent) -> str:
        tick, words = number(fields, "tick") or 0, agent.settings.words
        means = _meant(agent, result)
        note = fields.get("note", "").strip() or "corrected on the page"
        was_gone = agent.arm(arm).left is not None
        agent.correct({arm: means}, tick, note, actor=caller.actor)
        said = f"Corrected: {arm} in {words.when(tick)}: {agent.settings.said(result)}."
        gone = agent.arm(arm).left is not None
        if gone and not was_gone:
            return f"{said} {arm} is on no list any more."
        return f"{said} {arm} is back, and can be on the next list." if was_gone > gone else said

    try:
        said = await service_of(request).write(work)
    except StoreError:
        raise
    except RestiveError as error:
        return told_then(request, WRONG + str(error), back_to(fields))
    return told_then(request, f"{said} {await _taken_in(service_of(request))}", back_to(fields))


@post_page("/take-in")
async def take_in(request: Request, caller: Keeper) -> Response:
    """Take in corrections that wait."""
    return told_then(request, await _taken_in(service_of(request)), "/")


async def _taken_in(service: Service) -> str:
    """Rebuild the file with its corrections; say what became of it."""
    try:
        done = await service.take_in()
    except RestiveError as error:
        return f"It is noted and not counted yet: {error}. Try “Take them in” on the page Today."
    if not done:
        return "It is being taken in. This takes a while; the page Today says how far it is."
    return "Lists that were made stay as they are; the next one knows it."


def _meant(agent: LiveAgent, result: str) -> int | str:
    """Return what a button means."""
    return agent.settings.result_of(result) if result != LEAVE else result


@post_page("/undo")
async def undo(request: Request, caller: Operator) -> Response:
    """Withdraw what was done last, if it is what the page showed."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        last, event = agent.last_act(), number(fields, "event")
        meant = last is not None and event in (None, last.event)
        if meant and last is not None and last.kind in MANAGED:
            caller.require("admin")
        return agent.undo(event, actor=caller.actor).undone(agent.settings.words)

    return await done(request, work)


@post_page("/join")
async def join(request: Request, caller: Keeper) -> Response:
    """Let somebody join, or come back."""
    fields = await form_fields(request)
    name = fields.get("name", "").strip()

    def work(agent: LiveAgent) -> str:
        words = agent.settings.words
        same = agent.names_but_for_capitals(name)
        if same and name not in same:
            raise ProblemError(
                f"there is {same[0]} already. A new name must differ by more than capitals; "
                "nothing was changed"
            )
        back = name in same and agent.arm(name).left is not None
        by = agent.left_with([name]).get(name) if back else None
        kind = fields.get("kind", "") or (agent.arm(name).kind if back else "")
        receipt = agent.join({name: kind}, actor=caller.actor)
        if back:
            said = f"{name} is back, and can be on the next list."
            if by is None:
                return said
            when = words.when(by, agent.settings.clock.label(by))
            return f"{said} Now put right what came of the {words.pull} in {when}."
        if not receipt.new:
            return f"{name} has joined already."
        return f"{name} has joined, and can be on the next list of {words.many('arm')}."

    typed = {"joins": name[:200], "kind": fields.get("kind", "")[:200]}
    again = "" if fields.get("back") else f"/arms?{urlencode(typed)}#somebody-joins"
    return await done(request, work, back_to({"arm": name, **fields}), refused=again)


@post_page("/leave")
async def leave(request: Request, caller: Keeper) -> Response:
    """Let somebody leave."""
    fields = await form_fields(request)
    arm = fields.get("arm", "")

    def work(agent: LiveAgent) -> str:
        agent.leave([arm], actor=caller.actor)
        if agent.tick >= 0 and arm in agent.uncalled(agent.tick):
            return f"{arm} has left: no {agent.settings.words.pull} any more, though on this list."
        return f"{arm} has left, and is on no list any more."

    return await done(request, work, back_to(fields))


@post_page("/forget")
async def forget(request: Request, caller: Keeper) -> Response:
    """Forget what was seen of somebody, of a kind or of all before a date."""
    fields = await form_fields(request)
    arm, kind = fields.get("arm"), fields.get("kind") or None

    def work(agent: LiveAgent) -> str:
        before = fields.get("before", "").strip()
        names = None if arm is None else [arm]
        done = agent.forget(before, names, kind=kind, actor=caller.actor)
        return f"{capitalised(done.text(agent.settings.words))}."

    return await done(request, work)


@post_page("/remember")
async def remember(request: Request, caller: Keeper) -> Response:
    """Change how long what was seen is remembered."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        agent.remember(number(fields, "ticks"), actor=caller.actor)
        return f"{capitalised(said_of_memory(agent.settings))}."

    return await done(request, work)


@post_page("/acknowledge")
async def acknowledge(request: Request, caller: Operator) -> Response:
    """Say that somebody has looked at an alarm, and what was found."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        several = fields.get("alarm", "").split() or ["0"]  # of one cause
        alarms = [number({"alarm": one}, "alarm") or 0 for one in several]
        agent.acknowledge(alarms, fields.get("note", ""), actor=caller.actor)
        return "The alarm is answered." if len(alarms) == 1 else "The alarms are answered."

    return await done(request, work)


# ---------------------------------------------------------------- arms, and what is known


@get_page("/lists/{tick}")
async def past(
    request: Request, caller: Visitor, tick: Annotated[int, Path(ge=0, le=MOST_TICK)]
) -> Response:
    """Return the page of a list: of any tick, with what came of it."""
    service = service_of(request)
    found = await service.read(lambda agent: Past.of(agent, tick))
    if found is None:
        words = (await service.read(lambda agent: agent.settings)).words
        return await missing(request, caller, f"there is no list for {words.when(tick)}")
    return HTMLResponse(past_page(found, caller))


@get_page("/decisions/{name}")
async def decision_file(request: Request, caller: Reader, name: str) -> Response:
    """Return a decision as a CSV file."""
    number = re.fullmatch(r"([0-9]{1,16})\.csv", name)
    if number is None or int(number[1]) > MOST_TICK:
        raise Problem(404, "Not Found")

    def work(agent: LiveAgent) -> str:
        found = agent.decision(int(number[1]))
        if found is None:
            raise Problem(
                404, f"nothing was decided for {agent.settings.words.when(int(number[1]))}"
            )
        return decision_text(agent, found)

    text = await service_of(request).read(work)
    headers = {"Content-Disposition": f'attachment; filename="list-{number[1]}.csv"'}
    return Response(text, headers=headers, media_type="text/csv")


@get_page("/arms")
async def arms(
    request: Request, caller: Visitor, by: str = "index", after: str = "", find: str = "",
    joins: Annotated[str, Query(max_length=200)] = "",
    kind: Annotated[str, Query(max_length=200)] = "",
) -> Response:  # fmt: skip
    """All arms, fifty a page; with the name and kind of who could not join."""
    service = service_of(request)
    if find:
        return await _found(request, caller, find.strip())
    if by not in ORDERS:
        raise ProblemError(f"by must be one of {', '.join(ORDERS)}, got {shown(by)}")
    start: str | int | None = after or None
    if by != "name":
        start = int(after) if re.fullmatch(r"[0-9]{1,9}", after) else 0
    found = await service.read(lambda agent: Listed.of(agent, by, start))
    typed = (joins, kind)
    return telling(request, lambda said: arms_page(found, caller, said=said, typed=typed))


async def _found(request: Request, caller: Caller, name: str) -> Response:
    """Return the page of an arm of this name, in capitals or not, or the names that begin so."""
    service = service_of(request)
    like = await service.read(lambda agent: agent.names_like(name))
    same = [one for one in like if one.casefold() == name.casefold()]
    if name in like or len(same) == 1:
        return await arm(request, caller, name if name in like else same[0])
    found = await service.read(lambda agent: Listed.of(agent, "name", names=like[:ON_A_PAGE]))
    word = found.settings.words.arm
    note = f"there is no {word} {shown(name)}, and no name begins so."
    if same:
        note = f"there is no {word} {shown(name)}; did you mean {' or '.join(same)}?"
    elif like:
        more = f", the first {len(found.arms)} of {len(like):,}" if len(like) > ON_A_PAGE else ""
        note = f"there is no {word} {shown(name)}; these names begin so{more}:"
    return HTMLResponse(arms_page(found, caller, note))


@get_page("/arms/{name:path}")
async def arm(request: Request, caller: Visitor, name: str) -> Response:
    """One arm."""
    service = service_of(request)
    try:
        found = await service.read(lambda agent: ArmShown.of(agent, name))
    except ProblemError as error:
        return await missing(request, caller, str(error))
    charts: Sequence[str] = []
    if found.posterior is not None:
        charts = await service.draw(
            arm_charts,
            found.posterior,
            found.prior,
            found.sightings,
            found.tick,
            found.settings,
            found.top,
        )
    return telling(request, lambda said: arm_page(found, charts, caller, said))


@get_page("/known")
async def known(request: Request, caller: Visitor) -> HTMLResponse:
    """What is known."""
    service = service_of(request)
    found = await service.read(Known.of)
    chart = await service.drawn(
        "entropy", found.status.events, entropy_chart, found.entropy, found.settings
    )
    return HTMLResponse(known_page(found, chart, caller))


@get_page("/static/{name}")
async def static(name: str) -> Response:
    """Return the style sheet and the scripts."""
    if name not in STATIC:
        raise Problem(404, "Not Found")
    text, media = STATIC[name]()
    return Response(text, media_type=media, headers={"Cache-Control": "max-age=300"})


@cache
def _own(name: str) -> str:
    return (files("restive.serve.page") / name).read_text(encoding="utf-8")


STATIC: dict[str, Callable[[], tuple[str, str]]] = {
    "page.css": lambda: (stylesheet(), "text/css"),
    "operator.css": lambda: (_own("operator.css"), "text/css"),
    "charts.js": lambda: (script(), "text/javascript"),
    "operator.js": lambda: (_own("operator.js"), "text/javascript"),
}
