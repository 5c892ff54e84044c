"""Eight numbers at once, in a register of the processor.

The compiler makes vectors of simple loops by itself, but not of running sums: eight of them in
variables it would add one by one, and in memory each must be stored before the next can be added.
So a few operations are spelled out. The Python below says what each does, on tuples of eight
numbers; plainly compiled it is just that, else the few instructions that `registers` has for it.
Numbers are added in the same order everywhere, so results are the same to the bit on every
processor, whatever the width of its registers. `registers` says which private names it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba.extending
import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import Place, place
from restive.kernels.jit.mode import MODE, TRICKS

__all__ = [
    "LANES",
    "Vector",
    "everywhere",
    "last",
    "lesser",
    "load",
    "minus",
    "not_above",
    "over",
    "plus",
    "store",
    "sums_before",
    "times",
    "where_below",
    "where_equal",
]

LANES = 8

Vector = tuple[float, ...]  # of LANES numbers; compiled to instructions, a register
FloatArray = NDArray[np.float64]

Function = TypeVar("Function", bound=Callable[..., Any])

if MODE == TRICKS:
    from restive.kernels.jit.registers import as_instructions


def operation(function: Function) -> Function:
    """Let kernels use a function of vectors."""
    if MODE == TRICKS:
        return as_instructions(function)
    compile_plainly: Any = numba.extending.register_jitable
    made: Function = compile_plainly(function)
    return made


@operation
def load(values: FloatArray, at: Place) -> Vector:
    """LANES numbers, from `at` on."""
    v = values[place(at) : place(at) + place(LANES)]
    return v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]


@operation
def store(values: FloatArray, at: Place, vector: Vector) -> None:
    """Write LANES numbers, from `at` on."""
    for lane in range(LANES):
        values[place(at) + place(lane)] = vector[lane]


@operation
def plus(a: Vector, b: Vector) -> Vector:
    """Add number by number."""
    return (
        a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3],
        a[4] + b[4], a[5] + b[5], a[6] + b[6], a[7] + b[7],
    )  # fmt: skip


@operation
def minus(a: Vector, b: Vector) -> Vector:
    """Subtract number by number."""
    return (
        a[0] - b[0], a[1] - b[1], a[2] - b[2], a[3] - b[3],
        a[4] - b[4], a[5] - b[5], a[6] - b[6], a[7] - b[7],
    )  # fmt: skip


@operation
def times(a: Vector, b: Vector) -> Vector:
    """Multiply number by number."""
    return (
        a[0] * b[0], a[1] * b[1], a[2] * b[2], a[3] * b[3],
        a[4] * b[4], a[5] * b[5], a[6] * b[6], a[7] * b[7],
    )  # fmt: skip


@operation
def over(a: Vector, b: Vector) -> Vector:
    """Divide number by number."""
    return (
        a[0] / b[0], a[1] / b[1], a[2] / b[2], a[3] / b[3],
        a[4] / b[4], a[5] / b[5], a[6] / b[6], a[7] / b[7],
    )  # fmt: skip


@operation
def lesser(a: Vector, b: Vector) -> Vector:
    """Return the smaller of each two numbers."""
    return (
        _chosen(a[0] < b[0], a[0], b[0]), _chosen(a[1] < b[1], a[1], b[1]),
        _chosen(a[2] < b[2], a[2], b[2]), _chosen(a[3] < b[3], a[3], b[3]),
        _chosen(a[4] < b[4], a[4], b[4]), _chosen(a[5] < b[5], a[5], b[5]),
        _chosen(a[6] < b[6], a[6], b[6]), _chosen(a[7] < b[7], a[7], b[7]),
    )  # fmt: skip


@operation
def where_below(vector: Vector, x: float, a: Vector, b: Vector) -> Vector:
    """Return the numbers of `a` where those of `vector` are less than x, else those of `b`."""
    v = vector
    return (
        _chosen(v[0] < x, a[0], b[0]), _chosen(v[1] < x, a[1], b[1]),
        _chosen(v[2] < x, a[2], b[2]), _chosen(v[3] < x, a[3], b[3]),
        _chosen(v[4] < x, a[4], b[4]), _chosen(v[5] < x, a[5], b[5]),
        _chosen(v[6] < x, a[6], b[6]), _chosen(v[7] < x, a[7], b[7]),
    )  # fmt: skip


@operation
def where_equal(vector: Vector, x: float, a: Vector, b: Vector) -> Vector:
    """Return the numbers of `a` where those of `vector` are x, else those of `b`."""
    v = vector
    return (
        _chosen(v[0] == x, a[0], b[0]), _chosen(v[1] == x, a[1], b[1]),
        _chosen(v[2] == x, a[2], b[2]), _chosen(v[3] == x, a[3], b[3]),
        _chosen(v[4] == x, a[4], b[4]), _chosen(v[5] == x, a[5], b[5]),
        _chosen(v[6] == x, a[6], b[6]), _chosen(v[7] == x, a[7], b[7]),
    )  # fmt: skip


def _chosen(condition: bool, a: float, b: float) -> float:
    return a if condition else b


if MODE != TRICKS:
    numba.extending.register_jitable(_chosen)


@operation
def everywhere(x: float) -> Vector:
    """LANES times the same number."""
    x = np.float64(x)
    return x, x, x, x, x, x, x, x


@operation
def sums_before(vector: Vector) -> Vector:
    """For each number the sum of those before it, added from the first on."""
    v = vector
    two = v[0] + v[1]
    three = two + v[2]
    four = three + v[3]
    five = four + v[4]
    six = five + v[5]
    return 0.0, v[0], two, three, four, five, six, six + v[6]


@operation
def last(vector: Vector) -> float:
    """Return the last number."""
    return vector[LANES - 1]


@operation
def not_above(vector: Vector, x: float) -> int:
    """How many of the numbers are at most x."""
    count = 0
    for lane in range(LANES):
        if vector[lane] <= x:
            count += 1
    return count
