"""Handing many arrays over at once, by their addresses.

Numba looks up the type of every array in every call, which for the arrays of a learner takes
longer than a step. So whoever holds the arrays writes down once where they lie (`Handle`), a kernel
takes that one array of addresses, and `opener` makes the named tuples of it again, inside. The
arrays are one-dimensional and contiguous; their types are read off the tuples' annotations. Whoever
holds a handle holds the arrays, and makes a new handle when one of them is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast, get_args, get_type_hints

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array
from numpy.typing import NDArray

from restive.kernels.compiler import JIT_DISABLED

__all__ = ["Handle", "opener", "where_wanted"]

# Numba has no types of its own.
named_tuple: Any = types.NamedTuple
fill_array: Any = populate_array
pack: Any = cgutils.pack_array


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
            leaves = list(_leaves(held, type(held)))
            self.where = np.array(
                [
                    number
                    for array in leaves
                    for number in (array.__array_interface__["data"][0], len(array))
                ],
                dtype=np.int64,
            )

    def __reduce__(self) -> Any:
        return Handle, (self.held,)  # a copy has arrays of its own


def _leaves(held: Any, kind: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a tuple in order, each as its annotation says."""
    for name, hint in _hints(kind).items():
        part = getattr(held, name)
        if isinstance(part, tuple):
            yield from _leaves(part, hint)
        else:
            expected = _dtype(hint)
            if part.ndim != 1 or part.dtype != expected or not part.flags.c_contiguous:
                raise TypeError(f"{kind.__name__}.{name}: expected a line of {expected}")
            yield part


@cache
def _hints(kind: Any) -> dict[str, Any]:
    """The types of a tuple's fields; looking them up is slow."""
    return get_type_hints(kind)


@cache
def _dtype(hint: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] = np.dtype(get_args(get_args(hint)[1])[0])
    return dtype


def _numba_type(kind: Any) -> Any:
    members = [
        _numba_type(hint)
        if isinstance(hint, type) and issubclass(hint, tuple)
        else types.Array(numba.from_dtype(_dtype(hint)), 1, "C")
        for hint in _hints(kind).values()
    ]
    return named_tuple(members, kind)


def opener(kind: type[Any]) -> Callable[[Any], Any]:
    """Return a function for kernels: from a handle's `where` to the named tuple `kind`."""
    if JIT_DISABLED:
        return lambda where: where
    whole = _numba_type(kind)

    @intrinsic
    def opened(context: Any, where: Any) -> Any:
        return whole(where), _generate

    def _generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        places = iter(range(10**9))

        def number() -> Any:
            return builder.load(builder.gep(numbers, [ir.IntType(64)(next(places))]))

        def made(part: Any) -> Any:
            if isinstance(part, types.NamedTuple):
                return context.make_tuple(builder, part, [made(member) for member in part])
            return _array(context, builder, part, number(), number())

        return made(whole)

    return cast(Callable[[Any], Any], opened)


def _wanted(wanted: Any, part: Any) -> Any:
    return None if wanted is None else part


def _type_wanted(context: Any, wanted: Any, part: Any) -> Any:
    if isinstance(wanted, types.NoneType):
        return types.none(wanted, part), lambda context, *_: context.get_dummy_value()
    return part(wanted, part), lambda _context, _builder, _signature, arguments: arguments[1]


# For kernels: a part of a tuple, or None where `wanted` is None. The compiler decides that, and
# leaves out whatever follows `if part is not None` in the functions that are handed the part.
where_wanted: Any = _wanted if JIT_DISABLED else intrinsic(_type_wanted)


def _array(context: Any, builder: Any, kind: Any, address: Any, count: Any) -> Any:
    """An array that owns nothing."""
    array = context.make_array(kind)(context, builder)
    item = context.get_data_type(kind.dtype)
    size = context.get_constant(types.intp, context.get_abi_sizeof(item))
    fill_array(
        array,
        data=builder.inttoptr(address, item.as_pointer()),
        shape=pack(builder, [count]),
        strides=pack(builder, [size]),
        itemsize=size,
        meminfo=None,
    )
    return array._getvalue()
