"""Who may look and act on the pages, and what becomes of a form that they send."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from restive.arguments import shown
from restive.errors import JumpError, ProblemError, RestiveError, StoreError
from restive.live.agent import LiveAgent
from restive.pages.page import capitalised, render
from restive.serve.auth import Bearer, Caller, PageCookie, Requires, sign_in_first
from restive.serve.page.answers import Said
from restive.serve.probes import moved_sentence
from restive.serve.problems import Problem
from restive.serve.service import service_of

__all__ = [
    "WRONG",
    "Keeper",
    "Operator",
    "Visitor",
    "back_to",
    "done",
    "missing",
    "number",
    "telling",
    "told_then",
]

SAID = "restive-said"  # the cookie with what is to be told
WRONG = "!"  # before what went wrong
COMMAND = re.compile(r": restive live .*$")
MOST_SAID = 1000  # letters: a cookie has 4 KB


class Visiting:
    """Lets in who may look, or act through a form; sends the others to where they sign in."""

    def __init__(self, role: str = "read") -> None:
        self._requires = Requires(role, form=True)

    async def __call__(self, request: Request, bearer: Bearer, cookie: PageCookie) -> Caller:
        """Return who is looking."""
        try:
            caller = await self._requires(request, bearer, cookie)
        except Problem as error:
            if error.status != 401:
                raise
            raise sign_in_first() from None
        return caller if request.method != "GET" else await _looking(request, caller)


async def _looking(request: Request, caller: Caller) -> Caller:
    """Return a visitor who is offered nothing but to look where the file was rebuilt into another.

    Forms that were sent from an older page still tell what is wrong.
    """
    sentence = await service_of(request).read(moved_sentence)
    if not sentence:
        return caller
    return replace(caller, token=replace(caller.token, role="read"), moved=sentence)


Visitor = Annotated[Caller, Depends(Visiting())]
Operator = Annotated[Caller, Depends(Visiting("act"))]
Keeper = Annotated[Caller, Depends(Visiting("admin"))]  # who may say who takes part


def telling(request: Request, page: Callable[[Said], str]) -> HTMLResponse:
    """Return a page with what is to be told of what was just done, once."""
    told = unquote(request.cookies.get(SAID, ""))
    response = HTMLResponse(page(Said(told.removeprefix(WRONG), told.startswith(WRONG))))
    if told:
        response.delete_cookie(SAID, httponly=True, samesite="strict")
    return response


async def missing(request: Request, caller: Caller, sentence: str) -> Response:
    """Say that there is nothing at an address: as a page to people, as data to programs."""
    if "text/html" not in request.headers.get("accept", ""):
        raise Problem(404, sentence)
    settings = await service_of(request).read(lambda agent: agent.settings)
    page = render(
        "serve/page/missing.html", title="Not here", heading="Not here", visitor=caller, here="",
        words=settings.words, sentence=capitalised(sentence),
    )  # fmt: skip
    return HTMLResponse(page, 404)


async def done(
    request: Request, work: Callable[[LiveAgent], str], back: str = "/", *, jumped: str = "",
    refused: str = "",
) -> Response:  # fmt: skip
    """Do what a form asks for, and show the page with what became of it.

    The page `back` is asked for anew, so that a reload does nothing twice; what is to be told waits
    in a cookie meanwhile. After what is refused it is the page `refused`, if there is one; `jumped`
    where many ticks would pass.
    """
    try:
        said = await service_of(request).write(work)
    except StoreError:
        raise
    except JumpError as error:
        said, back = f"{WRONG}{error.jump}. Nothing was done: look at the date again.", jumped
    except RestiveError as error:
        # what follows is for the command line; here a button does it
        said, back = WRONG + COMMAND.sub("", str(error)), refused or back
    return told_then(request, said, back)


def told_then(request: Request, said: str, back: str) -> Response:
    """Show a page that was there, with what is to be told."""
    response = RedirectResponse(back, 303)
    response.set_cookie(
        SAID, quote(said[:MOST_SAID]), max_age=60, httponly=True, samesite="strict",
        secure=request.url.scheme == "https",
    )  # fmt: skip
    return response


def back_to(fields: dict[str, str]) -> str:
    """Return the page from which a form came: that of an arm, or today's."""
    return f"/arms/{quote(fields.get('arm', ''), safe='')}" if fields.get("back") else "/"


def number(fields: dict[str, str], name: str) -> int | None:
    """Return a whole number of a form; None where it is not there."""
    text = fields.get(name, "").strip()
    if text and not re.fullmatch(r"[0-9]{1,15}", text):
        raise ProblemError(f"{name} must be a whole number, got {shown(text)}")
    return int(text) if text else None
