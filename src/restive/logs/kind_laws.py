"""The law of a kind where pulls change how arms move, or with more than two states.

Two laws are fitted to the arms of a kind. One has any shape: weights of points that are spread over
all that an arm may be (`learn.kinds`), from all arms and all that was seen of them, their first
sightings too. So arms that gain much from a pull, are fine anyway, or are lost can be told
apart. But where arms are seen often, points are too far apart. The other law has one shape: each
row of an arm's matrices is Dirichlet, with the means and the variance that the arms' posteriors
have under it, on average.

Where arms were seen often, what each says of the later sightings, fitted on the earlier ones,
decides between them. Where they were seen a few times it is points: what one Dirichlet law cannot
say, that who gains from a pull in one state gains in others too, is then most of what can be known
of an arm, and points can be learnt on (`learn_kinds`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import exp, inf, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.kernels.elementary import exponentials, logarithms
from restive.learn.evidence import Evidence
from restive.learn.kinds import FIRST_SIGHT, KindEstimate, estimate_kind
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.spread import MOST_ROWS, spread_candidates
from restive.logs.counts import LogCounts, count_log, first_states
from restive.logs.finite import SharedCandidates, cells_of
from restive.logs.kind_words import KindShape, candidate_values, kind_shape
from restive.logs.log import Log

__all__ = [
    "KindLaw",
    "Seen",
    "dirichlet_law",
    "evenly_spread",
    "gain_of_points",
    "kind_law",
    "matched_parameters",
    "points_law",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[float], None]

EARLIER = 0.7  # share of the steps that laws are fitted on before they are compared
LEAST_LATER = 30  # sightings that are predicted, or nothing is compared
OFTEN = 20  # sightings of an arm beyond which points may be too far apart for what is known of it
COMPARED_ARMS = 10_000  # from which points are estimated before laws are compared
FEW_ARMS = 2000  # from which intervals are found
MOST_ROWS_HELD = 200_000  # arms of a kind whose likelihoods are held: 1.6 GB

# the search for a kind's Dirichlet parameters
FEW_PARTICLE_ARMS = 100  # are enough where each costs milliseconds
LEAST_PARAMETER = 0.05
UNKNOWN_ARMS = 2.0  # arms of which nothing is known, beside those seen: a few arms prove little
MOST_ALIKE = 500.0  # the largest sum of a row's parameters
ROUNDS = 12  # in which particles are drawn anew
CLOSE = 0.05  # relative change of parameters that ends the rounds, and a tenth of it each round
MOST_ITERATIONS = 500
WORN = 0.8  # effective share of the particles below which they are drawn anew


@dataclass(frozen=True, eq=False)
class Seen:
    """What was seen of all arms of a log, and how much of it by an earlier step."""

    names: tuple[str, ...]  # [K]
    counts: LogCounts
    first: IntArray  # [K] the state of each arm's first sighting, -1 without one
    earlier: LogCounts
    earlier_first: IntArray  # [K]
    controlled: bool

    @classmethod
    def of(cls, log: Log, counts: LogCounts, until: int, controlled: bool) -> Seen:
        """Return what was seen before step `until`, which `counts` has."""
        split = int(EARLIER * until)
        return cls(
            log.arms,
            counts,
            first_states(log, until, controlled),
            count_log(log, until=split, pulled_only=controlled),
            first_states(log, split, controlled),
            controlled,
        )


@dataclass(frozen=True, eq=False)
class KindLaw:
    """What arms of a kind may be, and why this law was taken."""

    prior: ArmPrior | DirichletArmPrior
    why: str
    shape: KindShape | None = None  # in words, where asked for


def kind_law(
    seen: Seen,
    arms: IntArray,
    pays: Mapping[str, Any],
    progress: Progress = lambda share: None,
    in_words: bool = True,
) -> KindLaw:
    """Return the law that the arms of a kind speak for.

    Parameters
    ----------
    seen, arms
        What was seen, and which arms are of the kind.
    pays
        Rewards, those of arms that are not pulled, and the names of states.
    progress
        Called with the share that is done.
    in_words
        Whether to say what shape the law has.
    """
    size = seen.counts.num_states
    if size * (1 + seen.controlled) > MOST_ROWS:
        prior = dirichlet_law(seen.counts, arms, pays, seen.controlled)
        return KindLaw(
            prior, f"one Dirichlet law, since {size} states are too many for points", None
        )
    base = spread_candidates(**pays, controlled=seen.controlled)
    later = int(seen.counts.totals[arms].sum() - seen.earlier.totals[arms].sum())
    often = float(np.median(seen.counts.totals[arms])) > OFTEN if len(arms) else False
    gain, stderr = 0.0, inf
    if often and later >= LEAST_LATER:
        gain, stderr = gain_of_points(seen, base, arms, pays, lambda share: progress(0.6 * share))
    decided = abs(gain) > 1.96 * stderr
    rest = _rest(progress, 0.6 if often else 0.0)
    if often and (gain < 0 or not decided):
        prior = dirichlet_law(seen.counts, arms, pays, seen.controlled, rest)
        return KindLaw(prior, f"one Dirichlet law, {_why(-gain, decided, 'points do', often)}")
    found = _shaped(base, seen.counts, seen.first, arms, rest)
    shape = _shape(base, seen, arms) if in_words else None
    if not found.num_arms:
        why = "no arm of it was seen, so all chains are held equally likely"
        return KindLaw(found.prior, why)
    law = f"weights of {len(base.candidates):,} points from {counted(found.num_arms, 'arm')}"
    if found.num_arms == 1:
        law += " (one arm says little about others of its kind)"
    other = "one Dirichlet law does"
    return KindLaw(found.prior, f"{law}, {_why(gain, decided, other, often)}", shape)


def points_law(seen: Seen, arms: IntArray, pays: Mapping[str, Any]) -> ArmPrior | None:
    """Return the law of any shape that the arms of a kind speak for; None with many states."""
    if seen.counts.num_states * (1 + seen.controlled) > MOST_ROWS:
        return None
    base = spread_candidates(**pays, controlled=seen.controlled)
    return _shaped(base, seen.counts, seen.first, arms).prior


def _shape(base: ArmPrior, seen: Seen, arms: IntArray) -> KindShape:
    """Say in words what the arms say; of very many some, so that its intervals are wider."""
    some = evenly_spread(arms, FEW_ARMS)
    values = candidate_values(base)[1]
    return kind_shape(base, _shaped(base, seen.counts, seen.first, some, values=values))


def _rest(progress: Progress, done: float) -> Progress:
    return lambda share: progress(done + (1 - done) * share)


def _why(gain: float, decided: bool, other: str, often: bool) -> str:
    if decided:
        percent = f"{100 * (exp(gain) - 1):+.1f}%"
        return f"which predicts later sightings better than {other} ({percent} chance for each)"
    if often:
        return "since its arms were seen often (later sightings do not tell which law is better)"
    return "since its arms were seen a few times each"


def _shaped(
    base: ArmPrior, counts: LogCounts, first: IntArray, arms: IntArray,
    progress: Progress = lambda share: None, values: FloatArray | None = None,
) -> KindEstimate:  # fmt: skip
    """Estimate the weights of points, from all arms of a kind (some, of very many)."""
    arms = evenly_spread(arms, MOST_ROWS_HELD)
    starts, places = cells_of(counts, arms)
    last, ages, states = counts.unpacked(counts.cells[places])
    begun = arms[first[arms] >= 0]
    return estimate_kind(
        base,
        np.concatenate([np.repeat(arms, np.diff(starts)), begun]),
        np.concatenate([last, np.zeros_like(begun)]),
        np.concatenate([ages, np.full_like(begun, FIRST_SIGHT)]),
        np.concatenate([states, first[begun]]),
        np.concatenate([counts.counts[places], np.ones_like(begun)]),
        values=values,
        progress=progress,
    )


def gain_of_points(
    seen: Seen,
    base: ArmPrior,
    arms: IntArray,
    pays: Mapping[str, Any],
    progress: Progress = lambda share: None,
) -> tuple[float, float]:
    """Mean difference in log chance of later sightings between points and a Dirichlet law.

    Both are fitted on the earlier sightings; an arm's own earlier ones count too. Arms are the
    units of the standard error.
    """
    begun = evenly_spread(arms, COMPARED_ARMS)
    shaped = _shaped(
        base, seen.earlier, seen.earlier_first, begun, lambda share: progress(0.2 * share)
    ).prior
    dirichlet = dirichlet_law(
        seen.earlier, arms, pays, seen.controlled, lambda share: progress(0.2 + 0.6 * share)
    )
    later = seen.counts.totals - seen.earlier.totals
    some = evenly_spread(arms[later[arms] > 0], FEW_PARTICLE_ARMS)
    shared = SharedCandidates(shaped, seen.names)
    prior = logarithms(shaped.weights)
    whole, before = (
        _log_sums(shared.log_likelihoods(part, some) + prior)
        for part in (seen.counts, seen.earlier)
    )
    gains = whole - before
    for at, k in enumerate(some.tolist()):
        gains[at] -= _log_evidence(dirichlet, seen.counts.evidence(k))
        gains[at] += _log_evidence(dirichlet, seen.earlier.evidence(k))
    progress(1.0)
    own, count = later[some], len(some)
    mean = float(gains.sum() / own.sum())
    if count < 2:
        return mean, inf
    spread = count / (count - 1) * float(((gains - mean * own) ** 2).sum())
    return mean, sqrt(spread) / float(own.sum())


def _log_sums(logs: FloatArray) -> FloatArray:
    """Logarithms [K] of the sums of numbers whose logarithms are [K, M]."""
    largest = logs.max(axis=1)
    return np.asarray(largest + logarithms(exponentials(logs - largest[:, None]).sum(axis=1)))


def _log_evidence(prior: DirichletArmPrior, evidence: Evidence) -> float:
    found = prior.given(evidence).particles().log_evidence if evidence.total else 0.0
    assert found is not None  # it is known of particles of one evidence
    return found


def dirichlet_law(
    counts: LogCounts,
    arms: IntArray,
    pays: Mapping[str, Any],
    controlled: bool,
    progress: Progress = lambda share: None,
) -> DirichletArmPrior:
    """Return the Dirichlet law that these arms speak for.

    Particles of the arms are drawn under one law and weighed for others, until the parameters
    settle or few particles count; then they are drawn anew, until that changes little.
    """
    size = counts.num_states
    shape = (size * (2 if controlled else 1), size)
    seen_again = arms[counts.totals[arms] > 0]
    some = [counts.evidence(k) for k in evenly_spread(seen_again, FEW_PARTICLE_ARMS).tolist()]
    parameters = np.ones(shape)
    for r in range(ROUNDS if some else 0):
        prior = _prior(parameters, controlled, pays)
        rows, weights = [], []
        for k, evidence in enumerate(some):
            found = prior.given(evidence).particles()
            both = np.concatenate([found.active, found.passive], axis=1)
            rows.append(both[:, : len(parameters)])
            weights.append(found.weights)
            progress((r + (k + 1) / len(some)) / ROUNDS)
        drawn_under = parameters
        parameters = _settled(np.array(rows), np.array(weights), parameters, len(arms))
        if np.abs(parameters / drawn_under - 1).max() < CLOSE:
            break
    progress(1.0)
    return _prior(parameters, controlled, pays)


def _settled(
    rows: FloatArray, weights: FloatArray, drawn_under: FloatArray, num_arms: int
) -> FloatArray:
    """Parameters [rows, S] that settle for particles [K, P, rows, S] with weights [K, P]."""
    logs = logarithms(np.maximum(rows, 1e-300))
    parameters = drawn_under
    worth = (1 / (weights**2).sum(axis=1)).mean()
    for _ in range(MOST_ITERATIONS):
        moved = (logs * (parameters - drawn_under)).sum(axis=(2, 3))
        own = weights * exponentials(moved - moved.max(axis=1)[:, None])
        own /= own.sum(axis=1)[:, None]
        if (1 / (own**2).sum(axis=1)).mean() < WORN * worth:
            break
        moments = [
            (own[:, :, None, None] * rows**power).sum(axis=1).mean(axis=0) for power in (1, 2)
        ]
        found = matched_parameters(moments[0], moments[1], num_arms)
        change = np.abs(found / parameters - 1).max()
        parameters = found
        if change < CLOSE / 10:
            break
    return parameters


def _prior(parameters: FloatArray, controlled: bool, pays: Mapping[str, Any]) -> DirichletArmPrior:
    size = parameters.shape[1]
    return DirichletArmPrior(parameters[:size], parameters[size:] if controlled else None, **pays)


def evenly_spread(arms: IntArray, most: int) -> IntArray:
    """Return at most so many arms, evenly spread."""
    return arms[:: max(-(-len(arms) // most), 1)]


def matched_parameters(first: FloatArray, second: FloatArray, num_arms: int) -> FloatArray:
    """Dirichlet parameters [rows, S] with the means and the total variance that arms have.

    `first` and `second` are the arms' mean moments; arms of which nothing is known, whose rows are
    uniform, are added.
    """
    size = first.shape[1]
    share = UNKNOWN_ARMS / (num_arms + UNKNOWN_ARMS)
    means = (1 - share) * first + share / size
    squares = (1 - share) * second + share * 2 / (size * (size + 1))
    spread = (squares - means**2).sum(axis=1)
    alike = (means * (1 - means)).sum(axis=1) / np.maximum(spread, 1e-12) - 1
    parameters = means * np.clip(alike, 0.5, MOST_ALIKE)[:, None]
    return np.asarray(np.maximum(parameters, LEAST_PARAMETER))
