"""Functions that only kernels call: compiled into these, never by themselves.

Numba treats every function as one that Python may call: it optimises it, makes machine code of it
and a wrapper. But a kernel contains the parts that it calls and optimises them with the rest, so
all of that is done again. Here a part is only simplified and kept for its kernels, which makes
compiling everything a third cheaper (13 CPU s instead of 18 for one chore) and kernels no slower.

Private names: the class of Numba's code libraries (JITCodeLibrary) and four of its methods, that of
its compiler and of what it compiles (Compiler, CPUDispatcher), llvmlite's parser, and the options
`_nrt`, `no_cpython_wrapper` and `no_cfunc_wrapper` of `njit`.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.registry import CPUDispatcher

__all__ = ["HOT_KERNEL", "INLINED", "KERNEL", "PART", "only_for_kernels"]

ENVIRONMENT = "_ZN08NumbaEnv"  # a variable that Numba sets for each function it has compiled


class _PartCompiler(Compiler):
    def compile_extra(self, func: Any) -> Any:
        self.state.library = _PartLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class _PartLibrary(JITCodeLibrary):
    """The code of a part, which kernels take over; what is compiled is a module without it."""

    def _optimize_final_module(self) -> None:
        """Inline what must be; kernels do the rest."""
        passes, builder = self._codegen._module_pass_manager(
            opt=0, loop_vectorize=False, slp_vectorize=False, cost="cheap"
        )
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        whole = self._final_module
        self._finalized = True  # or the next line would come back here
        self._get_module_for_linking()
        variables = [v.name for v in whole.global_variables if v.name.startswith(ENVIRONMENT)]
        self._final_module = llvm.parse_assembly(
            str(self._codegen._create_empty_module(self.name))
            + "".join(f'@"{name}" = common global i8* null\n' for name in variables)
        )
        self._final_module.name = whole.name
        super()._finalize_final_module()


class _Part(CPUDispatcher):
    """A compiled function without a wrapper for Python, which would crash if Python called it."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        raise TypeError(f"{self.py_func.__name__} is a part of kernels; Python cannot call it")


# Options of `numba.njit`: of a kernel, of one that counts no references, and of a part. A part
# makes no arrays, so there is nothing to count.
KERNEL = {"no_cfunc_wrapper": True}
HOT_KERNEL = KERNEL | {"_nrt": False}
PART = HOT_KERNEL | {"no_cpython_wrapper": True, "pipeline_class": _PartCompiler}
INLINED = PART | {"forceinline": True}


def only_for_kernels(function: Any) -> Any:
    """Refuse calls of a compiled part from Python."""
    function.__class__ = _Part
    return function
