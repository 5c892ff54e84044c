"""What happens while kernels are compiled: the user is told, and nobody looks for garbage."""

from __future__ import annotations

import gc
import sys
from time import monotonic
from typing import Any

from numba.core import event

__all__ = ["watch_compiling"]

register: Any = event.register

PATIENCE = 0.5  # seconds of compiling that nobody minds


class _Notice(event.Listener):
    """Says it once in a process, as soon as compiling has taken longer than that."""

    def __init__(self) -> None:
        self.spent = 0.0  # seconds, on kernels that are done
        self.begun = 0.0
        self.depth = 0
        self.said = False

    def on_start(self, happened: Any) -> None:
        if self.depth == 0:
            self.begun = monotonic()
        self.depth += 1

    def on_end(self, happened: Any) -> None:
        # A kernel is compiled after its parts, so this comes early in a long compilation.
        self.depth -= 1
        spent = self.spent + monotonic() - self.begun
        if self.depth == 0:
            self.spent = spent
        if not self.said and spent > PATIENCE and _is_ours(happened):
            self.said = True
            print("restive: compiling (first run only)", file=sys.stderr, flush=True)


def _is_ours(happened: Any) -> bool:
    module: str = happened.data["dispatcher"].py_func.__module__
    return module.startswith("restive.")


class _Pause(event.Listener):
    """Lets Python's search for garbage wait.

    It would look through all that Numba makes again and again, for a sixth of the time.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.paused = False

    def on_start(self, happened: Any) -> None:
        if self.depth == 0 and gc.isenabled():
            self.paused = True
            gc.disable()
        self.depth += 1

    def on_end(self, happened: Any) -> None:
        self.depth -= 1
        if self.depth == 0 and self.paused:
            self.paused = False
            gc.enable()


def watch_compiling() -> None:
    """Do so from now on whenever kernels must be compiled."""
    register("numba:compile", _Notice())
    register("numba:compile", _Pause())
