"""Reading and fitting a large log: 10^7 rows of 10^5 arms, beside pandas' read_csv.

Both use every core. They take turns, and the fastest of each counts. Memory is that of a process
which only reads the log, at its peak.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np
import pandas as pd

import restive as rs
from benchmarks.harness import Result

ARMS, STEPS = 100_000, 100
TURNS = 6


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path, 50, STEPS)
        rs.fit_log(load(path))  # compiles
        write_log(path, ARMS, STEPS)
        theirs, reading, fitting = [], [], []
        for _ in range(TURNS):
            theirs.append(seconds(lambda: pd.read_csv(path)))
            reading.append(seconds(lambda: load(path)))
            fitting.append(seconds(lambda: rs.fit_log(load(path)).arms))
        peak = peak_bytes(path)
    (pandas, pandas_cpu), (read, read_cpu), (fitted, fitted_cpu) = (
        [min(column) for column in zip(*found, strict=True)] for found in (theirs, reading, fitting)
    )
    return [
        Result(
            "reading a log of 10^7 rows of 10^5 arms / pandas.read_csv",
            read / pandas,
            10.0,
            False,
            f"{read:.2f} s against {pandas:.2f} s; CPU {read_cpu:.2f} s against {pandas_cpu:.2f}; "
            f"with fitting and checking {fitted:.2f} s, CPU {fitted_cpu:.2f} s",
        ),
        Result("reading 10^7 rows: memory [GB]", peak / 1e9, 1.5, False),
    ]


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long work takes, by the clock and in CPU seconds of all threads."""
    begin, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - begin, process_time() - cpu


def load(path: Path) -> rs.types.Log:
    """Read the log."""
    return rs.load_log(path, time="step", arm="arm", state="state")


def peak_bytes(path: Path) -> int:
    """Return how much memory a process of its own has held at most, while it read the log."""
    code = (
        "import resource, restive; "
        f"restive.load_log({str(path)!r}, time='step', arm='arm', state='state'); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)


def write_log(path: Path, num_arms: int, steps: int) -> None:
    """A log in order of time, in which every arm is seen in every step."""
    rng = np.random.default_rng(0)
    p01, p11 = rng.beta(2, 4, num_arms), rng.beta(5, 2, num_arms)
    states = rng.random(num_arms) < 0.5
    names = [f"arm-{k}" for k in range(num_arms)]
    with path.open("w", encoding="utf-8") as file:
        file.write("step,arm,state\n")
        for step in range(steps):
            states = rng.random(num_arms) < np.where(states, p11, p01)
            shown = zip(names, states.astype(int).tolist(), strict=True)
            file.write("".join(f"{step},{name},{state}\n" for name, state in shown))
