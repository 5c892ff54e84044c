"""Speed of each learner, over numpy and over TSDE.

Times are the processor's, not the clock's on the wall: waiting for neighbours on the machine is no
part of them. Ours and numpy's version take turns, and the best of several rounds counts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil, inf, sqrt
from time import process_time

import numpy as np

import restive as rs
from benchmarks import numpy_learners
from benchmarks.harness import Result
from benchmarks.numpy_tsde import grid_tables, run_tsde
from restive.learn.learners import LEARNERS, learner
from restive.learn.learners.base import Learner
from restive.learn.task import Task, make_task
from restive.measure.replication import replicate

__all__ = ["run"]

LEVELS = [i / 10 for i in range(1, 10)]
AGES = 94
HORIZON = 2000
LONG = 20_000  # where the one planning of Restless-UCB is spread over more steps
# Replications of ours and of numpy's version; what one costs depends on the bandit drawn.
REPLICATIONS = {("restless_ucb", LONG): (20, 3)}
# Those of arms that are always seen are in `always_seen.py`.
NAMES = [name for name, make in LEARNERS.items() if getattr(make, "sees", "pulled") != "always"]
CASES = (*((name, HORIZON) for name in NAMES), ("restless_ucb", LONG))
RELATIVES = {
    "tsde_doubling_only": {"length": inf},
    "tsde_length_only": {"doubling_rule": False},
    "thompson_every_step": {"length": 1, "doubling_rule": False},
    "episodic_thompson": {"length": ceil(sqrt(HORIZON)), "doubling_rule": False},
    "certainty_equivalence": {"length": 1, "doubling_rule": False, "most_likely": True},
    "epsilon_greedy": {
        "length": 1,
        "doubling_rule": False,
        "most_likely": True,
        "epsilon": 0.05,
    },
    "mean_index": {"length": 1, "doubling_rule": False, "averaged": True},
}
VARIANTS = ("tsde_doubling_only", "tsde_length_only", "thompson_every_step", "episodic_thompson")
ROUNDS = 8

Version = Callable[[np.random.Generator], tuple[float, int]]


def run() -> list[Result]:
    ours, plain = dict.fromkeys(CASES, inf), dict.fromkeys(CASES, inf)
    setups = {case: setup_of(*case) for case in CASES}
    versions = {case: numpy_version(case[0], setups[case]) for case in CASES}
    for setup in setups.values():
        _ours(setup, 1)
    for _ in range(ROUNDS):
        for case in CASES:
            many, few = REPLICATIONS.get(case, (100, 5))
            ours[case] = min(ours[case], _ours(setups[case], many))
            plain[case] = min(plain[case], _plain(versions[case], few) / case[1])
    tsde = ours["tsde", HORIZON]
    return [
        *(_over_numpy(case[0], setups[case], ours[case], plain[case]) for case in CASES),
        _together([ours[name, HORIZON] for name in VARIANTS], tsde),
    ]


def setup_of(name: str, horizon: int) -> tuple[Task, Learner]:
    """Return a learner with the bandit that it is timed on."""
    return make_task(rs.grid_prior(LEVELS, 8), 3, "whittle", horizon), learner(name)


def numpy_version(name: str, setup: tuple[Task, Learner]) -> Version:
    """Return one replication of the numpy version, as a function of the random generator."""
    beliefs, pairs = grid_tables(np.array(LEVELS), AGES)
    task = setup[0]
    bandit = (task.num_arms, task.num_pulls, task.horizon)
    if name == "tsde" or name in RELATIVES:
        index = rs.theory.channel_whittle_index(pairs[:, 0], pairs[:, 1], AGES)
        runner = run_tsde if name == "tsde" else numpy_learners.run_relative
        options = RELATIVES.get(name, {})
        return lambda rng: runner(index, beliefs, *bandit, task.mixing_time, rng, **options)
    return partial(getattr(numpy_learners, f"run_{name}"), beliefs, *bandit)


def _ours(setup: tuple[Task, Learner], replications: int) -> float:
    """Seconds per step."""
    horizon = setup[0].horizon
    begin = process_time()
    replicate(*setup, np.array([horizon]), replications, with_oracle=False, threads=1)
    return (process_time() - begin) / (replications * horizon)


def _plain(version: Version, replications: int) -> float:
    """Seconds per replication; they are the same ones each time."""
    rng = np.random.default_rng(0)
    begin = process_time()
    for _ in range(replications):
        version(rng)
    return (process_time() - begin) / replications


def _over_numpy(name: str, setup: tuple[Task, Learner], ours: float, plain: float) -> Result:
    task = setup[0]
    return Result(
        f"{name}, K={task.num_arms} N={task.num_pulls} T={task.horizon}: times numpy's speed",
        plain / ours,
        50,
        True,
        f"{ours * 1e6:.3f} us a step against {plain * 1e6:.1f}",
    )


def _together(variants: list[float], tsde: float) -> Result:
    """What a user waits for: a comparison of TSDE with its relatives, against TSDE by itself."""
    each = ", ".join(
        f"{name} {seconds / tsde:.2f}" for name, seconds in zip(VARIANTS, variants, strict=True)
    )
    return Result(
        f"TSDE and {len(VARIANTS)} relatives compared: times the cost of TSDE alone",
        1 + sum(variants) / tsde,
        6,
        False,
        each,
    )
