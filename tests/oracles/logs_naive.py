"""Logs, one row after the other: what the fast ways must agree with."""

from __future__ import annotations

from collections import Counter

import numpy as np


def naive_counts(rows: list[tuple[str, int, int]]) -> dict[str, Counter[tuple[int, int, int]]]:
    """Counts of (last state, age, next state) by arm, from rows (arm, step, state) in any order."""
    found: dict[str, Counter[tuple[int, int, int]]] = {}
    last: dict[str, tuple[int, int]] = {}
    for arm, step, state in sorted(rows, key=lambda row: row[1]):
        counts = found.setdefault(arm, Counter())
        if arm in last:
            then, before = last[arm]
            counts[before, step - then, state] += 1
        last[arm] = step, state
    return found


def naive_replay(record: np.ndarray, index: list[np.ndarray], num_pulls: int, start: list) -> float:
    """Total reward of an index policy on a record [T, K] of states that are their rewards.

    `index[k][s][n - 1]` is arm k's index; `start` holds (last state, elapsed) of each arm.
    """
    total = 0.0
    known = [list(pair) for pair in start]
    for states in record:
        values = []
        for k, (s, n) in enumerate(known):
            table = index[k][s]
            values.append((-round(float(table[min(n, len(table)) - 1]), 12), k))
        chosen = [k for _, k in sorted(values)[:num_pulls]]
        for pair in known:
            pair[1] += 1
        for k in chosen:
            total += states[k]
            known[k] = [int(states[k]), 1]
    return total
