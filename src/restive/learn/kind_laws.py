"""Laws of kinds that a learner estimates while it runs, from all its arms.

A kind is the arms whose priors are one `ArmPrior`, or come from one by evidence. The posterior of
an arm is its kind's law times the likelihood of what was seen of it, so the likelihoods are there
already: weights over law. From them the law is estimated anew (`kinds.estimate_law`, empirical
Bayes), and every arm's weights are multiplied by what it has changed by; arms that were never seen,
and those that join later, start from the law itself.

Kinds of which the same was known beforehand are themselves alike for all one knows: the law of all
their arms together is estimated first, and each kind starts from that. Else a kind that was looked
at by chance would seem better than those that were not, and be looked at for ever.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.weights import add_up_groups, multiply_groups, rescale_groups
from restive.kernels.loop.tables import EpisodeClock, Posterior
from restive.learn.kinds import estimate_law
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.learn.slots import home_of_weights, home_size, lane_places
from restive.learn.task import Task

__all__ = ["KindLaws"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

LEAST_WEIGHT = 1e-150  # of a candidate: what its share may change by is a number all the same


class KindLaws:
    """The laws of all kinds of a task's arms, as they are estimated now.

    Parameters
    ----------
    task
        Whose prior must be independent and have arms with candidates.
    learner
        Whose errors these are.
    """

    def __init__(self, task: Task, learner: str) -> None:
        prior = task.prior
        arms = prior.arms if isinstance(prior, IndependentPrior) else ()
        self.kinds: list[ArmPrior] = []
        self.laws: list[FloatArray] = []  # by kind
        self.pools: list[dict[int, ArmPrior]] = []  # by kind: pools of its arms
        self.groups: list[IntArray] = []  # by kind: groups of its arms
        self.kind_of_arm = np.full(task.num_arms, -1, dtype=np.int64)
        numbers: dict[int, int] = {}
        for k, arm in enumerate(arms):
            if isinstance(arm, ArmPrior):
                number = numbers.setdefault(id(arm.kind), len(self.kinds))
                if number == len(self.kinds):
                    self.kinds.append(arm.kind)
                    self.laws.append(arm.kind.weights)
                    self.pools.append({})
                self.pools[number][int(task.choices.pool_of_arm[k])] = arm
                self.kind_of_arm[k] = number
        if not self.kinds:
            raise ProblemError(
                f"learner {learner}: learn_kinds needs arms with priors of candidates; make the "
                "prior with spread_prior"
            )
        if any(bool(((law > 0) & (law < LEAST_WEIGHT)).any()) for law in self.laws):
            raise ProblemError(
                f"learner {learner}: learn_kinds needs candidates whose weights are at least "
                f"{LEAST_WEIGHT:.0e}; leave the others out of the prior"
            )
        self.alike = _alike(self.kinds)
        groups = task.choices.groups
        self.groups = [np.unique(groups[self.kind_of_arm == n]) for n in range(len(self.kinds))]
        self.pool_of_group = task.choices.pool_of_group

    def forget(self) -> None:
        """Go back to the laws of the prior."""
        self.laws = [kind.weights for kind in self.kinds]

    def learn(self, posterior: Posterior, clock: EpisodeClock, t: int) -> None:
        """Estimate all laws anew at time t; the next episode begins with them."""
        if clock.kinds_learnt == 0:
            self.forget()
        handle = Handle(posterior)
        multiply_groups(handle.where)
        found = [self._likelihoods(posterior, number) for number in range(len(self.kinds))]
        bases = self._bases([likelihoods for _, likelihoods in found])
        for number, (own, likelihoods) in enumerate(found):
            old = self.laws[number]
            law = estimate_law(bases[number], likelihoods) if len(likelihoods) else bases[number]
            self.laws[number] = law
            places = lane_places(len(law))
            ratio = np.divide(law, old, out=np.zeros_like(law), where=old > 0)
            for group in own.tolist():
                posterior.weights.numbers[posterior.weights.homes[group] + places] *= ratio
            rescale_groups(handle.where, own)
        self.use(posterior)
        clock.kinds_learnt += 1
        clock.kinds_due = t + t // 2
        clock.doubled = 1  # which ends the episode: what it drew is from the old law

    def _bases(self, likelihoods: list[FloatArray]) -> list[FloatArray]:
        """Laws that the kinds start from: that of all arms of kinds that were alike beforehand."""
        bases = [kind.weights for kind in self.kinds]
        for alike in self.alike:
            seen = np.concatenate([likelihoods[number] for number in alike])
            if len(alike) > 1 and len(seen):
                together = estimate_law(bases[alike[0]], seen)
                for number in alike:
                    bases[number] = together
        return bases

    def _likelihoods(self, posterior: Posterior, number: int) -> tuple[IntArray, FloatArray]:
        """Groups of a kind that have weights of their own, and likelihoods of all that was seen.

        Of arms that come from evidence and were not seen since, too; up to a factor for each.
        """
        kind, law, weights = self.kinds[number], self.laws[number], posterior.weights
        groups = self.groups[number]
        is_own = weights.homes[groups] >= weights.status[0].shared
        own, others = groups[is_own], groups[~is_own]
        places = lane_places(len(law))
        rows = posterior.slots.row_counts[groups[0]]
        lifts = home_size(int(rows)) - int(rows) * LANES
        found = np.zeros((len(own), len(law)))
        for i, home in enumerate(weights.homes[own].tolist()):
            lift = weights.numbers[home + lifts + places].astype(np.int64)
            found[i] = np.ldexp(weights.numbers[home + places], -lift)
        np.divide(found, law, out=found, where=law > 0)
        informed = [
            np.divide(arm.weights, kind.weights, out=np.zeros_like(law), where=kind.weights > 0)
            for pool in self.pool_of_group[others].tolist()
            if (arm := self.pools[number][pool]) is not kind
        ]
        return own, np.concatenate([found, np.array(informed).reshape(-1, len(law))])

    def use(self, posterior: Posterior) -> None:
        """Let all groups that have no weights of their own follow the laws."""
        weights = posterior.weights
        shared = int(weights.status[0].shared) // 2  # the prior's homes, then the laws' homes
        for number, kind in enumerate(self.kinds):
            groups = self.groups[number]
            follow = groups[weights.homes[groups] < 2 * shared]
            weights.homes[follow] = weights.first_homes[follow] + shared
            weights.changed[follow] = True
            # homes of all pools, since weights that fade come back to them
            pools, first = np.unique(self.pool_of_group[groups], return_index=True)
            for pool, group in zip(pools.tolist(), groups[first].tolist(), strict=True):
                own = self.pools[number][pool].weights
                ratio = np.divide(
                    self.laws[number], kind.weights, out=np.zeros_like(own), where=kind.weights > 0
                )
                home = home_of_weights(own * ratio / (own * ratio).sum())
                begin = int(weights.first_homes[group]) + shared
                weights.numbers[begin : begin + len(home)] = home
            _, first = np.unique(self.pool_of_group[follow], return_index=True)
            add_up_groups(Handle(posterior).where, follow[first])

    def to_data(self, clock: EpisodeClock) -> dict[str, Any]:
        """Return the laws, and when they are estimated next, as plain data."""
        learnt = int(clock.kinds_learnt)
        laws = [law.tolist() for law in self.laws] if learnt else []
        return {"due": int(clock.kinds_due), "learnt": learnt, "laws": laws}


def _alike(kinds: list[ArmPrior]) -> list[list[int]]:
    """Numbers of kinds, those together that have the same candidates with the same weights."""
    found: list[list[int]] = []
    for number, kind in enumerate(kinds):
        for some in found:
            other = kinds[some[0]]
            if kind.candidates == other.candidates and np.array_equal(kind.weights, other.weights):
                some.append(number)
                break
        else:
            found.append([number])
    return found
