"""Continuous priors: rows of transition matrices with Dirichlet laws.

The truth is never on a grid. Under these priors every chain is possible that has the right zeros,
and the posterior is a set of weighted particles that follows what is seen (`learn.particles`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, one_line
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.kernels.random import key_at
from restive.learn.evidence import Evidence
from restive.learn.particles.arm import count_evidence, counts_of, fresh_arm, particles_given
from restive.learn.particles.drawing import Particles
from restive.learn.particles.rows import QUARTER, rows_prior
from restive.learn.posterior import ArmPosterior
from restive.problem.arm import Arm, checked_seen, numbers_array, state_names
from restive.problem.beliefs import MODES
from restive.problem.chains import limiting_laws, mixing_ages, require_limit

__all__ = ["DirichletArmPrior"]

FloatArray = NDArray[np.float64]

LEAST_ALPHA, MOST_ALPHA = 0.05, 1e6
LEAST_PARTICLES, MOST_PARTICLES = 16, 1 << 16
MOST_FREE = 1000
MIXING_SHARE = 0.95  # of what an arm may be: what its mixing time covers


class DirichletArmPrior:
    """Prior of one arm: each row of its matrices has a Dirichlet law, independent of the others.

    Parameters
    ----------
    active
        Dirichlet parameters [S, S] of the rows of a step in which the arm is pulled. Ones make a
        row uniform, larger numbers surer of their ratio. Where a number is 0, the step is
        impossible, always; others are at least 0.05.
    passive
        Those of a step in which it is not pulled; if left out, the arm moves alike in both.
    rewards
        Reward [S] of pulling the arm in each state; known.
    passive_rewards
        Reward [S] of not pulling it; none if left out.
    particles
        Number of particles M that stand for the posterior; by default 128, and 256 where more than
        three numbers are free. The error of what they estimate falls about like 1 / M.
    states, seen
        Names of the states, and when it is seen, as in `Arm`. If it is always seen, there are no
        particles while it is learned: counts of its moves are all there is to know, and `particles`
        is how many points `particles()` returns.
    """

    active: FloatArray  # [S, S]
    passive: FloatArray | None  # [S, S]
    rewards: FloatArray  # [S]
    passive_rewards: FloatArray | None  # [S]
    states: tuple[str, ...] | None  # [S]
    seen: str
    evidence: Evidence  # what was seen already; nothing at first

    def __init__(
        self,
        active: ArrayLike,
        passive: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        passive_rewards: ArrayLike | None = None,
        particles: int | None = None,
        states: Iterable[str] | None = None,
        seen: str = "pulled",
    ) -> None:
        self.seen = checked_seen(seen, "prior")
        self.active = _alphas(active, "active")
        self.passive = None if passive is None else _alphas(passive, "passive")
        size = len(self.active)
        if self.passive is not None and len(self.passive) != size:
            raise ProblemError(
                f"prior: active has {size} states and passive {len(self.passive)}; they must agree"
            )
        self.passive_rewards = None if passive_rewards is None else _rewards(passive_rewards, size)
        if particles is not None:
            particles = checked_count(particles, "particles", LEAST_PARTICLES, MOST_PARTICLES)
        stacked = (
            self.active if self.passive is None else np.concatenate([self.active, self.passive])
        )
        _require_free(stacked)
        self.rewards = Arm(*_means(self.active, self.passive), rewards).rewards
        self.states = None if states is None else state_names(states, size, "prior")
        self.rows = rows_prior(stacked, particles)
        self.evidence = Evidence(size)

    @property
    def num_states(self) -> int:
        """The number of states S."""
        return len(self.active)

    @property
    def num_particles(self) -> int:
        """The number of particles M; 1 where nothing is free."""
        return self.rows.count

    @property
    def always_seen(self) -> bool:
        """Whether the arm is seen in every step, pulled or not."""
        return self.seen == "always"

    @property
    def posterior_alphas(self) -> FloatArray:
        """Dirichlet parameters [R, S] given the evidence, of an arm that is always seen.

        Of the only matrix, or of the active and then of the passive one.
        """
        return self._alphas_with(self._moves(self.evidence))

    def _alphas_with(self, counts: FloatArray) -> FloatArray:
        return np.asarray(
            np.where(self.rows.tables.alphas > 0, self.rows.tables.alphas + counts, 0)
        )

    def _moves(self, evidence: Evidence) -> FloatArray:
        """Counts [R, S] of moves of an arm that is always seen."""
        size = self.num_states
        counts = np.zeros(self.rows.tables.alphas.shape)
        for pulled in (True, False):
            states, ages, seen, times = evidence.cells(pulled=pulled)
            if (ages > 1).any():
                raise ProblemError(
                    "prior: the arm is always seen, so its evidence must be of one step each; some "
                    f"is of {ages.max()} steps: leave it out, or use candidates (ArmPrior)"
                )
            rows = states + (0 if pulled or self.passive is None else size)
            np.add.at(counts, (rows, seen), times)
        return counts

    @cached_property
    def typical(self) -> Arm:
        """An arm with the prior's states and rewards: that of its mean."""
        return self.arm(*_means(self.active, self.passive))

    @property
    def moves_alike(self) -> bool:
        """Whether the arm, whichever it is, moves alike pulled or not."""
        return self.passive is None

    def given(self, evidence: Evidence) -> DirichletArmPrior:
        """Return what the arm may be once this was seen of it: a prior that remembers it."""
        if not isinstance(evidence, Evidence):
            raise ProblemError(f"expected Evidence, got {type(evidence).__name__}")
        if evidence.num_states != self.num_states:
            raise ProblemError(
                f"the evidence is about an arm of {evidence.num_states} states, this one has "
                f"{self.num_states}"
            )
        if not evidence.total:
            return self
        if self.always_seen:
            impossible = np.argwhere((self._moves(evidence) > 0) & (self.rows.tables.alphas == 0))
            for row, seen in impossible.tolist():
                raise ProblemError(
                    f"state {seen}, seen after state {row % self.num_states}, is impossible: the "
                    "zeros of the prior rule it out"
                )
        elif len(evidence.cells(pulled=False)[0]):
            raise ProblemError(
                "prior: a continuous prior takes what was seen after steps without a pull only of "
                'arms that are always seen: pass seen="always", or use candidates (ArmPrior)'
            )
        else:
            self._require_possible(evidence)
        informed = object.__new__(DirichletArmPrior)
        for field in (
            "active",
            "passive",
            "rewards",
            "passive_rewards",
            "states",
            "seen",
            "rows",
        ):
            setattr(informed, field, getattr(self, field))
        informed.evidence = self.evidence + evidence
        return informed

    def particles(self) -> ArmPosterior:
        """Return weighted chains that stand for what the arm may be, given the evidence."""
        return self._chains(self.drawn)

    def particles_after(self, counts: FloatArray) -> ArmPosterior:
        """Return those of an arm that is always seen after so many more moves [R, S].

        Counts need not be whole: those of agents that forget fade.
        """
        return self._chains(self._drawn_after(counts))

    def _chains(self, drawn: Particles) -> ArmPosterior:
        active = np.ascontiguousarray(np.moveaxis(drawn.matrices[: self.num_states], 2, 0))
        passive = np.ascontiguousarray(np.moveaxis(drawn.matrices[-self.num_states :], 2, 0))
        weights = drawn.weights / drawn.weights.sum()
        unchecked = not (self.always_seen or self.rows.is_channel)
        return ArmPosterior(active, passive, weights, drawn.log_evidence, self.states, unchecked)

    @cached_property
    def drawn(self) -> Particles:
        """The particles as learners start with them."""
        if self.always_seen:
            return self._drawn_after(0.0)
        counts = counts_of(count_evidence(fresh_arm(self.rows), self.evidence))
        return particles_given(self.rows, counts)

    def _drawn_after(self, counts: FloatArray | float) -> Particles:
        """Particles of an arm that is always seen after so many more moves [R, S]."""
        alphas = self._alphas_with(self._moves(self.evidence) + counts)
        rows = rows_prior(alphas, self.num_particles)
        return particles_given(rows, counts_of(fresh_arm(rows)))

    def draw(self, key: np.uint64) -> Arm:
        """Draw an arm with the first numbers of a random stream.

        By quantiles, so exactly from the prior; once there is evidence, one of the particles,
        unless the arm is always seen.
        """
        if self.always_seen:
            matrices = rows_prior(self.posterior_alphas, self.num_particles).draw(key)
        elif not self.evidence.total:
            matrices = self.rows.draw(key)
        else:
            totals = np.cumsum(self.drawn.weights)
            uniform = (int(key_at(key, 0)) >> 11) * 2.0**-53
            place = np.searchsorted(totals, uniform * totals[-1], side="right")
            matrices = self.drawn.matrices[:, :, place]
        return self.arm(matrices[: self.num_states], matrices[-self.num_states :])

    def to_data(self) -> dict[str, Any]:
        """Return plain data, for `json.dumps`."""
        return {
            "dirichlet": self.active.tolist(),
            "passive": None if self.passive is None else self.passive.tolist(),
            "rewards": self.rewards.tolist(),
            "passive_rewards": (
                None if self.passive_rewards is None else self.passive_rewards.tolist()
            ),
            "particles": self.num_particles if self.rows.free else None,
            "states": None if self.states is None else list(self.states),
            "evidence": self.evidence.to_data(),
            **({"seen": self.seen} if self.always_seen else {}),
        }

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> DirichletArmPrior:
        """Return the prior that `to_data` wrote."""
        prior = cls(
            data["dirichlet"],
            data["passive"],
            data["rewards"],
            data["passive_rewards"],
            data["particles"],
            data["states"],
            data.get("seen", "pulled"),
        )
        evidence = Evidence.from_data(data["evidence"])
        return prior.given(evidence) if evidence.total else prior

    def mixing_time(self, share: float = MIXING_SHARE) -> int:
        """T^mix(1/4) that a share of what the arm may be does not exceed.

        The paper's T^mix is the largest over all that is possible, which is infinite here. It is
        a quantile over 8,192 evenly spread points of the prior or, with evidence, over particles.
        """
        if not (isinstance(share, int | float | np.number) and 0 < share < 1):
            raise ProblemError(f"share must be a number between 0 and 1, got {share!r:.60}")
        if self.always_seen:
            return MODES  # what its counters tell apart
        try:
            require_limit(_means(self.active, self.passive)[1], "prior", states=self.states)
        except AssumptionError as error:
            raise AssumptionError(f"{error}; pass mixing_time") from None
        if self.evidence.total:
            passive, weights = self.drawn.matrices[-self.num_states :], self.drawn.weights
            ages = mixing_ages(passive, limiting_laws(passive), QUARTER)
        else:
            ages = self.rows.mixing_ages
            weights = np.ones(len(ages))
        order = np.argsort(np.where(ages < 0, np.iinfo(np.int64).max, ages), kind="stable")
        totals = np.cumsum(weights[order])
        age = int(ages[order][np.searchsorted(totals, share * totals[-1] * (1 - 1e-12))])
        if age < 0:
            raise TooLargeError(
                f"prior: {1 - share:.0%} of what it considers possible does not mix within 2^60 "
                "steps; pass mixing_time"
            )
        return age

    def arm(self, active: FloatArray, passive: FloatArray) -> Arm:
        """Return the arm that has these matrices [S, S]."""
        more: dict[str, Any] = {}
        if self.passive_rewards is not None:
            more["passive_rewards"] = self.passive_rewards
        return Arm(active, passive, self.rewards, states=self.states, seen=self.seen, **more)

    def _require_possible(self, evidence: Evidence) -> None:
        """Raise where fixed zeros rule out what was seen, whatever the other numbers are."""
        active, passive = (matrix > 0 for matrix in _means(self.active, self.passive))
        if active.all() and passive.all():
            return
        reachable, age, powers = active, 1, [passive]
        for state, elapsed, seen in zip(
            *(column.tolist() for column in evidence.cells()[:3]), strict=True
        ):
            for level in range((elapsed - age).bit_length()):
                if len(powers) <= level:
                    powers.append(powers[-1] @ powers[-1])
                if (elapsed - age) >> level & 1:
                    reachable = reachable @ powers[level]
            age = elapsed
            if not reachable[state, seen]:
                raise ProblemError(
                    f"state {seen}, seen {elapsed} steps after state {state}, is impossible: the "
                    "zeros of the prior rule it out"
                )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DirichletArmPrior):
            return NotImplemented
        return self._numbers == other._numbers and self.evidence == other.evidence

    def __hash__(self) -> int:
        return hash(self._numbers)

    @property
    def _numbers(self) -> tuple[Any, ...]:
        passive = None if self.passive is None else self.passive.tobytes()
        unpulled = None if self.passive_rewards is None else self.passive_rewards.tobytes()
        return (
            self.num_states, self.num_particles, self.active.tobytes(), passive,
            self.rewards.tobytes(), unpulled, self.states, self.seen,
        )  # fmt: skip

    def __repr__(self) -> str:
        fields = [f"active={self.active.tolist()}"]
        if self.passive is not None:
            fields.append(f"passive={self.passive.tolist()}")
        fields.append(f"rewards={self.rewards.tolist()}")
        if self.passive_rewards is not None:
            fields.append(f"passive_rewards={self.passive_rewards.tolist()}")
        fields.append(f"particles={self.num_particles}")
        if self.states is not None:
            fields.append(f"states={list(self.states)}")
        if self.always_seen:
            fields.append("seen='always'")
        seen = f".given({self.evidence!r})" if self.evidence.total else ""
        short = f"{self.num_states} states, particles={self.num_particles}"
        return one_line(
            f"DirichletArmPrior({', '.join(fields)}){seen}", f"DirichletArmPrior({short}){seen}"
        )


def _alphas(values: ArrayLike, field: str) -> FloatArray:
    """Return Dirichlet parameters, or name the row that has none."""
    alphas = numbers_array(values, "prior", field)
    if alphas.ndim != 2 or alphas.shape[0] != alphas.shape[1] or not alphas.size:
        raise ProblemError(
            f"prior: {field} must be a square matrix of Dirichlet parameters with one row per "
            f"state, got shape {alphas.shape}"
        )
    for row, numbers in enumerate(alphas):
        wrong = numbers[(numbers != 0) & ~((numbers >= LEAST_ALPHA) & (numbers <= MOST_ALPHA))]
        if wrong.size:
            raise ProblemError(
                f"prior: row {row} of {field} holds {wrong[0]:g}, expected 0 (impossible) or a "
                f"Dirichlet parameter from {LEAST_ALPHA:g} to {MOST_ALPHA:,.0f}"
            )
        if not numbers.any():
            raise ProblemError(
                f"prior: row {row} of {field} is all zero; a state must lead somewhere"
            )
    alphas.setflags(write=False)
    return alphas


def _rewards(values: ArrayLike, size: int) -> FloatArray:
    rewards = numbers_array(values, "prior", "passive_rewards")
    if rewards.shape != (size,) or not np.isfinite(rewards).all():
        raise ProblemError(f"prior: passive_rewards must be {size} finite numbers, one per state")
    rewards.setflags(write=False)
    return rewards


def _require_free(alphas: FloatArray) -> None:
    free = int((alphas > 0).sum()) - len(alphas)
    if free > MOST_FREE:
        raise TooLargeError(
            f"prior: {free:,} transition probabilities are free, more than {MOST_FREE:,}; set "
            "those to 0 that are impossible, leave out passive, or use fewer states"
        )


def _means(active: FloatArray, passive: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Means of the prior's matrices."""
    mean = active / active.sum(axis=1, keepdims=True)
    return mean, mean if passive is None else passive / passive.sum(axis=1, keepdims=True)
