"""Fitting a large log against reading it: 10^7 rows of 10^5 arms, beside pandas' read_csv.

Both use every core. They take turns, and the fastest of each counts.
"""

from __future__ import annotations

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
        fit(path)  # compiles
        write_log(path, ARMS, STEPS)
        reading, fitting = [], []
        for _ in range(TURNS):
            reading.append(seconds(lambda: pd.read_csv(path)))
            fitting.append(seconds(lambda: fit(path)))
    (pandas, pandas_cpu), (ours, ours_cpu) = (
        [min(column) for column in zip(*found, strict=True)] for found in (reading, fitting)
    )
    return [
        Result(
            "fitting and checking 10^7 rows of 10^5 arms / pandas.read_csv",
            ours / pandas,
            3.0,
            False,
            f"{ours:.2f} s against {pandas:.2f} s; CPU {ours_cpu:.2f} s against {pandas_cpu:.2f} s",
        )
    ]


def seconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return how long work takes, by the clock and in CPU seconds of all threads."""
    begin, cpu = perf_counter(), process_time()
    work()
    return perf_counter() - begin, process_time() - cpu


def fit(path: Path) -> None:
    """Read, fit and check."""
    log = rs.load_log(path, time="step", arm="arm", state="state")
    assert len(rs.fit_log(log).arms) == log.num_arms


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
