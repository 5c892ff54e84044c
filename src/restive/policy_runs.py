"""An index policy in the world it was made for: what it earns up to some times."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.actors import following_of, make_record, make_trace, plain_actor, world_of
from restive.belief import BeliefState
from restive.kernels import steps
from restive.kernels.engine import Run, run
from restive.kernels.handles import Handle
from restive.kernels.tables import TABLED, BeliefTables, RankTables
from restive.pace import WORK_AT_ONCE, look

__all__ = ["earned_by_policy", "steps_at_once"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

ARM_STEP_WORK = 8  # products that take as long as one arm in one step


def earned_by_policy(
    ranked: RankTables,
    ranked_kinds: NDArray[np.intp],
    num_pulls: int,
    tables: BeliefTables,
    kinds: NDArray[np.intp],
    start: BeliefState,
    times: IntArray,
    seed: int,
    replication: int,
) -> FloatArray:
    """Sums [M] of E[r | xi, A] up to each time in one replication.

    Parameters
    ----------
    ranked, ranked_kinds, num_pulls
        The index policy: its ranks, which of their tables each arm has [K], and the pulls.
    tables, kinds
        Belief tables by kind of arm, and the kind [K] of each.
    start, times
        How the run begins, and when it is looked at.
    seed, replication
        Name its luck.
    """
    following = following_of(ranked, len(kinds))
    following.begin[:] = ranked.offsets[ranked_kinds]
    following.length[:] = ranked.lengths[ranked_kinds]
    following.mode[TABLED] = 0  # the ranks are the policy's, whatever the truth's kinds
    actor = plain_actor(steps.POLICY, start, following)
    truth = kinds.astype(np.int64)[None]
    record = make_record(num_pulls, start, times, truth, seed, replication)
    handle = Handle(Run(actor, world_of(tables, len(kinds)), record, make_trace(0, 0)))
    at_once = steps_at_once(len(kinds))
    while run(handle.where, at_once, None, None, None) != steps.DONE:
        look()
    return record.expected


def steps_at_once(num_arms: int) -> int:
    """Steps that the loop may run before Python must hear whether the user has had enough."""
    return max(1, WORK_AT_ONCE // (ARM_STEP_WORK * num_arms))
