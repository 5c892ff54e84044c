"""What goes wrong, as problem documents (RFC 9457)."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from restive.errors import (
    BusyError,
    ConflictError,
    DiskFullError,
    MovedOnError,
    RestiveError,
    StoreError,
    UnreachableError,
)
from restive.live.told.answers import RefusedError

__all__ = [
    "Problem",
    "add_handlers",
    "error_response",
    "problem_bytes",
    "problem_response",
    "refusals",
]

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 1
MOST_LISTED = 100  # mistakes that a document names

SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong and what to do"},
        "mistakes": {"type": "array", "items": {"type": "object"}},
    },
}
# the first that fits
STATUS_OF: Sequence[tuple[type[RestiveError], int]] = (
    (MovedOnError, 412),
    (ConflictError, 409),
    (BusyError, 503),
    (UnreachableError, 503),
    (DiskFullError, 507),
    (StoreError, 500),
    (RestiveError, 422),
)
log = logging.getLogger("restive.serve")


class Problem(Exception):  # noqa: N818 (it is what RFC 9457 calls it)
    """Ends a request with a problem document."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def refusals(*codes: int) -> dict[int | str, dict[str, Any]]:
    """Return the description of refusals, for the OpenAPI document."""
    return {
        code: {
            "description": HTTPStatus(code).phrase,
            "content": {MEDIA_TYPE: {"schema": SCHEMA}},
        }
        for code in codes
    }


def problem_response(
    status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any
) -> Response:
    """Return a problem document."""
    body = {
        "type": "about:blank", "title": HTTPStatus(status).phrase, "status": status,
        "detail": detail, **more,
    }  # fmt: skip
    given = dict(headers or {})
    if status in (429, 503):
        given.setdefault("Retry-After", str(RETRY_SECONDS))
    # in ASCII: a detail may quote letters that cannot be encoded
    return Response(json.dumps(body).encode(), status, given, MEDIA_TYPE)


def problem_bytes(status: int, detail: str) -> bytes:
    """Return a problem document as it goes over the wire, where nobody reads the request."""
    answer = problem_response(status, detail, {"Connection": "close"})
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}".encode()]
    lines += [name + b": " + value for name, value in answer.raw_headers]
    return b"\r\n".join([*lines, b"", bytes(answer.body)])


def add_handlers(app: FastAPI) -> None:
    """Let every error of an app become a problem document."""
    app.add_exception_handler(Problem, _on_our_error)
    app.add_exception_handler(RestiveError, _on_our_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_surprise)


def error_response(error: Problem | RestiveError) -> Response:
    """Return the problem document of an error."""
    if isinstance(error, Problem):
        return problem_response(error.status, error.detail, error.headers)
    if isinstance(error, RefusedError):
        conflict = all(mistake.conflict for mistake in error.mistakes)
        mistakes = [vars(mistake) for mistake in error.mistakes[:MOST_LISTED]]
        return problem_response(409 if conflict else 422, str(error), mistakes=mistakes)
    status = next(code for kind, code in STATUS_OF if isinstance(error, kind))
    if status == 500:
        log.error("%s", error)
    return problem_response(status, str(error))


async def _on_our_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, Problem | RestiveError)
    return error_response(error)


async def _on_invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    found = error.errors()[:MOST_LISTED]
    mistakes = [
        {"where": ".".join(str(place) for place in one["loc"]), "what": one["msg"]} for one in found
    ]
    status = 400 if any(one["type"] == "json_invalid" for one in found) else 422
    first = mistakes[0]
    detail = f"{first['where']}: {first['what']}"
    return problem_response(status, detail, mistakes=mistakes)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return problem_response(error.status_code, str(error.detail), headers)


def _methods(request: Request) -> set[str]:
    """All methods of a place; a router tells those of the first route that it finds."""
    return {
        method
        for method in ("DELETE", "GET", "POST")
        for route in request.app.routes
        if route.matches({**request.scope, "method": method})[0] == Match.FULL
    }


async def _on_surprise(request: Request, error: Exception) -> Response:
    return problem_response(500, "an error that nobody foresaw; the service's log has more")
