"""Which of three ways kernels run in: with all that we know of Numba's inside, plainly, in Python.

* TRICKS: with what `parts`, `addresses`, `registers` and `cache_guard` do to Numba, by names that
  it does not promise to keep.
* PLAIN: every kernel compiled by public `numba.njit`, to the same bits. What an agent and regret
  need compiles in 53 CPU s instead of 15, and a step of an agent takes 51 us instead of 4. Chosen
  by the environment variable RESTIVE_PLAIN_NUMBA=1, and by itself where the tricks were not tried
  with the Numba that is installed, or cannot be set up with it; the user is told then.
* PYTHON: nothing is compiled, for debugging (NUMBA_DISABLE_JIT=1).

PLAIN does not import those four modules, and only they use private names of Numba and llvmlite
(`compiling`, too, which everything can do without).
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Final

import numba

__all__ = ["MODE", "PLAIN", "PYTHON", "TRICKS"]

TRICKS, PLAIN, PYTHON = "tricks", "plain", "python"

# The tricks were tried with Numba 0.62.1 and 0.68.1, and are used with those and what is between.
TRIED = (0, 62), (0, 69)
INSIDE = ("parts", "cache_guard", "addresses", "registers")  # modules that use private names


def _chosen() -> str:
    if bool(getattr(numba.config, "DISABLE_JIT", False)):
        return PYTHON
    if os.environ.get("RESTIVE_PLAIN_NUMBA", "0") not in ("", "0"):
        return PLAIN
    numbers = tuple(int(word) for word in numba.__version__.split(".")[:2] if word.isdigit())
    if not TRIED[0] <= numbers < TRIED[1]:
        return _told_plain("was not tried")
    try:
        for name in INSIDE:
            import_module(f"{__package__}.{name}")
    except Exception as error:  # whatever a change inside Numba may lead to
        return _told_plain(f"is not as expected ({error})")
    return TRICKS


def _told_plain(why: str) -> str:
    print(
        f"restive: Numba {numba.__version__} {why}: kernels compile plainly, to the same numbers "
        "but more slowly (RESTIVE_PLAIN_NUMBA=1 does so without this line)",
        file=sys.stderr,
        flush=True,
    )
    return PLAIN


MODE: Final = _chosen()
