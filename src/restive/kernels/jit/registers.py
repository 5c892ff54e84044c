"""The operations of `vectors` as instructions of the processor: what they do to Numba.

Private names: llvmlite's `ir`, and the model of a type and of an array in Numba's code generator.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import signature
from typing import Any, TypeVar

import numba.extending
from llvmlite import ir
from numba import types

__all__ = ["as_instructions"]

LANES = 8

REGISTER = ir.VectorType(ir.DoubleType(), LANES)
INTEGERS = ir.VectorType(ir.IntType(64), LANES)
LANE = ir.IntType(32)
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


def as_instructions(function: Function) -> Function:
    """Compile an operation to what INSTRUCTIONS say of its name, instead of its Python."""
    result, generate = INSTRUCTIONS[function.__name__]

    def typed(*arguments: Any) -> Any:
        return result

    def lowered(context: Any, builder: Any, call: Any, arguments: Any) -> Any:
        # an array comes as the address of its first number
        values = [
            context.make_array(kind)(context, builder, value).data
            if isinstance(kind, types.Array)
            else value
            for kind, value in zip(call.args, arguments, strict=True)
        ]
        made = generate(builder, *values)
        return context.get_dummy_value() if made is None else made

    typed.pysig = signature(function)  # type: ignore[attr-defined]
    extending.type_callable(function)(lambda context: typed)
    extending.lower_builtin(function, everything)(lowered)
    return function


def _address(builder: Any, data: Any, at: Any) -> Any:
    return builder.bitcast(builder.gep(data, [at]), REGISTER.as_pointer())


def _load(builder: Any, data: Any, at: Any) -> Any:
    return builder.load(_address(builder, data, at), align=ALIGNMENT)


def _store(builder: Any, data: Any, at: Any, vector: Any) -> None:
    builder.store(vector, _address(builder, data, at), align=ALIGNMENT)


def _plus(builder: Any, a: Any, b: Any) -> Any:
    return builder.fadd(a, b)


def _minus(builder: Any, a: Any, b: Any) -> Any:
    return builder.fsub(a, b)


def _times(builder: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, b)


def _over(builder: Any, a: Any, b: Any) -> Any:
    return builder.fdiv(a, b)


def _lesser(builder: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", a, b), a, b)


def _where_below(builder: Any, vector: Any, x: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("<", vector, _everywhere(builder, x)), a, b)


def _where_equal(builder: Any, vector: Any, x: Any, a: Any, b: Any) -> Any:
    return builder.select(builder.fcmp_ordered("==", vector, _everywhere(builder, x)), a, b)


def _everywhere(builder: Any, x: Any, kind: Any = REGISTER) -> Any:
    """A vector of one number."""
    nothing = ir.Constant(kind, ir.Undefined)
    first = builder.insert_element(nothing, x, LANE(0))
    everywhere = ir.Constant(ir.VectorType(LANE, LANES), [0] * LANES)
    return builder.shuffle_vector(first, nothing, everywhere)


def _sums_before(builder: Any, vector: Any) -> Any:
    sums = ir.Constant(REGISTER, [0.0] * LANES)
    total = _lane(builder, vector, 0)
    for lane in range(1, LANES):
        sums = builder.insert_element(sums, total, LANE(lane))
        total = builder.fadd(total, _lane(builder, vector, lane))
    return sums


def _lane(builder: Any, vector: Any, lane: int) -> Any:
    return builder.extract_element(vector, LANE(lane))


def _last(builder: Any, vector: Any) -> Any:
    return _lane(builder, vector, LANES - 1)


def _not_above(builder: Any, vector: Any, x: Any) -> Any:
    found = builder.fcmp_ordered("<=", vector, _everywhere(builder, x))
    return builder.zext(builder.ctpop(builder.bitcast(found, BITS)), ir.IntType(64))


# What each operation returns, and the instructions for it.
INSTRUCTIONS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "load": (register, _load),
    "store": (types.none, _store),
    "plus": (register, _plus),
    "minus": (register, _minus),
    "times": (register, _times),
    "over": (register, _over),
    "lesser": (register, _lesser),
    "where_below": (register, _where_below),
    "where_equal": (register, _where_equal),
    "everywhere": (register, _everywhere),
    "sums_before": (register, _sums_before),
    "last": (types.float64, _last),
    "not_above": (types.int64, _not_above),
}
