"""The other side of `peer_markovianbandit`: a process of its own around markovianbandit-pkg.

Reads a JSON list of arms {"passive", "active": [D, D], "earn_passive", "earn_active": [D],
"discount"} from standard input; writes a list with D indices, or null, for each. It is a script
and not an import because importing the peer makes numpy raise on every division by zero.
"""

import contextlib
import json
import sys
from typing import Any

import numpy as np
from markovianbandit.markovianbandit import (  # type: ignore[import-untyped]
    restless_bandit_from_P0P1_R0R1,
)


def solve(arm: dict[str, Any]) -> list[float] | None:
    """Return the peer's indices of one arm, None where it has no finite answer for all states."""
    bandit = restless_bandit_from_P0P1_R0R1(
        *(np.array(arm[key]) for key in ("passive", "active", "earn_passive", "earn_active"))
    )
    try:
        indices = bandit.whittle_indices(check_indexability=True, discount=arm["discount"])
    except (ArithmeticError, np.linalg.LinAlgError):
        return None
    # The peer's verdict is 1 or 2 for indexable, False for not and -1 for multichain.
    if bandit.indexable not in (1, 2) or not np.isfinite(indices).all():
        return None
    return [float(value) for value in indices]


def main() -> None:
    """Answer one batch."""
    batch = json.load(sys.stdin)
    with contextlib.redirect_stdout(sys.stderr):  # the peer prints its verdicts
        answers = [solve(arm) for arm in batch]
    json.dump(answers, sys.stdout)


if __name__ == "__main__":
    main()
