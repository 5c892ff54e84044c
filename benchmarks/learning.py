"""Speed and memory of learning."""

from __future__ import annotations

import subprocess
import sys

import numpy as np

import restive as rs
from benchmarks.harness import Result, best_time
from benchmarks.numpy_tsde import grid_tables, run_tsde
from learning_cases import posed
from restive.replication import replicate

__all__ = ["run"]

LEVELS = [i / 10 for i in range(1, 10)]
HORIZON = 2000
MANY_ARMS = 100_000


def run() -> list[Result]:
    return [_engine(), _threads(), _horizons(), *_many_arms(), _memory()]


def _setup(horizon: int) -> Setup:
    return posed(rs.grid_prior(LEVELS, 8), 3, "whittle", horizon)


def _per_step(setup: Setup, horizon: int, replications: int, threads: int = 1) -> float:
    times = np.array([horizon])
    seconds = best_time(
        lambda: replicate(*setup, times, replications, with_oracle=False, threads=threads), 5
    )
    return seconds / (replications * horizon)


def _engine() -> Result:
    setup = _setup(HORIZON)
    _per_step(setup, HORIZON, 1)
    beliefs, pairs = grid_tables(np.array(LEVELS), 94)
    index = rs.channel_whittle_index(pairs[:, 0], pairs[:, 1], 94)
    rng = np.random.default_rng(0)
    ours, plain = float("inf"), float("inf")
    for _ in range(6):  # turn by turn, so that both meet the same neighbours on the machine
        ours = min(ours, _per_step(setup, HORIZON, 100))
        plain = min(
            plain,
            best_time(lambda: run_tsde(index, beliefs, 8, 3, HORIZON, 7, rng), 3) / HORIZON,
        )
    return Result(
        "TSDE, K=8 N=3 C=81 T=2000, one core: times faster than numpy",
        plain / ours,
        200,
        True,
        f"{ours * 1e6:.3f} us a step against {plain * 1e6:.1f}",
    )


def _threads() -> Result:
    setup = _setup(HORIZON)
    one = _per_step(setup, HORIZON, 1000, threads=1)
    two = _per_step(setup, HORIZON, 1000, threads=2)
    return Result("two threads: times faster than one", one / two, 1.7, True)


def _horizons() -> Result:
    costs = [
        _per_step(_setup(horizon), horizon, 160_000 // horizon) for horizon in (500, 2000, 8000)
    ]
    return Result(
        "cost per step: T=8000 over T=500",
        costs[2] / costs[0],
        1,
        False,
        "us a step at T = 500, 2000, 8000: " + ", ".join(f"{cost * 1e6:.3f}" for cost in costs),
    )


def _many_arms() -> list[Result]:
    """Time K=100,000, N=100; with the best fixed arms of few kinds, so that episodes get long."""
    values = np.random.default_rng(0).random(MANY_ARMS)
    yardstick = best_time(lambda: np.argpartition(values, MANY_ARMS - 100), 20)
    agent = rs.TSDE(rs.grid_prior(LEVELS, MANY_ARMS), 100, "whittle", horizon=10_000)
    rng = np.random.default_rng(1)
    starts = []
    for _ in range(20):
        starts.append(best_time(agent.select, 1))
        agent.observe(rng.integers(0, 2, 100))
    known = rs.IndependentPrior([rs.ArmPrior([rs.gilbert_elliott(0.3, 0.7)])] * MANY_ARMS)
    steady = rs.TSDE(known, 100, "best_fixed", horizon=10_000)
    within = []
    for _ in range(400):
        before = steady.episode.number
        begin = best_time(steady.select, 1)
        seen = rng.integers(0, 2, 100)
        step = begin + best_time(lambda seen=seen: steady.observe(seen), 1)
        if steady.episode.number == before:
            within.append(step)
    return [
        Result(
            "K=100,000 N=100, a step within an episode: argpartitions",
            float(np.median(within)) / yardstick,
            4,
            False,
            f"median of {len(within)} steps; one argpartition takes {yardstick * 1e3:.2f} ms",
        ),
        Result(
            "K=100,000 N=100, an episode's start: argpartitions",
            float(np.median(starts)) / yardstick,
            30,
            False,
        ),
    ]


def _memory() -> Result:
    """Peak memory of 10,000 replications, in a process of its own, over that of 10."""
    peaks = []
    for replications in (10, 10_000):
        program = (
            "import restive as rs\n"
            f"rs.bayesian_regret(rs.grid_prior({LEVELS}, 8), 3, 'whittle', {HORIZON}, "
            f"{replications})\n"
            "print(open('/proc/self/status').read().split('VmHWM:')[1].split()[0])\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        )
        peaks.append(int(done.stdout) / 1024)
    return Result(
        "10,000 replications x 50 times: MiB more than for 10",
        peaks[1] - peaks[0],
        200,
        False,
        f"peak {peaks[1]:.0f} MiB in all, {peaks[0]:.0f} of it for Python, numba and the tables",
    )
