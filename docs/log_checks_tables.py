"""Print the table of log-checks.md: python docs/log_checks_tables.py [LOGS]

How often each check fails on simulated logs that are clean, and on logs with a fault. Takes some
minutes with 100 logs a column, the default.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from log_cases import simulated_log
from restive.logs.checks import check_log
from restive.logs.fitted import fit_arms

ARMS, STEPS, SHARE = 20, 250, 0.5
CLEAN = 4  # times as many clean logs: rare events need more
FAULTS = {
    "order 2": "the second last state moves the chance of good by ± {:.2f}",
    "drift": "in the second half chances of good are {:.0%} lower",
    "dependence": "a common shock, all arms bad, with chance {:.3f} a step",
    "gaps": "seen {:.0%} less often after good, and as much more after bad",
}
UNIT = {"order 2": 0.1, "drift": 0.2, "dependence": 0.05, "gaps": 0.2}
SIZES = (0.25, 0.5, 1.0, 2.0)


def main(logs: int) -> None:
    """Print both tables."""
    clean = failures("", 0.0, CLEAN * logs)
    print(f"| check | fails on {CLEAN * logs} clean logs |\n|---|---|")
    for name, count in clean.items():
        print(f"| {name} | {count / (CLEAN * logs):.1%} |")
    print("\n| fault | check | found |\n|---|---|---|")
    for fault, words in FAULTS.items():
        for size in SIZES:
            found = failures(fault, size, logs)
            share = found.pop(fault) / logs
            others = [f"{n} {c / logs:.0%}" for n, c in found.items() if c > 0.1 * logs]
            also = f" (also {', '.join(others)})" if others else ""
            print(f"| {words.format(size * UNIT[fault])} | {fault} | {share:.0%}{also} |")


def failures(fault: str, size: float, logs: int) -> Counter[str]:
    """How many of the logs fail each check; memory is no fault and is left out."""
    found: Counter[str] = Counter()
    for n in range(logs):
        log = simulated_log([10, n], ARMS, STEPS, SHARE, fault, size)
        for check in check_log(fit_arms(log), seed=n):
            if check.name != "memory":
                found[check.name] += check.verdict == "fails"
    return found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
