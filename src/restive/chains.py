"""Facts about one Markov chain: its classes, its period, its stationary law.

The paper's Assumption 1 asks every passive chain to be irreducible and aperiodic. `require_ergodic`
checks it and, where it fails, says what is wrong in terms of the chain's states.
"""

from __future__ import annotations

from math import gcd

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import AssumptionError
from restive.kernels.chain import stationary_law
from restive.pace import WORK_AT_ONCE, look
from restive.problem import stochastic_matrix

__all__ = [
    "closed_classes",
    "communicating_classes",
    "irreducible_law",
    "period",
    "require_ergodic",
    "stationary",
]


def stationary(matrix: ArrayLike, label: str = "matrix") -> NDArray[np.float64]:
    """Stationary law [S] of a row-stochastic matrix: the share of time spent in each state.

    The chain may be periodic and may have transient states, but must have one closed class only;
    otherwise the law depends on where the chain starts, which is an `AssumptionError`.
    """
    matrix = stochastic_matrix(matrix, label, "the matrix")
    closed = closed_classes(matrix)
    if len(closed) > 1:
        raise AssumptionError(
            f"{label}: has {len(closed)} closed classes, {_listed(closed)}, so its long-run law "
            "depends on the start"
        )
    members = closed[0]
    law = np.zeros(len(matrix))
    law[members] = irreducible_law(matrix[np.ix_(members, members)])
    return law


def irreducible_law(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Stationary law [S] of a matrix that is known to be irreducible."""
    work = np.array(matrix, order="C")
    law = np.empty(len(work))
    last = len(work) - 1
    while last := stationary_law(work, law, last, WORK_AT_ONCE):
        look()
    return law


def communicating_classes(matrix: NDArray[np.float64]) -> list[list[int]]:
    """Sets of states that can reach each other, each ascending, in order of their first states."""
    reach = _reachable(matrix)
    mutual = reach & reach.T
    return [
        np.flatnonzero(mutual[s]).tolist() for s in range(len(matrix)) if not mutual[s, :s].any()
    ]


def closed_classes(matrix: NDArray[np.float64]) -> list[list[int]]:
    """Return the communicating classes that the chain never leaves."""
    reach = _reachable(matrix)
    return [
        members
        for members in communicating_classes(matrix)
        if reach[members[0]].sum() == len(members)
    ]


def period(matrix: NDArray[np.float64]) -> int:
    """Greatest common divisor of the lengths of all cycles of an irreducible chain."""
    level = {0: 0}
    queue = [0]
    divisor = 0
    for state in queue:
        for successor in np.flatnonzero(matrix[state]).tolist():
            if successor in level:
                divisor = gcd(divisor, level[state] + 1 - level[successor])
            else:
                level[successor] = level[state] + 1
                queue.append(successor)
    return abs(divisor)


def require_ergodic(matrix: NDArray[np.float64], label: str) -> None:
    """Check Assumption 1: raise unless the chain is irreducible and aperiodic."""
    if matrix.all():
        return  # every state leads to every state at once: the usual case, and a quick test
    classes = communicating_classes(matrix)
    if len(classes) > 1:
        raise AssumptionError(
            f"{label}: the passive chain is reducible (Assumption 1 of the paper asks for an "
            f"irreducible one): its classes are {_listed(classes)}"
        )
    cycle = period(matrix)
    if cycle > 1:
        raise AssumptionError(
            f"{label}: the passive chain is periodic with period {cycle} (Assumption 1 of the "
            "paper asks for an aperiodic one), so its belief never settles"
        )


def _reachable(matrix: NDArray[np.float64]) -> NDArray[np.bool_]:
    reach = (matrix > 0) | np.eye(len(matrix), dtype=bool)
    for middle in range(len(matrix)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def _listed(classes: list[list[int]]) -> str:
    shown = ["{" + ", ".join(map(str, members)) + "}" for members in classes[:6]]
    if len(classes) > len(shown):
        shown.append(f"and {len(classes) - len(shown)} more")
    return ", ".join(shown)
