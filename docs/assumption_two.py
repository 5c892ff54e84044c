"""Count systems drawn from the paper's prior whose myopic J depends on the start.

    python docs/assumption_two.py [SYSTEMS]

Four channels, two pulls; each probability one of .1, .2, ..., .9. The figure of "What is not quite
true" in concepts/reading-the-paper.md.
"""

import sys
from math import sqrt

import numpy as np

import restive as rs

LEVELS = np.arange(1, 10) / 10


def main(systems: int = 1000) -> None:
    """Print the share, with its 95% interval (Wilson's)."""
    rng = np.random.default_rng(0)
    found = 0
    for _ in range(systems):
        chains = rng.choice(LEVELS, size=(4, 2))
        bandit = rs.RestlessBandit([rs.gilbert_elliott(p01, p11) for p01, p11 in chains], 2)
        found += rs.evaluate(bandit, "myopic").depends_on_start is True
    share, z = found / systems, 1.96
    middle = (share + z**2 / 2 / systems) / (1 + z**2 / systems)
    half = z * sqrt(share * (1 - share) / systems + (z / 2 / systems) ** 2) / (1 + z**2 / systems)
    print(f"{found} of {systems:,} systems: {middle - half:.1%} to {middle + half:.1%}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
