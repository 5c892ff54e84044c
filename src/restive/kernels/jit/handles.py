"""Handing many arrays over at once, by their addresses.

Numba looks up the type of every array in every call, which for the arrays of a learner takes
longer than a step. So whoever holds the arrays writes down once where they lie (`Handle`), a kernel
takes that one array of addresses, and `opener` makes of it what looks like the named tuple again.
The arrays are one-dimensional and contiguous; their types are read off the tuples' annotations,
those of records too (`records`). Whoever holds a handle holds the arrays, and makes a new handle
when one of them is replaced.

Kernels hand such a tuple on to their parts as one address, too, and read an array out of it where
they mention it; `by_address` does the same to a tuple that a kernel was given as it is. Handed on
as tuples, all arrays would be taken apart and put together again in every call of a part, and that
would be most of what there is to compile. `addresses` tells Numba how, and which private names that
takes. A step of a small agent takes 4 us so, and 51 us where its tuple is handed over as it is.

Compiled plainly, or not at all, a handle's `where` is the tuple itself, and kernels take it so.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numba.extending
import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.layout import leaves
from restive.kernels.jit.mode import MODE, PLAIN, TRICKS

__all__ = ["Handle", "by_address", "opener"]

extending: Any = numba.extending  # which has no types of its own


class Handle:
    """A named tuple of arrays, or of such tuples, and where the arrays lie.

    `where` is what kernels take. It holds addresses, so it must never outlive `held`, be copied
    to another process or be written to a file.
    """

    __slots__ = ("held", "where")

    def __init__(self, held: Any) -> None:
        self.held = held
        self.where: Any = held
        arrays = list(leaves(held, type(held)))  # or a TypeError
        if MODE == TRICKS:
            numbers = [
                number
                for array in arrays
                for number in (array.__array_interface__["data"][0], len(array))
            ]
            self.where = np.array(numbers, dtype=np.int64)
        elif MODE == PLAIN:
            self.where = _of_one_type(held)

    def __reduce__(self) -> Any:
        return Handle, (self.held,)  # a copy has arrays of its own


def _of_one_type(held: Any) -> Any:
    """Return the tuple with arrays that Numba takes for writable ones.

    Which of them are is nothing that a kernel should be compiled for, and kernels write only what
    they may.
    """
    if isinstance(held, np.ndarray):
        return _writable(held)
    return type(held)(*map(_of_one_type, held))


def _writable(array: NDArray[Any]) -> NDArray[Any]:
    known = array.__array_interface__
    lie = known | {"data": (known["data"][0], False)}
    # whose elements are records again, which the interface says of their fields only
    return np.asarray(SimpleNamespace(__array_interface__=lie, held=array)).view(array.dtype)


def _as_it_is(part: Any) -> Any:
    return part


def opener(kind: type[Any]) -> Callable[[Any], Any]:
    """Return a function for kernels: from a handle's `where` to the named tuple `kind`."""
    return addresses.opener(kind) if MODE == TRICKS else _as_it_is


# For kernels: a named tuple that they were given, to be handed on by its address. Only for hot
# kernels: one that counts references is refused.
by_address: Any = _as_it_is

if MODE == TRICKS:
    from restive.kernels.jit import addresses

    by_address = addresses.by_address
else:
    extending.register_jitable(_as_it_is)
