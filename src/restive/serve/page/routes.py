"""Where the pages are, and signing in: a token is taken once, for a session that a cookie keeps."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Annotated
from urllib.parse import quote, unquote, urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from restive.arguments import shown
from restive.errors import JumpError, ProblemError, RestiveError, StoreError
from restive.live.agent import LiveAgent
from restive.live.forgetting import said_of_memory
from restive.live.operator_files import decision_text
from restive.live.settings import LEAVE
from restive.live.view import ORDERS
from restive.pages.page import capitalised, render, script, stylesheet
from restive.serve.auth import (
    COOKIE,
    MANAGED,
    Bearer,
    Caller,
    PageCookie,
    Reader,
    Requires,
    form_fields,
    identify,
    require_own_site,
    sign_in_first,
)
from restive.serve.messages import MOST_TICK
from restive.serve.page.arms import ArmShown, Listed, arm_page, arms_page
from restive.serve.page.charts import arm_charts, entropy_chart, reward_chart
from restive.serve.page.known import Known, known_page
from restive.serve.page.today import Said, Today, today_page
from restive.serve.problems import Problem, refusals
from restive.serve.service import service_of

__all__ = ["router"]

SESSION_DAYS = 30.0
SAID = "restive-said"  # the cookie with what is to be told
WRONG = "!"  # before what went wrong
MOST_SAID = 1000  # letters: a cookie has 4 KB
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
        return HTMLResponse(_asking("This token is not known, or has ended."), 401)
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


class Visiting:
    """Lets in who may look, or act through a form; sends the others to where they sign in."""

    def __init__(self, role: str = "read") -> None:
        self._requires = Requires(role, form=True)

    async def __call__(self, request: Request, bearer: Bearer, cookie: PageCookie) -> Caller:
        """Return who is looking."""
        try:
            return await self._requires(request, bearer, cookie)
        except Problem as error:
            if error.status != 401:
                raise
            raise sign_in_first() from None


Visitor = Annotated[Caller, Depends(Visiting())]
Operator = Annotated[Caller, Depends(Visiting("act"))]
Keeper = Annotated[Caller, Depends(Visiting("admin"))]  # who may say who takes part


# ---------------------------------------------------------------- today


@get_page("/")
async def today(
    request: Request, caller: Visitor, asked: Annotated[str, Query(max_length=40)] = ""
) -> HTMLResponse:
    """What to do now."""
    service = service_of(request)
    found = await service.read(Today.of)
    words = found.settings.words
    chart = await service.drawn("rewards", found.status.events, reward_chart, found.rewards, words)
    told = unquote(request.cookies.get(SAID, ""))
    said = Said(told.removeprefix(WRONG), told.startswith(WRONG))
    response = HTMLResponse(today_page(found, chart, caller, said, asked))
    if told:
        response.delete_cookie(SAID, httponly=True, samesite="strict")
    return response


async def _done(
    request: Request, work: Callable[[LiveAgent], str], back: str = "/", again: str = ""
) -> Response:
    """Do what a form asks for, and show the page with what became of it.

    The page `back` is asked for anew, so that a reload does nothing twice; what is to be told waits
    in a cookie meanwhile. After a jump that must be meant it is the page `again`.
    """
    try:
        said = await service_of(request).write(work)
    except StoreError:
        raise
    except JumpError as error:
        said, back = f"{WRONG}{error.jump}. Nothing was done: look at the date again.", again
    except RestiveError as error:
        said = WRONG + str(error)
    response = RedirectResponse(back, 303)
    response.set_cookie(
        SAID, quote(said[:MOST_SAID]), max_age=60, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return response


@post_page("/decide")
async def decide(request: Request, caller: Operator) -> Response:
    """Make the next list."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        words, before = agent.settings.words, agent.tick
        asked = agent.tick_asked(_number(fields, "tick"), fields.get("date") or None)
        made = agent.decide(tick=asked, skip="skip" in fields, actor=caller.actor)
        when = words.when(made.tick, agent.settings.clock.label(made.tick))
        count = words.count(len(made.arms), "arm")
        if made.tick == before:
            return f"The list for {when} was made before: {count}."
        return f"The list for {when} is made: {count}."

    given = fields.get("date") or fields.get("tick") or "now"
    return await _done(request, work, again="/?" + urlencode({"asked": given}) + "#next")


@post_page("/record")
async def record(request: Request, caller: Operator) -> Response:
    """Record a result that was tapped in."""
    fields = await form_fields(request)
    arm, result = fields.get("arm", ""), fields.get("result", "")

    def work(agent: LiveAgent) -> str:
        settings = agent.settings
        means = settings.result_of(result) if result != LEAVE else result
        receipt = agent.record({arm: means}, _number(fields, "tick"), actor=caller.actor)
        what = result if result in settings.outcomes else settings.outcome_text(means)
        if means == LEAVE:
            return f"{arm}: {what}. {arm} is on no list any more."
        late = "" if not receipt.late + receipt.superseded else f"; {receipt.text(settings.words)}"
        return f"{arm}: {what}{late}."

    return await _done(request, work)


@post_page("/undo")
async def undo(request: Request, caller: Operator) -> Response:
    """Withdraw what was done last, if it is what the page showed."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        last, event = agent.last_act(), _number(fields, "event")
        meant = last is not None and event in (None, last.event)
        if meant and last is not None and last.kind in MANAGED:
            caller.require("admin")
        done = agent.undo(event, actor=caller.actor)
        return f"Taken back: {done.what(agent.settings.words)}."

    return await _done(request, work)


@post_page("/join")
async def join(request: Request, caller: Keeper) -> Response:
    """Let somebody join."""
    fields = await form_fields(request)
    name = fields.get("name", "").strip()

    def work(agent: LiveAgent) -> str:
        receipt = agent.join({name: fields.get("kind", "")}, actor=caller.actor)
        words = agent.settings.words
        return f"{name}: {receipt.text_of_arms('joined', words)}."

    return await _done(request, work)


@post_page("/leave")
async def leave(request: Request, caller: Keeper) -> Response:
    """Let somebody leave."""
    arm = (await form_fields(request)).get("arm", "")

    def work(agent: LiveAgent) -> str:
        agent.leave([arm], actor=caller.actor)
        return f"{arm} has left, and is on no list any more."

    return await _done(request, work)


@post_page("/forget")
async def forget(request: Request, caller: Keeper) -> Response:
    """Forget what was seen of somebody, of a kind or of all before a date."""
    fields = await form_fields(request)
    arm, kind = fields.get("arm"), fields.get("kind") or None

    def work(agent: LiveAgent) -> str:
        before = agent.tick_before(fields.get("before", "").strip())
        names = None if arm is None else [arm]
        done = agent.forget(before, names, kind=kind, actor=caller.actor)
        return f"{capitalised(done.text(agent.settings.words))}."

    return await _done(request, work)


@post_page("/remember")
async def remember(request: Request, caller: Keeper) -> Response:
    """Change how long what was seen is remembered."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        agent.remember(_number(fields, "ticks"), actor=caller.actor)
        return f"{capitalised(said_of_memory(agent.settings))}."

    return await _done(request, work)


@post_page("/acknowledge")
async def acknowledge(request: Request, caller: Operator) -> Response:
    """Say that somebody has looked at an alarm, and what was found."""
    fields = await form_fields(request)

    def work(agent: LiveAgent) -> str:
        agent.acknowledge(_number(fields, "alarm") or 0, fields.get("note", ""), actor=caller.actor)
        return "The alarm is answered."

    return await _done(request, work)


def _number(fields: dict[str, str], name: str) -> int | None:
    """Return a whole number of a form; None where it is not there."""
    text = fields.get(name, "").strip()
    if text and not re.fullmatch(r"[0-9]{1,15}", text):
        raise ProblemError(f"{name} must be a whole number, got {shown(text)}")
    return int(text) if text else None


# ---------------------------------------------------------------- arms, and what is known


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
    request: Request, caller: Visitor, by: str = "index", after: str = "", find: str = ""
) -> Response:
    """All arms, fifty a page."""
    service = service_of(request)
    if find:
        return await _found(request, caller, find.strip())
    if by not in ORDERS:
        raise ProblemError(f"by must be one of {', '.join(ORDERS)}, got {shown(by)}")
    start: str | int | None = after or None
    if by != "name":
        start = int(after) if re.fullmatch(r"[0-9]{1,9}", after) else 0
    found = await service.read(lambda agent: Listed.of(agent, by, start))
    return HTMLResponse(arms_page(found, caller))


async def _found(request: Request, caller: Caller, name: str) -> Response:
    """Return the page of an arm of this name, in capitals or not, or the names that follow."""
    service = service_of(request)
    like = await service.read(lambda agent: agent.names_like(name))
    same = [one for one in like if one.casefold() == name.casefold()]
    try:
        return await arm(request, caller, same[0] if len(same) == 1 else name)
    except Problem as error:
        start = like[0][: len(name)] if like else name
        found = await service.read(lambda agent: Listed.of(agent, "name", start))
        meant = f"did you mean {' or '.join(same)}?" if same else "these names follow:"
        return HTMLResponse(arms_page(found, caller, f"{error.detail}; {meant}"))


@get_page("/arms/{name:path}")
async def arm(request: Request, caller: Visitor, name: str) -> Response:
    """One arm."""
    service = service_of(request)
    try:
        found = await service.read(lambda agent: ArmShown.of(agent, name))
    except ProblemError as error:
        raise Problem(404, str(error)) from None
    charts = []
    if found.posterior is not None:
        charts = await service.draw(
            arm_charts,
            found.posterior,
            found.prior,
            found.sightings,
            found.tick,
            found.settings.words,
            found.top,
        )
    return HTMLResponse(arm_page(found, charts, caller))


@get_page("/known")
async def known(request: Request, caller: Visitor) -> HTMLResponse:
    """What is known."""
    service = service_of(request)
    found = await service.read(Known.of)
    chart = await service.drawn(
        "entropy", found.status.events, entropy_chart, found.entropy, found.settings.words
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
