"""Numba's cache on disk, with errors that do not stop a run.

A file that cannot be read is an error of Numba's in every process from then on, and so is a full
disk. Here the kernel is compiled anew, and the user is told once. A file is also not taken for
another signature than it was compiled for, since two processes that fill an empty cache may choose
the same name. What is read without an error is trusted: see `cache`.

Private names: Numba's FunctionCache and two of its methods, and `_cache` of a compiled function.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import cache
from typing import Any

from numba.core.caching import FunctionCache

__all__ = ["guarded"]


def guarded(function: Any) -> Any:
    """Return a compiled function whose cache, where it has one, is guarded."""
    if type(function._cache) is FunctionCache:
        function._cache.__class__ = _GuardedCache
    return function


class _GuardedCache(FunctionCache):
    """The files of one kernel: an index, and one file per signature."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled for a signature, or None."""
        try:
            found = super().load_overload(sig, target_context)
        except Exception:  # reading a damaged pickle may raise anything
            _tell(f"{self.cache_path}: kernels that were kept here are damaged: compiled anew")
            with suppress(OSError):
                self.flush()
            return None
        return found if found is None or tuple(found.signature.args) == _types(sig) else None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled for a signature, if the disk lets us."""
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _tell(f"{self.cache_path}: compiled kernels cannot be kept here: {error.strerror}")


def _types(sig: Any) -> tuple[Any, ...]:
    return tuple(getattr(sig, "args", sig))


@cache  # once for each folder
def _tell(line: str) -> None:
    print(f"restive: {line}", file=sys.stderr, flush=True)
