"""How well each sighting of an arm is foretold from those before it, which count less with time.

Symbols: w[m] weights of candidates (M, a multiple of four), E[m] log likelihoods of what was seen,
C[r, s'] counts of moves. Evidence loses weight from one block of steps to the next, as a learner's
with a memory does. Its *even* twin holds as much evidence, all that was seen weighing the same.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponential, logarithm
from restive.kernels.jit.compiler import inlined, kernel

__all__ = ["Chances", "Looks", "Remembered", "score_cells", "score_moves"]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

BLOCK, NUMBER, WEIGHT = 0, 1, 2  # of the last sighting; of all so far; and what they weigh now
LEAST_SHARE = 1e-300  # so that what is ruled out, at -inf, stays so
FAINT = 1e-280  # of a weight: less is as good as none, and would be slow to compute with
LEAST_CHANCE = 1e-200  # below which it is computed anew, from logarithms
LEAST_LOG = -700.0


class Looks(NamedTuple):
    """Sightings of one arm in the order of time."""

    cells: IntArray  # [n] what was seen after what; for moves: row S + next state
    blocks: IntArray  # [n] in which block of steps
    units: IntArray  # [n] in whose sum its score is


class Chances(NamedTuple):
    """What candidates say of each cell, and their weights before anything was seen."""

    chances: FloatArray  # [C, M]
    logs: FloatArray  # [C, M]
    log_prior: FloatArray  # [M]


class Remembered(NamedTuple):
    """What is known of an arm so far."""

    evidence: FloatArray  # [M]
    weights: FloatArray  # [M]
    counts: FloatArray  # [3]: BLOCK, NUMBER, WEIGHT


@kernel
def score_cells(
    looks: Looks, chances: Chances, known: Remembered, log_share: float, even: bool, out: FloatArray
) -> None:
    """Add the log chance of each sighting to its unit [U]; what was `known` goes on."""
    evidence, weights, counts = known.evidence, known.weights, known.counts
    size = len(weights)
    for i in range(len(looks.cells)):
        cell = looks.cells[i]
        gap = looks.blocks[i] - counts[BLOCK]
        if counts[NUMBER] == 0 or gap > 0:
            share = 1.0
            if counts[NUMBER] > 0:
                share = max(exponential(log_share * gap), LEAST_SHARE)
            counts[WEIGHT] *= share
            counts[BLOCK] = looks.blocks[i]
            if not even:
                for m in range(size):
                    evidence[m] *= share
            _weigh(chances.log_prior, evidence, _scale(counts, even), weights)
        seen, logs = chances.chances[cell], chances.logs[cell]
        chance = _product(weights, seen)
        if chance < LEAST_CHANCE:
            scale = _scale(counts, even)
            before = _weigh(chances.log_prior, evidence, scale, weights)
            for m in range(size):
                evidence[m] += logs[m] / scale
            after = _weigh(chances.log_prior, evidence, scale, weights)
            for m in range(size):
                evidence[m] += logs[m] - logs[m] / scale if logs[m] > -inf else 0.0
            out[looks.units[i]] += max(after - before, LEAST_LOG)
        else:
            out[looks.units[i]] += logarithm(chance)
            for m in range(size):
                weight = weights[m] * seen[m] / chance
                weights[m] = weight if weight > FAINT else 0.0
                evidence[m] += logs[m]
        counts[NUMBER] += 1
        counts[WEIGHT] += 1


@inlined
def _scale(counts: FloatArray, even: bool) -> float:
    """What each sighting weighs, beside what it has in the evidence."""
    if not even or counts[NUMBER] == 0:
        return 1.0
    return max(float(counts[WEIGHT] / counts[NUMBER]), LEAST_SHARE)


@inlined
def _product(weights: FloatArray, chances: FloatArray) -> float:
    """Sum of products, in four sums so that none waits for the other."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for m in range(0, len(weights), 4):
        a += weights[m] * chances[m]
        b += weights[m + 1] * chances[m + 1]
        c += weights[m + 2] * chances[m + 2]
        d += weights[m + 3] * chances[m + 3]
    return (a + b) + (c + d)


@inlined
def _weigh(log_prior: FloatArray, evidence: FloatArray, scale: float, weights: FloatArray) -> float:
    """Set weights, which sum to one; return the logarithm of what they summed to."""
    a, b, c, d = -inf, -inf, -inf, -inf
    for m in range(0, len(weights), 4):
        a = max(a, log_prior[m] + scale * evidence[m])
        b = max(b, log_prior[m + 1] + scale * evidence[m + 1])
        c = max(c, log_prior[m + 2] + scale * evidence[m + 2])
        d = max(d, log_prior[m + 3] + scale * evidence[m + 3])
    largest = max(a, b, c, d)
    for m in range(len(weights)):
        weights[m] = exponential(log_prior[m] + scale * evidence[m] - largest)
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    for m in range(0, len(weights), 4):
        a += weights[m]
        b += weights[m + 1]
        c += weights[m + 2]
        d += weights[m + 3]
    total = (a + b) + (c + d)
    for m in range(len(weights)):
        weights[m] /= total
    return largest + logarithm(total)


@kernel
def score_moves(
    looks: Looks, alphas: FloatArray, log_share: float, even: bool, out: FloatArray
) -> None:
    """Do so for an arm that is always seen, whose rows are Dirichlet with `alphas` [R, S]."""
    rows, size = alphas.shape
    counts, recent = np.zeros((rows, size)), np.zeros((rows, size))
    scale, weight = 1.0, 0.0
    for i in range(len(looks.cells)):
        gap = looks.blocks[i] - looks.blocks[max(i - 1, 0)]
        if gap > 0:
            share = max(exponential(log_share * gap), LEAST_SHARE)
            weight *= share
            if even:
                counts += recent
                recent[:] = 0.0
                scale = weight / i
            else:
                counts *= share
        row, state = looks.cells[i] // size, looks.cells[i] % size
        total = 0.0
        for s in range(size):
            total += alphas[row, s] + scale * counts[row, s] + recent[row, s]
        mine = alphas[row, state] + scale * counts[row, state] + recent[row, state]
        out[looks.units[i]] += logarithm(mine / total)
        if even:
            recent[row, state] += 1
        else:
            counts[row, state] += 1
        weight += 1
