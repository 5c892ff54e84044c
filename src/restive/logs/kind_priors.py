"""What arms of each kind may be, before anything was seen: as given, or estimated from the log.

An estimated prior is that of the kind's arms taken together (empirical Bayes). Where pulls change
how arms move, or with more than two states, `kind_laws` has it. Else p01 and p11 have Beta laws
whose parameters are those that the arms of the kind speak for: the law's means and its variance are
those of the arms' posteriors under it, on average. A freely chosen distribution on the grid (NPMLE)
fits better still but puts weight just where each arm happened to be seen: its 90% intervals covered
70% of the truths where 40 arms were seen 160 times each.

Arms of two states have their law on a grid of p01 and p11, finer where more was seen. Levels of a
probability are sin^2 of equally spaced angles, since the standard error of an estimated probability
is the same everywhere on that scale. Each has the weight of its stretch of [0, 1], so that the grid
stands for the uniform distribution.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from itertools import product
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.errors import ProblemError
from restive.kernels.elementary import exponentials, logarithms, sines
from restive.kernels.logs.fit import mean_posterior
from restive.learn.evidence import Evidence
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior
from restive.learn.priors.spread import SLOWEST
from restive.logs.counts import LogCounts
from restive.logs.finite import SharedCandidates
from restive.logs.kind_laws import Seen, evenly_spread, kind_law, matched_parameters
from restive.logs.kind_words import KindShape
from restive.logs.log import Log
from restive.problem.arm import gilbert_elliott

__all__ = [
    "AnyArmPrior",
    "empirical_grid",
    "grid_candidates",
    "grid_levels",
    "kind_priors_of",
    "passive_rewards_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# the grid of two-state arms
LEAST_LEVELS, MOST_LEVELS = 16, 64
MOST_WEIGHTS = 20_000_000  # arms times candidates

# the search for the parameters of a kind on the grid
CLOSE = 1e-3  # relative change of parameters that ends it
MOST_ITERATIONS = 300


class AnyArmPrior(Protocol):
    """What an arm may be: anything that can be given evidence."""

    def given(self, evidence: Evidence) -> Any:
        """Return what it may be once this was seen."""


def kind_priors_of(
    log: Log, counts: LogCounts, prior: Any, rewards: FloatArray, unpulled: FloatArray | None,
    controlled: bool, notes: list[str], shapes: dict[str, KindShape], until: int,
    progress: Callable[[float], None],
) -> tuple[AnyArmPrior, ...]:  # fmt: skip
    """Return the prior of each kind: as given, or estimated.

    `notes` gets what to say of it, `shapes` what an estimated law of any shape is like.
    What was seen before step `until` counts.
    """
    if prior is None:
        return _empirical(
            log, counts, rewards, unpulled, controlled, notes, shapes, until, progress
        )
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
    if len(known) == len(log.kinds):
        return tuple(prior[kind] for kind in log.kinds)
    controlled = controlled or not all(getattr(prior[k], "moves_alike", True) for k in known)
    estimated = _empirical(log, counts, rewards, unpulled, controlled, [], {}, until, progress)
    notes += [
        f"prior has no kind {kind!r}: what its arms may be is estimated from the log"
        for kind in log.kinds
        if kind not in prior
    ]
    return tuple(prior.get(k, own) for k, own in zip(log.kinds, estimated, strict=True))


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
    controlled: bool, notes: list[str], shapes: dict[str, KindShape], until: int,
    progress: Callable[[float], None],
) -> tuple[AnyArmPrior, ...]:  # fmt: skip
    own = [np.flatnonzero(log.kind_of == kind) for kind in range(len(log.kinds))]
    if log.num_states > 2 or controlled:
        pays = {"rewards": rewards, "passive_rewards": unpulled, "states": log.state_names}
        seen = Seen.of(log, counts, until, controlled)
        found = []
        for k, arms in enumerate(own):
            part = partial(_within, progress, k, len(own))
            found.append(kind_law(seen, arms, pays, part, in_words=until == log.num_steps))
        notes += [f"kind {name!r}: {law.why}" for name, law in zip(log.kinds, found, strict=True)]
        shapes.update(
            (name, law.shape)
            for name, law in zip(log.kinds, found, strict=True)
            if law.shape is not None
        )
        return tuple(law.prior for law in found)
    levels = _num_levels(float(np.median(counts.totals)), log.num_arms)
    base = grid_candidates(rewards, levels, log.state_names, unpulled)
    if levels == MOST_LEVELS:
        notes.append(
            f"arms were seen so often that their intervals are hardly wider than the {MOST_LEVELS} "
            "levels of the grid; for narrower ones pass prior = rs.beta_prior(1).arms[0]"
        )
    most = MOST_WEIGHTS // len(base.candidates)
    for name, arms in zip(log.kinds, own, strict=True):
        if len(arms) > most:
            notes.append(
                f"the prior of kind {name!r} was estimated from about {most:,} of its "
                f"{len(arms):,} arms, evenly spread"
            )
    return tuple(empirical_grid(base, counts, arms, log.arms)[0] for arms in own)


def _within(progress: Callable[[float], None], kind: int, kinds: int, share: float) -> None:
    progress((kind + share) / kinds)


def _num_levels(seen_again: float, num_arms: int) -> int:
    """Levels of each probability, for arms that were seen again so often (the median)."""
    wanted = np.pi * np.sqrt(max(seen_again, 1) / 2)  # a spacing of one standard error
    room = np.sqrt(MOST_WEIGHTS / num_arms)
    return int(np.clip(min(wanted, room), LEAST_LEVELS, MOST_LEVELS))


def grid_levels(count: int) -> tuple[FloatArray, FloatArray]:
    """Levels [L] in (0, 1) and the widths [L] of their stretches."""
    edges = sines(np.arange(count + 1) / (4 * count)) ** 2
    return sines((np.arange(count) + 0.5) / (4 * count)) ** 2, np.diff(edges)


def grid_candidates(
    rewards: ArrayLike,
    levels: int,
    states: Sequence[str] | None = None,
    passive_rewards: ArrayLike | None = None,
) -> ArmPrior:
    """Return the uniform distribution over chains of two states, on a grid.

    Parameters
    ----------
    rewards
        Reward of the bad and of the good state.
    levels
        Levels of p01 and of p11.
    states
        Names of the two states.
    passive_rewards
        What each pays while the arm is not pulled; nothing by default.
    """
    passive = None if passive_rewards is None else _row(passive_rewards)
    return _grid(_row(rewards), levels, None if states is None else tuple(states), passive)


def _row(values: ArrayLike) -> tuple[float, ...]:
    return tuple(np.asarray(values, dtype=np.float64).tolist())


@lru_cache(maxsize=4)  # a log is fitted twice: the whole and its earlier part
def _grid(
    rewards: tuple[float, ...],
    levels: int,
    states: tuple[str, ...] | None,
    passive_rewards: tuple[float, ...] | None,
) -> ArmPrior:
    good, widths = grid_levels(levels)
    candidates, masses = [], []
    for i, j in product(range(levels), repeat=2):
        if abs(good[j] - good[i]) <= SLOWEST:
            candidates.append(
                gilbert_elliott(good[i], good[j], rewards, passive_rewards, states=states)
            )
            masses.append(widths[i] * widths[j])
    return ArmPrior(candidates, masses)


def empirical_grid(
    base: ArmPrior, counts: LogCounts, arms: IntArray, names: Sequence[str]
) -> tuple[ArmPrior, FloatArray]:
    """Return the prior that these arms speak for, on the grid of `base`, and its parameters [S, S].

    Parameters
    ----------
    base
        The uniform distribution on a grid.
    counts, arms, names
        What was seen, which arms of it are of the kind, and all arms' names.
    """
    shared = SharedCandidates(base, names)
    some = evenly_spread(arms, MOST_WEIGHTS // len(base.candidates))
    likelihoods = shared.log_likelihoods(counts, some)
    likelihoods = exponentials(likelihoods - likelihoods.max(axis=1)[:, None])
    rows = shared.matrices[0]  # [M, S, S]
    log_rows = logarithms(rows)
    parameters = np.ones(rows.shape[1:])
    for _ in range(MOST_ITERATIONS):
        weights = mean_posterior(likelihoods, _weights(base.weights, log_rows, parameters))
        moments = [(weights[:, None, None] * rows**power).sum(axis=0) for power in (1, 2)]
        found = matched_parameters(moments[0], moments[1], len(likelihoods))
        change = np.abs(found / parameters - 1).max()
        parameters = found
        if change < CLOSE:
            break
    return base.with_weights(_weights(base.weights, log_rows, parameters)), parameters


def _weights(base: FloatArray, log_rows: FloatArray, parameters: FloatArray) -> FloatArray:
    """Weights [M] of candidates under Dirichlet laws with parameters [S, S]."""
    logs = ((parameters - 1) * log_rows).sum(axis=(1, 2))
    weights = base * exponentials(logs - logs.max())
    return np.asarray(weights / weights.sum())
