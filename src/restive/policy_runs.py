"""An index policy in the world it was made for, many times: what it earns up to some times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.actors import following_of, make_record, make_trace, plain_actor, world_of
from restive.belief import BeliefState
from restive.kernels import steps
from restive.kernels.engine import Run, run
from restive.kernels.handles import Handle
from restive.kernels.tables import TABLED, BeliefTables
from restive.policies.base import IndexPolicy

__all__ = ["WORK_AT_ONCE", "earned_by_policy"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

WORK_AT_ONCE = 1 << 19  # steps times arms before Python hears whether the user has had enough


def earned_by_policy(
    policy: IndexPolicy,
    tables: BeliefTables,
    kinds: IntArray,
    start: BeliefState,
    times: IntArray,
    replications: int,
    seed: int,
) -> FloatArray:
    """Sums [R, M] of E[r | xi, A] up to each time, by replication.

    Parameters
    ----------
    policy
        The index policy.
    tables, kinds
        Belief tables by kind of arm, and the kind [K] of each.
    start, times, replications, seed
        How each run begins, when it is looked at, how many there are, and the name of their luck.
    """
    following = following_of(policy.ranked, len(kinds))
    following.begin[:] = policy.ranked.offsets[policy.kinds.of]
    following.length[:] = policy.ranked.lengths[policy.kinds.of]
    following.mode[TABLED] = 0  # the ranks are the policy's, whatever the truth's kinds
    actor = plain_actor(steps.POLICY, start, following)
    truths = np.tile(kinds.astype(np.int64), (replications, 1))
    record = make_record(policy.bandit.num_pulls, start, times, truths, seed)
    world = world_of(tables, len(kinds))
    handle = Handle(Run(actor, world, record, make_trace(0, 0)))
    at_once = max(1, WORK_AT_ONCE // len(kinds))
    while run(handle.where, at_once) != steps.DONE:
        pass  # Python hears Ctrl-C here
    return record.expected.reshape(replications, -1)
