"""The service at 100,000 arms: how long an operator waits for a page of the list."""

from __future__ import annotations

import tempfile
from pathlib import Path

from starlette.testclient import TestClient

import restive as rs
from benchmarks.harness import Result, best_time
from restive.serve.app import make_app

ARMS, PULLS, TICKS = 100_000, 1000, 4
LISTS = ("/", "/arms?by=index", "/arms?by=index&after=50000", "/arms?by=name", "/arms?by=pulls",
         "/arms?by=age", "/arms?by=belief", "/known", "/v1/arms?by=index")  # fmt: skip


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        live = rs.LiveAgent.create(
            Path(folder) / "a.db", rs.grid_prior([0.1, 0.3, 0.5, 0.7, 0.9], ARMS), PULLS,
            clock=rs.Clock.given(), durability="process",
        )  # fmt: skip
        for tick in range(TICKS):
            live.record(dict.fromkeys(live.decide(tick=tick).arms, tick % 2))
        live.decide(tick=TICKS)
        headers = {"Authorization": f"Bearer {live.make_token('a', 'read')}"}
        with live, TestClient(make_app(live), headers=headers) as client:
            return [_answered(client, path) for path in LISTS]


def _answered(client: TestClient, path: str) -> Result:
    def ask() -> None:
        assert client.get(path).status_code == 200

    seconds = best_time(ask)
    return Result(
        f"milliseconds to answer {path} of {ARMS:,} arms", 1e3 * seconds, 300.0, at_least=False
    )
