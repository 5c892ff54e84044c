"""What whoever uses restive for the first time waits for: compiling, with an empty cache.

In units of what Numba takes, in the same run, to compile one plain function for eight types. The
goals are 1.6 times what compiling took with a typing context of our own within Numba's (6 units for
a plan, 8 for an agent and regret), which was not worth keeping. Plain Numba (RESTIVE_PLAIN_NUMBA=1)
takes two to three times as long.
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

UNIT = """
from time import process_time
import numba
import numpy as np

@numba.njit
def smooth(table, row, weights):
    total = 0 * table[0, 0]
    for i in range(1, table.shape[0] - 1):
        for j in range(table.shape[1]):
            mean = (table[i - 1, j] + weights[i] * table[i, j] + table[i + 1, j]) / 3
            row[j] = max(row[j], mean)
            if row[j] > total:
                total += row[j] * weights[i] - min(mean, table[i, j])
        weights[i] += total
    return total

smooth(np.ones((3, 3)), np.ones(3), np.ones(3))  # what Numba itself sets up
begun = process_time()
for kind in "fihl":
    for other in "dl":
        smooth(np.ones((3, 3), kind), np.ones(3, other), np.ones(3, "f"))
print(process_time() - begun)
"""


def run() -> list[Result]:
    unit = min(_unit() for _ in range(3))
    return [
        _first_use("`restive plan` of a small problem: units of compiling", PLAN, 9.6, unit),
        _first_use(
            "an agent and Bayesian regret: units of compiling", ("-c", AGENT_AND_REGRET), 12.8, unit
        ),
    ]


def _unit() -> float:
    printed = subprocess.run([sys.executable, "-c", UNIT], check=True, capture_output=True)
    return float(printed.stdout)


def _first_use(name: str, program: tuple[str, ...], goal: float, unit: float) -> Result:
    with TemporaryDirectory() as folder:
        first, second = _cpu_seconds(program, folder), _cpu_seconds(program, folder)
    said = f"{first:.1f} CPU s in all, {second:.1f} from the second run on; a unit is {unit:.2f} s"
    return Result(name, (first - second) / unit, goal, False, said)


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
