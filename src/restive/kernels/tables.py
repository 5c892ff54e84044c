"""Tables of many arms laid end to end, as kernels take them.

Arms of one kind share a table: they have the same offset.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["BeliefTables", "RankTables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class BeliefTables(NamedTuple):
    """Beliefs and rewards of K arms.

    b(s, n) of arm k begins at offset + (s * length + n - 1) * size.
    """

    beliefs: FloatArray  # flat
    offsets: IntArray  # [K]
    sizes: IntArray  # [K] numbers of states
    lengths: IntArray  # [K] numbers of ages; older arms have the last
    rewards: FloatArray  # flat
    reward_offsets: IntArray  # [K]


class RankTables(NamedTuple):
    """Ranks of the index of K arms; that of (s, n) of arm k is at offset + s * length + n - 1."""

    ranks: IntArray  # flat
    offsets: IntArray  # [K]
    lengths: IntArray  # [K] numbers of ages; older arms have the last
