"""Groups of arms that are always seen and have Dirichlet priors: their arrays, for the loop.

All that is known of them are counts (`kernels.learn.conjugate`); what was drawn last is kept beside
these, since it cannot be drawn again once something more was seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.loop.tables import ConjugateGroups
from restive.kernels.plan.always_seen import NUM_LINES, NUM_RESULTS, work_rows
from restive.learn.posterior import ArmPosterior
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.slots import Choices
from restive.plan.actors import int_zeros, no_conjugates
from restive.problem.arm import Arm
from restive.problem.bandit import starts_of

__all__ = ["ConjugateKeeper", "nothing_counted"]

FloatArray = NDArray[np.float64]
AVERAGED = 32  # draws over which an index is averaged where it is to be that of the posterior


class ConjugateKeeper:
    """The conjugate groups of a learner."""

    def __init__(self, choices: Choices) -> None:
        self.priors: dict[int, DirichletArmPrior] = {}  # by group
        for group, pool in enumerate(choices.pool_of_group.tolist()):
            prior = choices.continuous[pool]
            if prior is not None and prior.always_seen:
                self.priors[group] = prior
        self.groups = no_conjugates()
        if self.priors:
            self.groups = _arrays(self.priors, len(choices.pool_of_group))

    def has(self, group: int) -> bool:
        """Whether a group is one of these."""
        return group in self.priors

    def _part(self, numbers: FloatArray, group: int) -> FloatArray:
        """A group's numbers [R, S]."""
        number, size = int(self.groups.number_of[group]), self.priors[group].num_states
        start, rows = int(self.groups.starts[number]), int(self.groups.num_rows[number])
        return numbers[start : start + rows * size].reshape(rows, size)

    def arm(self, group: int) -> Arm:
        """Return what was drawn last for a group."""
        prior, matrices = self.priors[group], self._part(self.groups.drawn, group).copy()
        return prior.arm(matrices[: prior.num_states], matrices[-prior.num_states :])

    def indices(self, group: int) -> FloatArray:
        """Indices [S] that are followed, a view."""
        number = int(self.groups.number_of[group])
        first = int(self.groups.index_starts[number])
        return self.groups.indices[first : first + self.priors[group].num_states]

    def posterior(self, group: int) -> ArmPosterior:
        """Return what is believed of a group's arms."""
        return self.priors[group].particles_after(self._part(self.groups.counts, group))

    def to_data(self, changed: NDArray[np.bool_]) -> dict[str, Any]:
        """What a snapshot holds of them."""
        return {
            str(group): {
                "counts": _as_short(self._part(self.groups.counts, group).ravel()),
                "drawn": self._part(self.groups.drawn, group).ravel().tolist(),
                "indices": self.indices(group).tolist(),
                "changed": bool(changed[group]),
            }
            for group in self.priors
        }

    def load(self, data: dict[str, Any], changed: NDArray[np.bool_]) -> None:
        """Take in what `to_data` wrote, or raise a ValueError."""
        if set(data) != set(map(str, self.priors)):
            raise ValueError("the groups of arms that are always seen")
        for group in self.priors:
            own = data[str(group)]
            counts, drawn, indices = (
                np.array(own[name], dtype=np.float64) for name in ("counts", "drawn", "indices")
            )
            held = self._part(self.groups.counts, group)
            if counts.size != held.size or drawn.size != held.size:
                raise ValueError(f"the counts of group {group}")
            impossible = self._part(self.groups.alphas, group).ravel() == 0
            wrong = ~(counts >= 0) | (impossible & (counts > 0)) | ~np.isfinite(counts)
            if wrong.any() or not ((drawn >= 0) & (drawn <= 1)).all():
                raise ValueError(f"the counts of group {group}")
            if len(indices) != len(self.indices(group)) or not np.isfinite(indices).all():
                raise ValueError(f"the indices of group {group}")
            held[:] = counts.reshape(held.shape)
            self._part(self.groups.drawn, group)[:] = drawn.reshape(held.shape)
            self.indices(group)[:] = indices
            changed[group] = bool(own["changed"])


def nothing_counted(prior: DirichletArmPrior) -> dict[str, Any]:
    """Return what `to_data` writes of a group of which nothing was seen or drawn."""
    rows, size = prior.posterior_alphas.shape
    nothing = {"counts": rows * size, "drawn": rows * size, "indices": size}
    return {name: [0] * count for name, count in nothing.items()} | {"changed": True}


def _as_short(counts: NDArray[np.float64]) -> list[float]:
    """Return counts as a list, whole ones as whole numbers."""
    return [int(count) if count == int(count) else count for count in counts.tolist()]


def _arrays(priors: dict[int, DirichletArmPrior], num_groups: int) -> ConjugateGroups:
    own: Sequence[DirichletArmPrior] = list(priors.values())
    numbers = np.full(num_groups, -1, dtype=np.int64)
    numbers[list(priors)] = np.arange(len(own))
    apart = {id(prior): prior for prior in own}
    alphas_of = {name: prior.posterior_alphas for name, prior in apart.items()}
    alphas = [alphas_of[id(prior)] for prior in own]
    sizes = np.array([prior.num_states for prior in own], dtype=np.int64)
    flat = np.concatenate([rows.ravel() for rows in alphas])
    largest = int(sizes.max())
    averaged = int_zeros(1)
    averaged[0] = AVERAGED
    return ConjugateGroups(
        number_of=numbers,
        sizes=sizes,
        num_rows=np.array([len(rows) for rows in alphas], dtype=np.int64),
        starts=starts_of([rows.size for rows in alphas]),
        alphas=flat,
        counts=np.zeros_like(flat),
        drawn=np.zeros_like(flat),
        index_starts=starts_of(sizes),
        rewards=np.concatenate(
            [part for p in own for part in (p.typical.rewards, p.typical.passive_rewards)]
        ),
        indices=np.zeros(int(sizes.sum())),
        scratch=np.zeros((work_rows(largest) + NUM_LINES) * largest + NUM_RESULTS),
        averaged=averaged,
    )
