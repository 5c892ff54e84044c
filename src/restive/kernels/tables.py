"""Tables of several kinds of arms laid end to end, as kernels take them.

A kind is an arm without its name; however many arms are of it, its tables are there once. Kernels
get the tables and, apart, the kind of each arm.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeliefTables", "RankTables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class BeliefTables(NamedTuple):
    """Beliefs and rewards by kind.

    The cell of (s, n) is s * length + n - 1; ages beyond the length are in the last. Its belief
    begins at offset + cell * size, its expected reward is at mean_offset + cell.
    """

    beliefs: FloatArray  # flat
    offsets: IntArray  # [kinds]
    means: FloatArray  # flat: b(s, n).r
    mean_offsets: IntArray  # [kinds]
    rewards: FloatArray  # flat
    reward_offsets: IntArray  # [kinds]
    sizes: IntArray  # [kinds] numbers of states
    lengths: IntArray  # [kinds] numbers of ages


class RankTables(NamedTuple):
    """Ranks of the index by kind; that of (s, n) is at offset + s * length + n - 1."""

    ranks: IntArray  # flat
    offsets: IntArray  # [kinds]
    lengths: IntArray  # [kinds] numbers of ages; older arms have the last
