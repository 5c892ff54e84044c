"""Ctrl-C while a planning kernel works: it is heard, and the process goes on.

Each piece of work below would take minutes. They run one after the other in a process that
interrupts itself; a kernel that does not listen, or a crash, fails the test by its time limit or
exit status, and what is printed ends where that happened.
"""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import import_module

import numpy as np
import pytest
from numba.core import types

import restive as rs
from restive.plan.summary import plan_bandit

PROGRAM = """
import os, signal, sys, threading
from dataclasses import asdict
import numpy as np
import restive as rs
from restive.problem.beliefs import settled_elapsed
from restive.learn.kinds import estimate_kind
from restive.plan.policies.whittle import channel_indices


def law(size):
    return np.random.default_rng(0).dirichlet(np.ones(size), size)


def restless(size, noise, seed=0):
    rng = np.random.default_rng(seed)
    turn = np.roll(np.eye(size), 1, axis=1)
    passive = (1 - noise) * turn + noise * rng.dirichlet(np.ones(size), size)
    active = 0.5 * np.eye(size) + 0.5 * rng.dirichlet(np.ones(size), size)
    return rs.Arm(active, passive, rng.random(size))


def slow(size):
    passive = (1 - 1e-9) * np.eye(size) + 1e-9 / size
    return rs.Arm(law(size), passive / passive.sum(1, keepdims=True), np.linspace(0, 1, size))


def pair(p):
    arms = [rs.gilbert_elliott(p, 1 - 2 * p), rs.gilbert_elliott(2 * p, 1 - p)]
    return rs.RestlessBandit(arms, 1)


def kind(arms):
    rng = np.random.default_rng(0)
    of = np.repeat(np.arange(arms), 9)
    ages, states = rng.integers(1, 9, len(of)), rng.integers(0, 2, (2, len(of)))
    base = rs.spread_prior(1, points=512, controlled=True).arms[0]
    return estimate_kind(base, of, states[0], ages, states[1], tolerance=1e-15)


WORK = {
    "whittle_index": lambda big: rs.policies.whittle_index(
        restless(6, 1e-4 if big else 0.5), max_elapsed=400_000 if big else None
    ),
    "relaxation_bound": lambda big: rs.relaxation_bound(
        rs.RestlessBandit([restless(6, 1e-4 if big else 0.5, k) for k in range(24)], 2),
        max_elapsed=400_000 if big else None,
    ),
    "settled_elapsed": lambda big: settled_elapsed(slow(300) if big else restless(3, 0.5)),
    "mixing_time": lambda big: rs.theory.mixing_time(slow(500) if big else restless(3, 0.5)),
    "stationary": lambda big: rs.theory.stationary(law(4000 if big else 3)),
    "belief_table": lambda big: rs.theory.belief_table(slow(300 if big else 2), 900 if big else 3),
    "joint chain": lambda big: asdict(
        rs.evaluate(pair(1e-6 if big else 0.2), "myopic", max_elapsed=3000)
    ),
    "optimal": lambda big: rs.optimal(pair(1e-6 if big else 0.2), max_elapsed=2000),
    "simulation": lambda big: rs.evaluate(
        rs.RestlessBandit([restless(3, 0.5)] * 40, 4), "myopic", steps=10**9 if big else 10
    ).average_reward,
    "channels": lambda big: channel_indices(
        np.full(n := 20_000 if big else 2, 0.3), np.full(n, 0.6), 20_000
    ),
    "kind": lambda big: kind(100_000 if big else 3),
}

for name, work in WORK.items():
    work(False)  # compiles
    before = work(False)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        work(True)
    except KeyboardInterrupt:
        print(name, "interrupted", flush=True)
    else:
        print(name, "ended before it was interrupted", flush=True)
    assert repr(work(False)) == repr(before)
    timer.join()
    assert threading.active_count() == 1
    print(name, "usable", flush=True)
"""

NAMES = [
    "whittle_index", "relaxation_bound", "settled_elapsed", "mixing_time", "stationary",
    "belief_table", "joint chain", "optimal", "simulation", "channels", "kind",
]  # fmt: skip


def test_an_interrupt_stops_the_work_and_leaves_the_process_usable() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True, text=True, timeout=300, env={**os.environ}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [f"{name} {found}" for name in NAMES for found in ("interrupted", "usable")]
    assert done.stdout.splitlines() == expected


IN_PARTS = (
    "problem.chains", "problem.beliefs", "plan.subsidy", "plan.joint_chain", "plan.actors",
)  # fmt: skip
KERNELS = (
    "chain", "plan.gilbert_elliott", "plan.joint_chain", "plan.subsidy", "plan.sign_changes",
    "plan.waiting_times", "learn.kinds",
)  # fmt: skip


def returned_types() -> Iterator[tuple[str, types.Type]]:
    """What the kernels that have been compiled so far return."""
    for module in KERNELS:
        for name, kernel in vars(import_module(f"restive.kernels.{module}")).items():
            for compiled in getattr(kernel, "overloads", {}).values():
                yield f"{module}.{name}", compiled.signature.return_type


def test_planning_kernels_hand_no_arrays_to_python() -> None:
    # numba runs Python code for that, and an interrupt there leaves it with a null pointer
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.7), rs.gilbert_elliott(0.3, 0.6)], 1)
    plan_bandit(bandit)
    rs.evaluate(bandit, "whittle", max_states=1, steps=5, replications=2)
    found = dict(returned_types())
    assert len(found) > 12
    for name, returned in found.items():
        parts = returned.types if isinstance(returned, types.BaseTuple) else (returned,)
        assert not any(isinstance(part, types.Array) for part in parts), name


def test_a_table_that_python_fills_in_parts_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    passive = 0.97 * np.eye(3) + 0.03 * rng.dirichlet(np.ones(3), 3)
    arm = rs.Arm(rng.dirichlet(np.ones(3), 3), passive, [0.1, 0.7, 0.4])
    bandit = rs.RestlessBandit([arm, rs.gilbert_elliott(0.1, 0.8)], 1)

    def everything():
        index = rs.policies.whittle_index(arm)
        values = [rs.evaluate(bandit, name) for name in ("whittle", "lp_priority", "optimal")]
        drawn = rs.evaluate(bandit, "whittle", max_states=1, steps=3000, replications=3)
        numbers = (
            rs.theory.belief_table(arm),
            index.index,
            index.upper,
            rs.theory.stationary(arm.passive),
        )
        exact = [asdict(value) for value in (*values, drawn)]
        return [part.tobytes() for part in numbers], exact, rs.theory.mixing_time(arm)

    whole = everything()
    for module in IN_PARTS:
        monkeypatch.setattr(f"restive.{module}.WORK_AT_ONCE", 50)
    assert repr(everything()) == repr(whole)
