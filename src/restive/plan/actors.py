"""Arrays for the compiled loop: empty parts of an actor, worlds, records and traces.

And the simplest run of it: what an index policy earns in the world it was made for.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_seed
from restive.kernels.jit.handles import Handle
from restive.kernels.jit.records import new_record
from restive.kernels.learn.learners.memory import OWN, Knowledge, LearnerMemory
from restive.kernels.loop import steps
from restive.kernels.loop.actor import Actor, Role
from restive.kernels.loop.engine import Cursor, Keys, Record, Run, Sums, Trace, run
from restive.kernels.loop.tables import (
    BeliefTables,
    ConjugateGroups,
    DirichletPriors,
    EpisodeClock,
    EpisodeRules,
    Episodes,
    IndexLookup,
    LookupMode,
    Meta,
    Now,
    ParticleGroups,
    ParticlesNow,
    Posterior,
    PriorStarts,
    RankTables,
    Slots,
    Weights,
    WeightStatus,
)
from restive.kernels.loop.world import OF_ARMS, Changes, WorldTables
from restive.problem.beliefs import BeliefState
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = [
    "earned_by_policy",
    "int_zeros",
    "lookup_of",
    "make_record",
    "make_trace",
    "no_changes",
    "no_conjugates",
    "no_particles",
    "plain_actor",
    "steps_at_once",
    "world_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def int_zeros(size: int) -> IntArray:
    """Whole numbers, all 0."""
    return np.zeros(size, dtype=np.int64)


def plain_actor(who: int, start: BeliefState, lookup: IndexLookup | None = None) -> Actor:
    """Return an actor that knows nothing but the meta-state and the policy it follows, if any."""
    num_arms = start.num_arms
    meta = Meta(start.last_state.copy(), 1 - start.elapsed, new_record(Now, time=1))
    none, floats, truths = int_zeros(0), np.zeros(0), np.zeros(0, dtype=bool)
    posterior = Posterior(
        slots=Slots(none, none, none, none, floats, none, none, none, none),
        weights=Weights(
            floats, none, none, none, none, none, none, truths, floats, new_record(WeightStatus)
        ),
        particles=no_particles(),
        conjugates=no_conjugates(),
    )
    return Actor(
        role=new_record(Role, who=who),
        meta=meta,
        posterior=posterior,
        episodes=Episodes(
            new_record(EpisodeClock), none, int_zeros(1), none, new_record(EpisodeRules)
        ),
        lookup=lookup_of(None, 0) if lookup is None else lookup,
        knowledge=Knowledge(none, none, floats, floats, floats),
        memory=LearnerMemory(none, none, int_zeros(OWN), floats, floats),
        chosen=int_zeros(num_arms),
        states=int_zeros(num_arms),
        scratch=int_zeros(num_arms),
        available=truths,
    )


def no_particles() -> ParticleGroups:
    """Return the particle groups of a learner without any."""
    none, floats = int_zeros(0), np.zeros(0)
    return ParticleGroups(
        number_of=none, homes=none, first_homes=none, own_homes=none, sizes=none, num_rows=none,
        num_particles=none, effective_sizes=floats, first_effective_sizes=floats, chains=floats,
        chain_starts=none, logits=floats, logit_starts=none, row_starts=none, filled=none,
        scratch=floats, ages=none, cells=floats, age_starts=none, age_capacities=none,
        cell_starts=none, num_ages=none, renewals=none, begun=none, ready=none, sightings=none,
        firsts=none, lasts=none, now=new_record(ParticlesNow), keys=np.zeros(1, dtype=np.uint64),
        renewal=floats,
        priors=DirichletPriors(
            floats, floats, none, none, none, floats, none, new_record(PriorStarts), floats, none
        ),
    )  # fmt: skip


def no_conjugates() -> ConjugateGroups:
    """Return the conjugate groups of a learner without any."""
    none, floats = int_zeros(0), np.zeros(0)
    return ConjugateGroups(
        number_of=none, sizes=none, num_rows=none, starts=none, alphas=floats, counts=floats,
        drawn=floats, index_starts=none, rewards=floats, indices=floats, scratch=floats,
        averaged=int_zeros(1),
    )  # fmt: skip


def lookup_of(ranks: RankTables | None, num_arms: int) -> IndexLookup:
    """Room to follow an index policy; its ranks by kind, or None if they are made for a system."""

    def small(size: int) -> NDArray[np.int32]:
        return np.zeros(size, dtype=np.int32)

    return IndexLookup(
        ranks=small(0) if ranks is None else ranks.ranks.astype(np.int32),
        offsets=int_zeros(0) if ranks is None else ranks.offsets,
        lengths=int_zeros(0) if ranks is None else ranks.lengths,
        first=small(num_arms),
        last=small(num_arms),
        begin=small(num_arms),
        length=small(num_arms),
        rank=small(num_arms),
        indices=np.zeros(0),
        home_kinds=int_zeros(0),
        channels=np.zeros(0),
        values=np.zeros(0),
        mode=new_record(LookupMode, tabled=ranks is not None),
    )


def world_of(tables: BeliefTables, num_arms: int) -> WorldTables:
    """Room for a world whose arms are of the kinds in these tables."""
    own = {name: int_zeros(num_arms) for name in OF_ARMS}
    always = int_zeros(num_arms if len(tables.always) else 0)
    return WorldTables(tables, **own, always=always, hidden=int_zeros(0), changes=no_changes())


def no_changes() -> Changes:
    """Return the changes of a world that stays as it is."""
    none, floats = int_zeros(0), np.zeros(0)
    return Changes(
        begins=none, kinds=none, moves=floats, move_offsets=none, passive_rewards=floats,
        rooms=none, room_offsets=none, room_mean_offsets=none, next_kinds=none,
        since=np.ones(1, dtype=np.int64),
    )  # fmt: skip


def make_record(
    num_pulls: int,
    start: BeliefState,
    times: IntArray,
    truths: IntArray,
    seed: int,
    first: int = 0,
    *,
    memory: LearnerMemory | None = None,
    with_posterior: bool = False,
) -> Record:
    """Room for what replications first, first + 1, ... earn.

    Parameters
    ----------
    num_pulls, start
        Arms pulled each step, and how each replication begins.
    times
        Ascending times [M] to record; the last is the horizon.
    truths
        Kinds [R, K] of the true arms, a row for each replication.
    seed, first
        Name the luck.
    memory
        What a compiled learner begins with.
    with_posterior
        Whether to record the posterior weight of each true arm.
    """
    rows, num_arms = truths.shape
    size = rows * len(times)
    return Record(
        times=times,
        truths=np.array(truths).ravel(),  # a copy, which follows a world that changes
        start_state=start.last_state,
        start_elapsed=start.elapsed,
        fresh_ints=int_zeros(0) if memory is None else memory.ints.copy(),
        fresh_floats=np.zeros(0) if memory is None else memory.floats.copy(),
        expected=np.empty(size),
        realised=np.empty(size),
        phases=np.empty(size, dtype=np.int64),
        truth_weights=np.empty(size * num_arms if with_posterior else 0),
        sums=new_record(Sums),
        cursor=new_record(Cursor, num_pulls=num_pulls, first=first),
        keys=new_record(Keys, seed=np.uint64(checked_seed(seed))),
    )


def make_trace(horizon: int, num_pulls: int) -> Trace:
    """Room for what happens in each step; none at all if the horizon is 0."""
    pulls = horizon * num_pulls
    return Trace(
        arms=np.empty(pulls, dtype=np.int64),
        states=np.empty(pulls, dtype=np.int64),
        expected=np.empty(horizon),
        earned=np.empty(horizon),
        phases=np.empty(horizon, dtype=np.int64),
    )


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
    lookup = lookup_of(ranked, len(kinds))
    lookup.begin[:] = ranked.offsets[ranked_kinds]
    lookup.length[:] = ranked.lengths[ranked_kinds]
    lookup.mode["tabled"] = 0  # the ranks are the policy's, whatever the truth's kinds
    actor = plain_actor(steps.POLICY, start, lookup)
    truth = kinds.astype(np.int64)[None]
    record = make_record(num_pulls, start, times, truth, seed, replication)
    handle = Handle(Run(actor, world_of(tables, len(kinds)), record, make_trace(0, 0)))
    at_once = steps_at_once(len(kinds))
    while run(handle.where, at_once, None, None, None) != steps.DONE:
        stop_if_interrupted()
    return record.expected


def steps_at_once(num_arms: int) -> int:
    """Steps that the loop may run before Python must hear whether the user has had enough."""
    return max(1, WORK_AT_ONCE // (ARM_STEP_WORK * num_arms))
