"""The service as an ASGI application, and the server that runs it until it is told to stop."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from shlex import quote

import uvicorn
from fastapi import FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from restive.errors import ProblemError
from restive.live.agent import LiveAgent
from restive.serve import endpoints, forgetting, probes
from restive.serve.auth import require_known
from restive.serve.connections import BACKLOG, connection_class, listening_socket
from restive.serve.limits import BODY_BYTES, RATE, SECONDS, Limits
from restive.serve.page import routes
from restive.serve.problems import add_handlers
from restive.serve.service import Service

__all__ = ["make_app", "run_server"]

LOCAL = ("127.0.0.1", "::1", "localhost")
FINISH_SECONDS = 4  # for requests that have begun, when the service is told to stop

# Nothing is loaded from elsewhere, and nobody may put the page into a frame.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    b"content-security-policy": POLICY.encode(),
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"same-origin",  # with less, browsers hide the origin of forms
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}
ABOUT = (
    "A live agent: decide which arms to pull, record what was seen, look at what is known. "
    "Send a token of `restive live token` in the header `Authorization: Bearer ...`."
)


def make_app(
    agent: LiveAgent,
    *,
    rate: float = RATE,
    body_bytes: int = BODY_BYTES,
    seconds: float = SECONDS,
) -> FastAPI:
    """Return the service of an agent, which stays open when the service ends.

    Parameters
    ----------
    agent
        The agent.
    rate
        Requests a second that a token may make.
    body_bytes
        The longest body of a request.
    seconds
        For a body to come, and for an answer to be made.
    """
    service = Service(agent, rate)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(
        title="restive", version=version("restive"), description=ABOUT, lifespan=lifespan,
        openapi_url=None, docs_url=None, redoc_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    add_handlers(app)
    app.add_middleware(Limits, require_known=require_known, body_bytes=body_bytes, seconds=seconds)
    app.add_middleware(Guarded)
    for part in (endpoints, forgetting, probes, routes):
        app.include_router(part.router)
    return app


class Guarded:
    """Gives every answer the headers that keep browsers safe."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                fresh = {b"cache-control": b"no-store", **HEADERS}
                new = [pair for pair in fresh.items() if pair[0] not in given]
                message["headers"] = [*message["headers"], *new]
            await send(message)

        await self.app(scope, receive, headed)


def run_server(
    agent: LiveAgent,
    host: str,
    port: int,
    say: Callable[[str], None],
    proxy: str = "",
) -> None:
    """Serve an agent until SIGTERM or Ctrl-C; requests that have begun are finished.

    Parameters
    ----------
    agent
        The agent; it is closed in the end.
    host, port
        Where to listen; port 0 takes one that is free.
    say
        Called with what the operator should know.
    proxy
        Addresses of proxies that are believed who their clients are, divided by commas.
    """
    with agent:
        if not agent.tokens():
            raise ProblemError(
                "nobody has a token yet: make one with "
                f"`restive live token {quote(agent.path)} NAME --role act`"
            )
        with listening_socket(host, port) as listener:
            agent.status()  # which sums up all ticks once, and keeps the sums
            found = listener.getsockname()[1]
            shown = f"[{host}]" if ":" in host else host
            tick, words = agent.tick, agent.settings.words
            stands = "nothing decided yet" if tick < 0 else words.when(tick)
            say(f"listening on http://{shown}:{found}/ ({stands})")
            if host not in LOCAL:
                say(
                    "others can reach this; put a proxy with TLS in front, or tokens travel in "
                    "the open"
                )
            app = make_app(agent)
            config = uvicorn.Config(
                app, http=connection_class(), ws="none", lifespan="off", log_level="warning",
                server_header=False, timeout_graceful_shutdown=FINISH_SECONDS, backlog=BACKLOG,
                proxy_headers=bool(proxy), forwarded_allow_ips=proxy or "",
            )  # fmt: skip
            # uvicorn raises the signal again when it has finished; then there is nothing left to do
            before = signal.signal(signal.SIGTERM, lambda number, frame: None)
            try:
                uvicorn.Server(config).run(sockets=[listener])
            finally:
                signal.signal(signal.SIGTERM, before)
                app.state.service.close()
