"""What whoever uses restive for the first time waits for: compiling, with an empty cache.

In seconds of processor time, so they depend on the machine. The goals are 40% of what the same
took, on a machine like that of the other figures, when every function was compiled by itself.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.harness import Result

__all__ = ["run"]

PROBLEM = Path(__file__).parent.parent / "examples" / "outreach.toml"

PLAN = ("-m", "restive", "plan", str(PROBLEM))

AGENT_AND_REGRET = """
import restive as rs
prior = rs.grid_prior([i / 10 for i in range(1, 10)], 8)
agent = rs.TSDE(prior, num_pulls=3, horizon=2_000, seed=1)
for _ in range(3):
    agent.observe([0] * len(agent.select()))
rs.bayesian_regret(prior, 3, horizon=100, replications=4, seed=1)
"""


def run() -> list[Result]:
    return [
        _first_use("`restive plan` of a small problem: CPU s of the first run", PLAN, 13),
        _first_use(
            "an agent and Bayesian regret: CPU s of the first run", ("-c", AGENT_AND_REGRET), 23
        ),
    ]


def _first_use(name: str, program: tuple[str, ...], goal: float) -> Result:
    with TemporaryDirectory() as folder:
        first, second = _cpu_seconds(program, folder), _cpu_seconds(program, folder)
    return Result(name, first, goal, False, f"{second:.1f} s from the second run on")


def _cpu_seconds(program: tuple[str, ...], cache: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, *program],
        check=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
