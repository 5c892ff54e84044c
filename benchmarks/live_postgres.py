"""Live agents in PostgreSQL over a local socket, against the same steps in a SQLite file.

The server's own processor time is told beside the client's: SQLite has no server.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tests.postgres_server import POSTGRES, Server

import restive as rs
from benchmarks.harness import Result
from benchmarks.live import LEVELS, STEPS, _clocks, _stepped

ROUNDS = 10


def run() -> list[Result]:
    """Run steps in both; nothing where there is no PostgreSQL."""
    if POSTGRES is None:
        return []
    server = Server()
    try:
        with tempfile.TemporaryDirectory() as folder:
            places = (server.new_place(), Path(folder) / "a.db")
            agents = [
                rs.LiveAgent.create(
                    place, rs.grid_prior(LEVELS, 8), 3, seed=1, durability="process"
                )
                for place in places
            ]
            began = _seconds_of(server)
            clocks = [
                [_clocks(lambda live=live: _stepped(live, STEPS)) for live in agents]
                for _ in range(ROUNDS)
            ]
            spent = (_seconds_of(server) - began) / (ROUNDS * STEPS)
            for live in agents:
                live.close()
    finally:
        server.close()
    there, here = ([pair[i] for pair in clocks] for i in (0, 1))
    processor = [sum(one[0] for one in own) / ROUNDS for own in (there, here)]
    wall = [min(one[1] for one in own) for own in (there, here)]
    return [
        Result(
            "step, K=8 N=3, in PostgreSQL over a local socket, over one in SQLite",
            processor[0] / processor[1],
            5.0,
            at_least=False,
            detail=f"{1e3 * processor[0]:.2f} and {1e3 * processor[1]:.2f} ms of the client's "
            f"processor time, and {1e3 * spent:.2f} ms of the server's; by the clock "
            f"{1e3 * wall[0]:.2f} and {1e3 * wall[1]:.2f}, best of {ROUNDS}",
        )
    ]


def _seconds_of(server: Server) -> float:
    """Seconds of the processor that all processes of the server have had until now."""
    main = (server.folder / "data" / "postmaster.pid").read_text().split()[0]
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields = stat.read_text().rpartition(")")[2].split()
        if main in (stat.parent.name, fields[1]):
            ticks += sum(map(int, fields[11:15]))  # with those of children that have ended
    return ticks / os.sysconf("SC_CLK_TCK")
