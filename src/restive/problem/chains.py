"""Markov chains by their matrices: classes, period, stationary law, and how soon they forget.

The paper's Assumption 1 asks every passive chain to be irreducible and aperiodic. What is computed
here needs less: one closed class, which is aperiodic, so that the chain forgets where it started;
states that are left for good may be there too, as of a machine that breaks and stays broken.
`require_limit` checks it and, where it fails, says what is wrong by the chain's states. Laws and
mixing times are found for one chain (`stationary`, `mixing_time`) or for many of equal size and
with the same zeros at once (`limiting_laws`, `mixing_ages`); products are plain sums in a fixed
order, so that they are the same on every machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.kernels.chain import stationary_law
from restive.problem.arm import Arm, arm_label, stochastic_matrix
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = [
    "closed_classes",
    "communicating_classes",
    "forgetting_time",
    "irreducible_law",
    "limiting_laws",
    "mixing_ages",
    "mixing_time",
    "period",
    "require_limit",
    "require_one_class",
    "solved",
    "stationary",
    "unichain_law",
    "weighted",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_DOUBLINGS = 60
PASSIVE = "the passive chain"
Names: TypeAlias = Sequence[str] | None  # of a chain's states


def stationary(chain: Arm | ArrayLike) -> FloatArray:
    """Stationary law [S] of a chain: the share of time that it spends in each state.

    The chain may be periodic and may have transient states, but must have one closed class only;
    otherwise the law depends on where the chain starts, which is an `AssumptionError`.

    Parameters
    ----------
    chain
        A row-stochastic matrix [S, S], or an arm for its passive chain.
    """
    matrix, label, _ = _matrix_of(chain)
    return unichain_law(matrix, label, chain.states if isinstance(chain, Arm) else None)


def mixing_time(chain: Arm | ArrayLike, epsilon: float = 0.25) -> int:
    """T_k^mix(epsilon) of Section 2.1: steps until a chain forgets its start.

    The first t >= 1 at which the law of the chain, after t steps from any state, is within
    `epsilon` of the stationary law in L1 norm (twice the total variation).

    Parameters
    ----------
    chain
        A row-stochastic matrix [S, S], or an arm for its passive chain.
    epsilon
        In (0, 2].
    """
    if not (isinstance(epsilon, int | float | np.number) and 0 < epsilon <= 2):
        raise ProblemError(f"epsilon must be in (0, 2], an L1 distance, got {epsilon!r:.60}")
    matrix, label, what = _matrix_of(chain)
    states = chain.states if isinstance(chain, Arm) else None
    require_limit(matrix, label, what, states)
    age = _mixing_age(matrix, unichain_law(matrix, label), float(epsilon))
    if age < 0:
        raise TooLargeError(f"{label}: does not mix to {epsilon:g} within 2^60 steps")
    return age


def _matrix_of(chain: Arm | ArrayLike) -> tuple[FloatArray, str, str]:
    """Return the matrix of a chain, and how messages call whose it is and what it is."""
    if isinstance(chain, Arm):
        return chain.passive, arm_label(chain), PASSIVE
    return stochastic_matrix(chain, "matrix", "the matrix"), "matrix", "the chain"


def forgetting_time(arm: Arm) -> int:
    """Steps until the arm forgets its state, pulled in every step or in none: T^mix(1/4) of both.

    A chain with several closed classes never forgets, and one that is periodic need not for its
    averages to settle; these do not count.
    """
    longest = 1
    for matrix in (arm.passive,) if arm.is_uncontrolled else (arm.passive, arm.active):
        closed = closed_classes(matrix)
        members = np.ix_(closed[0], closed[0])
        if len(closed) == 1 and period(matrix[members]) == 1:
            age = _mixing_age(matrix, unichain_law(matrix, arm_label(arm)), 0.25)
            longest = max(longest, age if age > 0 else 1 << 60)
    return longest


def _mixing_age(matrix: FloatArray, law: FloatArray, epsilon: float) -> int:
    return int(mixing_ages(matrix[:, :, None], law[:, None], epsilon)[0])


def unichain_law(matrix: FloatArray, label: str, states: Names = None) -> FloatArray:
    """Stationary law [S] of a matrix with one closed class; raise for one with several."""
    if matrix.all():
        return irreducible_law(matrix)
    members = require_one_class(matrix, label, states=states)
    law = np.zeros(len(matrix))
    law[members] = irreducible_law(matrix[np.ix_(members, members)])
    return law


def irreducible_law(matrix: FloatArray) -> FloatArray:
    """Stationary law [S] of a matrix that is known to be irreducible."""
    work = np.array(matrix, order="C")
    law = np.empty(len(work))
    last = len(work) - 1
    while last := stationary_law(work, law, last, WORK_AT_ONCE):
        stop_if_interrupted()
    return law


def communicating_classes(matrix: FloatArray) -> list[list[int]]:
    """Sets of states that can reach each other, each ascending, in order of their first states."""
    reach = _reachable(matrix)
    mutual = reach & reach.T
    return [
        np.flatnonzero(mutual[s]).tolist() for s in range(len(matrix)) if not mutual[s, :s].any()
    ]


def closed_classes(matrix: FloatArray) -> list[list[int]]:
    """Return the communicating classes that the chain never leaves."""
    reach = _reachable(matrix)
    return [
        members
        for members in communicating_classes(matrix)
        if reach[members[0]].sum() == len(members)
    ]


def period(matrix: FloatArray) -> int:
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


def require_limit(
    matrix: FloatArray, label: str, what: str = PASSIVE, states: Names = None
) -> None:
    """Raise unless the chain forgets its start: one closed class, which is aperiodic.

    `what` is what messages call the chain, `states` are the names of its states.
    """
    if matrix.all():
        return  # every state leads to every state at once: the usual case, and a quick test
    members = require_one_class(matrix, label, what, states)
    cycle = period(matrix[np.ix_(members, members)])
    if cycle > 1:
        raise AssumptionError(
            f"{label}: {what} is periodic with period {cycle} (Assumption 1 of the "
            "paper asks for an aperiodic one), so its belief never settles"
        )


def require_one_class(
    matrix: FloatArray, label: str, what: str = "", states: Names = None
) -> list[int]:
    """Return the states of the one closed class; raise where there are several."""
    closed = closed_classes(matrix)
    if len(closed) > 1:
        raise AssumptionError(
            f"{label}: {what}{' ' if what else ''}has {len(closed)} closed classes, "
            f"{_listed(closed, states)}, so its long-run law depends on the start"
        )
    return closed[0]


def _reachable(matrix: FloatArray) -> NDArray[np.bool_]:
    reach = (matrix > 0) | np.eye(len(matrix), dtype=bool)
    for middle in range(len(matrix)):
        reach |= np.outer(reach[:, middle], reach[middle])
    return reach


def _listed(classes: list[list[int]], names: Names) -> str:
    shown = [
        "{" + ", ".join(str(s) if names is None else names[s] for s in members) + "}"
        for members in classes[:6]
    ]
    if len(classes) > len(shown):
        shown.append(f"and {len(classes) - len(shown)} more")
    return ", ".join(shown)


def mixing_ages(matrices: FloatArray, laws: FloatArray, epsilon: float) -> IntArray:
    """First t >= 1 at which every row of P^t is within `epsilon` of the stationary law, [M].

    Matrices are [S, S, M], laws [S, M]. The L1 distance never grows with t, so that t is found by
    doubling and then bisection over powers of two: at most 120 products. It is -1 where 2^60 steps
    do not suffice.
    """
    powers = [matrices]  # P^(2^j)
    mixed = [_farthest(matrices, laws) <= epsilon]
    while not mixed[-1].all() and len(powers) <= MOST_DOUBLINGS:
        powers.append(_product(powers[-1], powers[-1]))
        mixed.append(mixed[-1] | (_farthest(powers[-1], laws) <= epsilon))
    doublings = np.sum(~np.array(mixed), axis=0)  # the first power of two that is late enough
    early = np.zeros(len(doublings), dtype=np.int64)  # the largest age known to be too early
    current = np.broadcast_to(np.eye(len(matrices))[:, :, None], matrices.shape)
    for j in range(len(powers) - 2, -1, -1):
        following = np.where(early == 0, powers[j], _product(current, powers[j]))
        too_early = (j < doublings) & ~(_farthest(following, laws) <= epsilon)
        early += too_early * (1 << j)
        current = np.where(too_early, following, current)
    return np.where(mixed[-1], early + 1, -1)


def limiting_laws(matrices: FloatArray) -> FloatArray:
    """Stationary laws [S, M] of matrices [S, S, M] with one closed class, the same of all.

    Grassmann, Taksar and Heyman's elimination, as in `kernels.chain`.
    """
    if matrices.all():
        return _irreducible_laws(matrices)
    members = closed_classes(matrices.max(axis=2))[0]
    laws = np.zeros(matrices.shape[1:])
    laws[members] = _irreducible_laws(matrices[np.ix_(members, members)])
    return laws


def _irreducible_laws(matrices: FloatArray) -> FloatArray:
    work = matrices.copy()
    for last in range(len(work) - 1, 0, -1):
        work[:last, last] /= work[last, :last].sum(axis=0)
        work[:last, :last] += work[:last, last, None] * work[None, last, :last]
    laws: FloatArray = np.ones(work.shape[1:])
    for j in range(1, len(work)):
        laws[j] = (laws[:j] * work[:j, j]).sum(axis=0)
    laws /= laws.sum(axis=0)
    return laws


def _farthest(rows: FloatArray, laws: FloatArray) -> FloatArray:
    """Largest L1 distance [M] of a row from the law."""
    most: FloatArray = np.abs(rows - laws).sum(axis=1).max(axis=0)
    return most


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Return left @ right, rescaled so that rounding never adds up over many steps."""
    out = np.zeros_like(right)
    for middle in range(len(right)):
        stop_if_interrupted()
        out += left[:, middle, None] * right[None, middle]
    total = np.zeros((len(right), 1, right.shape[2]))
    for j in range(len(right)):
        total += out[:, j : j + 1]
    return out / total


# Linear algebra without BLAS, whose last bits depend on the processor.


def weighted(rows: FloatArray, values: FloatArray) -> FloatArray:
    """Rows times a vector, as plain sums."""
    sums = np.zeros(len(rows))
    for state, value in enumerate(values):
        sums += rows[:, state] * value
    return sums


def solved(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """Solve a system of linear equations by Gauss-Jordan elimination with row pivots."""
    system = np.column_stack([matrix, right])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        for column in range(len(matrix)):
            pivot = column + int(np.argmax(np.abs(system[column:, column])))
            system[[column, pivot]] = system[[pivot, column]]
            system[column] /= system[column, column]
            others = np.arange(len(matrix)) != column
            system[others] -= np.outer(system[others, column], system[column])
    return system[:, -1].copy()
