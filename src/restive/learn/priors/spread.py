"""Priors of points that are spread evenly over all that an arm may be.

Each row of an arm's matrices is uniform over all laws of S states. A lattice fills the cube of all
rows' coordinates, so that the points are even for all rows together and not for each by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST_ARMS, checked_count
from restive.errors import ProblemError
from restive.kernels.learn.lattice import lattice_generators, write_laws
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior, pays_of, priors_like
from restive.problem.arm import Arm, numbers_array, state_names
from restive.problem.bandit import RestlessBandit

__all__ = ["SLOWEST", "spread_candidates", "spread_prior"]

FloatArray = NDArray[np.float64]

SLOWEST = 0.997  # the second eigenvalue up to which an agent's tables take in an arm
POINTS = 1024
MOST_POINTS = 1 << 16
MOST_ROWS = 64  # of a candidate: with more the points lie far apart


def spread_prior(
    num_arms: int | None = None,
    rewards: ArrayLike = (0.0, 1.0),
    passive_rewards: ArrayLike | None = None,
    states: Sequence[str] | None = None,
    points: int = POINTS,
    *,
    controlled: bool = False,
    seen: str = "pulled",
    helpful: bool = False,
    like: RestlessBandit | None = None,
) -> IndependentPrior:
    """Prior of points spread evenly over all chains, the same for each arm.

    Unlike a grid it may have any number of states, and pulled arms that move by another chain. It
    is the base of what can be learned about a kind of arms: which of the points they are, in which
    shares. Where an arm is seen often its points are too far apart; use a `DirichletArmPrior`.

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
    points
        Number of candidates, all of one weight.
    controlled
        Whether a pulled arm moves by another chain than one that is not pulled.
    seen
        When arms are seen, as in `Arm`.
    helpful
        Whether a pull never makes an arm worse: from each state a pulled arm reaches any state, or
        a better one, at least as likely as one that is not pulled. Needs `controlled`.
    like
        Instead of `num_arms`, rewards and names of states: a bandit, which has them. Arms that
        move differently when pulled in it are `controlled`.
    """
    points = checked_count(points, "points", 2, MOST_POINTS)
    if not isinstance(controlled, bool):
        raise ProblemError(f"controlled must be True or False, got {controlled!r:.60}")
    if not isinstance(helpful, bool) or (helpful and not controlled):
        raise ProblemError(
            "helpful must be True or False, and True only where pulls change how arms move "
            f"(controlled=True), got {helpful!r:.60}"
        )
    if (num_arms is None) == (like is None):
        raise ProblemError("spread_prior needs num_arms, or like = a bandit, and not both")
    if like is not None:
        return priors_like(
            like,
            lambda arm: spread_candidates(
                *pays_of(arm), points, controlled or not arm.is_uncontrolled, arm.seen, helpful
            ),
        )
    num_arms = checked_count(num_arms, "num_arms", most=MOST_ARMS)
    return IndependentPrior(
        [spread_candidates(rewards, passive_rewards, states, points, controlled, seen, helpful)]
        * num_arms
    )


def spread_candidates(
    rewards: ArrayLike,
    passive_rewards: ArrayLike | None = None,
    states: Sequence[str] | None = None,
    points: int = POINTS,
    controlled: bool = False,
    seen: str = "pulled",
    helpful: bool = False,
) -> ArmPrior:
    """Return the prior of one arm; arguments as in `spread_prior`."""
    pays = numbers_array(rewards, "spread_prior", "rewards")
    if pays.ndim != 1 or len(pays) < 2:
        raise ProblemError(
            f"rewards must hold a number for each of two states or more, got shape {pays.shape}"
        )
    rows = len(pays) * (2 if controlled else 1)
    if rows > MOST_ROWS:
        raise ProblemError(
            f"an arm of {len(pays)} states has {rows} rows, too many for points to fill "
            f"(at most {MOST_ROWS}); use a DirichletArmPrior"
        )
    passive = None
    if passive_rewards is not None:
        passive = numbers_array(passive_rewards, "spread_prior", "passive_rewards")
    return _candidates(
        tuple(pays.tolist()),
        None if passive is None else tuple(passive.ravel().tolist()),
        None if states is None else state_names(states, len(pays), "prior"),
        points,
        controlled,
        seen,
        helpful,
    )


@lru_cache(maxsize=8)  # kinds share their candidates, and with them the tables made of these
def _candidates(
    pays: tuple[float, ...],
    passive_pays: tuple[float, ...] | None,
    states: tuple[str, ...] | None,
    points: int,
    controlled: bool,
    seen: str,
    helpful: bool,
) -> ArmPrior:
    size = len(pays)
    rows = _spread_rows(points, size * (2 if controlled else 1), size)
    numbers = None
    if helpful:  # some points fall on each other
        rows, numbers = np.unique(_helpful(rows, size), axis=0, return_counts=True)
    return ArmPrior(
        [
            Arm(
                own[:size],
                own[size:] if controlled else None,
                pays,
                passive_pays,
                None,
                states,
                seen,
            )
            for own in rows
        ],
        numbers,
    )


def _helpful(rows: FloatArray, size: int) -> FloatArray:
    """Rows [points, 2 size, size] with the larger of both chances to do this well as the pulled.

    Of two laws the larger and the smaller chances of each state or a better one are laws again.
    With two states points that are even over all pairs are even over those in order.
    """
    well = np.cumsum(rows[:, :, ::-1], axis=2)  # chance of the best, of the two best, ...
    one, other = well[:, :size], well[:, size:]
    ordered = np.concatenate([np.maximum(one, other), np.minimum(one, other)], axis=1)
    ordered[:, :, -1] = 1.0
    return np.asarray(np.diff(ordered, axis=2, prepend=0.0)[:, :, ::-1])


def _spread_rows(points: int, rows: int, size: int) -> FloatArray:
    """Rows [points, rows, size] of probabilities, spread evenly.

    Each is mixed with a little of the uniform row, so that no chain is slower than SLOWEST.
    """
    generators = lattice_generators(points, rows * (size - 1), False)
    cube = (np.arange(points)[:, None] * generators % points + 0.5) / points
    laws = np.empty((points * rows, size))
    write_laws(cube.reshape(points * rows, size - 1), laws)
    found = SLOWEST * laws.reshape(points, rows, size) + (1 - SLOWEST) / size
    return np.asarray(found)
