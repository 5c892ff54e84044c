"""The one way in which kernels are compiled.

Python calls a `kernel` or a `hot_kernel`. Kernels call these too, and besides them `part`s and
`inlined` functions, which Python cannot call (`kernels.parts`) and which most functions are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from restive.kernels.jit.checked_cache import checked
from restive.kernels.jit.compiling import watch_compiling
from restive.kernels.jit.parts import PART, only_for_kernels
from restive.kernels.jit.pipeline import KernelCompiler

__all__ = ["Place", "hot_kernel", "inlined", "kernel", "part", "place"]

# An index that is known not to be negative. Numba lets negative ones count from the end, and where
# the compiler cannot see that there are none, the code for that costs a hot loop a third
# of its time.
place = np.uint64
Place = int | np.uint64

JIT_DISABLED = bool(getattr(numba.config, "DISABLE_JIT", False))

watch_compiling()

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile `function` on its first call, without the GIL, cached on disk where possible."""
    return _compiled(function)


def hot_kernel(function: Function) -> Function:
    """Compile a kernel that makes no arrays, without counting references to those it is given.

    Counting is atomic and happens at every mention of an array, which in a loop of short steps
    costs more than the steps.
    """
    return _compiled(function, _nrt=False)


def part(function: Function) -> Function:
    """Compile a function that makes no arrays and that only kernels call."""
    return _compiled_part(function)


def inlined(function: Function) -> Function:
    """Compile a `part` into each kernel that calls it.

    For steps of a hot loop, of which a call would be a large part. The compiler's back end inlines
    it, so it is typed once and not once for each caller.
    """
    return _compiled_part(function, forceinline=True)


def _compiled_part(function: Function, **options: Any) -> Function:
    compiled = _compiled(function, **PART, **options)
    return compiled if JIT_DISABLED else only_for_kernels(compiled)


def _compiled(function: Function, **options: Any) -> Function:
    """Compile with a cache on disk.

    Numba caches beside the source or, where that is read-only, in the user's cache folder. Where
    neither can be written it refuses to cache at all; the kernel then compiles in each process.
    """
    if JIT_DISABLED:
        return _plain(function)
    options |= {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    options.setdefault("pipeline_class", KernelCompiler)
    try:
        return cast(Function, checked(numba.njit(cache=True, **options)(function)))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return cast(Function, numba.njit(**options)(function))


def _plain(function: Function) -> Function:
    """Run as Python, for debugging; whole numbers wrap around without a warning, as compiled."""
    return np.errstate(over="ignore")(function)
