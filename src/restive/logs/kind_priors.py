"""What arms of each kind may be, before anything was seen: as given, or estimated from the log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.evidence import Evidence
from restive.logs.candidates import MOST_LEVELS, grid_candidates, num_levels
from restive.logs.counts import LogCounts
from restive.logs.empirical import FEW_ARMS, empirical_dirichlet, empirical_grid
from restive.prior import ArmPrior, IndependentPrior
from restive.sightings import Log

__all__ = ["AnyArmPrior", "kind_priors_of", "passive_rewards_of"]

FloatArray = NDArray[np.float64]


class AnyArmPrior(Protocol):
    """What an arm may be: anything that can be given evidence."""

    def given(self, evidence: Evidence) -> Any:
        """Return what it may be once this was seen."""


def kind_priors_of(
    log: Log, counts: LogCounts, prior: Any, rewards: FloatArray, unpulled: FloatArray | None,
    controlled: bool, notes: list[str],
) -> tuple[AnyArmPrior, ...]:  # fmt: skip
    """Return the prior of each kind: as given, or estimated; `notes` gets what to say of it."""
    if prior is None:
        return _empirical(log, counts, rewards, unpulled, controlled, notes)
    if isinstance(prior, IndependentPrior):
        if len(set(map(id, prior.arms))) > 1:
            raise ProblemError(
                "prior must be of one arm (or a dict with one for each kind); this one differs "
                "between arms"
            )
        prior = prior.arms[0]
    if not isinstance(prior, Mapping):
        prior = dict.fromkeys(log.kinds, prior)
    for kind in log.kinds:
        if kind not in prior:
            raise ProblemError(f"prior has no kind {kind!r}; it has {', '.join(map(repr, prior))}")
        if not hasattr(prior[kind], "given"):
            raise ProblemError(
                f"prior of kind {kind!r} must be an ArmPrior or a DirichletArmPrior, got "
                f"{prior[kind]!r:.60}"
            )
        _require_fits(prior[kind], kind, log, rewards)
        if unpulled is None:
            unpulled = passive_rewards_of(prior[log.kinds[0]])
        _require_pays(prior[kind], kind, unpulled)
    return tuple(prior[kind] for kind in log.kinds)


def passive_rewards_of(prior: Any) -> FloatArray | None:
    """What arms of a prior pay while they are not pulled [S]; None for nothing."""
    like = prior.candidates[0] if isinstance(prior, ArmPrior) else prior
    found = getattr(like, "passive_rewards", None)
    return None if found is None or not found.any() else found


def _require_pays(prior: Any, kind: str, unpulled: FloatArray | None) -> None:
    asked = None if unpulled is None or not unpulled.any() else unpulled
    wanted, own = (None if r is None else r.tolist() for r in (asked, passive_rewards_of(prior)))
    if own != wanted:
        raise ProblemError(
            f"prior of kind {kind!r} has arms that pay {own or 'nothing'} while not pulled, "
            f"expected {wanted or 'nothing'}; make all priors with the same passive_rewards"
        )


def _require_fits(prior: Any, kind: str, log: Log, rewards: FloatArray) -> None:
    like = prior.candidates[0] if isinstance(prior, ArmPrior) else prior
    if like.num_states != log.num_states:
        raise ProblemError(
            f"prior of kind {kind!r} is of arms with {like.num_states} states, the log has "
            f"{log.num_states}: {', '.join(log.states)}"
        )
    if not np.array_equal(like.rewards, rewards):
        raise ProblemError(
            f"prior of kind {kind!r} has rewards {like.rewards.tolist()}, the log's are "
            f"{rewards.tolist()}; pass the same rewards"
        )


def _empirical(
    log: Log, counts: LogCounts, rewards: FloatArray, unpulled: FloatArray | None,
    controlled: bool, notes: list[str],
) -> tuple[AnyArmPrior, ...]:  # fmt: skip
    own = [np.flatnonzero(log.kind_of == kind) for kind in range(len(log.kinds))]
    if log.num_states > 2 or controlled:
        return tuple(
            empirical_dirichlet(counts, arms, rewards, controlled, log.state_names, unpulled)
            for arms in own
        )
    levels = num_levels(float(np.median(counts.totals)), log.num_arms)
    base = grid_candidates(rewards, levels, log.state_names, unpulled)
    if levels == MOST_LEVELS:
        notes.append(
            f"arms were seen so often that their intervals are hardly wider than the {MOST_LEVELS} "
            "levels of the grid; for narrower ones pass prior = rs.beta_prior(1).arms[0]"
        )
    for name, arms in zip(log.kinds, own, strict=True):
        if len(arms) > FEW_ARMS:
            notes.append(
                f"the prior of kind {name!r} was estimated from about {FEW_ARMS:,} of its "
                f"{len(arms):,} arms, evenly spread"
            )
    return tuple(empirical_grid(base, counts, arms, log.arms)[0] for arms in own)
