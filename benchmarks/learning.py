"""Speed and memory of learning."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from time import perf_counter, thread_time

import numpy as np
from numpy.typing import NDArray

import restive as rs
from benchmarks.harness import Result, best_time, seconds_to_stream
from benchmarks.numpy_tsde import grid_tables, run_tsde
from restive.kernels.loop.choosing import top_of_each
from restive.learn.learners.base import Learner
from restive.learn.learners.relatives import DynamicEpisodes
from restive.learn.task import Task, make_task
from restive.measure.replication import replicate
from restive.studies.spec import study_from_data
from restive.studies.timing import seconds_per_step

__all__ = ["run"]

FloatArray = NDArray[np.float64]

LEVELS = [i / 10 for i in range(1, 10)]
HORIZON = 2000
MANY_ARMS = 1_000_000


def run() -> list[Result]:
    return [
        _engine(), _online(), _threads(), _horizons(), *_continuous(), *_forgetting(),
        _three_states(), *_many_arms(), *_choosing(), _memory(),
    ]  # fmt: skip


def _setup(horizon: int) -> tuple[Task, Learner]:
    return make_task(rs.grid_prior(LEVELS, 8), 3, "whittle", horizon), DynamicEpisodes()


def _per_step(
    setup: tuple[Task, Learner], horizon: int, replications: int, threads: int = 1,
    repeats: int = 5, clock: Callable[[], float] = perf_counter,
) -> float:  # fmt: skip
    times = np.array([horizon])
    seconds = best_time(
        lambda: replicate(*setup, times, replications, with_oracle=False, threads=threads),
        repeats,
        clock,
    )
    return seconds / (replications * horizon)


def _engine() -> Result:
    setup = _setup(HORIZON)
    _per_step(setup, HORIZON, 1)
    beliefs, pairs = grid_tables(np.array(LEVELS), 94)
    index = rs.theory.channel_whittle_index(pairs[:, 0], pairs[:, 1], 94)
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


def _continuous() -> list[Result]:
    """Time TSDE under a continuous prior against 81 candidates, on the same truth.

    In seconds of the thread: particles do not fit into the fastest caches, so whoever shares the
    processor slows them down more than the candidates.
    """
    truth = rs.RestlessBandit([rs.gilbert_elliott(i / 10, 1 - i / 10) for i in range(1, 9)], 3)
    priors = {"grid": rs.grid_prior(LEVELS, 8), "beta": rs.beta_prior(8)}
    results = []
    for horizon, goal in ((2000, 4), (20_000, 2)):
        costs = dict.fromkeys(priors, float("inf"))
        setups = {
            name: (make_task(prior, 3, "whittle", horizon, true_bandit=truth), DynamicEpisodes())
            for name, prior in priors.items()
        }
        for name in list(priors) * 25:  # turn by turn, so that both meet the same neighbours
            cost = _per_step(setups[name], horizon, 160_000 // horizon, 1, 2, thread_time)
            costs[name] = min(costs[name], cost)
        results.append(
            Result(
                f"continuous prior, K=8 N=3 T={horizon}: times the cost of 81 candidates",
                costs["beta"] / costs["grid"],
                goal,
                False,
                f"{costs['beta'] * 1e6:.3f} us a step against {costs['grid'] * 1e6:.3f}",
            )
        )
    return results


def _forgetting() -> list[Result]:
    """Time TSDE that forgets against TSDE that does not, in seconds of the thread."""
    truth = rs.RestlessBandit([rs.gilbert_elliott(i / 10, 1 - i / 10) for i in range(1, 9)], 3)
    calls = rs.zoo.load("calls-8")
    horizon = 10_000
    tasks = {
        "81 candidates": make_task(
            rs.grid_prior(LEVELS, 8), 3, "whittle", horizon, true_bandit=truth
        ),
        "continuous prior": make_task(rs.beta_prior(8), 3, "whittle", horizon, true_bandit=truth),
        "always seen": make_task(calls.prior, 3, "whittle", horizon, true_bandit=calls.bandit),
    }
    results = []
    for name, task in tasks.items():
        costs = dict.fromkeys((None, 1000.0), float("inf"))
        for memory in list(costs) * 10:  # turn by turn, so that both meet the same neighbours
            setup = task, DynamicEpisodes(forget_after=memory)
            costs[memory] = min(costs[memory], _per_step(setup, horizon, 10, 1, 2, thread_time))
        results.append(
            Result(
                f"forget_after=1000, K=8 N=3 T={horizon}, {name}: times the cost without",
                costs[1000.0] / costs[None],
                1.5,
                False,
                f"{costs[1000.0] * 1e6:.3f} us a step against {costs[None] * 1e6:.3f}",
            )
        )
    return results


def _three_states() -> Result:
    """Time TSDE under a continuous prior of three states, which needs a table for each draw."""
    channel = {"active": [[1] * 3] * 3, "rewards": [0, 0.5, 1]}
    data = {"kind": "bayesian", "horizon": HORIZON, "num_pulls": 2, "replications": 1}
    study = study_from_data(data | {"prior": {"num_arms": 4, "dirichlet": channel}})
    settings = study.cases[0].settings
    task = make_task(settings.systems()[1], 2, "whittle", HORIZON)
    assert task.rule is not None
    table_times: list[float] = []

    def rule(arm: rs.Arm) -> FloatArray:
        began = thread_time()
        table = task.rule(arm)
        table_times.append(thread_time() - began)
        return table

    timed = replace(task, rule=rule)
    estimated, took, thread = float("inf"), float("inf"), float("inf")
    for _ in range(3):
        estimated = min(estimated, seconds_per_step(settings, with_oracle=False))
        for clock in (perf_counter, thread_time):
            timed.cached_tables.clear()
            table_times.clear()
            cost = _per_step((timed, DynamicEpisodes()), HORIZON, 1, 1, 1, clock)
            took = min(took, cost) if clock is perf_counter else took
            thread = min(thread, cost) if clock is thread_time else thread
    tables = sum(table_times) / HORIZON
    return Result(
        f"3 states, continuous prior, K=4 N=2 T={HORIZON}: estimate of --check over time taken",
        estimated / took,
        1.5,
        False,
        f"{thread * 1e6:.0f} us of the thread a step, {tables * 1e6:.0f} of them for "
        f"{len(table_times)} index tables of {tables * HORIZON / len(table_times) * 1e6:.0f} us",
    )


def _online() -> Result:
    """Time select and observe of an agent against a step of the plain numpy loop."""
    agent = rs.TSDE(rs.grid_prior(LEVELS, 8), num_pulls=3, horizon=HORIZON)
    states = np.array([0, 1, 1])

    def steps() -> None:
        for _ in range(1000):
            agent.select()
            agent.observe(states)

    steps()
    beliefs, pairs = grid_tables(np.array(LEVELS), 94)
    index = rs.theory.channel_whittle_index(pairs[:, 0], pairs[:, 1], 94)
    rng = np.random.default_rng(0)
    ours, plain = float("inf"), float("inf")
    for _ in range(10):
        ours = min(ours, best_time(steps, 3) / 1000)
        seconds = best_time(lambda: run_tsde(index, beliefs, 8, 3, HORIZON, 7, rng), 1)
        plain = min(plain, seconds / HORIZON)
    return Result(
        "select + observe, K=8 N=3 C=81: times faster than the numpy loop's step",
        plain / ours,
        8,
        True,
        f"{ours * 1e6:.2f} us against {plain * 1e6:.1f}",
    )


def _many_arms() -> list[Result]:
    """Time 10^6 arms of one kind, N=100, in passes over 8 bytes an arm."""
    stream = seconds_to_stream(8 * MANY_ARMS)
    prior = rs.grid_prior(LEVELS, MANY_ARMS)
    before = _resident()
    begin = perf_counter()
    agent = rs.TSDE(prior, 100, "whittle", horizon=10_000)
    setup = perf_counter() - begin
    held = (_resident() - before) / MANY_ARMS
    starts = [step for _, step in _steps(agent, 60)]  # every visit is a first: episodes of a step
    begin = perf_counter()
    data = agent.snapshot()
    snapshot = perf_counter() - begin
    long_episodes = rs.make_learner("tsde_length_only", prior, 100, "whittle", horizon=10_000)
    within = [step for begun, step in _steps(long_episodes, 60) if not begun]
    detail = f"one pass takes {stream * 1e3:.2f} ms"
    size = len(json.dumps(data)) / 2**20
    return [
        Result("10^6 arms, N=100: seconds to set up", setup, 3, False),
        Result("10^6 arms, N=100: bytes an arm before any is pulled", held, 400, False),
        Result("10^6 arms, N=100, an episode's start: ms", min(starts) * 1e3, 25, False, detail),
        Result(
            "10^6 arms, N=100, select within an episode: ms", min(within) * 1e3, 1, False, detail
        ),
        Result(
            "10^6 arms, N=100, of which 6,000 were seen: MiB of a snapshot", size, 32, False,
            f"made in {snapshot:.2f} s",
        ),
    ]  # fmt: skip


def _choosing() -> list[Result]:
    """Time choosing N of K against numpy's selection, on ranks of which many are equal."""
    rng = np.random.default_rng(0)
    results = []
    for num_arms, share in ((100_000, 100), (100_000, 10), (1_000_000, 100), (1_000_000, 10)):
        ranks = rng.integers(0, 15_000, (1, num_arms), dtype=np.int32)
        count = num_arms // share
        chosen = np.empty((1, count), dtype=np.int64)
        top_of_each(ranks, chosen)
        ours = best_time(partial(top_of_each, ranks, chosen), 9)
        numpy = best_time(partial(np.argpartition, ranks[0], num_arms - count), 9)
        results.append(
            Result(
                f"choosing N=K/{share} of K={num_arms:,}: times numpy's argpartition",
                ours / numpy,
                10,
                False,
                f"{ours * 1e3:.2f} ms against {numpy * 1e3:.2f}",
            )
        )
    return results


def _steps(agent: rs.types.Agent, count: int) -> list[tuple[bool, float]]:
    """Whether each step begins an episode, and the seconds of its `select`."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(count):
        number = agent.num_phases
        step = best_time(agent.select, 1)
        found.append((agent.num_phases != number, step))
        agent.observe(rng.integers(0, 2, 100))
    return found


def _resident() -> int:
    """Bytes of memory that this process has in use."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def _memory() -> Result:
    """Peak memory of 10,000 replications, in a process of its own, over that of 10."""
    peaks = []
    for replications in (10, 10_000):
        program = (
            "import restive as rs\n"
            f"rs.bayesian_regret(rs.grid_prior({LEVELS}, 8), 3, 'whittle', {HORIZON}, "
            f"replications={replications})\n"
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
