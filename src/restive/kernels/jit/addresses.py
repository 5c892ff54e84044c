"""Named tuples of arrays, to kernels, as one address: what `handles` does to Numba.

Numba hands a tuple on as all that its arrays consist of, seven numbers for each, which are taken
apart and put together again in every call of a part. As an address (`Opened`, `Held`) a tuple is
one number, and an array is read where it is mentioned.

Private names: Numba's code generator (llvmlite's `ir`, `cgutils`, the model of an array), and what
tells the type and the code of an attribute (AttributeTemplate, `lower_getattr_generic`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import lower_getattr_generic
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, models, register_model

from restive.kernels.jit.layout import Field, fields_of

__all__ = ["by_address", "opener"]

NUMBER = ir.IntType(64)  # what an address or a length is


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
    """Return a function for kernels: from the numbers of a handle to the named tuple `kind`."""

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
        field = fields_of(opened.kind).get(name)
        return None if field is None else _numba_type(field)


def _numba_type(field: Field) -> Any:
    if field.is_tuple:
        return Opened(field.kind)
    return types.Array(numba.from_dtype(field.kind), 1, "C")


def _read_opened(context: Any, builder: Any, opened: Opened, numbers: Any, name: str) -> Any:
    field = fields_of(opened.kind)[name]
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


@intrinsic
def by_address(context: Any, part: Any) -> Any:
    """For kernels: a named tuple that they were given, to be handed on by its address."""

    def keep(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        # An array that is read out of the tuple would be given back once too often.
        if context.enable_nrt:
            raise TypingError("by_address is for hot kernels: this kernel counts references")
        return cgutils.alloca_once_value(builder, arguments[0])

    return Held(part)(part), keep
