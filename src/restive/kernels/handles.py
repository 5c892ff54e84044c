"""Handing many arrays over at once, by their addresses.

Numba looks up the type of every array in every call, which for the arrays of a learner takes
longer than a step. So whoever holds the arrays writes down once where they lie (`Handle`), a kernel
takes that one array of addresses, and `opener` makes of it what looks like the named tuple again.
Kernels hand this on to their parts as one address; an array is read out of it where it is
mentioned. Handed over as tuples, every array would be taken apart and put together again in every
call of a part, and that would be most of what there is to compile.

The arrays are contiguous; their types are read off the tuples' annotations, one-dimensional unless
these say `Annotated[..., dimensions]`. Whoever holds a handle holds the arrays, and makes a new
handle when one of them is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any, NamedTuple, cast, get_args, get_origin, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model
from numpy.typing import NDArray

from restive.kernels.compiler import JIT_DISABLED

__all__ = ["Handle", "opener", "where_wanted"]

NUMBER = ir.IntType(64)  # what an address or a length is


class Handle:
    """A named tuple of arrays, or of such tuples, and where the arrays lie.

    `where` is what kernels take. It holds addresses, so it must never outlive `held`, be copied
    to another process or be written to a file.
    """

    __slots__ = ("held", "where")

    def __init__(self, held: Any) -> None:
        self.held = held
        self.where: Any = held
        if not JIT_DISABLED:
            self.where = np.array(
                [
                    number
                    for array in _leaves(held, type(held))
                    for number in (array.__array_interface__["data"][0], *array.shape)
                ],
                dtype=np.int64,
            )

    def __reduce__(self) -> Any:
        return Handle, (self.held,)  # a copy has arrays of its own


def _leaves(held: Any, kind: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a tuple in order, each as its annotation says."""
    for name, field in _fields(kind).items():
        part = getattr(held, name)
        if isinstance(part, tuple):
            yield from _leaves(part, field.kind)
        else:
            if (
                part.ndim != field.dimensions
                or part.dtype != field.kind
                or not part.flags.c_contiguous
            ):
                shape = "a line" if field.dimensions == 1 else f"{field.dimensions} dimensions"
                raise TypeError(f"{kind.__name__}.{name}: expected {shape} of {field.kind}")
            yield part


class _Field(NamedTuple):
    kind: Any  # a named tuple, or the type of an array's elements
    dimensions: int  # of the array, 0 for a tuple
    before: int  # numbers in `where` that stand before its own


@cache
def _fields(kind: Any) -> dict[str, _Field]:
    """What a tuple's annotations say; looking them up is slow."""
    fields: dict[str, _Field] = {}
    before = 0
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if isinstance(hint, type) and issubclass(hint, tuple):
            fields[name] = _Field(hint, 0, before)
        else:
            array, dimensions = get_args(hint) if get_origin(hint) is Annotated else (hint, 1)
            fields[name] = _Field(np.dtype(get_args(get_args(array)[1])[0]), dimensions, before)
        before += _num_numbers(fields[name])
    return fields


def _num_numbers(field: _Field) -> int:
    """How many numbers in `where` are a field's: addresses, each with the shape of its array."""
    if field.dimensions == 0:
        return sum(_num_numbers(inner) for inner in _fields(field.kind).values())
    return 1 + field.dimensions


class Opened(types.Type):
    """What kernels have for a named tuple: the address of its numbers in a handle."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"Opened({kind.__module__}.{kind.__qualname__})")


@register_model(Opened)
class _OpenedModel(models.PrimitiveModel):
    def __init__(self, manager: Any, opened: Opened) -> None:
        super().__init__(manager, opened, NUMBER.as_pointer())


def opener(kind: type[Any]) -> Callable[[Any], Any]:
    """Return a function for kernels: from a handle's `where` to the named tuple `kind`."""
    if JIT_DISABLED:
        return lambda where: where

    def _address(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    @intrinsic
    def opened(context: Any, where: Any) -> Any:
        return Opened(kind)(where), _address

    return cast(Callable[[Any], Any], opened)


@infer_getattr
class _OpenedFields(AttributeTemplate):
    key = Opened

    def generic_resolve(self, opened: Opened, name: str) -> Any:  # type: ignore[override]
        field = _fields(opened.kind).get(name)
        return None if field is None else _numba_type(field)


def _numba_type(field: _Field) -> Any:
    if field.dimensions == 0:
        return Opened(field.kind)
    return types.Array(numba.from_dtype(field.kind), field.dimensions, "C")


def _read_field(context: Any, builder: Any, opened: Opened, numbers: Any, name: str) -> Any:
    field = _fields(opened.kind)[name]
    if field.dimensions == 0:
        return builder.gep(numbers, [NUMBER(field.before)])
    loaded = []
    for place in range(field.before, field.before + 1 + field.dimensions):
        number = builder.load(builder.gep(numbers, [NUMBER(place)]))
        # nobody writes there while a kernel runs, so the compiler may read it once and for all
        number.set_metadata("invariant.load", builder.module.add_metadata([]))
        loaded.append(number)
    return _array(context, builder, _numba_type(field), loaded[0], loaded[1:])


lower_getattr_generic(Opened)(_read_field)


def _array(context: Any, builder: Any, kind: Any, address: Any, shape: list[Any]) -> Any:
    """An array that owns nothing."""
    item = context.get_data_type(kind.dtype)
    item_size = NUMBER(context.get_abi_sizeof(item))
    count, size = NUMBER(1), item_size
    strides: list[Any] = []
    for length in reversed(shape):
        strides.insert(0, size)
        count, size = builder.mul(count, length), builder.mul(size, length)
    model = context.data_model_manager[kind]
    array = ir.Constant(model.get_value_type(), None)
    for name, value in (
        ("nitems", count),
        ("itemsize", item_size),
        ("data", builder.inttoptr(address, item.as_pointer())),
        ("shape", cgutils.pack_array(builder, shape)),
        ("strides", cgutils.pack_array(builder, strides)),
    ):
        array = builder.insert_value(array, value, model.get_field_position(name))
    return array


def _wanted(wanted: Any, part: Any) -> Any:
    return None if wanted is None else part


def _type_wanted(context: Any, wanted: Any, part: Any) -> Any:
    if isinstance(wanted, types.NoneType):
        return types.none(wanted, part), lambda context, *_: context.get_dummy_value()
    return part(wanted, part), lambda _context, _builder, _signature, arguments: arguments[1]


# For kernels: a part of a tuple, or None where `wanted` is None. The compiler decides that, and
# leaves out whatever follows `if part is not None` in the functions that are handed the part.
where_wanted: Any = _wanted if JIT_DISABLED else intrinsic(_type_wanted)
