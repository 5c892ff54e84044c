"""Clients that record results over HTTP, against a bare FastAPI endpoint that writes one row.

Both servers are processes of their own with one connection to SQLite, its log and a sync for each
commit; a client has one connection that it keeps, and sends the next result once the last is
acknowledged.
"""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

import restive as rs
from benchmarks.harness import Result

if TYPE_CHECKING:
    from collections.abc import Iterator

CLIENTS = (1, 8, 32)
SECONDS = 3.0
ARMS = 30_000
GOAL = 3.0  # times the bare endpoint's median
SERVICE = """
import sys, uvicorn
from restive.live.agent import LiveAgent
from restive.serve.app import make_app
from restive.serve.connections import connection_class, listening_socket
live = LiveAgent.open(sys.argv[1])
app, listener = make_app(live, rate=1e9), listening_socket("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, http=connection_class(), ws="none", lifespan="off", log_level="error")
uvicorn.Server(config).run(sockets=[listener])
"""
BARE = """
import sqlite3, sys, uvicorn
from concurrent.futures import ThreadPoolExecutor
from asyncio import get_running_loop
from fastapi import FastAPI, Request
from restive.serve.connections import connection_class, listening_socket
rows = sqlite3.connect(sys.argv[1], isolation_level=None, check_same_thread=False)
rows.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL")
rows.execute("CREATE TABLE row(body TEXT)")
app, thread = FastAPI(), ThreadPoolExecutor(1)
@app.post("/v1/observations")
async def record(request: Request) -> dict:
    row = ((await request.body()).decode(),)
    await get_running_loop().run_in_executor(
        thread, rows.execute, "INSERT INTO row VALUES (?)", row)
    return {"new": 1}
listener = listening_socket("127.0.0.1", 0)
print(listener.getsockname()[1], flush=True)
config = uvicorn.Config(app, http=connection_class(), ws="none", lifespan="off", log_level="error")
uvicorn.Server(config).run(sockets=[listener])
"""


class Load(NamedTuple):
    """What clients were given."""

    per_second: float
    median: float  # milliseconds
    late: float  # of which 1 in 100 takes longer


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.db"
        with rs.LiveAgent.create(path, rs.grid_prior([0.2, 0.8], ARMS), ARMS) as live:
            secret = live.make_token("a", "act")
            live.decide()
        ours: dict[int, Load] = {}
        with _serving(SERVICE, path) as port:
            arms = iter(range(ARMS))
            for clients in CLIENTS:
                ours[clients] = _measured(port, clients, secret, arms)
        with _serving(BARE, Path(folder) / "bare.db") as port:
            bare = {
                clients: _measured(port, clients, "", iter(range(10**9))) for clients in CLIENTS
            }
    return [_result(clients, ours[clients], bare[clients]) for clients in CLIENTS]


def _result(clients: int, ours: Load, bare: Load) -> Result:
    return Result(
        f"a result recorded over HTTP, {clients} clients, over a bare endpoint's median",
        ours.median / bare.median,
        GOAL,
        at_least=False,
        detail=f"{ours.per_second:.0f} a second, p50 {ours.median:.2f} ms, p99 {ours.late:.1f} ms; "
        f"bare {bare.per_second:.0f}, {bare.median:.2f} and {bare.late:.1f}",
    )


@contextmanager
def _serving(program: str, path: Path) -> Iterator[int]:
    """Yield the port of a server that is a process of its own."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def _measured(port: int, clients: int, secret: str, arms: Iterator[int]) -> Load:
    """Let clients send results for some seconds."""
    end = perf_counter() + SECONDS

    def client() -> list[float]:
        wire = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Authorization": f"Bearer {secret}", "Content-Type": "application/json"}
        times = []
        while (began := perf_counter()) < end:
            body = json.dumps({"tick": 0, "seen": {str(next(arms)): 1}})
            wire.request("POST", "/v1/observations", body, headers)
            answer = wire.getresponse()
            assert answer.status == 200, answer.read()
            assert json.loads(answer.read())["new"] == 1
            times.append(perf_counter() - began)
        wire.close()
        return times

    with ThreadPoolExecutor(clients) as pool:
        found = [pool.submit(client) for _ in range(clients)]
        times = np.array([time for one in found for time in one.result()])
    median, late = np.quantile(times, [0.5, 0.99])
    return Load(len(times) / SECONDS, 1e3 * float(median), 1e3 * float(late))
