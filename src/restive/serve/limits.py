"""How much a request may ask for: bytes, seconds, and requests a second."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from math import ceil
from time import monotonic

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.errors import RestiveError
from restive.serve.problems import Problem, error_response, problem_response

__all__ = ["BODY_BYTES", "RATE", "SECONDS", "Limits", "Rate"]

BODY_BYTES = 8 << 20
SMALL_BODY = 1 << 14  # of those who need no token
BYTES_IN_FLIGHT = 64 << 20
SECONDS = 30.0
RATE = 60.0
MOST_KEYS = 10_000
RequireKnown = Callable[[Request, Mapping[str, str]], Awaitable[None]]
OPEN_TO_ALL = ("/healthz", "/readyz", "/login", "/logout")
CLOSE = {"Connection": "close"}


class Rate:
    """Counts requests: each key has as many as it may make in a second, and they come back.

    Parameters
    ----------
    per_second
        Requests that a key may make, a second.
    clock
        Tells the time in seconds, for tests.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = monotonic) -> None:
        self.per_second = per_second
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}  # requests left, and when that was so

    def take(self, key: str) -> None:
        """Count a request, or raise if there were too many."""
        now = self._clock()
        left, then = self._left.pop(key, (self.per_second, now))
        left = min(self.per_second, left + (now - then) * self.per_second)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        if len(self._left) > MOST_KEYS:
            del self._left[next(iter(self._left))]  # the one that has been quiet for longest
        if left < 1:
            wait = ceil((1 - left) / self.per_second)
            detail = f"more than {self.per_second:g} requests a second; wait a little"
            raise Problem(429, detail, {"Retry-After": str(wait)})


class Limits:
    """Lets in a body that is not too long of somebody who is known; ends what takes too long.

    Parameters
    ----------
    app
        What answers.
    require_known
        Raises for somebody whose body is not read.
    body_bytes
        The longest body, counted as it comes.
    seconds
        For the body to come, and again for the answer to be made.
    """

    def __init__(
        self, app: ASGIApp, require_known: RequireKnown, body_bytes: int, seconds: float
    ) -> None:
        self.app, self.body_bytes, self.seconds = app, body_bytes, seconds
        self.require_known = require_known
        self.most_in_flight = max(BYTES_IN_FLIGHT, body_bytes)
        self.in_flight = 0  # bytes of bodies that are not answered yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        parts: list[bytes] = []
        try:
            async with asyncio.timeout(self.seconds):
                whole = await self._body(scope, receive, parts)
        except TimeoutError:
            late = problem_response(
                408, f"the body did not come within {self.seconds:g} s", {"Connection": "close"}
            )
            await late(scope, receive, send)
        except asyncio.CancelledError:  # the service stops, and waits no longer
            await problem_response(503, "the service stops", {"Connection": "close"})(
                scope, receive, send
            )
        except (Problem, RestiveError) as error:
            await error_response(error)(scope, receive, send)
        else:
            if whole:
                await self._answer(scope, b"".join(parts), receive, send)
        finally:
            self.in_flight -= sum(map(len, parts))

    async def _body(self, scope: Scope, receive: Receive, parts: list[bytes]) -> bool:
        """Read the body into `parts`; return whether all of it came, or the client has gone."""
        headers = dict(scope["headers"])
        told = headers.get(b"content-length", b"0")
        if b"transfer-encoding" in headers:
            if b"content-length" in headers:  # who is right, a proxy may see otherwise than we
                raise Problem(400, "send Content-Length or Transfer-Encoding, not both", CLOSE)
        elif told == b"0":
            await receive()
            return True
        most = self.body_bytes
        if scope["path"] in OPEN_TO_ALL:
            most = min(most, SMALL_BODY)
        else:
            await self.require_known(Request(scope), CLOSE)
        too_long = Problem(413, f"the body is longer than {most:,} bytes", CLOSE)
        if told.isdigit() and int(told[:20]) > most:
            raise too_long
        length = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            part = message.get("body", b"")
            parts.append(part)
            length += len(part)
            self.in_flight += len(part)
            if length > most:
                raise too_long
            if self.in_flight > self.most_in_flight:
                raise Problem(503, "too many bytes are on their way; try again", CLOSE)
            if not message.get("more_body", False):
                return True

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        begun = False

        async def replayed() -> Message:
            return waiting.pop() if waiting else await receive()

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            async with asyncio.timeout(self.seconds):
                await self.app(scope, replayed, noted)
        except TimeoutError:
            if begun:
                raise
            late = problem_response(
                503,
                f"no answer within {self.seconds:g} s; what was asked for may still be done, so "
                "ask again with the same Idempotency-Key",
            )
            await late(scope, receive, send)
