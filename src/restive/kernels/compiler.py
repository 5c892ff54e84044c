"""The one way in which kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

__all__ = ["kernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on its first call, without the GIL, cached on disk where that is possible.

    Numba caches beside the source or, where that is read-only, in the user's cache folder. Where
    neither can be written it refuses to cache at all; the kernel then compiles in each process.
    """
    try:
        return cast(Function, numba.njit(nogil=True, cache=True, error_model="numpy")(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return cast(Function, numba.njit(nogil=True, error_model="numpy")(function))
