"""Print the table of "How long to remember?" in fit-a-log.md.

    python docs/forgetting_tables.py [LOGS]

How often `fit` says that arms change on simulated logs that are clean, switch at half time or drift
from one chain to another, and how often the interval holds what the memory gains on average over
other histories of the same worlds. Takes some minutes with 200 logs a row, the default.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import restive as rs
from log_cases import log_of, simulated_log, simulated_pulls, simulated_states
from restive.logs.fitted import fit_arms
from restive.logs.forgetting import ForgettingAdvice, advised_forgetting

SIZES = ((20, 250, 0.5), (5, 250, 0.5), (60, 104, 0.25), (100, 60, 0.3), (20, 1000, 0.5))
WORLDS = {"clean": "", "switch": "switch", "slow": "slow"}
CLEAN = 2  # times as many clean logs: rare events need more


def main(logs: int) -> None:
    """Print the tables."""
    print("| log | nothing changes | a switch at half time | a slow drift |\n|---|---|---|---|")
    for arms, steps, share in SIZES:
        row = [
            told(logs * (CLEAN if not fault else 1), fault, arms, steps, share)
            for fault in WORLDS.values()
        ]
        print(f"| {arms} arms, {steps} steps, {share:.0%} seen | {' | '.join(row)} |")
    for always, what in ((False, "3 of 10 pulled"), (True, "2 of 8 pulled, all seen")):
        arms, steps, pulls = (8, 300, 2) if always else (10, 1000, 3)
        row = [pulled(logs // (1 if always else 2), arms, steps, pulls, switch, always)
               for switch in (False, True)]  # fmt: skip
        print(f"| {what}, {steps} steps, pulls move arms | {' | '.join(row)} | |")
    print("\n| world | interval holds the mean gain |\n|---|---|")
    for name, fault in WORLDS.items():
        print(f"| {name} | {held(logs, fault):.0%} |")


def told(logs: int, fault: str, arms: int, steps: int, share: float) -> str:
    """Return how often a change is found, and how often it is called possible."""
    return _shares(
        [
            advised_forgetting(fit_arms(simulated_log([n, 40], arms, steps, share, fault)))
            for n in range(logs)
        ]
    )


def pulled(logs: int, arms: int, steps: int, pulls: int, switch: bool, always: bool) -> str:
    """Return the same where pulls change how arms move."""
    found = []
    for n in range(logs):
        log = simulated_pulls([n, 41], arms, steps, pulls, switch=switch, always=always)
        seen = "always" if always else "pulled"
        found.append(advised_forgetting(fit_arms(log, controlled=True, seen=seen)))
    return _shares(found)


def _shares(found: list[ForgettingAdvice | None]) -> str:
    verdicts = [one.verdict if one else "" for one in found]
    changes, may = (verdicts.count(word) / len(found) for word in ("changes", "may change"))
    typical = [one.best for one in found if one and one.verdict == "changes"]
    memory = f", {np.median(typical):.0f} steps" if len(typical) > len(found) / 10 else ""
    return f"{changes:.1%} ({may:.1%}){memory}"


def held(logs: int, fault: str) -> float:
    """Return how often intervals hold the mean gain of the memory that was found best."""
    p01, p11 = np.linspace(0.1, 0.7, 10), np.linspace(0.9, 0.4, 10)
    prior = rs.grid_prior(np.linspace(0.05, 0.95, 10), 1).arms[0]
    found = []
    for n in range(logs):
        rng = np.random.default_rng([n, 42])
        states = simulated_states(p01, p11, 200, rng, fault)
        step, arm = np.nonzero(rng.random(states.shape) < 0.5)
        one = advised_forgetting(fit_arms(log_of(arm, step, states[step, arm]), prior))
        assert one is not None
        found.append(one)
    means = np.mean([one.gains for one in found], axis=0)
    return float(np.mean([
        one.low <= means[int(np.argmax(one.tried == one.best))] <= one.high for one in found
    ]))  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
