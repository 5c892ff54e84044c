"""Speed of indices and exact values."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import numpy as np

import restive as rs
from benchmarks.harness import Result, best_time
from restive.plan.policies.registry import policy_mappings
from restive.plan.subsidy import walk_down

__all__ = ["run"]

AGES = 94
GRID = [i / 10 for i in range(1, 10)]


def run() -> list[Result]:
    arms = _arms()
    # turn by turn, and the best of rounds: the machine's clock goes up and down by half
    rounds = [
        [(_index_time(arm, AGES), _index_time(arm, 2 * AGES)) for arm in arms] for _ in range(4)
    ]
    ours, longer = np.array(rounds).min(axis=0).T
    *peer, peer_1000 = _peer_times([*(_chain(arm) for arm in arms), {"random": 1000}])
    ratios = np.array(peer) / ours
    doubled = longer / ours
    return [
        Result(
            "all indices of an arm, 94 ages: times faster than the peer",
            float(np.median(ratios)),
            50,
            True,
            f"median over {len(arms)} arms with 2 and 3 states; quartiles "
            f"{np.quantile(ratios, 0.25):.3g} and {np.quantile(ratios, 0.75):.3g}",
        ),
        Result("twice the ages: times the cost", float(np.median(doubled)), 3, False),
        *_channels(),
        Result(
            "K=4 N=2, all mappings made and evaluated: share of the peer's one arm",
            best_time(_plan_k4, 5) / peer_1000,
            3,
            False,
            "against the indices of one arm with 1,000 states",
        ),
    ]


def _arms() -> list[rs.Arm]:
    rng = np.random.default_rng(0)
    arms = [rs.gilbert_elliott(a, b) for a in GRID[::3] for b in GRID[1::3]]
    for states in (2, 3):
        for equal in (True, False):
            for _ in range(5):
                active = rng.dirichlet(np.ones(states), states)
                passive = active if equal else rng.dirichlet(np.ones(states), states)
                arms.append(rs.Arm(active, passive, rng.random(states)))
    return arms


def _index_time(arm: rs.Arm, ages: int) -> float:
    return best_time(
        lambda: walk_down(rs.theory.belief_table(arm, ages), arm.rewards, 1.0, "arm"), 10
    )


def _chain(arm: rs.Arm) -> dict[str, Any]:
    """The truncated belief chain as the peer takes it: states (s, n), the last age stays."""
    beliefs = rs.theory.belief_table(arm, AGES)
    size = arm.num_states
    total = size * AGES
    rest = np.zeros((total, total))
    pull = np.zeros((total, total))
    reward = np.zeros(total)
    for s in range(size):
        for n in range(AGES):
            place = s * AGES + n
            rest[place, s * AGES + min(n + 1, AGES - 1)] = 1.0
            pull[place, [j * AGES for j in range(size)]] = beliefs[s, n]
            reward[place] = beliefs[s, n] @ arm.rewards
    return {
        "P0": rest.tolist(),
        "P1": pull.tolist(),
        "R0": [0.0] * total,
        "R1": reward.tolist(),
    }


def _peer_times(tasks: list[dict[str, Any]]) -> list[float]:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "benchmarks.peer_worker"],
        input=json.dumps(tasks),
        capture_output=True,
        text=True,
        check=True,
    )
    times: list[float] = json.loads(done.stdout.splitlines()[-1])
    return times


def _channels() -> list[Result]:
    """Against two loops: a call of the closed form per index, and everything hoisted by hand."""
    rng = np.random.default_rng(1)
    p01, p11 = rng.uniform(0.05, 0.95, (2, 5000))
    few = 100
    compiled = best_time(lambda: rs.theory.channel_whittle_index(p01, p11, 100), 20)
    results = []
    for loop, what in ((_plain_channels, "plain"), (_hoisted_channels, "hand-hoisted")):
        seconds = best_time(lambda loop=loop: loop(p01[:few], p11[:few], 100), 3)
        results.append(
            Result(
                f"a million channel indices: times faster than a {what} loop",
                seconds * len(p01) / few / compiled,
                200,
                True,
                f"the loop was timed on {few} of the 5,000 channels",
            )
        )
    return results


def _hoisted_channels(p01: Any, p11: Any, length: int) -> list[float]:
    """The same loop with all that does not change moved out of it, and no call."""
    out = []
    for a, b in zip(p01.tolist(), p11.tolist(), strict=True):
        rho = b - a
        limit = a / (1 - rho)
        after_good = a + rho * b
        for first in (a, b):
            w = first
            for n in range(1, length + 1):
                following = a + rho * w
                if n == 1:
                    index = w
                elif rho >= 0:
                    if first == b:
                        index = w / (1 - b + w)
                    else:
                        step = w - following
                        index = ((n + 1) * step + following) / (1 - b + n * step + following)
                elif w >= limit:
                    index = a / (1 + a - after_good)
                else:
                    index = (a + w - following) / (1 + a - after_good + following - w)
                out.append(index)
                w = following
    return out


def _plain_channels(p01: Any, p11: Any, length: int) -> list[float]:
    """A plain loop: the belief step by step, and the closed form of each."""
    out = []
    for a, b in zip(p01.tolist(), p11.tolist(), strict=True):
        for last_state, belief in ((0, a), (1, b)):
            w = belief
            for n in range(1, length + 1):
                out.append(_closed_form(a, b, last_state, n, w))
                w = a + (b - a) * w
    return out


def _closed_form(p01: float, p11: float, last_state: int, n: int, w: float) -> float:
    if n == 1:
        return w
    rho = p11 - p01
    following = p01 + rho * w
    if rho >= 0:
        if last_state == 1:
            return w / (1 - p11 + w)
        step = w - following
        return ((n + 1) * step + following) / (1 - p11 + n * step + following)
    after_good = p01 + rho * p11
    if w >= p01 / (1 - rho):
        return p01 / (1 + p01 - after_good)
    return (p01 + w - following) / (1 + p01 - after_good + following - w)


def _plan_k4() -> None:
    pairs = [(0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4)]
    bandit = rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in pairs], 2)
    for mapping in policy_mappings():
        rs.evaluate(bandit, mapping(bandit))
