"""The one way in which kernels are compiled.

Python calls a `kernel` or a `hot_kernel`. Kernels call these too, and besides them `part`s and
`inlined` functions, which Python cannot call (`parts`) and which most functions are.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np

from restive.kernels.jit.cache import kept_on_disk
from restive.kernels.jit.mode import MODE, PLAIN, PYTHON, TRICKS

if MODE == TRICKS:
    from restive.kernels.jit import parts
    from restive.kernels.jit.cache_guard import guarded

__all__ = ["Place", "hot_kernel", "inlined", "kernel", "part", "place"]

# An index that is known not to be negative. Numba lets negative ones count from the end, and where
# the compiler cannot see that there are none, the code for that costs a hot loop a third
# of its time.
place = np.uint64
Place = int | np.uint64

PARTS = ("PART", "INLINED")

with suppress(ImportError):  # a Numba without events compiles all the same
    from restive.kernels.jit.compiling import watch_compiling

    watch_compiling()

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on its first call, without the GIL, cached on disk where possible."""
    return _compiled(function, "KERNEL")


def hot_kernel(function: Function) -> Function:
    """Compile a kernel that makes no arrays, without counting references to those it is given.

    Counting is atomic and happens at every mention of an array, which in a loop of short steps
    costs more than the steps.
    """
    return _compiled(function, "HOT_KERNEL")


def part(function: Function) -> Function:
    """Compile a function that makes no arrays and that only kernels call."""
    return _compiled(function, "PART")


def inlined(function: Function) -> Function:
    """Compile a `part` into each kernel that calls it.

    For steps of a hot loop, of which a call would be a large part. The compiler's back end inlines
    it, so it is typed once and not once for each caller.
    """
    return _compiled(function, "INLINED")


def _compiled(function: Function, kind: str) -> Function:
    """Compile as the mode says; what distinguishes the kinds are options that Numba may drop."""
    if MODE == PYTHON:
        # whole numbers wrap around without a warning, as compiled
        return np.errstate(over="ignore")(function)

    def compiled(**options: Any) -> Any:
        return numba.njit(nogil=True, error_model="numpy", **options)(function)

    if MODE == PLAIN:
        return cast(Function, kept_on_disk(compiled))
    made = guarded(kept_on_disk(compiled, **getattr(parts, kind)))
    return cast(Function, parts.only_for_kernels(made) if kind in PARTS else made)
