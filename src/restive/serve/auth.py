"""Who is calling: a program with a bearer token, or the page with a cookie.

The cookie is sent by the browser whoever asked it to, so a request of the page that changes
something also carries a value that only the page can read.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import RedirectResponse
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from restive.live.tokens import Token
from restive.serve.problems import Problem, refusals
from restive.serve.service import service_of

__all__ = [
    "COOKIE", "FORGERY", "Admin", "Caller", "Doer", "Reader", "identify", "router",
]  # fmt: skip

COOKIE = "restive"
FORGERY = "X-Restive-Forgery"
COOKIE_SECONDS = 30 * 86_400
SAFE = ("GET", "HEAD")
WHO = {"WWW-Authenticate": "Bearer"}

Bearer = Annotated[
    HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False, scheme_name="token"))
]
PageCookie = Annotated[
    str | None, Depends(APIKeyCookie(name=COOKIE, auto_error=False, scheme_name="cookie"))
]


@dataclass(frozen=True)
class Caller:
    """A client that was let in."""

    token: Token
    forgery: str  # the value that its page sends back

    @property
    def actor(self) -> str:
        """Its name, for the journal."""
        return self.token.name


class Requires:
    """Lets in whoever has a token of a role.

    Parameters
    ----------
    role
        The least role.
    """

    def __init__(self, role: str) -> None:
        self.role = role

    async def __call__(self, request: Request, bearer: Bearer, cookie: PageCookie) -> Caller:
        """Return who is calling, or raise."""
        secret = bearer.credentials if bearer else cookie
        found = await identify(request, secret)
        if found is None:
            wrong = "is not known, or has ended" if secret else "is missing"
            detail = f"the token {wrong}; `restive live token` makes one"
            raise Problem(401, detail, WHO)
        if bearer is None and request.method not in SAFE:
            _require_own_page(request, found)
        if not found.token.allows(self.role):
            raise Problem(
                403, f"this needs a token of role {self.role}; yours is of role {found.token.role}"
            )
        return found


async def identify(request: Request, secret: str | None) -> Caller | None:
    """Return who has a secret, and count the request."""
    service = service_of(request)
    token = await service.read(lambda agent: agent.token_of(secret)) if secret else None
    host = request.client.host if request.client else ""
    service.rate.take(f"address {host}" if token is None else f"token {token.name}")
    return None if token is None or secret is None else Caller(token, _forgery(secret))


def _forgery(secret: str) -> str:
    """Return a value that another site cannot know, and from which the secret cannot be found."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"page", sha256).hexdigest()


def _require_own_page(request: Request, caller: Caller) -> None:
    given = request.headers.get(FORGERY, "")
    if not hmac.compare_digest(given.encode(), caller.forgery.encode()):
        raise Problem(403, f"a change by cookie needs the page's value in {FORGERY}")
    _require_own_site(request)


def _require_own_site(request: Request) -> None:
    """Raise if a browser says that another site made it send this."""
    origin = request.headers.get("origin")
    elsewhere = origin is not None and urlsplit(origin).netloc != request.headers.get("host")
    if elsewhere or request.headers.get("sec-fetch-site", "same-origin") not in (
        "same-origin", "none",
    ):  # fmt: skip
        raise Problem(403, "the request comes from another site")


Reader = Annotated[Caller, Depends(Requires("read"))]
Doer = Annotated[Caller, Depends(Requires("act"))]
Admin = Annotated[Caller, Depends(Requires("admin"))]

router = APIRouter(tags=["page"])
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


@router.post(
    "/login",
    status_code=303,
    response_class=RedirectResponse,
    responses=refusals(401, 403, 408, 413, 429, 503),
    openapi_extra=FORM,
)
async def login(request: Request) -> Response:
    """Keep a token in the browser's cookie, for the page."""
    _require_own_site(request)
    fields = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10)
    secret = fields.get("token", [""])[0].strip()
    if await identify(request, secret) is None:
        return RedirectResponse("/login?wrong=1", 303)
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
    _require_own_site(request)
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
