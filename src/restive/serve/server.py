"""Runs the service until it is told to stop."""

from __future__ import annotations

import signal
import socket
from collections.abc import Callable

import uvicorn

from restive.errors import ProblemError
from restive.live.agent import LiveAgent
from restive.serve.app import make_app

__all__ = ["HOST", "PORT", "run_server"]

HOST, PORT = "127.0.0.1", 8765
LOCAL = ("127.0.0.1", "::1", "localhost")
FINISH_SECONDS = 30
BACKLOG = 2048  # connections that wait to be taken


def run_server(
    agent: LiveAgent,
    host: str = HOST,
    port: int = PORT,
    say: Callable[[str], None] = lambda text: None,
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
    """
    with agent:
        if not agent.tokens():
            raise ProblemError(
                f"nobody has a token yet: make one with `restive live token {agent.path} NAME "
                "--role act`"
            )
        with _listening(host, port) as listener:
            found = listener.getsockname()[1]
            shown = f"[{host}]" if ":" in host else host
            say(f"listening on http://{shown}:{found}/ (tick {agent.tick})")
            if host not in LOCAL:
                say(
                    "others can reach this; put a proxy with TLS in front, or tokens travel in "
                    "the open"
                )
            config = uvicorn.Config(
                make_app(agent), http="h11", ws="none", log_level="warning",
                server_header=False, timeout_graceful_shutdown=FINISH_SECONDS,
            )  # fmt: skip
            # uvicorn raises the signal again when it has finished; then there is nothing left to do
            before = signal.signal(signal.SIGTERM, lambda number, frame: None)
            try:
                uvicorn.Server(config).run(sockets=[listener])
            finally:
                signal.signal(signal.SIGTERM, before)


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=BACKLOG)
    except OSError as error:
        raise ProblemError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with "
            "--host and --port"
        ) from None
