"""Who is calling: a program with a bearer token, or the page with a cookie.

The cookie holds the secret of a session, which ends when somebody signs out; the token is not in
it. The cookie is sent by the browser whoever asked it to, so a request of the page that changes
something also carries a value that only the page can read.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated
from urllib.parse import parse_qs, urlsplit

from fastapi import Depends, Request
from fastapi.security import APIKeyCookie, HTTPAuthorizationCredentials, HTTPBearer

from restive.live.journal.tokens import Token
from restive.serve.problems import Problem
from restive.serve.service import service_of

__all__ = [
    "COOKIE",
    "FORGERY",
    "MANAGED",
    "Admin",
    "Bearer",
    "Caller",
    "Doer",
    "PageCookie",
    "Reader",
    "Requires",
    "form_fields",
    "identify",
    "require_known",
    "require_own_site",
    "sign_in_first",
]

COOKIE = "restive"
FORGERY = "X-Restive-Forgery"
SAFE = ("GET", "HEAD")
API = "/v1/"
# acts of those who manage, as is their undoing
MANAGED = ("join", "leave", "return", "correct", "forget", "remember")
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
    moved: str = ""  # what pages say of a file that was rebuilt into another

    @property
    def actor(self) -> str:
        """Its name, for the journal."""
        return self.token.name

    def require(self, role: str) -> None:
        """Raise unless its token allows what this role may do."""
        if not self.token.allows(role):
            raise Problem(
                403, f"this needs a token of role {role}; yours is of role {self.token.role}"
            )


class Requires:
    """Lets in whoever has a token of a role.

    Parameters
    ----------
    role
        The least role.
    form
        Whether a page sends a form, which cannot have headers of its own.
    """

    def __init__(self, role: str, *, form: bool = False) -> None:
        self.role = role
        self.form = form

    async def __call__(self, request: Request, bearer: Bearer, cookie: PageCookie) -> Caller:
        """Return who is calling, or raise."""
        found = getattr(request.state, "caller", None) or await _identified(request)
        if found is None:
            raise _unknown(bool(bearer or cookie))
        if bearer is None and request.method not in SAFE:
            _require_own_page(request, found, await self._told(request))
        found.require(self.role)
        return found

    async def _told(self, request: Request) -> str:
        """Return the value by which a page shows that it is ours: in a header, or in a form."""
        if not self.form:
            return request.headers.get(FORGERY, "")
        return (await form_fields(request)).get("forgery", "")


async def form_fields(request: Request) -> dict[str, str]:
    """Return the fields of a form that a page sent; of one that is there twice, the first."""
    text = (await request.body()).decode("utf-8", "replace")
    return {name: values[0] for name, values in parse_qs(text, keep_blank_values=True).items()}


async def require_known(request: Request, headers: Mapping[str, str]) -> None:
    """Raise for somebody who is not known, before the body is read; else remember who it is."""
    caller = await _identified(request)
    if caller is None:
        error = _unknown(bool(_bearer(request) or request.cookies.get(COOKIE)))
        if not request.url.path.startswith(API):
            error = sign_in_first()
        error.headers.update(headers)
        raise error
    request.state.caller = caller


async def _identified(request: Request) -> Caller | None:
    secret = _bearer(request)
    return await identify(request, secret or request.cookies.get(COOKIE), session=not secret)


def _bearer(request: Request) -> str | None:
    scheme, _, secret = request.headers.get("authorization", "").partition(" ")
    return secret.strip() if scheme.lower() == "bearer" else None


async def identify(request: Request, secret: str | None, *, session: bool = False) -> Caller | None:
    """Return who has the secret of a token or of a session, and count the request."""
    service = service_of(request)
    token = None
    if secret:
        token = await service.read(lambda agent: agent.token_of(secret, session=session))
    host = request.client.host if request.client else ""
    service.rate.take(f"address {host}" if token is None else f"token {token.name}")
    return None if token is None or secret is None else Caller(token, _forgery(secret))


def _unknown(given: bool) -> Problem:
    wrong = "is not known, or has ended" if given else "is missing"
    return Problem(401, f"the token {wrong}; `restive live token` makes one", WHO)


def sign_in_first() -> Problem:
    """Return what sends a person to where a token is asked for."""
    return Problem(303, "sign in first", {"Location": "/login"})


def _forgery(secret: str) -> str:
    """Return a value that another site cannot know, and from which the secret cannot be found."""
    return hmac.new(secret.encode("utf-8", "surrogatepass"), b"page", sha256).hexdigest()


def _require_own_page(request: Request, caller: Caller, given: str) -> None:
    if not hmac.compare_digest(given.encode(), caller.forgery.encode()):
        raise Problem(403, f"a change by cookie needs the page's value in {FORGERY}")
    require_own_site(request)


def require_own_site(request: Request) -> None:
    """Raise if a browser says that another site made it send this.

    Browsers tell it in Sec-Fetch-Site, which no proxy changes; older ones tell the origin.
    """
    told = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    if told is not None:
        own = told in ("same-origin", "none")
    else:
        own = origin is None or _place(origin) == request.headers.get("host")
    if not own:
        raise Problem(403, "the request comes from another site")


def _place(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


Reader = Annotated[Caller, Depends(Requires("read"))]
Doer = Annotated[Caller, Depends(Requires("act"))]
Admin = Annotated[Caller, Depends(Requires("admin"))]
