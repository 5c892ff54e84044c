"""Handing many arrays over at once, by their addresses.

Numba looks up the type of every array in every call, which for the arrays of a learner takes
longer than a step. So whoever holds the arrays writes down once where they lie (`Handle`), a kernel
takes that one array of addresses, and `opener` makes of it what looks like the named tuple again.
The arrays are one-dimensional and contiguous; their types are read off the tuples' annotations,
those of records too (`records`).
Whoever holds a handle holds the arrays, and makes a new handle when one of them is replaced.

Kernels hand such a tuple on to their parts as one address, too, and read an array out of it where
they mention it; `by_address` does the same to a tuple that a kernel was given as it is. Handed on
as tuples, all arrays would be taken apart and put together again in every call of a part, and that
would be most of what there is to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple, cast, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model
from numpy.typing import NDArray

from restive.kernels.jit.compiler import JIT_DISABLED
from restive.kernels.jit.records import element_dtype

__all__ = ["Handle", "by_address", "opener", "where_wanted"]

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
                    for number in (array.__array_interface__["data"][0], len(array))
                ],
                dtype=np.int64,
            )

    def __reduce__(self) -> Any:
        return Handle, (self.held,)  # a copy has arrays of its own


def _leaves(held: Any, kind: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a tuple in order, each as its annotation says."""
    for name, field in _fields(kind).items():
        part = getattr(held, name)
        if field.is_tuple:
            yield from _leaves(part, field.kind)
        else:
            if part.ndim != 1 or part.dtype != field.kind or not part.flags.c_contiguous:
                raise TypeError(
                    f"{kind.__name__}.{name}: expected a contiguous line of {field.kind}"
                )
            yield part


class _Field(NamedTuple):
    is_tuple: bool
    kind: Any  # the named tuple, or the type of the array's elements
    before: int  # numbers in `where` that stand before its own


@cache
def _fields(kind: Any) -> dict[str, _Field]:
    """What a tuple's annotations say; looking them up is slow."""
    fields: dict[str, _Field] = {}
    before = 0
    for name, hint in get_type_hints(kind).items():
        is_tuple = isinstance(hint, type) and issubclass(hint, tuple)
        element = hint if is_tuple else element_dtype(hint)
        fields[name] = _Field(is_tuple, element, before)
        before += _width(fields[name])
    return fields


def _width(field: _Field) -> int:
    """How many numbers in `where` are a field's: for each array its address and its length."""
    if field.is_tuple:
        return sum(_width(inner) for inner in _fields(field.kind).values())
    return 2


class Opened(types.Type):
    """A named tuple in a handle, to a kernel: the address of its numbers there."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"Opened({kind.__module__}.{kind.__qualname__})")

    @property
    def key(self) -> Any:
        """Not the name, which two tuples may share."""
        return self.kind


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
    if field.is_tuple:
        return Opened(field.kind)
    return types.Array(numba.from_dtype(field.kind), 1, "C")


def _read_opened(context: Any, builder: Any, opened: Opened, numbers: Any, name: str) -> Any:
    field = _fields(opened.kind)[name]
    first = builder.gep(numbers, [NUMBER(field.before)])
    if field.is_tuple:
        return first
    kind = _numba_type(field)
    data = context.get_data_type(kind.dtype).as_pointer()
    address, count = (_constant(builder, builder.gep(first, [NUMBER(i)])) for i in range(2))
    return _array(context, builder, kind, builder.inttoptr(address, data), count)


lower_getattr_generic(Opened)(_read_opened)


def _constant(builder: Any, address: Any) -> Any:
    """Read what nobody writes while a kernel runs, so that the compiler may read it only once."""
    value = builder.load(address)
    value.set_metadata("invariant.load", builder.module.add_metadata([]))
    return value


def _array(context: Any, builder: Any, kind: Any, data: Any, count: Any) -> Any:
    """An array that owns nothing."""
    size = NUMBER(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    model = context.data_model_manager[kind]
    array = ir.Constant(model.get_value_type(), None)
    for name, value in (
        ("nitems", count),
        ("itemsize", size),
        ("data", data),
        ("shape", cgutils.pack_array(builder, [count])),
        ("strides", cgutils.pack_array(builder, [size])),
    ):
        array = builder.insert_value(array, value, model.get_field_position(name))
    return array


class Held(types.Type):
    """A named tuple that a kernel was given, to its parts: the address at which it keeps it."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        super().__init__(f"Held({kind})")

    @property
    def key(self) -> Any:
        """Not the name, which two tuples may share."""
        return self.kind


@register_model(Held)
class _HeldModel(models.PrimitiveModel):
    def __init__(self, manager: Any, held: Held) -> None:
        super().__init__(manager, held, manager[held.kind].get_value_type().as_pointer())


@infer_getattr
class _HeldFields(AttributeTemplate):
    key = Held

    def generic_resolve(self, held: Held, name: str) -> Any:  # type: ignore[override]
        fields = held.kind.fields
        return held.kind[fields.index(name)] if name in fields else None


def _read_held(context: Any, builder: Any, held: Held, address: Any, name: str) -> Any:
    place = held.kind.fields.index(name)
    return builder.load(cgutils.gep_inbounds(builder, address, 0, place))


lower_getattr_generic(Held)(_read_held)


def _held(context: Any, part: Any) -> Any:
    def keep(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Held(part)(part), keep


# For kernels: a named tuple that they were given, to be handed on by its address.
by_address: Any = (lambda part: part) if JIT_DISABLED else intrinsic(_held)


def _wanted(wanted: Any, part: Any) -> Any:
    return None if wanted is None else part


def _type_wanted(context: Any, wanted: Any, part: Any) -> Any:
    if isinstance(wanted, types.NoneType):
        return types.none(wanted, part), lambda context, *_: context.get_dummy_value()
    return part(wanted, part), lambda _context, _builder, _signature, arguments: arguments[1]


# For kernels: a part of a tuple, or None where `wanted` is None. The compiler decides that, and
# leaves out whatever follows `if part is not None` in the functions that are handed the part.
where_wanted: Any = _wanted if JIT_DISABLED else intrinsic(_type_wanted)
