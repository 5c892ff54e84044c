"""Particle groups of a learner: those with continuous priors, kept for the compiled loop.

The loop multiplies weights, counts what is seen and draws particles anew
(`kernels.learn.particle_groups`, `kernels.learn.renewals`). Here it gets what is fixed of the
priors, the room that it needs, where it has none, and the ways to draw particles that are rarely
needed. The first groups get room for counts and particles at once, the others when they are first
counted or renewed: a million arms of which few are seen cost little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, require_memory
from restive.kernels.jit.handles import Handle
from restive.kernels.jit.records import new_record
from restive.kernels.learn.lattice import FEW
from restive.kernels.learn.likelihood import Counts
from restive.kernels.learn.particles import DENSE, ArmParticles, add_sighting
from restive.kernels.learn.renewals import (
    count_sightings,
    put,
    put_particles,
    renew_around_fit,
    renewal_key,
    spent_groups,
    take_weights,
)
from restive.kernels.loop.tables import (
    SIGHTING,
    ParticleGroups,
    ParticlesNow,
    Posterior,
    Slots,
    Weights,
)
from restive.learn.conjugate_groups import ConjugateKeeper
from restive.learn.fading import bases_of, counts_and, with_evidence
from restive.learn.particle_layout import (
    chains_size,
    dirichlet_priors_of,
    in_particle_lanes,
    likelihoods_size,
    room_to_renew,
    rows_of,
    scratch_size,
    width_of,
)
from restive.learn.particles.arm import (
    AGES,
    begin_anew,
    count_evidence,
    counts_of,
    fresh_arm,
    possible,
    renew_arm,
)
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.slots import Choices, aligned_zeros, lane_places
from restive.plan.actors import int_zeros, no_particles
from restive.problem.arm import Arm
from restive.problem.bandit import starts_of

__all__ = ["ParticleKeeper"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIGHTINGS = 1 << 15  # that are written down before they are counted
HOMES_AT_ONCE = 64  # groups that get room at once


class ParticleKeeper:
    """The groups of a learner that have continuous priors, and what was counted of them.

    `slots` and `particles` are the learner's; they are replaced when room runs out, and `posterior`
    with them. Where what was seen `fades`, what was seen beforehand does not (`fading`).
    """

    def __init__(
        self, choices: Choices, slots: Slots, weights: Weights, *, fades: bool = False
    ) -> None:
        self.choices, self.slots, self.weights, self.fades = choices, slots, weights, fades
        self.particles = no_particles()
        self.conjugates = ConjugateKeeper(choices)
        self.posterior = Posterior(slots, weights, self.particles, self.conjugates.groups)
        if any(self._has_prior(group) for group in range(len(choices.pool_of_group))):
            self._settle()

    def _settle(self) -> None:
        """Give every prior a home for its points, and all its groups this home."""
        groups = [g for g in range(len(self.choices.pool_of_group)) if self._has_prior(g)]
        priors = [self._prior(group) for group in groups]
        distinct = list({id(prior): prior for prior in priors}.values())
        home_of = {id(prior): home for home, prior in enumerate(distinct)}
        numbers = np.full(len(self.choices.pool_of_group), -1, dtype=np.int64)
        numbers[groups] = np.arange(len(groups))
        homes = np.array([home_of[id(prior)] for prior in priors], dtype=np.int64)
        effective_sizes = np.array([prior.drawn.effective_size for prior in priors])
        chains = [in_particle_lanes(prior.drawn.matrices).ravel() for prior in distinct]
        logits = [prior.drawn.logits.ravel() for prior in distinct]
        row_sizes = [likelihoods_size(prior) for prior in distinct]
        first_row = len(self.slots.likelihoods)
        self.chains_used = sum(len(numbers) for numbers in chains)
        self.logits_used = sum(len(numbers) for numbers in logits)
        self.rows_used = first_row + sum(row_sizes)
        self.ages_used, self.cells_used, self.homes_used = 0, 0, len(distinct)
        self.particles = ParticleGroups(
            number_of=numbers,
            homes=homes.copy(),
            first_homes=homes,
            own_homes=np.full(len(groups), -1, dtype=np.int64),
            sizes=np.array([prior.num_states for prior in priors], dtype=np.int64),
            num_rows=np.array([rows_of(prior) for prior in priors], dtype=np.int64),
            num_particles=np.array([prior.num_particles for prior in priors], dtype=np.int64),
            effective_sizes=effective_sizes.copy(),
            first_effective_sizes=effective_sizes,
            chains=np.concatenate(chains),
            chain_starts=_with_more(starts_of([len(c) for c in chains]), len(groups)),
            logits=np.concatenate(logits),
            logit_starts=_with_more(starts_of([len(x) for x in logits]), len(groups)),
            row_starts=_with_more(first_row + starts_of(row_sizes), len(groups)),
            filled=int_zeros(len(distinct) + len(groups)),
            scratch=np.zeros(max(scratch_size(prior) for prior in distinct)),
            ages=int_zeros(0),
            cells=np.zeros(0),
            age_starts=int_zeros(len(groups)),
            age_capacities=int_zeros(len(groups)),
            cell_starts=int_zeros(len(groups)),
            num_ages=int_zeros(len(groups)),
            renewals=int_zeros(len(groups)),
            begun=np.full(len(groups), -1, dtype=np.int64),
            ready=int_zeros(len(groups)),
            sightings=int_zeros(max(SIGHTINGS, 2 * len(self.slots.groups)) * SIGHTING),
            firsts=np.full(len(groups), -1, dtype=np.int64),
            lasts=np.full(len(groups), -1, dtype=np.int64),
            now=new_record(ParticlesNow, fades=self.fades),
            keys=np.zeros(1, dtype=np.uint64),
            renewal=aligned_zeros(max(room_to_renew(prior) for prior in distinct)),
            priors=dirichlet_priors_of(distinct),
        )
        self.slots = self.slots._replace(offsets=self.slots.offsets.copy())
        at_once, sizes = min(len(groups), HOMES_AT_ONCE), self.particles.sizes
        self._reserve(
            rows=at_once * max(row_sizes),
            chains=at_once * max(self._chains_size(prior) for prior in distinct),
            logits=at_once * max(len(x) for x in logits),
            ages=at_once * AGES,
            cells=at_once * AGES * int(sizes.max()) ** 2,
        )
        for group in groups[:at_once]:  # which the loop then renews without Python's help
            self._place_home(group)
            self._place_tally(group, AGES)
            begin_anew(self._arm(group))

    def _open(self) -> None:
        """Write down where the arrays lie."""
        self.posterior = Posterior(self.slots, self.weights, self.particles, self.conjugates.groups)
        self._handle = Handle(self.posterior)
        self._where = self._handle.where

    def _has_prior(self, group: int) -> bool:
        prior = self.choices.continuous[int(self.choices.pool_of_group[group])]
        return prior is not None and not prior.always_seen

    def _prior(self, group: int) -> DirichletArmPrior:
        prior = self.choices.continuous[int(self.choices.pool_of_group[group])]
        assert prior is not None
        return prior

    def _reserve(
        self, rows: int = 0, chains: int = 0, logits: int = 0, ages: int = 0, cells: int = 0
    ) -> None:
        """Make room for so many more numbers than are used."""
        rows += self.rows_used
        needed = {
            "chains": chains + self.chains_used,
            "logits": logits + self.logits_used,
            "ages": ages + self.ages_used,
            "cells": cells + self.cells_used,
        }
        most = 8 * (rows + sum(needed.values()))
        require_memory(most, "the particles", "use fewer arms or particles")
        held = self.slots, self.particles
        if rows > len(self.slots.likelihoods):
            self.slots = self.slots._replace(likelihoods=_longer(self.slots.likelihoods, rows))
        for name, size in needed.items():
            numbers = getattr(self.particles, name)
            if size > len(numbers):
                longer: dict[str, Any] = {name: _longer(numbers, size)}
                self.particles = self.particles._replace(**longer)
        if held[0] is not self.slots or held[1] is not self.particles:
            self._open()

    def _make_home(self, group: int) -> None:
        """See to it that a group has a home of its own."""
        particle_group = self._number(group)
        if self.particles.own_homes[particle_group] >= 0:
            return
        prior = self._prior(group)
        self._reserve(
            rows=likelihoods_size(prior),
            chains=self._chains_size(prior),
            logits=prior.drawn.logits.size,
        )
        self._place_home(group)

    def _chains_size(self, prior: DirichletArmPrior) -> int:
        """Numbers among the chains of a home of its own: matrices and, where it fades, bases."""
        return chains_size(prior) + self.fades * width_of(prior)

    def _place_home(self, group: int) -> None:
        """Give a group the next home, for which there is room."""
        prior, home, particles = self._prior(group), self.homes_used, self.particles
        particles.row_starts[home], particles.chain_starts[home] = self.rows_used, self.chains_used
        particles.logit_starts[home] = self.logits_used
        particles.own_homes[self._number(group)] = home
        self.rows_used += likelihoods_size(prior)
        self.chains_used += self._chains_size(prior)
        self.logits_used += prior.drawn.logits.size
        self.homes_used += 1

    def _make_tally(self, group: int, ages: int) -> None:
        """Give a group room to count at so many ages; what it has counted goes there."""
        old = self._arm(group)
        self._reserve(ages=ages, cells=ages * self._prior(group).num_states ** 2)
        self._place_tally(group, ages)
        new = self._arm(group)
        new.ages[: len(old.ages)] = old.ages
        new.cells[: len(old.cells)] = old.cells

    def _place_tally(self, group: int, ages: int) -> None:
        """Give a group the next places to count at so many ages, for which there is room."""
        particle_group, particles = self._number(group), self.particles
        particles.age_starts[particle_group], particles.cell_starts[particle_group] = (
            self.ages_used,
            self.cells_used,
        )
        particles.age_capacities[particle_group] = ages
        self.ages_used += ages
        self.cells_used += ages * self._prior(group).num_states ** 2

    def _number(self, group: int) -> int:
        return int(self.particles.number_of[group])

    def _arm(self, group: int) -> ArmParticles:
        """Return a group as an arm by itself: its counts, a copy of its logits, room for others."""
        particle_group, prior, particles = self._number(group), self._prior(group), self.particles
        size, ages = prior.num_states, int(particles.age_capacities[particle_group])
        first, cells = (
            int(particles.age_starts[particle_group]),
            int(particles.cell_starts[particle_group]),
        )
        logits = int(particles.logit_starts[particles.homes[particle_group]])
        shape = prior.drawn.logits.shape
        return ArmParticles(
            ages=particles.ages[first : first + ages],
            cells=particles.cells[cells : cells + ages * size * size].reshape(ages, size, size),
            logits=particles.logits[logits : logits + shape[0] * shape[1]].reshape(shape).copy(),
            matrices=np.empty_like(prior.drawn.matrices),
            weights=np.empty(prior.num_particles),
            effective_size=particles.effective_sizes[particle_group : particle_group + 1],
            num_ages=particles.num_ages[particle_group : particle_group + 1],
            renewals=particles.renewals[particle_group : particle_group + 1],
        )

    def has(self, group: int) -> bool:
        """Whether a group has particles."""
        return len(self.particles.number_of) > 0 and int(self.particles.number_of[group]) >= 0

    def num_particles(self, group: int) -> int:
        """Return the number of a group's particles."""
        return self._prior(group).num_particles

    def is_unchecked(self, group: int) -> bool:
        """Whether no test compares particles of a group's kind with integration."""
        return not self._prior(group).rows.is_channel

    def matrices(self, group: int) -> FloatArray:
        """Matrices [R, S, M] of a group's particles."""
        prior = self._prior(group)
        lanes = self._chains(group).reshape(rows_of(prior), prior.num_states, -1)
        found: FloatArray = lanes[:, :, lane_places(prior.num_particles)]
        return found

    def arm(self, group: int, slot: int) -> Arm:
        """Return the arm in a slot of a group."""
        prior = self._prior(group)
        at = int(lane_places(prior.num_particles)[slot])
        matrices = self._chains(group)[at :: width_of(prior)].reshape(-1, prior.num_states).copy()
        return prior.arm(matrices[: prior.num_states], matrices[-prior.num_states :])

    def _chains(self, group: int) -> FloatArray:
        home = self.particles.homes[self.particles.number_of[group]]
        start = int(self.particles.chain_starts[home])
        return self.particles.chains[start : start + chains_size(self._prior(group))]

    def count(self) -> None:
        """Count all that was written down."""
        for group in np.flatnonzero(self.particles.number_of >= 0).tolist():
            if self.particles.firsts[self._number(group)] >= 0:
                self._count(group)
        self.particles.now["num_sightings"] = 0

    def _count(self, group: int) -> None:
        """Count what was written down of a group."""
        self._begin(group)
        while not count_sightings(self._where, self._number(group), self._arm(group)):
            self._grow(group)

    def _begin(self, group: int) -> None:
        """See to it that a group's counts are of this run: they begin with the prior's evidence."""
        particle_group, prior = self._number(group), self._prior(group)
        if self.particles.begun[particle_group] == self.particles.now[0].runs:
            return
        if not self.particles.age_capacities[particle_group]:
            self._make_tally(group, AGES)
        begin_anew(self._arm(group))
        if prior.evidence.total and not self.fades:
            counted = count_evidence(fresh_arm(prior.rows), prior.evidence)
            used = int(counted.num_ages[0])
            if self.particles.age_capacities[particle_group] < used:
                self._make_tally(group, len(counted.ages))
            arm = self._arm(group)
            arm.ages[:used], arm.cells[:used] = counted.ages[:used], counted.cells[:used]
            arm.num_ages[0] = used
        self.particles.begun[particle_group] = self.particles.now[0].runs

    def _grow(self, group: int) -> None:
        self._make_tally(group, 2 * int(self.particles.age_capacities[self._number(group)]))

    def renew(self) -> None:
        """Draw particles anew where their effective size is too small."""
        spent = np.zeros(len(self.particles.number_of), dtype=bool)
        spent_groups(self._where, spent)
        for group in np.flatnonzero(spent).tolist():
            self._renew(group)

    def _renew(self, group: int) -> None:
        """Draw particles anew where there was no room, or where one t is not enough."""
        self._make_home(group)
        self._count(group)
        rows = self._prior(group).rows
        if rows.free > FEW or not renew_around_fit(self._where, group):
            arm = self._arm(group)
            take_weights(self._where, group, arm)
            known = with_evidence(arm, self._prior(group).evidence) if self.fades else arm
            renew_arm(rows, known, np.uint64(renewal_key(self._where, group)))
            put(self._where, group, known)
            if self.fades:
                self._write_bases(group, bases_of(arm))

    def _bases(self, group: int) -> FloatArray:
        """These logarithms in lanes, a view."""
        prior, home = self._prior(group), self.particles.homes[self._number(group)]
        start = int(self.particles.chain_starts[home]) + chains_size(prior)
        return self.particles.chains[start : start + width_of(prior)]

    def _write_bases(self, group: int, bases: FloatArray) -> None:
        self._bases(group)[lane_places(len(bases))] = bases

    def lose(self, group: int, last_state: int, age: int, seen: int, lost: float) -> None:
        """Let a sighting that was counted weigh less, by so much."""
        while not add_sighting(self._arm(group), last_state, age, seen, -lost):
            self._grow(group)

    def to_data(self) -> dict[str, Any]:
        """What a snapshot holds of the particle groups that were counted; all sightings must be."""
        begun = self.particles.begun == self.particles.now[0].runs
        groups = np.flatnonzero(self.particles.number_of >= 0).tolist()
        data = {
            str(group): _to_data(self._arm(group)) for group in groups if begun[self._number(group)]
        }
        if self.fades:
            for name, own in data.items():
                places = lane_places(self.num_particles(int(name)))
                own["bases"] = self._bases(int(name))[places].tolist() if own["renewals"] else None
        return data

    def load(self, group: int, data: dict[str, Any]) -> None:
        """Take in what `to_data` wrote of a group, whose weights are there already."""
        particle_group = self._number(group)
        prior, faded, (ages, cells) = (
            self._prior(group),
            "bases" in data,
            self._counts_in(group, data),
        )
        if prior.evidence.total and faded != self.fades:  # another memory than before
            sign = 1 if faded else -1
            ages, cells = counts_and(Counts(ages, cells), prior.rows, prior.evidence, sign)
        dense = ages <= DENSE
        late = int((~dense).sum())
        if self.particles.age_capacities[particle_group] < AGES + late:
            self._make_tally(group, AGES + late)
        arm = self._arm(group)
        begin_anew(arm)
        arm.cells[ages[dense] - 1] = cells[dense]
        used = DENSE + late
        arm.ages[DENSE:used], arm.cells[DENSE:used] = ages[~dense], cells[~dense]
        arm.num_ages[0] = used
        arm.renewals[0] = checked_count(data["renewals"], "renewals", 0)
        arm.effective_size[0] = float(data["worth"])
        self.particles.begun[particle_group] = self.particles.now[0].runs
        if arm.renewals[0]:
            self._load_particles(group, np.array(data["logits"], dtype=np.float64))
            if self.fades:
                self._load_bases(group, data.get("bases"))

    def could_count(self, group: int, data: dict[str, Any], sightings: int) -> bool:
        """Whether `to_data` may have written so of a group: sightings, with the prior's own."""
        counts, prior = self._counts_in(group, data), self._prior(group)
        most = sightings + prior.evidence.total
        return float(counts.cells.sum()) <= most + 1e-6 and possible(prior.rows, counts)

    def _counts_in(self, group: int, data: dict[str, Any]) -> Counts:
        size = self._prior(group).num_states
        ages = np.array(data["counts"][0], dtype=np.int64)
        cells = np.array(data["counts"][1], dtype=np.float64).reshape(len(ages), size, size)
        rising = ages.ndim == 1 and (np.diff(ages) > 0).all() and (ages > 0).all()
        if not (rising and (cells >= 0).all()):
            raise ValueError(f"the counts of group {group}")
        return Counts(ages, cells)

    def _load_particles(self, group: int, logits: FloatArray) -> None:
        self._make_home(group)
        arm = self._arm(group)
        if logits.shape != arm.logits.shape or not np.isfinite(logits).all():
            raise ValueError(f"the particles of group {group}")
        arm.logits[:] = logits
        arm.matrices[:] = self._prior(group).rows.matrices(logits)
        put_particles(self._where, group, arm)

    def _load_bases(self, group: int, held: Any) -> None:
        arm = self._arm(group)
        if held is None:  # it did not forget until now
            arm.matrices[:] = self.matrices(group)
            take_weights(self._where, group, arm)
            held = bases_of(arm)
        bases = np.array(held, dtype=np.float64)
        if bases.shape != arm.weights.shape or not np.isfinite(bases).all():
            raise ValueError(f"the particles of group {group}")
        self._write_bases(group, bases)


def _with_more(starts: IntArray, count: int) -> IntArray:
    return np.concatenate([starts, np.zeros(count, dtype=np.int64)])


def _longer(numbers: NDArray[Any], size: int) -> NDArray[Any]:
    """Return the numbers with room for at least so many, and for half as many again as now."""
    longer = aligned_zeros(max(size, len(numbers) * 3 // 2)).view(numbers.dtype)
    longer[: len(numbers)] = numbers
    return longer


def _to_data(arm: ArmParticles) -> dict[str, Any]:
    counts = counts_of(arm)
    return {
        "counts": [counts.ages.tolist(), counts.cells.ravel().tolist()],
        "logits": arm.logits.tolist() if arm.renewals[0] else None,
        "worth": float(arm.effective_size[0]),
        "renewals": int(arm.renewals[0]),
    }
