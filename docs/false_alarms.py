"""Count false alarms among equal learners: python docs/false_alarms.py FOLDER...

The folders are those that comparison.md's commands write. The final regrets of an instance's
learners, of all seeds together, are shifted to equal means and resampled, the same replications for
all; an alarm is a sample in which any pair is told apart. How-to/compare-learners.md has the table.
"""

import sys
from itertools import combinations
from math import comb

import numpy as np

from restive.measure.intervals import paired_interval
from restive.studies.summary import load_results

SIZES = (20, 50, 100, 200, 400)
SAMPLES = 500
HORIZON = 10_000


def main(folders: list[str]) -> None:
    """Print the shares of samples with a false alarm, a row for each number of replications."""
    regrets: dict[str, dict[str, list[np.ndarray]]] = {}
    for case in (case for folder in folders for case in load_results(folder)):
        settings = case.case.settings
        if settings.horizon != HORIZON:
            continue
        instance = settings.instance
        name = str(instance["name"] if isinstance(instance, dict) else instance)
        learners = regrets.setdefault(name, {})
        learners.setdefault(str(settings.learner), []).append(case.final_regrets)
    shares = {name: [] for name in regrets}
    for name, learners in regrets.items():
        table = np.array([np.concatenate(own) for own in learners.values()])  # [learners, R]
        table -= table.mean(axis=1, keepdims=True)
        for size in SIZES:
            rng = np.random.default_rng(size)
            samples = (table[:, rng.integers(table.shape[1], size=size)] for _ in range(SAMPLES))
            shares[name].append(sum(map(_any_told_apart, samples)) / SAMPLES)
    print("replications", *shares, sep=" | ")
    for row, size in enumerate(SIZES):
        print(size, *(f"{own[row]:.0%}" for own in shares.values()), sep=" | ")


def _any_told_apart(sample: np.ndarray) -> bool:
    pairs = comb(len(sample), 2)
    found = (paired_interval(one, other, pairs) for one, other in combinations(sample, 2))
    return any(abs(gap) > half_width for gap, half_width in found)


if __name__ == "__main__":
    main(sys.argv[1:])
