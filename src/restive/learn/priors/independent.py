"""Priors of a whole system (Section 2.1 of the paper).

The paper's Q is any distribution over systems. `IndependentPrior` has a distribution per arm,
finite or continuous; `JointPrior` one over whole bandits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST_ARMS, checked_count, counted, drawn_seed, one_line, shown
from restive.errors import ProblemError
from restive.kernels.random import TRUTH, key_at, stream
from restive.learn.evidence import Evidence
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior, listed, require_evidence
from restive.problem.arm import Arm, gilbert_elliott, numbers_array
from restive.problem.bandit import (
    RestlessBandit,
    checked_num_pulls,
    first_places,
    require_bandit,
)

__all__ = [
    "IndependentPrior",
    "Prior",
    "beta_prior",
    "grid_prior",
    "is_continuous",
    "pays_of",
    "priors_like",
    "uniform_prior",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, eq=False, init=False, repr=False)
class IndependentPrior:
    """Independent distributions per arm; arms that share an arm's prior share its tables.

    Parameters
    ----------
    arms
        A prior for each arm: an `ArmPrior` or a `DirichletArmPrior`, in any mixture.
    pooled
        Lists of arms, such as [[0, 1, 2]], that are known to be identical: what is seen of one is
        learned of all, and they are drawn as one. Their priors must be equal.
    """

    arms: tuple[ArmPrior | DirichletArmPrior, ...]
    groups: IntArray  # [K] number of each arm's group; pooled arms share one, others have their own

    def __init__(
        self,
        arms: Iterable[ArmPrior | DirichletArmPrior],
        pooled: Iterable[Iterable[int]] = (),
    ) -> None:
        arms = listed(arms, "arms", "priors")
        if not arms:
            raise ProblemError("a prior needs at least one arm, got none")
        for k, arm in enumerate(arms):
            if not isinstance(arm, ArmPrior | DirichletArmPrior):
                raise ProblemError(
                    f"arm {k}: expected an ArmPrior or a DirichletArmPrior, got "
                    f"{type(arm).__name__}"
                )
        arms, groups = _pooled(arms, pooled)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "groups", groups)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.arms)

    @property
    def pooled(self) -> list[list[int]]:
        """Lists of the arms that are known to be identical."""
        sizes, order = np.bincount(self.groups), np.argsort(self.groups, kind="stable")
        starts = np.cumsum(sizes) - sizes
        return [order[starts[g] : starts[g] + sizes[g]].tolist() for g in np.flatnonzero(sizes > 1)]

    def candidates(self, k: int) -> tuple[Arm, ...]:
        """Return what arm k may be, where that can be listed."""
        arm = self.arms[k]
        if isinstance(arm, DirichletArmPrior):
            raise ProblemError(f"arm {k} has a continuous prior, which has no list of candidates")
        return arm.candidates

    def typical(self, k: int) -> Arm:
        """An arm with the states and rewards of arm k."""
        return self.arms[k].typical

    def moves_alike(self, k: int) -> bool:
        """Whether arm k, whichever it is, moves alike pulled or not."""
        return self.arms[k].moves_alike

    def sample(self, seed: int | None = 0, num_pulls: int | None = None) -> RestlessBandit:
        """Draw a system: the truth of replication 0 of `bayesian_regret` with this seed.

        Parameters
        ----------
        seed
            Names the draw; with None one is drawn.
        num_pulls
            Arms pulled each step, which the prior does not know.
        """
        if num_pulls is None:
            raise ProblemError("sample needs num_pulls: the arms' priors do not say how many")
        num_pulls = checked_num_pulls(num_pulls, self.num_arms)
        key = stream(drawn_seed(seed), 0, TRUTH)
        drawn: dict[int, Arm] = {}
        for arm, group in zip(self.arms, self.groups.tolist(), strict=True):
            if group not in drawn:
                drawn[group] = arm.draw(np.uint64(key_at(key, group)))
        return RestlessBandit([drawn[group] for group in self.groups.tolist()], num_pulls)

    def given(self, evidence: Sequence[Evidence]) -> IndependentPrior:
        """Return what the arms may be once this was seen of each."""
        require_evidence(evidence, self.num_arms)
        seen = list(evidence)
        for pool in self.pooled:
            everything = sum((evidence[k] for k in pool[1:]), start=evidence[pool[0]])
            for k in pool:
                seen[k] = everything
        informed: dict[tuple[int, int], ArmPrior | DirichletArmPrior] = {}
        for arm, of_arm in zip(self.arms, seen, strict=True):
            key = (id(arm), id(of_arm))
            if key not in informed:
                informed[key] = arm.given(of_arm)
        arms = [informed[id(arm), id(s)] for arm, s in zip(self.arms, seen, strict=True)]
        return IndependentPrior(arms, self.pooled)

    def __repr__(self) -> str:
        kinds = {id(arm): arm for arm in self.arms}
        each = repr(self.arms[0]) if len(kinds) == 1 else f"{len(kinds):,} different priors"
        count = counted(self.num_arms, "arm")
        return one_line(f"IndependentPrior({count}, {each})", f"IndependentPrior({count})")


def _pooled(
    arms: tuple[ArmPrior | DirichletArmPrior, ...], pooled: Iterable[Iterable[int]]
) -> tuple[tuple[ArmPrior | DirichletArmPrior, ...], IntArray]:
    """Return the priors, those of pooled arms as one object, and the group of each arm."""
    first, shared, named = np.arange(len(arms)), list(arms), set[int]()
    for pool in listed(pooled, "pooled", "lists of arms"):
        members = [
            checked_count(k, "pooled arm", 0, len(arms) - 1)
            for k in listed(pool, "pooled", "lists of arms")
        ]
        lowest = min(members, default=0)
        for k in members:
            if k in named:
                raise ProblemError(f"pooled: arm {k} is named twice")
            if not _equal(arms[k], arms[members[0]]):
                raise ProblemError(
                    f"pooled: the priors of arms {members[0]} and {k} differ; identical arms have "
                    "one prior"
                )
            named.add(k)
            first[k], shared[k] = lowest, arms[members[0]]
    groups = np.unique(first, return_inverse=True)[1] if named else first
    return tuple(shared), groups.astype(np.int64)


def _equal(one: ArmPrior | DirichletArmPrior, other: ArmPrior | DirichletArmPrior) -> bool:
    if one is other:
        return True
    if isinstance(one, ArmPrior) and isinstance(other, ArmPrior):
        return one.candidates == other.candidates and np.array_equal(one.weights, other.weights)
    return one == other


Prior: TypeAlias = IndependentPrior | JointPrior


def require_prior(prior: Any) -> None:
    """Raise unless this is a prior of all arms; say how to make one of what was given."""
    if isinstance(prior, IndependentPrior | JointPrior):
        return
    hint = ""
    if isinstance(prior, ArmPrior | DirichletArmPrior):
        hint = ", which is for one arm; for several: IndependentPrior([prior] * num_arms)"
    elif isinstance(prior, list | tuple) and all(
        isinstance(arm, ArmPrior | DirichletArmPrior) for arm in prior
    ):
        hint = " of arms' priors; put them together: IndependentPrior(priors)"
    elif isinstance(prior, RestlessBandit):
        hint = "; for arms like these: beta_prior(like=bandit) or dirichlet_prior(like=bandit)"
    kind = type(prior).__name__
    raise ProblemError(f"prior must be an IndependentPrior or a JointPrior, got {kind}{hint}")


def is_continuous(prior: Prior) -> bool:
    """Whether any arm has a continuous prior."""
    return isinstance(prior, IndependentPrior) and any(
        isinstance(arm, DirichletArmPrior) for arm in prior.arms
    )


def grid_prior(
    levels: Sequence[float] | FloatArray,
    num_arms: int | None = None,
    rewards: ArrayLike = (0.0, 1.0),
    passive_rewards: ArrayLike | None = None,
    states: Sequence[str] | None = None,
    *,
    seen: str = "pulled",
    like: RestlessBandit | None = None,
) -> IndependentPrior:
    """Uniform prior of Section 6: every (p01, p11) in levels x levels, for each arm.

    Candidates are ordered by p01, then by p11.

    Parameters
    ----------
    levels
        Probabilities that p01 and p11 may have.
    num_arms
        Number of arms K.
    rewards
        Reward in the bad and in the good state.
    passive_rewards
        The same while an arm is not pulled; nothing when left out.
    states
        Names of the two states, the bad one first.
    seen
        When arms are seen, as in `Arm`.
    like
        Instead of these five: a bandit of two-state arms, whose rewards and names of states are
        taken over. Its arms must move alike pulled or not, as all candidates do.

    Examples
    --------
    >>> import restive as rs
    >>> rs.grid_prior([0.1, 0.5, 0.9], num_arms=4)
    IndependentPrior(4 arms, ArmPrior(9 candidates of 2 states))
    """
    grid = numbers_array(levels, "grid_prior", "levels")
    if grid.ndim != 1 or not grid.size:
        raise ProblemError(f"levels must be a list of probabilities, got shape {grid.shape}")
    values, counts = np.unique(grid, return_counts=True)
    if (counts > 1).any():
        raise ProblemError(f"levels hold {values[counts > 1][0]:g} more than once: give each once")
    if (num_arms is None) == (like is None):
        raise ProblemError("grid_prior needs num_arms, or like = a bandit, and not both")
    if like is not None:
        _require_channels(like, "a grid")
        return priors_like(like, lambda arm: _grid(grid, *pays_of(arm), arm.seen))
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    return IndependentPrior([_grid(grid, rewards, passive_rewards, states, seen)] * num_arms)


def priors_like(
    bandit: RestlessBandit, make: Callable[[Arm], ArmPrior | DirichletArmPrior]
) -> IndependentPrior:
    """Priors of arms that pay as a bandit's do; arms alike in that and in control share one."""
    require_bandit(bandit, "like")
    made: dict[tuple[bytes, bytes, Any, bool, str], ArmPrior | DirichletArmPrior] = {}
    places, which = first_places(bandit.arms)
    own = []
    for k in places.tolist():
        arm = bandit.arms[k]
        pays = arm.rewards.tobytes(), arm.passive_rewards.tobytes()
        key = (*pays, arm.states, arm.is_uncontrolled, arm.seen)
        if key not in made:
            made[key] = make(arm)
        own.append(made[key])
    return IndependentPrior([own[place] for place in which.tolist()])


def uniform_prior(bandit: RestlessBandit) -> IndependentPrior:
    """Prior under which every row of both matrices may be anything, for arms that pay as these."""

    def uniform(arm: Arm) -> DirichletArmPrior:
        ones = np.ones((arm.num_states, arm.num_states))
        return DirichletArmPrior(ones, ones, *pays_of(arm)[:2], states=arm.states, seen=arm.seen)

    return priors_like(bandit, uniform)


def _require_channels(bandit: RestlessBandit, kind: str) -> None:
    """Raise unless a bandit's arms have two states and move alike pulled or not."""
    require_bandit(bandit, "like")
    others = (
        "use dirichlet_prior(like=bandit), spread_prior or a DirichletArmPrior, or list candidates "
        "in an ArmPrior"
    )
    for k in first_places(bandit.arms)[0].tolist():
        arm = bandit.arms[k]
        if arm.num_states != 2:
            raise ProblemError(
                f"{bandit.label(k)} has {arm.num_states} states, and {kind} is a prior for two; "
                f"{others}"
            )
        if not arm.is_uncontrolled:
            raise ProblemError(
                f"{bandit.label(k)} moves differently when pulled, and {kind} has no such arms; "
                f"{others}"
            )


def pays_of(arm: Arm) -> tuple[FloatArray, FloatArray | None, Sequence[str] | None]:
    """Return an arm's rewards, those while it is not pulled, and the names of its states."""
    return arm.rewards, arm.passive_rewards if arm.pays_unpulled else None, arm.states


def _grid(
    grid: FloatArray,
    rewards: ArrayLike,
    passive_rewards: ArrayLike | None,
    states: Sequence[str] | None,
    seen: str = "pulled",
) -> ArmPrior:
    pairs = [(float(a), float(b)) for a in grid for b in grid]
    return ArmPrior(
        [gilbert_elliott(*pair, rewards, passive_rewards, None, states, seen) for pair in pairs]
    )


def beta_prior(
    num_arms: int | None = None,
    p01: ArrayLike = (1.0, 1.0),
    p11: ArrayLike = (1.0, 1.0),
    rewards: ArrayLike = (0.0, 1.0),
    passive_rewards: ArrayLike | None = None,
    states: Sequence[str] | None = None,
    particles: int | None = None,
    *,
    seen: str = "pulled",
    like: RestlessBandit | None = None,
) -> IndependentPrior:
    """Continuous prior of two-state channels: p01 and p11 have Beta laws, the same for each arm.

    Parameters
    ----------
    num_arms
        Number of arms K.
    p01
        Beta parameters (a, b) of the probability to go from bad to good, of mean a / (a + b);
        uniform by default.
    p11
        Those of the probability to stay good.
    rewards
        Reward in the bad and in the good state.
    passive_rewards
        The same while an arm is not pulled; nothing when left out.
    states
        Names of the two states.
    particles, seen
        As in `DirichletArmPrior`.
    like
        Instead of `num_arms`, rewards and names of states: a bandit of two-state arms, which has
        them. Its arms must move alike pulled or not, as all channels do.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> rs.beta_prior(like=bandit)
    IndependentPrior(2 arms)
    """
    if (num_arms is None) == (like is None):
        raise ProblemError("beta_prior needs num_arms, or like = a bandit, and not both")
    alphas = [[b, a] for a, b in (_beta(p01, "p01"), _beta(p11, "p11"))]

    def channel(
        rewards: ArrayLike,
        passive_rewards: ArrayLike | None,
        states: Sequence[str] | None,
        seen: str,
    ) -> DirichletArmPrior:
        return DirichletArmPrior(alphas, None, rewards, passive_rewards, particles, states, seen)

    if like is not None:
        _require_channels(like, "a Beta prior")
        return priors_like(like, lambda arm: channel(*pays_of(arm), arm.seen))
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    return IndependentPrior([channel(rewards, passive_rewards, states, seen)] * num_arms)


def dirichlet_prior(
    num_arms: int | None = None,
    rewards: ArrayLike = (0.0, 1.0),
    passive_rewards: ArrayLike | None = None,
    states: Sequence[str] | None = None,
    particles: int | None = None,
    *,
    counts: float = 1.0,
    controlled: bool = False,
    seen: str = "pulled",
    like: RestlessBandit | None = None,
) -> IndependentPrior:
    """Continuous prior of arms with any number of states: each row of their matrices is Dirichlet.

    Parameters
    ----------
    num_arms
        Number of arms K.
    rewards
        Reward of each state, the worst first: their number is that of the states.
    passive_rewards
        The same while an arm is not pulled; nothing when left out.
    states
        Names of the states.
    particles
        As in `DirichletArmPrior`.
    counts
        Dirichlet parameter of each state in each row: 1 takes all laws for equally likely, more
        means laws closer to even.
    controlled
        Whether pulled arms move by another chain than others.
    seen
        When arms are seen, as in `Arm`.
    like
        Instead of `num_arms`, rewards, names of states, `controlled` and `seen`: a bandit, which
        has them.

    Examples
    --------
    >>> import restive as rs
    >>> bandit = rs.zoo.load("paper-frequentist").bandit
    >>> rs.dirichlet_prior(like=bandit)
    IndependentPrior(4 arms)
    """
    if (num_arms is None) == (like is None):
        raise ProblemError("dirichlet_prior needs num_arms, or like = a bandit, and not both")
    if not isinstance(controlled, bool):
        raise ProblemError(f"controlled must be True or False, got {shown(controlled)}")
    alpha = float(numbers_array([counts], "dirichlet_prior", "counts").ravel()[0])

    def made(
        pays: ArrayLike, unpulled: ArrayLike | None, names: Sequence[str] | None, moved: bool,
        when: str,
    ) -> DirichletArmPrior:  # fmt: skip
        given = numbers_array(pays, "dirichlet_prior", "rewards")
        if given.ndim != 1:
            raise ProblemError(f"rewards must hold a number for each state, got {shown(pays)}")
        size = len(given)
        rows = np.full((size, size), alpha)
        second = rows if moved else None
        return DirichletArmPrior(rows, second, pays, unpulled, particles, names, seen=when)

    if like is not None:
        return priors_like(like, lambda arm: made(*pays_of(arm), not arm.is_uncontrolled, arm.seen))
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    return IndependentPrior([made(rewards, passive_rewards, states, controlled, seen)] * num_arms)


def _beta(values: ArrayLike, field: str) -> tuple[float, float]:
    numbers = numbers_array(values, "beta_prior", field)
    if numbers.shape != (2,) or not (np.isfinite(numbers).all() and (numbers > 0).all()):
        raise ProblemError(
            f"{field} must be two positive Beta parameters (a, b), got {values!r:.60}"
        )
    return float(numbers[0]), float(numbers[1])
