"""The one formula for where something about (last state, age) stands in a table.

A table has a row per last state and a column per age, 1 to `length`; older arms use the last.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import inlined

__all__ = ["cell_of", "cells_of"]

IntArray = NDArray[np.int64]


@inlined
def cell_of(last_state: int, age: int, length: int) -> int:
    """Cell of an arm that was seen in `last_state`, `age` steps ago."""
    return last_state * length + min(age, length) - 1


def cells_of(last_state: IntArray, age: IntArray, length: IntArray | int) -> IntArray:
    """Cells of many arms at once, for Python."""
    cells: IntArray = last_state * length + np.minimum(age, length) - 1
    return cells
