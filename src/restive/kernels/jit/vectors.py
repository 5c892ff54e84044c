"""Eight numbers at once, in a register of the processor.

The compiler makes vectors of simple loops by itself, but not of running sums: eight of them in
variables it would add one by one, and in memory each must be stored before the next can be added.
So a few operations are spelled out. The Python below says what each does; compiled, it is the few
instructions beside it. Numbers are added in the same order everywhere, so results are the same to
the bit on every processor, whatever the width of its registers.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numba.extending
import numpy as np
from llvmlite import ir
from numba import types
from numpy.typing import NDArray

from restive.kernels.jit.compiler import Place, place

__all__ = [
    "LANES",
    "Vector",
    "everywhere",
    "largest",
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

Vector = NDArray[np.float64]  # [LANES]; compiled, a register
FloatArray = NDArray[np.float64]

REGISTER = ir.VectorType(ir.DoubleType(), LANES)
NUMBERS = ir.VectorType(ir.IntType(64), LANES)
PLACE = ir.IntType(32)
BITS = ir.IntType(LANES)
ALIGNMENT = 8  # of a load or store: any number may be the first

extending: Any = numba.extending  # which has no types of its own

Function = TypeVar("Function", bound=Callable[..., Any])


class _Register(types.Type):
    """A vector, to numba's type inference."""

    def __init__(self) -> None:
        super().__init__(name="float64x8")


@extending.register_model(_Register)
class _RegisterModel(extending.models.PrimitiveModel):  # type: ignore[misc]
    """A vector, in the code that is made."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, REGISTER)


register: Any = _Register()
everything: Any = types.VarArg(types.Any)


def _instructions(
    result: Any, generate: Callable[[Any, Any], Any]
) -> Callable[[Function], Function]:
    """Compile a function to what `generate` makes of its arguments, instead of its Python.

    An array comes as the address of its first number.
    """

    def lowered(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        values = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(call.args, arguments, strict=True)
        ]
        made = generate(builder, values)
        return context.get_dummy_value() if made is None else made

    def registered(function: Function) -> Function:
        def typed(*arguments: Any) -> Any:
            return result

        typed.pysig = signature(function)  # type: ignore[attr-defined]
        extending.type_callable(function)(lambda context: typed)
        extending.lower_builtin(function, everything)(lowered)
        return function

    return registered


def _address(builder: Any, data: Any, at: Any) -> Any:
    return builder.bitcast(builder.gep(data, [at]), REGISTER.as_pointer())


def _load(builder: Any, values: Any) -> Any:
    return builder.load(_address(builder, *values), align=ALIGNMENT)


@_instructions(register, _load)
def load(values: FloatArray, at: Place) -> Vector:
    """LANES numbers, from `at` on."""
    return values[place(at) : place(at) + place(LANES)].copy()


def _store(builder: Any, values: Any) -> None:
    data, at, vector = values
    builder.store(vector, _address(builder, data, at), align=ALIGNMENT)


@_instructions(types.none, _store)
def store(values: FloatArray, at: Place, vector: Vector) -> None:
    """Write LANES numbers, from `at` on."""
    values[place(at) : place(at) + place(LANES)] = vector


@_instructions(register, lambda builder, values: builder.fadd(*values))
def plus(a: Vector, b: Vector) -> Vector:
    """Add number by number."""
    return a + b


@_instructions(register, lambda builder, values: builder.fsub(*values))
def minus(a: Vector, b: Vector) -> Vector:
    """Subtract number by number."""
    return a - b


@_instructions(register, lambda builder, values: builder.fmul(*values))
def times(a: Vector, b: Vector) -> Vector:
    """Multiply number by number."""
    return a * b


@_instructions(register, lambda builder, values: builder.fdiv(*values))
def over(a: Vector, b: Vector) -> Vector:
    """Divide number by number."""
    return a / b


def _lesser(builder: Any, values: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", *values), *values)


@_instructions(register, _lesser)
def lesser(a: Vector, b: Vector) -> Vector:
    """Return the smaller of each two numbers."""
    return np.where(a < b, a, b)


def _where_below(builder: Any, values: Any) -> Any:
    vector, x, a, b = values
    return builder.select(builder.fcmp_ordered("<", vector, _everywhere(builder, x)), a, b)


@_instructions(register, _where_below)
def where_below(vector: Vector, x: float, a: Vector, b: Vector) -> Vector:
    """Return the numbers of `a` where those of `vector` are less than x, else those of `b`."""
    return np.where(vector < x, a, b)


def _where_equal(builder: Any, values: Any) -> Any:
    vector, x, a, b = values
    return builder.select(builder.fcmp_ordered("==", vector, _everywhere(builder, x)), a, b)


@_instructions(register, _where_equal)
def where_equal(vector: Vector, x: float, a: Vector, b: Vector) -> Vector:
    """Return the numbers of `a` where those of `vector` are x, else those of `b`."""
    return np.where(vector == x, a, b)


@_instructions(register, lambda builder, values: _everywhere(builder, values[0]))
def everywhere(x: float) -> Vector:
    """LANES times the same number."""
    return np.full(LANES, x)


def _sums_before(builder: Any, values: Any) -> Any:
    (vector,) = values
    sums = ir.Constant(REGISTER, [0.0] * LANES)
    total = builder.extract_element(vector, PLACE(0))
    for lane in range(1, LANES):
        sums = builder.insert_element(sums, total, PLACE(lane))
        total = builder.fadd(total, builder.extract_element(vector, PLACE(lane)))
    return sums


@_instructions(register, _sums_before)
def sums_before(vector: Vector) -> Vector:
    """For each number the sum of those before it, added from the first on."""
    sums = np.zeros(LANES)
    for lane in range(1, LANES):
        sums[lane] = sums[lane - 1] + vector[lane - 1]
    return sums


@_instructions(
    types.float64, lambda builder, values: builder.extract_element(values[0], PLACE(LANES - 1))
)
def last(vector: Vector) -> float:
    """Return the last number."""
    return float(vector[LANES - 1])


def _not_above(builder: Any, values: Any) -> Any:
    vector, x = values
    return _count(builder, _bits(builder, "<=", vector, _everywhere(builder, x)))


def _everywhere(builder: Any, x: Any, kind: Any = REGISTER) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, PLACE(0))
    everywhere = ir.Constant(ir.VectorType(PLACE, LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, everywhere)


def _bits(builder: Any, comparison: str, a: Any, b: Any) -> Any:
    """A bit for each two numbers that compare so, the first the lowest."""
    return builder.bitcast(builder.fcmp_ordered(comparison, a, b), BITS)


def _count(builder: Any, bits: Any) -> Any:
    return builder.zext(builder.ctpop(bits), ir.IntType(64))


@_instructions(types.int64, _not_above)
def not_above(vector: Vector, x: float) -> int:
    """How many of the numbers are at most x."""
    return int(np.count_nonzero(vector <= x))


def _largest(builder: Any, values: Any) -> Any:
    vector, count = values
    ahead = ir.Constant(NUMBERS, [0] * LANES)
    for lane in range(LANES):
        # a number is ahead of those it exceeds, and of equal ones in later lanes
        other = _everywhere(builder, builder.extract_element(vector, PLACE(lane)))
        later = ir.Constant(ir.VectorType(ir.IntType(1), LANES), [i > lane for i in range(LANES)])
        equal = builder.and_(builder.fcmp_ordered("==", other, vector), later)
        before = builder.or_(builder.fcmp_ordered(">", other, vector), equal)
        ahead = builder.add(ahead, builder.zext(before, NUMBERS))
    few = builder.icmp_unsigned("<", ahead, _everywhere(builder, count, NUMBERS))
    return builder.zext(builder.bitcast(few, BITS), ir.IntType(64))


@_instructions(types.int64, _largest)
def largest(vector: Vector, count: int) -> int:
    """Return a bit for each of the `count` largest numbers, the first of equals first."""
    places = np.argsort(-vector, kind="stable")[:count]
    return int(np.bitwise_or.reduce(np.int64(1) << places, initial=0))
