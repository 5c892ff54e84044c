"""Priors that were given for the arms of a log: for all of them, or kind by kind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.learn.evidence import Evidence
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.logs.log import Log

__all__ = ["AnyArmPrior", "given_priors", "passive_rewards_of"]

FloatArray = NDArray[np.float64]


class AnyArmPrior(Protocol):
    """What an arm may be: anything that can be given evidence."""

    def given(self, evidence: Evidence) -> Any:
        """Return what it may be once this was seen of it."""


def given_priors(
    log: Log, prior: Any, rewards: FloatArray, unpulled: FloatArray | None
) -> dict[str, AnyArmPrior]:
    """Return the priors that were given, by kind: of at least one that the log has."""
    if isinstance(prior, IndependentPrior):
        if len(set(map(id, prior.arms))) > 1:
            raise ProblemError(
                "prior must be of one arm (or a dict with one for each kind); this one differs "
                "between arms"
            )
        if prior.pooled:
            raise ProblemError("a fit learns of each arm by itself: leave pooled out of the prior")
        prior = prior.arms[0]
    if not isinstance(prior, Mapping):
        prior = dict.fromkeys(log.kinds, prior)
    known = [kind for kind in log.kinds if kind in prior]
    if not known:
        raise ProblemError(
            f"prior has no kind {log.kinds[0]!r}; it has {', '.join(map(repr, prior))}"
        )
    for kind in known:
        if not hasattr(prior[kind], "given"):
            raise ProblemError(
                f"prior of kind {kind!r} must be an ArmPrior or a DirichletArmPrior, got "
                f"{prior[kind]!r:.60}"
            )
        _require_fits(prior[kind], kind, log, rewards)
        if unpulled is None:
            unpulled = passive_rewards_of(prior[known[0]])
        _require_pays(prior[kind], kind, unpulled)
    return {kind: prior[kind] for kind in known}


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
