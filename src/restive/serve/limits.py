"""How much a request may ask for: bytes, seconds, and requests a second."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import ceil
from time import monotonic

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.serve.problems import Problem, problem_response

__all__ = ["BODY_BYTES", "RATE", "SECONDS", "Limits", "Rate"]

BODY_BYTES = 8 << 20
SECONDS = 30.0
RATE = 60.0
MOST_KEYS = 10_000


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
    """Reads a request's body before anything else, and ends what takes too long.

    Parameters
    ----------
    app
        What answers.
    body_bytes
        The longest body, counted as it comes.
    seconds
        For the body to come, and again for the answer to be made.
    """

    def __init__(self, app: ASGIApp, body_bytes: int, seconds: float) -> None:
        self.app, self.body_bytes, self.seconds = app, body_bytes, seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self.seconds):
                body = await self._body(scope, receive)
        except TimeoutError:
            late = problem_response(
                408, f"the body did not come within {self.seconds:g} s", {"Connection": "close"}
            )
            await late(scope, receive, send)
        except Problem as error:
            refusal = problem_response(error.status, error.detail, error.headers)
            await refusal(scope, receive, send)
        else:
            if body is not None:
                await self._answer(scope, body, receive, send)

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body, None if the client has gone."""
        too_long = Problem(
            413, f"the body is longer than {self.body_bytes:,} bytes", {"Connection": "close"}
        )
        told = dict(scope["headers"]).get(b"content-length", b"0")
        if told.isdigit() and int(told[:20]) > self.body_bytes:
            raise too_long
        parts, length = [], 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            part = message.get("body", b"")
            parts.append(part)
            length += len(part)
            if length > self.body_bytes:
                raise too_long
            if not message.get("more_body", False):
                return b"".join(parts)

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
