"""Lists by the mean of Whittle's index over all that an arm may be, as an agent makes them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.learn.make import make_learner
from restive.learn.priors.finite import ArmPrior
from restive.logs.fitted import FittedLog
from restive.logs.prior_file import PriorFile
from restive.plan.picks import Pick, pick_of
from restive.plan.policies.base import IndexPolicy, tabled_policy
from restive.plan.policies.whittle import whittle_table
from restive.problem.arm import arm_label
from restive.problem.bandit import Kinds, RestlessBandit

__all__ = ["mean_index_policy", "picks_of_prior"]

FloatArray = NDArray[np.float64]

MOST_AGES = 80  # that are told apart
LITTLE = 1e-6  # weight of a candidate, over all arms, that is left out


def mean_index_policy(fitted: FittedLog, bandit: RestlessBandit) -> IndexPolicy:
    """Return the policy of the mean index; of arms without candidates, the index of their means.

    Parameters
    ----------
    fitted
        From `fit_log`.
    bandit
        What its arms are on average.
    """
    size = fitted.log.num_states
    ages = 1 if fitted.seen == "always" else MOST_AGES
    tables = np.empty((bandit.num_arms, size, ages))
    for kind, prior in enumerate(fitted.kind_priors):
        own = np.flatnonzero(fitted.log.kind_of == kind)
        if not isinstance(prior, ArmPrior):
            for k in own.tolist():
                tables[k] = whittle_table(bandit.arms[k], ages)
            continue
        weights = fitted.weights(kind, own)
        used = np.flatnonzero(weights.sum(axis=0) > LITTLE * len(own))
        of_points = np.array([whittle_table(prior.candidates[m], ages) for m in used.tolist()])
        kept = weights[:, used] / weights[:, used].sum(axis=1, keepdims=True)
        tables[own] = np.einsum("km,msn->ksn", kept, of_points)
    labels = tuple(arm_label(arm) for arm in bandit.arms)
    kinds = Kinds(tuple(bandit.arms), labels, np.arange(bandit.num_arms))
    return tabled_policy(bandit, kinds, list(tables), "mean index")


def picks_of_prior(found: PriorFile, num_pulls: int | None = None) -> list[Pick]:
    """Return the arms that an agent with this prior pulls first, the highest mean index first."""
    agent = make_learner(
        "mean_index", found.prior, found.pulls if num_pulls is None else num_pulls,
        start=found.start,
    )  # fmt: skip
    chosen = agent.select()
    index = agent.index()[chosen]
    order = np.argsort(-index, kind="stable")
    picks = []
    for place, at in enumerate(order.tolist(), 1):
        k, prior = int(chosen[at]), found.prior.arms[int(chosen[at])]
        chances = agent.belief(k)
        picks.append(
            pick_of(place, k, prior.typical, found.start, float(index[at]), chances, found.names[k])
        )
    return picks
