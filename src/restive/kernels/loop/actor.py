"""The actor: a learner or a policy, with all that it knows and remembers.

Kernels and their parts take it whole: in a handle a tuple is one address (`kernels.jit.handles`),
and an array is read out of it where it is mentioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.records import Block, Records
from restive.kernels.learn.learners.memory import Knowledge, LearnerMemory
from restive.kernels.loop.tables import Episodes, IndexLookup, Meta, Posterior

__all__ = ["Actor", "Role"]

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


class Role(Block):
    """Who acts, under which restriction, and with which luck."""

    who: int  # see kernels.loop.steps
    masked: int  # whether only the arms in `available` can be pulled
    key: np.uint64  # of its random numbers


class Actor(NamedTuple):
    """A learner or a policy: all that it knows and remembers.

    TSDE and its relatives have a posterior and episodes, index policies a lookup and nothing else,
    the other learners knowledge and a memory; what an actor does not have is empty.
    """

    role: Records[Role]  # [1]
    meta: Meta
    posterior: Posterior
    episodes: Episodes
    lookup: IndexLookup
    knowledge: Knowledge
    memory: LearnerMemory
    chosen: IntArray  # [K] arms to pull; the first N count
    states: IntArray  # [K] in which they are seen
    scratch: IntArray  # [K]
    available: BoolArray  # [K] arms that can be pulled now; empty until it is needed
