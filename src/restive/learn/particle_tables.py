"""Index tables of particles, for learners that average the index over several of them.

A candidate's table is made once; particles come and go, so theirs are made when they are first
needed and laid behind those of the candidates. Tables of particles that are gone stay where they
are; once all take too much room, they are forgotten and made anew as they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from restive.arguments import require_memory
from restive.kernels.loop.tables import IndexLookup
from restive.learn.particle_groups import ParticleKeeper
from restive.learn.task import Task

__all__ = ["ParticleTables"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_KEPT = 1 << 26  # numbers in tables, at which those of particles are forgotten
NOT_YET = -1  # the first kind of a home whose particles nobody has asked for


class ParticleTables:
    """Tables of a learner's particles, beside those of its candidates, in an `IndexLookup`.

    Every home of particles gets as many kinds as it has particles; a kind of length 0 has no table
    yet.

    Parameters
    ----------
    task
        Whose mapping must be an index rule.
    keeper
        The particles.
    """

    def __init__(self, task: Task, keeper: ParticleKeeper) -> None:
        self.task, self.keeper = task, keeper
        self.made_for: dict[int, tuple[int, int]] = {}  # by home: run and renewal of its tables
        self.used = 0  # numbers of `indices` that are taken

    def begin(self, lookup: IndexLookup) -> IndexLookup:
        """Lay out the candidates' tables."""
        tables = self.task.index_tables
        sizes = np.array([table.size for table in tables], dtype=np.int64)
        self.used = int(sizes.sum())
        self.made_for.clear()
        return lookup._replace(
            # never empty: that there are indices says that means are followed
            indices=np.concatenate([*(table.ravel() for table in tables), np.zeros(1)]),
            offsets=np.cumsum(sizes) - sizes,
            lengths=np.array([table.shape[1] for table in tables], dtype=np.int64),
            home_kinds=np.full(len(self.keeper.particles.chain_starts), NOT_YET, dtype=np.int64),
            values=np.zeros(self.task.num_arms),
        )

    def update(self, lookup: IndexLookup, needed: Iterable[tuple[int, IntArray]]) -> IndexLookup:
        """Make the tables that are missing, of some slots of some groups."""
        if self.used > MOST_KEPT:
            lookup = self.begin(lookup)
        particles = self.keeper.particles
        for group, slots in needed:
            number = int(particles.number_of[group])
            home, count = int(particles.homes[number]), int(particles.num_particles[number])
            version = (int(particles.now[0].runs), int(particles.renewals[number]))
            if home == particles.first_homes[number]:
                version = (0, 0)  # the prior's own particles, which stay
            if lookup.home_kinds[home] == NOT_YET:
                lookup = _with_kinds(lookup, home, count)
            kinds = int(lookup.home_kinds[home]) + np.arange(count)
            if self.made_for.get(home) != version:
                lookup.lengths[kinds] = 0
                self.made_for[home] = version
            for slot in slots[lookup.lengths[kinds[slots]] == 0].tolist():
                arm = self.keeper.arm(group, slot)
                table = self.task.particle_table(arm, f"a particle of group {group}")
                lookup = self._with_table(lookup, int(kinds[slot]), table)
        return lookup

    def _with_table(self, lookup: IndexLookup, kind: int, table: FloatArray) -> IndexLookup:
        if self.used + table.size > len(lookup.indices):
            size = 2 * (self.used + table.size)
            require_memory(8 * size, "the index tables of particles", "use fewer arms or particles")
            longer = np.zeros(size)
            longer[: self.used] = lookup.indices[: self.used]
            lookup = lookup._replace(indices=longer)
        lookup.indices[self.used : self.used + table.size] = table.ravel()
        lookup.offsets[kind], lookup.lengths[kind] = self.used, table.shape[1]
        self.used += table.size
        return lookup


def _with_kinds(lookup: IndexLookup, home: int, count: int) -> IndexLookup:
    """Add kinds without tables, one for each particle of a home."""
    lookup.home_kinds[home] = len(lookup.lengths)
    none = np.zeros(count, dtype=np.int64)
    return lookup._replace(
        offsets=np.concatenate([lookup.offsets, none]),
        lengths=np.concatenate([lookup.lengths, none]),
    )
