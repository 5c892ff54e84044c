"""Functions that only kernels call: compiled into these, never by themselves.

Numba treats every function as one that Python may call: it optimises it, makes machine code of it
and a wrapper. But a kernel contains the parts that it calls and optimises them with the rest, so
all of that is done again. Here a part is only simplified and kept for its kernels, which makes
compiling everything a third cheaper and kernels no slower.
"""

from __future__ import annotations

from typing import Any, TypeVar, cast

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.registry import CPUDispatcher

from restive.kernels.jit.pipeline import KernelCompiler

__all__ = ["PART", "only_for_kernels"]

Function = TypeVar("Function")

ENVIRONMENT = "_ZN08NumbaEnv"  # a variable that Numba sets for each function it has compiled


class _PartCompiler(KernelCompiler):
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


# How `numba.njit` compiles a part. A part makes no arrays, so references need no counting.
PART = {"_nrt": False, "no_cpython_wrapper": True, "pipeline_class": _PartCompiler}


def only_for_kernels(function: Function) -> Function:
    """Refuse calls of a compiled part from Python."""
    cast(Any, function).__class__ = _Part
    return function
