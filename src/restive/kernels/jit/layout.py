"""How the arrays of a named tuple lie in a handle: what the tuple's annotations say.

For each array two numbers, its address and its length, in the order of the fields; a field that is
a tuple itself has the numbers of all its arrays.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from numpy.typing import NDArray

from restive.kernels.jit.records import element_dtype

__all__ = ["Field", "fields_of", "leaves"]


class Field(NamedTuple):
    """One field of a named tuple."""

    is_tuple: bool
    kind: Any  # the named tuple, or the type of the array's elements
    before: int  # numbers in the handle that stand before its own


@cache
def fields_of(kind: Any) -> dict[str, Field]:
    """What a tuple's annotations say; looking them up is slow."""
    fields: dict[str, Field] = {}
    before = 0
    for name, hint in get_type_hints(kind).items():
        is_tuple = isinstance(hint, type) and issubclass(hint, tuple)
        element = hint if is_tuple else element_dtype(hint)
        fields[name] = Field(is_tuple, element, before)
        before += _width(fields[name])
    return fields


def _width(field: Field) -> int:
    if field.is_tuple:
        return sum(_width(inner) for inner in fields_of(field.kind).values())
    return 2


def leaves(held: Any, kind: Any) -> Iterator[NDArray[Any]]:
    """All arrays of a tuple in order, each as its annotation says."""
    for name, field in fields_of(kind).items():
        part = getattr(held, name)
        if field.is_tuple:
            yield from leaves(part, field.kind)
        else:
            if part.ndim != 1 or part.dtype != field.kind or not part.flags.c_contiguous:
                raise TypeError(
                    f"{kind.__name__}.{name}: expected a contiguous line of {field.kind}"
                )
            yield part
