"""Calling a compiled kernel by its address.

A hot kernel makes no arrays, and nothing it calls may: the compiler hands that down. What does make
some, rarely, is called by its address instead, which also keeps it out of the code of every caller.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, register_jitable
from numpy.typing import NDArray

from restive.kernels.jit.mode import MODE, TRICKS

__all__ = ["address_of", "call_at"]

IntArray = NDArray[np.int64]

# Numba has no types of its own.
numbers: Any = types.Array(types.int64, 1, "C")


@cache
def address_of(kernel: Any) -> int:
    """Where the machine code of a kernel lies that takes whole numbers [n] and tells a truth value.

    It is 0 where nothing is compiled, or plainly.
    """
    if MODE != TRICKS:
        return 0
    kernel.compile((numbers,))
    found = kernel.overloads[(numbers,)]
    assert found.signature.return_type == types.boolean
    return int(found.library.get_pointer_to_function(found.fndesc.llvm_func_name))


def _called(address: int, where: IntArray) -> bool:
    return False  # where there are no addresses, which nobody calls


def _type_called(context: Any, address: Any, where: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        convention = context.call_conv
        kind = convention.get_function_type(types.boolean, (where,))
        code = builder.inttoptr(arguments[0], kind.as_pointer())
        status, told = convention.call_function(
            builder, code, types.boolean, (where,), arguments[1:]
        )
        with builder.if_then(status.is_error, likely=False):
            convention.return_status_propagate(builder, status)
        return told

    return types.boolean(address, where), generate


# For kernels: call what lies at an address, as `address_of` gives it, and return what it tells.
call_at: Any = intrinsic(_type_called) if MODE == TRICKS else register_jitable(_called)
