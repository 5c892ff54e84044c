"""A live agent that many requests share: its calls run in one thread of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import random
from time import monotonic, perf_counter
from typing import Any, TypeVar

from fastapi import Request
from prometheus_client import CollectorRegistry, Histogram

from restive.errors import BusyError, ConflictError
from restive.live.agent import LiveAgent
from restive.live.creating import rebuild_file
from restive.serve.limits import Rate

__all__ = ["Service", "service_of"]

T = TypeVar("T")

BUSY_SECONDS = 10.0  # for another process that writes to the file
TURN_SECONDS = 0.02  # of these in one turn of the agent's thread
PATIENT_SECONDS = 10.0  # for a rebuild, before whoever waits is told that it goes on
LONGEST_NAP = 0.005  # seconds between two turns


class Service:
    """An agent, and what its requests share.

    Parameters
    ----------
    agent
        The agent; whoever opened it closes it.
    rate
        Requests a second that a token may make.
    """

    def __init__(self, agent: LiveAgent, rate: float) -> None:
        self.agent = agent
        if agent is not None:  # but for a description of the service
            agent.wait_for_others(TURN_SECONDS)
        self.rate = Rate(rate)
        self.registry = CollectorRegistry()
        self._write_seconds = Histogram(
            "restive_write_seconds",
            "Seconds of a call that writes, its commit included",
            registry=self.registry,
        )
        self._agent_thread = ThreadPoolExecutor(1, "restive-agent")
        self._rebuilding_thread = ThreadPoolExecutor(1, "restive-rebuilding")
        self._rebuilding: asyncio.Future[None] | None = None
        self.taking_in = ""  # how far a rebuild is, if there is one now
        self._drawings: dict[str, tuple[int, str]] = {}
        self._drawing_thread = ThreadPoolExecutor(1, "restive-drawing")

    async def read(self, work: Callable[[LiveAgent], T]) -> T:
        """Return what a function of the agent returns, in its turn."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._agent_thread, work, self.agent)

    async def write(self, work: Callable[[LiveAgent], T], expected: int | None = None) -> T:
        """Do the same where the function writes; it may insist on the tick that is `expected`.

        It must write in one transaction: while somebody else has the file's lock it is tried again
        and again, and those who read are served in between. A call whose connection to a database
        broke is not tried again: it may have been done, and its client has the request's id.
        """

        def timed(agent: LiveAgent) -> T:
            began = perf_counter()
            with agent.expecting(expected):
                done = work(agent)
            self._write_seconds.observe(perf_counter() - began)
            return done

        until = monotonic() + BUSY_SECONDS
        while True:
            try:
                return await self.read(timed)
            except BusyError:
                if monotonic() > until:
                    raise
            await asyncio.sleep(random() * LONGEST_NAP)

    async def take_in(self) -> bool:
        """Rebuild the file with its corrections; return whether that is done, or still going on.

        It has a thread of its own, so that whoever reads is served meanwhile.
        """
        loop = asyncio.get_running_loop()
        if self._rebuilding is None or self._rebuilding.done():
            self.taking_in = "0%"
            self._rebuilding = loop.run_in_executor(self._rebuilding_thread, self._rebuild)
            self._rebuilding.add_done_callback(self._taken_in)
        done, _ = await asyncio.wait([self._rebuilding], timeout=PATIENT_SECONDS)
        for one in done:
            one.result()
        return bool(done)

    def _rebuild(self) -> None:
        def show(done: int, total: int) -> None:
            self.taking_in = f"{done / max(total, 1):.0%}"

        for last in (False, False, True):
            try:
                return rebuild_file(self.agent.path, None, show)
            except ConflictError:  # somebody wrote meanwhile
                if last:
                    raise
        return None

    def _taken_in(self, done: asyncio.Future[None]) -> None:
        self.taking_in = ""
        self._drawings.clear()
        if not done.cancelled():
            done.exception()  # whoever waits for it is told; nobody may be there any more

    async def draw(self, work: Callable[..., T], *given: Any) -> T:
        """Run a function that draws: matplotlib's settings are global, so one at a time."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._drawing_thread, work, *given)

    async def drawn(self, name: str, version: int, work: Callable[..., str], *given: Any) -> str:
        """Return a drawing, which is kept until its version is another."""
        kept = self._drawings.get(name)
        if kept is None or kept[0] != version:
            kept = self._drawings[name] = (version, await self.draw(work, *given))
        return kept[1]

    def close(self) -> None:
        """Finish what has begun."""
        self._drawing_thread.shutdown(cancel_futures=True)
        self._rebuilding_thread.shutdown(cancel_futures=True)
        self._agent_thread.shutdown()


def service_of(request: Request) -> Service:
    """Return the service that a request came to."""
    service: Service = request.app.state.service
    return service
