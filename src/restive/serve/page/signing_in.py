"""Signing in: a token is taken once, and kept in a cookie."""

from __future__ import annotations

from urllib.parse import parse_qs

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from restive.serve.auth import COOKIE, identify, require_own_site
from restive.serve.page.frame import document
from restive.serve.problems import refusals

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


@router.get("/login", include_in_schema=False)
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
    return document(
        "Sign in",
        "Sign in",
        [
            f'<p class="fails" role="alert">{wrong}</p>' if wrong else "",
            '<form method="post" action="/login" class="sign-in"><input hidden name="user" '
            'autocomplete="username" value="restive"><label>Token <input '
            'name="token" type="password" required autocomplete="current-password"></label>'
            "<button>Sign in</button></form>",
            '<p class="note"><code>restive live token</code> makes one.</p>',
        ],
    )
