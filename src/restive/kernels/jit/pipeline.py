"""A leaner Numba for kernels: fewer passes, and no operator resolved twice.

Numba looks for closures, array expressions and much else that kernels do not have. And whenever a
kernel reads an element of an array, it tries a dozen ways in which something can be read, to find
the type and again to write the code. Here it remembers which way that was, for all kernels.
Together this saves a fifth of the time to compile.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import typed_passes, types, untyped_passes
from numba.core.compiler import CompilerBase
from numba.core.compiler_machinery import PassManager
from numba.core.registry import cpu_target
from numba.core.targetconfig import ConfigStack
from numba.core.typing.context import Context
from numba.extending import models, register_model

__all__ = ["KernelCompiler"]

PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.DeadBranchPrune,  # leaves out what follows `is not None`
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.IRLegalization,
    typed_passes.AnnotateTypes,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)


ELEMENT = (operator.getitem, operator.setitem)


class KernelCompiler(CompilerBase):
    """Numba's compiler, for kernels and their parts."""

    def __init__(self, typing: Any, *arguments: Any, **named: Any) -> None:
        super().__init__(typing, *arguments, **named)
        self.state.typingctx = REMEMBERING
        self.state.targetctx = self.state.targetctx.subtarget(typing_context=REMEMBERING)

    def define_pipelines(self) -> list[PassManager]:
        """Return the one way in which a kernel is compiled."""
        passes = PassManager("kernel")
        for each in PASSES:
            passes.add_pass(each, each.__name__)
        passes.finalize()
        return [passes]


class _RememberingFunction(types.Function):
    """A function or operator that remembers what it returns."""

    def __init__(self, templates: Any) -> None:
        super().__init__(templates)
        self.known: dict[Any, Any] = {}
        self.impl_keys: dict[Any, Any] = {}

    def augment(self, other: Any) -> Any:
        """Remember nothing where Numba learns of more uses."""
        return types.Function(self.templates).augment(other)

    def get_call_type(self, context: Any, args: Any, kws: Any) -> Any:
        """Return the signature for arguments of these types."""
        kinds = tuple(args)
        if self.typing_key in ELEMENT and isinstance(args[0], types.Array):
            kinds = tuple(map(types.unliteral, args))  # a constant is an index like any other
        flags = ConfigStack.top_or_none()
        inherited = None if flags is None else (flags.nrt, flags.forceinline)  # by what is called
        key = kinds, tuple(kws.items()), inherited
        if key not in self.known:
            signature: Any = super().get_call_type(context, args, kws)
            self.known[key] = signature, super().get_impl_key(signature)
        signature, impl_key = self.known[key]
        self.impl_keys[signature.args] = impl_key
        return signature

    def get_impl_key(self, sig: Any) -> Any:
        """Return the key of the code for the signature that was returned last."""
        return self.impl_keys[sig.args]


register_model(_RememberingFunction)(models.OpaqueModel)  # as any function


class _RememberingContext(Context):
    """All that Numba knows about types, shared with it; but its functions remember."""

    def __init__(self, shared: Context) -> None:
        self.__dict__ = shared.__dict__

    def _lookup_global(self, value: Any) -> Any:
        found = super()._lookup_global(value)
        if type(found) is not types.Function:
            return found
        if found not in FUNCTIONS:
            FUNCTIONS[found] = _RememberingFunction(found.templates)
        return FUNCTIONS[found]


FUNCTIONS: dict[Any, _RememberingFunction] = {}
REMEMBERING = _RememberingContext(cpu_target.typing_context)
