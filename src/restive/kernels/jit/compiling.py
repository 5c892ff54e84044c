"""What happens while kernels are compiled: the user is told, and nobody looks for garbage.

Python's search for garbage would look through all that Numba makes again and again, for a sixth of
the time. Private names: Numba's events (`numba.core.event`), in every mode: its manual describes
them.
"""

from __future__ import annotations

import gc
import sys
from multiprocessing import parent_process
from time import monotonic
from typing import Any

from numba.core import event

__all__ = ["watch_compiling"]

register: Any = event.register

PATIENCE = 0.5  # seconds of compiling that nobody minds
NOTICE = "restive: compiling what is used here for the first time; `restive warm-up` compiles all"


class _Watch(event.Listener):
    """Pauses the search, and tells once in a process, when compiling takes long."""

    def __init__(self) -> None:
        self.depth = 0  # a kernel is compiled while others that call it are
        self.begun = 0.0
        self.spent = 0.0  # seconds, on kernels that are done
        self.told = False
        self.paused = False

    def on_start(self, happened: Any) -> None:
        if self.depth == 0:
            self.begun = monotonic()
            self.paused = gc.isenabled()
            gc.disable()
        self.depth += 1

    def on_end(self, happened: Any) -> None:
        # A kernel is compiled after its parts, so this comes early in a long compilation.
        self.depth -= 1
        spent = self.spent + monotonic() - self.begun
        if self.depth == 0:
            self.spent = spent
            if self.paused:
                gc.enable()
        if not self.told and spent > PATIENCE and _is_ours(happened):
            self.told = True
            if parent_process() is None:  # workers leave it to whoever started them
                print(NOTICE, file=sys.stderr, flush=True)


def _is_ours(happened: Any) -> bool:
    module: str = happened.data["dispatcher"].py_func.__module__
    return module.startswith("restive.")


def watch_compiling() -> None:
    """Do so from now on whenever kernels must be compiled."""
    register("numba:compile", _Watch())
