"""Where the pages are, and signing in: a token is taken once, and kept in a cookie."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial
from importlib.resources import files
from typing import Annotated
from urllib.parse import parse_qs

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from restive.arguments import shown
from restive.errors import ProblemError
from restive.live.agent import LiveAgent
from restive.live.operator_files import decision_text
from restive.live.view import ORDERS
from restive.pages.page import render, script, stylesheet
from restive.serve.auth import (
    COOKIE,
    Bearer,
    Caller,
    PageCookie,
    Reader,
    Requires,
    identify,
    require_own_site,
)
from restive.serve.messages import MOST_TICK
from restive.serve.page.arms import ArmShown, Listed, arm_page, arms_page
from restive.serve.page.charts import arm_charts, entropy_chart, reward_chart
from restive.serve.page.known import Known, known_page
from restive.serve.page.today import Today, today_page
from restive.serve.problems import Problem, refusals
from restive.serve.service import service_of

__all__ = ["router"]

COOKIE_SECONDS = 30 * 86_400
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


@get_page("/login")
async def login_page() -> HTMLResponse:
    """Ask for a token."""
    return HTMLResponse(_asking())


@router.post(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=refusals(403, 408, 413, 429, 503)
    | {401: {"description": "the token is not known, or has ended", "content": HTML}},
    openapi_extra=FORM,
)
async def login(request: Request) -> Response:
    """Keep a token in the browser's cookie, for the page."""
    require_own_site(request)
    fields = parse_qs((await request.body()).decode("utf-8", "replace"))
    secret = fields.get("token", [""])[0].strip()
    if await identify(request, secret) is None:
        return HTMLResponse(_asking("This token is not known, or has ended."), 401)
    response = RedirectResponse("/", 303)
    response.set_cookie(
        COOKIE, secret, max_age=COOKIE_SECONDS, httponly=True, samesite="strict",
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
    """Forget the browser's cookie."""
    require_own_site(request)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response


def _asking(wrong: str = "") -> str:
    template = "serve/page/sign_in.html"
    return render(template, title="Sign in", heading="Sign in", visitor=None, wrong=wrong)


async def visiting(request: Request, bearer: Bearer, cookie: PageCookie) -> Caller:
    """Return who is looking; send the others to where they sign in."""
    try:
        return await Requires("read")(request, bearer, cookie)
    except Problem as error:
        if error.status != 401:
            raise
        raise Problem(303, "sign in first", {"Location": "/login"}) from None


Visitor = Annotated[Caller, Depends(visiting)]


@get_page("/")
async def today(request: Request, caller: Visitor) -> HTMLResponse:
    """What to do now."""
    service = service_of(request)
    found = await service.read(Today.of)
    chart = await service.drawn("rewards", found.status.events, reward_chart, found.rewards)
    return HTMLResponse(today_page(found, chart, caller))


@get_page("/decisions/{name}")
async def decision_file(request: Request, caller: Reader, name: str) -> Response:
    """Return a decision as a CSV file."""
    number = re.fullmatch(r"([0-9]{1,16})\.csv", name)
    if number is None or int(number[1]) > MOST_TICK:
        raise Problem(404, "Not Found")

    def work(agent: LiveAgent) -> str:
        found = agent.decision(int(number[1]))
        if found is None:
            raise Problem(404, f"nothing was decided for tick {number[1]}")
        return decision_text(agent, found)

    text = await service_of(request).read(work)
    headers = {"Content-Disposition": f'attachment; filename="pulls-{number[1]}.csv"'}
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
    """Return the page of an arm of this name, or the names that follow."""
    try:
        return await arm(request, caller, name)
    except Problem:
        found = await service_of(request).read(lambda agent: Listed.of(agent, "name", name))
        return HTMLResponse(arms_page(found, caller))


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
            arm_charts, found.posterior, found.prior, found.sightings, found.tick
        )
    return HTMLResponse(arm_page(found, charts, caller))


@get_page("/known")
async def known(request: Request, caller: Visitor) -> HTMLResponse:
    """What is known."""
    service = service_of(request)
    found = await service.read(Known.of)
    chart = await service.drawn("entropy", found.events, entropy_chart, found.entropy)
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
