"""Times markovianbandit-pkg on chains read from stdin; a process of its own.

Its import changes numpy's error state, so it must not share a process with what it is compared to.
"""

from __future__ import annotations

import json
import sys
from time import perf_counter
from typing import Any

import markovianbandit
import numpy as np


def _bandit(task: dict[str, Any]) -> Any:
    if "random" in task:
        np.random.seed(0)  # noqa: NPY002 (the peer draws from numpy's global state)
        return markovianbandit.random_restless(task["random"])
    parts = [np.array(task[name]) for name in ("P0", "P1", "R0", "R1")]
    return markovianbandit.restless_bandit_from_P0P1_R0R1(*parts)


def main() -> None:
    tasks = json.load(sys.stdin)
    times = []
    for task in tasks:
        best = float("inf")
        # the fastest way there is: with and without its check, at discount 1 and just below
        for check in task.get("checks", (True, False)):
            for discount in task.get("discounts", (1, 0.999999)):
                for _ in range(2):
                    bandit = _bandit(task)  # anew: a bandit remembers its indices
                    begin = perf_counter()
                    bandit.whittle_indices(check_indexability=check, discount=discount)
                    best = min(best, perf_counter() - begin)
        times.append(best)
    print()
    print(json.dumps(times))  # the last line: the peer prints what it thinks of each arm before


main()
