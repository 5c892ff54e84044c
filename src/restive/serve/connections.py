"""Connections: how many there may be, for how long one may be quiet, and a socket without delay.

What uvicorn leaves open: a client that sends half a request's head may keep its connection for
ever, and as many as the system has room for. Where there are too many, the one that has waited
longest without a request gives way, so that somebody who comes with one is heard.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from restive.errors import ProblemError
from restive.serve.problems import problem_bytes

__all__ = ["BACKLOG", "HttpConnection", "connection_class", "listening_socket"]

MOST_CONNECTIONS = 512
HEAD_SECONDS = 10.0  # for a request's head to come, and for the next one to begin
BACKLOG = 128  # connections that wait to be taken, and that are taken at once
LOG_SECONDS = 60.0  # between two lines that say the same

log = logging.getLogger("restive.serve")


class HttpConnection(H11Protocol):
    """A connection whose client must say something in time."""

    most = MOST_CONNECTIONS
    head_seconds = HEAD_SECONDS
    _told = -LOG_SECONDS  # when somebody was last turned away, by the loop's clock
    _quiet_since = 0.0

    @property
    def _busy(self) -> bool:
        """Whether a request has begun that is not answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or turn somebody away."""
        super().connection_made(transport)
        self._quiet_since = self.loop.time()
        if len(self.connections) > self.most:
            self._make_room()
        self.loop.call_later(self.head_seconds / 2, self._look)

    def _look(self) -> None:
        """Close a connection that has been quiet for too long; look again later if not."""
        if self.transport.is_closing():
            return
        if self._busy:
            self._quiet_since = self.loop.time()
        elif self.loop.time() - self._quiet_since >= self.head_seconds:
            self.transport.abort()
            return
        self.loop.call_later(self.head_seconds / 2, self._look)

    def _make_room(self) -> None:
        kind = type(self)
        now = self.loop.time()
        if now - kind._told >= LOG_SECONDS:
            kind._told = now
            log.warning("more than %d connections: some are turned away", self.most)
        others: list[Any] = [one for one in self.connections if one is not self]
        quiet = [one for one in others if not one._busy]
        if quiet:
            oldest = min(quiet, key=lambda one: one._quiet_since)
            self.connections.discard(oldest)  # it is told so only in the loop's next turn
            oldest.transport.abort()
            return
        self.connections.discard(self)
        self.transport.write(problem_bytes(503, "too many connections; try again"))
        self.transport.close()


def connection_class() -> type[asyncio.Protocol]:
    """Return the class of a server's connections, as many as the process may have files open."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST_CONNECTIONS if files < 0 else min(MOST_CONNECTIONS, files // 2)
    return type("HttpConnection", (HttpConnection,), {"most": most})


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens, or raise.

    It says that it speaks TCP: else asyncio lets each answer wait 40 ms for the client to
    acknowledge the one before (Nagle's algorithm).
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.create_server(address[:2], family=family, backlog=BACKLOG)
        return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP, made.detach())
    except OSError as error:
        raise ProblemError(
            f"cannot listen on {host} port {port}: {error.strerror or error}; choose another with "
            "--host and --port"
        ) from None
