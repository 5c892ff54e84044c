"""The clouds of a learner: particles of arms with continuous priors, kept for the compiled loop.

The loop multiplies weights and writes down what was seen (`kernels.clouds`). Here sightings are
counted and particles drawn anew, when the loop asks for it. An arm's counts and logits are made
when it is first counted or renewed: a million arms of which few are seen cost little.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.actors import no_clouds, room
from restive.arguments import checked_count, require_memory
from restive.kernels.particles import ArmParticles, add_sightings
from restive.kernels.random import key_at
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
from restive.kernels.weights import add_up_groups
from restive.particles.arm import count_evidence, fresh_arm, grown, renew_arm
from restive.prior import DirichletArmPrior
from restive.problem import Arm
from restive.slots import Choices, aligned_room, home_size, in_lanes, lane_places, num_rows

__all__ = ["CloudKeeper"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SIGHTINGS = 4096  # that are written down before they are counted


class CloudKeeper:
    """The arms of a learner that have continuous priors, and what was counted of them."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.arms: dict[int, ArmParticles] = {}  # by arm, once it was counted or renewed
        self.runs = 0
        self.shared = 0  # where the points of priors end in `chains`
        self.clouds = self._clouds() if choices.has_clouds else no_clouds()

    def _clouds(self) -> Clouds:
        priors = [self.choices.continuous[pool] for pool in self.choices.pool_of_arm.tolist()]
        numbers = np.full(len(priors), -1, dtype=np.int64)
        with_cloud = [k for k, prior in enumerate(priors) if prior is not None]
        numbers[with_cloud] = np.arange(len(with_cloud))
        points, first_homes, places = [], room(len(with_cloud)), dict[int, int]()
        for cloud, k in enumerate(with_cloud):
            pool = int(self.choices.pool_of_arm[k])
            if pool not in places:
                places[pool] = self.shared
                points.append(in_cloud(self._prior(k).drawn.matrices).ravel())
                self.shared += points[-1].size
            first_homes[cloud] = places[pool]
        sizes = [self._chains_size(k) for k in with_cloud]
        require_memory(8 * sum(sizes), "the particles", "use fewer arms or particles")
        chains = aligned_room(self.shared + sum(sizes))
        chains[: self.shared] = np.concatenate(points)
        self.own_homes = dict(
            zip(with_cloud, (self.shared + np.cumsum([0, *sizes[:-1]])).tolist(), strict=True)
        )
        worths = np.array([self._prior(k).drawn.worth for k in with_cloud])
        widest = max(
            _width(self._prior(k)) * 2 * self._prior(k).num_states * (1 + self._prior(k).num_states)
            for k in with_cloud
        )
        return Clouds(
            arms=numbers,
            chains=chains,
            homes=first_homes.copy(),
            first_homes=first_homes,
            num_rows=np.array([len(self._prior(k).rows.tables.totals) for k in with_cloud]),
            worths=worths.copy(),
            first_worths=worths,
            room=np.zeros(widest),
            sightings=room(max(SIGHTINGS, 2 * len(priors)) * SIGHTING),
            now=room(CLOUDS_NOW),
            keys=np.zeros(1, dtype=np.uint64),
        )

    def _prior(self, k: int) -> DirichletArmPrior:
        prior = self.choices.continuous[int(self.choices.pool_of_arm[k])]
        assert prior is not None
        return prior

    def _chains_size(self, k: int) -> int:
        prior = self._prior(k)
        return _width(prior) * prior.num_states * len(prior.rows.tables.totals)

    def has(self, k: int) -> bool:
        """Whether arm k has a cloud."""
        return len(self.clouds.arms) > 0 and int(self.clouds.arms[k]) >= 0

    def matrices(self, k: int) -> FloatArray:
        """Matrices [R, S, M] of arm k's particles."""
        prior, home = self._prior(k), int(self.clouds.homes[self.clouds.arms[k]])
        lanes = self.clouds.chains[home : home + self._chains_size(k)]
        shape = (len(prior.rows.tables.totals), prior.num_states, -1)
        found: FloatArray = lanes.reshape(shape)[:, :, lane_places(prior.num_particles)]
        return found

    def arm(self, k: int, slot: int) -> Arm:
        """Return the arm in a slot of arm k."""
        prior, home = self._prior(k), int(self.clouds.homes[self.clouds.arms[k]])
        width, size = _width(prior), prior.num_states
        at = home + int(lane_places(prior.num_particles)[slot])
        lanes = self.clouds.chains[at : home + self._chains_size(k) : width]
        matrices = lanes.reshape(-1, size).copy()
        return prior.arm(matrices[:size], matrices[-size:])

    def counted(self, k: int) -> ArmParticles:
        """Return what was counted of arm k: the prior's evidence and what was seen since."""
        if k not in self.arms:
            prior = self._prior(k)
            self.arms[k] = count_evidence(fresh_arm(prior.rows, prior.drawn), prior.evidence)
        return self.arms[k]

    def count(self) -> None:
        """Count what was written down."""
        now = self.clouds.now
        if now[RUNS] != self.runs:  # another replication has begun
            self.runs = int(now[RUNS])
            self.arms.clear()
        seen = self.clouds.sightings[: now[NUM_SIGHTINGS] * SIGHTING].reshape(-1, SIGHTING)
        if not len(seen):
            return
        order = np.argsort(seen[:, 0], kind="stable")
        arms, starts = np.unique(seen[order, 0], return_index=True)
        for k, of_arm in zip(arms.tolist(), np.split(seen[order], starts[1:]), strict=True):
            done = add_sightings(self.counted(k), of_arm, 0)
            while done < len(of_arm):
                self.arms[k] = grown(self.arms[k])
                done = add_sightings(self.arms[k], of_arm, done)
        now[NUM_SIGHTINGS] = 0

    def renew(self, k: int, slots: Slots, weights: Weights) -> None:
        """Draw the particles of arm k anew; all its sightings must be counted."""
        arm, prior = self.counted(k), self._prior(k)
        home, places = int(weights.homes[k]), lane_places(prior.num_particles)
        arm.weights[:] = weights.numbers[home + places]
        renew_arm(prior.rows, arm, np.uint64(key_at(self.clouds.keys[0], k)))
        self.put(k, arm, slots, weights)

    def put(self, k: int, arm: ArmParticles, slots: Slots, weights: Weights) -> None:
        """Let the loop use these particles of arm k, which has a home of its own."""
        cloud = int(self.clouds.arms[k])
        self.clouds.homes[cloud] = home = self.own_homes[k]
        self.clouds.chains[home : home + self._chains_size(k)] = in_cloud(arm.matrices).ravel()
        self.clouds.worths[cloud] = arm.worth[0]
        rows, begin = int(slots.row_counts[k]), int(weights.homes[k])
        weights.numbers[begin : begin + home_size(rows)] = 0.0
        weights.numbers[begin : begin + rows * LANES] = in_lanes(arm.weights)
        weights.lost[k] = 0
        weights.changed[k] = True
        add_up_groups(slots, weights, np.array([k]))

    def num_particles(self, k: int) -> int:
        """Return the number of arm k's particles."""
        return self._prior(k).num_particles

    def load(self, k: int, data: dict[str, Any], slots: Slots, weights: Weights) -> None:
        """Take in what `to_data` wrote of arm k, whose weights are there already."""
        prior = self._prior(k)
        arm = fresh_arm(prior.rows, prior.drawn)
        ages = np.array(data["counts"][0], dtype=np.int64)
        while len(ages) > len(arm.ages):
            arm = grown(arm)
        cells = np.array(data["counts"][1], dtype=np.float64).reshape(
            len(ages), *arm.cells.shape[1:]
        )
        if not ((np.diff(ages) > 0).all() and (ages > 0).all() and (cells >= 0).all()):
            raise ValueError(f"the counts of arm {k}")
        arm.ages[: len(ages)], arm.cells[: len(ages)], arm.num_ages[0] = ages, cells, len(ages)
        arm.renewals[0] = checked_count(data["renewals"], "renewals", 0)
        arm.worth[0] = float(data["worth"])
        home = int(weights.homes[k])
        arm.weights[:] = weights.numbers[home + lane_places(prior.num_particles)]
        self.arms[k] = arm
        if arm.renewals[0]:
            logits = np.array(data["logits"], dtype=np.float64)
            if logits.shape != arm.logits.shape or not np.isfinite(logits).all():
                raise ValueError(f"the particles of arm {k}")
            arm.logits[:] = logits
            arm.matrices[:] = prior.rows.matrices(logits)
            changed = bool(weights.changed[k])
            self.put(k, arm, slots, weights)
            weights.changed[k] = changed

    def to_data(self) -> dict[str, Any]:
        """What a snapshot holds of the clouds that were counted; all sightings must be."""
        return {
            str(k): {
                "counts": _counts_to_data(arm),
                "logits": arm.logits.tolist() if arm.renewals[0] else None,
                "worth": float(arm.worth[0]),
                "renewals": int(arm.renewals[0]),
            }
            for k, arm in sorted(self.arms.items())
        }


def in_cloud(matrices: FloatArray) -> FloatArray:
    """Matrices [R, S, M] in lanes; fillers get the first particle's numbers."""
    count = matrices.shape[2]
    laid = np.repeat(matrices[:, :, :1], num_rows(count) * LANES, axis=2)
    laid[:, :, lane_places(count)] = matrices
    return laid


def _width(prior: DirichletArmPrior) -> int:
    return num_rows(prior.num_particles) * LANES


def _counts_to_data(arm: ArmParticles) -> list[list[Any]]:
    used = int(arm.num_ages[0])
    return [arm.ages[:used].tolist(), arm.cells[:used].ravel().tolist()]
