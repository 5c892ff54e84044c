r"""The subsidy problem of one arm that is always seen: its index, gain and advantages.

Such an arm moves by P_a where it is pulled and by P_p where it is not, its state s is known, and it
earns r_a(s) or r_p(s) + lambda. Under a policy (a set of states in which it is pulled) let
M = I - beta P, plus a row u' in every row for beta = 1, which makes it invertible where the chain
has one closed class. With D = P_a - P_p,

    T = beta D M^-1,    A = r_a - r_p - lambda + T (what the policy earns in each state)

is the advantage of pulling, a line in lambda for each state; u does not matter, since D 1 = 0. The
stationary law is pi' = u' M^-1. Where lambda is large nobody pulls, so that

    A = r_hat - lambda,    r_hat = r_a - r_p + T r_p,

which is the reduction of `restive.problem.reduction`: from there on passive steps earn lambda
alone. To pull in state s from now on (sign = 1), or to stop it (-1), is a pivot with
d = 1 - sign T_ss:

    A_j += sign T_js A_s / d,    T += sign T[:, s] T[s, :] / d,
    pi += sign pi_s T[s, :] / d,    g += sign pi_s A_s / d.

So lambda is led down from switch to switch, S^2 products each: a state that is not pulled needs
A <= 0, one that is pulled A >= 0. A state that turns back makes the arm not indexable, unless it
was at the very subsidy at which it came: several states may switch there one after the other.

As long as no state turns back, columns of T are needed only of states that are not pulled yet, half
of the work; that is tried first (`narrow`).
"""

from __future__ import annotations

from math import frexp

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part, place

__all__ = [
    "AMBIGUOUS",
    "FULL",
    "INDEXABLE",
    "LOWER",
    "MULTICHAIN",
    "NOT_FINITE",
    "NUM_LINES",
    "NUM_RESULTS",
    "OWN",
    "SINGULAR",
    "TURNED_BACK",
    "UNIT",
    "UPPER",
    "VALUES",
    "lead_down",
    "solve_many_seen",
    "solve_seen",
    "work_rows",
]

FloatArray = NDArray[np.float64]

# Rows of `lines` [NUM_LINES, S]: intercept and slope of A, which begin as r_a and r_p; the index
# and the largest subsidy at which pulling is best; whether it is pulled; of a state that was turned
# back, at which subsidy, and what its index was; the states by the column of T that they have, and
# the columns by state.
A0, A1, LOWER, UPPER, PULLED, TURNED, HELD, STATES, COLUMNS = range(9)
NUM_LINES = 9
# What `results` holds: the unit of rewards, pi.r_p, and whether the arm is indexable.
UNIT, OWN, INDEXABLE = 0, 1, 2
NUM_RESULTS = 3
TOP, GAIN0, GAIN1, VALUES = 0, 1, 2, 3  # columns of a piece, then intercepts and slopes [S] of A
# What is returned, if not the number of pieces.
SINGULAR, NOT_FINITE, MULTICHAIN, AMBIGUOUS, FULL, TURNED_BACK = -1, -2, -3, -4, -5, -6

NOISE = 1e-12
LEAST_PIVOT = 1e-13
LOWEST = -1e12  # subsidies, in units of rewards: what has not happened by then never does
SMALLEST = 2.0**-10  # as in `restive.problem.reduction.unit_of`


def work_rows(size: int) -> int:
    """Rows of the scratch [rows, S] of an arm with S states."""
    return 2 * size + 1


@hot_kernel
def solve_seen(
    work: FloatArray, lines: FloatArray, discount: float, narrow: bool, results: FloatArray,
    path: FloatArray,
) -> int:  # fmt: skip
    """Solve the subsidy problem of an arm for all subsidies.

    The first S rows of `work` hold P_p, the next S rows P_a; the first two of `lines` r_a and r_p.
    Writes the `results`, the index and its upper end, in `lines`, in units, and the pieces to
    `path`, if that has rows. Returns their number, or why there are none; TURNED_BACK if it must be
    done again, not `narrow`.
    """
    return lead_down(work, lines, discount, narrow, results, path)


@hot_kernel
def solve_many_seen(
    chains: FloatArray, rewards: FloatArray, discount: float, work: FloatArray, lines: FloatArray,
    results: FloatArray, found: FloatArray,
) -> int:  # fmt: skip
    """Write indices, upper ends and verdicts of M arms; return the first that has none, or M.

    `chains` [M, 2 S, S] are P_p and P_a of each, `rewards` [M, 2, S] r_a and r_p. `found` is
    [M, 3, S]: the index, its upper end, and 1 in the first place of the last row if the arm is
    indexable. The other arrays are scratch for one arm.
    """
    size = work.shape[1]
    no_path = work[:0]
    for m in range(len(chains)):
        count = TURNED_BACK
        for narrow in range(1, -1, -1):
            if count == TURNED_BACK:
                for i in range(2 * size):
                    for j in range(size):
                        work[i, j] = chains[m, i, j]
                for s in range(size):
                    lines[A0, s], lines[A1, s] = rewards[m, 0, s], rewards[m, 1, s]
                count = lead_down(work, lines, discount, narrow != 0, results, no_path)
        if count < 0:
            return m
        for s in range(size):
            found[m, 0, s] = results[UNIT] * lines[LOWER, s]
            found[m, 1, s] = results[UNIT] * lines[UPPER, s]
            if not found[m, 0, s] > -np.inf:
                return m
        found[m, 2, 0] = results[INDEXABLE]
    return len(chains)


@part
def lead_down(
    work: FloatArray, lines: FloatArray, discount: float, narrow: bool, results: FloatArray,
    path: FloatArray,
) -> int:  # fmt: skip
    """Do so as a part of another kernel."""
    size = work.shape[1]
    if not _write_transform(work, discount):
        return SINGULAR
    transform = work[size : 2 * size + 1]  # T, and pi' below it
    if not _reduce(transform, lines, discount, results):
        return NOT_FINITE
    return _follow(transform, lines, discount, narrow, results, path)


@part
def _write_transform(work: FloatArray, discount: float) -> bool:
    """Turn the rows P_p, P_a into (scratch), T and pi; False where M is singular.

    M is factored as L U, in place, with ones on the diagonal of U, and each row x of T and pi is
    solved by itself: x L U = d.
    """
    size = work.shape[1]
    share = 1.0 / size if discount == 1.0 else 0.0
    for s in range(size):
        passive, active = work[s], work[size + s]
        for j in range(size):
            p = passive[place(j)]
            active[place(j)] = discount * (active[place(j)] - p)
            passive[place(j)] = share - discount * p
        passive[s] += 1.0
    law = work[2 * size]
    for j in range(size):
        law[j] = share
    for c in range(size):
        if not _factor_column(work, c):
            return False
    i = size
    while i + 4 <= 2 * size + 1:  # several rows at once: M is read once for all of them
        _solve_four(work, work[i], work[i + 1], work[i + 2], work[i + 3])
        i += 4
    while i < 2 * size + 1:
        _solve_row(work, work[i])
        i += 1
    return True


@part
def _factor_column(work: FloatArray, c: int) -> bool:
    """Clear row c of M right of its diagonal, by columns; its largest entry becomes the pivot."""
    size = work.shape[1]
    row = work[c]
    best = c
    for j in range(c + 1, size):
        if abs(row[j]) > abs(row[best]):
            best = j
    if best != c:
        for i in range(2 * size + 1):
            work[i, c], work[i, best] = work[i, best], work[i, c]
    pivot = row[c]
    if not abs(pivot) > LEAST_PIVOT:
        return False
    for j in range(c + 1, size):
        row[place(j)] /= pivot
    for i in range(c + 1, size):
        _subtract(work[i], work[i, c], row, c + 1, size)
    return True


@inlined
def _subtract(row: FloatArray, factor: float, other: FloatArray, first: int, end: int) -> None:
    if factor != 0.0:
        for j in range(first, end):
            row[place(j)] -= factor * other[place(j)]


@part
def _solve_row(work: FloatArray, row: FloatArray) -> None:
    size = work.shape[1]
    for c in range(size):
        _subtract(row, row[c], work[c], c + 1, size)
    for c in range(size - 1, -1, -1):
        row[c] /= work[c, c]
        _subtract(row, row[c], work[c], 0, c)


@part
def _solve_four(
    work: FloatArray, a: FloatArray, b: FloatArray, c: FloatArray, d: FloatArray
) -> None:
    size = work.shape[1]
    for i in range(size):
        row, p, q, r, s = work[i], a[i], b[i], c[i], d[i]
        for j in range(i + 1, size):
            factor = row[place(j)]
            a[place(j)] -= p * factor
            b[place(j)] -= q * factor
            c[place(j)] -= r * factor
            d[place(j)] -= s * factor
    for i in range(size - 1, -1, -1):
        row, pivot = work[i], work[i, i]
        p, q, r, s = a[i] / pivot, b[i] / pivot, c[i] / pivot, d[i] / pivot
        a[i], b[i], c[i], d[i] = p, q, r, s
        for j in range(i):
            factor = row[place(j)]
            a[place(j)] -= p * factor
            b[place(j)] -= q * factor
            c[place(j)] -= r * factor
            d[place(j)] -= s * factor


@part
def _reduce(transform: FloatArray, lines: FloatArray, discount: float, results: FloatArray) -> bool:
    """Turn r_a and r_p into lines r_hat - lambda, in units; False where they are not finite."""
    size = transform.shape[1]
    own, largest = 0.0, 0.0
    for s in range(size):
        gained = lines[A0, s] - lines[A1, s]
        for j in range(size):
            gained += transform[s, j] * lines[A1, j]
        lines[PULLED, s] = gained
        largest = max(largest, abs(gained))
        own += transform[size, s] * lines[A1, s]
        if not abs(gained) < np.inf:
            return False
    unit = 1.0
    if largest > 1.0 or 0.0 < largest < SMALLEST:
        unit = 2.0 ** float(frexp(largest)[1])
    results[UNIT], results[OWN] = unit, own if discount == 1.0 else 0.0
    for s in range(size):
        lines[A0, s], lines[A1, s] = lines[PULLED, s] / unit, -1.0
        lines[PULLED, s] = 0.0
        lines[LOWER, s], lines[UPPER, s], lines[TURNED, s] = -np.inf, -np.inf, np.inf
        lines[STATES, s], lines[COLUMNS, s] = s, s
    return True


@part
def _follow(
    transform: FloatArray, lines: FloatArray, discount: float, narrow: bool, results: FloatArray,
    path: FloatArray,
) -> int:  # fmt: skip
    """Lead the subsidy down from switch to switch."""
    size = transform.shape[1]
    subsidy, gain0, gain1 = np.inf, 0.0, 1.0
    indexable = True
    width = size  # columns of T that are up to date
    most = len(path) if len(path) > 0 else 1000 + 20 * size
    for piece in range(most):
        if len(path) > 0:
            path[piece, TOP], path[piece, GAIN0], path[piece, GAIN1] = subsidy, gain0, gain1
            for s in range(size):
                path[piece, VALUES + s] = lines[A0, s]
                path[piece, VALUES + size + s] = lines[A1, s]
        best, who, tied = _next_switch(lines, subsidy)
        tolerance = NOISE * (1.0 + abs(subsidy))
        if tied and discount == 1.0 and best < subsidy - tolerance:
            return AMBIGUOUS
        if who < 0:
            for s in range(size):  # those that never came back
                indexable &= lines[TURNED, s] == np.inf or lines[PULLED, s] != 0.0
            results[INDEXABLE] = 1.0 if indexable else 0.0
            return piece + 1
        subsidy = best
        sign = -1.0 if lines[PULLED, who] != 0.0 else 1.0
        column = int(lines[COLUMNS, who])
        if column >= width:
            return TURNED_BACK
        pivot = 1.0 - sign * transform[who, column]
        if pivot < LEAST_PIVOT:
            return MULTICHAIN
        share = sign * transform[size, column] / pivot
        gain0 += share * lines[A0, who]
        gain1 += share * lines[A1, who]
        if narrow:
            width -= 1
            _switch_once(transform, lines, who, width)
        else:
            _switch(transform, lines, who, sign, size)
        indexable &= _mark(lines, who, sign, subsidy)
    return FULL


@part
def _next_switch(lines: FloatArray, subsidy: float) -> tuple[float, int, bool]:
    """Subsidy of the next switch and who switches; whether a state's advantage is nothing at all.

    Nobody is -1.
    """
    best, who, tied = LOWEST, -1, False
    for s in range(lines.shape[1]):
        a0, a1, pulled = lines[A0, s], lines[A1, s], lines[PULLED, s] != 0.0
        if subsidy < np.inf and abs(a1) <= NOISE and abs(a0) <= NOISE * (1.0 + abs(subsidy)):
            tied |= not pulled
        if (a1 > NOISE) if pulled else (a1 < -NOISE):
            root = min(subsidy, -a0 / a1)
            if root > best:
                best, who = root, s
    return best, who, tied


@part
def _switch_once(transform: FloatArray, lines: FloatArray, who: int, width: int) -> None:
    """Pull in a state from now on, for good: its column goes behind the others, and is left."""
    last, column = int(lines[STATES, width]), int(lines[COLUMNS, who])
    for i in range(len(transform)):
        entry = transform[i, column]
        transform[i, column], transform[i, width] = transform[i, width], entry
    lines[STATES, column], lines[COLUMNS, last] = last, column
    lines[STATES, width], lines[COLUMNS, who] = who, width
    _switch(transform, lines, who, 1.0, width)


@part
def _switch(transform: FloatArray, lines: FloatArray, who: int, sign: float, width: int) -> None:
    """Pull in a state from now on, or stop it; the first `width` columns of T follow."""
    size = transform.shape[1]
    own, column = transform[who], int(lines[COLUMNS, who])
    pivot = 1.0 - sign * own[column]
    a0, a1 = lines[A0, who], lines[A1, who]
    for i in range(size + 1):
        factor = sign * transform[i, column] / pivot
        if i < size:
            lines[A0, i] += factor * a0
            lines[A1, i] += factor * a1
        if i != who:
            _subtract(transform[i], -factor, own, 0, width)
    for j in range(width):
        own[place(j)] /= pivot


@part
def _mark(lines: FloatArray, who: int, sign: float, subsidy: float) -> bool:
    """Note that a state was switched; False where that shows that the arm is not indexable."""
    tolerance = NOISE * (1.0 + abs(subsidy))
    if sign < 0.0:
        lines[PULLED, who] = 0.0
        if lines[LOWER, who] - subsidy <= tolerance:  # it was pulled at one subsidy alone
            if lines[TURNED, who] == np.inf:
                lines[UPPER, who] = -np.inf
        elif lines[TURNED, who] == np.inf:
            lines[TURNED, who], lines[HELD, who] = subsidy, lines[LOWER, who]
        lines[LOWER, who] = -np.inf
        return True
    lines[PULLED, who] = 1.0
    lines[LOWER, who] = subsidy
    lines[UPPER, who] = max(lines[UPPER, who], subsidy)
    if lines[TURNED, who] == np.inf:
        return True
    if lines[TURNED, who] - subsidy <= tolerance:  # it was not pulled at one subsidy alone
        lines[LOWER, who], lines[TURNED, who] = lines[HELD, who], np.inf
        return True
    return False
