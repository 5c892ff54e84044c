"""The clouds of a learner: particles of groups with continuous priors, kept for the compiled loop.

The loop multiplies weights and writes down what was seen (`kernels.clouds`). Here sightings are
counted and particles drawn anew, when the loop asks for it. A group's counts, logits and home are
made when it is first counted or renewed: a million arms of which few are seen cost little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.actors import no_clouds, room
from restive.arguments import checked_count, require_memory
from restive.kernels.handles import Handle
from restive.kernels.lattice import FEW
from restive.kernels.particles import ArmParticles
from restive.kernels.renewals import (
    FITS_BADLY,
    NO_ROOM,
    Cloudy,
    count_sightings,
    put,
    put_chains,
    renew_around_fit,
    renewal_key,
    spent_groups,
    take_weights,
)
from restive.kernels.tables import (
    CLOUDS_NOW,
    NUM_SIGHTINGS,
    RUNS,
    SIGHTING,
    Clouds,
    Slots,
    Weights,
)
from restive.kernels.vectors import LANES
from restive.particles.arm import begin_anew, count_evidence, fresh_arm, grown, renew_arm
from restive.particles.renewal import enough
from restive.prior import DirichletArmPrior
from restive.problem import Arm, starts_of
from restive.slots import Choices, aligned_room, kept_ages, lane_places, num_rows

__all__ = ["CloudKeeper"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIGHTINGS = 1 << 15  # that are written down before they are counted
HOMES_AT_ONCE = 64  # for which there is room at first


class CloudKeeper:
    """The groups of a learner that have continuous priors, and what was counted of them.

    `slots` and `clouds` are the learner's; they are replaced when room runs out.
    """

    def __init__(self, choices: Choices, slots: Slots, weights: Weights) -> None:
        self.choices, self.slots, self.weights = choices, slots, weights
        self.clouds = no_clouds()
        self.arms: dict[int, ArmParticles] = {}  # by group, once it was counted or renewed
        self.spare: dict[int, ArmParticles] = {}  # arrays of the replication before
        self.own_homes: dict[int, int] = {}  # by group, once it was renewed
        self.runs = 0
        if choices.has_clouds:
            self._settle()
            self._open()

    def _settle(self) -> None:
        """Give every prior a home for its points, and all its groups this home."""
        groups = [g for g in range(len(self.choices.pool_of_group)) if self._has_prior(g)]
        priors = [self._prior(group) for group in groups]
        distinct = list({id(prior): prior for prior in priors}.values())
        home_of = {id(prior): home for home, prior in enumerate(distinct)}
        numbers = np.full(len(self.choices.pool_of_group), -1, dtype=np.int64)
        numbers[groups] = np.arange(len(groups))
        homes = np.array([home_of[id(prior)] for prior in priors], dtype=np.int64)
        worths = np.array([prior.drawn.worth for prior in priors])
        chains = [in_cloud(prior.drawn.matrices).ravel() for prior in distinct]
        row_sizes = [_rows_size(prior) for prior in distinct]
        first_row = len(self.slots.likelihoods)
        self.chains_used = sum(len(numbers) for numbers in chains)
        self.rows_used = first_row + sum(row_sizes)
        self.clouds = Clouds(
            groups=numbers,
            homes=homes.copy(),
            first_homes=homes,
            sizes=np.array([prior.num_states for prior in priors], dtype=np.int64),
            num_rows=np.array([_num_rows(prior) for prior in priors], dtype=np.int64),
            worths=worths.copy(),
            first_worths=worths,
            chains=np.concatenate(chains),
            chain_starts=_with_more(starts_of([len(c) for c in chains]), len(groups)),
            row_starts=_with_more(first_row + starts_of(row_sizes), len(groups)),
            filled=room(len(distinct) + len(groups)),
            room=np.zeros(max(_room_size(prior) for prior in distinct)),
            sightings=room(max(SIGHTINGS, 2 * len(self.slots.groups)) * SIGHTING),
            firsts=np.full(len(groups), -1, dtype=np.int64),
            lasts=np.full(len(groups), -1, dtype=np.int64),
            now=room(CLOUDS_NOW),
            keys=np.zeros(1, dtype=np.uint64),
        )
        self.slots = self.slots._replace(offsets=self.slots.offsets.copy())
        self._make_room(min(len(groups), HOMES_AT_ONCE) * max(row_sizes), 0)

    def _open(self) -> None:
        self._handle = Handle(Cloudy(self.slots, self.weights, self.clouds))
        self._where = self._handle.where

    def _has_prior(self, group: int) -> bool:
        return self.choices.continuous[int(self.choices.pool_of_group[group])] is not None

    def _prior(self, group: int) -> DirichletArmPrior:
        prior = self.choices.continuous[int(self.choices.pool_of_group[group])]
        assert prior is not None
        return prior

    def _make_room(self, more_rows: int, more_chains: int) -> None:
        """Make room for so many more likelihoods and matrices than are used."""
        rows, chains = self.rows_used + more_rows, self.chains_used + more_chains
        require_memory(8 * (rows + chains), "the particles", "use fewer arms or particles")
        if rows > len(self.slots.likelihoods):
            self.slots = self.slots._replace(likelihoods=_longer(self.slots.likelihoods, rows))
        if chains > len(self.clouds.chains):
            self.clouds = self.clouds._replace(chains=_longer(self.clouds.chains, chains))

    def _own_home(self, group: int) -> int:
        """Return the number of a group's own home, which is made when it is first needed."""
        if group not in self.own_homes:
            prior, clouds = self._prior(group), self.clouds
            home = len(clouds.filled) - len(clouds.homes) + len(self.own_homes)
            more_rows, more_chains = _rows_size(prior), _chains_size(prior)
            self._make_room(more_rows, more_chains)
            clouds.row_starts[home], clouds.chain_starts[home] = self.rows_used, self.chains_used
            self.rows_used += more_rows
            self.chains_used += more_chains
            self.own_homes[group] = home
            self._open()
        return self.own_homes[group]

    def has(self, group: int) -> bool:
        """Whether a group has a cloud."""
        return len(self.clouds.groups) > 0 and int(self.clouds.groups[group]) >= 0

    def num_particles(self, group: int) -> int:
        """Return the number of a group's particles."""
        return self._prior(group).num_particles

    def matrices(self, group: int) -> FloatArray:
        """Matrices [R, S, M] of a group's particles."""
        prior = self._prior(group)
        lanes = self._chains(group).reshape(_num_rows(prior), prior.num_states, -1)
        found: FloatArray = lanes[:, :, lane_places(prior.num_particles)]
        return found

    def arm(self, group: int, slot: int) -> Arm:
        """Return the arm in a slot of a group."""
        prior = self._prior(group)
        at = int(lane_places(prior.num_particles)[slot])
        matrices = self._chains(group)[at :: _width(prior)].reshape(-1, prior.num_states).copy()
        return prior.arm(matrices[: prior.num_states], matrices[-prior.num_states :])

    def _chains(self, group: int) -> FloatArray:
        home = self.clouds.homes[self.clouds.groups[group]]
        start = int(self.clouds.chain_starts[home])
        return self.clouds.chains[start : start + _chains_size(self._prior(group))]

    def count(self) -> None:
        """Count all that was written down."""
        self._begin_run()
        for group in np.flatnonzero(self.clouds.groups >= 0).tolist():
            if self.clouds.firsts[self.clouds.groups[group]] >= 0:
                self._counted(group)
        self.clouds.now[NUM_SIGHTINGS] = 0

    def _begin_run(self) -> None:
        if self.clouds.now[RUNS] != self.runs:  # another replication has begun
            self.runs = int(self.clouds.now[RUNS])
            self.spare, self.arms = self.arms, {}

    def _counted(self, group: int) -> ArmParticles:
        """Return all that was counted of a group: the prior's evidence and what was seen since."""
        arm = self._held(group)
        while not count_sightings(self._where, self.clouds.groups[group], arm):
            arm = self.arms[group] = grown(arm)
        return arm

    def _held(self, group: int) -> ArmParticles:
        """Return what was counted of a group so far."""
        arm = self.arms.get(group)
        if arm is None:
            prior = self._prior(group)
            arm = self.spare.pop(group, None) or fresh_arm(prior.rows, prior.drawn)
            if arm.renewals[0] or arm.num_ages[0]:  # of the replication before
                begin_anew(arm, prior.drawn)
            arm = self.arms[group] = count_evidence(arm, prior.evidence)
        return arm

    def renew(self) -> None:
        """Draw the particles anew that have lost too much of their worth."""
        self._begin_run()
        spent = np.zeros(len(self.clouds.groups), dtype=bool)
        spent_groups(self._where, spent)
        for group in np.flatnonzero(spent).tolist():
            self._renew(group)

    def _renew(self, group: int) -> None:
        arm, home, rows = self._held(group), self._own_home(group), self._prior(group).rows
        outcome = NO_ROOM if rows.free <= FEW else FITS_BADLY
        while outcome == NO_ROOM:
            outcome = renew_around_fit(self._where, group, home, rows.tables, arm, enough(rows))
            if outcome == NO_ROOM:
                arm = self.arms[group] = grown(arm)
        if outcome == FITS_BADLY:
            arm = self._counted(group)
            take_weights(self._where, group, arm)
            renew_arm(rows, arm, np.uint64(renewal_key(self._where, group)))
            put(self._where, group, home, arm)

    def to_data(self) -> dict[str, Any]:
        """What a snapshot holds of the clouds that were counted; all sightings must be."""
        return {
            str(group): {
                "counts": _counts_to_data(arm),
                "logits": arm.logits.tolist() if arm.renewals[0] else None,
                "worth": float(arm.worth[0]),
                "renewals": int(arm.renewals[0]),
            }
            for group, arm in sorted(self.arms.items())
        }

    def load(self, group: int, data: dict[str, Any]) -> None:
        """Take in what `to_data` wrote of a group, whose weights are there already."""
        prior = self._prior(group)
        arm = fresh_arm(prior.rows, prior.drawn)
        ages = np.array(data["counts"][0], dtype=np.int64)
        while len(ages) > len(arm.ages):
            arm = grown(arm)
        cells = np.array(data["counts"][1], dtype=np.float64)
        cells = cells.reshape(len(ages), *arm.cells.shape[1:])
        if not ((np.diff(ages) > 0).all() and (ages > 0).all() and (cells >= 0).all()):
            raise ValueError(f"the counts of group {group}")
        arm.ages[: len(ages)], arm.cells[: len(ages)], arm.num_ages[0] = ages, cells, len(ages)
        arm.renewals[0] = checked_count(data["renewals"], "renewals", 0)
        arm.worth[0] = float(data["worth"])
        self.runs = int(self.clouds.now[RUNS])
        self.arms[group] = arm
        if arm.renewals[0]:
            self._load_particles(group, arm, np.array(data["logits"], dtype=np.float64))

    def _load_particles(self, group: int, arm: ArmParticles, logits: FloatArray) -> None:
        if logits.shape != arm.logits.shape or not np.isfinite(logits).all():
            raise ValueError(f"the particles of group {group}")
        arm.logits[:] = logits
        arm.matrices[:] = self._prior(group).rows.matrices(logits)
        home = self._own_home(group)
        put_chains(self._where, group, home, arm)


def in_cloud(matrices: FloatArray) -> FloatArray:
    """Matrices [R, S, M] in lanes; fillers get the first particle's numbers."""
    count = matrices.shape[2]
    laid = np.repeat(matrices[:, :, :1], num_rows(count) * LANES, axis=2)
    laid[:, :, lane_places(count)] = matrices
    return laid


def _width(prior: DirichletArmPrior) -> int:
    return num_rows(prior.num_particles) * LANES


def _num_rows(prior: DirichletArmPrior) -> int:
    return len(prior.rows.tables.totals)


def _chains_size(prior: DirichletArmPrior) -> int:
    return _num_rows(prior) * prior.num_states * _width(prior)


def _rows_size(prior: DirichletArmPrior) -> int:
    """Likelihoods that are kept of a home."""
    return prior.num_states**2 * kept_ages(prior) * _width(prior)


def _room_size(prior: DirichletArmPrior) -> int:
    """A row of beliefs, one to spare, a power of the matrices and its square."""
    return 2 * prior.num_states * (1 + prior.num_states) * _width(prior)


def _with_more(starts: IntArray, count: int) -> IntArray:
    return np.concatenate([starts, np.zeros(count, dtype=np.int64)])


def _longer(numbers: FloatArray, size: int) -> FloatArray:
    """Return the numbers with room for at least so many, and for half as many again as now."""
    longer = aligned_room(max(size, len(numbers) * 3 // 2))
    longer[: len(numbers)] = numbers
    return longer


def _counts_to_data(arm: ArmParticles) -> list[list[Any]]:
    used = int(arm.num_ages[0])
    return [arm.ages[:used].tolist(), arm.cells[:used].ravel().tolist()]
