"""Forgetting: what was seen counts less as time goes by.

The posterior is the prior, given evidence that decays. Every so many steps all that was seen so far
loses the same share of its weight: likelihoods are raised to a power below 1, counts are multiplied
by it. Nothing becomes possible again that was ruled out.
"""

from __future__ import annotations

from math import inf

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import part, place
from restive.kernels.jit.vectors import LANES
from restive.kernels.learn.weights import lifts_at, multiply_pending, rescale
from restive.kernels.loop.tables import LIFTED, Posterior

__all__ = ["fade_moves", "fade_weights"]

LN2 = 0.6931471805599453
FAINTEST = 2.0**-600  # of a move: less is as good as none, and would be slow to compute with


@part
def fade_weights(posterior: Posterior, share: float, laws_learnt: int) -> None:
    """Let what was seen weigh `share` of what it did: w = p (w / p)^share, p without it.

    p is the law of the arm's kind, once that has been learnt.
    """
    weights = posterior.weights
    law = weights.status[0].shared // 2 if laws_learnt > 0 else 0
    for group in range(len(weights.homes)):
        multiply_pending(posterior, group)
        if weights.homes[group] >= weights.status[0].shared:  # or nothing was seen of it
            _fade(posterior, group, share, weights.first_homes[group] + law)


@part
def _fade(posterior: Posterior, group: int, share: float, first: int) -> None:
    """Fade the weights of a group whose weights were those at `first`."""
    slots, weights = posterior.slots, posterior.weights
    numbers, rows, home = weights.numbers, slots.row_counts[group], weights.homes[group]
    lifts, first_lifts = lifts_at(home, rows), lifts_at(first, rows)
    rescale(posterior, group)  # weights that mean the same are the same: so are their logarithms
    largest = -inf
    for j in range(rows * LANES):
        now, before = numbers[place(home + j)], numbers[place(first + j)]
        log = -inf
        if now > 0.0 and before > 0.0:
            prior = logarithm(before) - LN2 * numbers[place(first_lifts + j)]
            seen = logarithm(now) - LN2 * numbers[place(lifts + j)] - prior
            log = prior + share * seen
            largest = max(largest, log)
        numbers[place(home + j)] = log
    for j in range(rows * LANES):
        log, lift = numbers[place(home + j)], 0
        if log > -inf:
            lift = max(LIFTED - int((log - largest) / LN2), 0)
            numbers[place(home + j)] = exponential(log - largest + LN2 * lift)
        else:
            numbers[place(home + j)] = 0.0
        numbers[place(lifts + j)] = lift
    rescale(posterior, group)
    weights.lost[group] = 0
    weights.changed[group] = True


@part
def fade_moves(posterior: Posterior, share: float) -> None:
    """Let moves that were counted weigh `share` of what they did."""
    groups = posterior.conjugates
    for i in range(len(groups.counts)):
        count = groups.counts[i] * share
        groups.counts[i] = count if count > FAINTEST else 0.0
    for group in range(len(groups.number_of)):
        if groups.number_of[group] >= 0:
            posterior.weights.changed[group] = True
