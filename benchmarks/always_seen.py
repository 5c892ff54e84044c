"""Speed of arms that are seen in every step: indices against the peer, and steps of learners."""

from __future__ import annotations

from time import thread_time

import numpy as np

import restive as rs
from benchmarks import numpy_always
from benchmarks.harness import Result, best_time
from benchmarks.planning import _peer_times
from restive.learn.learners import learner
from restive.learn.task import make_task
from restive.measure.replication import replicate

__all__ = ["run"]

MANY = 1000


def run() -> list[Result]:
    rng = np.random.default_rng(0)
    problems = {size: _problem(rng, size) for size in (10, 30, 100)}
    peer = dict(zip(problems, _peer_times(list(map(_task, problems.values()))), strict=True))
    results = []
    for size in (30, 100):
        problem = problems[size]
        arm = _arm(problem)
        alone = best_time(lambda arm=arm: rs.policies.whittle_index(arm), 200)
        whole = best_time(lambda problem=problem: rs.policies.whittle_index(_arm(problem)), 200)
        results.append(
            Result(
                f"index of an arm of {size} states: times faster than the peer",
                peer[size] / alone,
                10,
                True,
                f"{1e6 * alone:.3g} us; with the arm made and validated {peer[size] / whole:.3g}",
            )
        )
    arms = [_arm(_problem(rng, 10)) for _ in range(MANY)]
    bandit = rs.RestlessBandit(arms, 10)
    each = best_time(lambda: rs.whittle(rs.RestlessBandit(arms, 10)), 5) / MANY
    return [
        *results,
        Result(
            f"tables of {MANY:,} arms of 10 states: times faster than the peer, an arm",
            peer[10] / each,
            10,
            True,
            f"{1e6 * each:.3g} us an arm, {bandit.num_arms:,} kinds",
        ),
        _step(),
        *(_over_numpy(name) for name in ("tsde", "ucwhittle", "wiql", "qwi")),
    ]


def _over_numpy(name: str) -> Result:
    """A step of a learner on calls-8 against one of its numpy version."""
    instance, horizon, runs = rs.zoo.load("calls-8"), 2000, 10
    task = make_task(instance.prior, 3, "whittle", horizon, true_bandit=instance.bandit)
    rows = [[arm.passive[:, 1], arm.active[:, 1]] for arm in instance.bandit.arms]
    version, rng = getattr(numpy_always, f"run_{name}"), np.random.default_rng(0)

    def play() -> None:
        replicate(
            task, learner(name), np.array([horizon]), runs, threads=1, with_oracle=False
        )  # fmt: skip

    ours = best_time(play, 5, thread_time) / (runs * horizon)
    plain = best_time(lambda: version(np.array(rows), 3, horizon, rng), 3, thread_time) / horizon
    return Result(
        f"{name}, calls-8, T={horizon}: times numpy's speed", plain / ours,
        2 if name == "ucwhittle" else 10, True,  # which plans with numpy itself
        f"{1e6 * ours:.3f} us a step against {1e6 * plain:.1f}",
    )  # fmt: skip


def _step() -> Result:
    instance, horizon, runs = rs.zoo.load("calls-8"), 10_000, 4
    task = make_task(instance.prior, 3, "whittle", horizon, true_bandit=instance.bandit)

    def play() -> None:
        replicate(
            task, learner("tsde"), np.array([horizon]), runs, threads=1, with_oracle=False
        )  # fmt: skip

    seconds = best_time(play, 10, thread_time) / (runs * horizon)
    return Result("TSDE, K=8 N=3, Dirichlet, always seen: us a step", 1e6 * seconds, 1, False)


Problem = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def _problem(rng: np.random.Generator, size: int) -> Problem:
    active, passive = (rng.dirichlet(np.ones(size), size) for _ in range(2))
    return active, passive, rng.random(size), rng.random(size)


def _arm(problem: Problem) -> rs.Arm:
    return rs.Arm(*problem, seen="always")


def _task(problem: Problem) -> dict[str, list[object]]:
    """The same for the peer, with its verdict on indexability, for the average reward."""
    names = ("P1", "P0", "R1", "R0")
    parts = {name: part.tolist() for name, part in zip(names, problem, strict=True)}
    return parts | {"checks": [True] * 5, "discounts": [1]}
