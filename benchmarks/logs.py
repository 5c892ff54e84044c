"""Fitting a large log against reading it: 10^7 rows of 10^5 arms, beside pandas' read_csv."""

from __future__ import annotations

import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd

import restive as rs
from benchmarks.harness import Result

ARMS, STEPS = 100_000, 100


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.csv"
        write_log(path, 50, STEPS)
        fit(path)  # compiles
        write_log(path, ARMS, STEPS)
        reading, fitting = [], []
        for _ in range(2):
            begin = perf_counter()
            pd.read_csv(path)
            reading.append(perf_counter() - begin)
            begin = perf_counter()
            loading = fit(path)
            fitting.append(perf_counter() - begin)
    pandas, ours = min(reading), min(fitting)
    return [
        Result(
            "fitting and checking 10^7 rows of 10^5 arms / pandas.read_csv",
            ours / pandas,
            3.0,
            False,
            f"{ours:.1f} s (of which reading {loading:.1f} s) against {pandas:.1f} s",
        )
    ]


def fit(path: Path) -> float:
    """Read and fit; return the seconds that reading took."""
    begin = perf_counter()
    log = rs.load_log(path, time="step", arm="arm", state="state")
    loading = perf_counter() - begin
    assert len(rs.fit_log(log).arms) == log.num_arms
    return loading


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
