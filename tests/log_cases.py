"""Simulated logs, with and without faults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

import restive as rs


def log_of(
    arm: ArrayLike, step: ArrayLike, state: ArrayLike, *, pulled: ArrayLike | None = None,
    num_states: int | None = None, states: Sequence[str] | None = None,
    kinds: Sequence[str] | None = None, same_step: str = "error",
) -> rs.types.Log:  # fmt: skip
    """A log of arrays, without notes; arms that are numbers come in their order, as kinds [K] do.

    States are numbers, at least two of them, unless they are named.
    """
    columns = {"arm": np.asarray(arm), "step": np.asarray(step), "state": np.asarray(state)}
    numbered = np.issubdtype(columns["arm"].dtype, np.integer)
    if pulled is not None:
        columns["pulled"] = np.asarray(pulled, dtype=bool)
    if kinds is not None:
        place: dict[str, int] = {}
        named = columns["arm"].tolist()
        at = named if numbered else [place.setdefault(name, len(place)) for name in named]
        columns["kind"] = np.asarray(kinds)[at]
    if states is None or columns["state"].dtype.kind not in "UO":
        codes = columns["state"] = columns["state"].astype(int)
        names = states or [str(s) for s in range(num_states or max(int(codes.max()) + 1, 2))]
        columns["state"] = np.array(names)[codes]
    order = np.argsort(columns["arm"], kind="stable") if numbered else slice(None)
    log = rs.load_log(
        {name: column[order] for name, column in columns.items()}, arm="arm", time="step",
        state="state", states=states or names, by=None if kinds is None else "kind",
        pulled=None if pulled is None else "pulled", same_step=same_step,
    )  # fmt: skip
    return replace(log, notes=())


def simulated_states(
    p01: np.ndarray, p11: np.ndarray, steps: int, rng: np.random.Generator, fault: str = "",
    size: float = 1.0,
) -> np.ndarray:  # fmt: skip
    """States [steps, arms] of two-state chains; a fault makes them something else."""
    states = np.zeros((steps, len(p01)), dtype=int)
    states[0] = rng.random(len(p01)) < 0.5
    for t in range(1, steps):
        turned = {"switch": float(t >= steps // 2), "slow": size * t / steps}.get(fault, 0.0)
        now = [p + turned * (np.roll(p, 1) - p) if turned else p for p in (p01, p11)]
        chance = np.where(states[t - 1] == 1, now[1], now[0])
        if fault == "order 2" and t > 1:
            chance = np.clip(chance + 0.1 * size * (2 * states[t - 2] - 1), 0.01, 0.99)
        if fault == "drift" and t >= steps // 2:
            chance = chance * (1 - 0.2 * size)
        states[t] = rng.random(len(p01)) < chance
        if fault == "dependence" and rng.random() < 0.05 * size:
            states[t] = 0  # a common shock
    return states


def simulated_log(
    seed: int | list[int], num_arms: int = 20, steps: int = 200, share: float = 0.5,
    fault: str = "", size: float = 1.0,
) -> rs.types.Log:  # fmt: skip
    """A log of arms of which each is seen with probability `share` in each step."""
    rng = np.random.default_rng(seed)
    p01, p11 = rng.beta(2, 3, num_arms), rng.beta(4, 2, num_arms)
    states = simulated_states(p01, p11, steps, rng, fault, size)
    seen = rng.random(states.shape) < share
    if fault == "gaps":  # seen sooner again after a bad state
        seen = state_dependent_sightings(states, share, size, rng)
    step, arm = np.nonzero(seen)
    return log_of(arm, step, states[step, arm])


def state_dependent_sightings(
    states: np.ndarray, share: float, size: float, rng: np.random.Generator
) -> np.ndarray:
    seen = np.zeros(states.shape, dtype=bool)
    last = states[0].copy()
    for t in range(len(states)):
        chance = np.where(last == 1, share * (1 - 0.2 * size), share * (1 + 0.2 * size))
        seen[t] = rng.random(states.shape[1]) < chance
        last[seen[t]] = states[t][seen[t]]
    return seen


def simulated_pulls(
    seed: int | list[int], num_arms: int, steps: int, pulls: int, *, switch: bool = False,
    always: bool = False,
) -> rs.types.Log:  # fmt: skip
    """A log of arms that pulls, drawn evenly, move by other chains; at half time all may change."""
    rng = np.random.default_rng(seed)
    p01, p11 = rng.beta(2, 3, (2, num_arms)), rng.beta(4, 2, (2, num_arms))
    pulled = rng.random((steps, num_arms)).argsort(axis=1) < pulls
    states = np.zeros((steps, num_arms), dtype=int)
    arms = np.arange(num_arms)
    for t in range(1, steps):
        if switch and t == steps // 2:
            p01, p11 = np.roll(p01, 1, axis=1), np.roll(p11, 1, axis=1)
        mode = pulled[t - 1].astype(int)
        chance = np.where(states[t - 1] == 1, p11[mode, arms], p01[mode, arms])
        states[t] = rng.random(num_arms) < chance
    step, arm = np.nonzero(pulled | always)
    return log_of(arm, step, states[step, arm], pulled=pulled[step, arm])
