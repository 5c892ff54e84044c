"""The Whittle index by an independent package, markovianbandit-pkg, on the chain of beliefs.

Model. States (s, n), n = 1..L, and one more, "old". With b(s, n) = e_s P_active P_passive^(n-1)
and pi the stationary law of P_passive:

    passive:  (s, n) -> (s, n + 1),  (s, L) -> old,  old -> old;   earns nothing,
    active:   (s, n) -> (s', 1) with probability b(s, n)[s'];      earns b(s, n).r,

and b = pi in the old state. One common old state keeps the all-passive policy unichain, which the
peer needs. This is not the chain of `whittle_naive`, where age L stays L: the two agree once
b(s, L) has converged to pi, so P_passive must have one aperiodic class and L must be long enough.
It must not be longer either: among ages whose beliefs are equal but for rounding the peer soon says
"not indexable". A good L is the first age at which beliefs change by less than 1e-8. Measured with
discount 0.999999: differences of 6e-9 in the median and 2e-7 at most; None for 3 of 100 random
three-state arms with equal matrices, against 57 when L waits for 1e-14. So None is no verdict on an
arm. With discount 1 more than half of such arms get None.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .whittle_naive import belief_table

FloatArray = NDArray[np.float64]
Problem = tuple[FloatArray, FloatArray, FloatArray, int, float]

_WORKER = Path(__file__).with_name("_peer_worker.py")


def peer_whittle(
    active: FloatArray,
    passive: FloatArray,
    rewards: FloatArray,
    max_elapsed: int,
    discount: float,
) -> FloatArray | None:
    """Return the peer's index [S, L], or None where it finds none (NaN or "not indexable")."""
    return peer_whittle_many([(active, passive, rewards, max_elapsed, discount)])[0]


def peer_whittle_many(problems: Sequence[Problem]) -> list[FloatArray | None]:
    """Return `peer_whittle` of each (active, passive, rewards, max_elapsed, discount).

    One process for all of them, since the peer compiles code when it starts.
    """
    process = subprocess.run(
        [sys.executable, str(_WORKER)],
        input=json.dumps([_controlled_chain(*problem) for problem in problems]),
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode != 0:
        raise RuntimeError(f"the peer's process failed:\n{process.stderr}")
    tables: list[FloatArray | None] = []
    for answer, (active, _, _, max_elapsed, _) in zip(
        json.loads(process.stdout), problems, strict=True
    ):
        if answer is None:
            tables.append(None)
        else:
            tables.append(np.array(answer[:-1]).reshape(len(active), max_elapsed))
    return tables


def _controlled_chain(
    active: FloatArray,
    passive: FloatArray,
    rewards: FloatArray,
    max_elapsed: int,
    discount: float,
) -> dict[str, Any]:
    """Return the chain that the worker reads; (s, n) is row s*L + n-1 and the last row is old."""
    num_states = len(active)
    old = num_states * max_elapsed
    beliefs = np.vstack(
        [belief_table(active, passive, max_elapsed).reshape(old, num_states), _stationary(passive)]
    )
    move_active = np.zeros((old + 1, old + 1))
    move_active[:, 0:old:max_elapsed] = beliefs
    move_passive = np.zeros((old + 1, old + 1))
    for here in range(old):
        oldest = (here + 1) % max_elapsed == 0
        move_passive[here, old if oldest else here + 1] = 1.0
    move_passive[old, old] = 1.0
    return {
        "passive": move_passive.tolist(),
        "active": move_active.tolist(),
        "earn_passive": [0.0] * (old + 1),
        "earn_active": (beliefs @ np.asarray(rewards, float)).tolist(),
        "discount": discount,
    }


def _stationary(matrix: FloatArray) -> FloatArray:
    """Return pi with pi P = pi and sum 1, by least squares."""
    num_states = len(matrix)
    system = np.vstack([np.eye(num_states) - np.asarray(matrix, float).T, np.ones(num_states)])
    right = np.zeros(num_states + 1)
    right[-1] = 1.0
    return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0], dtype=np.float64)
